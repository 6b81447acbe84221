import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../../../src/base/error-message.js';
import { printableText } from '../../../src/base/printable.js';
import type { HostPort } from '../../../src/config/host-port.js';
import { answerText } from '../../../src/serve/http-endpoint.js';
import { answerWhole, JSON_HEADERS } from '../../../src/serve/listener.js';
import { answerAsset, PAGE_HEADERS, readAssets } from '../../page/src/assets.js';
import { serveOnLoopback, type ServedPage } from '../../page/src/loopback.js';
import type { NodesReport } from './api.js';

/** Pages of several windows that ask within this time receive the same answer. */
const FRESH_MS = 3000;

interface NodesPageParts {
  readonly look: () => Promise<NodesReport>;
  /** Folder of the page's files. */
  readonly folder?: string;
}

/**
 * Serves the page about all nodes to this machine, until the process ends. Nodes are asked when the page asks, and not while no page is open.
 *
 * @throws when the address cannot be listened on.
 */
export async function serveNodesPage(
  { look, folder = fileURLToPath(new URL('./nodes-ui/', import.meta.url)) }: NodesPageParts,
  place: HostPort,
): Promise<ServedPage> {
  const assets = await readAssets(folder);
  let latest: Promise<string> | null = null;
  const report = (): Promise<string> => {
    latest ??= look().then(
      (found) => {
        setTimeout(() => (latest = null), FRESH_MS).unref();
        return printableText(JSON.stringify(found));
      },
      (error: unknown) => {
        latest = null;
        throw error;
      },
    );
    return latest;
  };
  return serveOnLoopback(place, (target, request, response) => {
    const [path = ''] = target.split('?', 1);
    for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      answerText(response, 405, 'this page is read-only\n');
    } else if (path === '/ui') response.writeHead(302, { Location: 'ui/' }).end();
    else if (path === '/ui/api/nodes') void answerReport(report(), request, response);
    else answerAsset(assets, path.slice('/ui/'.length), request, response);
  });
}

async function answerReport(
  report: Promise<string>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader('Cache-Control', 'no-store');
  const site = request.headers['sec-fetch-site'] ?? 'none';
  const answer = (status: number, body: string): void => {
    if (!response.destroyed) answerWhole(response, status, JSON_HEADERS, `${body}\n`);
  };
  const fail = (status: number, error: string): void => {
    answer(status, printableText(JSON.stringify({ error })));
  };
  await report.then(
    (body) => {
      if (site === 'same-origin' || site === 'none') answer(200, body);
      else fail(403, 'only the page itself has access');
    },
    (error: unknown) => {
      fail(502, messageOf(error));
    },
  );
}
