import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A request's head, and the whole of it, must have come after so long. In milliseconds. */
export const SERVER_TIMEOUTS = {
  headersTimeout: 20_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
} as const;

/**
 * Caps the connections of one server, or of several together. At the cap a new one takes the place of the one that has been without a request for the
 * longest time, then of one that does not read its answer, or does not send the rest of its request: neither idle nor slow clients can keep others
 * out.
 */
export class ConnectionLimit {
  /** Without a request, the longest first. */
  private readonly idle = new Set<Socket>();
  /** With one, the oldest first. */
  private readonly busy = new Map<Socket, ServerResponse>();

  constructor(private readonly limit: number) {}

  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
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
    server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.idle.delete(socket);
      this.busy.set(socket, response);
      response.once('close', () => {
        if (this.busy.get(socket) !== response) return;
        this.busy.delete(socket);
        if (!socket.destroyed) this.idle.add(socket);
      });
    });
  }

  private makeRoom(): boolean {
    const [idle] = this.idle;
    const isSlow = (response: ServerResponse): boolean => response.writableEnded || !response.req.complete;
    const victim = idle ?? [...this.busy].find(([, response]) => isSlow(response))?.[0];
    if (victim === undefined) return false;
    this.idle.delete(victim);
    this.busy.delete(victim);
    victim.destroy();
    return true;
  }
}
