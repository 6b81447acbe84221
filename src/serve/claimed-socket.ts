import { randomBytes } from 'node:crypto';
import { link, lstat, readdir, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../base/error-message.js';

/** How often a claim is tried again while another process makes one, and the longest pause between. */
const ATTEMPTS = 20;
const PAUSE_MS = 50;
const CONTENDED = 'another process is about to listen on it';
/** What tells a name of its own from the path. */
const MARK = /^\.[0-9a-f]{8}$/;

/** Windows gives each of its pipes to one process at a time, and lets others than that one's user and administrators only read. */
export function isNamedPipe(path: string): boolean {
  return /^\\\\\.\\pipe\\/i.test(path);
}

/**
 * Makes a server listen on a Unix socket at `path` that only its own user may open, unless another process has it.
 *
 * It listens on a unique name first, which is then linked to `path`. An existing link is taken over from a dead process only,
 * and only if no other living process has such a name. All processes listen before they check, so of two that start at once at
 * least one sees the other. Of those that see each other the first by name waits, and the others give up. A unique name is
 * never used again, so one without an answer can be removed.
 *
 * @returns what gives the socket up again; to be called while the server still listens.
 * @throws Error saying who has it, or the system's.
 */
export async function claimSocket(server: Server, path: string): Promise<() => Promise<void>> {
  if (isNamedPipe(path)) {
    await listenPrivately(server, path);
    return () => Promise.resolve();
  }
  const own = `${path}.${randomBytes(4).toString('hex')}`;
  await listenPrivately(server, own);
  try {
    for (let attempt = 1; ; attempt++) {
      if (await linked(own, path)) break;
      await requireAbandoned(path);
      if (await isAlone(path, own)) {
        // Nobody else is between here and the link: those who come now see us.
        await requireAbandoned(path);
        await rm(path, { force: true });
      } else if (attempt === ATTEMPTS) throw new Error(CONTENDED);
      else await delay(Math.random() * PAUSE_MS);
    }
    const { ino } = await lstat(path);
    return async () => {
      if ((await inodeOf(path)) === ino) await rm(path, { force: true });
    };
  } finally {
    await rm(own, { force: true });
  }
}

/** The socket is made within the call, so no other process can connect at any moment. */
async function listenPrivately(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const mask = process.umask(0o177);
    try {
      server.listen(path, resolve);
    } finally {
      process.umask(mask);
    }
  });
  server.removeAllListeners('error');
}

/** Whether the name could be had: no other process is given it at the same time. */
async function linked(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    // Who saw our name before we listened took it for a dead process's.
    if (errorCode(error) === 'ENOENT') throw new Error(CONTENDED, { cause: error });
    throw error;
  }
}

/** Throws unless a process that is gone left the socket, or nothing is there. */
async function requireAbandoned(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) throw new Error('a file of this name exists and is no socket');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  if (await isAnswered(path)) throw new Error('another process listens on it');
}

/**
 * Whether no other process is about to take the path. Removes what such processes left when they were killed.
 *
 * @throws Error when there is one that goes first.
 */
async function isAlone(path: string, own: string): Promise<boolean> {
  const [folder, prefix] = [dirname(path), basename(path)];
  const names = (await readdir(folder)).filter(
    (name) => name.startsWith(prefix) && MARK.test(name.slice(prefix.length)) && name !== basename(own),
  );
  let alone = true;
  for (const name of names) {
    if (!(await isAnswered(join(folder, name)))) await rm(join(folder, name), { force: true });
    else if (name < basename(own)) throw new Error(CONTENDED);
    else alone = false;
  }
  return alone;
}

async function inodeOf(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).ino;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Whether a living process listens there. */
async function isAnswered(path: string): Promise<boolean> {
  try {
    await tryConnect(path);
    return true;
  } catch (error) {
    switch (errorCode(error) ?? '') {
      case 'ECONNREFUSED':
      case 'ENOENT':
        return false;
      // More processes ask at once than the system lets wait.
      case 'EAGAIN':
        return true;
      // It listened, and closed before it took the connection: by now it is gone, or another is there.
      case 'ECONNRESET':
        return await isAnswered(path);
      default:
        throw error;
    }
  }
}

function tryConnect(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
