/** How many sums there are of one resource. Where one differs, the objects of that part alone have to be looked at. */
export const DIGEST_PARTS = 64;

/**
 * Which objects there are, and in which versions, in {@link DIGEST_PARTS} numbers that do not depend on an order. Two holders of the same objects have the
 * same numbers. Where a number differs, they differ in that part. It finds missed changes, not forged ones.
 */
export class VersionDigest {
  readonly sums: number[] = new Array<number>(DIGEST_PARTS).fill(0);

  /** @param key `namespace/name`. */
  add(key: string, version: string): void {
    const hash = hashOf(key);
    const part = mixed(hash) % DIGEST_PARTS;
    this.sums[part] = ((this.sums[part] ?? 0) + mixed(hashOf(version, hash))) >>> 0;
  }
}

/** The part that an object is in. */
export function digestPart(key: string): number {
  return mixed(hashOf(key)) % DIGEST_PARTS;
}

/** FNV-1a over the units of UTF-16, with a unit that no name has behind the text. */
function hashOf(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return Math.imul(hash, 0x01000193) >>> 0;
}

/** The end of MurmurHash3: sums of what FNV gives would be the same for two versions that differ in their last digits. */
function mixed(hash: number): number {
  let mix = hash ^ (hash >>> 16);
  mix = Math.imul(mix, 0x85ebca6b);
  mix ^= mix >>> 13;
  mix = Math.imul(mix, 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}
