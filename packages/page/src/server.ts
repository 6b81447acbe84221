import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../../src/base/error-message.js';
import { FAMILIES } from '../../../src/base/ip.js';
import { printableText } from '../../../src/base/printable.js';
import { answerText } from '../../../src/serve/http-endpoint.js';
import { answerWhole } from '../../../src/serve/listener.js';
import { planStream } from '../../../src/serve/plan-stream.js';
import type { OpenPage, OpenPageParts } from '../../../src/serve/page.js';
import { explainPacket, type ExplainedPacket } from '../../../src/serve/explain-packet.js';
import type { Api, ApiError, ServiceProblem, ServicesPage } from './api.js';
import { answerAsset, PAGE_HEADERS, readAssets, type Asset } from './assets.js';
import { configuration } from './configuration.js';
import { explainAnswer } from './explained.js';
import { history } from './history.js';
import { Live } from './live.js';
import { isThisMachine } from './loopback.js';
import { nodeAnswer, versionsAnswer } from './node-state.js';
import { overview } from './overview.js';
import { AskedWrongly, oneOf, pageOf, textOf } from './query.js';
import { RowsAnswer } from './rows-answer.js';
import { endpointsPage, frontendsPage, serviceDetail } from './service-detail.js';
import { listServices, SERVICE_SORTS, SERVICE_TYPES } from './service-list.js';
import { ServiceOrder } from './service-order.js';
import { SERVICE_PROBLEMS } from './service-problems.js';
import { Triage } from './triage.js';

interface PageServerParts extends OpenPageParts {
  /** Folder of the page's files. */
  readonly folder: string;
}

/** Where the page is, below whatever a proxy puts before it. */
const ROOT = '/ui/';
const API = `${ROOT}api/`;
/** Explanations that wait for the one under way: each asks the kernel. */
const MAX_EXPLAINING = 4;

/** They are written in parts. */
const MAX_SERVICES = 10_000;

const PROBLEMS: readonly ('only' | ServiceProblem)[] = ['only', ...SERVICE_PROBLEMS];

type Answer<Of> = Of extends ServicesPage ? RowsAnswer : Of;

type Answers = {
  readonly [Path in keyof Api]: (
    query: URLSearchParams,
  ) => Answer<Api[Path]['answer']> | Promise<Answer<Api[Path]['answer']>>;
};

/** The page, and what it asks. */
export class PageServer implements OpenPage {
  private readonly order: ServiceOrder;
  private readonly live: Live;
  private readonly triage: Triage;
  private readonly answers: ReadonlyMap<string, (query: URLSearchParams) => unknown>;
  private assets: Promise<ReadonlyMap<string, Asset>> | null = null;
  private explaining: Promise<unknown> = Promise.resolve();
  private explanations = 0;

  constructor(private readonly parts: PageServerParts) {
    const { running, clock } = parts;
    this.order = new ServiceOrder(running, (ms, callback) => clock.callAt(clock.now() + ms, callback));
    this.live = new Live(parts);
    this.triage = new Triage({ ...parts, order: this.order });
    this.answers = new Map([...Object.entries(this.questions()), ...Object.entries(this.questionsOfNodes())]);
  }

  close(): void {
    this.order.forget();
    this.triage.close();
  }

