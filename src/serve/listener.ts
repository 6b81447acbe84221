import {
  createServer,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { errorCode } from '../base/error-message.js';
import { addressFromBytes, isUnspecified, type Family, type IPAddress } from '../base/ip.js';
import { ConnectionLimit, SERVER_OPTIONS } from './connection-limit.js';

/** Of one server. */
export const MAX_CONNECTIONS = 256;

/** What the health servers answer with. */
export const JSON_HEADERS = { 'Content-Type': 'application/json', 'X-Content-Type-Options': 'nosniff' } as const;

/** Every address of a family. */
export const WILDCARD: Readonly<Record<Family, IPAddress>> = {
  IPv4: addressFromBytes(new Uint8Array(4)),
  IPv6: addressFromBytes(new Uint8Array(16)),
};

export interface ListenSocket {
  readonly address: IPAddress;
  /** 0: the system chooses. */
  readonly port: number;
  /** Whether `::` takes IPv4 connections too. */
  readonly dualStack: boolean;
}

/**
 * Opens an HTTP server. Rejects with the system's error.
 *
 * @param onError for errors after the server has begun to listen.
 * @param limit of its connections, alone or with other servers.
 * @param create makes the server; without it plain HTTP is spoken.
 */
export async function listen(
  socket: ListenSocket,
  handler: RequestListener,
  onError: (error: Error) => void,
  limit: ConnectionLimit = new ConnectionLimit(MAX_CONNECTIONS),
  create: (options: ServerOptions) => Server = createServer,
): Promise<Server> {
  // As in Go, connections may stay open without a request for as long as clients like. Node's own limit of 5 s is how often many balancers ask, and
  // a request that crosses the closing on its way fails.
  const server = create({ keepAliveTimeout: 0, ...SERVER_OPTIONS });
  limit.serve(server, handler);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: socket.address, port: socket.port, ipv6Only: !socket.dualStack }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', onError);
  return server;
}

/**
 * Opens a bind address of the configuration as Go does: 0.0.0.0 and :: both mean every address of both families, any other only itself.
 * On a host without IPv6 the wildcards mean every IPv4 address.
 */
export async function openBindAddress<T>(
  address: IPAddress,
  port: number,
  open: (socket: ListenSocket) => Promise<T>,
): Promise<T> {
  if (!isUnspecified(address)) return open({ address, port, dualStack: false });
  try {
    return await open({ address: WILDCARD.IPv6, port, dualStack: true });
  } catch (error) {
    if (!['EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes(errorCode(error) ?? '')) throw error;
    return open({ address: WILDCARD.IPv4, port, dualStack: false });
  }
}

/** Stops listening at once and cuts open connections; resolves when the last one is gone. */
export async function shut(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  server.closeAllConnections();
  await closed;
}

/** Answers in one piece, with its length: who checks health need not know of chunks. */
export function answerWhole(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string,
): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
}

/** The port a server listens on, which the system chose if 0 was asked for; null when it does not listen. */
export function boundPort(server: Server): number | null {
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound.port : null;
}
