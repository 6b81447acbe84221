import { createServer, connect, type Server, type Socket } from 'node:net';
import type { Claim } from './host.js';
import { errorCode, messageOf } from '../base/error-message.js';
import { printableLine } from '../base/printable.js';

const ANSWER_MS = 1000;
const MAX_ANSWER = 512;

/** How proxies of one network find each other. */
interface Meeting {
  /** A socket or a pipe that one process at a time listens on, and that goes with the process. */
  readonly path: string;
  /** The answer to another proxy that asks: one line. */
  readonly identity: string;
  /** Why the process at the other end cannot be a proxy; null: it can. */
  readonly strangerAt: (socket: Socket) => string | null;
}

/** Between a look and an attempt to listen a holder may come or end: so often both are tried. */
const ATTEMPTS = 2;

/** As {@link Host.claimNetwork}: the process that listens has the network. It is asked first, as Wine lets several processes listen on one pipe. */
export async function claimNetwork(meeting: Meeting): Promise<Claim> {
  let failure: unknown = null;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const holder = await askHolder(meeting);
    if (holder !== null) return holder;
    try {
      return await hold(meeting);
    } catch (error) {
      failure = error;
      if (errorCode(error) !== 'EADDRINUSE') break;
    }
  }
  // Windows also reports a pipe as in use where this user may not make one.
  return { type: 'unknown', why: messageOf(failure) };
}

async function hold({ path, identity }: Meeting): Promise<Claim> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    // The client may keep its end open; this process must not wait for that.
    socket.end(identity, () => socket.destroy());
  });
  await listening(server, path);
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

/** Null: no process listens. */
async function askHolder({ path, strangerAt }: Meeting): Promise<Claim | null> {
  const socket = connect(path);
  try {
    await connected(socket);
    const stranger = strangerAt(socket);
    if (stranger !== null) return { type: 'unknown', why: stranger };
    return { type: 'taken', who: (await answerOf(socket)) || 'an unknown process' };
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return null;
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
