import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';

/** What became of a request's body. */
export type ReadBody = Buffer | 'too-large' | 'late' | 'no-room';

interface BodyLimits {
  /** The limits of one body, and of all incomplete ones. */
  readonly maxBytes: number;
  readonly maxPendingBytes: number;
  /** From the request's head to the end of its body. */
  readonly deadlineMs: number;
}

/**
 * Reads bodies within limits of memory and time. An API server sends a review in one go. At the limit of memory, the request that has been incomplete for the
 * longest time ends, so that slow clients take no room from others.
 */
export class Bodies {
  /** The oldest first. */
  private readonly pending = new Set<Reading>();
  private pendingBytes = 0;

  constructor(
    private readonly limits: BodyLimits,
    private readonly clock: Clock,
  ) {}

  /** @throws when the client goes. */
  read(request: IncomingMessage): Promise<ReadBody> {
    const { clock } = this;
    const { maxBytes, maxPendingBytes, deadlineMs } = this.limits;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const settle = (): void => {
        cancel();
        this.pending.delete(reading);
        this.pendingBytes -= length;
        length = 0;
        request.off('data', take).off('end', end).off('error', fail).off('close', fail);
      };
      const finish = (body: ReadBody): void => {
        if (!this.pending.has(reading)) return;
        settle();
        resolve(body);
      };
      const reading: Reading = { end: finish };
      // What has come while this process was busy counts: it is read before the next turn.
      const cancel = clock.callAt(clock.now() + deadlineMs, () => {
        setImmediate(() => {
          finish('late');
        });
      });
      const take = (chunk: Buffer): void => {
        length += chunk.length;
        this.pendingBytes += chunk.length;
        chunks.push(chunk);
        if (length > maxBytes) finish('too-large');
        for (const oldest of this.pending) {
          if (this.pendingBytes <= maxPendingBytes) break;
          oldest.end('no-room');
        }
      };
      const end = (): void => {
        finish(Buffer.concat(chunks));
      };
      const fail = (error?: Error): void => {
        if (!this.pending.has(reading)) return;
        settle();
        reject(error ?? new Error('the client has gone'));
      };
      this.pending.add(reading);
      request.on('data', take).on('end', end).on('error', fail).on('close', fail);
    });
  }
}

interface Reading {
  readonly end: (body: ReadBody) => void;
}
