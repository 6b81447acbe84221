import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { clientOf } from '../base/client-network.js';
import { toOriginForm } from './request-target.js';

/** A request's head, and the whole of it, must have come after so long. In milliseconds. Node looks every 30 s: more often would wake an idle process. */
export const SERVER_TIMEOUTS = { headersTimeout: 20_000, requestTimeout: 30_000 } as const;

/** How many requests of one connection may wait for their answers, or have answers that are not read. */
const MAX_UNANSWERED = 4;

/** Of the connections, one client has no more than a fair share: one part of so many. */
const SHARES = 8;

/** Whether a request was answered with what it asked for. */
export function isSuccess({ statusCode }: Pick<ServerResponse, 'statusCode'>): boolean {
  return statusCode < 400;
}

/**
 * Caps the connections of one server, or of several together. At the cap a new one takes the place of one without a request: of the client that has the most
 * if that is more than its share, else of one that was never answered with success. Loopback counts as answered. So neither one client nor many take the
 * places of those that are served. Of several, it is the one that has been without a request for the longest time. If all have requests, one goes that does
 * not read its answer, or does not send the rest of its request. A connection ends that sends request after request without reading: Node would make all
 * their answers and keep them.
 */
export class ConnectionLimit {
  /** Without a request, the longest first. */
  private readonly idle = new Set<Socket>();
  /** With some, the oldest first. */
  private readonly busy = new Map<Socket, Set<ServerResponse>>();
  /** The connections that carry TLS, by what their requests come from. */
  private readonly carriers = new WeakMap<Socket, Socket>();
  /** By connection; an address is unknown once it is closed. */
  private readonly clients = new WeakMap<Socket, string>();
  /** Connections whose client was served. */
  private readonly served = new WeakSet<Socket>();

  constructor(private readonly limit: number) {}

  /** Has the server's requests answered by `handler`. */
  serve(server: Server, handler: RequestListener): void {
    server.on('connection', (socket: Socket) => {
      // Refused already, for another reason: no connection has to go for it.
      if (socket.destroyed) return;
      if (this.idle.size + this.busy.size >= this.limit && !this.makeRoom()) {
        socket.destroy();
        return;
      }
      this.idle.add(socket);
      const { key, isLoopback } = clientOf(socket.remoteAddress);
      this.clients.set(socket, key);
      if (isLoopback) this.served.add(socket);
      socket.once('close', () => {
        this.idle.delete(socket);
        this.busy.delete(socket);
      });
    });
    server.on('secureConnection', (secure: TLSSocket) => {
      const { remoteAddress, remotePort } = secure;
      const isCarrier = (socket: Socket): boolean =>
        socket.remotePort === remotePort && socket.remoteAddress === remoteAddress;
      const carrier = [...this.idle].find(isCarrier);
      if (carrier === undefined) secure.destroy();
      else this.carriers.set(secure, carrier);
    });
    server.on('request', (request, response) => {
      toOriginForm(request);
      if (this.admit(this.carriers.get(request.socket) ?? request.socket, response)) handler(request, response);
    });
  }

  private admit(socket: Socket, response: ServerResponse): boolean {
    const unanswered = this.busy.get(socket) ?? new Set();
    if (unanswered.size >= MAX_UNANSWERED) socket.destroy();
    // What has come in the same piece as the request that ended the connection is still read.
    if (socket.destroyed) return false;
    this.idle.delete(socket);
    this.busy.set(socket, unanswered.add(response));
    response.once('close', () => {
      if (isSuccess(response)) this.served.add(socket);
      unanswered.delete(response);
      if (unanswered.size > 0) return;
      this.busy.delete(socket);
      if (!socket.destroyed) this.idle.add(socket);
    });
    return true;
  }

  /** The connection without a request that goes first. */
  private idleVictim(): Socket | undefined {
    const counts = new Map<string, number>();
    const count = (socket: Socket): number => counts.get(this.clients.get(socket) ?? '') ?? 0;
    for (const socket of [...this.idle, ...this.busy.keys()])
      counts.set(this.clients.get(socket) ?? '', count(socket) + 1);
    const rank = (socket: Socket): number =>
      count(socket) + (count(socket) > this.limit / SHARES ? 2 : this.served.has(socket) ? 0 : 1) * this.limit;
    let found: Socket | undefined;
    for (const socket of this.idle) if (found === undefined || rank(socket) > rank(found)) found = socket;
    return found;
  }

  private makeRoom(): boolean {
    const idle = this.idleVictim();
    const isSlow = ([response]: ReadonlySet<ServerResponse>): boolean =>
      response !== undefined && (response.writableEnded || !response.req.complete);
    const victim = idle ?? [...this.busy].find(([, unanswered]) => isSlow(unanswered))?.[0];
    if (victim === undefined) return false;
    this.idle.delete(victim);
    this.busy.delete(victim);
    victim.destroy();
    return true;
  }
}
