/** Processes at the other end of a socket, and those that write to the same kernel. */
export interface PeerAddon {
  /**
   * Name of the abstract Unix socket (unix(7)), without the NUL before it, by which proxies of one network namespace find each other.
   * Empty: no other proxy writes to this kernel.
   */
  peerName(): string;
  /**
   * The user of the process that listened or connected, in terms of this process's user namespace (unix(7), SO_PEERCRED); null: the kernel does not report
   * it. Waits for nothing.
   *
   * @param descriptor of an open socket.
   */
  peerUser(descriptor: number): number | null;
  /**
   * Makes the kernel end a TCP connection with ETIMEDOUT when the other end is silent for `limitMs`. The connection may be idle or wait for an
   * acknowledgement. An idle one is probed after `idleSeconds`, and then every second until the other end answers. Waits for nothing.
   *
   * @param descriptor of an open socket.
   * @returns false: it is none of TCP.
   */
  limitSilence(descriptor: number, idleSeconds: number, limitMs: number): boolean;
  /** Milliseconds since the other end of a TCP connection last sent data or an acknowledgement; null: it is none of TCP. Waits for nothing. */
  silentMs(descriptor: number): number | null;
}
