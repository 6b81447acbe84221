import type { NftFamily } from './nftables.js';

/** A conntrack flow in a fixed record; see {@link FLOW_RECORD}. */
export interface FlowListing {
  readonly count: number;
  /** `count` records of the family's record size. */
  readonly records: Uint8Array;
}

/**
 * Layout of a flow record, A = 4 or 16 address bytes: original source A, original destination A, reply source A, reply destination A,
 * then big-endian original source port, original destination port, reply source port, reply destination port (2 each), zone (2),
 * protocol (1), state (1), conntrack id (4), status bits (4). Size 4·A + 20. The state is the kernel's number for where a connection of TCP
 * or SCTP stands, and 0 for other protocols.
 */
export const FLOW_RECORD = { addresses: 4, tail: 20 } as const;

export interface FlowFilter {
  readonly family: NftFamily;
  /** IANA number. */
  readonly protocol: number;
  /** Only flows whose original destination is this address (4 or 16 bytes); null: any. */
  readonly destination: Uint8Array | null;
  /** Only flows with this original destination port; null: any. */
  readonly port: number | null;
  /** Only flows to which nothing was replied. */
  readonly unanswered: boolean;
}

export interface FlowDeletion {
  readonly deleted: number;
  /** Already gone when their turn came, which is as good. */
  readonly missing: number;
}

export interface Challenges {
  readonly sent: number;
  /** Why the first of the others was not; null when there are no others. */
  readonly failure: Error | null;
}

/**
 * Layout of a way, which is where flows were addressed to and where their replies come from: offsets of addresses (of 4 or 16 bytes, by `addressLength`;
 * zeros follow), big-endian ports, and the IANA number of the protocol.
 */
export const FLOW_WAY = {
  size: 40,
  destination: 0,
  destinationPort: 16,
  protocol: 18,
  addressLength: 19,
  source: 20,
  sourcePort: 36,
} as const;

/** What {@link FlowSums.sums} has of each way, in this order: new flows, then packets and bytes of both directions. */
export const FLOW_SUM = ['flows', 'requestPackets', 'requestBytes', 'replyPackets', 'replyBytes'] as const;

/** Flows that went elsewhere than where they were addressed to, added up by way. */
export interface FlowSums {
  readonly count: number;
  /** `count` ways, see {@link FLOW_WAY}. */
  readonly ways: Uint8Array;
  /** For each way the numbers of {@link FLOW_SUM}. */
  readonly sums: Float64Array;
  /** The same once, for the ways beyond the most that are counted separately. */
  readonly leftOut: Float64Array;
  /** How often the kernel reported more than could be kept, so that ends of flows were missed. */
  readonly overruns: number;
  /** Translated flows that live. */
  readonly living: number;
}

/** Counts flows on a thread of its own, which waits for those that end. */
export interface FlowCounter {
  /**
   * Lists the living flows, and answers what was counted since the last call. Each flow counts once, with what it has carried since it was last seen, where
   * the kernel counts that (net.netfilter.nf_conntrack_acct). What the first listing shows was there before and does not count. Rejects with ERR_NETLINK.
   */
  take(): Promise<FlowSums>;
  stop(): void;
}

/** Connections that the kernel tracks. Rejects with ERR_NETLINK. */
export interface ConntrackAddon {
  conntrackList(filter: FlowFilter): Promise<FlowListing>;
  /**
   * TCP flows that were answered, by another address or port than their original destination.
   *
   * @param replySources addresses of the family in ascending order, one after the other: only flows that one of them answers. Null: all.
   */
  conntrackListTranslated(family: NftFamily, replySources: Uint8Array | null): Promise<FlowListing>;
  /** Deletes listed flows, `records` as {@link FlowListing}. A flow replaced by another since the listing (other id) is left alone. */
  conntrackDelete(family: NftFamily, records: Uint8Array): Promise<FlowDeletion>;
  /**
   * Sends to the client of each TCP flow a segment that seems to come from what it asked for. An established connection answers it with its true
   * sequence numbers, and goes on (RFC 5961, section 4.2). Rejects with ERR_NETLINK where there may be no raw socket.
   */
  conntrackChallenge(family: NftFamily, records: Uint8Array): Promise<Challenges>;
  /**
   * Counts from now on, in this network namespace and both families, until it is stopped or the environment ends. It does not keep the process alive. Throws ERR_NETLINK.
   *
   * @param most how many ways are counted separately between two calls of {@link FlowCounter.take}.
   * @param buffer bytes of room for ends that are not read yet; each takes more than a kilobyte, as the kernel counts.
   */
  conntrackCount(most: number, buffer: number): FlowCounter;
}
