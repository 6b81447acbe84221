import { connect, type Socket } from 'node:net';
import type { Clock } from '../base/clock.js';
import { descriptorOf } from '../base/descriptor.js';
import type { Log } from '../base/log.js';
import type { Relay, RelayAddon, RelayEnd } from '../native/contract.js';

/** As in kube-proxy; the attempt is not repeated. */
const DIAL_MS = 5000;
/** For both sides; as Go's connections have it. */
export const KEEP_ALIVE = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 };

export interface RelayedConnectionsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly relay: () => RelayAddon;
}

/** A connection of a client, and the one to an endpoint that was made for it. */
interface Connection {
  /** Both of Node's; or its number in the relay, which has them. */
  sockets: readonly [client: Socket, backend: Socket] | number;
  /** It is being reset. */
  isEnding: boolean;
  readonly onClosed: () => void;
}

/** Connects clients to endpoints, and gives the sockets of both to the addon, whose thread carries the bytes: by Node's streams they cost four times as much. */
export class RelayedConnections {
  /** Null: there was no connection yet. */
  private relay: Relay | null = null;
  private readonly relayed = new Map<number, Connection>();
  /** The errno for which the connection that ended last could not be carried on. */
  private lack: string | null = null;

  constructor(private readonly options: RelayedConnectionsOptions) {}

  /**
   * @param client of which nothing was read.
   * @param onClosed called once, when nothing of the connection is left.
   * @returns what resets it.
   */
  connect(client: Socket, to: { readonly host: string; readonly port: number }, onClosed: () => void): () => void {
    const { clock } = this.options;
    const backend = connect({ ...to, allowHalfOpen: true, ...KEEP_ALIVE });
    // Node would begin to read when it is connected.
    backend.pause();
    const sockets = [client, backend] as const;
    const connection: Connection = { sockets, isEnding: false, onClosed };
    const end = (): void => {
      this.end(connection);
    };
    const cancelDial = clock.callAt(clock.now() + DIAL_MS, end);
    backend.on('error', () => undefined);
    backend.on('connect', () => {
      this.handOver(connection);
    });
    let open = sockets.length;
    for (const socket of sockets)
      socket.on('close', () => {
        cancelDial();
        if (typeof connection.sockets === 'number') return;
        end();
        if (--open === 0) onClosed();
      });
    return end;
  }

  /** Resets all, and waits until that is done. */
  close(): void {
    this.relay?.close();
  }

  /** The relay has descriptors of the same sockets, so nothing is sent when Node closes its own. Node has no way to give a socket away. */
  private handOver(connection: Connection): void {
    const { sockets } = connection;
    if (typeof sockets === 'number') return;
    this.relay ??= this.options.relay().relayOpen((ends) => {
      this.takeEnds(ends);
    });
    const [one = null, other = null] = sockets.map(descriptorOf);
    const carried = one === null || other === null ? 'EBADF' : this.relay.carry(one, other);
    if (typeof carried === 'string') {
      this.report(carried);
      this.end(connection);
      return;
    }
    connection.sockets = carried;
    this.relayed.set(carried, connection);
    for (const socket of sockets) socket.destroy();
  }

  private takeEnds(ends: readonly RelayEnd[]): void {
    for (const { id, lack } of ends) {
      this.report(lack);
      const connection = this.relayed.get(id);
      this.relayed.delete(id);
      connection?.onClosed();
    }
  }

  /** Both peers learn that the connection did not end by itself. */
  private end(connection: Connection): void {
    if (connection.isEnding) return;
    connection.isEnding = true;
    const { sockets } = connection;
    if (typeof sockets === 'number') {
      this.relay?.end(sockets);
      return;
    }
    for (const socket of sockets) {
      if (socket.connecting) socket.destroy();
      else if (!socket.destroyed) socket.resetAndDestroy();
    }
  }

  /** Once, until a connection ends in another way. */
  private report(lack: string | null): void {
    if (lack !== null && lack !== this.lack)
      this.options.log.warn('connections to node ports on loopback are reset, as their bytes cannot be carried', {
        reason: lack,
      });
    this.lack = lack;
  }
}
