import { Agent, request } from 'node:https';
import type { Test } from 'tap';
import type { ApiObject } from '../support/api-objects.js';
import type { Authority, Issued } from '../support/certificates.js';
import { fieldsOf } from '../support/deploy/kustomize.js';

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

  ask(body: string, path = '/validate', method = 'POST', type = 'application/json'): Promise<Answer> {
    const headers = { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const options = { host: 'localhost', port: this.port, path, method, headers, agent: this.agent };
      const outgoing = request(options, (response) => {
        let text = '';
        const serial = 'getPeerCertificate' in response.socket ? serialOf(response.socket) : '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: text, serial });
        });
      });
      outgoing.on('error', reject).end(body);
    });
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
