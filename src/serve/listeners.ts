import type { Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { IPAddress } from '../base/ip.js';
import type { WallClock } from '../base/timestamp.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/errors.js';
import type { HostPort } from '../config/host-port.js';
import type { Loaded } from '../config/load.js';
import { configurationFields } from '../config/write.js';
import type { HealthState } from '../record/health.js';
import type { Observation, SilentListener } from '../observe/observations.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';
import type { AccessControl, AccessControlParts } from './access-control.js';
import type { ClientShares } from './client-shares.js';
import { HealthServer } from './healthz.js';
import type { Bind } from './http-endpoint.js';
import type { Page } from './page.js';
import { MetricsServer, type ConfiguredPages } from './metrics-server.js';

interface ListenersParts {
  readonly loaded: Loaded;
  readonly shares: ClientShares;
  readonly health: HealthState;
  readonly metrics: ProxyMetrics;
  readonly setVerbosity: (verbosity: number) => void;
  /** Those that this node has now. */
  readonly localAddresses: () => readonly IPAddress[];
  /** To ask who may read what, where flags say so; null: there is none. */
  readonly api: () => ApiConnection | null;
  /** Milliseconds since that API server was last heard of; null: never. */
  readonly unheardMs: () => number | null;
  /** To webhooks, by a kubeconfig. */
  readonly connect: (kubeconfig: string) => Promise<ApiConnection>;
  /** Opens what stands in front of the metrics address. */
  readonly openAccessControl: (parts: AccessControlParts) => Promise<AccessControl | { readonly problem: string }>;
  /** What stands in the way of packets beside our rules. */
  readonly observe: () => Promise<readonly Observation[]>;
  readonly page: Pick<Page, 'answerNetwork'>;
  readonly clock: Clock;
  readonly wallClock: WallClock;
  readonly log: Log;
  /** Called when an address cannot be had that must be, with the event's reason. */
  readonly onFatal: (reason: string, error: Error) => void;
}

/** The HTTP servers of the configuration's addresses, which follow it: health checks, and metrics with what belongs to them. */
export class Listeners {
  private loaded: Loaded;
  private readonly startedAt: bigint;
  private readonly health: HealthServer;
  private readonly metrics: MetricsServer;
  private accessControl: AccessControl | null = null;
  private closed = false;

  constructor(private readonly parts: ListenersParts) {
    const { loaded, clock, wallClock, log, metrics, onFatal } = parts;
    const { config } = loaded;
    this.loaded = loaded;
    this.startedAt = wallClock();
    this.health = new HealthServer({
      bind: healthBind(config),
      shares: parts.shares,
      clock,
      log,
      state: parts.health,
      observe: parts.observe,
      onFatal: (error) => {
        onFatal('FailedToStartProxierHealthcheck', error);
      },
      onAnswer: (path, status) => {
        metrics.healthAnswered(path, status);
      },
    });
    this.metrics = new MetricsServer({
      bind: metricsBind(config),
      shares: parts.shares,
      clock,
      log,
      metrics,
      checksHost: () => this.loaded.config.secured === null,
      configuration: () => configurationFields(this.loaded.document),
      ...this.pages(loaded),
      page: (request, response) => parts.page.answerNetwork(this.loaded.config, request, response),
      accessControl: () => this.accessControl,
      onFatal: (error) => {
        onFatal('FailedToStartMetricServer', error);
      },
    });
  }

  /**
   * Resolves after the first attempts to bind.
   *
   * @throws ConfigError when the files of the flags for TLS cannot be used.
   */
  async start(): Promise<void> {
    // A start that fails elsewhere closes what is not open yet.
    if (this.closed) return;
    await Promise.all([this.health.start(), this.startMetrics()]);
  }

  /** Serves what another configuration says, where it says. Rejects when an address cannot be had, and then serves as before. */
  async follow(loaded: Loaded): Promise<void> {
    await this.health.move(healthBind(loaded.config));
    try {
      await this.metrics.move(metricsBind(loaded.config));
    } catch (error) {
      await this.health.move(healthBind(this.loaded.config));
      throw error;
    }
    this.loaded = loaded;
    this.metrics.show(this.pages(loaded));
  }

  /** Addresses of the configuration that are not served, and why. */
  silent(): readonly SilentListener[] {
    return [this.health.silent(), this.metrics.silent()].filter((each) => each !== null);
  }

  /** Why Events of the audit log are lost now; null: they are not. */
  auditFault(): string | null {
    return this.accessControl?.auditFault() ?? null;
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled([this.health.close(), this.metrics.close()]);
    // What was being answered is written down by then.
    await this.accessControl?.close();
  }

  private async startMetrics(): Promise<void> {
    this.accessControl = await this.openAccessControl();
    if (this.closed) await this.accessControl?.close();
    else await this.metrics.start();
  }

  private async openAccessControl(): Promise<AccessControl | null> {
    const { metrics, localAddresses, api, unheardMs, connect, clock, wallClock, log } = this.parts;
    const { secured, nodeName } = this.loaded.config;
    if (secured === null) return null;
    const now = (): number => Number(wallClock() / 1000n) / 1000;
    const receivedAt = (): number | null => {
      const since = unheardMs();
      return since === null ? null : now() - since;
    };
    const { AccessMetrics } = await import('../observe/access-metrics.js');
    const opened = await this.parts.openAccessControl({
      config: secured,
      nodeName,
      addresses: localAddresses,
      api,
      connect,
      clock,
      log,
      observer: metrics.register((registry) => new AccessMetrics(registry)),
      now,
      receivedAt,
    });
    if ('problem' in opened) throw new ConfigError('CONFIG_INVALID', null, [opened.problem]);
    return opened;
  }

  private pages({ config, flags, version }: Loaded): ConfiguredPages {
    const { wallClock, setVerbosity } = this.parts;
    return {
      mode: config.mode,
      flags: config.flagz ? flags : null,
      status: config.statusz ? { version, startedAt: this.startedAt, wallClock } : null,
      setVerbosity: config.profiling ? setVerbosity : null,
    };
  }
}

function healthBind({ healthz, bindAddressHardFail }: Config): Bind | null {
  return healthz && bindOf(healthz, bindAddressHardFail);
}

function metricsBind({ metrics, bindAddressHardFail }: Config): Bind {
  return bindOf(metrics, bindAddressHardFail);
}

function bindOf({ address, port }: HostPort, hardFail: boolean): Bind {
  return { address, port, hardFail };
}
