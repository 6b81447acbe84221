import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { isLoopback } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { answerText } from './http-endpoint.js';
import type { RunningProcess } from './running-process.js';

/** Where the page is. */
const PAGE = '/ui';

type PageConfig = Pick<Config, 'metrics' | 'secured'>;

export function isOfPage(path: string): boolean {
  return path === PAGE || path.startsWith(`${PAGE}/`);
}

/** What answers the page. */
export interface OpenPage {
  /** @param checksHost whether a request has to name this machine. */
  answer(request: IncomingMessage, response: ServerResponse, checksHost: boolean): Promise<void>;
  close(): void;
}

export interface OpenPageParts {
  readonly running: RunningProcess;
  readonly clock: Clock;
  readonly log: Log;
}

interface PageParts extends Omit<OpenPageParts, 'running'> {
  readonly running: () => RunningProcess;
  readonly open: (parts: OpenPageParts) => Promise<OpenPage>;
}

/** The page for people, and what it asks: loaded at the first request. */
export class Page {
  private server: Promise<OpenPage> | null = null;

  constructor(private readonly parts: PageParts) {}

  /** On the metrics address of a configuration. Whoever can reach it sees every Service, so it is not for the network as it is. */
  async answerNetwork(config: PageConfig, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (servesPage(config)) await this.answer(request, response, config.secured === null);
    else answerText(response, 403, WHY_NOT);
  }

  /** On the status socket, which no other user can open. */
  answerOwner(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.answer(request, response, false);
  }

  /** Lets go of what it keeps for clients. After its listeners are shut. */
  async close(): Promise<void> {
    (await this.server?.catch(() => null))?.close();
  }

  private async answer(request: IncomingMessage, response: ServerResponse, checksHost: boolean): Promise<void> {
    this.server ??= this.load();
    const server = await this.server;
    await server.answer(request, response, checksHost);
  }

  private load(): Promise<OpenPage> {
    const { running, open, clock, log } = this.parts;
    return open({ running: running(), clock, log });
  }
}

const WHY_NOT =
  'the page is served if the metrics address is loopback, if --authorization-mode=Webhook, --authorization-config or --anonymous-auth=false guard it, and by `pointsman ui`\n';

/** Whether the page is on the metrics address: on this machine alone, or where unauthenticated clients are refused. */
export function servesPage({ metrics, secured }: PageConfig): boolean {
  if (isLoopback(metrics.address)) return true;
  if (secured === null) return false;
  const { authentication, authorization } = secured;
  return authentication.anonymous === false || authorization.file !== null || authorization.mode !== 'AlwaysAllow';
}
