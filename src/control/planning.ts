import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import type { Planner } from '../plan/planner.js';
import type { Snapshot, StateChanges } from '../state/snapshot.js';

/** After so long in one turn others have theirs: health is answered within a few of them. */
export const SLICE_MS = 50;

export interface PlanningParts {
  readonly planner: Pick<Planner, 'plan'>;
  /** What is planned now, which counts as taken; null: nothing can be planned at present. */
  readonly take: () => Taken | null;
  readonly log: Log;
  readonly clock: Clock;
}

interface Taken {
  readonly snapshot: Snapshot;
  readonly changes: StateChanges;
  /** So many entries one plan of changes has, of all Services. */
  readonly most: number;
}

/** Whether everything could be planned; null: nothing is to be made of it, as the process ends or nothing can be planned any more. */
type Planned = boolean | null;

type Steps = ReturnType<Planner['plan']>;

/**
 * Makes plans, in slices of time: between two Services others have their turn once a slice is over. What comes meanwhile waits for the next plan. A plan under way
 * when settings change is given up, and another one made.
 */
export class Planning {
  private stopped = false;
  /** What could not be planned the last time, as the log has said. */
  private failures: ReadonlySet<string> = new Set();

  constructor(private readonly parts: PlanningParts) {}

  /** No promise where it takes no longer than a slice. @throws when nothing could be planned. */
  plan(): Planned | Promise<Planned> {
    const steps = this.begin();
    if (steps === null) return null;
    const failures = this.slice(steps);
    return Array.isArray(failures) ? this.report(failures) : this.planOn(steps, failures);
  }

  stop(): void {
    this.stopped = true;
  }

  private begin(): Steps | null {
    const taken = this.parts.take();
    return taken === null ? null : this.parts.planner.plan(taken.snapshot, taken.changes, taken.most);
  }

  /** What could not be planned; null: the plan was given up; undefined: there is more to plan. */
  private slice(steps: Steps): readonly Error[] | null | undefined {
    const { clock } = this.parts;
    const end = clock.now() + SLICE_MS;
    try {
      for (;;) {
        const { done, value } = steps.next();
        if (done === true) return value;
        if (clock.now() >= end) return undefined;
      }
    } catch (error) {
      this.report([error]);
      throw error;
    }
  }

  private async planOn(first: Steps, found: readonly Error[] | null | undefined): Promise<Planned> {
    let [steps, failures]: [Steps | null, typeof found] = [first, found];
    for (;;) {
      if (failures === null) steps = this.begin();
      else await turn();
      if (this.stopped || steps === null) return null;
      failures = this.slice(steps);
      if (Array.isArray(failures)) return this.report(failures);
    }
  }

  /** Speaks of each when it breaks and when the reason changes, not at every retry. */
  private report(failures: readonly unknown[]): boolean {
    const reported = this.failures;
    this.failures = new Set(failures.map(messageOf));
    for (const failure of failures)
      if (!reported.has(messageOf(failure))) this.parts.log.error(failure, 'planning failed, will be retried');
    return failures.length === 0;
  }
}
