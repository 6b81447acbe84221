import type { JSX } from 'preact';
import type { LatencyHistogram } from '../../src/api.js';
import { counted, milliseconds } from './format.js';

const WIDTH = 480;
const HEIGHT = 120;
const AXIS = 18;

const TITLES = { change: 'From a change to the kernel', sync: 'Duration of a sync' } as const;

export interface Bucket {
  readonly upToMs: number | null;
  readonly count: number;
}

interface Properties {
  readonly kind: LatencyHistogram['kind'];
  /** One for each family. */
  readonly histograms: readonly LatencyHistogram[];
}

/** How long it took, drawn; and in words, for whoever does not see it. */
export function LatencyFigure({ kind, histograms }: Properties): JSX.Element {
  const buckets = trimmed(together(histograms));
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  const sumMs = histograms.reduce((sum, each) => sum + each.sumMs, 0);
  const words =
    total === 0
      ? 'none yet'
      : `median ${quantile(buckets, 0.5) ?? ''}, 99 % ${quantile(buckets, 0.99) ?? ''}, mean ${milliseconds(sumMs / total)}`;
  return (
    <figure class="latency">
      <figcaption>
        <h2>{TITLES[kind]}</h2>
        <p class="quiet">
          {counted(total, kind)}
          {total > 0 && `: ${words}`}
        </p>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="xMinYMid"
        role="img"
        aria-label={`${TITLES[kind]}: ${words}`}
      >
        <path class="axis" d={`M0 ${HEIGHT - AXIS + 0.5}H${WIDTH}`} />
        <Bars buckets={buckets} />
      </svg>
    </figure>
  );
}

function Bars({ buckets }: { readonly buckets: readonly Bucket[] }): JSX.Element {
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const width = WIDTH / Math.max(1, buckets.length);
  const labelled = Math.max(1, Math.ceil(buckets.length / 8));
  return (
    <>
      {buckets.map(({ upToMs, count }, index) => {
        // What happened once is to be seen beside what happened a million times.
        const height = count === 0 ? 0 : Math.max(2, (count / most) * (HEIGHT - AXIS - 6));
        return (
          <g key={upToMs ?? 'more'}>
            <rect
              class="bar-fill"
              x={index * width + 1}
              width={Math.max(1, width - 2)}
              y={HEIGHT - AXIS - height}
              height={height}
            >
              <title>{`${upToMs === null ? 'longer' : `up to ${short(upToMs)}`}: ${counted(count, 'time')}`}</title>
            </rect>
            {upToMs !== null && index % labelled === labelled - 1 && (
              <text
                x={(index + 1) * width}
                y={HEIGHT - 4}
                text-anchor={index === buckets.length - 1 ? 'end' : 'middle'}
              >
                {short(upToMs)}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** Of both families; their buckets are the same. */
export function together(histograms: readonly LatencyHistogram[]): readonly Bucket[] {
  const counts = new Map<number | null, number>();
  for (const { buckets } of histograms)
    for (const { upToMs, count } of buckets) counts.set(upToMs, (counts.get(upToMs) ?? 0) + count);
  return [...counts].map(([upToMs, count]) => ({ upToMs, count }));
}

const FEWEST = 12;

/** Without the empty ones at both ends, as far as enough remain for a shape. */
function trimmed(buckets: readonly Bucket[]): readonly Bucket[] {
  const first = buckets.findIndex(({ count }) => count > 0);
  const last = buckets.findLastIndex(({ count }) => count > 0);
  const beside = Math.max(1, Math.ceil((FEWEST - (last - first + 1)) / 2));
  const from = Math.max(0, Math.min(first - beside, buckets.length - FEWEST));
  return buckets.slice(from, Math.max(last + 1 + beside, from + FEWEST));
}

/** The bound of the bucket that it is in; null: nothing was counted. */
export function quantile(buckets: readonly Bucket[], share: number): string | null {
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  let seen = 0;
  for (const { upToMs, count } of buckets) {
    seen += count;
    if (total > 0 && seen >= total * share) return upToMs === null ? 'beyond all bounds' : `≤ ${short(upToMs)}`;
  }
  return null;
}

/** Bounds are round numbers. */
function short(ms: number): string {
  return ms >= 1000 ? `${Number((ms / 1000).toPrecision(3))} s` : `${Number(ms.toPrecision(3))} ms`;
}
