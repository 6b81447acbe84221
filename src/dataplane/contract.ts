import type { Family, IPAddress } from '../base/ip.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../plan/types.js';

/** The kernel's work in one sync of one family. */
export interface SyncReport {
  readonly family: Family;
  /** Whether everything was compared with the kernel (first sync, after a failure, periodic check). */
  readonly full: boolean;
  /** Transactions that changed forwarding; 0 when nothing had to change. */
  readonly transactions: number;
  readonly elementOperations: number;
  /** Tables, chains, rules and sets added, flushed or deleted. */
  readonly ruleOperations: number;
  readonly bytes: number;
  /** Acknowledged values that a periodic comparison found lost or altered, one line each. */
  readonly repairs: readonly string[];
  /** Objects that could not be tidied up; the next full sync tries again. */
  readonly problems: readonly string[];
  /** Chains of several frontends whose new rules the kernel refuses: they stay unchanged, and the next full sync tries again. */
  readonly refusedChains?: readonly string[];
  /** For modes whose rules are counted by table: the rules that this sync wrote, and the existing ones. */
  readonly rules: { readonly written: TableRules; readonly held: TableRules } | null;
  /** Every frontend that is quarantined now, in no order; others do not wait for it. */
  readonly quarantined: readonly QuarantinedFrontend[];
  /** UDP and SCTP frontends whose flows may be stale now; `all` after a full sync. */
  readonly flows: ReadonlySet<FrontendKey> | 'all';
  /** Looked for when a frontend is quarantined. Absent: none was found. */
  readonly nodeFaults?: readonly NodeFault[];
  /** Limitations compared with other modes, or newer kernels. */
  readonly limitations?: readonly Limitation[];
  /** The time on the dataplane's clock when a further sync is needed although nothing changed; absent: there is none. */
  readonly dueAt?: number;
  /** Work that goes on after the sync, beside further ones, and may take long. If it rejects, a full sync has to make up for it. */
  readonly background?: Promise<void>;
}

/** A limitation of a mode or a kernel. */
export interface Limitation {
  /**
   * A kernel's is logged as a warning: it takes another kernel, and the mode is what was asked for. So is one by other programs' `rules`, each of which is
   * a table.
   */
  readonly of: 'mode' | 'kernel' | 'rules';
  /** For people: what happens, and why. */
  readonly text: string;
}

/**
 * A frontend that the kernel refused: the kernel keeps its previous state. It is tried again at the first sync after
 * `retryAt`, and when its plan changes. Times are milliseconds on the dataplane's clock, which only goes forward.
 */
export interface QuarantinedFrontend {
  readonly frontend: FrontendKey;
  /** The kernel's last answer. */
  readonly reason: string;
  readonly since: number;
  readonly retryAt: number;
  /** The kernel holds nothing of it, even if it did before. Absent: it holds what it held before. */
  readonly absent?: boolean;
  /** It is refused because of a {@link NodeFault}. Absent: for a reason of its own. */
  readonly ofNode?: boolean;
}

/** Something that this node lacks, so that its kernel or programs refuse what needs it, whatever Service it is for. */
export interface NodeFault {
  readonly text: string;
  readonly remedy: string;
  /** Whether every Service may need it. Otherwise only Services that ask for a feature do. */
  readonly isVital: boolean;
}

/** Where session affinity sends a client. */
export interface AffinityQuestion {
  /** Null: no client in particular. */
  readonly source: IPAddress | null;
  readonly seconds: number;
  /** The key of {@link FrontendPlan.clientKeys} that applies to the client; null: it is remembered by its destination. */
  readonly clientKey: FrontendKey | null;
  /** `namespace/name:port`. */
  readonly servicePort: string;
  /** `address:port` of those that the client may be sent to, in the plan's order. */
  readonly endpoints: readonly string[];
}

/** The part of the kernel's content that decides over some packets. */
export interface Inspection {
  /** As {@link FamilyDataplane.dump}, but of the scope alone. */
  readonly lines: readonly string[];
  /** `address:port` to which session affinity sends the source again; null when nothing is remembered. */
  readonly remembered: string | null;
  /** Why it is not known whether something is remembered. Absent: it is known, or was not asked for. */
  readonly rememberedUnknown?: string;
}

/** Packets to a frontend that rules ended: the first ones of connections and datagrams, each time that they are sent. */
export interface RefusedPackets {
  readonly frontend: FrontendKey;
  /** Whether the sender gets an answer. */
  readonly verdict: 'refused' | 'dropped';
  /** There is no endpoint to use, none on this node where the policy is Local, or the source is in none of the ranges. */
  readonly reason: 'no-endpoints' | 'no-local-endpoints' | 'source-range';
  /** Since the kernel began to count, which it may do anew at any time. */
  readonly packets: number;
}

/** TCP connection attempts through Services to an endpoint since the kernel began to count. */
export interface EndpointAttempts {
  readonly family: Family;
  /** `address:port`. */
  readonly endpoint: string;
  /** Each flow once; one that is balanced anew is another. */
  readonly attempts: number;
  readonly answers: number;
  /** Reset by the endpoint before they were established. */
  readonly refusals: number;
}

/** Has the kernel count connection attempts. It decides nothing. */
export interface AttemptCounter {
  /** Counts from zero. */
  open(): Promise<void>;
  close(): Promise<void>;
  /** Endpoints without attempts in the last hour are left out; null: it does not count, as an external change removed its rules. */
  read(): Promise<readonly EndpointAttempts[] | null>;
}

