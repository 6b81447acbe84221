import type { JSX } from 'preact';
import type { Activity } from '../../src/api.js';
import { clockTime, duration, milliseconds, number, rate } from './format.js';

const WIDTH = 180;
const HEIGHT = 32;
/** 15 minutes, a step a unit wide. */
const STEPS = 180;

/** What the node did in the last 15 minutes, drawn; and in words. */
export function Graphs({ of }: { readonly of: Activity }): JSX.Element | null {
  const { endedAt, stepSeconds, syncMs, changes, connections, refused } = of;
  if (endedAt === null) return null;
  const perSecond = (values: readonly (number | null)[]): readonly (number | null)[] =>
    values.map((value) => value && value / stepSeconds);
  const covered = duration(syncMs.length * stepSeconds);
  const all = [
    ['Longest sync', syncMs, milliseconds],
    ['Changed frontends', changes, number],
    ['Connections per second', perSecond(connections), rate],
    ['Refused packets per second', perSecond(refused), rate],
  ] as const;
  return (
    <div class="graphs" role="group" aria-label={`The last ${covered}`} title={`until ${clockTime(endedAt)}`}>
      {all
        .filter(([, values]) => values.some((value) => value !== null))
        .map(([title, values, print]) => (
          <Graph key={title} title={title} values={values} print={print} covered={covered} />
        ))}
    </div>
  );
}

interface GraphProperties {
  readonly title: string;
  /** The latest last; null: nothing was measured. */
  readonly values: readonly (number | null)[];
  readonly print: (value: number) => string;
  readonly covered: string;
}

function Graph({ title, values, print, covered }: GraphProperties): JSX.Element {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0);
  const first = STEPS - values.length;
  const bars = values.flatMap((value, index) => {
    if (value === null || value === 0 || most === 0) return [];
    const height = Math.max(1, (value / most) * HEIGHT);
    return [`M${first + index + 0.5} ${HEIGHT}V${(HEIGHT - height).toFixed(1)}`];
  });
  const words = `now ${print(known.at(-1) ?? 0)}, at most ${print(most)} in ${covered}`;
  return (
    <figure class="graph">
      <figcaption>
        {title} <span class="quiet">{words}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${words}`}>
        <rect width={WIDTH} height={HEIGHT} class="bar-ground" />
        <path class="graph-line" d={bars.join('')} />
      </svg>
    </figure>
  );
}
