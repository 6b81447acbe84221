/** Other processes that write to the same kernel. */
export interface PeerAddon {
  /**
   * Name of the abstract Unix socket (unix(7)), without the NUL before it, by which proxies of one network namespace find each other.
   * Empty: nobody else writes to this kernel.
   */
  peerName(): string;
  /**
   * The user of the process that listened or connected, in terms of this process's user namespace (unix(7), SO_PEERCRED); null: the kernel does not say.
   * Waits for nothing.
   *
   * @param descriptor of an open socket.
   */
  peerUser(descriptor: number): number | null;
}