/** Connections whose client session affinity did not remember, as there was no room for it. */
export interface UnrememberedClients {
  /** The clients' destination: a frontend, or an address of the node with a node port. */
  readonly asked: FrontendKey;
  /** Since the kernel began to count, which it may do anew at any time. */
  readonly connections: number;
}

/** Resets connections to endpoints that are gone. Records are those of a listing of flows. */
export interface ConnectionResets {
  /** For half a minute, resets packets of these connections for which conntrack has no flow. Call it before deleting the flows. */
  expect(records: Uint8Array): Promise<void>;
  /** Those of the records whose clients have sent nothing since. */
  unanswered(records: Uint8Array): Promise<Uint8Array>;
}

/** An external change to what a mode has in the kernel. */
export interface ForeignChange {
  /** Families of which something was changed. */
  readonly families: readonly Family[];
  /** Something may have happened unseen, in any family. */
  readonly missed: boolean;
  /** Who did it last, as `nft[1234]`; null when unknown. */
  readonly process: string | null;
}

/** Notifies of external changes from now on, as they happen; answers what ends it. */
export type WatchForeignChanges = (onChange: (change: ForeignChange) => void) => () => void;

/** Calls back once, when something may have changed; answers what ends it. */
export type AwaitChange = (onChange: () => void) => () => void;

/** Rules by table. */
type TableRules = Readonly<Record<string, number>>;

/**
 * Counts of the mode or its kernel since the counters were made, by the names in {@link ModeMetrics.counted}: for a
 * metric with labels a count for each set of them.
 */
export type ModeCounts = Readonly<Record<string, number | readonly LabelledCount[]>>;

export interface LabelledCount {
  readonly labels: Readonly<Record<string, string>>;
  readonly count: number;
}

/**
 * One family of one mode. Not re-entrant: one call at a time. Everything that the kernel did not acknowledge stays pending
 * for the next call, so after a failed call the caller need not remember its changes.
 */
export interface FamilyDataplane {
  readonly family: Family;
  /** Whether external changes to this mode's rules cause no notification: then {@link probe} has to be called every second, or as {@link awaitChange} says. */
  readonly polls: boolean;
  /** Until then a further {@link probe} would find nothing that the ones so far did not; null: that is not known. */
  readonly awaitChange: AwaitChange | null;
  /** Null: the mode cannot. */
  readonly resets: ConnectionResets | null;
  /** Whether this kernel cannot end unanswered attempts after the time that the plan has for their frontend (plan/retry.ts). */
  readonly lacksTimeouts: boolean;
  /** Begins what the first call of `apply` needs and no plan has to be known for; `apply` waits for it. */
  prepare(): void;
  apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport>;
  /**
   * Compares the kernel with what it acknowledged, beside syncs and without delaying them. Resolves to whether a full `apply`
   * would find something to do.
   */
  audit(): Promise<boolean>;
  /**
   * As {@link audit}, of as much as a small part of the time allows. In a mode whose kernel notifies of changes: whether it takes
   * a transaction, which it does not report.
   */
  probe(): Promise<boolean>;
  /** UDP and SCTP frontends that are gone and whose conntrack flows are not confirmed removed; survives a restart. */
  goneFlows(): ReadonlySet<FrontendKey>;
  /** Forgets gone frontends after their flows were removed. */
  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void>;
  /** The process ends: if sending takes long, an `apply` that is under way rejects with {@link EndedError} before it sends more. */
  end(): void;
  /**
   * The kernel's table in the plan's terms, see plan/text.ts; empty when there is none. Rules do not contain the node's
   * settings literally. If they are the rules that `plan.node` calls for, its lines are printed, otherwise the rules
   * themselves. The same goes for everything else that a mode's kernel cannot express.
   */
  dump(plan: FamilyTable): Promise<readonly string[]>;
  /**
   * The part of {@link dump} that decides over packets of a scope. Disturbs no sync.
   *
   * @param affinity null: the frontend has none.
   */
  inspect(plan: FamilyTable, scope: PacketScope, affinity: AffinityQuestion | null): Promise<Inspection>;
  /**
   * Packets that were refused and dropped, if the configuration counts traffic through Services. Rows of the same frontend,
   * verdict and reason belong together. Frontends without any may be missing. Disturbs no sync.
   */
  refused(): Promise<readonly RefusedPackets[]>;
  /** Clients for whom session affinity had no room, in the last hour at least; null: the mode does not count them. Disturbs no sync. */
  unremembered(): Promise<readonly UnrememberedClients[] | null>;
}

/** The process ends before everything is in the kernel. The next one goes on from there. */
export class EndedError extends Error {
  constructor() {
    super('the process ends');
  }
}

/** The error itself, with the frontend that could not be programmed for reports of it. */
export function blameFrontend<E>(error: E, frontend: FrontendKey): E {
  return error instanceof Error ? Object.assign(error, { frontend }) : error;
}

/** The error itself, with the faults of the node that explain it. */
export function blameNode<E>(error: E, nodeFaults: readonly NodeFault[]): E {
  return error instanceof Error ? Object.assign(error, { nodeFaults }) : error;
}

/** The faults of the node that an error of a dataplane names. */
export function blamedNodeFaults(error: unknown): readonly NodeFault[] {
  return error instanceof Error && 'nodeFaults' in error ? (error.nodeFaults as readonly NodeFault[]) : [];
}

/** The frontend that an error of a dataplane names; null when it names none. */
export function blamedFrontend(error: unknown): FrontendKey | null {
  return error instanceof Error && 'frontend' in error && typeof error.frontend === 'string' ? error.frontend : null;
}
