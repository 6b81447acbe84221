import { hostname } from 'node:os';
import { systemClock } from '../base/clock.js';
import { nodeSubject, serviceSubject, type ProxyEvent } from '../base/events.js';
import type { Family } from '../base/ip.js';
import { systemWallClock } from '../base/timestamp.js';
import { compareConfigs, type FieldChange } from '../config/compare.js';
import type { Config } from '../config/config.js';
import { gateStates } from '../config/gates.js';
import type { Loaded } from '../config/load.js';
import { ConflictReports } from '../control/conflict-reports.js';
import { Drift } from '../control/drift.js';
import { FamilySync } from '../control/family-sync.js';
import { ForeignChanges } from '../control/foreign-changes.js';
import { KernelValues } from '../control/kernel-values.js';
import { Loop, type RunRequest } from '../control/loop.js';
import { OwnNode } from '../control/own-node.js';
import { kernelValues, planSettings } from '../control/settings.js';
import { Sources } from '../control/sources.js';
import type { Takeover } from '../control/takeover.js';
import { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, SyncReport, WatchForeignChanges } from '../dataplane/contract.js';
import type { OpenMode } from '../dataplane/mode.js';
import { modeDefinition } from '../dataplane/modes.js';
import { applyOomScoreAdj } from '../host/linux/sysctl.js';
import { localAddresses } from '../host/local-addresses.js';
import type { NativeAddon } from '../native/contract.js';
import { HealthState } from '../observe/health.js';
import type { Logger } from '../observe/log.js';
import { ProxyMetrics } from '../observe/metrics.js';
import { Planner } from '../plan/planner.js';
import { Listeners } from '../serve/listeners.js';
import { ServiceHealth } from '../serve/service-health.js';
import { statusPages } from '../serve/status-pages.js';
import { StatusSocket } from '../serve/status-socket.js';
import { EventSender } from '../sources/kubernetes/events/event-sender.js';
import { Store } from '../state/store.js';
import { settleHeap } from './memory.js';

const RETRY = { initialMs: 100, factor: 2 } as const;
/** A change may wait this many sync periods before the node counts as unhealthy (behaviour HZ-04). */
const HEALTH_TIMEOUT_PERIODS = 2;
/** After conntrack refused to remove stale flows. */
const FLOW_RETRY_MS = 1000;
/** The log has more of them. */
const REPAIRS_IN_EVENT = 5;
/** What the peer calls the start, in events. */
const START = 'StartKubeProxy';
/** How long a process that ends for a reason tries to say so. */
const LAST_WORDS_MS = 2000;

export interface NodeProxyOptions {
  readonly loaded: Loaded;
  readonly addon: NativeAddon;
  readonly families: readonly Family[];
  readonly dataplane: (family: Family) => FamilyDataplane;
  readonly takeover: Takeover;
  /** Null: nobody tells what others do; the periodic check has to find it. */
  readonly watch: WatchForeignChanges | null;
  readonly packetCounts: OpenMode['packetCounts'];
  readonly log: Logger;
  /** Called when the process cannot go on. */
  readonly onFatal: (error: Error) => void;
}

/** The running process: sources → state → plan → dataplane, and what tells others how it is doing. */
export class NodeProxy {
  private readonly store = new Store();
  private readonly planner: Planner;
  private readonly health: HealthState;
  private readonly serviceHealth: ServiceHealth;
  private readonly families: readonly FamilySync[];
  private readonly conflicts: ConflictReports;
  private readonly node: OwnNode;
  private readonly events: EventSender;
  private readonly loop: Loop;
  private readonly drift: Drift;
  private readonly kernelValues: KernelValues;
  private cancelFlowRetry: (() => void) | null = null;
  private readonly foreign: ForeignChanges;
  private readonly metrics: ProxyMetrics;
  private readonly listeners: Listeners;
  private readonly statusSocket: StatusSocket | null;
  private readonly sources: Sources;
  /** The process is about to end for a reason that its events name. */
  private ending = false;
  /** The configuration for which the kernel acknowledged all IPv4 rules. */
  private guardedBy: Config | null = null;
  /** In force; {@link reconfigure} replaces it. */
  private loaded: Loaded;
  /** The configuration in force, but this node has its former name until its Node has been read by the new one. */
  private config: Config;
  /** Why the files say otherwise than what is in force; null: they do not. */
  private refusedFor: string | null = null;
  /** When the first change that no run has taken reached the state. */
  private changedAt: number | null = null;

