import type { MetricValueWithName, Registry as PromRegistry } from 'prom-client';
import Registry from 'prom-client/lib/registry.js';
import type { Clock } from '../base/clock.js';
import type { Family } from '../base/ip.js';
import { goPlatform } from '../base/platform.js';
import type { WallClock } from '../base/timestamp.js';
import type { GateState } from '../config/gates.js';
import type { Progress } from '../record/progress.js';
import type { ModeCounts, SyncReport } from '../dataplane/contract.js';
import type { ModeMetrics } from '../dataplane/mode.js';
import type { Host } from '../host/host.js';
import type { PortsWithoutLocal } from '../plan/local-endpoints.js';
import type { ExecOutcome } from '../sources/kubernetes/auth/exec-plugin.js';
import type { RequestObserver } from '../sources/kubernetes/connect/transport.js';
import type { RowEdit } from '../state/store.js';
import { expose, type ExpositionFormat, type MetricFamily } from './exposition.js';
import type { HealthPath, HealthState } from '../record/health.js';
import type {
  AcknowledgedSync,
  Commit,
  CycleObserver,
  EndedSync,
  FlowSearch,
  RepairedChange,
  ResetConnections,
} from './cycle-observer.js';
import { CertificateMetrics } from './certificate-metrics.js';
import { ComponentInstruments, ModeInstruments, OwnInstruments, ProxyInstruments } from './instruments.js';
import { SpanMetrics } from './span-metrics.js';
import { ProcessInstruments, RuntimeInstruments } from './process-metrics.js';

/** How a source of objects is doing. */
export interface SourceState {
  readonly source: string;
  /** All that was there at the start has been read. */
  readonly synced: boolean;
  /** Milliseconds since it was last heard of; null when it never was. */
  readonly sinceLastEventMs: number | null;
  /** Failures so far, by kind; counters only grow. */
  readonly failures: Readonly<Record<string, number>>;
  /** Of the API server: what is wrong at present, its kind first, as `forbidden: 403: …`; null: nothing is. */
  readonly trouble?: string | null;
  /** Of the API server: a watch is open. */
  readonly isWatched?: boolean;
  /** Of the API server: how many objects have come. */
  readonly received?: number;
}

/** What of a mode is shown. */
export interface CountedMode {
  readonly metrics: ModeMetrics;
  /** Asked at each scrape; null: nothing is counted. */
  readonly modeCounts: () => Promise<ModeCounts | null>;
}

interface ProxyMetricsOptions {
  /** Of the mode in force. */
  readonly mode: CountedMode;
  /** Asked at each scrape. */
  readonly host: Pick<Host, 'processUsage' | 'flowTableSize'>;
  /** Asked at each scrape. */
  readonly progress: Progress;
  /** As reported by --version. */
  readonly version: string;
  /** Those at the start. */
  readonly features: readonly GateState[];
  /** Asked at each scrape. */
  readonly sources: () => readonly SourceState[];
  readonly clock: Clock;
  readonly wallClock: WallClock;
}

/** The samples of histograms in seconds, labelled by family, with cumulative buckets. */
export type Latencies = Readonly<Record<'sync' | 'change', readonly MetricValueWithName<string>[]>>;

/** What each sync of a family says anew; it shows only in scrapes. */
interface LatestSync {
  /** Seconds since the epoch. */
  succeeded?: number;
  quarantined?: number;
  unlisted?: number;
  withoutLocal?: PortsWithoutLocal;
  conflicts?: number;
}

/**
 * Counts what the pipeline does, in its own words. Everything is in memory and nothing throws; kube-proxy's metrics come first, then what any Kubernetes
 * component has, then our own.
 */
export class ProxyMetrics implements RequestObserver, CycleObserver {
  private readonly registry: PromRegistry = new Registry();
  private readonly proxy = new ProxyInstruments(this.registry);
  private mode: ModeInstruments;
  private modeCounts: CountedMode['modeCounts'];
  private readonly component = new ComponentInstruments(this.registry);
  private readonly own = new OwnInstruments(this.registry);
  private readonly process: ProcessInstruments;
  private readonly runtime = new RuntimeInstruments(this.registry);
  private readonly latest = new Map<Family, LatestSync>();
  /** When a sync was last asked for, in seconds since the epoch. */
  private queuedAt: number;
  /** The run under way leaves something to the next. */
  private isDivided = false;
  /** Milliseconds since the epoch. */
  private certificateExpiresAt = Infinity;
  private health: Pick<HealthState, 'healthy' | 'apiHeardMs'> | null = null;
  /** Asked at each scrape for metrics that are in no registry. */
  private more: () => Promise<readonly MetricFamily[]> = () => Promise.resolve([]);

