import type { Family, IPAddress } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';

/** The first packet of a connection, or the answer to it, where the kernel calls chains. Null: not known. */
export interface HookedPacket {
  readonly family: Family;
  readonly protocol: Protocol | null;
  readonly source: IPAddress | null;
  readonly destination: IPAddress | null;
  readonly sourcePort: number | null;
  readonly port: number | null;
  readonly inputInterface: string | null;
  readonly outputInterface: string | null;
  /** Whether its connection is known. */
  readonly isTracked: boolean;
  /** Whether the connection's destination has been translated. */
  readonly isTranslated: boolean;
  readonly isAnswer: boolean;
  /** Whether its destination is an address of this node. */
  readonly isToNode: boolean | null;
}

/** Whether a rule matches a packet; null: unknown. */
export type Match = boolean | null;

export type Verdict =
  | { readonly type: 'accept' | 'drop' | 'reject' | 'return' | 'continue' }
  | { readonly type: 'jump' | 'goto'; readonly chain: string }
  /** Its destination is translated; it is not tracked, and so never translated; it is given to a local program (tproxy). */
  | { readonly type: 'translate' | 'untrack' | 'divert' }
  /** The packet's fate is unknown. */
  | { readonly type: 'unknown' };

/** A rule's verdict on a matching packet; `match` null: perhaps. */
export interface Judged {
  readonly match: Match;
  readonly verdict: Verdict;
}

export const NO_MATCH: Judged = { match: false, verdict: { type: 'continue' } };

/** A chain of others, with its rules in the form in which they were read. */
export interface ForeignChain {
  readonly name: string;
  readonly rules: readonly string[];
}

/** Chains that lead to each other, and how a rule of theirs is read. */
export interface ForeignTable {
  /** As people call it: `table inet filter`, `iptables-legacy table filter`. */
  readonly name: string;
  readonly chains: ReadonlyMap<string, ForeignChain>;
  readonly judge: (rule: string, packet: HookedPacket) => Judged;
}

/** In the order in which a packet meets them. */
export const HOOKS = ['ingress', 'prerouting', 'input', 'forward', 'output', 'postrouting', 'egress'] as const;
export type Hook = (typeof HOOKS)[number];

/** A chain that the kernel calls. */
export interface ForeignBase {
  readonly table: ForeignTable;
  readonly chain: string;
  readonly hook: Hook;
  readonly priority: number;
  /** Whether it translates addresses, of the first packet of a connection alone. */
  readonly isNat: boolean;
  /** Whether the kernel calls it before our chain of the same hook and priority; null: unknown. */
  readonly isFirst: boolean | null;
  /** The interfaces of `ingress` and `egress`; with a `*` at the end all whose names begin so. */
  readonly devices: readonly string[];
  readonly policy: 'accept' | 'drop';
  /** The command that lists it. */
  readonly listing: string;
}

/** A packet that does not come to its endpoint because of a base chain of others. */
export interface ForeignLoss {
  readonly base: ForeignBase;
  readonly outcome: 'drop' | 'reject' | 'translate' | 'untrack' | 'divert';
  /** False: it may, but not all of the rules before it, or of it, can be evaluated. */
  readonly certain: boolean;
  /** `rule 3 of chain f`, or `its policy`. */
  readonly where: string;
  /** The rule in the form in which it was read; null: the policy. */
  readonly rule: string | null;
}
