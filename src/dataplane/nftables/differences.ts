import type { IPAddress } from '../../base/ip.js';
import type { FrontendKey } from '../../plan/types.js';
import { sameElements } from './frontend-elements.js';
import type { HeldTable } from './listing.js';

/** Lines kept of a report: a flushed table would otherwise name every Service. */
const LIMIT = 20;

/** Keys that are not compared, because we may have changed them ourselves. */
export interface Uncertain {
  readonly frontends: ReadonlySet<FrontendKey>;
  readonly clusterAddresses: ReadonlySet<IPAddress>;
  readonly hairpinAddresses: ReadonlySet<IPAddress>;
  /** Whether a chain, set, map or object is one of them. */
  readonly structure: (name: string) => boolean;
}

/** Values of the last acknowledgement that the kernel now lacks, or holds differently; one line each, the rest counted. */
export function differences(
  known: HeldTable,
  listed: HeldTable,
  uncertain: Uncertain | null = null,
): readonly string[] {
  const lines: string[] = [];
  const skipStructure = uncertain?.structure ?? ((): boolean => false);
  compareMaps(lines, 'chain', known.chains, listed.chains, (one, other) => one === other, skipStructure);
  compareMaps(lines, 'set', known.sets, listed.sets, (one, other) => one === other, skipStructure);
  compareMaps(lines, 'object', known.objects, listed.objects, (one, other) => one === other, skipStructure);
  compareMaps(lines, 'frontend', known.frontends, listed.frontends, sameElements, isIn(uncertain?.frontends));
  for (const [kind, field] of ADDRESS_SETS) {
    compareMaps(lines, kind, known[field], listed[field], () => true, isIn(uncertain?.[field]));
  }
  for (const element of listed.unexpected.values()) lines.push(`element of ${element.set} is not ours`);
  return lines.length <= LIMIT ? lines : [...lines.slice(0, LIMIT), `… and ${lines.length - LIMIT} more`];
}

const ADDRESS_SETS = [
  ['cluster address', 'clusterAddresses'],
  ['hairpin address', 'hairpinAddresses'],
] as const;

type Skip<Name> = (name: Name) => boolean;

function isIn<Name>(names: ReadonlySet<Name> | undefined): Skip<Name> {
  return (name) => names?.has(name) === true;
}

function compareMaps<Name extends string, Value>(
  lines: string[],
  kind: string,
  known: ReadonlyMap<Name, Value>,
  listed: ReadonlyMap<Name, Value>,
  same: (one: Value, other: Value) => boolean,
  skip: Skip<Name>,
): void {
  for (const [name, value] of known) {
    if (skip(name)) continue;
    const found = listed.get(name);
    if (found === undefined) lines.push(`${kind} ${name} was lost`);
    else if (!same(value, found)) lines.push(`${kind} ${name} was altered`);
  }
  for (const name of listed.keys()) if (!known.has(name) && !skip(name)) lines.push(`${kind} ${name} was added`);
}
