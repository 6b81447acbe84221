import type { ServerResponse } from 'node:http';
import type { Fault } from './faults.js';

/** A response whose bytes pass the fault that its request met. */
export class Answer {
  private sent = 0;
  private readonly queue: Buffer[] = [];
  private timer: NodeJS.Timeout | null = null;
  private ending = false;
  /** Nothing more is sent; the connection stays open or is gone. */
  private stopped = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly fault: Fault | null,
  ) {
    response.on('close', () => {
      this.stopped = true;
      if (this.timer !== null) clearInterval(this.timer);
    });
  }

  get open(): boolean {
    return !this.stopped;
  }

  onClose(listener: () => void): void {
    this.response.on('close', listener);
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    this.response.writeHead(status, headers);
    this.response.flushHeaders();
  }

  write(bytes: Buffer): void {
    if (this.stopped) return;
    const { fault } = this;
    const start = this.sent;
    this.sent += bytes.length;
    switch (fault?.type) {
      case 'stall':
        this.response.write(bytes.subarray(0, Math.max(0, fault.bytes - start)));
        if (this.sent >= fault.bytes) this.stopped = true;
        return;
      case 'truncate':
        this.truncate(bytes.subarray(0, Math.max(0, fault.bytes - start)), fault.bytes, fault.reset);
        return;
      case 'corrupt':
        this.response.write(corrupted(bytes, fault.bytes - start, fault.replacement));
        return;
      case 'slow':
        this.drip(bytes, fault.bytes);
        return;
      case 'status':
      case 'reset':
      case 'hang':
      case 'errorEvent':
      case undefined:
        this.response.write(bytes);
    }
  }

  end(): void {
    if (this.stopped) return;
    if (this.queue.length > 0) this.ending = true;
    else this.response.end();
  }

  /** Closes the connection without an end. */
  reset(): void {
    this.stopped = true;
    this.response.destroy();
  }

  /** Sends nothing more, and keeps the connection. */
  stall(): void {
    this.stopped = true;
  }

  private truncate(bytes: Buffer, limit: number, reset: boolean): void {
    if (bytes.length > 0) this.response.write(bytes);
    if (this.sent < limit) return;
    this.stopped = true;
    if (!reset) this.response.end();
    // What was written has to leave first.
    else setTimeout(() => this.response.destroy(), 5);
  }

  private drip(bytes: Buffer, size: number): void {
    for (let at = 0; at < bytes.length; at += size) this.queue.push(bytes.subarray(at, at + size));
    this.timer ??= setInterval(() => {
      const next = this.queue.shift();
      if (next !== undefined) this.response.write(next);
      else if (this.ending) this.response.end();
    }, 1);
  }
}

function corrupted(bytes: Buffer, offset: number, replacement: string): Buffer {
  const copy = Buffer.from(bytes);
  const patch = Buffer.from(replacement, 'latin1');
  for (const [index, byte] of patch.entries()) {
    const at = offset + index;
    if (at >= 0 && at < copy.length) copy[at] = byte;
  }
  return copy;
}
