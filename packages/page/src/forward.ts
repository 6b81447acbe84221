import { Agent, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../../src/base/error-message.js';
import type { HostPort } from '../../../src/config/host-port.js';
import { answerText } from '../../../src/serve/http-endpoint.js';
import { serveOnLoopback } from './loopback.js';

/** What of a question is passed on. */
const PASSED = ['accept', 'if-none-match', 'sec-fetch-site'] as const;
/** The share of the connections that a status socket has. */
const MAX_SOCKETS = 24;

/**
 * Serves the page of the process behind a status socket, which is open to one user, on an address of loopback, until the process ends.
 *
 * @returns where it is.
 * @throws when the address cannot be listened on.
 */
export async function forwardPage(socketPath: string, place: HostPort): Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const page = await serveOnLoopback(place, (path, request, response) => {
    void forward({ socketPath, agent, path }, request, response);
  });
  return page.address;
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
