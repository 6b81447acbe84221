import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { Clock } from '../loop/clock.js';
import type { IPAddress } from '../net/ip.js';
import type { Log } from '../net/log.js';
import { answerWhole, boundPort, listen, openBindAddress, shut } from './listener.js';

/** Time between attempts to bind. */
const BIND_RETRY_MS = 5000;

export interface HttpEndpointOptions {
  /** 0.0.0.0 and :: both mean every address of both families, as in Go. */
  readonly address: IPAddress;
  readonly port: number;
  /** Whether a failure to bind ends the process (bindAddressHardFail) rather than being retried every 5 s. */
  readonly hardFail: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Called once, with hardFail only. */
  readonly onFatal: (error: Error) => void;
}

/** One HTTP server on a bind address of the configuration, without authentication. */
export class HttpEndpoint {
  private server: Server | null = null;
  private cancelRetry: (() => void) | null = null;
  private closed = false;
  private opening: Promise<void> = Promise.resolve();

  /** @param what is served, as messages name it: `health checks`. */
  constructor(
    private readonly what: string,
    private readonly options: HttpEndpointOptions,
    private readonly handler: RequestListener,
  ) {}

  /** Resolves after the first attempt to bind, whether it succeeded or not. Never rejects. */
  start(): Promise<void> {
    this.opening = this.open();
    return this.opening;
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
    const { address, port, hardFail, clock, log, onFatal } = this.options;
    try {
      this.server = await this.bind();
      log.info(1, `serving ${this.what}`, { address, port: this.port() });
    } catch (cause) {
      if (this.closed) return;
      const message = `cannot serve ${this.what} on ${address} port ${port}`;
      if (hardFail) {
        // The event has the message alone, so the cause is part of it; as `cause` the log would print it twice.
        onFatal(new Error(`${message}: ${cause instanceof Error ? cause.message : String(cause)}`));
        return;
      }
      log.error(cause, message, { retryMs: BIND_RETRY_MS });
      this.cancelRetry = clock.callAt(clock.now() + BIND_RETRY_MS, () => {
        this.cancelRetry = null;
        this.opening = this.open();
      });
    }
  }

  private bind(): Promise<Server> {
    const { address, port, log } = this.options;
    const onError = (error: Error): void => {
      log.error(error, `serving ${this.what}`);
    };
    return openBindAddress(address, port, (socket) => listen(socket, this.handler, onError));
  }
}

const PLAIN_TEXT = { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' } as const;

/** Answers in plain text. */
export function answerText(response: ServerResponse, status: number, text: string): void {
  answerWhole(response, status, PLAIN_TEXT, text);
}

/** Answers as Go's server does where nothing is served. */
export function answerNotFound(response: ServerResponse): void {
  answerText(response, 404, '404 page not found\n');
}
