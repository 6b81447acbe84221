import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../src/base/clock.js';
import type { Log } from '../../../src/base/log.js';
import type { Observation } from '../../../src/observe/observations.js';
import { observedNode } from '../../../src/serve/observed-node.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import { RecentActivity } from './activity.js';
import type { Observed, ProblemCount, TriageAnswer } from './api.js';
import { refusedServices } from './refused-services.js';
import type { ServiceOrder } from './service-order.js';
import { SERVICE_PROBLEMS, ServiceProblems } from './service-problems.js';

/** How many Services are looked at before others have their turn: about a millisecond. */
const AT_ONCE = 4096;
const EXAMPLES = 3;
/** Rules of others are read for it. */
const OBSERVED_MS = 15_000;

interface TriageParts {
  readonly running: RunningProcess;
  readonly clock: Clock;
  readonly log: Log;
  readonly order: ServiceOrder;
}

/** What is wrong, by kind. One look serves all requests before something changes. */
export class Triage {
  private readonly activity: RecentActivity;
  private counted: Kept<readonly ProblemCount[]> | null = null;
  private observed: Kept<readonly Observed[]> | null = null;

  constructor(private readonly parts: TriageParts) {
    this.activity = new RecentActivity(parts.running, parts.clock, parts.log);
  }

  close(): void {
    this.activity.forget();
  }

  async answer(): Promise<TriageAnswer> {
    const [problems, observations, activity] = await Promise.all([
      this.problems(),
      this.observations(),
      this.activity.answer(),
    ]);
    return { problems, observations, activity };
  }

  private problems(): Promise<readonly ProblemCount[]> {
    const { running, order } = this.parts;
    // Plans decide them, and the kernel's answers.
    const syncs = running.families.map(({ history: { syncs, failures } }) => [syncs, failures.count]);
    const of = JSON.stringify([running.progress.plans, running.snapshot.serviceCount, syncs]);
    if (this.counted?.of === of) return this.counted.answer;
    const answer = countProblems(running, order);
    this.counted = { of, answer };
    answer.catch(() => (this.counted = null));
    return answer;
  }

  private observations(): Promise<readonly Observed[]> {
    const { running, clock } = this.parts;
    const of = String(Math.floor(clock.now() / OBSERVED_MS));
    if (this.observed?.of === of) return this.observed.answer;
    const answer = observe(running);
    this.observed = { of, answer };
    answer.catch(() => (this.observed = null));
    return answer;
  }
}

/** An answer, and what it is the answer for. */
interface Kept<Answer> {
  readonly of: string;
  readonly answer: Promise<Answer>;
}

/** Of these the reasons of health tell, with the moment at which they began. */
const REASONS: ReadonlySet<Observation['kind']> = new Set(['configuration', 'sync']);

async function observe(running: RunningProcess): Promise<readonly Observed[]> {
  const found = await observedNode(running);
  return found.flatMap(({ kind, severity, text, remedy }) => (REASONS.has(kind) ? [] : [{ severity, text, remedy }]));
}

async function countProblems(running: RunningProcess, order: ServiceOrder): Promise<readonly ProblemCount[]> {
  const problems = new ServiceProblems(running);
  const keys = [...refusedServices(running).map(({ key }) => key), ...order.keys()];
  const found = new Map(SERVICE_PROBLEMS.map((problem) => [problem, [] as string[]]));
  for (let start = 0; start < keys.length; start += AT_ONCE) {
    if (start > 0) await turn();
    for (const key of keys.slice(start, start + AT_ONCE))
      for (const problem of problems.of(key)) found.get(problem)?.push(key);
  }
  return [...found]
    .filter(([, services]) => services.length > 0)
    .map(([problem, services]) => ({ problem, count: services.length, examples: services.slice(0, EXAMPLES) }));
}
