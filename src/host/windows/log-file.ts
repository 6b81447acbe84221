import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';

const MOST_BYTES = 64 << 20;

/** Where a process without a standard error writes its log: `%ProgramData%\pointsman\pointsman.log`. */
export function logFilePath(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment['ProgramData'] ?? 'C:\\ProgramData', 'pointsman', 'pointsman.log');
}

/** Services have none: Node then lets what is written disappear, by a stream of no particular kind. */
export function hasStandardError(stream: object = process.stderr): boolean {
  return Object.getPrototypeOf(stream) !== Writable.prototype;
}

/**
 * A file that lines are appended to. Before it outgrows its limit it becomes `….1`, in the place of an older one. Each line is in the file when `write` comes
 * back, so that the last words of a process are not lost; what cannot be written costs the lines, never the process.
 */
export class LogFile {
  #descriptor: number | null = null;
  #bytes = 0;

  /** @param mostBytes of one file. */
  constructor(
    private readonly path: string,
    private readonly mostBytes = MOST_BYTES,
  ) {}

  write(text: string): void {
    try {
      const bytes = Buffer.from(text);
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.mostBytes) this.#turn();
      this.#descriptor ??= this.#open();
      this.#bytes += writeSync(this.#descriptor, bytes);
    } catch {
      // There is no place left to report this.
    }
  }

  /** Ignores listeners: this writer reports no errors. */
  on(): void {
    return;
  }

  #open(): number {
    mkdirSync(dirname(this.path), { recursive: true });
    const descriptor = openSync(this.path, 'a');
    this.#bytes = fstatSync(descriptor).size;
    return descriptor;
  }

  #turn(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
    renameSync(this.path, `${this.path}.1`);
    this.#bytes = 0;
  }
}
