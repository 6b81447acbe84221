import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** A request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  /** Name and value by turns, as sent. */
  readonly rawHeaders: readonly string[];
  /** Common name of the client's certificate; empty: none. */
  readonly client: string;
  /** What the client called the server in the handshake; empty: nothing. */
  readonly serverName: string;
  /** Counts connections from 1. */
  readonly connection: number;
}

export type Handler = (request: IncomingMessage, response: ServerResponse, seen: SeenRequest) => void;

/** A server on loopback that writes down who asks. */
export class AuthServer {
  readonly seen: SeenRequest[] = [];
  readonly sockets = new Set<Socket>();
  handler: Handler = (_, response) => response.end('ok');
  private connections = 0;
  private readonly numbers = new WeakMap<object, number>();

  private constructor(
    private readonly server: Server,
    private readonly scheme: string,
  ) {
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const seen = this.describe(request);
      this.seen.push(seen);
      this.handler(request, response, seen);
    });
  }

  /** @param tls null: plain HTTP. */
  static async start(tls: ServerOptions | null): Promise<AuthServer> {
    const server = tls === null ? createHttp() : createHttps(tls);
    server.keepAliveTimeout = 60_000;
    const started = new AuthServer(server, tls === null ? 'http' : 'https');
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return started;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  url(host = '127.0.0.1'): string {
    return `${this.scheme}://${host}:${this.port}`;
  }

  get last(): SeenRequest {
    const seen = this.seen.at(-1);
    if (seen === undefined) throw new Error('nobody has asked');
    return seen;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private describe({ method = '', url = '', headers, rawHeaders, socket }: IncomingMessage): SeenRequest {
    const secure = socket instanceof TLSSocket ? socket : null;
    const subject: { readonly CN?: string | string[] } | undefined = secure?.getPeerCertificate().subject;
    const servername: unknown = secure === null ? '' : Reflect.get(secure, 'servername');
    const connection = this.numbers.get(socket) ?? ++this.connections;
    this.numbers.set(socket, connection);
    return {
      method,
      url,
      headers,
      rawHeaders,
      client: typeof subject?.CN === 'string' ? subject.CN : '',
      serverName: typeof servername === 'string' ? servername : '',
      connection,
    };
  }
}
