import type { Family, IPAddress } from '../base/ip.js';
import type { SyncReport } from '../dataplane/contract.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { Acknowledged } from '../record/progress.js';
import type { ObjectKey } from '../state/rows.js';
import type { RowEdit } from '../state/store.js';

/** Rows that were committed to the state. */
export interface Commit {
  readonly edits: readonly RowEdit[];
  /** When that was heard of, on performance.now's clock; null: now. */
  readonly receivedAt: number | null;
  /** Whether it can go to the kernel: before all sources are complete it waits for them. */
  readonly ready: boolean;
  /** Those that are synced. */
  readonly families: readonly Family[];
}

/** The kernel acknowledged a sync, and with it all that earlier ones left pending. */
export interface AcknowledgedSync {
  readonly report: SyncReport;
  /** What changed, and since when that waited. */
  readonly changes: Acknowledged;
  readonly table: Pick<ForwardingTable, 'frontend' | 'portsWithoutLocal' | 'conflictCount'>;
  /** Milliseconds from the start of the sync, and from the first change in it. */
  readonly syncMs: number;
  readonly sinceChangeMs: number;
  /** Whether it is the first that compared everything in the mode in force. */
  readonly isFirst: boolean;
  /** What it could not put right, and the one before did not report. */
  readonly newProblems: readonly string[];
}

export interface EndedSync {
  readonly family: Family;
  /** Whether it compared everything with the kernel. */
  readonly full: boolean;
  readonly seconds: number;
  readonly result: SyncResult;
  /** Whether it says something of the mode in force: false when another came meanwhile, or the process ends. */
  readonly counts: boolean;
}

export type SyncResult =
  | { readonly type: 'success' }
  /** `errno`: the kernel's, or the addon's code; null: it was another error. */
  | { readonly type: 'failure'; readonly error: unknown; readonly errno: string | null };

/** One search for flows that contradict the rules. */
export interface FlowSearch {
  readonly family: Family;
  readonly listed: number;
  readonly deleted: number;
  readonly seconds: number;
}

/** Connections that were reset because their endpoints are gone. */
export interface ResetConnections {
  readonly family: Family;
  readonly connections: number;
  readonly endpoints: readonly IPAddress[];
}

/** An external change of a family's rules that has been looked for and repaired. */
export interface RepairedChange {
  readonly family: Family;
  /** Who made it, as `nft[1234]`; null: unknown. */
  readonly process: string | null;
  /** 0: it had changed nothing of ours. */
  readonly differences: number;
  /** The first of them, such as `chain dispatch was lost`; null: there is none. */
  readonly what: string | null;
  /** From when it was seen until it was repaired; null: the periodic comparison found it. */
  readonly seconds: number | null;
}

/** What calls to the kernel are for. */
export type KernelWork = 'apply' | 'flows' | 'audit';

/** Notified of what the sync cycle does. It changes nothing of it, and holds it up no longer than a call takes. */
export interface CycleObserver {
  committed?(commit: Commit): void;
  /** Another configuration counts from now on. */
  reconfigured?(): void;
  /** A run of all families begins. @param full whether everything is compared. */
  runBegan?(full: boolean): void;
  /** The run brings a family everything that was committed so far. */
  took?(family: Family): void;
  /** Of what was taken, the plan leaves a family's changes of these Services to the next run. */
  deferred?(family: Family, services: ReadonlySet<ObjectKey>): void;
  /** The plan is made, or as much of it as can be. */
  planned?(): void;
  /** A family's sync begins. @param suspected external changes of its rules are known. */
  syncBegan?(family: Family, suspected: boolean): void;
  acknowledged?(sync: AcknowledgedSync): void;
  /** One search for stale flows is over. */
  flowsChecked?(search: FlowSearch): void;
  syncEnded?(sync: EndedSync): void;
  /** @param error what failed; null: nothing did. */
  runEnded?(error: unknown): void;
  connectionsReset?(reset: ResetConnections): void;
  /** A family's rules were seen changed. @param process which did it, as `nft[1234]`; null: unknown. */
  externalChange?(family: Family, process: string | null): void;
  /** What was changed has been compared and repaired. */
  repaired?(change: RepairedChange): void;
  audited?(family: Family, result: 'intact' | 'different' | 'failed'): void;
  /** Does work with the kernel, all of whose calls are for that. */
  during?<T>(kind: KernelWork, family: Family, work: () => Promise<T>): Promise<T>;
}

/** Notifications of observers, by name. */
type Notification = Exclude<keyof CycleObserver, 'during'>;

/** All observers as one. */
export class CycleObservers {
  private readonly observers: CycleObserver[];

  constructor(...observers: readonly CycleObserver[]) {
    this.observers = [...observers];
  }

  /** From now on it is notified too. */
  add(...observers: readonly CycleObserver[]): void {
    this.observers.push(...observers);
  }

  /** Notifies those that have a method of this name. */
  notify<Name extends Notification>(name: Name, ...about: Parameters<Required<CycleObserver>[Name]>): void {
    for (const each of this.observers) {
      const observe = each[name] as ((...about: unknown[]) => void) | undefined;
      observe?.apply(each, about);
    }
  }

  /** Has all observers do the work, each around those before it. */
  during<T>(kind: KernelWork, family: Family, work: () => Promise<T>): Promise<T> {
    let all = work;
    for (const each of this.observers) {
      if (each.during === undefined) continue;
      const inner = all;
      all = () => each.during?.(kind, family, inner) ?? inner();
    }
    return all();
  }
}
