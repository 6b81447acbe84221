import type { FrontendElements } from './frontend-elements.js';
import type { KernelTable } from './kernel-table.js';

/** Lines kept of a report: a flushed table would otherwise name every Service. */
const LIMIT = 20;

/** What the kernel held at the last acknowledgement and holds no longer, or holds differently; one line each, the rest counted. */
export function differences(known: KernelTable, listed: KernelTable): readonly string[] {
  const lines: string[] = [];
  compareMaps(lines, 'chain', known.chains, listed.chains, (one, other) => one === other);
  compareMaps(lines, 'set', known.sets, listed.sets, (one, other) => one === other);
  compareMaps(lines, 'frontend', known.frontends, listed.frontends, sameElements);
  compareSets(lines, 'cluster address', known.clusterAddresses, listed.clusterAddresses);
  compareSets(lines, 'hairpin address', known.hairpinAddresses, listed.hairpinAddresses);
  for (const stray of listed.strays) lines.push(`element of ${stray.set} is not ours`);
  return lines.length <= LIMIT ? lines : [...lines.slice(0, LIMIT), `… and ${lines.length - LIMIT} more`];
}

function compareMaps<Value>(
  lines: string[],
  kind: string,
  known: ReadonlyMap<string, Value>,
  listed: ReadonlyMap<string, Value>,
  same: (one: Value, other: Value) => boolean,
): void {
  for (const [name, value] of known) {
    const found = listed.get(name);
    if (found === undefined) lines.push(`${kind} ${name} was lost`);
    else if (!same(value, found)) lines.push(`${kind} ${name} was altered`);
  }
  for (const name of listed.keys()) if (!known.has(name)) lines.push(`${kind} ${name} was added`);
}

function compareSets(lines: string[], kind: string, known: ReadonlySet<string>, listed: ReadonlySet<string>): void {
  for (const name of known) if (!listed.has(name)) lines.push(`${kind} ${name} was lost`);
  for (const name of listed) if (!known.has(name)) lines.push(`${kind} ${name} was added`);
}

function sameElements(one: FrontendElements, other: FrontendElements): boolean {
  return (
    one.chain === other.chain &&
    one.comment === other.comment &&
    one.rejected === other.rejected &&
    one.dropped === other.dropped &&
    one.restricted === other.restricted &&
    one.admitted.join() === other.admitted.join() &&
    one.sticky.join() === other.sticky.join() &&
    Buffer.compare(one.endpoints, other.endpoints) === 0 &&
    Buffer.compare(one.localEndpoints, other.localEndpoints) === 0
  );
}
