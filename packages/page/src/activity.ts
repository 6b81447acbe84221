import type { Clock } from '../../../src/base/clock.js';
import type { Log } from '../../../src/base/log.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { Activity, BusyService } from './api.js';
import { syncsSince } from './history.js';

const STEP_MS = 5000;
/** 15 minutes. */
const KEPT = 180;
/** So many steps after the last question it stops, and forgets. */
const IDLE_STEPS = KEPT;
const BUSIEST = 8;

interface Step {
  readonly syncMs: number | null;
  readonly changes: number;
  readonly connections: number | null;
  readonly refused: number | null;
}

interface Sums {
  connections: number;
  bytes: number;
  refused: number;
}

/** What was counted at the end of a step. */
interface Counted {
  /** Numbers of the last syncs by family. */
  readonly syncs: readonly number[];
  /** Null: traffic is not counted. */
  readonly traffic: Read | null;
}

/** Traffic by Service, when the kernel's counts were last read: with many flows not in every step. */
interface Read {
  readonly at: number;
  readonly sums: ReadonlyMap<string, Sums>;
}

/** What the node did in each step of the last 15 minutes: measured while the page is open and for 15 minutes after. */
export class RecentActivity {
  private readonly steps: Step[] = [];
  private before: Counted | null = null;
  private endedAt: string | null = null;
  private busiest: readonly BusyService[] | null = null;
  private unasked = 0;
  private cancel: (() => void) | null = null;
  private beginning: Promise<void> | null = null;

  constructor(
    private readonly running: RunningProcess,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async answer(): Promise<Activity> {
    this.unasked = 0;
    this.beginning ??= this.begin();
    await this.beginning;
    const { steps, endedAt, busiest } = this;
    return {
      stepSeconds: STEP_MS / 1000,
      endedAt,
      syncMs: steps.map(({ syncMs }) => syncMs),
      changes: steps.map(({ changes }) => changes),
      connections: steps.map(({ connections }) => connections),
      refused: steps.map(({ refused }) => refused),
      busiest,
    };
  }

  forget(): void {
    this.cancel?.();
    this.cancel = null;
    this.steps.length = 0;
    this.before = null;
    this.endedAt = null;
    this.busiest = null;
    this.beginning = null;
  }

  private async begin(): Promise<void> {
    this.stepLater();
    try {
      this.before = await this.count();
      if (this.before.traffic !== null) this.busiest = [];
    } catch (error) {
      this.log.error(error, 'cannot measure what the node does');
    }
  }

  private stepLater(): void {
    this.cancel = this.clock.callAt(this.clock.now() + STEP_MS, () => void this.step());
  }

  private async step(): Promise<void> {
    if (++this.unasked > IDLE_STEPS) {
      this.forget();
      return;
    }
    this.stepLater();
    try {
      const now = await this.count();
      const { before } = this;
      // It was forgotten meanwhile.
      if (this.cancel === null) return;
      this.before = now;
      this.endedAt = new Date().toISOString();
      if (before === null) return;
      const rates = ratesBetween(before.traffic, now.traffic);
      this.steps.push({ ...this.syncsBetween(before), ...trafficOf(rates) });
      if (this.steps.length > KEPT) this.steps.shift();
      // What was not read since the last step is what it was.
      if (now.traffic === null || rates !== null) this.busiest = busiestOf(rates);
    } catch (error) {
      this.log.error(error, 'cannot measure what the node does');
    }
  }

  private async count(): Promise<Counted> {
    const { families, traffic } = this.running;
    const syncs = families.map(({ history }) => history.syncs);
    const counted = await traffic();
    return { syncs, traffic: counted && { at: counted.at, sums: sumsOf(counted.services) } };
  }

  private syncsBetween({ syncs }: Counted): Pick<Step, 'syncMs' | 'changes'> {
    const ended = this.running.families.flatMap((family, index) => syncsSince(family, syncs[index] ?? 0));
    return {
      syncMs: ended.reduce<number | null>((longest, { syncMs }) => Math.max(longest ?? 0, syncMs), null),
      changes: ended.reduce((sum, { frontends }) => sum + frontends, 0),
    };
  }
}

type Ports = NonNullable<Awaited<ReturnType<RunningProcess['traffic']>>>['services'];

function sumsOf(ports: Ports): ReadonlyMap<string, Sums> {
  const all = new Map<string, Sums>();
  for (const { service, connections, requestBytes, replyBytes, refused } of ports) {
    const sums = all.get(service) ?? { connections: 0, bytes: 0, refused: 0 };
    sums.connections += connections;
    sums.bytes += requestBytes + replyBytes;
    for (const { packets } of refused) sums.refused += packets;
    all.set(service, sums);
  }
  return all;
}

const NOTHING: Sums = { connections: 0, bytes: 0, refused: 0 };

/** Per second, of each Service with traffic. A Service whose count began anew, because it came back, counts from 0. Null: nothing was read since then. */
function ratesBetween(before: Read | null, now: Read | null): readonly BusyService[] | null {
  if (before === null || now === null || now.at <= before.at) return null;
  const seconds = (now.at - before.at) / 1000;
  return [...now.sums].flatMap(([key, after]) => {
    const old = before.sums.get(key) ?? NOTHING;
    const rate = (of: keyof Sums): number => (after[of] >= old[of] ? after[of] - old[of] : after[of]) / seconds;
    const row = { key, connections: rate('connections'), bytes: rate('bytes'), refused: rate('refused') };
    return row.connections + row.bytes + row.refused > 0 ? [row] : [];
  });
}

/** In a step, of all Services. */
function trafficOf(rates: readonly BusyService[] | null): Pick<Step, 'connections' | 'refused'> {
  if (rates === null) return { connections: null, refused: null };
  const inStep = (of: 'connections' | 'refused'): number =>
    Math.round((rates.reduce((sum, each) => sum + each[of], 0) * STEP_MS) / 1000);
  return { connections: inStep('connections'), refused: inStep('refused') };
}

function busiestOf(rates: readonly BusyService[] | null): readonly BusyService[] | null {
  return (
    rates &&
    [...rates].sort((one, other) => other.connections - one.connections || other.bytes - one.bytes).slice(0, BUSIEST)
  );
}
