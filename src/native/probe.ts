/** Packets of our own, from a network namespace of their own: what a Service does for a client is tried as that client. */

/** One end of a wire in the namespace, the other here; packed addresses of one family. */
interface WireAddress {
  readonly inside: Uint8Array;
  readonly outside: Uint8Array;
  /** Length of the prefix that both are in. */
  readonly prefix: number;
}

interface ProbePlace {
  readonly protocol: 'TCP' | 'UDP';
  /** Packed: 4 or 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
}

interface ProbeAttempt extends ProbePlace {
  /** What is sent, at most 512 bytes; with UDP again and again until something comes back. */
  readonly payload: Uint8Array;
  /** With TCP: whether what the other end sends first is waited for. */
  readonly reads: boolean;
  readonly timeoutMs: number;
}

interface ProbeOutcome {
  /** Such as ECONNREFUSED; ETIMEDOUT: nothing came back. Null: a connection, or an answer. */
  readonly error: string | null;
  /** The first bytes of it; empty: none was waited for. */
  readonly answer: Uint8Array;
  readonly localPort: number;
  readonly milliseconds: number;
}

/** Rejects with ERR_NETLINK. Null for a namespace is the process's own. */
export interface ProbeAddon {
  /**
   * Makes a network namespace and a wire to it, whose end here is called `link`. The namespace and the wire last as long as the descriptor that is answered, or a socket in
   * the namespace, is open: they go with the process, however it ends. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
   *
   * @param bridge what the end here is a port of, without addresses; null: nothing.
   */
  probeSpace(link: string, addresses: readonly WireAddress[], bridge: string | null): Promise<number>;
  /**
   * Gives a link an address that it does not have. The kernel removes it after so many seconds, whatever becomes of the process; 0: removes it now.
   *
   * @param address packed: 4 or 16 bytes.
   */
  probeLease(link: string, address: Uint8Array, prefix: number, seconds: number): Promise<void>;
  /** Sends packets from there; resolves with what came of it. */
  probeReach(space: number | null, attempt: ProbeAttempt): Promise<ProbeOutcome>;
  /** A socket that waits for clients there: its descriptor. */
  probeListen(space: number | null, place: ProbePlace): Promise<number>;
}
