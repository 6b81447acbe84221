import type { Result } from './measures.js';

/** One result of several runs of the same proxy with the same cluster: of each number the median. */
export function medianResult(results: readonly Result[]): readonly Result[] {
  const [first] = results;
  return first === undefined ? [] : [median(results) as Result];
}

/** The median of values of one form. */
function median(values: readonly unknown[]): unknown {
  const [first] = values;
  if (typeof first === 'number') {
    const sorted = (values as readonly number[]).toSorted((one, other) => one - other);
    return sorted[Math.floor((sorted.length - 1) / 2)];
  }
  if (typeof first !== 'object' || first === null) return first;
  const objects = values as readonly Readonly<Record<string, unknown>>[];
  return Object.fromEntries(Object.keys(first).map((name) => [name, median(objects.map((each) => each[name]))]));
}
