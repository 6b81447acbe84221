import type { Log } from '../../src/base/log.js';

/** A log that keeps its messages, each after its level. */
export class RecordingLog implements Log {
  readonly lines: string[] = [];
  /** The fields of each. */
  readonly fields: object[] = [];

  info(verbosity: number, message: string, fields: object = {}): void {
    this.add(`info ${verbosity} ${message}`, fields);
  }

  warn(message: string, fields: object = {}): void {
    this.add(`warn ${message}`, fields);
  }

  error(error: unknown, message: string, fields: object = {}): void {
    this.add(`error ${message}: ${error instanceof Error ? error.message : String(error)}`, fields);
  }

  private add(line: string, fields: object): void {
    this.lines.push(line);
    this.fields.push(fields);
  }
}
