import { READY, type ObjectKey } from '../state/rows.js';
import { has, type Candidate } from './candidates.js';

/** The number of steps in which an endpoint reaches its weight; it begins with the first. */
export const STEPS = 10;
/** Steps of all endpoints are taken at multiples of this, so that many come in one sync. */
const BATCH_MS = 1000;

/** How far an endpoint of a Service port has come: 1 to {@link STEPS}. */
export type Steps = (key: string) => number;

/** For the planning of one Service: of each of its ports. */
export type Warming = (port: string, candidates: Iterable<Candidate>) => Steps;

interface Warm {
  /** When each ready endpoint of a port became ready, by port; before all time for the first endpoints. */
  readonly ports: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** When the next step is due; Infinity: all have come to their weight. */
  readonly due: number;
}

/** Endpoints that became ready after their Service's first plan, and how far they have come. The caller passes the time. */
export class SlowStart {
  private readonly services = new Map<ObjectKey, Warm>();

  /** Services of which an endpoint is due for its next step. */
  due(now: number): readonly ObjectKey[] {
    return [...this.services].flatMap(([service, { due }]) => (due <= now ? [service] : []));
  }

  /** When the next one is; null: never. */
  get dueAt(): number | null {
    let first = Infinity;
    for (const { due } of this.services.values()) first = Math.min(first, due);
    return first === Infinity ? null : Math.ceil(first / BATCH_MS) * BATCH_MS;
  }

  forget(service: ObjectKey): void {
    this.services.delete(service);
  }

  /** @param duration in milliseconds. */
  planning(service: ObjectKey, duration: number, now: number): Warming {
    const before = this.services.get(service) ?? null;
    // One whose ports are not asked about has no next step.
    this.services.delete(service);
    const ports = new Map<string, ReadonlyMap<string, number>>();
    let due = Infinity;
    return (port, candidates) => {
      const [held, ready] = [before?.ports.get(port) ?? null, new Map<string, number>()];
      for (const candidate of candidates) {
        if (!has(candidate, READY)) continue;
        const since = held?.get(candidate.key) ?? (before === null ? -Infinity : now);
        ready.set(candidate.key, since);
        const next = since + (duration * (stepAt(since, duration, now) + 1)) / STEPS;
        if (stepAt(since, duration, now) < STEPS) due = Math.min(due, next);
      }
      ports.set(port, ready);
      this.services.set(service, { ports, due });
      return (key) => stepAt(ready.get(key) ?? -Infinity, duration, now);
    };
  }
}

function stepAt(since: number, duration: number, now: number): number {
  if (since === -Infinity) return STEPS;
  return Math.min(STEPS, Math.max(1, Math.floor(((now - since) * STEPS) / duration)));
}
