import type { FrontendPlan } from '../../../src/plan/types.js';
import type { ObjectKey } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ServiceProblem } from './api.js';
import { refusedServices } from './refused-services.js';
import { portNameOf, serviceOf } from '../../../src/plan/frontend-key.js';

/** The worst first. */
export const SERVICE_PROBLEMS: readonly ServiceProblem[] = [
  'refused',
  'unplanned',
  'quarantined',
  'conflict',
  'port-name',
  'no-endpoints',
  'no-local-endpoints',
  'left-out',
  'limitation',
];

/** The problems of Services as of the moment at which this was made. */
export class ServiceProblems {
  private readonly found = new Map<ObjectKey, Set<ServiceProblem>>();

  constructor(private readonly running: Pick<RunningProcess, 'families' | 'progress' | 'snapshot' | 'leftOut'>) {
    for (const { service } of running.leftOut()) if (service !== null) this.note(service, 'left-out');
    for (const { key } of refusedServices(running)) this.found.set(key, new Set(['refused']));
    for (const { table, family } of running.families) {
      for (const key of table.unplanned.keys()) this.note(key, 'unplanned');
      for (const { servicePort } of running.progress.of(family)?.quarantined ?? [])
        if (servicePort !== null) this.note(serviceOf(servicePort), 'quarantined');
      for (const { first } of table.conflictPairs())
        for (const servicePort of [first.winner, first.loser]) this.note(serviceOf(servicePort), 'conflict');
    }
  }

  /** Problems of a Service, the worst first. */
  of(key: ObjectKey): readonly ServiceProblem[] {
    const planned = this.planned(key);
    const found = this.found.get(key);
    // Most Services have none: no garbage for them.
    if (planned === null) return found === undefined ? NONE : SERVICE_PROBLEMS.filter((each) => found.has(each));
    return SERVICE_PROBLEMS.filter((each) => planned.has(each) || found?.has(each) === true);
  }

  /** Services with a problem that does not follow from their own objects. */
  get reported(): ReadonlyMap<ObjectKey, ReadonlySet<ServiceProblem>> {
    return this.found;
  }

  /** What its plan has. Null: nothing. */
  private planned(key: ObjectKey): ReadonlySet<ServiceProblem> | null {
    let found: Set<ServiceProblem> | null = null;
    for (const { table } of this.running.families) {
      const plan = table.plan(key);
      if (plan === undefined) continue;
      if (plan.limitations.length > 0) (found ??= new Set()).add('limitation');
      for (const frontend of plan.frontends) {
        if ((frontend.localEndpoints ?? frontend.endpoints).count > 0) continue;
        (found ??= new Set()).add(this.withoutEndpoints(key, frontend));
      }
    }
    return found;
  }

  private withoutEndpoints(key: ObjectKey, { whenEmpty, servicePort, protocol }: FrontendPlan): ServiceProblem {
    if (whenEmpty === 'drop') return 'no-local-endpoints';
    const slices = this.running.snapshot.slicesOf(key);
    const name = portNameOf(servicePort);
    const hasPort = slices.some(({ ports }) => ports.some((port) => port.name === name && port.protocol === protocol));
    return !hasPort && slices.some(({ count, ports }) => count > 0 && ports.length > 0) ? 'port-name' : 'no-endpoints';
  }

  private note(key: ObjectKey, problem: ServiceProblem): void {
    const problems = this.found.get(key) ?? new Set();
    this.found.set(key, problems.add(problem));
  }
}

const NONE: readonly ServiceProblem[] = [];
