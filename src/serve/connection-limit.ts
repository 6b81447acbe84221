import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** A request's head, and the whole of it, must have come after so long. In milliseconds. */
export const SERVER_TIMEOUTS = {
  headersTimeout: 20_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 10_000,
} as const;

/** How many requests of one connection may wait for their answers, or have answers that are not read. */
const MAX_UNANSWERED = 4;

/**
 * Caps the connections of one server, or of several together. At the cap a new one takes the place of the one that has been without a request for the
 * longest time among those of the address that has the most, then of one that does not read its answer, or does not send the rest of its request: neither idle nor slow clients can keep others
 * out. A connection ends that sends request after request without reading: Node would make all their answers and keep them.
 */
export class ConnectionLimit {
  /** Without a request, the longest first. */
  private readonly idle = new Set<Socket>();
  /** With some, the oldest first. */
  private readonly busy = new Map<Socket, Set<ServerResponse>>();
  /** The connections that carry TLS, by what their requests come from. */
  private readonly carriers = new WeakMap<Socket, Socket>();

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
      unanswered.delete(response);
      if (unanswered.size > 0) return;
      this.busy.delete(socket);
      if (!socket.destroyed) this.idle.add(socket);
    });
    return true;
  }

  /** Of the address that has the most connections the one that has been without a request for the longest time: one client makes room for itself. */
  private idleOfTheMost(): Socket | undefined {
    const counts = new Map<string, number>();
    const count = ({ remoteAddress = '' }: Socket): number => counts.get(remoteAddress) ?? 0;
    for (const socket of [...this.idle, ...this.busy.keys()]) counts.set(socket.remoteAddress ?? '', count(socket) + 1);
    let found: Socket | undefined;
    for (const socket of this.idle) if (found === undefined || count(socket) > count(found)) found = socket;
    return found;
  }

  private makeRoom(): boolean {
    const idle = this.idleOfTheMost();
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
