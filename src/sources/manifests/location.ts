import { statSync, type BigIntStats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** What a file or directory location consists of at the moment. */
export interface Listing {
  readonly type: 'file' | 'directory';
  /** The directory the files are in, which is the one to watch. */
  readonly directory: string;
  readonly directoryStat: BigIntStats;
}

/** Whether a directory's entry is a manifest by its name, as node agents have it. */
export function isManifestName(name: string): boolean {
  return !name.startsWith('.');
}

/**
 * What is at a path. A file that was there and is gone is a listing without it, as long as its directory is there.
 *
 * @param was what has been read there before, which it must still be; null: nothing yet.
 * @throws Error with a readable message when the location cannot be read.
 */
export function look(path: string, was: Listing['type'] | null): Listing {
  const stat = statOf(path);
  if (was !== 'file' && stat?.isDirectory() === true)
    return { type: 'directory', directory: path, directoryStat: stat };
  if (was === 'directory') throw new Error(stat === null ? 'does not exist' : 'is no directory any more');
  const directory = dirname(path);
  if (stat === null) {
    if (was === null) throw new Error('does not exist');
  } else if (!stat.isFile())
    throw new Error(was === null ? 'is neither a file nor a directory' : 'is no file any more');
  const directoryStat = statOf(directory);
  if (directoryStat?.isDirectory() !== true) throw new Error(`${directory} is no directory`);
  return { type: 'file', directory, directoryStat };
}

/** Names of the manifests in a listing, sorted. */
export async function manifestNames(path: string, listing: Listing): Promise<readonly string[]> {
  if (listing.type === 'file') return [basename(path)];
  return (await readdir(path)).filter(isManifestName).sort();
}

export function pathOf(listing: Listing, name: string): string {
  return join(listing.directory, name);
}

/** Follows links. Null when there is nothing. Synchronous, as that costs 3 µs against 50: the poll looks at every file. */
export function statOf(path: string): BigIntStats | null {
  return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
}

export async function isDanglingLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink() && statOf(path) === null;
  } catch {
    return false;
  }
}
