import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.js';
import { NO_EVENTS } from '../../../src/base/events.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import { startKubernetes, type RunningKubernetes } from '../../../src/sources/kubernetes/source.js';
import { SeededRandom } from '../random.js';
import { RecordingLog } from '../recording-log.js';
import type { Story } from '../scenario-file.js';
import { ScenarioProcess } from '../scenario-process.js';
import { QUICK_TIMING } from '../scenario-source.js';
import type { ScenarioMode, ScenarioWorld } from '../scenario-world.js';
import type { Cluster, Versions } from './cluster.js';
import { Mortal } from './mortal.js';

const TIMEOUT_MS = 60_000;
/** iptables.syncPeriod and its like, as they are without a word. */
const SYNC_PERIOD_MS = 30_000;
const CONTENT_TYPES = ['application/json', 'application/vnd.kubernetes.protobuf'] as const;

/** One process on the node, with what it reads from. */
interface Life {
  readonly process: ScenarioProcess;
  readonly kernel: Mortal;
  readonly source: RunningKubernetes;
  readonly connection: ApiConnection;
  readonly log: RecordingLog;
}

/** A node: a kernel on which one process after the other follows a cluster. */
export class HistoryNode {
  private lives = 0;

  private constructor(
    private readonly mode: ScenarioMode,
    private readonly story: Story,
    private readonly cluster: Cluster,
    readonly world: ScenarioWorld,
    private life: Life,
  ) {}

  static async start(mode: ScenarioMode, story: Story, cluster: Cluster): Promise<HistoryNode> {
    const world = mode.world(story.localAddresses);
    return new HistoryNode(mode, story, cluster, world, await begin(mode, story, cluster, world, 0));
  }

  get process(): ScenarioProcess {
    return this.life.process;
  }

  /** Resolves when the process has read all that was written before the marks. */
  async follow(marks: Versions): Promise<void> {
    const { source, log } = this.life;
    const end = performance.now() + TIMEOUT_MS;
    const isBehind = (): boolean =>
      source.status().some(({ resource, version, synced }) => !synced || Number(version) < wanted(marks, resource)) ||
      !this.process.store.snapshot.ready;
    while (isBehind()) {
      if (performance.now() > end)
        throw new Error(`not at ${JSON.stringify([marks, source.status()])}: ${log.lines.slice(-10).join('; ')}`);
      await delay(1);
    }
  }

  /** One pass, which may fail where somebody else changed the rules. Nothing reaches the kernel before all sources have been read. */
  async sync(touched = false): Promise<void> {
    if (this.process.store.snapshot.ready) await this.process.sync(touched).catch(() => undefined);
  }

  async syncWithFaults(seed: number): Promise<void> {
    this.world.failAtRandom(new SeededRandom(seed));
    await this.sync();
    this.world.failNoMore();
  }

  /** The process is killed in a pass, or after it where that writes less; another one starts. */
  async killProcess(write: number, happened: boolean): Promise<void> {
    this.life.kernel.killAt(write, happened);
    await this.sync();
    await this.end();
    this.life = await begin(this.mode, this.story, this.cluster, this.world, ++this.lives);
  }

  async wait(ms: number): Promise<void> {
    if (this.process.store.snapshot.ready) await this.process.period(ms).catch(() => undefined);
  }

  async twoPeriods(): Promise<void> {
    await this.wait(SYNC_PERIOD_MS);
    await this.process.period(SYNC_PERIOD_MS);
  }

  async end(): Promise<void> {
    const { process, source, connection } = this.life;
    process.stop();
    await source.stop();
    connection.close();
  }
}

function wanted(marks: Versions, resource: string): number {
  return resource === 'services' || resource === 'endpointslices' || resource === 'nodes' ? marks[resource] : 0;
}

async function begin(
  mode: ScenarioMode,
  story: Story,
  cluster: Cluster,
  world: ScenarioWorld,
  life: number,
): Promise<Life> {
  const kernel = new Mortal(world.addon);
  const process = await ScenarioProcess.start(mode, world, story, kernel.addon);
  process.complete();
  const log = new RecordingLog();
  const connection = await cluster.connect();
  const source = startKubernetes(
    {
      connection,
      nodeName: story.settings.nodeName,
      acceptContentTypes: '',
      nodeRequired: false,
      contentType: CONTENT_TYPES[life % 2] ?? '',
      configSyncPeriodMs: 1,
      events: NO_EVENTS,
    },
    process.store,
    log,
    {
      clock: systemClock,
      random: Math.random,
      timing: { ...QUICK_TIMING, silenceMs: cluster.silenceMs, headersMs: cluster.silenceMs },
    },
  );
  return { process, kernel, source, connection, log };
}
