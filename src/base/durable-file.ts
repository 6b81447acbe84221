import { mkdir, open, rename, rm, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes a directory that no other user can read, unless it exists. Rejects with the system's error. */
export async function makePrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}

/** Puts a file of mode 0600 in place as a whole: after a crash there is the former one or this one. Rejects with the system's error. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  // A file that another process left half written belongs to no process.
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Lets a link lead elsewhere, as {@link writeDurably} does with a file. Rejects with the system's error. */
export async function linkDurably(path: string, target: string): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Names in a directory are written down by it, not by the files. */
async function syncDirectory(path: string): Promise<void> {
  // Windows opens no directory.
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
