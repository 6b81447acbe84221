import type { Config } from '../config/config.js';
import type { FamilyDataplane } from '../dataplane/contract.js';
import { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import { applyKernelValues, applyOomScoreAdj } from '../dataplane/sysctl.js';
import { systemClock } from '../loop/clock.js';
import { Loop, type RunRequest } from '../loop/loop.js';
import type { NativeAddon } from '../native/contract.js';
import type { Family } from '../net/ip.js';
import { HealthServer, HealthState } from '../observe/health.js';
import type { Logger } from '../observe/log.js';
import { ServiceHealth } from '../observe/service-health.js';
import { systemWallClock } from '../observe/timestamp.js';
import { Planner } from '../plan/planner.js';
import { localAddresses } from '../sources/local-addresses.js';
import { startManifests, type RunningManifests } from '../sources/manifests/start.js';
import { Store } from '../state/store.js';
import { collectGarbage } from './collect-garbage.js';
import { FamilySync } from './family-sync.js';
import { kernelValues, manifestsOptions, planSettings } from './settings.js';

const RETRY = { initialMs: 100, factor: 2 } as const;
/** A change may wait this many sync periods before the node counts as unhealthy (behaviour HZ-04). */
const HEALTH_TIMEOUT_PERIODS = 2;

export interface NodeProxyOptions {
  readonly config: Config;
  readonly addon: NativeAddon;
  readonly families: readonly Family[];
  readonly dataplane: (family: Family) => FamilyDataplane;
  readonly log: Logger;
  /** Called when the process cannot go on. */
  readonly onFatal: (error: Error) => void;
}

/** The running process: sources → state → plan → dataplane, and what tells others how it is doing. */
export class NodeProxy {
  private readonly store = new Store();
  private readonly planner: Planner;
  private readonly health: HealthState;
  private readonly healthServer: HealthServer;
  private readonly serviceHealth: ServiceHealth;
  private readonly families: readonly FamilySync[];
  private readonly loop: Loop;
  private source: RunningManifests | null = null;
  /** When the first change that no run has taken reached the state. */
  private changedAt: number | null = null;
  private kernelValuesDue = true;
  private kernelValuesReported = new Set<string>();

  constructor(private readonly options: NodeProxyOptions) {
    const { config, addon, dataplane, log, onFatal } = options;
    this.planner = new Planner(planSettings(config));
    this.health = new HealthState(HEALTH_TIMEOUT_PERIODS * config.syncPeriod, systemClock, systemWallClock());
    this.health.expect(options.families);
    this.healthServer = new HealthServer({
      state: this.health,
      address: config.healthz.address,
      port: config.healthz.port,
      hardFail: config.bindAddressHardFail,
      clock: systemClock,
      log,
      onFatal,
    });
    this.serviceHealth = new ServiceHealth({
      proxyHealthy: () => this.health.healthy(),
      clock: systemClock,
      log,
      onListenFailure: (service, port, error) => {
        log.error(error, 'cannot listen on a health check node port', { service, port });
      },
    });
    const conntrack = new ConntrackReconciler(addon);
    this.families = options.families.map(
      (family) =>
        new FamilySync({
          table: this.planner.tables[family],
          dataplane: dataplane(family),
          conntrack,
          health: this.health,
          serviceHealth: this.serviceHealth,
          localAddresses,
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
    this.store.onChange(() => {
      this.changed();
    });
  }

  async start(): Promise<void> {
    const { config, log } = this.options;
    await this.healthServer.start();
    await this.applyKernelValues();
    const oom = await applyOomScoreAdj(config.oomScoreAdj);
    if (oom !== null) log.info(2, oom.message);
    this.source = startManifests(manifestsOptions(config), this.store, log);
  }

  /** Ends everything but the rules, which go on forwarding. */
  async stop(): Promise<void> {
    await this.source?.stop();
    await this.loop.stop();
    await Promise.all([this.serviceHealth.close(), this.healthServer.close()]);
  }

  private changed(): void {
    // Nothing reaches the kernel before every source has said all it knows: absence would be read as removal.
    if (!this.store.snapshot.ready) return;
    for (const family of this.options.families) this.health.queued(family);
    this.changedAt ??= performance.now();
    this.loop.trigger();
  }

  private async sync({ full }: RunRequest): Promise<void> {
    const { changedAt } = this;
    this.changedAt = null;
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    // Without a Node object there is no autoscaler that could ask for this node to be drained.
    this.health.nodeEligible = this.store.snapshot.node(this.options.config.nodeName)?.eligible ?? true;
    if (full && this.kernelValuesDue) await this.applyKernelValues();
    const results = await Promise.allSettled(this.families.map((family) => family.run(full, changedAt)));
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    if (errors.length > 0) throw new AggregateError(errors, 'sync failed');
    if (results.some((result) => result.status === 'fulfilled' && result.value.full)) setImmediate(collectGarbage);
  }

  /** Values that cannot be set yet are tried again with every full sync; what is wrong with them is said once. */
  private async applyKernelValues(): Promise<void> {
    const { config, log } = this.options;
    const { written, problems } = await applyKernelValues(kernelValues(config));
    for (const { path, value } of written) log.info(1, 'set sysctl', { path, value });
    for (const problem of problems) log.info(this.kernelValuesReported.has(problem.message) ? 4 : 0, problem.message);
    this.kernelValuesReported = new Set(problems.map(({ message }) => message));
    this.kernelValuesDue = problems.length > 0;
  }
}
