import { mkdir } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import { claimSocket, isNamedPipe } from './claimed-socket.js';
import { ConnectionLimit, SERVER_OPTIONS } from './connection-limit.js';
import { answerText, route, type Page as HttpPage } from './http-endpoint.js';
import { shut } from './listener.js';
import { isOfPage, type Page } from './page.js';
import { SERVER_NAME, WELL_HEADER } from './well.js';

/** Time between attempts to listen. */
const RETRY_MS = 5000;
export const MAX_CONNECTIONS = 32;

/** What a question is answered with. */
export type StatusAnswer =
  /** 400: the question cannot be answered, and the text says why. */
  | { readonly status: 200 | 400; readonly text: string; readonly well?: boolean }
  | { readonly status: 200; readonly stream: Readable };

interface StatusSocketOptions {
  /** Where the socket is to be; its folder is made when there is none. */
  readonly path: string;
  /** By path, such as `/status`. */
  readonly pages: ReadonlyMap<string, (query: URLSearchParams) => Promise<StatusAnswer>>;
  readonly page: Pick<Page, 'answerOwner'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A Unix socket, or a named pipe on Windows, on which commands ask the running process by HTTP. Only its own user may connect:
 * its answers about Services are not for every user of the node. Unlike the metrics address it cannot be bound to the network.
 * Forwarding does not depend on it, so no error here ends the process.
 */
export class StatusSocket {
  private server: Server | null = null;
  /** Gives the path up. */
  private release: (() => Promise<void>) | null = null;
  private cancelRetry: (() => void) | null = null;
  private closed = false;
  private opening: Promise<void> = Promise.resolve();
  private lastFailure: string | null = null;

  constructor(private readonly options: StatusSocketOptions) {}

  /** Resolves after the first attempt to listen, whether it succeeded or not. Never rejects. */
  start(): Promise<void> {
    this.opening = this.open();
    return this.opening;
  }

  /** Stops listening and removes the socket. */
  async close(): Promise<void> {
    this.closed = true;
    this.cancelRetry?.();
    await this.opening;
    // The name first: while we listen, no other process takes it.
    await this.release?.();
    this.release = null;
    if (this.server !== null) await shut(this.server);
    this.server = null;
  }

  private async open(): Promise<void> {
    const { path, clock, log } = this.options;
    try {
      if (!isNamedPipe(path)) await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      this.server = await this.listen();
      if (this.lastFailure !== null) log.info(0, 'status socket is open now', { path });
      this.lastFailure = null;
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.lastFailure)
        log.warn(`cannot open the status socket, will be retried: ${message}`, { path });
      this.lastFailure = message;
      if (this.closed) return;
      this.cancelRetry = clock.callAt(clock.now() + RETRY_MS, () => {
        this.opening = this.open();
      });
    }
  }

  private async listen(): Promise<Server> {
    const { path, log } = this.options;
    const server = createServer(SERVER_OPTIONS);
    new ConnectionLimit(MAX_CONNECTIONS).serve(server, (request, response) => {
      void this.answer(request, response);
    });
    try {
      this.release = await claimSocket(server, path);
    } catch (error) {
      await shut(server);
      throw error;
    }
    server.on('error', (error) => {
      log.error(error, 'serving the status socket');
    });
    return server;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('Server', SERVER_NAME);
    const { page, log } = this.options;
    const ofPage: HttpPage = () => page.answerOwner(request, response);
    await route(request, response, (path) => (isOfPage(path) ? ofPage : this.pageAt(path)), {
      log,
      message: 'cannot answer on the status socket',
      notFound: (path) => `there is no ${path}`,
      failed: messageOf,
    });
  }

  private pageAt(path: string): HttpPage | undefined {
    const page = this.options.pages.get(path);
    if (page === undefined) return undefined;
    return async (_request, response, query) => {
      const answer = await page(query);
      if ('text' in answer) {
        if (answer.well !== undefined) response.setHeader(WELL_HEADER, String(answer.well));
        answerText(response, answer.status, answer.text);
      } else await pipeline(answer.stream, response);
    };
  }
}
