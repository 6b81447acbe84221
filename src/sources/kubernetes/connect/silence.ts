import type { Socket } from 'node:net';
import { descriptorOf } from '../../../base/descriptor.js';
import type { PeerAddon } from '../../../native/contract.js';

/** TCP connections that the kernel ends when their other end is silent, and when something last came on any of them. */
export class Silence {
  private readonly sockets = new Set<Socket>();

  constructor(private readonly peer: Pick<PeerAddon, 'limitSilence' | 'silentMs'>) {}

  /** See {@link PeerAddon.limitSilence}. */
  limit(socket: Socket, idleSeconds: number, limitMs: number): void {
    const descriptor = descriptorOf(socket);
    if (descriptor === null || !this.peer.limitSilence(descriptor, idleSeconds, limitMs)) return;
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
  }

  /** Milliseconds since a packet last came; null: there is no connection. */
  heardMs(): number | null {
    const all = [...this.sockets].flatMap((socket) => {
      const descriptor = descriptorOf(socket);
      return (descriptor === null ? null : this.peer.silentMs(descriptor)) ?? [];
    });
    return all.length === 0 ? null : Math.min(...all);
  }
}
