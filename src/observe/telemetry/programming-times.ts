import { FAMILIES, type Family } from '../../base/ip.js';
import type { ObjectKey } from '../../state/rows.js';
import type { AcknowledgedSync, Commit, CycleObserver } from '../cycle-observer.js';
import type { MetricFamily } from '../exposition.js';
import { OTHER } from './service-series.js';

/** In seconds. Few, as each is a series for each Service; prom-client has no histogram that needs none. */
const BOUNDS = [0.002, 0.005, 0.01, 0.05, 0.2, 1, 5, 30];

interface Times {
  /** Not cumulative; the last is for what is longer than every bound. */
  readonly counts: Float64Array;
  sum: number;
}

/** When the first of the changes of a Service that wait was heard of, in milliseconds. */
type Waiting = Map<ObjectKey, number>;

/** How long changes of each Service took from the event to the kernel's acknowledgement. */
export class ProgrammingTimes implements CycleObserver {
  private readonly times = new Map<ObjectKey, Times>();
  private readonly queued: Readonly<Record<Family, Waiting>> = { IPv4: new Map(), IPv6: new Map() };
  private readonly taken: Readonly<Record<Family, Waiting>> = { IPv4: new Map(), IPv6: new Map() };
  /** Families of which something was acknowledged: what was read at the start has waited for all that was. */
  private readonly begun = new Set<Family>();

  /**
   * @param now milliseconds, on performance.now's clock.
   * @param max how many Services are distinguished.
   */
  constructor(
    private readonly now: () => number,
    private readonly max: number,
  ) {}

  committed({ edits, receivedAt }: Pick<Commit, 'edits' | 'receivedAt'>): void {
    const at = receivedAt ?? this.now();
    for (const { before, after } of edits) {
      const row = after ?? before;
      if (row?.kind !== 'Service' && row?.kind !== 'EndpointSlice') continue;
      const service = `${row.namespace}/${row.kind === 'Service' ? row.name : row.serviceName}`;
      for (const family of row.kind === 'Service' ? FAMILIES : [row.family]) first(this.queued[family], service, at);
    }
  }

  took(family: Family): void {
    for (const [service, at] of this.queued[family]) first(this.taken[family], service, at);
    this.queued[family].clear();
  }

  deferred(family: Family, services: ReadonlySet<ObjectKey>): void {
    const [taken, queued] = [this.taken[family], this.queued[family]];
    for (const service of services) {
      const at = taken.get(service);
      if (at === undefined) continue;
      taken.delete(service);
      queued.set(service, at);
    }
  }

  acknowledged({ report: { family } }: Pick<AcknowledgedSync, 'report'>): void {
    const now = this.now();
    if (this.begun.has(family))
      for (const [service, at] of this.taken[family]) this.observe(service, (now - at) / 1000);
    this.begun.add(family);
    this.taken[family].clear();
  }

  retain(exists: (service: ObjectKey) => boolean): void {
    for (const service of this.times.keys()) if (service !== OTHER && !exists(service)) this.times.delete(service);
  }

  family(): MetricFamily {
    return {
      name: 'pointsman_service_programming_duration_seconds',
      help: 'Time from a change of a Service or its endpoints reaching this process to the kernel acknowledging it, by IP family.',
      type: 'histogram',
      values: [...this.times].flatMap(([service, times]) => samplesOf(service, times)),
    };
  }

  private observe(service: ObjectKey, seconds: number): void {
    const times = this.timesOf(service);
    const bound = BOUNDS.findIndex((each) => seconds <= each);
    const index = bound < 0 ? BOUNDS.length : bound;
    times.counts[index] = (times.counts[index] ?? 0) + 1;
    times.sum += seconds;
  }

  private timesOf(service: ObjectKey): Times {
    const known = this.times.get(service);
    if (known !== undefined) return known;
    const name = this.times.size < this.max ? service : OTHER;
    const times = this.times.get(name) ?? { counts: new Float64Array(BOUNDS.length + 1), sum: 0 };
    this.times.set(name, times);
    return times;
  }
}

function first(waiting: Waiting, service: ObjectKey, at: number): void {
  if (!waiting.has(service)) waiting.set(service, at);
}

function samplesOf(service: ObjectKey, { counts, sum }: Times): MetricFamily['values'] {
  const [namespace = '', name = namespace] = service.split('/');
  const labels = { namespace, service: name };
  const metric = 'pointsman_service_programming_duration_seconds';
  let count = 0;
  const buckets = [...counts].map((each, index) => {
    count += each;
    return {
      metricName: `${metric}_bucket`,
      labels: { le: BOUNDS[index] ?? '+Inf', ...labels },
      value: count,
    };
  });
  return [
    ...buckets,
    { metricName: `${metric}_sum`, labels, value: sum },
    { metricName: `${metric}_count`, labels, value: count },
  ];
}
