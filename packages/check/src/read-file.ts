import { closeSync, constants, createReadStream, fstatSync, openSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { isatty, ReadStream } from 'node:tty';
import { readFileWithin, readStreamWithin, textOf } from '../../../src/base/bounded-file.js';

/** Larger than any file that a user writes; a list of all Services of a cluster fits. */
const MAX_FILE_BYTES = 16 << 20;

/**
 * A file that the user named: the standard input (`-`), a pipe or a terminal too, which are waited for as cat(1) does. Signals are handled meanwhile.
 *
 * @throws Error of the file system, or what is wrong with its bytes.
 */
export async function readGiven(path: string): Promise<string> {
  return textOf(await readStreamWithin(path === '-' ? process.stdin : open(path), MAX_FILE_BYTES));
}

/** The file that is named, or the files of the folder that is, not of those in it. One without any stays, and is read in vain. */
export async function filesOf(path: string): Promise<readonly string[]> {
  const names = await readdir(path).catch(() => []);
  const files = names.filter((name) => /^[^.].*\.(?:ya?ml|json|conf|env)$/.test(name)).sort();
  return files.length === 0 ? [path] : files.map((name) => join(path, name));
}

/**
 * A file that another file names. The user may never have looked at it, so it is read only where it has an end.
 *
 * @throws Error as {@link readGiven}.
 */
export async function readNamed(path: string): Promise<string> {
  if (!(await stat(path)).isFile()) throw new Error('is no regular file');
  return textOf(await readFileWithin(path, MAX_FILE_BYTES));
}

function open(path: string): AsyncIterable<Buffer> {
  // Without it a pipe is not open before a process writes to it, and a thread that waits for that prevents the process from ending.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fstatSync(file).isDirectory()) {
    closeSync(file);
    throw new Error('has no file *.yaml, *.yml, *.json, *.conf or *.env');
  }
  if (isatty(file)) return new ReadStream(file);
  if (fstatSync(file).isFIFO()) return new Socket({ fd: file, readable: true, writable: false });
  return createReadStream(path, { fd: file, end: MAX_FILE_BYTES });
}
