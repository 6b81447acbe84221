import { createServer as createHttp, request, type IncomingMessage, type Server as HttpServer } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { Issued } from './certificates.js';

/** A proxy on loopback; `asked` has a line for every request: what for, and the login. */
export interface ForwardProxy {
  readonly port: number;
  readonly asked: string[];
  stop(): Promise<void>;
}

/**
 * CONNECT and absolute URLs. Names are all this machine.
 *
 * @param certificate for a proxy spoken to in TLS.
 * @param refuse answered instead of connecting; empty: connect.
 * @param clientCa who vouches for clients, which all need a certificate then: its common name comes before what is asked. Empty: nobody.
 * @param path of a Unix socket, in place of a port; empty: none.
 */
export async function startHttpProxy(
  certificate: Issued | null,
  { refuse = '', clientCa = '', path = '' } = {},
): Promise<ForwardProxy> {
  const asked: string[] = [];
  const server: HttpServer =
    certificate === null
      ? createHttp()
      : createHttps({
          cert: certificate.certificate,
          key: certificate.key,
          ...(clientCa === '' ? {} : { ca: clientCa, requestCert: true }),
        });
  const who = ({ socket }: IncomingMessage): string =>
    socket instanceof TLSSocket && clientCa !== '' ? `${[socket.getPeerCertificate().subject.CN].flat().join()}: ` : '';
  const login = ({ headers }: IncomingMessage): string => {
    const [, encoded = ''] = (headers['proxy-authorization'] ?? '').split(' ');
    return Buffer.from(encoded, 'base64').toString();
  };
  server.on('connect', (incoming: IncomingMessage, client: Duplex) => {
    asked.push(`${who(incoming)}CONNECT ${incoming.url ?? ''} ${login(incoming)}`.trim());
    if (refuse === '') join(client, portOf(incoming.url ?? ''), 'HTTP/1.1 200 Connection established\r\n\r\n');
    else client.end(`HTTP/1.1 ${refuse}\r\n\r\n`);
  });
  server.on('request', (incoming: IncomingMessage, response) => {
    asked.push(`${incoming.method ?? ''} ${incoming.url ?? ''} ${login(incoming)}`.trim());
    const url = new URL(incoming.url ?? '');
    request({ host: '127.0.0.1', port: url.port, path: url.pathname, headers: incoming.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    }).end();
  });
  return listen(server, asked, path);
}

/** RFC 1928; with a login, RFC 1929. */
export async function startSocksProxy(login: string | null, reply = 0): Promise<ForwardProxy> {
  const asked: string[] = [];
  const server = createServer((client) => {
    client.on('error', () => undefined);
    void serve(client).catch(() => client.destroy());
  });
  const serve = async (client: Socket): Promise<void> => {
    const bytes = new ByteReader(client);
    const [, methods = 0] = await bytes.take(2);
    const offered = await bytes.take(methods);
    const wanted = login === null ? 0 : 2;
    // Byte by byte, as a network may deliver it.
    client.write(Buffer.from([5]));
    await new Promise((resolve) => setTimeout(resolve, 5));
    client.write(Buffer.from([offered.includes(wanted) ? wanted : 0xff]));
    let given = '';
    if (login !== null) {
      const [, nameLength = 0] = await bytes.take(2);
      const name = await bytes.take(nameLength);
      const [passwordLength = 0] = await bytes.take(1);
      given = `${name.toString()}:${(await bytes.take(passwordLength)).toString()}`;
      client.write(Buffer.from([1, given === login ? 0 : 1]));
    }
    const [, , , type = 0] = await bytes.take(4);
    const length = type === 3 ? ((await bytes.take(1))[0] ?? 0) : type === 1 ? 4 : 16;
    const host = await bytes.take(length);
    const port = (await bytes.take(2)).readUInt16BE();
    asked.push(`type ${type} ${type === 3 ? host.toString() : host.join('.')}:${port} ${given}`.trim());
    const answer = Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
    bytes.stop();
    if (reply === 0) join(client, port, answer);
    else client.end(answer);
  };
  return listen(server, asked);
}

class ByteReader {
  private held = Buffer.alloc(0);
  private wake: (() => void) | null = null;
  private readonly onData = (chunk: Buffer): void => {
    this.held = Buffer.concat([this.held, chunk]);
    this.wake?.();
  };

  constructor(private readonly socket: Socket) {
    socket.on('data', this.onData);
  }

  async take(length: number): Promise<Buffer> {
    while (this.held.length < length) await new Promise<void>((resolve) => (this.wake = resolve));
    const taken = this.held.subarray(0, length);
    this.held = this.held.subarray(length);
    return taken;
  }

  stop(): void {
    this.socket.off('data', this.onData);
    this.socket.pause();
  }
}

function portOf(authority: string): number {
  return Number(authority.slice(authority.lastIndexOf(':') + 1));
}

function join(client: Duplex, port: number, greeting: string | Buffer): void {
  const server = connect(port, '127.0.0.1', () => {
    client.write(greeting);
    client.pipe(server).pipe(client);
  });
  server.on('error', () => client.destroy());
  client.on('error', () => server.destroy());
  client.on('close', () => server.destroy());
}

async function listen(server: Server, asked: string[], path = ''): Promise<ForwardProxy> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const at = path === '' ? { port: 0, host: '127.0.0.1' } : { path };
  await new Promise<void>((resolve) => server.listen(at, resolve));
  return {
    port: path === '' ? (server.address() as AddressInfo).port : 0,
    asked,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
