import type { Ledger } from './ledger.js';

/** What was lost, altered or added since it was acknowledged, a line each. */
export function differing<Key, Value>(
  { acknowledged }: Pick<Ledger<Key, Value>, 'acknowledged'>,
  held: ReadonlyMap<Key, Value>,
  same: (one: Value, other: Value) => boolean,
  print: (key: Key) => string,
): readonly string[] {
  const lines: string[] = [];
  for (const [key, value] of acknowledged) {
    const found = held.get(key);
    if (found === undefined) lines.push(`${print(key)} was missing`);
    else if (!same(value, found)) lines.push(`${print(key)} was another`);
  }
  for (const key of held.keys()) if (!acknowledged.has(key)) lines.push(`${print(key)} was not ours`);
  return lines;
}
