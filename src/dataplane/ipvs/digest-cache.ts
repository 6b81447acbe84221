/** Objects of one kind in the kernel, in the form in which they are compared. */
export interface DigestSource<Key> {
  /** Another value after every change of what the kernel is known to hold of it. */
  version(key: Key): unknown;
  /** A number for each, the same as long as the kernel holds the same; NaN: it has to be listed. */
  digests(keys: readonly Key[]): Promise<ArrayLike<number>>;
  /** Lists them: whether the kernel holds something else than it is known to. */
  differ(keys: readonly Key[]): Promise<boolean>;
}

/** Remembers by which digest each object was seen to be right, and lists those that have another. */
export class DigestCache<Key> {
  private readonly seen = new Map<Key, { readonly version: unknown; readonly digest: number }>();

  constructor(private readonly source: DigestSource<Key>) {}

  /** Forgets all but these. */
  keep(keys: ReadonlyMap<Key, unknown>): void {
    for (const key of this.seen.keys()) if (!keys.has(key)) this.seen.delete(key);
  }

  async differ(keys: readonly Key[]): Promise<boolean> {
    const { source, seen } = this;
    if (keys.length === 0) return false;
    const versions = keys.map((key) => source.version(key));
    const digests = await source.digests(keys);
    const now = keys.map((key, index) => ({ key, version: versions[index], digest: digests[index] ?? NaN }));
    const unsure = now.filter(({ key, version, digest }) => {
      const before = seen.get(key);
      return before?.version !== version || before?.digest !== digest;
    });
    if (unsure.length === 0) return false;
    const unsureKeys = unsure.map(({ key }) => key);
    if (await source.differ(unsureKeys)) return true;
    // The listing has this digest only if the object was not changed in between.
    const after = await source.digests(unsureKeys);
    for (const [index, { key, version, digest }] of unsure.entries())
      if (after[index] === digest) seen.set(key, { version, digest });
    return false;
  }
}
