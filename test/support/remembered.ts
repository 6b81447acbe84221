/** What an object remembers: how many entries its maps, sets and lists have, and those of all that it leads to, by the path to each. */
export function rememberedBy(root: object, leaveOut: readonly object[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const seen = new Set<object>(leaveOut);
  const waiting: (readonly [path: string, value: unknown])[] = [['', root]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [path, value] = next;
    if (typeof value !== 'object' || value === null || seen.has(value) || ArrayBuffer.isView(value)) continue;
    seen.add(value);
    const isList = value instanceof Set || Array.isArray(value);
    const entries = value instanceof Map || isList ? [...value] : null;
    if (entries !== null) found.set(path, (found.get(path) ?? 0) + entries.length);
    // Entries are alike, so they have one path; a Map's are pairs.
    if (value instanceof Map) for (const [key, held] of value) waiting.push([`${path}[]`, key], [`${path}[]`, held]);
    else if (entries !== null) for (const held of entries) waiting.push([`${path}[]`, held]);
    else for (const [name, held] of Object.entries(value)) waiting.push([`${path}.${name}`, held]);
  }
  return found;
}
