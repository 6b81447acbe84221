import type { Clock } from '../base/clock.js';
import type { IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, SyncReport } from '../dataplane/contract.js';
import type { CycleObservers } from '../observe/cycle-observer.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { nodePortRefusal } from '../plan/trace.js';
import type { FrontendKey, TableChange } from '../plan/types.js';
import type { TakeoverPass } from './takeover.js';

/** Changes within this time have one pass over attempts: a client repeats its first packet after a second. */
const GATHER_MS = 100;
/** Passes over attempts alone take no more of the time than this: listing a large table takes tens of milliseconds of the kernel's. */
const SHARE = 0.05;
/** Where rules of another mode stay for long, which is an error that the log tells, no more frontends that went meanwhile are remembered: the last ones. */
export const MOST_GONE_EARLY = 10_000;

export interface StaleFlowsParts {
  readonly table: ForwardingTable;
  /** Null: the platform has no conntrack, and nothing is owed. */
  readonly conntrack: Pick<ConntrackReconciler, 'reconcile'> | null;
  readonly localAddresses: () => readonly IPAddress[];
  readonly observers: CycleObservers;
  readonly log: Log;
  readonly clock: Clock;
  /** The time has come for a further {@link StaleFlows.reconcile}. */
  readonly onDue: () => void;
}

/** Flows of one family that may contradict its rules: owed from the change on until a pass over them has succeeded, whichever mode is in force then. */
export class StaleFlows {
  private owed = new Set<FrontendKey>();
  private allOwed = false;
  /** Frontends that went while rules of another mode may still have been there, which let their flows come back; null: there are none. */
  private goneEarly: Set<FrontendKey> | null = new Set();
  private lastFailure: string | null = null;
  /** Frontends whose unanswered attempts to connect may be stale. */
  private readonly attempts = new Set<FrontendKey>();
  /** When these have waited long enough. */
  private attemptsDueAt = -Infinity;
  /** When the last pass has had its share of the time. */
  private restsUntil = -Infinity;
  private cancelDue: (() => void) | null = null;

  constructor(private readonly parts: StaleFlowsParts) {}

  /** Whether the last pass failed: what it was about is owed to the next. */
  get refused(): boolean {
    return this.lastFailure !== null;
  }

  owe(flows: SyncReport['flows']): void {
    if (flows === 'all') this.allOwed = true;
    else for (const key of flows) this.owed.add(key);
  }

  /** What a sync takes to the kernel. Frontends that are gone no dataplane may know by the time that the rules are in the kernel: not one of another mode. */
  changed({ frontends, attempts }: Pick<TableChange, 'frontends' | 'attempts'>): void {
    if (attempts.size > 0 && this.attempts.size === 0) this.attemptsDueAt = this.parts.clock.now() + GATHER_MS;
    for (const key of attempts) this.attempts.add(key);
    for (const key of frontends) {
      if (this.parts.table.frontend(key) !== undefined) continue;
      if (!attempts.has(key)) this.owed.add(key);
      this.wentEarly(key);
    }
  }

  private wentEarly(key: FrontendKey): void {
    const { goneEarly } = this;
    if (goneEarly === null) return;
    goneEarly.delete(key);
    goneEarly.add(key);
    const [oldest] = goneEarly;
    if (oldest !== undefined && goneEarly.size > MOST_GONE_EARLY) goneEarly.delete(oldest);
  }

  /** Another mode takes this one's place, whose rules go on forwarding for a while. */
  replaced(former: FamilyDataplane): void {
    this.owe(former.goneFlows());
    this.goneEarly ??= new Set();
    for (const key of [...this.owed, ...this.attempts]) this.wentEarly(key);
  }

  /** A pass over what other modes left has ended: where rules went flows may have come back since they were removed, and by those left they still may. */
  leftoversRemoved({ removed, finished, goneFlows }: TakeoverPass): void {
    if (removed) {
      this.owe('all');
      this.owe(new Set(goneFlows.get(this.parts.table.family)));
      this.owe(this.goneEarly ?? new Set());
    }
    if (finished) this.goneEarly = null;
  }

  /**
   * Removes what is owed. Conntrack's refusal does not reject: the rules are in the kernel and new flows are right, and a kernel may lack ctnetlink
   * (behaviour RT-08).
   *
   * @param held frontends whose new rules the kernel does not have: attempts would come back through the old ones, so they wait.
   */
  async reconcile(dataplane: FamilyDataplane, held: ReadonlySet<FrontendKey> = new Set()): Promise<void> {
    const { conntrack } = this.parts;
    this.cancelDue?.();
    this.cancelDue = null;
    if (conntrack === null) {
      this.owed.clear();
      this.attempts.clear();
      return;
    }
    const gone = new Set(dataplane.goneFlows());
    this.owe(gone);
    const attempts = new Set([...this.attempts].filter((key) => !held.has(key)));
    if (!this.allOwed && this.owed.size === 0 && !this.isDue(attempts)) return;
    // What comes to be owed during the pass is left for the next.
    const { owed, allOwed } = this;
    this.owed = new Set();
    this.allOwed = false;
    for (const key of attempts) this.attempts.delete(key);
    if (await this.pass(conntrack, allOwed, new Set([...owed, ...attempts]))) {
      await dataplane.clearGoneFlows(gone);
      return;
    }
    this.owe(owed);
    if (allOwed) this.owe('all');
    for (const key of attempts) this.attempts.add(key);
  }

  /** Whether a pass over these alone is due; if it is not yet, somebody is called when it is. */
  private isDue(attempts: ReadonlySet<FrontendKey>): boolean {
    const { clock, onDue } = this.parts;
    const dueAt = Math.max(this.attemptsDueAt, this.restsUntil);
    if (attempts.size === 0) return false;
    if (clock.now() >= dueAt) return true;
    this.cancelDue = clock.callAt(dueAt, onDue);
    return false;
  }

  /** Whether it succeeded. */
  private async pass(
    conntrack: NonNullable<StaleFlowsParts['conntrack']>,
    full: boolean,
    changed: ReadonlySet<FrontendKey>,
  ): Promise<boolean> {
    const { table, observers, clock } = this.parts;
    const own = this.parts.localAddresses();
    const startedAt = clock.now();
    const report = await conntrack.reconcile({
      table,
      isNodePortAddress: (address) => nodePortRefusal(table.node, address, own) === null,
      full,
      changed,
    });
    const endedAt = clock.now();
    this.restsUntil = startedAt + (endedAt - startedAt) / SHARE;
    const { flows: listed, deleted } = report;
    observers.flowsChecked({ family: table.family, listed, deleted, seconds: (endedAt - startedAt) / 1000 });
    return !this.reportErrors(report.errors);
  }

  /** Speaks when it breaks and when the reason changes, not at every retry. */
  private reportErrors(errors: readonly Error[]): boolean {
    const { table, log } = this.parts;
    const failure = errors.length === 0 ? null : errors.map(({ message }) => message).join('; ');
    if (failure !== null && failure !== this.lastFailure) {
      log.error(new AggregateError(errors, failure), 'cannot remove stale flows, will be retried', {
        family: table.family,
      });
    }
    this.lastFailure = failure;
    return failure !== null;
  }
}
