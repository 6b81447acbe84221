import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import { familyOf, type Family, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { TokenBucket } from '../base/token-bucket.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import { blamedFrontend, EndedError, type FamilyDataplane, type SyncReport } from '../dataplane/contract.js';
import { isNativeError } from '../native/errors.js';
import type { ChangeFollower } from '../observe/change-follower.js';
import type { ProxyMetrics, SyncResult } from '../observe/metrics.js';
import { SyncHistory } from '../record/sync-history.js';
import type { FamilyTrace } from '../observe/tracing.js';
import type { ResetSettings } from '../plan/departures.js';
import { anyContains } from '../plan/facts.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { FrontendKey, FrontendPlan, HealthCheckPlan } from '../plan/types.js';
import type { Snapshot } from '../state/snapshot.js';
import type { RowEdit } from '../state/store.js';
import { AsideReports } from './aside-reports.js';
import type { ConflictReports } from './conflict-reports.js';
import type { Acknowledged, FamilyProgress } from '../record/progress.js';
import { EndingConnections, type EndingFlowsKernel } from './ending-connections.js';
import { StaleFlows } from './stale-flows.js';
import type { TakeoverPass } from './takeover.js';

/** Lines about repairs that may be logged at once, and in the long run. */
const REPAIR_LINES = 400;
const REPAIR_LINES_PER_SECOND = 2;

/** A family's health checks of Services. */
export interface FamilyHealthChecks {
  readonly family: Family;
  readonly plans: readonly HealthCheckPlan[];
  /** The node port addresses; those of the other family are passed over. With none left there is no listener, which is no error. */
  readonly addresses: 'all' | readonly IPAddress[];
}

/** What answers health checks of Services. */
export interface HealthChecks {
  /** Makes these the health checks of the families named; resolves when their sockets are as wanted or have failed. */
  sync(families: readonly FamilyHealthChecks[]): Promise<void>;
}

export interface FamilySyncParts {
  readonly table: ForwardingTable;
  /** Of the mode in force. */
  readonly dataplane: FamilyDataplane;
  /** Null: the platform has no conntrack. */
  readonly conntrack: Pick<ConntrackReconciler, 'reconcile'> | null;
  readonly endingFlows: EndingFlowsKernel | null;
  readonly snapshot: Snapshot;
  readonly resetSettings: () => ResetSettings;
  /** How many clients of removed endpoints may be asked in a second, of all families. */
  readonly challenges: TokenBucket;
  readonly progress: FamilyProgress;
  readonly serviceHealth: HealthChecks;
  readonly conflicts: Pick<ConflictReports, 'update'>;
  readonly localAddresses: () => readonly IPAddress[];
  /** Null: nothing is counted. */
  readonly metrics: SyncMetrics | null;
  /** Who else follows changes; absent, or null: nobody. */
  readonly changes?: () => Pick<ChangeFollower, 'acknowledged' | 'connectionsReset'> | null;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly clock: Clock;
  /** Who was seen changing the family's rules since they were last compared; null: nobody, or somebody unknown. */
  readonly culprit: () => string | null;
  /** The time has come for a sync although nothing changed: what was set aside is tried again, or the dataplane asked for it. */
  readonly onDue: () => void;
}

/** The part of the metrics that a sync reports to. */
export type SyncMetrics = Pick<
  ProxyMetrics,
  'syncAcknowledged' | 'syncFinished' | 'flowsReconciled' | 'tableCounted' | 'connectionsReset'
>;

/**
 * One family's way from forwarding table to kernel: rules first, then whoever answers health checks, then the flows that contradict the rules.
 * A failure in one family does not stop the other.
 */
export class FamilySync {
  readonly history = new SyncHistory();
  private inForce: FamilyDataplane;
  private readonly flows: StaleFlows;
  readonly ending: EndingConnections;
  /** Everything has been in the kernel once, by the mode in force. */
  private complete = false;
  private repairLines: { readonly left: number; readonly at: number };
  private readonly asides: AsideReports;
  private cancelDue: (() => void) | null = null;

  constructor(private readonly parts: FamilySyncParts) {
    this.inForce = parts.dataplane;
    this.flows = new StaleFlows(parts);
    this.ending = new EndingConnections({ ...parts, kernel: parts.endingFlows, settings: parts.resetSettings });
    const { table, clock, log, events, onDue } = parts;
    this.repairLines = { left: REPAIR_LINES, at: clock.now() };
    const plan = (key: FrontendKey): FrontendPlan | undefined => table.frontend(key);
    this.asides = new AsideReports({ family: table.family, plan, clock, log, events, onDue });
  }

  /** The state changed. */
  committed(edits: readonly RowEdit[]): void {
    this.ending.committed(edits);
  }

  /** To be called once, before anything is known. */
  prepare(): void {
    this.inForce.prepare();
  }

  get table(): ForwardingTable {
    return this.parts.table;
  }

  get dataplane(): FamilyDataplane {
    return this.inForce;
  }

  /** Another mode's, from the next run on, which compares everything by itself as it is the first. */
  replace(dataplane: FamilyDataplane): void {
    this.flows.replaced(this.inForce);
    this.comeBack(null);
    this.inForce = dataplane;
    this.complete = false;
  }

  get family(): Family {
    return this.parts.table.family;
  }

  /** The process ends: no run sends more than it is sending. */
  end(): void {
    this.inForce.end();
  }

  /** Whether the kernel differs from what it acknowledged. */
  audit(): Promise<boolean> {
    return this.inForce.audit();
  }

  /** Whether nobody notifies of external changes, so that the kernel has to be probed. */
  get polls(): boolean {
    return this.inForce.polls;
  }

  /** Whether the kernel differs in what was looked at. */
  probe(): Promise<boolean> {
    return this.inForce.probe();
  }

  /**
   * One sync; what the dataplane did. Rejects with what failed; everything not done is still owed.
   *
   * @param full whether everything is compared with the kernel.
   * @param trace null: nobody follows it.
   */
  async run(full: boolean, trace: FamilyTrace | null = null): Promise<SyncReport> {
    const { table, progress, metrics, clock } = this.parts;
    const dataplane = this.inForce;
    const { family } = table;
    const change = table.takeChange();
    progress.sending(change.frontends);
    this.flows.changed(change);
    const startedAt = clock.now();
    const finished = (full: boolean, result: SyncResult): void =>
      metrics?.syncFinished(family, full, (clock.now() - startedAt) / 1000, result);
    try {
      const report = await (trace === null
        ? dataplane.apply(table, change, { full })
        : trace.apply(() => dataplane.apply(table, change, { full })));
      this.flows.owe(report.flows);
      if (this.isInForce(dataplane)) this.acknowledge(report, startedAt, trace);
      this.syncServiceHealth();
      this.parts.conflicts.update(table);
      metrics?.tableCounted(family, table.portsWithoutLocal, table.conflictCount);
      const held = new Set(report.setAside.map(({ frontend }) => frontend));
      const flows = (): Promise<void> => this.flows.reconcile(dataplane, held);
      await (trace === null ? flows() : trace.flows(flows));
      if (this.isInForce(dataplane)) this.ending.proceed(dataplane, held);
      trace?.ended(null);
      if (!this.isInForce(dataplane)) return report;
      finished(report.full, { type: 'success' });
      this.reportRecovery();
      return report;
    } catch (error) {
      trace?.ended(error);
      if (error instanceof EndedError) this.parts.log.info(0, 'ending before everything is in the kernel', { family });
      if (!this.isInForce(dataplane) || error instanceof EndedError) throw error;
      const errno = isNativeError(error) ? (error.errno ?? error.code) : null;
      finished(full, { type: 'failure', errno });
      this.reportFailure(error);
      throw error;
    }
  }

  /** Another mode may have come while a run was under way, which then says nothing of the mode in force: what it took is still to be acknowledged. */
  private isInForce(dataplane: FamilyDataplane): boolean {
    return dataplane === this.inForce;
  }

  private acknowledge(report: SyncReport, startedAt: number, trace: FamilyTrace | null): void {
    const { progress, metrics, table, changes } = this.parts;
    this.asides.update(report.setAside);
    this.comeBack(report.dueAt ?? null);
    this.reportLimitations(report);
    const acknowledged = progress.acknowledge(this.asides.services, report.limitations);
    // The log first: its line tells when.
    this.report(report, acknowledged, startedAt);
    metrics?.syncAcknowledged(report, acknowledged);
    changes?.()?.acknowledged(report, acknowledged.frontends, (key) => table.frontend(key));
    trace?.acknowledged(report);
  }

  /** @param dueAt when the dataplane wants to be called again; null: when something changed. */
  private comeBack(dueAt: number | null): void {
    const { clock, onDue } = this.parts;
    this.cancelDue?.();
    this.cancelDue = dueAt === null ? null : clock.callAt(Math.max(dueAt, clock.now()), onDue);
  }

  private syncServiceHealth(): void {
    const { table, serviceHealth } = this.parts;
    const plans = [...table.healthChecks()];
    // Sockets follow in the background; rules do not wait for them.
    void serviceHealth.sync([{ family: table.family, plans, addresses: this.healthAddresses(plans.length) }]);
  }

  /** Loopback too, where it is asked for (behaviour SH-01). Asking the system for its addresses takes longer than planning a change, so it is not
   * asked for nothing. */
  private healthAddresses(checks: number): 'all' | readonly IPAddress[] {
    if (this.parts.table.node.nodePortPrefixes === null) return 'all';
    return checks === 0 ? [] : this.ownAddresses();
  }

  /** Whether flows that the last sync made stale could not be removed: they are owed to the next. */
  get flowsRefused(): boolean {
    return this.flows.refused;
  }

  /** A pass over what other modes left has ended. */
  leftoversRemoved(pass: TakeoverPass): void {
    this.flows.leftoversRemoved(pass);
  }

  /** The node's own addresses in nodePortAddresses. */
  private ownAddresses(): readonly IPAddress[] {
    const { table, localAddresses } = this.parts;
    const prefixes = table.node.nodePortPrefixes;
    return localAddresses().filter(
      (address) => familyOf(address) === table.family && (prefixes === null || anyContains(prefixes, address)),
    );
  }

  private report(report: SyncReport, { frontends, heardAt }: Acknowledged, startedAt: number): void {
    const { log, table, clock } = this.parts;
    const { family, full, transactions, elementOperations, ruleOperations, bytes } = report;
    const since = (start: number): number => Math.round((clock.now() - start) * 1000) / 1000;
    const syncMs = since(startedAt);
    const sinceChangeMs = since(heardAt ?? startedAt);
    const plan = (key: FrontendKey): FrontendPlan | undefined => table.frontend(key);
    const culprit = report.repairs.length === 0 ? null : this.parts.culprit();
    const before = new Set(this.history.problems);
    this.history.acknowledged(report, frontends, plan, { syncMs, sinceChangeMs }, culprit);
    if (full && !this.complete) {
      log.info(0, 'rules complete', { family, sinceStartMs: Math.round(1000 * process.uptime()) });
      this.complete = true;
    }
    const counts = { family, full, transactions, elementOperations, ruleOperations, bytes, syncMs, sinceChangeMs };
    log.info(full || transactions > 0 ? 2 : 4, 'synced', counts);
    this.reportRepairs(report);
    for (const problem of this.history.problems) if (!before.has(problem)) log.warn(problem, { family });
  }

  /** Once. */
  private reportLimitations({ family, limitations = [] }: SyncReport): void {
    const { log, progress } = this.parts;
    const told = new Set(progress.limitations.map(({ text }) => text));
    for (const { of, text } of limitations) {
      if (told.has(text)) continue;
      if (of === 'kernel') log.warn('limitation', { family, limitation: text });
      else log.info(0, 'limitation', { family, limitation: text });
    }
  }

  /** In detail, but not for ever when somebody goes on destroying. */
  private reportRepairs({ family, repairs }: SyncReport): void {
    if (repairs.length === 0) return;
    const { log, clock } = this.parts;
    const now = clock.now();
    const earned = ((now - this.repairLines.at) / 1000) * REPAIR_LINES_PER_SECOND;
    const left = Math.min(REPAIR_LINES, this.repairLines.left + earned);
    const message = 'repaired what the kernel no longer held as acknowledged';
    const detailed = repairs.length <= left;
    if (detailed) for (const repair of repairs) log.warn(message, { family, repair });
    else log.warn(message, { family, differences: repairs.length });
    this.repairLines = { left: detailed ? left - repairs.length : left, at: now };
  }

  /** Speaks when it breaks and when the reason changes, not at every retry. */
  private reportFailure(error: unknown): void {
    const { table, progress, log } = this.parts;
    const message = messageOf(error);
    this.history.failedWith(message);
    if (message === progress.failure) {
      log.info(2, 'sync failed again', { family: table.family, error: message });
      this.recordRefusal(error, message);
    } else log.error(error, 'sync failed, will be retried', { family: table.family });
    progress.failed(message);
  }

  /** Tells the Service's users that the kernel does not take it; not of a failure that the first retry mends. */
  private recordRefusal(error: unknown, message: string): void {
    const { table, events } = this.parts;
    const key = blamedFrontend(error);
    const plan = key === null ? undefined : table.frontend(key);
    if (plan === undefined) return;
    events.record({
      type: 'Warning',
      reason: 'ProgrammingFailed',
      action: 'ProgramService',
      regarding: serviceSubject(plan.servicePort),
      related: null,
      note: `${plan.key} cannot be programmed, which is tried again: ${message}`,
    });
  }

  private reportRecovery(): void {
    const { table, progress, log } = this.parts;
    if (progress.failure !== null) log.info(0, 'sync works again', { family: table.family });
    progress.succeeded();
  }
}
