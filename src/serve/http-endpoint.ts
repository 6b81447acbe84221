import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { errorCode, messageOf } from '../base/error-message.js';
import { isUnspecified, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { SilentListener } from '../observe/observations.js';
import type { AccessControl, Pages } from './access-control.js';
import type { ClientShares } from './client-shares.js';
import { ConnectionLimit } from './connection-limit.js';
import { answerWhole, boundPort, listen, MAX_CONNECTIONS, openBindAddress, shut } from './listener.js';

/** Time between attempts to bind. */
const BIND_RETRY_MS = 5000;

/** Where an endpoint is served. */
export interface Bind {
  /** 0.0.0.0 and :: both mean every address of both families, as in Go. */
  readonly address: IPAddress;
  readonly port: number;
  /** Whether a failure to bind ends the process (bindAddressHardFail) rather than being retried every 5 s. */
  readonly hardFail: boolean;
}

export interface HttpEndpointOptions {
  /** At the start; null: nowhere. */
  readonly bind: Bind | null;
  /** Shares of the main thread's time, by client. */
  readonly shares: ClientShares;
  readonly clock: Clock;
  readonly log: Log;
  /** What stands in front of it, asked when it opens; null: it is plain HTTP without authentication. */
  readonly accessControl?: () => AccessControl | null;
  /** Called once, with hardFail only. */
  readonly onFatal: (error: Error) => void;
}

/** One HTTP server on a bind address of the configuration. */
export class HttpEndpoint {
  private server: Server | null = null;
  private cancelRetry: (() => void) | null = null;
  private closed = false;
  private opening: Promise<void> = Promise.resolve();
  private bind: Bind | null;
  /** Why it is not served; null: it is, or is not wanted. */
  private failed: string | null = null;

  /** @param what is served, as messages name it: `health checks`. */
  constructor(
    private readonly what: string,
    private readonly options: HttpEndpointOptions,
    private readonly pages: Pages,
  ) {
    this.bind = options.bind;
  }

  /** Resolves after the first attempt to bind, whether it succeeded or not. Never rejects. */
  start(): Promise<void> {
    this.opening = this.open();
    return this.opening;
  }

  /**
   * Serves elsewhere. The new socket is open before the old one closes, unless the system cannot have both. Rejects when there is none to be had, and then
   * serves where it did.
   */
  move(to: Bind | null): Promise<void> {
    const moving = this.opening.then(() => this.moveNow(to));
    this.opening = moving.catch(() => undefined);
    return moving;
  }

  /** The address that is wanted and not served, and why; null: nothing is amiss. */
  silent(): SilentListener | null {
    const { what, bind, failed } = this;
    return bind === null || failed === null ? null : { what, address: bind.address, port: bind.port, reason: failed };
  }

  /** The port listened on; null while there is none. */
  port(): number | null {
    return this.server === null ? null : boundPort(this.server);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelRetry?.();
    this.cancelRetry = null;
    await this.opening;
    const { server } = this;
    this.server = null;
    if (server !== null) await shut(server);
  }

  private async open(): Promise<void> {
    if (this.bind === null) return;
    const { clock, log, onFatal } = this.options;
    try {
      await this.listen(this.bind);
    } catch (cause) {
      if (this.closed) return;
      if (this.bind.hardFail) {
        onFatal(this.failure(this.bind, cause));
        return;
      }
      const { address, port } = this.bind;
      this.failed = messageOf(cause);
      log.error(cause, `cannot serve ${this.what} on ${address} port ${port}`, { retryMs: BIND_RETRY_MS });
      this.cancelRetry = clock.callAt(clock.now() + BIND_RETRY_MS, () => {
        this.cancelRetry = null;
        this.opening = this.open();
      });
    }
  }

  private async moveNow(to: Bind | null): Promise<void> {
    const from = this.bind;
    this.bind = to;
    if (this.closed || (from !== null && to !== null && isSameSocket(from, to))) return;
    this.cancelRetry?.();
    this.cancelRetry = null;
    try {
      await this.exchange(from, to);
    } catch (cause) {
      this.bind = from;
      if (this.server === null) await this.open();
      throw to === null ? cause : this.failure(to, cause);
    }
  }

  private async exchange(from: Bind | null, to: Bind | null): Promise<void> {
    const { server } = this;
    const close = async (): Promise<void> => {
      if (server !== null) await shut(server);
    };
    if (to !== null) {
      try {
        await this.listen(to);
        await close();
        return;
      } catch (cause) {
        // A wildcard and an address of it, on one port, may exclude each other.
        if (server === null || from?.port !== to.port || errorCode(cause) !== 'EADDRINUSE') throw cause;
      }
    }
    this.server = null;
    await close();
    if (to !== null) await this.listen(to);
  }

  private async listen({ address, port }: Bind): Promise<void> {
    const { log, shares } = this.options;
    const limit = new ConnectionLimit(MAX_CONNECTIONS, shares);
    const accessControl = this.options.accessControl?.() ?? null;
    const onError = (error: Error): void => {
      log.error(error, `serving ${this.what}`);
    };
    this.server = await openBindAddress(address, port, (socket) =>
      accessControl === null
        ? listen(socket, (...exchange) => void this.pages(...exchange), onError, limit)
        : listen(
            socket,
            (...exchange) => {
              accessControl.admit(...exchange, this.pages);
            },
            onError,
            limit,
            (options) => accessControl.createServer(options),
          ),
    );
    // That it could not be had was reported as an error.
    log.info(this.failed === null ? 1 : 0, `serving ${this.what}`, { address, port: this.port() });
    this.failed = null;
  }

  /** Events have the message alone, so the cause is part of it; as `cause` the log would print it twice. */
  private failure({ address, port }: Bind, cause: unknown): Error {
    const reason = messageOf(cause);
    return new Error(`cannot serve ${this.what} on ${address} port ${port}: ${reason}`);
  }
}

function isSameSocket(one: Bind, other: Bind): boolean {
  const everywhere = isUnspecified(one.address) && isUnspecified(other.address);
  return one.port === other.port && (everywhere || one.address === other.address);
}

/** Answers one path, whatever the method unless it says otherwise. */
export type Page = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>;

const PLAIN_TEXT = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' } as const;

/** Answers in plain text. */
export function answerText(response: ServerResponse, status: number, text: string): void {
  answerWhole(response, status, PLAIN_TEXT, text);
}

/** Go's answer where nothing is served. */
const NOT_FOUND = '404 page not found\n';

interface RouteOptions {
  readonly log: Pick<Log, 'error'>;
  /** What the log says of an answer that failed. */
  readonly message?: string;
  /** With status 404. */
  readonly notFound?: (path: string) => string;
  /** With status 500. */
  readonly failed?: (error: unknown) => string;
}

/**
 * Answers a request by the page of its path. Answers what that threw, or null.
 *
 * @param find the page of a path, such as `/metrics`.
 */
export async function route(
  request: IncomingMessage,
  response: ServerResponse,
  find: (path: string) => Page | undefined,
  { log, message = 'cannot answer', notFound = () => NOT_FOUND, failed = () => 'internal error\n' }: RouteOptions,
): Promise<unknown> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2);
  try {
    const page = find(path);
    if (page === undefined) answerText(response, 404, notFound(path));
    else await page(request, response, new URLSearchParams(query));
    return null;
  } catch (error) {
    // A client that has gone away is no failure of ours.
    if (response.destroyed) return null;
    log.error(error, message, { path });
    if (response.headersSent) response.destroy();
    else answerText(response, 500, failed(error));
    return error;
  }
}