  constructor(private readonly options: ProxyMetricsOptions) {
    this.modeCounts = options.mode.modeCounts;
    this.queuedAt = this.seconds();
    this.process = new ProcessInstruments(this.registry, options.host);
    this.mode = new ModeInstruments(this.registry, options.mode.metrics);
    this.component.build.set(buildLabels(options.version), 1);
    this.setFeatures(options.features);
    this.countMetrics();
  }

  /** Another mode is in force: what was counted of the one before it goes with its names. */
  setMode({ metrics, modeCounts }: CountedMode): void {
    this.mode.remove();
    this.modeCounts = modeCounts;
    this.mode = new ModeInstruments(this.registry, metrics);
    this.countMetrics();
  }

  /** From now on these are in force. */
  setFeatures(features: readonly GateState[]): void {
    for (const { name, stage, enabled } of features) this.component.features.set({ name, stage }, enabled ? 1 : 0);
  }

  /** Adds metrics of a part that few processes have. */
  register<T>(make: (registry: Registry) => T): T {
    const made = make(this.registry);
    this.countMetrics();
    return made;
  }

  /** Those under a promise of stability, which our own are not. */
  private countMetrics(): void {
    this.component.registered.reset();
    for (const { help } of this.registry.getMetricsAsArray()) {
      const stability_level = /^\[([A-Z]+)\] /.exec(help)?.[1];
      if (stability_level !== undefined) this.component.registered.inc({ stability_level, deprecated_version: '' });
    }
  }

  /** How long syncs took, and changes from reaching this process to the kernel's acknowledgement. */
  async latencies(): Promise<Latencies> {
    const [sync, change] = await Promise.all([this.proxy.syncDuration.get(), this.own.commitDuration.get()]);
    return { sync: sync.values, change: change.values };
  }

  /** All metrics as a scraper reads them. */
  async scrape(format: ExpositionFormat): Promise<string> {
    this.process.update();
    this.runtime.update();
    this.component.pluginTtl.set(this.certificateExpiresAt / 1000 - this.seconds());
    this.updateSources();
    await this.updateCounts();
    this.updateProgress();
    this.updateSyncs();
    this.updateNode();
    return expose(this.registry, format, await this.more());
  }

  /** From now on `pointsman_healthy` says what this says. */
  setHealth(health: Pick<HealthState, 'healthy' | 'apiHeardMs'>): void {
    this.health = health;
  }

  /** From now on these are shown, too. @param more asked at each scrape; does not reject. */
  show(more: () => Promise<readonly MetricFamily[]>): void {
    this.more = more;
  }

  committed({ edits, ready }: Pick<Commit, 'edits' | 'ready'>): void {
    for (const edit of edits) this.countEdit(edit);
    if (ready) this.queuedAt = this.seconds();
  }

  deferred(): void {
    this.isDivided = true;
  }

  /** What is left to the next run has been queued again. */
  runEnded(): void {
    if (this.isDivided) this.queuedAt = this.seconds();
    this.isDivided = false;
  }

  /** Reading of flows and health checks may follow, and fail. */
  acknowledged({ report, changes, table }: Pick<AcknowledgedSync, 'report' | 'changes' | 'table'>): void {
    const { commits, triggers } = changes;
    const { portsWithoutLocal: withoutLocal, conflictCount: conflicts } = table;
    const labels = { ip_family: report.family };
    const { own } = this;
    if (report.transactions > 0) {
      own.operations.observe({ kind: 'element', ...labels }, report.elementOperations);
      own.operations.observe({ kind: 'rule', ...labels }, report.ruleOperations);
      own.bytes.observe(labels, report.bytes);
    }
    if (report.repairs.length > 0) own.repairs.inc(labels, report.repairs.length);
    if (report.problems.length > 0) this.mode.cleanupFailures?.inc(labels);
    // The rest of such a sync is in the kernel, but not all that it was to do.
    if ((report.refusedChains ?? []).length > 0) this.mode.syncFailures.inc(labels);
    const unlisted = (report.limitations ?? []).filter(({ of }) => of === 'rules').length;
    const quarantined = report.quarantined.length;
    Object.assign(this.latestOf(report.family), { quarantined, unlisted, withoutLocal, conflicts });
    if (report.rules !== null) this.countRules(report.family, report.rules);
    const now = this.options.clock.now();
    for (const at of commits) own.commitDuration.observe(labels, (now - at) / 1000);
    const wall = this.seconds();
    for (const at of triggers) this.proxy.networkProgramming.observe(labels, Math.max(0, wall - at / 1000));
  }

