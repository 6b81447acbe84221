/** How many entries all collections have that an object leads to, by the way to them: what is in collections counts together. */
export type Entries = ReadonlyMap<string, number>;

/**
 * Entries of all maps, sets and arrays that an object leads to by its properties. Unlike the heap it is exact, and says which of them grew; what functions
 * and `#` fields alone lead to is left out.
 *
 * @param outside objects that are not looked into.
 */
export function entriesOf(root: object, outside: ReadonlySet<unknown>): Entries {
  const entries = new Map<string, number>();
  const seen = new Set<unknown>(outside);
  const waiting: [path: string, value: unknown][] = [['', root]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [path, value] = next;
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) continue;
    seen.add(value);
    const members = membersOf(value);
    if (members !== null) entries.set(path, (entries.get(path) ?? 0) + members.length);
    for (const member of members ?? []) waiting.push([`${path}[]`, member]);
    if (!Array.isArray(value))
      for (const [name, { value: property }] of Object.entries(Object.getOwnPropertyDescriptors(value)))
        waiting.push([`${path}.${name}`, property]);
  }
  return entries;
}

/** What a collection has; null: it is none. */
function membersOf(value: object): readonly unknown[] | null {
  if (Array.isArray(value)) return value as readonly unknown[];
  if (value instanceof Set) return [...(value as ReadonlySet<unknown>)];
  if (value instanceof Map) return [...(value as ReadonlyMap<unknown, unknown>)].flat();
  return null;
}

/** Collections that have other numbers of entries than before, a line each. */
export function differences(before: Entries, after: Entries): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((path) => [path, before.get(path) ?? 0, after.get(path) ?? 0] as const)
    .filter(([, had, has]) => had !== has)
    .map(([path, had, has]) => `${path}: ${had} entries, now ${has}`)
    .sort();
}
