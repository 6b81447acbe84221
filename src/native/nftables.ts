/** nf_tables as the addon has it: transactions, listings and notifications. */

/** A chain that the kernel calls, of any table. */
export interface NftBaseChain {
  readonly family: NftReadFamily;
  readonly table: string;
  readonly chain: string;
  /** As {@link NftChainListing.hook}, but without whether a table is dormant. */
  readonly hook: string;
}

/** Tables of others may be of both families at once, or of interfaces. */
export type NftReadFamily = NftFamily | 'inet' | 'netdev';

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
  /**
   * `type filter hook input priority 0 policy accept` for base chains, and `hook ingress devices eth0:veth*` for those of
   * interfaces. It has `dormant` at the end if the table is. Null for regular ones.
   */
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
  /** The packets of each element's counter, 0 for one without; null when no element has any. */
  readonly packets: Float64Array | null;
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

/** A `ct timeout` object, which says for how long conntrack keeps the flows that a rule gives it to, or a named counter. */
interface NftObjectListing {
  readonly name: string;
  /** Canonical: `ct timeout`, the protocol and the seconds of each of its states; or `counter`. */
  readonly declaration: string;
}

/** Sorted by name. */
export interface NftTableListing {
  readonly chains: readonly NftChainListing[];
  readonly sets: readonly NftSetListing[];
  readonly objects: readonly NftObjectListing[];
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

/** What the kernel reports of a packet that it traces (nft(8), `monitor trace`): a rule that applied to it, or the end of a base chain. */
export interface NftTraceEvent {
  /** The same for a packet on its way through the hooks, as far as the kernel reports it. */
  readonly id: number;
  readonly family: NftReadFamily;
  readonly table: string;
  readonly chain: string;
  readonly type: 'rule' | 'return' | 'policy' | 'other';
  /** The handle of the rule. */
  readonly handle: number | null;
  /** `accept`, `jump NAME` …, in nft's words. */
  readonly verdict: string | null;
  /** Interfaces by name. They, and the headers, are in the first event of each base chain alone. */
  readonly input: string | null;
  readonly output: string | null;
  /** The first bytes of the packet's IP header, and of what follows it. */
  readonly network: Uint8Array | null;
  readonly transport: Uint8Array | null;
}

export interface NftTrace {
  readonly events: readonly NftTraceEvent[];
  /** More was reported than could be received. */
  readonly missed: boolean;
}

/** Rejects with ERR_NETLINK, and with ERR_NFT_JSON where a command is not taken. */
export interface NftablesAddon {
  /**
   * Compiles commands without touching the kernel: what {@link nftList} would show of these objects. Throws ERR_NFT_JSON. Chains, sets
   * and timeouts appear when a command adds them.
   */
  nftCompile(family: NftFamily, table: string, commands: readonly NftCommand[]): NftTableListing;
  /** The batch as bytes, without sending. */
  nftEncode(transaction: NftTransaction): Uint8Array;
  /** Sends one batch and waits for the kernel's verdict: all of it happened, or none. */
  nftTransact(transaction: NftTransaction): Promise<NftAck>;
  /**
   * Lists a table; null when it does not exist. `elements`: of which sets to fetch elements; null for all. Starts over when others change the
   * table meanwhile. What this environment changes meanwhile does not count: an element that it did not touch may then be missing or twice.
   * Rejects with E2BIG when the table has more than `mostRules` rules, without reading the rest of them.
   */
  nftList(
    family: NftReadFamily,
    table: string,
    elements: readonly string[] | null,
    mostRules?: number,
  ): Promise<NftTableListing | null>;
  /**
   * Elements of some sets of a table, without a look at anything else in it; sets that do not exist are left out. What packets or transactions add or
   * delete meanwhile may hide others.
   */
  nftElements(family: NftReadFamily, table: string, sets: readonly string[]): Promise<readonly NftSetListing[]>;
  /** The base chains of every table of the families ip, ip6, inet and netdev but those of this name. */
  nftBaseChains(but: string): Promise<readonly NftBaseChain[]>;
  /**
   * The ruleset's generation: it grows by one (modulo 2^32, never 0) with every transaction that changes any table of this network namespace, from any
   * sender. It does not grow with what packets do to dynamic sets.
   */
  nftGeneration(): Promise<number>;
  /**
   * Calls back once, when the ruleset's generation is another than this, or cannot be read. A thread looks once in every `periodMs` milliseconds; JavaScript
   * is not woken for it. Answers what ends it; it ends with the environment too, and does not keep the process alive.
   */
  nftGenerationWatch(generation: number, periodMs: number, onChange: () => void): () => void;
  /** Largest batch the socket takes here, in bytes (SO_SNDBUFFORCE needs CAP_NET_ADMIN in the initial user namespace). */
  nftMaxBatch(): number;
  /**
   * Calls back on an external change to the table of this name in family ip or ip6 of this network namespace; changes are gathered until JavaScript runs.
   * Transactions of this environment do not count, nor what packets do to dynamic sets, and other tables cost no call. Answers what ends it; it ends with the
   * environment too, and does not keep the process alive. Throws ERR_NETLINK when the kernel refuses.
   */
  nftWatch(table: string, onChange: (change: NftForeignChange) => void): () => void;
  /**
   * Makes a table for as long as this goes on. Calls back with the kernel's reports of traced packets in this network namespace, whichever program enabled
   * the trace. Reports are gathered until JavaScript runs. The transaction's table has the flag `owner`: the kernel removes it with the process, however that
   * ends (Linux 5.12). Answers what ends it; it ends with the environment too, and does not keep the process alive. Throws ERR_NETLINK when the kernel
   * refuses.
   */
  nftTrace(transaction: NftTransaction, onTrace: (trace: NftTrace) => void): () => void;
  /** A rule as listings have it; null when there is none of that handle. */
  nftRule(family: NftReadFamily, table: string, chain: string, handle: number): Promise<string | null>;
}
