import { Agent, type ClientRequestArgs } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { deliverAtOnce } from './at-once.js';
import { dial, type Destination } from './dial.js';

/** What a pooled request has beyond a plain one. */
export interface PooledRequest extends ClientRequestArgs {
  readonly destination: Destination;
  /** Ends a connection attempt that is made for this request. */
  readonly dialSignal: AbortSignal;
}

const KEEP_ALIVE_MS = 30_000;
/** Less than the 90 s after which the API server closes an idle connection. */
const IDLE_MS = 60_000;
const MAX_IDLE = 2;

/** Connections to one server: used again when a request is done with them, for as long as keys and certificates stay the same. */
export class ConnectionPool extends Agent {
  private tls: Destination['tls'] = null;
  private readonly madeWith = new WeakMap<Duplex, Destination['tls']>();

  constructor() {
    super({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxFreeSockets: MAX_IDLE, scheduling: 'lifo' });
  }

  /** From now on `tls` counts: idle connections made with anything else are closed, busy ones once they become idle. */
  use(tls: Destination['tls']): void {
    if (tls === this.tls) return;
    this.tls = tls;
    this.closeIdle();
  }

  closeIdle(): void {
    for (const sockets of Object.values(this.freeSockets)) for (const socket of [...(sockets ?? [])]) socket.destroy();
  }

  override createConnection(
    { destination, dialSignal }: PooledRequest,
    callback: (error: Error | null, stream?: Duplex) => void,
  ): undefined {
    dial(destination, dialSignal).then((socket) => {
      this.madeWith.set(socket, destination.tls);
      callback(null, deliverAtOnce(socket));
    }, callback);
  }

  /**
   * Options of a request with a connection of its own: a POST, which is not repeated where the server closes an idle connection. POSTs are rare, and a node is
   * to keep no more connections than its watches need.
   */
  readonly single = {
    createConnection: (
      options: ClientRequestArgs,
      callback: (error: Error | null, stream: Duplex) => void,
    ): undefined => {
      this.createConnection(options as PooledRequest, callback as (error: Error | null) => void);
    },
  };

  override getName(): string {
    return 'server';
  }

  override keepSocketAlive(socket: Duplex): boolean {
    if (!(socket instanceof Socket) || this.madeWith.get(socket) !== this.tls) return false;
    // An idle connection keeps no process alive. The agent ends it when the time is over, and takes no notice once it is in use again.
    socket.unref();
    socket.setTimeout(IDLE_MS);
    return true;
  }
}
