import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { clientOf } from '../base/client-network.js';
import { systemClock, type Clock } from '../base/clock.js';
import type { Client, ClientShares } from './client-shares.js';
import { CONNECTION_ENDED, PacedReading, type Pace } from './paced-reading.js';
import { toOriginForm } from './request-target.js';

/**
 * For every server that {@link ConnectionLimit} serves. A request's head, and the whole of it, must have come after so many milliseconds. Node looks every 30 s:
 * more often would wake an idle process. Requests without a host are refused by the limit, which counts them.
 */
export const SERVER_OPTIONS = { headersTimeout: 20_000, requestTimeout: 30_000, requireHostHeader: false } as const;

/** How many requests of one connection may wait for their answers, or have answers that are not read. */
const MAX_UNANSWERED = 4;

/** Of the connections, one client has no more than a fair share: one part of so many. */
const SHARES = 8;
/** New connections are the last ones that have not sent anything yet: at most one part of so many. */
const NEW_PARTS = 4;

/** Whether a request was answered with what it asked for. */
export function isSuccess({ statusCode }: Pick<ServerResponse, 'statusCode'>): boolean {
  return statusCode < 400;
}

/**
 * Caps the connections of one server, or of several together. At the cap a new one takes the place of one without a request: of the client that has the most
 * if that is more than its share, else of one that has sent something and was never answered with success, else of the client that has the most. This machine
 * counts as answered. So neither one client nor many take the places of those that are served, or that have just come. Of several, it is the one that has been
 * without a request for the longest time. If all have requests, one goes that does not read its answer, or does not send the rest of its request. A connection
 * ends that sends request after request without reading: Node would make all their answers and keep them.
 */
export class ConnectionLimit {
  /** Without a request, the longest first. */
  private readonly idle = new Set<Socket>();
  /** With some, the oldest first. */
  private readonly busy = new Map<Socket, Set<ServerResponse>>();
  /** The connections that carry TLS, by what their requests come from. */
  private readonly carriers = new WeakMap<Socket, Socket>();
  /** By connection; an address is unknown once it is closed. */
  private readonly clients = new WeakMap<Socket, Client>();
  /** Connections whose client was served. */
  private readonly served = new WeakSet<Socket>();
  /** The numbers of connections, in the order in which they came. */
  private readonly numbers = new WeakMap<Socket, number>();
  private accepted = 0;

  /** @param shares of the main thread's time, by client; null: clients are trusted with it. */
  constructor(
    private readonly limit: number,
    private readonly shares: ClientShares | null = null,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Has the server's requests answered by `handler`. */
  serve(server: Server, handler: RequestListener): void {
    const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => {
      const client = clientAt(socket);
      // Node's listener makes a parser: for a connection that is refused, that costs as much as all else.
      if (this.shares?.connects(client) === false) {
        socket.destroy();
        return;
      }
      for (const listener of listeners) listener.call(server, socket);
      // Refused already, for another reason: no connection has to go for it.
      if (!socket.destroyed) this.accept(socket, client);
    });
    server.on('secureConnection', (secure: TLSSocket) => {
      const { remoteAddress, remotePort } = secure;
      const isCarrier = (socket: Socket): boolean =>
        socket.remotePort === remotePort && socket.remoteAddress === remoteAddress;
      const carrier = [...this.idle].find(isCarrier);
      if (carrier === undefined) secure.destroy();
      else {
        this.carriers.set(secure, carrier);
        this.pace(secure, this.clients.get(carrier));
      }
    });
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      toOriginForm(request);
      this.admit(this.carriers.get(request.socket) ?? request.socket, response);
      if (request.httpVersion === '1.1' && request.headers.host === undefined) refuse(response, 400);
      else handler(request, response);
    };
    server.on('request', answer);
    server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      this.admit(this.carriers.get(request.socket) ?? request.socket, response);
      refuse(response, 417);
    });
  }

  private accept(socket: Socket, client: Client): void {
    if (this.idle.size + this.busy.size >= this.limit && !this.makeRoom()) {
      socket.destroy();
      return;
    }
    this.idle.add(socket);
    this.clients.set(socket, client);
    this.numbers.set(socket, ++this.accepted);
    if (client.isNear) this.served.add(socket);
    socket.once('close', () => {
      this.idle.delete(socket);
      this.busy.delete(socket);
    });
    this.pace(socket, client);
  }

  private pace(socket: Socket, client: Client | undefined): void {
    const { shares, clock } = this;
    PacedReading.begin(socket, shares === null || client === undefined ? FREE : shares.paceOf(client), clock);
  }

  /** @throws CONNECTION_ENDED if it has: nothing more of it is to be parsed. */
  private admit(socket: Socket, response: ServerResponse): void {
    const unanswered = this.busy.get(socket) ?? new Set();
    if (unanswered.size >= MAX_UNANSWERED) {
      const client = this.clients.get(socket);
      if (client !== undefined) this.shares?.refused(client);
      socket.destroy();
    }
    if (socket.destroyed) throw CONNECTION_ENDED;
    this.idle.delete(socket);
    this.busy.set(socket, unanswered.add(response));
    response.once('close', () => {
      if (isSuccess(response)) this.served.add(socket);
      unanswered.delete(response);
      if (unanswered.size > 0) return;
      this.busy.delete(socket);
      if (!socket.destroyed) this.idle.add(socket);
    });
  }

  /** The connection without a request that goes first. */
  private idleVictim(): Socket | undefined {
    const counts = new Map<string, number>();
    const keyOf = (socket: Socket): string => this.clients.get(socket)?.key ?? '';
    for (const socket of [...this.idle, ...this.busy.keys()])
      counts.set(keyOf(socket), (counts.get(keyOf(socket)) ?? 0) + 1);
    const rank = (socket: Socket): number => {
      const count = counts.get(keyOf(socket)) ?? 0;
      const isKept = this.served.has(socket) || this.isNew(socket);
      return count + (count > this.limit / SHARES ? 2 : isKept ? 0 : 1) * this.limit;
    };
    let found: Socket | undefined;
    for (const socket of this.idle) if (found === undefined || rank(socket) > rank(found)) found = socket;
    return found;
  }

  /** Whether a connection is one of the last that came, and nothing of it has been read. */
  private isNew(socket: Socket): boolean {
    const number = this.numbers.get(socket) ?? 0;
    return socket.bytesRead === 0 && number > this.accepted - this.limit / NEW_PARTS;
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

/** The pace of trusted clients. */
const FREE: Pace = { wait: () => 0, spent: () => undefined, refused: () => undefined };

function clientAt({ remoteAddress, localAddress }: Socket): Client {
  const { key, address, isLoopback } = clientOf(remoteAddress);
  // The system takes the address asked for as source, too, where both are of this machine.
  return { key, address, isNear: isLoopback || (remoteAddress !== undefined && remoteAddress === localAddress) };
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { Connection: 'close', 'Content-Length': 0 }).end();
}
