import type { Log } from '../../src/base/log.js';

/** A log that keeps its messages, each after its level. */
export class RecordingLog implements Log {
  readonly lines: string[] = [];

  info(verbosity: number, message: string): void {
    this.lines.push(`info ${verbosity} ${message}`);
  }

  warn(message: string): void {
    this.lines.push(`warn ${message}`);
  }

  error(error: unknown, message: string): void {
    this.lines.push(`error ${message}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
