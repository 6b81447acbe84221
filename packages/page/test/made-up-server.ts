import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, extname } from 'node:path';
import type { LiveEvents, ServiceSummary } from '../src/api.js';
import { PAGE_HEADERS } from '../src/assets.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import {
  configuration,
  detail,
  ENDPOINTS,
  explanation,
  history,
  overview,
  summary,
  traffic,
  triage,
} from './made-up.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Serves the page as the process does, and answers what it asks with what was made up. */
export class MadeUpServer {
  readonly services: ServiceSummary[];
  overview = overview();
  history = history();
  configuration = configuration();
  triage = triage();
  /** Of every Service; null: they are not counted. */
  connections: number | null = null;
  /** Whether explanations say that a change waits. */
  isPending = false;
  /** What was asked, by path and query. */
  readonly asked: string[] = [];
  readonly #streams = new Set<ServerResponse>();
  readonly #server: Server;
  #lastId = 0;

  private constructor(count: number) {
    this.services = Array.from({ length: count }, (_, index) => summary(index));
    this.#server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://page');
      this.asked.push(`${url.pathname}${url.search}`);
      if (url.pathname === '/ui/api/events') this.#stream(response);
      else if (url.pathname.startsWith('/ui/api/')) this.#answer(url, response);
      else serveFile(url.pathname, response);
    });
  }

  static async start(services = 44_000): Promise<MadeUpServer> {
    const made = new MadeUpServer(services);
    await made.listen(0);
    return made;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get address(): string {
    return `http://127.0.0.1:${this.port}/ui/`;
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  send<Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): void {
    for (const stream of this.#streams) this.#tell(stream, name, data);
  }

  /** It may listen again. */
  async stop(): Promise<void> {
    for (const stream of this.#streams) stream.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write('retry: 200\n\n');
    this.#streams.add(response);
    response.once('close', () => this.#streams.delete(response));
    this.#tell(response, 'snapshot', { overview: this.overview, history: this.history });
  }

  #tell(stream: ServerResponse, name: string, data: unknown): void {
    stream.write(`event: ${name}\nid: ${++this.#lastId}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #answer({ pathname, searchParams }: URL, response: ServerResponse): void {
    const answer = this.#made(pathname.slice('/ui/api/'.length), (name) => searchParams.get(name) ?? '');
    const error = answer === undefined || typeof answer === 'string';
    response.writeHead(error ? (answer === undefined ? 404 : 400) : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(error ? { error: answer ?? 'there is none of that name' } : answer));
  }

  /** A text is what is wrong with the question. */
  #made(path: string, asked: (name: string) => string): unknown {
    const offset = Number(asked('offset'));
    switch (path) {
      case 'services': {
        const words = asked('q').toLowerCase().split(' ');
        const [wanted, type] = [asked('problems'), asked('type')];
        const rows = this.services.filter(
          ({ key, addresses, problems, type: of }) =>
            words.every((word) => `${key} ${addresses.join(' ')}`.toLowerCase().includes(word)) &&
            (type === '' || of === type) &&
            (wanted === '' || (wanted === 'only' ? problems.length > 0 : problems.some((each) => each === wanted))),
        );
        if (asked('sort') === 'endpoints') rows.sort((one, other) => one.endpointsUsed - other.endpointsUsed);
        const shown = rows.slice(offset, offset + Number(asked('limit') || 100));
        return { total: this.services.length, matched: rows.length, offset, rows: shown };
      }
      case 'service': {
        const found = this.services.find(({ key }) => key === asked('key'));
        return found && { ...detail(found), traffic: this.connections === null ? null : traffic(this.connections) };
      }
      case 'endpoints':
        return { total: ENDPOINTS.length, offset, rows: ENDPOINTS.slice(offset) };
      case 'explain':
        return asked('to').includes(':')
          ? explanation(asked('to'), asked('from') || 'external', this.isPending)
          : 'to: not an address and port';
      case 'triage':
        return this.triage;
      case 'configuration':
        return this.configuration;
      default:
        return undefined;
    }
  }
}

function serveFile(path: string, response: ServerResponse): void {
  const name = path === '/ui/' ? 'index.html' : basename(path);
  const headers = { ...PAGE_HEADERS, 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream' };
  try {
    const content = readFileSync(projectFile(`dist/ui/${name}`));
    response.writeHead(200, headers).end(content);
  } catch {
    response.writeHead(404).end();
  }
}
