import type { ClientRequest } from 'node:http';
import { Agent, request, type RequestOptions } from 'node:https';
import type { Test } from 'tap';
import type { ApiObject } from '../../../test/support/api-objects.js';
import type { Authority, Issued } from '../../../test/support/certificates.js';
import { fieldsOf } from '../../../test/support/deploy/kustomize.js';

/** The answer to something that is posted, over a connection that is kept. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Of the certificate that was served. */
  readonly serial: string;
}

/** Of an authority's server at `localhost`. */
export class Client {
  private readonly agent: Agent;

  constructor(
    t: Test,
    authority: Authority,
    private readonly port: number,
    pair: Partial<Pick<Issued, 'certificate' | 'key'>> = {},
    sockets = 8,
  ) {
    const { certificate: cert, key } = pair;
    this.agent = new Agent({ keepAlive: true, maxSockets: sockets, ca: authority.own.certificate, cert, key });
    t.teardown(() => {
      this.agent.destroy();
    });
  }

  async ask(body: string, path = '/validate', method = 'POST', type = 'application/json'): Promise<Answer> {
    const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) };
    const { outgoing, answer } = this.begin({ path, method, headers });
    outgoing.end(body);
    return answer;
  }

  /** A review whose text comes later, of a length that nobody knows. */
  begin(more: RequestOptions = {}): { readonly outgoing: ClientRequest; readonly answer: Promise<Answer> } {
    const outgoing = request({
      host: '127.0.0.1',
      servername: 'localhost',
      port: this.port,
      agent: this.agent,
      path: '/validate',
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      ...more,
    });
    const answer = new Promise<Answer>((resolve, reject) => {
      outgoing.on('error', reject).on('response', (response) => {
        let text = '';
        const serial = 'getPeerCertificate' in response.socket ? serialOf(response.socket) : '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: text, serial });
        });
      });
    });
    return { outgoing, answer };
  }

  async review(review: ApiObject): Promise<ApiObject> {
    const { status, body } = await this.ask(JSON.stringify(review));
    if (status !== 200) throw new Error(`${status}: ${body}`);
    const answer = fieldsOf(JSON.parse(body));
    return fieldsOf(answer['response']);
  }
}

function serialOf(socket: object): string {
  const { getPeerCertificate } = socket as { readonly getPeerCertificate: () => { readonly serialNumber?: string } };
  return getPeerCertificate.call(socket).serialNumber ?? '';
}
