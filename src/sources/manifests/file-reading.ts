import { createHash } from 'node:crypto';
import { readFileSync, type BigIntStats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { statOf } from './location.js';

const MAX_FILE_BYTES = 256 << 20;
/** Small files are read synchronously: a tenth of the time, which counts with thousands of them. */
const SMALL_FILE_BYTES = 1 << 20;

/** One reading of a file's bytes. */
export interface Reading {
  readonly text: string;
  /** Which state of which file this is; another once the file is written to, replaced, or its link points elsewhere. */
  readonly identity: string;
  readonly inode: string;
  /**
   * Whether the identity stands for the bytes. Not while the file is being written, nor shortly after: two writes within one tick of the
   * filesystem's clock look the same.
   */
  readonly settled: boolean;
  /** Of the bytes; only for unsettled readings, to save parsing them again. */
  readonly digest: string | null;
}

export function identityOf(stat: BigIntStats): string {
  return `${inodeOf(stat)}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

/**
 * Reads a file whole.
 *
 * @param graceMs how old the last change must be to count as settled.
 * @throws Error with a readable message.
 */
export async function readManifest(path: string, stat: BigIntStats, graceMs: number): Promise<Reading> {
  if (stat.size > MAX_FILE_BYTES) throw new Error(`is larger than ${MAX_FILE_BYTES} bytes`);
  const bytes = stat.size <= SMALL_FILE_BYTES ? readFileSync(path) : await readFile(path);
  const after = statOf(path);
  const unchanged = after !== null && identityOf(after) === identityOf(stat);
  // A clock that went backwards leaves times in the future; they must not keep a file unsettled for ever.
  const settled = unchanged && Math.abs(Date.now() - Number(stat.ctimeMs)) > graceMs;
  return {
    text: bytes.toString('utf8'),
    identity: identityOf(stat),
    inode: inodeOf(stat),
    settled,
    digest: settled ? null : createHash('sha1').update(bytes).digest('base64'),
  };
}

function inodeOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}
