import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import {
  ApiError,
  type ApiAnswer,
  type ApiConnection,
  type ApiQuery,
  type ApiResponse,
  type GetOptions,
} from '../../../src/sources/kubernetes/connection.js';

/** The least there is to a connection: no credentials but a token, one URL, keep-alive. */
export class SimpleConnection implements ApiConnection {
  private readonly agent: PlainAgent;

  /** @param ca trusted certificate; null for plain HTTP. */
  constructor(
    private readonly url: string,
    private readonly token: string | null = null,
    private readonly ca: string | Buffer | null = null,
  ) {
    this.agent =
      ca === null
        ? new PlainAgent({ keepAlive: true })
        : new TlsAgent({ keepAlive: true, ca, checkServerIdentity: () => undefined });
  }

  get(path: string, query: ApiQuery, { accept, signal }: GetOptions): Promise<ApiResponse> {
    const url = new URL(path, this.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return new Promise((resolve, reject) => {
      const send = this.ca === null ? plainRequest : tlsRequest;
      const outgoing = send(url, {
        agent: this.agent,
        signal,
        headers: { accept, ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }) },
      });
      outgoing.on('response', (response) => {
        resolve(answerOf(response));
      });
      outgoing.on('error', (error) => {
        reject(signal.aborted ? (signal.reason as Error) : new ApiError('connect', error.message, { cause: error }));
      });
      outgoing.end();
    });
  }

  post(): Promise<ApiAnswer> {
    return Promise.reject(new ApiError('closed', 'this connection only reads'));
  }

  close(): void {
    this.agent.destroy();
  }
}

function answerOf(response: IncomingMessage): ApiResponse {
  const retryAfter = response.headers['retry-after'];
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '',
    retryAfterMs: retryAfter === undefined ? null : Number(retryAfter) * 1000,
    body: response,
  };
}
