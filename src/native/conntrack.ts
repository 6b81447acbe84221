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
 * protocol (1), zero (1), conntrack id (4), status bits (4). Size 4·A + 20.
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
}

export interface FlowDeletion {
  readonly deleted: number;
  /** Already gone when their turn came, which is as good. */
  readonly missing: number;
}

/** Connections that the kernel tracks. Rejects with ERR_NETLINK. */
export interface ConntrackAddon {
  conntrackList(filter: FlowFilter): Promise<FlowListing>;
  /** Deletes listed flows, `records` as {@link FlowListing}. A flow replaced by another since the listing (other id) is left alone. */
  conntrackDelete(family: NftFamily, records: Uint8Array): Promise<FlowDeletion>;
}
