/** The end of a pair of sockets. */
export interface RelayEnd {
  readonly id: number;
  /** The errno for which its bytes could not be carried on, such as `EMFILE` for a pipe; null: a peer or JavaScript ended it. */
  readonly lack: string | null;
}

/** A thread that carries the bytes of pairs of TCP sockets, while it has any. */
export interface Relay {
  /**
   * Carries all bytes that come to one socket to the other from now on, both ways, and passes on the end of what a peer sends. When both have sent their last,
   * both sockets are closed. After an error of one, both are reset; bytes that came before it are carried, as far as the other socket takes them at once. A peer
   * that does not read holds the other back.
   *
   * The addon gets descriptors of its own for the two sockets: the caller closes its own, unread. That sends nothing.
   *
   * @param one descriptor of an open socket.
   * @param other the same.
   * @returns the id of the pair; or the errno for which it is not carried.
   */
  readonly carry: (one: number, other: number) => number | string;
  /** Resets both sockets of a pair, unless it has ended. Its end is reported. */
  readonly end: (id: number) => void;
  /** Resets all that are left, and waits for the thread to do that. Nothing is carried or reported afterwards. */
  readonly close: () => void;
}

/** Bytes of connections. */
export interface RelayAddon {
  /**
   * Reports each pair that ended, once. It is closed with the environment, too, and does not keep the process alive.
   */
  relayOpen(onEnd: (ends: readonly RelayEnd[]) => void): Relay;
}
