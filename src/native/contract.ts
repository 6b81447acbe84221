/**
 * The whole seam between TypeScript and the addon, declared once. What crosses is complete: every field present, absent is null, unions
 * tagged by `type`. The addon encodes, sends and decodes; it fills no default and knows no Service. Nothing here blocks the JS thread:
 * every call that touches a socket returns a promise settled from a worker thread. Names and order are the same in native/addon/exports.cc,
 * and a test compares the two lists.
 */

import type { IptablesAddon } from './iptables-contract.js';
import type { IpvsAddon } from './ipvs-contract.js';

export type * from './iptables-contract.js';
export type * from './ipvs-contract.js';

/** nfnetlink family of a table; spelled as nft spells it. */
export type NftFamily = 'ip' | 'ip6';

/**
 * Adds or deletes elements of one set or map. Keys are the kernel's own layout: each component of a concatenation in network order (host
 * order for marks), padded with zeros to 4 bytes. `count` rows in every column.
 */
export interface NftElementsOperation {
  readonly type: 'elements';
  readonly verb: 'add' | 'delete';
  readonly set: string;
  readonly count: number;
  /** `count` keys of `keyLength` bytes. */
  readonly keyLength: number;
  readonly keys: Uint8Array;
  /** Concatenations with intervals: the inclusive end of each key, same layout as `keys`; null otherwise. */
  readonly keyEnds: Uint8Array | null;
  /** Maps of data: `count` values of `dataLength` bytes; null for sets and verdict maps, and when deleting. */
  readonly dataLength: number;
  readonly data: Uint8Array | null;
  /** Verdict maps: per element the chain to `goto`; null otherwise, and when deleting. */
  readonly gotoChains: readonly string[] | null;
  /** Per element a comment of at most 127 bytes, or null for none; null when no element has one. */
  readonly comments: readonly (string | null)[] | null;
}

/** A command in the libnftables JSON schema (libnftables-json(5)), `{ add: { table: … } }`: plain objects, arrays, strings, integers, booleans and nulls. */
export type NftCommand = Readonly<Record<string, unknown>>;

export interface NftCommandsOperation {
  readonly type: 'commands';
  readonly commands: readonly NftCommand[];
}

export type NftOperation = NftCommandsOperation | NftElementsOperation;

/** Operations of one atomic nf_tables transaction on one table, in order. */
export interface NftTransaction {
  readonly family: NftFamily;
  readonly table: string;
  readonly operations: readonly NftOperation[];
}

export interface NftAck {
  /** Netlink messages and bytes of the batch. */
  readonly messages: number;
  readonly bytes: number;
}

/** One object as the kernel would list it, in a canonical text that is equal for equal objects whatever process made them. */
export interface NftChainListing {
  readonly name: string;
  /** `type filter hook input priority 0 policy accept` for base chains, with `dormant` at the end if the table is; null for regular ones. */
  readonly hook: string | null;
  /** One canonical line per rule: its expressions, in order. */
  readonly rules: readonly string[];
}

export interface NftElementsListing {
  readonly count: number;
  readonly keys: Uint8Array;
  readonly keyEnds: Uint8Array | null;
  readonly data: Uint8Array | null;
  /** Verdict maps: `goto NAME`, or any other verdict in nft's words. */
  readonly verdicts: readonly string[] | null;
  readonly comments: readonly (string | null)[] | null;
}

export interface NftSetListing {
  readonly name: string;
  /** Canonical declaration: kind, key type and length, data type and length, flags, timeout, size. */
  readonly declaration: string;
  readonly keyLength: number;
  readonly dataLength: number;
  /** Null when elements were not asked for. */
  readonly elements: NftElementsListing | null;
}

/** Sorted by name. */
export interface NftTableListing {
  readonly chains: readonly NftChainListing[];
  readonly sets: readonly NftSetListing[];
}

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