  constructor(private readonly options: NodeProxyOptions) {
    const { loaded, addon, dataplane, log } = options;
    const { config } = loaded;
    const wallClock = systemWallClock();
    this.loaded = loaded;
    this.config = config;
    this.planner = new Planner(planSettings(config));
    this.node = new OwnNode({ families: options.families, log, onFatal: options.onFatal });
    this.health = new HealthState(HEALTH_TIMEOUT_PERIODS * config.syncPeriod, systemClock, wallClock);
    this.health.expect(options.families);
    this.events = new EventSender({ hostname: hostname(), clock: systemClock, wallClock, log });
    this.metrics = new ProxyMetrics({
      mode: modeDefinition(config.mode).metrics,
      families: options.families,
      version: loaded.version,
      features: gateStates(loaded.document.featureGates),
      sources: () => this.sources.states(),
      packetCounts: options.packetCounts,
      clock: systemClock,
      wallClock,
    });
    this.sources = new Sources({
      ...{ version: loaded.version, store: this.store, log, observer: this.metrics, events: this.events },
      onNodeRead: (read) => {
        this.renamed(read.nodeName);
      },
    });
    this.listeners = new Listeners({
      ...{ loaded, health: this.health, metrics: this.metrics, clock: systemClock, wallClock, log },
      setVerbosity: (verbosity) => {
        log.setThresholds({ ...this.config.logging, verbosity });
      },
      onFatal: (reason, error) => {
        this.fail(reason, error);
      },
    });
    this.serviceHealth = new ServiceHealth({
      proxyHealthy: () => this.health.healthy(),
      clock: systemClock,
      log,
      onListenFailure: (service, port, error) => {
        log.error(error, 'cannot listen on a health check node port', { service, port });
        this.events.record({
          type: 'Warning',
          reason: 'FailedToStartServiceHealthcheck',
          action: 'Listen',
          regarding: serviceSubject(service),
          related: null,
          note: `node ${this.config.nodeName} cannot answer health checks of ${service} on port ${port}: ${error.message}`,
        });
      },
    });
    const conntrack = new ConntrackReconciler(addon);
    const { events } = this;
    this.conflicts = new ConflictReports({ clock: systemClock, log, events });
    this.families = options.families.map(
      (family) =>
        new FamilySync({
          table: this.planner.tables[family],
          dataplane: dataplane(family),
          conntrack,
          health: this.health,
          serviceHealth: this.serviceHealth,
          conflicts: this.conflicts,
          localAddresses,
          metrics: this.metrics,
          events,
          log,
        }),
    );
    this.loop = new Loop({
      run: (request) => this.sync(request),
      minIntervalMs: config.minSyncPeriod,
      fullIntervalMs: config.syncPeriod,
      retry: { ...RETRY, maxMs: config.syncPeriod },
      clock: systemClock,
      random: Math.random,
      onOutcome: () => undefined,
    });
    this.statusSocket = this.openInside();
    this.drift = new Drift({
      clock: systemClock,
      check: () => {
        this.loop.triggerNow();
      },
      audit: () => {
        for (const family of this.families) void this.foreign.audit(family);
      },
      onSuspicion: (family, process) => {
        this.health.drifted(family, process);
        this.metrics.foreignChange(family);
        log.info(2, 'somebody else changed the table', { family, process: process ?? 'unknown' });
      },
    });
    this.foreign = new ForeignChanges({ watch: options.watch, drift: this.drift, metrics: this.metrics, log });
    this.kernelValues = new KernelValues({
      values: () => kernelValues(this.config, this.guardedBy),
      clock: systemClock,
      log,
      onRepaired: ({ path, value, found }) => {
        this.metrics.sysctlRepaired();
        const note = `${path} had been set to ${found} by somebody else and is ${value} again`;
        this.recordOfNode({ type: 'Warning', reason: 'SysctlRepaired', action: 'RepairSysctl', note });
      },
      onChecked: (problems) => {
        this.health.sysctls = problems;
      },
    });
    this.store.onChange((edits, receivedAt) => {
      this.metrics.stateChanged(edits, this.store.snapshot.ready);
      this.noteEligibility();
      this.changed(receivedAt);
    });
  }

  async start(): Promise<void> {
    for (const family of this.families) family.prepare();
    await Promise.all([this.listeners.start(), this.statusSocket?.start()]);
    await this.kernelValues.apply();
    await this.applyOomScore();
    await this.sources.start(this.config);
    if (!this.ending) this.recordOfNode({ type: 'Normal', reason: 'Starting', action: START, note: '' });
  }

