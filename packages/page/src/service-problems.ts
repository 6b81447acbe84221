import { serviceOf } from '../../../src/plan/explain.js';
import type { ServicePlan } from '../../../src/plan/types.js';
import type { ObjectKey } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ServiceProblem } from './api.js';

/** What is to be looked at, as of the moment at which it was made: few Services have something. */
export class ServiceProblems {
  private readonly found = new Map<ObjectKey, Set<ServiceProblem>>();

  constructor(private readonly running: Pick<RunningProcess, 'families' | 'progress'>) {
    for (const { table, family } of running.families) {
      for (const key of table.unplanned.keys()) this.note(key, 'unplanned');
      for (const { servicePort } of running.progress.of(family)?.aside ?? [])
        if (servicePort !== null) this.note(serviceOf({ servicePort }), 'set-aside');
      for (const { first } of table.conflictPairs())
        for (const servicePort of [first.winner, first.loser]) this.note(serviceOf({ servicePort }), 'conflict');
    }
  }

  /** Of a Service, the worst first. */
  of(key: ObjectKey): readonly ServiceProblem[] {
    const found = [...(this.found.get(key) ?? [])];
    const leadsNowhere = this.running.families.some(({ table }) => table.plan(key)?.frontends.some(isDead) ?? false);
    return leadsNowhere ? [...found, 'no-endpoints'] : found;
  }

  /** Those that have something that does not follow from their own objects. */
  get told(): ReadonlyMap<ObjectKey, ReadonlySet<ServiceProblem>> {
    return this.found;
  }

  private note(key: ObjectKey, problem: ServiceProblem): void {
    const problems = this.found.get(key) ?? new Set();
    this.found.set(key, problems.add(problem));
  }
}

/** Where there are endpoints on other nodes only, that is what was asked for. */
function isDead({ whenEmpty, endpoints }: ServicePlan['frontends'][number]): boolean {
  return whenEmpty === 'reject' && endpoints.count === 0;
}