/** What a rejected promise carries: an Error with these fields. Misuse (a bad field) throws a TypeError naming the field's path instead. */
export interface NativeErrorFields {
  /** `ERR_NETLINK` (kernel or socket), `ERR_NFT_JSON` (a command the compiler does not take; message names its path), `ERR_NETLINK_DECODE` (an answer that is not well formed), `ERR_IPTABLES` (a program failed; message holds its exit code and words). */
  readonly code: 'ERR_NETLINK' | 'ERR_NFT_JSON' | 'ERR_NETLINK_DECODE' | 'ERR_IPTABLES';
  /**
   * Symbolic errno such as `EEXIST`; null when there is none. ERR_IPTABLES: `ENOENT` there is no such program, `EAGAIN` the lock stayed taken or
   * the rules kept changing, `ETIMEDOUT` the program was killed.
   */
  readonly errno: string | null;
  /** The system or netlink call: `nft transaction`, `nft list`, `nft elements`, `nft has`, `nft generation`, `nft compile`, `nft max batch`, `nft watch`, `conntrack list`, `conntrack delete`, `iptables restore`, `iptables list`, `iptables remembering`, `account create`, `account packets`, `ipvs list`, `ipvs delete`, `ipset list`, `ipset destroy`, `link addresses`, `link delete`. */
  readonly operation: string;
  /** The kernel's extended message; null when it sent none. */
  readonly kernelMessage: string | null;
  /** Text of the failing command or element, such as `add element frontends 10.96.0.1 . tcp . 80`; null when the failure is not one operation's. */
  readonly object: string | null;
  /** Index into `operations` of the failing operation, and of the element in it; null as above. */
  readonly index: number | null;
  readonly element: number | null;
}

/** What others did to a watched table since the last call. */
export interface NftForeignChange {
  /** Families in which a transaction of someone else named the table or something in it. */
  readonly families: readonly NftFamily[];
  /** Something may have happened unseen: more was notified than could be received, or a large transaction of ours was under way. */
  readonly missed: boolean;
  /** The process that committed last, as `nft[1234]`; its id is that of the initial PID namespace. Null when unknown. */
  readonly process: string | null;
}

/** The names of {@link IptablesAddon} come after these, then those of {@link IpvsAddon}. */
export interface NativeAddon extends IptablesAddon, IpvsAddon {
  /**
   * Compiles commands without touching the kernel: what {@link nftList} would show of these objects. Throws ERR_NFT_JSON. Chains and sets
   * appear when a command adds them.
   */
  nftCompile(family: NftFamily, table: string, commands: readonly NftCommand[]): NftTableListing;
  /** The batch as bytes, without sending. */
  nftEncode(transaction: NftTransaction): Uint8Array;
  /** Sends one batch and waits for the kernel's verdict: all of it happened, or none. */
  nftTransact(transaction: NftTransaction): Promise<NftAck>;
  /**
   * Lists a table; null when it does not exist. `elements`: of which sets to fetch elements; null for all. Starts over when others change the
   * table meanwhile. What this environment changes meanwhile does not count: an element that it did not touch may then be missing or twice.
   */
  nftList(family: NftFamily, table: string, elements: readonly string[] | null): Promise<NftTableListing | null>;
  /**
   * Elements of some sets of a table, without a look at anything else in it; sets that do not exist are left out. What packets or transactions add or
   * delete meanwhile may hide others.
   */
  nftElements(family: NftFamily, table: string, sets: readonly string[]): Promise<readonly NftSetListing[]>;
  /** For each of the keys, `keyLength` bytes each, whether a set has it. A set that does not exist has none. */
  nftHas(
    family: NftFamily,
    table: string,
    set: string,
    keyLength: number,
    keys: Uint8Array,
  ): Promise<readonly boolean[]>;
  /**
   * The ruleset's generation: it grows by one (modulo 2^32, never 0) with every transaction that changes any table of this network namespace,
   * whoever sends it. Not with what packets do to dynamic sets.
   */
  nftGeneration(): Promise<number>;
  /** Largest batch the socket takes here, in bytes (SO_SNDBUFFORCE needs CAP_NET_ADMIN in the initial user namespace). */
  nftMaxBatch(): number;
  /**
   * Calls back when somebody else changed the table of this name in family ip or ip6 of this network namespace; what happens until JavaScript gets to
   * run is gathered. Transactions of this environment do not count, nor what packets do to dynamic sets, and other tables cost no call. Answers
   * what ends it; it ends with the environment too, and does not keep the process alive. Throws ERR_NETLINK when the kernel refuses.
   */
  nftWatch(table: string, onChange: (change: NftForeignChange) => void): () => void;
  conntrackList(filter: FlowFilter): Promise<FlowListing>;
  /** Deletes listed flows, `records` as {@link FlowListing}. A flow replaced by another since the listing (other id) is left alone. */
  conntrackDelete(family: NftFamily, records: Uint8Array): Promise<FlowDeletion>;
}
