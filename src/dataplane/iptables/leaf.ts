import { hash16 } from './names.js';

/** How a leaf of a dispatch is divided further. */
export interface Depths {
  /** The beginning of the names of its chains, which ends with a hash. */
  readonly prefix: string;
  /** One character for each level at which items may differ: those of one branch have the same. */
  readonly path: (item: string) => string;
  /** What selects the branch of an item at a level. */
  readonly match: (item: string, level: number) => string;
  /** The last levels, which may divide items in any case: of the others {@link MOST_LEVELS} may. */
  readonly portLevels: number;
  /** The Service of an item. */
  readonly owner: (item: string) => string;
}

/** One chain: jumps to others, or the rules of its items in this order. */
export type Part =
  | { readonly type: 'jumps'; readonly rules: readonly string[] }
  | { readonly type: 'items'; readonly items: readonly string[] };

/**
 * The kernel follows 15 jumps from a built-in chain on, in flavour nft. Three lead to a leaf, two are left for ports, and four
 * lead from a frontend's rule to an endpoint. IPv4 has no more levels than these.
 */
const MOST_LEVELS = 6;

/** What was made out of items and names before, for as long as a leaf is divided. */
export interface LeafMemory {
  readonly paths: Map<string, string>;
  readonly names: Map<string, string>;
}

/** Above this many items a leaf is divided: some 8,000 Services have so many in each of 256. */
export const MOST_ITEMS = 32;

interface Placed {
  readonly item: string;
  readonly path: string;
}

/**
 * The chains of a leaf by name; the first has the leaf's own. A leaf with few items is one chain. Otherwise it is divided at
 * the first level at which its items differ, and so on. The result depends on the items alone.
 */
export function divideLeaf(
  name: string,
  items: ReadonlySet<string>,
  depths: Depths | null,
  { paths, names }: LeafMemory,
): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>();
  const sorted = [...items].sort();
  if (depths === null || sorted.length <= MOST_ITEMS) {
    paths.clear();
    names.clear();
    return parts.set(name, { type: 'items', items: sorted });
  }
  for (const item of paths.keys()) if (!items.has(item)) paths.delete(item);
  const placed = sorted.map((item) => ({ item, path: remembered(paths, item, depths.path) }));
  divide({ parts, leaf: name, depths, names }, name, placed, 0, MOST_LEVELS);
  for (const [path, each] of names) if (!parts.has(each)) names.delete(path);
  return parts;
}

function remembered(memory: Map<string, string>, key: string, make: (key: string) => string): string {
  const known = memory.get(key);
  if (known !== undefined) return known;
  const made = make(key);
  memory.set(key, made);
  return made;
}

interface Division {
  readonly parts: Map<string, Part>;
  readonly leaf: string;
  readonly depths: Depths;
  readonly names: Map<string, string>;
}

/** @param room levels of the address that may still divide. */
function divide(division: Division, name: string, items: readonly Placed[], from: number, room: number): void {
  const { parts, leaf, depths, names } = division;
  const level = items.length > MOST_ITEMS ? nextLevel(depths, items, from, room) : null;
  if (level === null) {
    parts.set(name, { type: 'items', items: inTurns(items, depths) });
    return;
  }
  const branches = new Map<string, Placed[]>();
  for (const each of items) {
    const branch = branches.get(each.path.charAt(level)) ?? [];
    branch.push(each);
    branches.set(each.path.charAt(level), branch);
  }
  const sorted = [...branches].sort(([one], [other]) => (one < other ? -1 : 1));
  const named = sorted.flatMap(([, members]) => {
    const [first] = members;
    if (first === undefined) return [];
    const path = first.path.slice(0, level + 1);
    const child = remembered(names, path, () => depths.prefix + hash16(`${leaf}/${path}`));
    return [{ child, members, rule: `${depths.match(first.item, level)} -j ${child}` }];
  });
  parts.set(name, { type: 'jumps', rules: named.map(({ rule }) => rule) });
  for (const { child, members } of named) divide(division, child, members, level + 1, room - 1);
}

/** The first level from here on at which items differ and that may divide them; null: none. */
function nextLevel(depths: Depths, items: readonly Placed[], from: number, room: number): number | null {
  const [first] = items;
  const length = first?.path.length ?? 0;
  for (let level = room > 0 ? from : Math.max(from, length - depths.portLevels); level < length; level++)
    if (items.some(({ path }) => path.charAt(level) !== first?.path.charAt(level))) return level;
  return null;
}

/**
 * Few items in their order. Of many the first of each Service comes first, then the second of each, so that a Service with
 * many is in no other's way.
 */
function inTurns(items: readonly Placed[], { owner }: Depths): readonly string[] {
  if (items.length <= MOST_ITEMS) return items.map(({ item }) => item);
  const turns: string[][] = [];
  const counts = new Map<string, number>();
  for (const { item } of items) {
    const turn = counts.get(owner(item)) ?? 0;
    counts.set(owner(item), turn + 1);
    (turns[turn] ??= []).push(item);
  }
  return turns.flat();
}
