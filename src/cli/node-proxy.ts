import { systemClock } from '../base/clock.js';
import { greatest } from '../base/extremes.js';
import { nodeSubject, type ProxyEvent } from '../base/events.js';
import { counted } from '../base/text.js';
import { systemWallClock } from '../base/timestamp.js';
import { defaultSettings } from '../config/defaults.js';
import { configurationFields } from '../config/write.js';
import { gateStates } from '../config/gates.js';
import type { Loaded } from '../config/load.js';
import { OWN_VERSION } from '../config/version.js';
import { AffinityOverflow } from '../control/affinity-overflow.js';
import type { KernelValues } from '../control/kernel-values.js';
import { Loop } from '../control/loop.js';
import { countedMode, type Machine } from '../control/mode.js';
import { Progress } from '../record/progress.js';
import { cycleSettings, planSettings, healthTimeoutMs } from '../control/settings.js';
import { Sources } from '../control/sources.js';
import { StartProgress } from '../control/start-progress.js';
import { SyncCycle } from '../control/sync-cycle.js';
import { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { OpenMode } from '../dataplane/mode.js';
import { listenerMetrics, modeDefinition } from '../dataplane/modes.js';
import type { PeerAddon } from '../native/contract.js';
import { SUBSYSTEM_PLATFORMS } from '../native/subsystems.js';
import { HealthState } from '../record/health.js';
import type { Logger } from '../observe/log.js';
import type { LogFault } from '../observe/observations.js';
import { CycleObservers } from '../observe/cycle-observer.js';
import { ProxyMetrics } from '../observe/metrics.js';
import { SyncLog } from '../observe/sync-log.js';
import type { ProcessTracing } from '../observe/tracing.js';
import { LazyNodePortListeners } from '../serve/loopback-connections.js';
import { Listeners } from '../serve/listeners.js';
import { ClientShares } from '../serve/client-shares.js';
import { ServiceHealth } from '../serve/service-health.js';
import { Page } from '../serve/page.js';
import type { RunningProcess } from '../serve/running-process.js';
import { statusPages } from '../serve/status-pages.js';
import { StatusSocket } from '../serve/status-socket.js';
import { Silence } from '../sources/kubernetes/connect/silence.js';
import type { EventSender } from '../sources/kubernetes/events/event-sender.js';
import { refOf, type Row } from '../state/rows.js';
import { Store } from '../state/store.js';
import type { SourceWriter } from '../state/writer.js';
import { Attempts } from './attempts.js';
import { Foreign } from './foreign.js';
import { NO_OBSERVERS, openChangeObservers, type ChangeObservers } from './change-observers.js';
import { keptValues } from './kernel-values.js';
import { listenFailure } from './listen-failure.js';
import { settleLoadSoon } from './memory.js';
import { openAccessControl, openPage } from './packages.js';
import { Reconfiguration, cycleMode } from '../control/reconfiguration.js';

const RETRY = { initialMs: 100, factor: 2 } as const;
/** What kube-proxy calls the start, in events. */
const START = 'StartKubeProxy';
/** How long a process that ends for a reason tries to say so. */
const LAST_WORDS_MS = 2000;

interface NodeProxyOptions {
  readonly loaded: Loaded;
  readonly machine: Machine;
  /** At the start. */
  readonly mode: OpenMode;
  readonly log: Logger;
  readonly events: EventSender;
  /** Null: changes are not observed. */
  readonly tracing: ProcessTracing | null;
  /** Called when the process cannot go on. */
  readonly onFatal: (error: Error) => void;
}

/** Parts of the addon that only readers of an API server need are made when it is first called. */
function lazyPeer({ addon }: Machine): Pick<PeerAddon, 'limitSilence' | 'silentMs'> {
  return {
    limitSilence: (...limit) => addon.peer.limitSilence(...limit),
    silentMs: (descriptor) => addon.peer.silentMs(descriptor),
  };
}

/** The running process: sources, the sync cycle and its loop, and what tells others how they are doing, put together. */
export class NodeProxy {
  private readonly store = new Store();
  private readonly wallClock = systemWallClock();
  private readonly progress: Progress;
  private readonly health: HealthState;
  private readonly metrics: ProxyMetrics;
  private readonly sources: Sources;
  private readonly listeners: Listeners;
  private readonly shares: ClientShares;
  private readonly serviceHealth: ServiceHealth;
  private readonly loopback: LazyNodePortListeners;
  private readonly cycle: SyncCycle;
  private readonly loop: Loop;
  private readonly overflow: AffinityOverflow;
  private readonly kernelValues: KernelValues;
  private readonly statusSocket: StatusSocket | null;
  private readonly startProgress: StartProgress;
  private readonly page: Page;
  /** Null: no test has asked for anything yet. */
  private lender: SourceWriter | null = null;
  /** The process is about to end for a reason that its events name. */
  private ending = false;
  private readonly attempts: Attempts;
  /** Of the API server; null: the platform does not tell. */
  private readonly silence: Silence | null;
  /** Null: this platform has no such rules. */
  private readonly foreign: Foreign | null;
  private readonly observers: CycleObservers;
  private changeObservers = NO_OBSERVERS;
  private announced = false;
  readonly reconfiguration: Reconfiguration;

  constructor(private readonly options: NodeProxyOptions) {
    const { loaded, log, mode, tracing, events } = options;
    const { config } = loaded;
    const { wallClock } = this;
    this.progress = new Progress(mode.families, systemClock, wallClock);
    this.health = new HealthState(this.progress, healthTimeoutMs(config), systemClock, wallClock);
    this.metrics = this.makeMetrics();
    this.metrics.setHealth(this.health);
    tracing?.countBy(this.metrics.spans());
    const { platform } = options.machine.host;
    this.silence = platform === SUBSYSTEM_PLATFORMS.peer ? new Silence(lazyPeer(options.machine)) : null;
    this.observers = new CycleObservers(new SyncLog(log, systemClock), this.metrics);
    if (tracing !== null) this.observers.add(tracing);
    this.sources = this.makeSources();
    this.attempts = new Attempts(mode.attempts, log);
    this.health.apiHeardMs = () => this.silence?.heardMs() ?? null;
    const { addon, host } = options.machine;
    this.foreign = host.platform === SUBSYSTEM_PLATFORMS.conntrack ? new Foreign(addon) : null;
    this.health.sources = () => this.sources.states();
    this.page = new Page({ running: () => this.running(), open: openPage, clock: systemClock, log });
    this.listeners = this.makeListeners();
    this.shares = new ClientShares(systemClock, log);
    this.serviceHealth = this.makeServiceHealth();
    this.loopback = new LazyNodePortListeners({
      clock: systemClock,
      log,
      events,
      metrics: this.metrics,
      names: listenerMetrics(),
      relay: () => addon.relay,
    });
    this.cycle = this.makeCycle();
    this.loop = new Loop({
      run: (request) => this.cycle.run(request),
      minIntervalMs: config.minSyncPeriod,
      fullIntervalMs: config.syncPeriod,
      retry: { ...RETRY, maxMs: config.syncPeriod },
      clock: systemClock,
      random: Math.random,
    });
    const { families } = this.cycle;
    this.overflow = new AffinityOverflow({ families, metrics: this.metrics, log, events, clock: systemClock });
    this.kernelValues = this.makeKernelValues();
    this.reconfiguration = this.makeReconfiguration();
    this.statusSocket = this.makeStatusSocket();
    const { store, sources, progress } = this;
    this.startProgress = new StartProgress({ store, sources, progress, clock: systemClock, log });
    this.store.onChange((edits, receivedAt) => {
      this.cycle.stateChanged(edits, receivedAt);
    });
  }

  private makeSources(): Sources {
    const { loaded, log, tracing, events } = this.options;
    const { clientCertificate } = loaded.config.kubernetes ?? { clientCertificate: null };
    return new Sources({
      version: loaded.version,
      store: this.store,
      log,
      observer: this.metrics,
      tracing,
      events,
      certificates: clientCertificate === null ? null : this.metrics.certificates(this.health),
      limitSilence:
        this.silence === null
          ? null
          : (...limit) => {
              this.silence?.limit(...limit);
            },
      onNodeRead: (read) => {
        this.reconfiguration.renamed(read.nodeName);
      },
    });
  }

  async start(): Promise<void> {
    this.cycle.prepare();
    this.startProgress.start();
    await this.kernelValues.apply();
    this.changeObservers = await this.makeChangeObservers();
    this.observers.add(...this.changeObservers.observers);
    await this.applyOomScore();
    void this.overflow.start();
    // Forwarding waits for no address, certificate or log. What is invalid about them ends the start all the same.
    await Promise.all([
      this.sources.start(this.reconfiguration.config),
      this.startServing(),
      this.changeObservers.prepare(),
    ]);
    if (this.ending) return;
    this.recordOfNode({ type: 'Normal', reason: 'Starting', action: START, note: '' });
    this.warnOfMode();
  }

  /** Who finds the process healthy can ask it. */
  private async startServing(): Promise<void> {
    await this.statusSocket?.start();
    await this.listeners.start();
  }

  private warnOfMode(): void {
    const { deprecation } = modeDefinition(this.reconfiguration.config.mode);
    if (deprecation === null) return;
    const { reason, note } = deprecation;
    this.options.log.warn(note);
    this.recordOfNode({ type: 'Warning', reason, action: START, note });
  }

  private makeReconfiguration(): Reconfiguration {
    const { cycle, loop, kernelValues, sources, listeners, attempts, health, metrics } = this;
    const { loaded, machine, mode, log, tracing } = this.options;
    return new Reconfiguration(loaded, {
      machine,
      families: mode.families,
      log,
      cycle,
      loop,
      kernelValues,
      sources,
      listeners,
      attempts,
      health,
      metrics,
      tracing,
      applyOomScore: () => this.applyOomScore(),
      warnOfMode: () => {
        this.warnOfMode();
      },
      onRefused: (why) => {
        this.recordOfNode({ type: 'Warning', reason: 'ConfigurationRefused', action: 'Reconfigure', note: why });
      },
      onFatal: (reason, error) => {
        this.fail(reason, error);
      },
    });
  }

  /** Ends everything but the rules, which go on forwarding. */
  async stop(): Promise<void> {
    this.reconfiguration.stop();
    const { events } = this.options;
    if (this.ending) await events.flush(LAST_WORDS_MS);
    for (const part of [events, this.cycle, this.overflow, this.kernelValues, this.startProgress]) part.stop();
    await Promise.allSettled([this.sources.stop(), this.loop.stop()]);
    const { serviceHealth, loopback, listeners, statusSocket, changeObservers } = this;
    await Promise.allSettled([
      serviceHealth.close(),
      loopback.close(),
      listeners.close(),
      statusSocket?.close(),
      changeObservers.close(),
    ]);
    await Promise.allSettled([this.page.close(), this.attempts.stop()]);
  }

  private fail(reason: string, error: Error): void {
    this.recordOfNode({ type: 'Warning', reason, action: START, note: error.message });
    this.ending = true;
    this.options.onFatal(error);
  }

  private recordOfNode(event: Omit<ProxyEvent, 'regarding' | 'related'>): void {
    this.options.events.record({
      ...event,
      regarding: nodeSubject(this.reconfiguration.loaded.config.nodeName),
      related: null,
    });
  }

  private async applyOomScore(): Promise<void> {
    const problem = await this.options.machine.host.setOomPriority(this.reconfiguration.loaded.config.oomScoreAdj);
    if (problem !== null) this.options.log.warn(problem.message);
  }

  private makeMetrics(): ProxyMetrics {
    const { loaded, mode, machine } = this.options;
    return new ProxyMetrics({
      host: machine.host,
      mode: countedMode(loaded.config, mode),
      progress: this.progress,
      version: loaded.version,
      features: gateStates(loaded.document.featureGates),
      sources: () => this.sources.states(),
      clock: systemClock,
      wallClock: this.wallClock,
    });
  }

  private makeListeners(): Listeners {
    const { health, metrics, wallClock } = this;
    const { loaded, log } = this.options;
    return new Listeners({
      loaded,
      shares: this.shares,
      health,
      metrics,
      page: this.page,
      openAccessControl,
      clock: systemClock,
      wallClock,
      log,
      setVerbosity: (verbosity) => {
        log.setThresholds({ ...this.reconfiguration.config.logging, verbosity });
      },
      localAddresses: this.options.machine.host.localAddresses,
      observe: async () => (await import('../serve/observed-node.js')).observedNode(this.running()),
      api: () => this.sources.api(),
      unheardMs: () => this.sources.unheardMs(),
      connect: (kubeconfig) => this.sources.connectWebhook(kubeconfig, this.reconfiguration.config),
      onFatal: (reason, error) => {
        this.fail(reason, error);
      },
    });
  }

  private makeChangeObservers(): Promise<ChangeObservers> {
    const { sources, attempts, wallClock, metrics, cycle } = this;
    const { machine, log } = this.options;
    const { families } = cycle;
    return openChangeObservers({
      config: () => this.reconfiguration.config,
      sources,
      families,
      machine,
      attempts,
      metrics,
      wallClock,
      log,
    });
  }

  private makeServiceHealth(): ServiceHealth {
    const { log } = this.options;
    return new ServiceHealth({
      proxyHealthy: () => this.health.healthy(),
      shares: this.shares,
      clock: systemClock,
      log,
      onListenFailure: (service, port, error) => {
        log.error(error, 'cannot listen on a health check node port', { service, port });
        this.options.events.record(listenFailure(this.reconfiguration.config.nodeName, service, port, error));
      },
    });
  }

  private makeCycle(): SyncCycle {
    const { store, serviceHealth, loopback, progress, health, observers } = this;
    const { loaded, machine, mode, log, events, onFatal } = this.options;
    const { localAddresses } = machine.host;
    return new SyncCycle({
      store,
      serviceHealth,
      loopback,
      progress,
      localAddresses,
      health,
      observers,
      events,
      log,
      clock: systemClock,
      settings: cycleSettings(loaded.config),
      mode: cycleMode(mode, loaded.config, machine, log, () => {
        this.reconfiguration.leftoversRemoved();
      }),
      conntrack:
        machine.host.platform === SUBSYSTEM_PLATFORMS.conntrack
          ? new ConntrackReconciler(machine.addon.conntrack)
          : null,
      endingFlows: machine.host.platform === SUBSYSTEM_PLATFORMS.conntrack ? machine.addon.conntrack : null,
      loop: {
        trigger: () => {
          this.loop.trigger();
        },
        triggerNow: () => {
          this.loop.triggerNow();
        },
        proceed: () => {
          this.loop.proceed();
        },
      },
      onGuarded: () => void this.kernelValues.apply(),
      onComplete: () => {
        settleLoadSoon(machine);
        this.announce();
      },
      onFatal,
    });
  }

  /** Says once that the start is over. */
  private announce(): void {
    const { health, store, sources, options } = this;
    if (this.announced || !store.snapshot.ready || !health.healthy()) return;
    this.announced = true;
    const counts = this.cycle.families.map(({ table }) => table.counts);
    const services = greatest(counts.map((each) => each.services));
    const endpoints = counts.reduce((sum, each) => sum + each.endpoints, 0);
    const text = `serving ${counted(services, 'Service')}, ${counted(endpoints, 'endpoint')} in ${this.reconfiguration.config.mode}, healthy after ${process.uptime().toFixed(1)} s`;
    options.log.info(0, text, {
      release: OWN_VERSION,
      sources: sources
        .states()
        .map(({ source }) => source)
        .join(),
    });
  }

  private makeKernelValues(): KernelValues {
    const { metrics, health } = this;
    const { machine, log, events } = this.options;
    return keptValues({
      host: machine.host,
      addon: machine.addon,
      settings: () => this.reconfiguration.kernelSettings(),
      log,
      metrics,
      health,
      events,
      nodeName: () => this.reconfiguration.loaded.config.nodeName,
    });
  }

  /** What `pointsman status`, `explain` and `ui` ask; null when it is switched off. */
  private makeStatusSocket(): StatusSocket | null {
    const path = this.options.loaded.config.statusSocket;
    const { page } = this;
    const pages = statusPages(this.running());
    return path === null ? null : new StatusSocket({ path, pages, page, clock: systemClock, log: this.options.log });
  }

  /** Rows of no real object, for as long as a test needs them. */
  private lend(rows: readonly Row[]): () => void {
    if (this.lender === null) {
      this.lender = this.store.register('selftest');
      this.lender.complete();
    }
    const { lender } = this;
    lender.apply(rows.map((row) => ({ type: 'upsert', row })));
    return () => {
      lender.apply(rows.map((row) => ({ type: 'remove', ref: refOf(row) })));
    };
  }

  /** What may be looked at. */
  private running(): RunningProcess {
    const { store, health, progress, metrics, sources, options } = this;
    return {
      release: OWN_VERSION,
      host: options.machine.host,
      snapshot: store.snapshot,
      health,
      progress,
      families: this.cycle.families,
      now: () => systemClock.now(),
      loaded: () => this.reconfiguration.loaded,
      kubernetes: sources,
      configuration: () => configurationFields(this.reconfiguration.loaded.document),
      defaults: () => defaultSettings(this.reconfiguration.config.mode, options.machine.host.platform),
      refusal: () => this.health.refusal,
      planned: () => planSettings(this.reconfiguration.config),
      onChange: (listener) => store.onChange(listener),
      latencies: () => metrics.latencies(),
      metrics: () => metrics.scrape('text'),
      sources: () => sources.states(),
      sourceErrors: () => sources.errors(),
      waitingFor: () => store.waitingFor(),
      fullAffinity: (family) => this.overflow.of(family),
      loopbackFailures: (family) => this.loopback.failures(family),
      lend: (rows) => this.lend(rows),
      suspect: (family) => {
        this.cycle.suspect(family);
      },
      leftOut: () => sources.leftOut(),
      silentListeners: () => this.listeners.silent(),
      crowding: () => this.shares.crowded,
      logFaults: () => [
        ...logFault('--audit-log-path', this.listeners.auditFault()),
        ...logFault('--change-log-path', this.changeObservers.logFault()),
      ],
      attempts: this.attempts,
      ...(this.foreign === null ? {} : { foreign: this.foreign }),
      traffic: () => this.changeObservers.telemetry?.traffic() ?? null,
      trafficOf: (service) => this.changeObservers.telemetry?.trafficOf(service) ?? null,
    };
  }
}

function logFault(flag: string, reason: string | null): readonly LogFault[] {
  return reason === null ? [] : [{ flag, reason }];
}