  /** The configuration in force. */
  get inForce(): Loaded {
    return this.loaded;
  }

  /** Why the configuration files as they are now were refused; null: they are in force. */
  get refusal(): string | null {
    return this.refusedFor;
  }

  /** Takes over a configuration of which every change is live. Rejects when that is not possible; what was in force stays. Not to be called again before. */
  async reconfigure(loaded: Loaded): Promise<void> {
    const changes = compareConfigs(this.loaded.config, loaded.config);
    const api = changes.some(concernsApi) ? await this.sources.connect(loaded.config) : null;
    try {
      await this.listeners.follow(loaded);
    } catch (error) {
      api?.source?.connection.close();
      throw error;
    }
    this.refusedFor = null;
    this.loaded = loaded;
    this.config = { ...loaded.config, nodeName: this.config.nodeName };
    // At once: a sync in between would take rules by the former settings for a guard of the new ones.
    this.planner.setSettings(planSettings(this.config));
    this.metrics.setFeatures(gateStates(loaded.document.featureGates));
    // The same in other words.
    if (changes.length === 0) return;
    const { config } = loaded;
    if (changes.some(({ field }) => field.startsWith('logging.'))) await this.options.log.follow(config.logging);
    this.health.timeoutMs = HEALTH_TIMEOUT_PERIODS * config.syncPeriod;
    this.loop.setIntervals({ minIntervalMs: config.minSyncPeriod, fullIntervalMs: config.syncPeriod });
    await this.kernelValues.apply();
    await this.applyOomScore();
    if (api !== null) await this.sources.follow(api);
    if (config.kubernetes === null) this.renamed(config.nodeName);
    this.metrics.configChanged('applied');
    this.changed(null);
  }

  /** What is this node's is told by another name. */
  private renamed(nodeName: string): void {
    if (nodeName === this.config.nodeName) return;
    this.config = { ...this.config, nodeName };
    this.planner.setSettings(planSettings(this.config));
    this.noteEligibility();
    this.changed(null);
  }

  /** A changed configuration that is not taken over, and why. */
  configRefused(result: 'refused' | 'restart', why: string): void {
    this.refusedFor = why;
    this.metrics.configChanged(result);
    const reason = result === 'refused' ? 'ConfigurationRefused' : 'ConfigurationNeedsRestart';
    this.recordOfNode({ type: 'Warning', reason, action: 'Reconfigure', note: why });
    this.ending ||= result === 'restart';
  }

  /** Ends everything but the rules, which go on forwarding. */
  async stop(): Promise<void> {
    if (this.ending) await this.events.flush(LAST_WORDS_MS);
    this.events.stop();
    this.foreign.stop();
    this.drift.stop();
    this.kernelValues.stop();
    await Promise.allSettled([this.sources.stop()]);
    await this.loop.stop();
    this.cancelFlowRetry?.();
    this.conflicts.close();
    await Promise.allSettled([this.serviceHealth.close(), this.listeners.close(), this.statusSocket?.close()]);
  }

  /** What `pointsman status` and `explain` ask; null when it is switched off. */
  private openInside(): StatusSocket | null {
    const path = this.loaded.config.statusSocket;
    if (path === null) return null;
    const pages = statusPages({
      loaded: () => this.loaded,
      refusal: () => this.refusedFor,
      planned: () => this.config,
      snapshot: this.store.snapshot,
      families: this.families,
      health: this.health,
      loop: () => this.loop.status(),
      sources: () => this.sources.states(),
      waitingFor: () => this.store.waitingFor(),
      now: () => systemClock.now(),
    });
    return new StatusSocket({ path, pages, clock: systemClock, log: this.options.log });
  }

  private fail(reason: string, error: Error): void {
    this.recordOfNode({ type: 'Warning', reason, action: START, note: error.message });
    this.ending = true;
    this.options.onFatal(error);
  }

  private recordOfNode(event: Omit<ProxyEvent, 'regarding' | 'related'>): void {
    this.events.record({ ...event, regarding: nodeSubject(this.loaded.config.nodeName), related: null });
  }

  private async applyOomScore(): Promise<void> {
    const problem = await applyOomScoreAdj(this.loaded.config.oomScoreAdj);
    if (problem !== null) this.options.log.warn(problem.message);
  }

