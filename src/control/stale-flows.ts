import type { Clock } from '../base/clock.js';
import type { IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, SyncReport } from '../dataplane/contract.js';
import type { CycleObservers } from '../observe/cycle-observer.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { retryOf } from '../plan/retry.js';
import { nodePortRefusal } from '../plan/trace.js';
import type { FrontendKey, TableChange } from '../plan/types.js';
import type { TakeoverPass } from './takeover.js';

/** Changes within this time have one pass over attempts: a client repeats its first packet after a second. */
const GATHER_MS = 100;
/** Passes over attempts alone take no more of the time than this: listing a large table takes tens of milliseconds of the kernel's. */
const SHARE = 0.05;
/** A client repeats its first packet after so long (RFC 6298, 2.1). */
const REPEAT_SECONDS = 1;
/** A pass over attempts that failed is repeated after so long. */
const RETRY_MS = 1000;
/** Where rules of another mode stay for long, which is an error that the log tells, no more frontends that went meanwhile are remembered: the last ones. */
export const MOST_GONE_EARLY = 10_000;

export interface StaleFlowsParts {
  readonly table: ForwardingTable;
  /** Null: the platform has no conntrack, and nothing is pending. */
  readonly conntrack: Pick<ConntrackReconciler, 'reconcile'> | null;
  readonly localAddresses: () => readonly IPAddress[];
  readonly observers: CycleObservers;
  readonly log: Log;
  readonly clock: Clock;
  /** The time has come for a further {@link StaleFlows.reconcile}. */
  readonly onDue: () => void;
}

type Conntrack = NonNullable<StaleFlowsParts['conntrack']>;

/** Flows of one family that may contradict its rules: pending from the change on until a pass over them has succeeded, whichever mode is in force then. */
export class StaleFlows {
  private pending = new Set<FrontendKey>();
  private allPending = false;
  /** Frontends that went while rules of another mode may still have been there, which let their flows come back; null: there are none. */
  private goneEarly: Set<FrontendKey> | null = new Set();
  private lastFailure: string | null = null;
  /** Frontends whose unanswered attempts to connect may be stale. */
  private readonly attempts = new Set<FrontendKey>();
  /** Those that a pass under way is about. */
  private readonly inPass = new Set<FrontendKey>();
  /** When {@link attempts} have waited long enough. */
  private attemptsDueAt = -Infinity;
  /** When the last pass has had its share of the time. */
  private restsUntil = -Infinity;
  private cancelDue: (() => void) | null = null;

  constructor(private readonly parts: StaleFlowsParts) {}

  /** Whether the last pass failed: the next one retries it. */
  get refused(): boolean {
    return this.lastFailure !== null;
  }

  addPending(flows: SyncReport['flows']): void {
    if (flows === 'all') this.allPending = true;
    else for (const key of flows) this.pending.add(key);
  }