  private countRules(ip_family: Family, { held, written }: NonNullable<SyncReport['rules']>): void {
    for (const [table, rules] of Object.entries(held)) this.mode.rulesHeld?.set({ table, ip_family }, rules);
    for (const [table, rules] of Object.entries(written)) this.mode.rulesWritten?.set({ table, ip_family }, rules);
  }

  syncEnded({ family, full, seconds, result, counts }: EndedSync): void {
    if (!counts) return;
    const labels = { ip_family: family };
    const { own, proxy } = this;
    proxy.syncDuration.observe(labels, seconds);
    if (this.mode.tellsFullSyncs) (full ? proxy.fullSyncDuration : proxy.partialSyncDuration).observe(labels, seconds);
    if (result.type === 'success') {
      this.latestOf(family).succeeded = this.seconds();
      return;
    }
    this.mode.syncFailures.inc(labels);
    if (!full) this.mode.partialSyncFailures?.inc(labels);
    if (result.errno !== null) own.nativeFailures.inc({ errno: result.errno, ...labels });
  }

  flowsChecked({ family, deleted, seconds }: Omit<FlowSearch, 'listed'>): void {
    this.proxy.reconcileDuration.observe({ ip_family: family }, seconds);
    this.proxy.deletedFlows.inc({ ip_family: family }, deleted);
  }

  connectionsReset({ family, connections }: Pick<ResetConnections, 'family' | 'connections'>): void {
    this.own.resetConnections.inc({ ip_family: family }, connections);
  }

  externalChange(family: Family): void {
    this.own.foreignChanges.inc({ ip_family: family });
  }

  repaired({ family, seconds }: Pick<RepairedChange, 'family' | 'seconds'>): void {
    if (seconds !== null) this.own.driftDuration.observe({ ip_family: family }, seconds);
  }

  audited(family: Family, result: 'intact' | 'different' | 'failed'): void {
    this.own.audits.inc({ result, ip_family: family });
  }

  /** Connections whose client session affinity had no room for; 0 says that they are counted. */
  unremembered(family: Family, connections: number): void {
    this.own.unremembered.inc({ ip_family: family }, connections);
  }

  sysctlRepaired(): void {
    this.own.sysctlRepairs.inc();
  }

  healthAnswered(path: HealthPath, status: number): void {
    (path === '/healthz' ? this.proxy.healthz : this.proxy.livez).inc({ code: String(status) });
  }

  /** Where traces are sent; otherwise there are none. */
  spans(): SpanMetrics {
    return new SpanMetrics(this.registry);
  }

  /** Of the client certificate; where none is asked for there are none. */
  certificates(health: HealthState): CertificateMetrics {
    return new CertificateMetrics(this.registry, health);
  }

  configChanged(result: 'applied' | 'refused'): void {
    this.own.configChanges.inc({ result });
  }

  answered(method: string, host: string, status: number | null, durationMs: number): void {
    this.component.requests.inc({ code: status === null ? '<error>' : String(status), host, method });
    this.component.requestDuration.observe({ verb: method, host }, durationMs / 1000);
  }

  requestSized(method: string, host: string, bytes: number): void {
    this.component.requestSize.observe({ verb: method, host }, bytes);
  }

  responseSized(method: string, host: string, bytes: number): void {
    this.component.responseSize.observe({ verb: method, host }, bytes);
  }

  transportCreated(): void {
    this.component.transports.inc();
    this.component.transportCalls.inc({ result: 'miss' });
  }

  transportClosed(): void {
    this.component.transports.dec();
  }

