import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { deliverAtOnce } from './at-once.js';

/** A response's body whose errors are ours: a broken connection is reported, an aborted request gives the reason. */
export class Body extends Readable {
  private finished = false;

  /**
   * @param translate makes the error that the reader is to see.
   * @param onEnd receives the length, in bytes, of a complete body.
   */
  constructor(
    private readonly incoming: IncomingMessage,
    translate: (error: Error) => Error,
    onEnd: (length: number) => void,
  ) {
    super({ highWaterMark: incoming.readableHighWaterMark });
    let length = 0;
    deliverAtOnce(this);
    deliverAtOnce(incoming);
    incoming.on('data', (chunk: Buffer) => {
      if (this.finished) return;
      length += chunk.length;
      if (!this.push(chunk)) incoming.pause();
    });
    incoming.on('end', () => {
      if (this.finished) return;
      onEnd(length);
      this.push(null);
    });
    incoming.on('error', (error) => {
      this.destroy(translate(error));
    });
    incoming.on('close', () => {
      if (!incoming.readableEnded && !this.finished) this.destroy(translate(new Error('the connection was closed')));
    });
    incoming.pause();
    // A reader who has not come yet, or has gone, must not turn a broken connection into a crash.
    this.on('error', () => undefined);
  }

  /** Ends the body here, as the server might have, and its connection. */
  finish(): void {
    if (this.finished || this.readableEnded || this.destroyed) return;
    this.finished = true;
    this.push(null);
    this.incoming.destroy();
  }

  override _read(): void {
    this.incoming.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.incoming.destroy();
    callback(error);
  }
}
