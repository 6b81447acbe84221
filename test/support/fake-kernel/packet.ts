import type { IPAddress } from '../../../src/base/ip.js';
import type { Protocol } from '../../../src/base/protocol.js';
import type { PackedKey } from '../../../src/dataplane/nftables/keys.js';
import type { NftFamily } from '../../../src/native/contract.js';
import type { Arrived } from '../courses.js';

/** The first packet of a connection. */
export interface KernelPacket {
  readonly source: IPAddress;
  readonly destination: IPAddress;
  readonly port: number;
  readonly protocol: Protocol;
  /** Null: sent by the node itself. */
  readonly inputInterface: string | null;
}

/** A packet on its way: headers as they are by now, and what conntrack knows of it. Addresses and ports are packed. */
export interface Traveller extends Arrived {
  readonly family: NftFamily;
  readonly protocol: number;
  readonly source: PackedKey;
  readonly originalDestination: PackedKey;
  readonly originalPort: PackedKey;
  readonly inputInterface: string;
  /** Whether the node has the address. */
  readonly isLocal: (address: PackedKey) => boolean;
  /** What rules remembered of it on its way. */
  readonly updates: readonly SetUpdate[];
}

export interface SetUpdate {
  readonly set: string;
  readonly key: PackedKey;
  /** Null: the set is no map. */
  readonly value: PackedKey | null;
  /** Whether the element counts packets. */
  readonly counts: boolean;
}