  pluginCalled(outcome: ExecOutcome, exitCode: number): void {
    this.component.pluginCalls.inc({ code: String(exitCode), call_status: outcome });
  }

  certificateRotated(expiresAt: number, ageMs: number | null): void {
    this.certificateExpiresAt = expiresAt;
    if (ageMs !== null) this.component.pluginRotationAge.observe(ageMs / 1000);
  }

  delayed(method: string, host: string, durationMs: number): void {
    this.component.rateLimiterDuration.observe({ verb: method, host }, durationMs / 1000);
  }

  private countEdit({ before, after }: RowEdit): void {
    const { families } = this.options.progress;
    const row = after ?? before;
    // Both families' syncs have it to do: counted as often.
    if (row?.kind === 'Service') this.proxy.serviceChanges.inc(families.length);
    if (row?.kind === 'EndpointSlice' && families.some(({ family }) => family === row.family))
      this.proxy.endpointChanges.inc();
  }

  private latestOf(family: Family): LatestSync {
    let latest = this.latest.get(family);
    if (latest === undefined) this.latest.set(family, (latest = {}));
    return latest;
  }

  private updateSyncs(): void {
    const { proxy, own } = this;
    for (const { family } of this.options.progress.families) {
      const labels = { ip_family: family };
      proxy.lastQueued.set(labels, this.queuedAt);
      const { succeeded, quarantined, unlisted, withoutLocal, conflicts } = this.latestOf(family);
      if (succeeded !== undefined) proxy.lastSync.set(labels, succeeded);
      if (quarantined !== undefined) own.quarantined.set(labels, quarantined);
      if (unlisted !== undefined) own.unlisted.set(labels, unlisted);
      if (conflicts !== undefined) own.conflicts.set(labels, conflicts);
      for (const traffic_policy of ['internal', 'external'] as const)
        if (withoutLocal !== undefined)
          proxy.noLocalEndpoints.set({ traffic_policy, ...labels }, withoutLocal[traffic_policy]);
    }
  }

  private updateNode(): void {
    if (this.health !== null) this.own.healthy.set(this.health.healthy() ? 1 : 0);
    const flows = this.options.host.flowTableSize();
    this.own.setFlowTable(flows);
  }

  private updateProgress(): void {
    const { progress, clock } = this.options;
    this.proxy.serviceChangesPending.set(progress.pendingServices);
    this.proxy.endpointChangesPending.set(progress.pendingSlices);
    for (const { family, oldestCommit, pendingFrontends } of progress.families) {
      const labels = { ip_family: family };
      this.own.changeAge.set(labels, oldestCommit === null ? 0 : (clock.now() - oldestCommit) / 1000);
      this.own.pendingFrontends.set(labels, pendingFrontends);
    }
  }

  private async updateCounts(): Promise<void> {
    const { mode } = this;
    const counts = await this.modeCounts().catch(() => null);
    // Of another mode meanwhile.
    if (mode !== this.mode) return;
    if (counts !== null && this.mode.setCounts(counts)) this.countMetrics();
  }

  private updateSources(): void {
    const { sourceSynced, sourceLastEvent, sourceFailures, apiServerReceived } = this.own;
    const now = this.seconds();
    const heardMs = this.health?.apiHeardMs() ?? null;
    apiServerReceived.remove();
    if (heardMs !== null) apiServerReceived.set(now - heardMs / 1000);
    for (const gauge of [sourceSynced, sourceLastEvent]) gauge.reset();
    sourceFailures.reset();
    for (const { source, synced, sinceLastEventMs, failures } of this.options.sources()) {
      sourceSynced.set({ source }, synced ? 1 : 0);
      if (sinceLastEventMs !== null) sourceLastEvent.set({ source }, now - sinceLastEventMs / 1000);
      for (const [kind, count] of Object.entries(failures)) if (count > 0) sourceFailures.inc({ source, kind }, count);
    }
  }

  private seconds(): number {
    return Number(this.options.wallClock() / 1000n) / 1e6;
  }
}

function buildLabels(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.replace(/^v/, '').split('.');
  return {
    major,
    minor,
    git_version: version,
    git_commit: '',
    git_tree_state: '',
    build_date: '',
    go_version: process.version,
    compiler: 'node',
    platform: goPlatform(),
  };
}
