/**
 * The programs of iptables. The addon renders its input as one `iptables-restore --noflush` stream, and feeds it to the program of the wanted flavour from a
 * worker thread. It reads what the kernel holds through the matching `-save`.
 */

/** Which of the two kernel interfaces the iptables programs talk to; both may exist on one host, with separate rules. */
export type IptablesFlavor = 'legacy' | 'nft';

export type IptablesFamily = 'IPv4' | 'IPv6';

export type IptablesTable = 'filter' | 'nat' | 'mangle' | 'raw' | 'security';

/**
 * A rule's specification without its chain, in the very spelling of iptables-save, so that what was written and what is listed compare as text:
 * `-d 10.96.0.1/32 -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y`.
 */
export interface IptablesTextRule {
  readonly type: 'text';
  readonly text: string;
}

/**
 * Rules that spread connections evenly over endpoints, rendered by the addon: one DNAT rule each, the i-th of n with probability 1/(n−i) by the
 * `statistic` match and the last without. `affinity`: before them, one rule per endpoint that admits clients remembered in the endpoint's `recent` list
 * within `seconds` and refreshes them; the pick then remembers the client.
 */
export interface IptablesEndpointRules {
  readonly type: 'endpoints';
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  /** Packed as {@link EndpointList}. */
  readonly endpoints: Uint8Array;
  /**
   * `lists`: the name of each endpoint's `recent` list, in order, at most 199 bytes. The kernel knows a list by its name alone, so one name must not
   * serve both families.
   */
  readonly affinity: { readonly seconds: number; readonly lists: readonly string[] } | null;
}

/** Creates the chain or empties it, and fills it. Chains may refer to each other in any order. */
export interface IptablesChainOperation {
  readonly type: 'chain';
  readonly table: IptablesTable;
  readonly chain: string;
  readonly rules: readonly (IptablesTextRule | IptablesEndpointRules)[];
  /** What the chain is for, such as `default/kubernetes:https`, for errors; null for the fixed chains. */
  readonly owner: string | null;
}

/** Empties and removes a chain that nothing else refers to any more once its table's operations are applied. */
export interface IptablesDeleteChainOperation {
  readonly type: 'delete-chain';
  readonly table: IptablesTable;
  readonly chain: string;
}

/** Puts one rule at the head or the end of a chain that is not ours, or removes one that is there; in the order of the operations. */
export interface IptablesRuleOperation {
  readonly type: 'rule';
  readonly verb: 'insert' | 'append' | 'delete';
  readonly table: IptablesTable;
  readonly chain: string;
  readonly text: string;
}

export type IptablesOperation = IptablesChainOperation | IptablesDeleteChainOperation | IptablesRuleOperation;

/**
 * Applied table by table, in the order in which the operations first name them: all of a table happens, or nothing of it. Within a table chains are
 * written first, then come single rules, then chains are removed; one that is not there counts as removed.
 */
export interface IptablesTransaction {
  readonly family: IptablesFamily;
  readonly flavor: IptablesFlavor;
  readonly operations: readonly IptablesOperation[];
}

export interface IptablesAck {
  readonly bytes: number;
  /** `-A`, `-I` and `-D` lines. */
  readonly rules: number;
}

export interface IptablesChainListing {
  readonly table: IptablesTable;
  readonly name: string;
  /** The policy of a built-in chain; null for others. */
  readonly policy: string | null;
  readonly ruleCount: number;
  /**
   * 16 hexadecimal digits over the rules in order, counters left out; equal for equal rules, whether listed or only rendered ({@link IptablesTransaction}).
   * Null: the programs cannot list the chain.
   */
  readonly digest: string | null;
  /**
   * The rules' specifications, where they were asked for. Without a digest they are as nf_tables has them, or as far as the programs of the legacy flavour
   * list them: rules with conditions that jumps of ours do not have are `(not of iptables)`, with the verdict if it is known.
   */
  readonly rules: readonly string[] | null;
}