  /**
   * @param checksHost whether the request has to name this machine: a client that comes by a plain address of it may be a foreign page, whose name
   *   was made to resolve to it.
   */
  async answer(request: IncomingMessage, response: ServerResponse, checksHost: boolean): Promise<void> {
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    for (const [name, value] of Object.entries(PAGE_HEADERS)) response.setHeader(name, value);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      answerText(response, 405, 'this page is read-only\n');
    } else if (checksHost && !isThisMachine(request.headers.host ?? '')) {
      answerText(response, 421, 'use a loopback address or localhost\n');
    } else if (path === '/ui') {
      response.writeHead(302, { Location: 'ui/' }).end();
    } else if (path.startsWith(API)) {
      await this.answerApi(path.slice(ROOT.length), query, request, response);
    } else {
      this.assets ??= readAssets(this.parts.folder);
      answerAsset(await this.assets, path.slice(ROOT.length), request, response);
    }
  }

  private async answerApi(
    path: string,
    query: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    response.setHeader('Cache-Control', 'no-store');
    try {
      const site = request.headers['sec-fetch-site'] ?? 'none';
      if (site !== 'same-origin' && site !== 'none') throw new AskedWrongly(403, 'only the page itself has access');
      if (path === 'api/events') {
        await this.stream(request, response);
        return;
      }
      if (path === 'api/plan' || path === 'api/metrics') {
        await this.answerText(path, response);
        return;
      }
      const answer = this.answers.get(path);
      if (answer === undefined) throw new AskedWrongly(404, `there is no ${path}`);
      const answered = await answer(new URLSearchParams(query));
      if (answered instanceof RowsAnswer) {
        response.writeHead(200, JSON_TYPE);
        await pipeline(answered.stream(), response);
      } else answerJson(response, 200, answered);
    } catch (error) {
      // A client that has gone away is no failure of ours.
      if (response.destroyed) return;
      const status = error instanceof AskedWrongly ? error.status : 500;
      if (status === 500) this.parts.log.error(error, 'cannot answer the page', { path });
      const answer: ApiError = { error: messageOf(error) };
      answerJson(response, status, answer);
    }
  }

  /** What `pointsman bugreport --node` asks. */
  private async answerText(path: 'api/plan' | 'api/metrics', response: ServerResponse): Promise<void> {
    const { running } = this.parts;
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    if (path === 'api/plan') await pipeline(planStream(running), response);
    else answerText(response, 200, await running.metrics());
  }

  private async stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.live.isFull) {
      response.setHeader('Retry-After', '10');
      throw new AskedWrongly(503, 'too many listeners already');
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
    if (request.method === 'HEAD') response.end();
    else await this.live.open(response);
  }

  private questions(): Answers {
    const { running } = this.parts;
    const key = (query: URLSearchParams): string => textOf(query, 'key', 512);
    return {
      'api/overview': () => overview(running),
      'api/services': async (query) => {
        const { rows, ...others } = await listServices(running, this.order, {
          search: textOf(query, 'q'),
          problem: query.has('problems') ? oneOf(query, 'problems', PROBLEMS) : null,
          type: query.has('type') ? oneOf(query, 'type', SERVICE_TYPES) : null,
          sort: query.has('sort') ? oneOf(query, 'sort', SERVICE_SORTS) : 'name',
          places: query.has('places'),
          ...pageOf(query, MAX_SERVICES),
        });
        return new RowsAnswer(others, rows);
      },
      'api/service': (query) => serviceDetail(running, key(query)),
      'api/frontends': (query) => frontendsPage(running, { key: key(query), ...pageOf(query) }),
      'api/endpoints': (query) =>
        endpointsPage(running, {
          key: key(query),
          family: oneOf(query, 'family', FAMILIES),
          port: textOf(query, 'port'),
          protocol: textOf(query, 'protocol'),
          policy: oneOf(query, 'policy', ['Cluster', 'Local']),
          ...pageOf(query),
        }),
      'api/explain': async (query) => explainAnswer(...senderAndTarget(query), await this.explain(query)),
      'api/triage': () => this.triage.answer(),
      'api/history': () => history(running),
      'api/configuration': () => configuration(running),
    };
  }

  /** What `pointsman nodes` and `pointsman explain --node` ask. */
  private questionsOfNodes(): Readonly<Record<string, (query: URLSearchParams) => unknown>> {
    const { running } = this.parts;
    return {
      'api/node': () => nodeAnswer(running),
      'api/versions': (query) => versionsAnswer(running, query),
      'api/packet': (query) => this.explain(query),
    };
  }

  /** One after the other. */
  private async explain(query: URLSearchParams): Promise<ExplainedPacket> {
    if (this.explanations >= MAX_EXPLAINING) throw new AskedWrongly(429, 'busy with other requests, try again');
    this.explanations++;
    const answering = this.explaining.then(() => explainPacket(this.parts.running, ...senderAndTarget(query)));
    this.explaining = answering.catch(() => undefined);
    try {
      const answer = await answering;
      if ('problem' in answer) throw new AskedWrongly(400, answer.problem);
      return answer;
    } finally {
      this.explanations--;
    }
  }
}

/** What a packet is asked by. @throws AskedWrongly */
function senderAndTarget(query: URLSearchParams): [from: string, to: string] {
  return [textOf(query, 'from') || 'external', textOf(query, 'to')];
}

const JSON_TYPE = { 'Content-Type': 'application/json' } as const;

function answerJson(response: ServerResponse, status: number, answer: unknown): void {
  answerWhole(response, status, JSON_TYPE, `${printableText(JSON.stringify(answer))}\n`);
}
