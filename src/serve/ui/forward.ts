import { randomBytes } from 'node:crypto';
import { Agent, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../base/error-message.js';
import type { HostPort } from '../../config/host-port.js';
import { answerText } from '../http-endpoint.js';
import { boundPort, listen } from '../listener.js';
import { printEndpoint } from '../../base/endpoint-list.js';
import { isThisMachine } from './server.js';

/** What of a question is passed on. */
const PASSED = ['accept', 'if-none-match', 'sec-fetch-site'] as const;
/** Of the connections that a status socket has. */
const MAX_SOCKETS = 24;

/**
 * Serves the page of the process behind a status socket on an address of loopback, until the process ends. The socket is open to one user and loopback to
 * everybody on the machine, so the page is below a name that cannot be guessed.
 *
 * @returns where it is.
 * @throws when nobody can listen there.
 */
export async function forwardPage(socketPath: string, { address, port }: HostPort): Promise<string> {
  const secret = `/${randomBytes(16).toString('base64url')}`;
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const server = await listen(
    { address, port, dualStack: false },
    (request, response) => {
      const url = request.url ?? '';
      if (!isThisMachine(request.headers.host ?? '')) answerText(response, 421, 'ask by an address of loopback\n');
      else if (!url.startsWith(`${secret}/ui`))
        answerText(response, 404, 'the address that was printed leads to the page\n');
      else void forward({ socketPath, agent, path: url.slice(secret.length) }, request, response);
    },
    (error) => {
      throw error;
    },
  );
  return `http://${printEndpoint(address, boundPort(server) ?? port)}${secret}/ui/`;
}

interface Target {
  readonly socketPath: string;
  readonly agent: Agent;
  readonly path: string;
}

async function forward(target: Target, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const headers = Object.fromEntries(
    PASSED.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, request.headers[name]]])),
  );
  const asked = ask({ ...target, method: request.method ?? 'GET', headers });
  response.once('close', () => {
    asked.destroy();
  });
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.once('response', resolve).once('error', reject).end();
    });
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    await pipeline(answer, response);
  } catch (error) {
    if (response.headersSent || response.destroyed) response.destroy();
    else answerText(response, 502, `no answer on the status socket: ${messageOf(error)}\n`);
  }
}
