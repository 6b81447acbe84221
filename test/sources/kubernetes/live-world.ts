import { setTimeout as delay } from 'node:timers/promises';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { NO_EVENTS } from '../../../src/base/events.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import {
  startKubernetes,
  type KubernetesOptions,
  type RunningKubernetes,
} from '../../../src/sources/kubernetes/source.js';
import { DEFAULT_TIMING, type Timing } from '../../../src/sources/kubernetes/timing.js';
import type { ResourceStatus } from '../../../src/sources/kubernetes/watch/status.js';
import { Store } from '../../../src/state/store.js';
import { SimpleConnection } from '../../support/api-server/connection.js';
import type { ApiServerOptions } from '../../support/api-server/options.js';
import { ApiServer } from '../../support/api-server/server.js';
import { RecordingLog } from '../../support/recording-log.js';

/** Times a test can wait for. */
export const QUICK: Timing = { ...DEFAULT_TIMING, backoffInitialMs: 4, backoffMaxMs: 40, healthyMs: 1000 };

/** A server, the source, and the state, with real connections between them. */
export class LiveWorld {
  readonly server: ApiServer;
  readonly store = new Store();
  readonly log = new RecordingLog();
  /** Milliseconds for which the source has set timers. */
  readonly timers: number[] = [];
  private readonly clock: Clock = {
    now: () => systemClock.now(),
    callAt: (at, callback) => {
      this.timers.push(at - systemClock.now());
      return systemClock.callAt(at, callback);
    },
  };
  private connection: ApiConnection | null = null;
  private running: RunningKubernetes | null = null;

  constructor(serverOptions: Partial<ApiServerOptions> = {}) {
    this.server = new ApiServer(serverOptions);
  }

  /** Starts the server, unless it runs, and the source. */
  async start(
    options: Partial<KubernetesOptions> = {},
    timing: Partial<Timing> = {},
    connection: ApiConnection | null = null,
  ): Promise<void> {
    if (!this.server.listening) await this.server.start();
    this.connection = connection ?? new SimpleConnection(this.server.url);
    this.running = startKubernetes(
      {
        connection: this.connection,
        nodeName: 'node-1',
        contentType: '',
        acceptContentTypes: '',
        configSyncPeriodMs: 900_000,
        nodeRequired: false,
        events: NO_EVENTS,
        ...options,
      },
      this.store,
      this.log,
      { clock: this.clock, random: Math.random, timing: { ...QUICK, ...timing } },
    );
  }

  async stop(): Promise<void> {
    await this.end();
    await this.server.stop();
  }

  /** Starts another source in place of the one that runs; its connection is a new one, to the same server. */
  async follow(options: Partial<KubernetesOptions>): Promise<void> {
    await this.end();
    await this.start({ ...options, ...(this.running === null ? {} : { former: this.running }) });
  }

  /** Ends the source, and takes back what it has read. */
  async withdraw(): Promise<void> {
    await this.end();
    this.running?.withdraw();
  }

  private async end(): Promise<void> {
    await this.running?.stop();
    this.connection?.close();
  }

  status(resource: string): ResourceStatus {
    const status = this.running?.status().find((entry) => entry.resource === resource);
    if (status === undefined) throw new Error(`no resource ${resource}`);
    return status;
  }

  /** Names of the Services known. */
  services(): readonly string[] {
    return [...this.store.snapshot.services()].map(({ name }) => name).sort();
  }

  ready(): Promise<void> {
    return until(() => this.store.snapshot.ready, 'ready');
  }

  /** All watches are open and stand where the server does. */
  inStep(): Promise<void> {
    const watching = ['services', 'endpointslices', 'nodes'];
    return until(() => watching.every((name) => this.status(name).watching), 'watching');
  }
}

/** Waits for something to become true. Throws when it does not, in a time that is long for a busy machine too. */
export async function until(condition: () => boolean, what: string, timeoutMs = 60_000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`never ${what}`);
    await delay(2);
  }
}
