import { open, rm, type FileHandle } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { errorCode, messageOf } from '../base/error-message.js';
import { AskError } from './ask-error.js';
import { SERVER_NAME, WELL_HEADER } from '../serve/well.js';

/** So long an answer may be silent: a process that is stopped, or hangs, keeps the socket open. */
const PATIENCE_MS = 30_000;
/** A snapshot of a large heap begins only when it is taken. */
const SNAPSHOT_PATIENCE_MS = 600_000;

/** What a process says, and whether all is well by it; null: it does not say. */
export interface Asked {
  readonly text: string;
  readonly well: boolean | null;
}

/**
 * Asks the process that listens on a status socket.
 *
 * @param socket path; null when the configuration names none.
 * @param page such as `/status?key=value`.
 * @throws AskError
 */
export async function ask(socket: string | null, page: string, patienceMs = PATIENCE_MS): Promise<Asked> {
  const answer = await get(socket, page, patienceMs);
  const well = answer.headers[WELL_HEADER];
  try {
    return { text: await text(answer), well: typeof well === 'string' ? well === 'true' : null };
  } catch (error) {
    throw noAnswer(socket, error);
  }
}

/**
 * Asks for something that is too large, or too secret, to print, and writes it to a new file that only its owner may read.
 *
 * @throws AskError also when the file is there already or cannot be written.
 */
export async function askInto(socket: string | null, page: string, path: string): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    throw new AskError(`${path}: ${messageOf(error)}`, { cause: error });
  }
  try {
    const answer = await get(socket, page, SNAPSHOT_PATIENCE_MS);
    await pipeline(answer, file.createWriteStream());
  } catch (error) {
    await rm(path, { force: true });
    throw error instanceof AskError ? error : noAnswer(socket, error);
  } finally {
    await file.close();
  }
}

/** An answer that goes on for as long as it is wanted. */
export interface Held {
  /** Its first line. */
  readonly text: string;
  readonly release: () => void;
}

/**
 * Asks for something that the process gives for as long as the asker is connected.
 *
 * @throws AskError
 */
export async function hold(socket: string | null, page: string): Promise<Held> {
  const answer = await get(socket, page, PATIENCE_MS);
  answer.socket.setTimeout(0);
  answer.setEncoding('utf8');
  const text = await new Promise<string>((resolve, reject) => {
    let begin = '';
    answer.on('data', (chunk: string) => {
      begin += chunk;
      if (begin.includes('\n')) resolve(begin.slice(0, begin.indexOf('\n')));
    });
    answer.once('close', () => {
      reject(noAnswer(socket, new Error('the answer was cut off')));
    });
  });
  return {
    text,
    release: () => {
      answer.destroy();
    },
  };
}

const NOT_OURS = 'another program answers there, not pointsman';

function describe(error: unknown): string {
  const code = errorCode(error) ?? '';
  if (code.startsWith('HPE_')) return NOT_OURS;
  switch (code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return 'no pointsman runs there';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied, only the user of the process has access';
    default:
      return messageOf(error);
  }
}

function noAnswer(socket: string | null, error: unknown): AskError {
  return new AskError(`no answer on --status-socket ${socket ?? ''}: ${describe(error)}`, { cause: error });
}

/** An answer of status 200. Each request has its own connection, because a kept one may belong to a process that has ended. */
async function get(socketPath: string | null, path: string, patienceMs: number): Promise<IncomingMessage> {
  if (socketPath === null) throw new AskError('--status-socket: is empty: no process can be asked');
  const { request } = await import('node:http');
  let answer: IncomingMessage;
  try {
    answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({ socketPath, path, agent: false, timeout: patienceMs }, resolve).once('error', reject);
      asked.once('timeout', () => {
        asked.destroy(new Error(`silent for ${patienceMs / 1000} s: the process hangs, is stopped or very busy`));
      });
      asked.end();
    });
    if (answer.headers['server'] !== SERVER_NAME) {
      answer.destroy();
      throw new Error(NOT_OURS);
    }
    if (answer.statusCode === 200) return answer;
    throw new AskError(await text(answer));
  } catch (error) {
    throw error instanceof AskError ? error : noAnswer(socketPath, error);
  }
}
