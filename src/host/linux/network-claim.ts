import { createServer, connect, type Server, type Socket } from 'node:net';
import { descriptorOf } from '../../base/descriptor.js';
import type { Claim, ClaimOptions } from '../host.js';
import { errorCode, messageOf } from '../../base/error-message.js';
import { printableLine } from '../../base/printable.js';

const ANSWER_MS = 1000;
const MAX_ANSWER = 512;

/**
 * As {@link Host.claimNetwork}: by an abstract Unix socket (unix(7)). Each network namespace has names of its own, whatever files its processes see, and the
 * kernel frees a name with the process that has it. Every user may listen on one. So only a process of root, or of this process's own user, counts as a
 * proxy: others could keep a node without rules.
 */
export async function claimNetwork({ name, identity, userOf }: ClaimOptions): Promise<Claim> {
  const path = `\0${name}`;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // Whoever asks may keep its end open, and this process is not to wait for that.
    socket.end(identity, () => socket.destroy());
  });
  try {
    await listening(server, path);
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE') return await askHolder(path, userOf);
    return { type: 'unknown', why: messageOf(error) };
  }
  server.on('error', () => undefined);
  // It alone keeps no process from ending.
  server.unref();
  return { type: 'held', release: () => closed(server) };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}

async function askHolder(path: string, userOf: ClaimOptions['userOf']): Promise<Claim> {
  const socket = connect(path);
  try {
    await connected(socket);
    const user = userOf(descriptorOf(socket) ?? 0);
    if (user !== null && user !== 0 && user !== process.getuid?.())
      return { type: 'unknown', why: `a process of user ${user}, which is no proxy, listens where proxies do` };
    return { type: 'taken', who: (await answerOf(socket)) || 'a process that does not say what it is' };
  } catch (error) {
    // It was there a moment ago.
    return { type: 'taken', who: `a process that does not answer: ${messageOf(error)}` };
  } finally {
    socket.destroy();
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('connect', resolve);
    socket.on('error', reject);
  });
}

function answerOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const done = (): void => {
      resolve(printableLine(text.slice(0, MAX_ANSWER)));
    };
    socket.setTimeout(ANSWER_MS, done);
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (text.length >= MAX_ANSWER) done();
    });
    socket.once('close', done).once('end', done);
  });
}
