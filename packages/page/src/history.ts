import { FAMILIES, type Family } from '../../../src/base/ip.js';
import type { Latencies } from '../../../src/observe/metrics.js';
import type { FamilyView, RunningProcess } from '../../../src/serve/running-process.js';
import type { Failure, History, LatencyHistogram, Repair, Sync } from './api.js';

/** What happened since the start, as far as it is remembered. */
export async function history(running: RunningProcess): Promise<History> {
  const { families } = running;
  return {
    syncs: latestFirst(
      families.flatMap((sync) => syncsSince(sync, 0)),
      ({ endedAt }) => endedAt,
    ),
    slowest: families.flatMap(({ family, history: { slowest } }) => slowest.map((each) => ({ ...each, family }))),
    repairs: latestFirst(
      families.flatMap((sync) => repairsSince(sync, 0)),
      ({ at }) => at,
    ),
    failures: families.flatMap((sync) => failureOf(sync, running)),
    latency: histograms(await running.latencies()),
  };
}

/** Syncs with a higher number, latest first. */
export function syncsSince({ family, history: reported }: FamilyView, number: number): readonly Sync[] {
  return reported.recent(reported.syncs - number).map((record) => ({ ...record, family }));
}

/** Repairs with a higher number, latest first. */
export function repairsSince({ family, history: { recentlyRepaired } }: FamilyView, number: number): readonly Repair[] {
  return recentlyRepaired.filter((record) => record.number > number).map((record) => ({ ...record, family }));
}

export function latestFirst<Row>(rows: readonly Row[], time: (row: Row) => string): readonly Row[] {
  return [...rows].sort((one, other) => (time(one) < time(other) ? 1 : time(one) > time(other) ? -1 : 0));
}

function failureOf({ family, history: { failures } }: FamilyView, { progress }: RunningProcess): readonly Failure[] {
  const { count, last } = failures;
  if (last === null) return [];
  return [{ family, count, ...last, over: (progress.of(family)?.failure ?? null) === null }];
}

export function histograms(latencies: Latencies): readonly LatencyHistogram[] {
  return (['sync', 'change'] as const).flatMap((kind) =>
    FAMILIES.flatMap((family) => histogramOf(kind, family, latencies[kind]) ?? []),
  );
}

/** Null: nothing was measured. */
function histogramOf(
  kind: LatencyHistogram['kind'],
  family: Family,
  samples: Latencies['sync'],
): LatencyHistogram | null {
  const own = samples.filter(({ labels }) => labels['ip_family'] === family);
  const named = (suffix: string): typeof own => own.filter(({ metricName = '' }) => metricName.endsWith(suffix));
  const [count] = named('_count');
  if (count === undefined) return null;
  let before = 0;
  const buckets = named('_bucket').map(({ labels: { le }, value }) => {
    const more = value - before;
    before = value;
    return { upToMs: typeof le === 'number' ? Math.round(le * 1e6) / 1e3 : null, count: more };
  });
  return { kind, family, count: count.value, sumMs: (named('_sum')[0]?.value ?? 0) * 1000, buckets };
}
