import { join } from 'node:path';
import type { Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { openEvents } from '../../src/cli/events.js';
import { NodeProxy } from '../../src/cli/node-proxy.js';
import { openTracing, type OpenTracing } from '../../src/cli/tracing.js';
import type { Loaded } from '../../src/config/load.js';
import { logTransactions, prepareMode } from '../../src/control/mode.js';
import type { Host } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import type { Logger } from '../../src/observe/log.js';
import type { ProcessTracing } from '../../src/observe/tracing.js';
import { fromFile } from '../config/load-from.js';
import { nodeObject, serviceObject, sliceObject } from '../support/api-objects.js';
import { ApiServer } from '../support/api-server/server.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { eventually } from '../support/manifests.js';
import { OtlpCollector } from '../support/otlp-collector.js';
import { RecordingLog } from '../support/recording-log.js';
import type { ScenarioMode, ScenarioWorld } from '../support/scenario-world.js';

type Mode = Loaded['config']['mode'];

/** No batch takes that long, even where every core is busy with something else. */
const PATIENCE_MS = 60_000;

export const HEADER = 'apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n';

class ProxyLog extends RecordingLog implements Logger {
  enabled(): boolean {
    return false;
  }

  setThresholds(): void {
    // All lines are kept.
  }

  prepare(): Promise<() => void> {
    return Promise.resolve(() => undefined);
  }
}

/** A process on a kernel in memory, an API server and a collector, or its traces alone. */
export class World {
  readonly server = new ApiServer();
  readonly kernel = new FakeKernel(loadCompiler());
  readonly collector = new OtlpCollector();
  readonly log = new ProxyLog();
  readonly counts = { exported: 0, dropped: 0 };
  private proxy: NodeProxy | null = null;
  private traced: OpenTracing | null = null;

  private readonly mode: Mode;
  private readonly world: Pick<ScenarioWorld, 'addon' | 'transactions'>;

  /** @param stories of another mode than nftables, whose kernel is another. */
  constructor(
    private readonly t: Test,
    stories: ScenarioMode | null = null,
  ) {
    const { kernel } = this;
    this.mode = stories === null ? 'nftables' : (stories.definition.name as Mode);
    this.world = stories?.world([parseAddress('192.168.0.2')!]) ?? {
      addon: kernel,
      get transactions() {
        return kernel.committed.length;
      },
    };
    t.teardown(async () => {
      await this.stop();
      this.collector.stop();
      await this.server.stop();
    });
  }

  /** Traces alone. @param limits how long the collector has to take a batch. */
  async open(more: string, limits = { exportTimeoutMs: PATIENCE_MS }): Promise<ProcessTracing> {
    const { collector, log, counts, mode, t } = this;
    if (collector.port === 0) await collector.start();
    const file = join(t.testdir({ tracing: `${HEADER}endpoint: ${collector.endpoint}\n${more}` }), 'tracing');
    const config = { nodeName: 'worker-1.example', mode } as const;
    const traced = openTracing({ file, config, version: '0.1.0', addon: this.world.addon, log, ...limits });
    if ('problem' in traced) throw new Error(traced.problem);
    traced.tracing.countBy({ spansEnded: (result, count) => (counts[result] += count) });
    this.traced = traced;
    return traced.tracing;
  }

  /** The whole process, and its first sync. */
  async start(more: string): Promise<void> {
    const { server, log, t } = this;
    const tracing = await this.open(more);
    server.put(nodeObject('worker-1.example'), serviceObject('web'), sliceObject('web-1', 'web', ['10.0.0.1']));
    await server.start();
    const loaded = this.configuration();
    const host: Host = {
      ...LINUX_HOST,
      families: () => ['IPv4'],
      applyKernelValues: () => Promise.resolve({ written: [], problems: [], seen: [] }),
      setOomPriority: () => Promise.resolve(null),
    };
    const machine = { host, addon: this.traced?.addon ?? this.world.addon };
    const mode = await prepareMode(loaded.config, machine, ['IPv4'], log, logTransactions(log));
    const events = await openEvents(loaded.config, log);
    this.proxy = new NodeProxy({
      loaded,
      machine,
      mode,
      log,
      events,
      tracing,
      onFatal: (error) => t.fail(error.message),
    });
    const { counts } = this;
    tracing.countBy({ spansEnded: (result, count) => (counts[result] += count) });
    await this.proxy.start();
    await this.committed(1);
  }

  /** How many transactions the kernel took so far. */
  get transactions(): number {
    return this.world.transactions;
  }

  /** Waits for transactions, the spans of which may still be on their way. */
  async committed(count: number): Promise<void> {
    await eventually(() => this.world.transactions >= count, `${count} transactions`);
  }

  async stop(): Promise<void> {
    await this.proxy?.stop();
    await this.traced?.stop();
    this.proxy = null;
    this.traced = null;
  }

  private configuration(): Loaded {
    const loaded = fromFile(`mode: ${this.mode}\nclusterCIDR: 10.0.0.0/8\n`, [
      '--status-socket=',
      `--master=${this.server.url}`,
    ]);
    const metrics = { address: parseAddress('127.0.0.1')!, port: 0 };
    return { ...loaded, config: { ...loaded.config, healthz: null, metrics, manifests: [] } };
  }
}
