import { request } from 'node:http';
import { errorCode } from '../observe/listener.js';

/** Why the running process did not answer; the message says it all. */
export class AskError extends Error {
  override readonly name = 'AskError';
}

/**
 * Asks the process that listens on a status socket, and resolves to the text it answers with.
 *
 * @param socket path; null when the configuration names none.
 * @param page such as `/status?key=value`.
 * @throws AskError
 */
export async function ask(socket: string | null, page: string): Promise<string> {
  if (socket === null) throw new AskError('--status-socket: is empty, so there is no process to ask');
  let answer: Answer;
  try {
    answer = await get(socket, page);
  } catch (error) {
    throw new AskError(`no answer on --status-socket ${socket}: ${describe(error)}`, { cause: error });
  }
  if (answer.status !== 200) throw new AskError(answer.body);
  return answer.body;
}

function describe(error: unknown): string {
  switch (errorCode(error) ?? '') {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return 'no pointsman runs there';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied, only the user of the process may ask';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

function get(socketPath: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, body });
      });
      response.once('error', reject);
    });
    outgoing.once('error', reject).end();
  });
}
