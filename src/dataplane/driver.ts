import type { Family } from '../base/ip.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../plan/types.js';
import type {
  AffinityQuestion,
  AwaitChange,
  QuarantinedFrontend,
  ConnectionResets,
  Inspection,
  Limitation,
  NodeFault,
  RefusedPackets,
  SyncReport,
  UnrememberedClients,
} from './contract.js';

/** A moment in which no sync changed the kernel. */
export interface Quiet {
  /** Whether it was known what the kernel holds. */
  readonly isKnown: boolean;
  /** Whether no sync has begun since. */
  readonly lasts: () => boolean;
}

/** Resolves when no sync changes the kernel. */
export type WaitForQuiet = () => Promise<Quiet>;

/** The scope of one sync. */
export interface SyncScope {
  readonly table: FamilyTable;
  readonly change: TableChange;
  /** Whether everything was listed before. */
  readonly full: boolean;
  /** Whether this process has delivered nothing yet: what is listed another one left. */
  readonly isFirst: boolean;
  /** Whether what the plan does not name stays, as sources that are not synced may still name it. */
  readonly keeps: boolean;
}

/** The kernel's work. */
export type Sent = Pick<SyncReport, 'transactions' | 'elementOperations' | 'ruleOperations' | 'bytes'>;

export const NOTHING_SENT: Sent = { transactions: 0, elementOperations: 0, ruleOperations: 0, bytes: 0 };

export interface Delivered {
  readonly sent: Sent;
  readonly refusedChains?: readonly string[];
  /** Quarantined frontends that the kernel has accepted now. */
  readonly released?: readonly FrontendKey[];
  readonly background?: Promise<void>;
}

/** The report of tidying up. */
export type Tidied = Pick<SyncReport, 'problems'> & Partial<Pick<SyncReport, 'repairs' | 'rules'>>;

/** See {@link Driver.nodeFaults}. */
export interface FoundFaults {
  readonly faults: readonly NodeFault[];
  /** Whether a frontend is quarantined because of them. */
  readonly explains: (reason: string) => boolean;
}

/** Notes of gone datagram frontends that the kernel itself keeps, so that they survive a restart. */
export interface FlowNotes {
  keys(): Iterable<FrontendKey>;
  /** @param compared whether the last sync listed everything. */
  remove(keys: readonly FrontendKey[], compared: boolean): Promise<void>;
}

/**
 * A mode's part of {@link Reconciler} in one IP family: how the kernel is listed and written, and nothing about when. A
 * driver keeps in ledgers (ledger.ts) what is desired, what the kernel acknowledged and what it rejected. So it needs no
 * memory of a failed call.
 */
export interface Driver<Listing> {
  readonly family: Family;
  /**
   * Polling, where no notification reports external changes. Every second the loop looks at what {@link probe} reads, and at
   * everything as often as that may be. Null: the kernel notifies.
   */
  readonly polls: 'little' | 'everything' | null;
  /** See {@link FamilyDataplane.awaitChange}. Absent: never known. */
  readonly awaitChange?: AwaitChange | null;
  /** Whether a write replaces all that the kernel holds. Then a lost answer needs no listing, and the write is repeated. */
  readonly replaces: boolean;
  /** Null: the reconciler remembers gone frontends. */
  readonly notes: FlowNotes | null;
  /** Null: the mode cannot reset connections. */
  readonly resets: ConnectionResets | null;
  /** See {@link FamilyDataplane.lacksTimeouts}. Absent: the mode's plans have no such times. */
  readonly lacksTimeouts?: boolean;
  /** Limitations compared with other modes, or newer kernels; absent: none. */
  readonly limitations?: readonly Limitation[];
  /** Processor time of all comparisons so far, in milliseconds, where they wait as long as they work; absent: the time that passes counts. */
  readonly comparingMs?: number;
  /** When there is something to do although nothing changed; null: never. */
  readonly dueAt: number | null;
  /** Begins what the first listing needs and no plan has to be known for. */
  prepare(): void;
  /** The plan changed: the ledgers get what is desired now. Asks the kernel nothing. */
  desire(table: FamilyTable, change: TableChange): void;
  /** Datagram frontends that the kernel holds and that are about to go, whose flows the reconciler has to remember. */
  going(): Iterable<FrontendKey>;
  /** Whether it is certain that a listing would show nothing new. */
  isUntouched(): Promise<boolean>;
  list(scope: SyncScope): Promise<Listing>;
  /** Acknowledged values that a listing lacks, a line each. */
  losses(listing: Listing): readonly string[];
  /**
   * The listing is what the kernel holds. Objects that the plan does not name go, or stay unchanged until the plan names them
   * or {@link release}.
   *
   * @returns whether anything stays.
   */
  readBack(listing: Listing, scope: SyncScope): boolean;
  /** Lets go of what stayed. */
  release(table: FamilyTable): void;
  /**
   * Sends what is pending in the mode's order, except what is quarantined, and quarantines what the kernel rejects by itself.
   *
   * @returns null when the kernel's content differs from what it acknowledged: everything is then listed and sent again.
   */
  deliver(scope: SyncScope): Promise<Delivered | null>;
  /** Removes what nothing needs any more; forwarding does not depend on it. */
  tidy(scope: SyncScope, delivered: Delivered): Promise<Tidied>;
  /** Compares the kernel with what it acknowledged, beside syncs: whether something differs. */
  compare(table: FamilyTable, quiet: WaitForQuiet): Promise<boolean>;
  /** See {@link FamilyDataplane.probe}. */
  probe(quiet: WaitForQuiet): Promise<boolean>;
  /** Every frontend that is quarantined. */
  quarantined(): readonly QuarantinedFrontend[];
  /**
   * Parts of the mode that the node lacks, found by trying each; nothing stays changed. Called during syncs in which the
   * kernel refused something. Frontends that are quarantined because of a fault have its text as their reason, or one that
   * `explains` takes. Absent: the mode cannot try its parts.
   */
  nodeFaults?(table: FamilyTable): Promise<FoundFaults>;
  /** The kernel's state in the plan's terms. @param scope null: all of it. */
  print(plan: FamilyTable, scope: PacketScope | null): Promise<readonly string[]>;
  /** Where session affinity sends the source of a packet again. */
  remembered(scope: PacketScope, affinity: AffinityQuestion, plan: FamilyTable): Promise<Omit<Inspection, 'lines'>>;
  /** Packets that were refused and dropped. */
  refused(): Promise<readonly RefusedPackets[]>;
  /** Clients for whom session affinity had no room; null: they are not counted. */
  unremembered(): Promise<readonly UnrememberedClients[] | null>;
  /** The process ends: nothing more is sent. */
  end(): void;
}
