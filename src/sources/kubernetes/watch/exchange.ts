import type { Readable } from 'node:stream';
import type { Clock } from '../../../base/clock.js';
import { codecOf } from '../codec/codec.js';
import { TruncatedError } from '../codec/errors.js';
import type { Codec } from '../codec/events.js';
import type { ApiConnection, ApiQuery, ApiResponse } from '../connection.js';
import { failureOfStatus, SourceFailure } from '../failure.js';
import type { Dependencies } from '../timing.js';
import { Coalescer } from './coalescer.js';

/** What decodes a response's body. */
export interface BodyDecoder<T> {
  /** @param receivedAt when the chunk came, in milliseconds on the clock's time. */
  push(chunk: Buffer, receivedAt: number): void;
  end(): T;
}

interface Exchange<T> {
  readonly path: string;
  readonly query: ApiQuery;
  /** Called when the answer is good and about to be read. */
  readonly open: (codec: Codec) => BodyDecoder<T>;
}

export interface Exchanger {
  /**
   * One GET whose body is decoded as it arrives. Resolves with what the decoder made of it.
   *
   * @throws SourceFailure, CodecError, ApiError, or what the decoder throws.
   */
  run<T>(exchange: Exchange<T>, signal: AbortSignal): Promise<T>;
}

const MAX_ERROR_BODY_BYTES = 64 * 1024;

export class ApiExchanger implements Exchanger {
  constructor(
    private readonly connection: ApiConnection,
    private readonly accept: string,
    private readonly dependencies: Dependencies,
  ) {}

  async run<T>(exchange: Exchange<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const guard = new SilenceGuard(this.dependencies, signal);
    try {
      const response = await this.connection.get(exchange.path, exchange.query, {
        accept: this.accept,
        signal: guard.signal,
        headerTimeoutMs: this.dependencies.timing.headersMs,
      });
      return await this.read(exchange, response, guard);
    } catch (error) {
      throw guard.failure ?? error;
    } finally {
      guard.release();
    }
  }

  private async read<T>(exchange: Exchange<T>, response: ApiResponse, guard: SilenceGuard): Promise<T> {
    const { status, contentType, retryAfterMs, body } = response;
    guard.received();
    if (status !== 200) {
      const text = await readStart(body, this.dependencies.clock, guard);
      throw failureOfStatus(status, codecOf(contentType)?.status(text) ?? null, retryAfterMs);
    }
    const codec = codecOf(contentType);
    if (codec === null) {
      body.destroy();
      throw new SourceFailure('rejected', `the answer is ${contentType === '' ? 'of no type' : contentType}`);
    }
    const decoder = exchange.open(codec);
    const { clock } = this.dependencies;
    await consume(body, clock, guard, (chunk, receivedAt) => {
      decoder.push(chunk, receivedAt);
    });
    return decoder.end();
  }
}

/**
 * Hands over a body's chunks as they come, until its end. An error of `take` destroys the body and is the result. By events, as an async
 * iterator costs a good part of what decoding does.
 */
function consume(
  body: Readable,
  clock: Clock,
  guard: SilenceGuard,
  take: (chunk: Buffer, receivedAt: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (body.destroyed) {
      reject(body.errored ?? new TruncatedError('the answer was cut off'));
      return;
    }
    let failed = false;
    const coalescer = new Coalescer(clock, (chunk, receivedAt) => {
      if (failed) return;
      try {
        take(chunk, receivedAt);
      } catch (error) {
        failed = true;
        reject(error instanceof Error ? error : new Error(String(error)));
        body.destroy();
      }
    });
    body.on('data', (chunk: Buffer) => {
      guard.received();
      coalescer.push(chunk);
    });
    body.on('error', (error) => {
      coalescer.flush();
      reject(error);
    });
    body.on('end', () => {
      coalescer.flush();
      resolve();
    });
    body.on('close', () => {
      coalescer.flush();
      reject(new TruncatedError('the answer was cut off'));
    });
  });
}

/** The first of a body's bytes; the rest is not waited for. */
async function readStart(body: Readable, clock: Clock, guard: SilenceGuard): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    await consume(body, clock, guard, (chunk) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= MAX_ERROR_BODY_BYTES) throw new TruncatedError('enough');
    });
  } catch {
    // The status line has reported what matters.
  }
  return Buffer.concat(chunks);
}

/** Aborts a request that has been silent for too long. */
class SilenceGuard {
  private readonly controller = new AbortController();
  private lastReceived: number;
  private cancel: () => void;
  private readonly onAbort = (): void => {
    this.controller.abort(this.outer.reason);
  };
  /** Set when the silence was too long. */
  failure: SourceFailure | null = null;

  constructor(
    private readonly dependencies: Dependencies,
    private readonly outer: AbortSignal,
  ) {
    this.lastReceived = dependencies.clock.now();
    this.cancel = this.arm();
    outer.addEventListener('abort', this.onAbort);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  received(): void {
    this.lastReceived = this.dependencies.clock.now();
  }

  release(): void {
    this.cancel();
    this.outer.removeEventListener('abort', this.onAbort);
  }

  private arm(): () => void {
    const { clock, timing } = this.dependencies;
    return clock.callAt(this.lastReceived + timing.silenceMs, () => {
      this.check();
    });
  }

  /** Bytes since the timer was set only move the time of the next look: no timer is touched for a chunk. */
  private check(): void {
    const { clock, timing } = this.dependencies;
    if (clock.now() - this.lastReceived < timing.silenceMs) {
      this.cancel = this.arm();
      return;
    }
    this.failure = new SourceFailure('silent', `nothing came for ${Math.round(timing.silenceMs / 1000)} s`);
    this.controller.abort(this.failure);
  }
}