  /** What a sync takes to the kernel. Frontends that are gone no dataplane may know by the time that the rules are in the kernel: not one of another mode. */
  changed({ frontends, attempts }: Pick<TableChange, 'frontends' | 'attempts'>): void {
    if (attempts.size > 0 && this.attempts.size === 0) this.attemptsDueAt = this.parts.clock.now() + GATHER_MS;
    for (const key of attempts) this.attempts.add(key);
    for (const key of frontends) {
      if (this.parts.table.frontend(key) !== undefined) continue;
      if (!attempts.has(key)) this.pending.add(key);
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
    this.addPending(former.goneFlows());
    this.goneEarly ??= new Set();
    for (const key of [...this.pending, ...this.attempts, ...this.inPass]) this.wentEarly(key);
  }

  /** A pass over what other modes left has ended: where rules went flows may have come back since they were removed, and by those left they still may. */
  leftoversRemoved({ removed, finished, goneFlows }: TakeoverPass): void {
    if (removed) {
      this.addPending('all');
      this.addPending(new Set(goneFlows.get(this.parts.table.family)));
      this.addPending(this.goneEarly ?? new Set());
    }
    if (finished) this.goneEarly = null;
  }

  /**
   * Removes what is pending. Conntrack's refusal does not reject: the rules are in the kernel and new flows are right, and a kernel may lack ctnetlink
   * (behaviour RT-08).
   *
   * A pass over attempts alone is not waited for: it may take the kernel tens of milliseconds, for which the next change would wait. A client repeats
   * its first packet after a second.
   *
   * @param held frontends whose new rules the kernel does not have: attempts would come back through the old ones, so they wait.
   */
  async reconcile(dataplane: FamilyDataplane, held: ReadonlySet<FrontendKey> = new Set()): Promise<void> {
    const { conntrack } = this.parts;
    this.cancelDue?.();
    this.cancelDue = null;
    if (conntrack === null) {
      this.pending.clear();
      this.attempts.clear();
      return;
    }
    const gone = new Set(dataplane.goneFlows());
    this.addPending(gone);
    if (!dataplane.lacksTimeouts) this.leaveToKernel();
    const attempts = [...this.attempts].filter((key) => !held.has(key));
    if (this.allPending || this.pending.size > 0) {
      if (await this.passPending(conntrack, this.takeAttempts(attempts))) await dataplane.clearGoneFlows(gone);
    } else if (attempts.length > 0 && this.inPass.size === 0) {
      if (this.isDue()) void this.passAttempts(conntrack, this.takeAttempts(attempts));
      else this.comeBack();
    }
  }

  /** Attempts that have ended by themselves when their client repeats its first packet need no pass. */
  private leaveToKernel(): void {
    const { table } = this.parts;
    for (const key of this.attempts) {
      const plan = table.frontend(key);
      const seconds = plan === undefined ? null : retryOf(plan, table.node.retryTimes);
      if (seconds !== null && seconds <= REPEAT_SECONDS) this.attempts.delete(key);
    }
  }

  /** Whether it succeeded. What comes to be pending during the pass is left for the next. */
  private async passPending(conntrack: Conntrack, attempts: ReadonlySet<FrontendKey>): Promise<boolean> {
    const { pending, allPending } = this;
    this.pending = new Set();
    this.allPending = false;
    const isDone = await this.pass(conntrack, allPending, new Set([...pending, ...attempts]));
    this.attemptsPassed(attempts, isDone);
    if (isDone) return true;
    this.addPending(pending);
    if (allPending) this.addPending('all');
    return false;
  }

  private async passAttempts(conntrack: Conntrack, attempts: ReadonlySet<FrontendKey>): Promise<void> {
    const isDone = await this.pass(conntrack, false, attempts);
    this.attemptsPassed(attempts, isDone);
    if (!isDone) this.restsUntil = Math.max(this.restsUntil, this.parts.clock.now() + RETRY_MS);
    if (this.attempts.size > 0) this.comeBack();
  }

  /** They stay until a pass over them has succeeded. */
  private takeAttempts(attempts: Iterable<FrontendKey>): ReadonlySet<FrontendKey> {
    const taken = new Set(attempts);
    for (const key of taken) {
      this.attempts.delete(key);
      this.inPass.add(key);
    }
    return taken;
  }

  private attemptsPassed(attempts: ReadonlySet<FrontendKey>, isDone: boolean): void {
    for (const key of attempts) {
      this.inPass.delete(key);
      if (!isDone) this.attempts.add(key);
    }
  }

  /** When a pass over attempts alone may begin. */
  private get dueAt(): number {
    return Math.max(this.attemptsDueAt, this.restsUntil);
  }

  private isDue(): boolean {
    return this.parts.clock.now() >= this.dueAt;
  }

  private comeBack(): void {
    const { clock, onDue } = this.parts;
    this.cancelDue?.();
    this.cancelDue = clock.callAt(Math.max(this.dueAt, clock.now()), onDue);
  }

  /** Whether it succeeded. */
  private async pass(conntrack: Conntrack, full: boolean, changed: ReadonlySet<FrontendKey>): Promise<boolean> {
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
    observers.notify('flowsChecked', { family: table.family, listed, deleted, seconds: (endedAt - startedAt) / 1000 });
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
