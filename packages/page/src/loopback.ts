import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { printEndpoint } from '../../../src/base/endpoint-list.js';
import { isLoopback, parseAddress } from '../../../src/base/ip.js';
import type { HostPort } from '../../../src/config/host-port.js';
import { answerText } from '../../../src/serve/http-endpoint.js';
import { boundPort, listen, shut } from '../../../src/serve/listener.js';

/** A page that is served. */
export interface ServedPage {
  readonly address: string;
  close(): Promise<void>;
}

/**
 * Serves a page to this machine, until the process ends. Loopback is open to all users of the machine, so the page is below a name that cannot be guessed.
 *
 * @param answer is given the target of the request without that name: `/ui/…`.
 * @throws when the address cannot be listened on.
 */
export async function serveOnLoopback(
  { address, port }: HostPort,
  answer: (target: string, request: IncomingMessage, response: ServerResponse) => void,
): Promise<ServedPage> {
  const secret = `/${randomBytes(16).toString('base64url')}`;
  const server = await listen(
    { address, port, dualStack: false },
    (request, response) => {
      const url = request.url ?? '';
      if (!isThisMachine(request.headers.host ?? '')) answerText(response, 421, 'use a loopback address\n');
      else if (!url.startsWith(`${secret}/ui`))
        answerText(response, 404, 'the address that was printed leads to the page\n');
      else answer(url.slice(secret.length), request, response);
    },
    (error) => {
      throw error;
    },
  );
  return {
    address: `http://${printEndpoint(address, boundPort(server) ?? port)}${secret}/ui/`,
    close: () => shut(server),
  };
}

/** Whether a Host header is a name of this machine that no one else can resolve to another address. */
export function isThisMachine(host: string): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  if (name.toLowerCase() === 'localhost') return true;
  const address = parseAddress(name);
  return address !== null && isLoopback(address);
}
