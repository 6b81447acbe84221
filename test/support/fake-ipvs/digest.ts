import { createHash } from 'node:crypto';

/** A whole number for some records, in whatever order they come; never 0. */
export function digestOf(records: readonly string[]): number {
  const hash = createHash('sha256')
    .update(JSON.stringify([...records].sort()))
    .digest();
  return 1 + hash.readUIntBE(0, 6);
}