/** Rules of a chain that packets matched since the rule was written, each chain's in order. */
export interface IptablesChainCounts {
  readonly chain: string;
  /** The digest of the whole chain, as in {@link IptablesChainListing}. */
  readonly digest: string;
  /** As {@link IptablesChainListing.rules}. */
  readonly rules: readonly string[];
  /** How many packets, for each of these rules; at least 1. */
  readonly packets: Float64Array;
}

/** Rejects with ERR_IPTABLES. */
export interface IptablesAddon {
  /**
   * Flavours whose programs are there and work in this network namespace and family, with their versions: `[{ flavor: 'nft', version: '1.8.9' }]`.
   * Where the kernel's legacy modules are not loaded and the nft flavour works, legacy is left out rather than loaded to find out.
   */
  iptablesFlavors(
    family: IptablesFamily,
  ): Promise<readonly { readonly flavor: IptablesFlavor; readonly version: string }[]>;
  /** The stream as it would be fed, without the lock and without privileges. */
  iptablesEncode(transaction: IptablesTransaction): string;
  /** Per chain operation, in order, the digest that a listing of the finished chain would have. Off the JS thread. */
  iptablesDigests(transaction: IptablesTransaction): Promise<readonly string[]>;
  /**
   * Feeds the stream and waits; the legacy programs' lock is waited for 30 seconds. Rejects with ERR_IPTABLES; where the program names a line, `object`
   * is its table, text and owner, and `index` the operation (null for the COMMIT, to which the programs ascribe what the kernel refuses).
   */
  iptablesRestore(transaction: IptablesTransaction): Promise<IptablesAck>;
  /**
   * Lists chains of the tables; an unused legacy table has none, and stays unused. `rules` gives the text of built-in chains and of chains whose name begins
   * with one of `textOf`. Where other programs' rules keep `-save` from listing a table, its chains are listed one by one.
   */
  iptablesList(
    family: IptablesFamily,
    flavor: IptablesFlavor,
    tables: readonly IptablesTable[],
    textOf: readonly string[],
  ): Promise<readonly IptablesChainListing[]>;
  /**
   * Processor time that listings of this process have taken so far, in milliseconds: the programs, and reading what they print. Waiting costs none, for a
   * core, a lock or our own streams.
   */
  iptablesListingMs(): number;
  /** The chains of one table whose name begins with `prefix` and that have such rules; built-in ones are left out. */
  iptablesCounts(
    family: IptablesFamily,
    flavor: IptablesFlavor,
    table: IptablesTable,
    prefix: string,
  ): Promise<readonly IptablesChainCounts[]>;
  /**
   * What the kernel reports of the size of each legacy table in use: numbers of rules and bytes, and where its built-in chains begin and end, as text to be
   * compared. No table comes into use by it. Rejects with ERR_IPTABLES.
   */
  iptablesSizes(family: IptablesFamily): Promise<string>;
  /**
   * Calls back once, when {@link iptablesSizes} answers another text than this, or cannot. A thread looks once in every `periodMs` milliseconds; JavaScript is
   * not woken for it. Answers what ends it; it ends with the environment too, and does not keep the process alive.
   */
  iptablesSizesWatch(family: IptablesFamily, sizes: string, periodMs: number, onChange: () => void): () => void;
  /**
   * Whether the kernel has a match for rules of this family, or can load it; null where it does not report it. Nothing else changes. Rejects with
   * ERR_NETLINK.
   */
  iptablesMatch(family: IptablesFamily, name: string): Promise<boolean | null>;
  /**
   * The first of the `recent` lists that saw the source within so many seconds, as the rules of {@link IptablesEndpointRules} would find it: its index.
   * Null: none did. A list that does not exist saw no source. One name serves both families.
   *
   * @param source 4 or 16 bytes.
   */
  iptablesRemembering(lists: readonly string[], source: Uint8Array, seconds: number): Promise<number | null>;
}
