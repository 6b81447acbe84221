import type { Ledger } from './ledger.js';

/**
 * Keys that were lost, altered or added since they were acknowledged, a line each. Keys are left out if it is unknown
 * whether the kernel took what was sent.
 */
export function differing<Key, Value>(
  { acknowledged, unknown }: Pick<Ledger<Key, Value>, 'acknowledged' | 'unknown'>,
  held: ReadonlyMap<Key, Value>,
  same: (one: Value, other: Value) => boolean,
  print: (key: Key) => string,
): readonly string[] {
  const lines: string[] = [];
  for (const [key, value] of acknowledged) {
    if (unknown.has(key)) continue;
    const found = held.get(key);
    if (found === undefined) lines.push(`${print(key)} was missing`);
    else if (!same(value, found)) lines.push(`${print(key)} was another`);
  }
  for (const key of held.keys())
    if (!acknowledged.has(key) && !unknown.has(key)) lines.push(`${print(key)} was not ours`);
  return lines;
}
