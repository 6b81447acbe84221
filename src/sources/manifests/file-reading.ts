import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, type BigIntStats, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import { identityOf } from '../../base/file-text.js';
import { statOf } from './location.js';

const MAX_FILE_BYTES = 256 << 20;
/** Small files are read synchronously: a tenth of the time, which counts with thousands of them. */
const SMALL_FILE_BYTES = 1 << 20;
/** The path may be a pipe by now, or a file in which the kernel writes now and then: the read does not wait for it. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

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
  /** A digest of the bytes; only for unsettled readings, to save parsing them again. */
  readonly digest: string | null;
}

/**
 * Reads a file whole.
 *
 * @param graceMs how old the last change must be to count as finished.
 * @throws Error with a readable message.
 */
export async function readManifest(path: string, stat: BigIntStats, graceMs: number): Promise<Reading> {
  if (stat.size > MAX_FILE_BYTES) throw new Error(`is larger than ${MAX_FILE_BYTES} bytes`);
  // What is written meanwhile is for the next look. Files of the kernel's have no size, and some no end.
  const limit = stat.size === 0n ? SMALL_FILE_BYTES : Number(stat.size);
  const bytes = limit <= SMALL_FILE_BYTES ? readSmall(path, limit) : await readLarge(path, limit);
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

function readSmall(path: string, limit: number): Buffer {
  const file = openSync(path, FLAGS);
  try {
    requireFile(fstatSync(file));
    const bytes = Buffer.allocUnsafe(limit);
    let length = 0;
    for (let more = true; more && length < limit;) {
      const count = readSync(file, bytes, length, limit - length, null);
      length += count;
      more = count > 0;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

async function readLarge(path: string, limit: number): Promise<Buffer> {
  const file = await open(path, FLAGS);
  try {
    requireFile(await file.stat());
    const bytes = Buffer.allocUnsafe(limit);
    let length = 0;
    for (let more = true; more && length < limit;) {
      const { bytesRead } = await file.read(bytes, length, limit - length);
      length += bytesRead;
      more = bytesRead > 0;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

/** Between the look at a path and the opening it may have come to mean something else. */
function requireFile(stat: Stats): void {
  if (!stat.isFile()) throw new Error('is no file any more');
}

function inodeOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}
