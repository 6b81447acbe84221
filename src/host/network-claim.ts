import { createServer, connect, type Server, type Socket } from 'node:net';
import type { Claim } from './host.js';
import { errorCode, messageOf } from '../base/error-message.js';
import { printableLine } from '../base/printable.js';

const ANSWER_MS = 1000;
const MAX_ANSWER = 512;

/** How proxies of one network find each other. */
export interface Meeting {
  /** A socket or a pipe that one process at a time listens on, and that goes with the process. */
  readonly path: string;
  /** What another proxy is told that asks: one line. */
  readonly identity: string;
  /** Why the process at the other end cannot be a proxy; null: it can. */
  readonly strangerAt: (socket: Socket) => string | null;
}

/** As {@link Host.claimNetwork}: whoever listens has the network. */
export async function claimNetwork({ path, identity, strangerAt }: Meeting): Promise<Claim> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // Whoever asks may keep its end open, and this process is not to wait for that.
    socket.end(identity, () => socket.destroy());
  });
  try {
    await listening(server, path);
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE') return await askHolder(path, strangerAt);
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

async function askHolder(path: string, strangerAt: Meeting['strangerAt']): Promise<Claim> {
  const socket = connect(path);
  try {
    await connected(socket);
    const stranger = strangerAt(socket);
    if (stranger !== null) return { type: 'unknown', why: stranger };
    return { type: 'taken', who: (await answerOf(socket)) || 'a process that does not say what it is' };
  } catch (error) {
    // Windows says that a pipe is in use also where this user may not make one.
    if (errorCode(error) === 'ENOENT') return { type: 'unknown', why: messageOf(error) };
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