  private changed(receivedAt: number | null): void {
    // Nothing reaches the kernel before every source has said all it knows: absence would be read as removal.
    if (!this.store.snapshot.ready) return;
    const isKnown = this.isNodeKnown();
    for (const family of this.options.families) this.health.queued(family);
    if (!isKnown) return;
    this.changedAt ??= receivedAt ?? performance.now();
    this.loop.trigger();
  }

  /** At once, not with the next sync: a balancer has to know of it however long syncs take. A Node that is gone counts as it was (behaviour HZ-07). */
  private noteEligibility(): void {
    const { config, health } = this;
    // Manifests without a Node object: there is no autoscaler that could ask for this node to be drained.
    const otherwise = config.kubernetes === null ? true : health.nodeEligible;
    health.nodeEligible = this.store.snapshot.node(config.nodeName)?.eligible ?? otherwise;
  }

  private isNodeKnown(): boolean {
    const { config } = this;
    const isKnown = this.node.update(config, this.store.snapshot.node(config.nodeName));
    this.health.hold(this.node.waitsFor);
    return isKnown;
  }

  private async sync({ full }: RunRequest): Promise<void> {
    // Changed settings may need to know more than the last sync did.
    if (!this.isNodeKnown()) return;
    const { changedAt } = this;
    this.changedAt = null;
    const { config } = this;
    this.planner.update(this.node.view(this.store.snapshot, config.nodeName), this.store.takeChanges());
    this.metrics.changesTaken();
    if (full) this.foreign.watch();
    const results = await Promise.allSettled(this.families.map((family) => this.syncFamily(family, full, changedAt)));
    const reports = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    if (reports.some(({ family, full }) => full && family === 'IPv4')) this.guarded(config);
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (errors.length > 0) throw new AggregateError(errors, 'sync failed');
    if (reports.some(({ full }) => full)) this.complete();
    if (this.families.some((family) => family.flowsRefused)) this.retryFlows();
  }

  /** What the rules guard may be opened now. */
  private guarded(config: Config): void {
    if (this.guardedBy === config) return;
    this.guardedBy = config;
    void this.kernelValues.apply();
  }

  /** Not as a failed sync: where the kernel never takes it, every later one would have to compare everything. */
  private retryFlows(): void {
    this.cancelFlowRetry?.();
    this.cancelFlowRetry = systemClock.callAt(systemClock.now() + FLOW_RETRY_MS, () => {
      this.loop.trigger();
    });
  }

  /** All rules have been compared with the plan. */
  private complete(): void {
    // What another mode left may still forward what the plan does not know yet.
    if (!this.options.families.some((family) => this.planner.tables[family].gaps)) this.options.takeover.proceed();
    setImmediate(settleHeap);
  }

  private async syncFamily(family: FamilySync, full: boolean, changedAt: number | null): Promise<SyncReport> {
    const startedAt = systemClock.now();
    const suspected = this.drift.begin(family.family);
    let report: SyncReport | null = null;
    try {
      report = await family.run(suspected || (full && !family.canAudit), changedAt);
    } finally {
      this.settle(family.family, startedAt, report);
    }
    report.aside?.catch((error: unknown) => {
      this.options.log.error(error, 'what was left to do after a sync failed, comparing everything');
      this.drift.suspect(family.family, null);
    });
    this.recordRepairs(report);
    if (full && !report.full && family.canAudit) void this.foreign.audit(family);
    return report;
  }

  private settle(family: Family, startedAt: number, report: SyncReport | null): void {
    const settledMs = this.drift.ended(family, startedAt, report !== null);
    if (settledMs !== null) this.metrics.driftSettled(family, settledMs / 1000);
    const compared = report?.full === true || settledMs !== null;
    if (compared && !this.drift.suspects(family)) this.health.repaired(family);
  }

  private recordRepairs({ family, repairs }: SyncReport): void {
    if (repairs.length === 0) return;
    const some = repairs.slice(0, REPAIRS_IN_EVENT).join(', ');
    const note = `the ${family} rules had been changed by somebody else and were repaired: ${some}`;
    this.recordOfNode({ type: 'Warning', reason: 'RulesRepaired', action: 'RepairRules', note });
  }
}

/** Whether another source has to take the API server's place: another server or another way there, or another Node to ask for. */
function concernsApi({ field }: FieldChange): boolean {
  return field === 'nodeName' || field === 'kubernetes' || field.startsWith('kubernetes.');
}
