import { StoppableClock, type Clock } from '../base/clock.js';
import { nodeSubject, type EventRecorder } from '../base/events.js';
import type { Family, IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { TokenBucket } from '../base/token-bucket.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, SyncReport, WatchForeignChanges } from '../dataplane/contract.js';
import type { CycleObservers } from '../observe/cycle-observer.js';
import { isNativeError } from '../native/errors.js';
import type { HealthState } from '../record/health.js';
import type { PlanSettings } from '../plan/facts.js';
import { Planner } from '../plan/planner.js';
import type { RowEdit, Store } from '../state/store.js';
import { ConflictReports } from './conflict-reports.js';
import { Drift } from './drift.js';
import { CHALLENGES, type EndingFlowsKernel } from './ending-connections.js';
import { FamilySync, type HealthChecks } from './family-sync.js';
import { ForeignChanges } from './foreign-changes.js';
import type { Loop, RunRequest } from './loop.js';
import type { LoopbackConnections } from './loopback.js';
import type { NodeSettings } from './node-checks.js';
import { Planning, type PlanningParts } from './planning.js';
import { OwnNode } from './own-node.js';
import type { Progress } from '../record/progress.js';
import type { Takeover } from './takeover.js';

/** After conntrack refused to remove stale flows, or a Service could not be planned. */
const RETRY_MS = 1000;
/**
 * So many entries (frontends, each with its endpoints and session affinity) one sync of changes has, and one Service beyond. 20,000 take mode nftables a quarter of a second; what
 * is left follows in the next sync.
 */
export const MOST_ENTRIES = 20_000;
/** The log has more of them. */
const REPAIRS_IN_EVENT = 5;

/** What a sync takes from the configuration. */
export type CycleSettings = PlanSettings & NodeSettings;

/** A mode as a sync needs it. */
export interface CycleMode {
  readonly dataplane: (family: Family) => FamilyDataplane;
  /** Null: external changes are not reported; the periodic check has to find it. */
  readonly watch: WatchForeignChanges | null;
  readonly takeover: Pick<Takeover, 'proceed' | 'retire'>;
}

interface SyncCycleParts {
  readonly settings: CycleSettings;
  readonly store: Pick<Store, 'snapshot' | 'takeChanges'>;
  readonly mode: CycleMode;
  /** Null: the platform has no conntrack. */
  readonly conntrack: Pick<ConntrackReconciler, 'reconcile'> | null;
  /** Null: the same. */
  readonly endingFlows: EndingFlowsKernel | null;
  readonly serviceHealth: HealthChecks;
  readonly loopback: LoopbackConnections;
  readonly localAddresses: () => readonly IPAddress[];
  readonly progress: Progress;
  readonly health: HealthState;
  readonly observers: CycleObservers;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly clock: Clock;
  /** Asked for runs of the cycle. */
  readonly loop: Pick<Loop, 'trigger' | 'triggerNow' | 'proceed'>;
  /** The kernel holds all IPv4 rules by other settings than before, see {@link SyncCycle.guardedBy}: what they guard may be opened. */
  readonly onGuarded: () => void;
  /** All rules have been compared with the plan. */
  readonly onComplete: () => void;
  /** Called when the process cannot go on. */
  readonly onFatal: (error: Error) => void;
}

/**
 * From a change of state to the kernel: the plan, each family's rules, health check node ports, reports of conflicts, stale flows, and what is pending for
 * the next run. It decides when it has to run again, and asks its loop for it; it has neither sockets nor a clock of its own.
 */
export class SyncCycle {
  readonly planner: Planner;
  readonly families: readonly FamilySync[];
  private readonly planning: Planning;
  private readonly node: OwnNode;
  private readonly conflicts: ConflictReports;
  private readonly drift: Drift;
  private readonly foreign: ForeignChanges;
  private settings: CycleSettings;
  private mode: CycleMode;
  /** The settings by which the kernel acknowledged all IPv4 rules. */
  private guarded: CycleSettings | null = null;
  private cancelRetry: (() => void) | null = null;
  private cancelDue: (() => void) | null = null;
  /** Everybody's here: nothing is called back after {@link stop}, not even by a run that ends then. */
  private readonly clock: StoppableClock;
  private stopped = false;

  constructor(private readonly parts: SyncCycleParts) {
    const { settings, progress, mode, log, events, onFatal } = parts;
    const clock = new StoppableClock(parts.clock);
    this.clock = clock;
    this.settings = settings;
    this.mode = mode;
    this.planner = new Planner(settings, () => clock.now());
    this.node = new OwnNode({ families: progress.families.map(({ family }) => family), log, onFatal });
    this.planning = new Planning({ planner: this.planner, take: () => this.take(), log, clock });
    this.conflicts = new ConflictReports({ clock, log, events });
    const challenges = new TokenBucket(CHALLENGES.perSecond, CHALLENGES.burst, () => clock.now());
    this.families = progress.families.map(
      (family) =>
        new FamilySync({
          ...parts,
          clock,
          progress: family,
          table: this.planner.tables[family.family],
          dataplane: mode.dataplane(family.family),
          conflicts: this.conflicts,
          challenges,
          snapshot: parts.store.snapshot,
          resetSettings: () => this.settings,
          author: () => parts.health.drift().find((drift) => drift.family === family.family)?.process ?? null,
          onDue: () => {
            parts.loop.trigger();
          },
        }),
    );
    this.drift = new Drift({
      clock,
      check: () => {
        parts.loop.triggerNow();
      },
      audit: () => {
        for (const family of this.families) void this.foreign.audit(family);
      },
      onSuspicion: (family, process) => {
        this.suspected(family, process);
      },
    });
    this.foreign = new ForeignChanges({ ...parts, drift: this.drift });
  }

  /** Begins what needs no plan. */
  prepare(): void {
    for (const family of this.families) family.prepare();
  }

  /**
   * The state changed.
   *
   * @param receivedAt when that was heard of, on the clock; null when that is unknown.
   */
  stateChanged(edits: readonly RowEdit[], receivedAt: number | null): void {
    const { observers, progress, store, health } = this.parts;
    const { ready } = store.snapshot;
    health.onsets.note('unsynced', store.snapshot.unsynced);
    progress.committed(edits, ready, receivedAt);
    observers.notify('committed', {
      edits,
      receivedAt,
      ready,
      families: progress.families.map(({ family }) => family),
    });
    for (const family of this.families) family.committed(edits);
    this.noteEligibility();
    this.changed(receivedAt);
  }

  /** Something that syncs depend on changed. */
  changed(receivedAt: number | null): void {
    const { store, progress, loop } = this.parts;
    // Nothing reaches the kernel before every source has said all it knows: absence would be read as removal.
    if (!store.snapshot.ready) return;
    progress.changed(receivedAt);
    loop.trigger();
  }

  /** The kernel was seen not to hold what is planned: it is compared and repaired at once, unless that happens all the time. */
  suspect(family: Family): void {
    this.drift.suspect(family, null);
  }

  /** From the next run on everything is by these; who calls it says {@link changed} as well. */
  follow(settings: CycleSettings): void {
    this.settings = settings;
    this.planner.setSettings(settings);
    this.parts.observers.notify('reconfigured');
    this.noteEligibility();
  }

  /** The mode in force removes nothing more: what it would remove may be another's before long. To be called before {@link replaceMode}. */
  async retireMode(): Promise<void> {
    await this.mode.takeover.retire();
  }

  /**
   * Another mode from the next run on, and so together with {@link follow}. Its rules are written completely before those of the mode in force go: until
   * then both forward, and which of them a connection meets makes no difference to where it may go.
   */
  replaceMode(mode: CycleMode): void {
    const dataplanes = this.families.map(({ family }) => mode.dataplane(family));
    this.foreign.stop();
    this.mode = mode;
    for (const [index, dataplane] of dataplanes.entries()) this.families[index]?.replace(dataplane);
    this.foreign.watch(mode.watch, this.families);
  }

  /** The settings by which the kernel holds all IPv4 rules; null: not yet. */
  get guardedBy(): CycleSettings | null {
    return this.guarded;
  }

  /** Stale flows are left, which is tried again. */
  get flowsRefused(): boolean {
    return this.families.some((family) => family.flowsRefused);
  }

  /** One pass of all families; rejects when one failed, after the others had their turn. Not to be called again before. */
  async run({ full }: RunRequest): Promise<void> {
    if (this.stopped || !this.isNodeKnown()) return;
    const { observers } = this.parts;
    observers.notify('runBegan', full);
    let failure: unknown = null;
    try {
      const planned = this.planning.plan();
      // What is planned quickly waits for no other turn.
      const isPlanned = planned instanceof Promise ? await planned : planned;
      if (isPlanned === null) return;
      this.planned();
      observers.notify('planned');
      const { settings, mode } = this;
      if (full) this.foreign.watch(mode.watch, this.families);
      const results = await Promise.allSettled(this.families.map((family) => this.syncFamily(family, full)));
      const reports = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      if (reports.some(({ family, full }) => full && family === 'IPv4')) this.guard(settings);
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
      if (failures.length > 0) throw new AggregateError(failures, 'sync failed');
      if (!this.isInForce(mode)) return;
      const compared = reports.some((report) => report.full);
      // Periodically too, however it is compared then: there may be more to remove than there was, or than could be.
      if ((full || compared) && isPlanned) this.takeOver(mode);
      if (compared) this.parts.onComplete();
      if (!isPlanned || this.flowsRefused) this.retry();
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      observers.notify('runEnded', failure);
    }
  }

  /** Nobody is listened to any more, and nothing asks for another run. */
  stop(): void {
    this.stopped = true;
    this.planning.stop();
    for (const family of this.families) family.end();
    this.clock.stop();
    this.foreign.stop();
  }

  /** Whether what a run of this mode learns still matters. */
  private isInForce(mode: CycleMode): boolean {
    return !this.stopped && mode === this.mode;
  }

  /** Everything that was committed so far, for a plan; null: nothing is programmed before the Node is known. */
  private take(): ReturnType<PlanningParts['take']> {
    const { store, progress, observers } = this.parts;
    if (!this.isNodeKnown()) return null;
    progress.take();
    for (const { family } of this.families) observers.notify('took', family);
    // What a mode begins with is whole: it may be all that forwards.
    const isDivided = this.families.every(({ isComplete }) => isComplete);
    const most = isDivided ? MOST_ENTRIES : Infinity;
    return { snapshot: this.node.view(store.snapshot, this.settings.nodeName), changes: store.takeChanges(), most };
  }

  private planned(): void {
    const { progress, health, observers, loop } = this.parts;
    const { tables } = this.planner;
    progress.planned({ IPv4: tables.IPv4.deferred, IPv6: tables.IPv6.deferred });
    this.comeBack();
    for (const { table, family } of this.families) {
      health.planned(table);
      if (table.deferred.size > 0) observers.notify('deferred', family, table.deferred);
    }
    if (progress.deferred.size > 0) loop.proceed();
  }

  /** At once, not with the next run: a balancer has to know of it however long syncs take. A Node that is gone counts as it was (behaviour HZ-07). */
  private noteEligibility(): void {
    const { settings } = this;
    const { health, store } = this.parts;
    // Manifests without a Node object: there is no autoscaler that could ask for this node to be drained.
    const otherwise = settings.kubernetes === null ? true : health.nodeEligible;
    health.nodeEligible = store.snapshot.node(settings.nodeName)?.eligible ?? otherwise;
  }

  private isNodeKnown(): boolean {
    const { settings, node } = this;
    const { health, store } = this.parts;
    const isKnown = node.update(settings, store.snapshot.node(settings.nodeName));
    health.hold(node.waitsFor);
    return isKnown;
  }

  private async syncFamily(sync: FamilySync, full: boolean): Promise<SyncReport> {
    const { log } = this.parts;
    const { mode, clock } = this;
    const { family } = sync;
    const startedAt = clock.now();
    const suspected = this.drift.begin(family);
    let report: SyncReport | null = null;
    try {
      report = await sync.run(suspected);
      this.foreign.permitted(sync);
    } catch (error) {
      if (isNativeError(error) && error.errno === 'EPERM' && this.isInForce(mode)) this.foreign.awaitPermission(sync);
      throw error;
    } finally {
      this.settleDrift(sync, startedAt, report);
    }
    report.background?.catch((error: unknown) => {
      // It was about rules that go.
      if (!this.isInForce(mode)) return;
      log.error(error, 'work after a sync failed, comparing everything');
      this.drift.suspect(family, null);
    });
    this.recordRepairs(report);
    if (full && !report.full && this.isInForce(mode)) void this.foreign.audit(sync);
    return report;
  }

  private suspected(family: Family, process: string | null): void {
    const { health, observers } = this.parts;
    health.drifted(family, process);
    observers.notify('externalChange', family, process);
  }

  private settleDrift({ family, history }: FamilySync, startedAt: number, report: SyncReport | null): void {
    const { health, observers } = this.parts;
    const settledMs = this.drift.ended(family, startedAt, report !== null);
    const differences = report?.repairs.length ?? 0;
    if (settledMs !== null || differences > 0) {
      const process = health.drift().find((drift) => drift.family === family)?.process ?? null;
      const seconds = settledMs === null ? null : settledMs / 1000;
      if (differences > 0) history.repairedIn(seconds);
      observers.notify('repaired', { family, process, differences, what: report?.repairs[0] ?? null, seconds });
    }
    const compared = report?.full === true || settledMs !== null;
    if (compared && !this.drift.suspects(family)) health.repaired(family);
  }

  private guard(settings: CycleSettings): void {
    if (this.guarded === settings) return;
    this.guarded = settings;
    this.parts.onGuarded();
  }

  private takeOver(mode: CycleMode): void {
    // What another mode left may still forward what the plan does not know yet.
    if (this.families.some(({ table }) => table.unsynced)) return;
    void mode.takeover.proceed().then((pass) => {
      if (pass === null) return;
      // For the next mode there is another pass.
      const finished = pass.finished && this.isInForce(mode);
      for (const family of this.families) family.leftoversRemoved({ ...pass, finished });
      // Packets that met its rules since ours are there may have made flows that ours would not.
      if (pass.removed) this.parts.loop.trigger();
    });
  }

  /** For what the plan gives endpoints with time. */
  private comeBack(): void {
    const { dueAt } = this.planner;
    this.cancelDue?.();
    this.cancelDue =
      dueAt === null
        ? null
        : this.clock.callAt(dueAt, () => {
            this.parts.loop.trigger();
          });
  }

  /** Not as a failed sync: while it lasts, every later one would have to compare everything. */
  private retry(): void {
    const { clock } = this;
    this.cancelRetry?.();
    this.cancelRetry = clock.callAt(clock.now() + RETRY_MS, () => {
      this.parts.loop.trigger();
    });
  }

  private recordRepairs({ family, repairs }: SyncReport): void {
    if (repairs.length === 0) return;
    const some = repairs.slice(0, REPAIRS_IN_EVENT).join(', ');
    this.parts.events.record({
      type: 'Warning',
      reason: 'RulesRepaired',
      action: 'RepairRules',
      regarding: nodeSubject(this.settings.nodeName),
      related: null,
      note: `the ${family} rules had external changes, which were repaired: ${some}`,
    });
  }
}
