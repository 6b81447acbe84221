import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import { familyOf, type Family, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { TokenBucket } from '../base/token-bucket.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import {
  blamedFrontend,
  blamedNodeFaults,
  EndedError,
  type FamilyDataplane,
  type SyncReport,
} from '../dataplane/contract.js';
import { isNativeError } from '../native/errors.js';
import type { CycleObservers, SyncResult } from '../observe/cycle-observer.js';
import { SyncHistory } from '../record/sync-history.js';
import type { ResetSettings } from '../plan/departures.js';
import { anyContains } from '../plan/facts.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { FrontendKey, FrontendPlan, HealthCheckPlan } from '../plan/types.js';
import type { Snapshot } from '../state/snapshot.js';
import type { RowEdit } from '../state/store.js';
import type { QuarantineReports } from './quarantine-reports.js';
import type { ConflictReports } from './conflict-reports.js';
import type { FamilyProgress } from '../record/progress.js';
import { EndingConnections, type EndingFlowsKernel } from './ending-connections.js';
import type { LoopbackConnections } from './loopback.js';
import { StaleFlows } from './stale-flows.js';
import type { TakeoverPass } from './takeover.js';

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

interface FamilySyncParts {
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
  readonly loopback: LoopbackConnections;
  readonly conflicts: Pick<ConflictReports, 'update'>;
  readonly localAddresses: () => readonly IPAddress[];
  readonly observers: CycleObservers;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly clock: Clock;
  /** Who was seen changing the family's rules since they were last compared; null: unknown, or none. */
  readonly author: () => string | null;
  /** The time has come for a sync although nothing changed: what is quarantined is tried again, or the dataplane asked for it. */
  readonly onDue: () => void;
}

/**
 * One family's way from forwarding table to kernel: rules first, then health checks, then the flows that contradict the rules.
 * A failure in one family does not stop the other.
 */
export class FamilySync {
  readonly history = new SyncHistory();
  private inForce: FamilyDataplane;
  private readonly flows: StaleFlows;
  readonly ending: EndingConnections;
  /** Everything has been in the kernel once, by the mode in force. */
  private complete = false;
  /** Null: nothing was quarantined yet. */
  private quarantine: QuarantineReports | null = null;
  private cancelDue: (() => void) | null = null;

  constructor(private readonly parts: FamilySyncParts) {
    this.inForce = parts.dataplane;
    this.flows = new StaleFlows(parts);
    this.ending = new EndingConnections({ ...parts, kernel: parts.endingFlows, settings: parts.resetSettings });
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

  /** Whether everything has been in the kernel once, by the mode in force. */
  get isComplete(): boolean {
    return this.complete;
  }

  get family(): Family {
    return this.parts.table.family;
  }

  /** The process ends: no run sends more than it is sending. */
  end(): void {
    this.inForce.end();
  }

  /**
   * One sync; what the dataplane did. Rejects with what failed; everything not done is still pending.
   *
   * @param full whether everything is compared with the kernel.
   */
  async run(full: boolean): Promise<SyncReport> {
    const { table, progress, observers, clock, log } = this.parts;
    const dataplane = this.inForce;
    const { family } = table;
    const change = table.takeChange();
    progress.sending(change.frontends);
    this.flows.changed(change);
    this.parts.loopback.sync(table, change);
    const startedAt = clock.now();
    const end = (full: boolean, result: SyncResult, counts: boolean): void => {
      observers.notify('syncEnded', { family, full, seconds: (clock.now() - startedAt) / 1000, result, counts });
    };
    observers.notify('syncBegan', family, full);
    try {
      const report = await observers.during('apply', family, () => dataplane.apply(table, change, { full }));
      this.flows.addPending(report.flows);
      if (report.quarantined.length > 0) await this.openQuarantine();
      if (this.isInForce(dataplane)) this.acknowledge(report, startedAt);
      this.syncServiceHealth();
      this.parts.conflicts.update(table);
      const held = new Set(report.quarantined.map(({ frontend }) => frontend));
      await observers.during('flows', family, () => this.flows.reconcile(dataplane, held));
      if (this.isInForce(dataplane)) this.ending.proceed(dataplane, held);
      end(report.full, { type: 'success' }, this.isInForce(dataplane));
      if (this.isInForce(dataplane)) progress.succeeded();
      return report;
    } catch (error) {
      const isEnding = error instanceof EndedError;
      if (isEnding) log.info(0, 'ending before everything is in the kernel', { family });
      const counts = this.isInForce(dataplane) && !isEnding;
      const errno = isNativeError(error) ? (error.errno ?? error.code) : null;
      end(full, { type: 'failure', error, errno }, counts);
      if (blamedNodeFaults(error).length > 0) await this.openQuarantine();
      if (counts) this.noteFailure(error);
      throw error;
    }
  }

  /** Loads the reports of refusals: few kernels refuse anything. */
  private async openQuarantine(): Promise<void> {
    const { table, clock, log, events, onDue } = this.parts;
    const plan = (key: FrontendKey): FrontendPlan | undefined => table.frontend(key);
    const { QuarantineReports } = await import('./quarantine-reports.js');
    this.quarantine ??= new QuarantineReports({ family: table.family, plan, clock, log, events, onDue });
  }

  /** Another mode may have come while a run was under way, which then says nothing of the mode in force: what it took is still to be acknowledged. */
  private isInForce(dataplane: FamilyDataplane): boolean {
    return dataplane === this.inForce;
  }

  private acknowledge(report: SyncReport, startedAt: number): void {
    const { progress, table, observers, clock, author } = this.parts;
    const { nodeFaults = [] } = report;
    this.quarantine?.update(report.quarantined, nodeFaults);
    this.comeBack(report.dueAt ?? null);
    const changes = progress.acknowledge(this.quarantine?.services, report.limitations, nodeFaults);
    const since = (start: number): number => Math.round((clock.now() - start) * 1000) / 1000;
    const times = { syncMs: since(startedAt), sinceChangeMs: since(changes.receivedAt ?? startedAt) };
    const newProblems = this.history.acknowledged(
      report,
      changes.frontends,
      (key) => table.frontend(key),
      times,
      report.repairs.length === 0 ? null : author(),
    );
    const isFirst = report.full && !this.complete;
    this.complete ||= report.full;
    observers.notify('acknowledged', { report, changes, table, ...times, isFirst, newProblems });
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

  /** Whether flows that the last sync made stale could not be removed: the next sync retries them. */
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

  private noteFailure(error: unknown): void {
    const { progress } = this.parts;
    const message = messageOf(error);
    this.history.failedWith(message);
    if (message === progress.failure) this.recordRefusal(error, message);
    const nodeFaults = blamedNodeFaults(error);
    this.quarantine?.blame(nodeFaults);
    progress.failed(message, nodeFaults);
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
      note: `${plan.key} cannot be programmed and is retried: ${message}`,
    });
  }
}
