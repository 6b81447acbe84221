import { write as writeTo } from 'node:fs';
import { mkdir, open, readdir, rename, stat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { errorCode, messageOf } from '../base/error-message.js';

export interface RotatedFileOptions {
  /** `-`: the standard output. */
  readonly path: string;
  /** The size at which the file is rotated. */
  readonly maxBytes: number;
  /** How many rotated files are kept; 0: all. */
  readonly maxBackups: number;
  /** The maximum age of rotated files in milliseconds; 0: unlimited. */
  readonly maxAgeMs: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called when lines are lost, or will be: once, until lines are written again. */
  readonly onLoss: (error: unknown) => void;
  /** Called with the outcome of lines, and their number. */
  readonly onLines?: (outcome: 'written' | 'lost', count: number) => void;
}

/** The most characters that may wait for the disk. Lines beyond are dropped. */
const MAX_WAITING = 8 << 20;
const STANDARD_OUTPUT = 1;
const NEWLINE = 0x0a;
/** How long a full pipe is waited for. */
const RETRY_MS = 10;
const FULL_MS = 5000;
/** How long a full pipe is waited for in total, once the file is closed. */
const CLOSING_MS = 1000;
/** Errors of a path that names no file, whatever the state of the disk. */
const INVALID_PATH = new Set(['EINVAL', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP']);
/** For the owner only: audit logs name users and their requests. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

interface Waiting {
  readonly line: string;
  readonly done: (error: unknown) => void;
}

const NOTHING = (): void => undefined;

/**
 * A file of lines that is written in the background: no caller waits for the disk. When the file reaches its size, it is
 * renamed with the time in its name, and a new file is opened. A file that was moved away is left.
 */
export class RotatedFile {
  #waiting: Waiting[] = [];
  #waitingLength = 0;
  /** Characters by client. */
  readonly #waitingOf = new Map<string, number>();
  /** The latest time until which a full pipe is waited for, in milliseconds of `performance.now()`. */
  #deadline = Infinity;
  #writing: Promise<void> | null = null;
  #file: FileHandle | null = null;
  #inode = 0n;
  #bytes = 0;
  #fault: string | null = null;

  constructor(private readonly options: RotatedFileOptions) {}

  /** @throws Error as {@link prepare}. */
  static async open(options: RotatedFileOptions): Promise<RotatedFile> {
    const file = new RotatedFile(options);
    await file.prepare();
    return file;
  }

  /**
   * Opens the file before its first line, so that a fault is reported early. Lines may be written meanwhile, and each one after a fault tries again.
   *
   * @throws Error when there can be no such file. A full or read-only disk is no such error.
   */
  async prepare(): Promise<void> {
    const { path } = this.options;
    if (path === '-') return;
    const opening = this.#open();
    this.#writing = opening.catch(NOTHING).then(() => this.#writeAll());
    try {
      await opening;
    } catch (error) {
      if (INVALID_PATH.has(errorCode(error) ?? ''))
        throw new Error(`${path}: cannot be written to: ${messageOf(error)}`, { cause: error });
      this.#lost(error, 0);
    }
  }

  /** Why lines are lost now; null: they are not. */
  get fault(): string | null {
    return this.#fault;
  }

  /**
   * Takes a line, without its end.
   *
   * @param client the client that caused the line. Its lines take no more room than they leave free, so there is always
   * room for other clients (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
   * Null: the line may take all free room.
   * @param done called once, with null when the line is written, or with why it is lost.
   * @returns false when it is dropped, as too many wait.
   */
  write(line: string, client: string | null = null, done: (error: unknown) => void = NOTHING): boolean {
    const length = line.length + 1;
    const ofClient = client === null ? 0 : (this.#waitingOf.get(client) ?? 0);
    if (this.#waitingLength + ofClient + line.length > MAX_WAITING) {
      const error = new Error('the disk is too slow');
      this.#lost(error, 1);
      done(error);
      return false;
    }
    this.#waiting.push({ line, done });
    this.#waitingLength += length;
    if (client !== null) this.#waitingOf.set(client, ofClient + length);
    this.#writing ??= this.#writeAll();
    return true;
  }

  /** Resolves when all lines have been written. On the standard output it waits a second, and lines that do not fit are lost. */
  async close(): Promise<void> {
    this.#deadline = performance.now() + CLOSING_MS;
    await this.#writing;
    this.#deadline = Infinity;
    await this.#file?.close();
    this.#file = null;
  }

  async #writeAll(): Promise<void> {
    // Lines of one turn of the event loop are written together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const taken = this.#waiting;
      const bytes = Buffer.from(taken.map(({ line }) => `${line}\n`).join(''));
      this.#waiting = [];
      this.#waitingLength = 0;
      this.#waitingOf.clear();
      const error = await this.#writeBytes(bytes);
      if (error === null) {
        this.#fault = null;
        this.options.onLines?.('written', taken.length);
      } else this.#lost(error, taken.length);
      for (const { done } of taken) done(error);
    }
    this.#writing = null;
  }

  /** Null when all is written, else why it is not. */
  async #writeBytes(bytes: Buffer): Promise<Error | null> {
    try {
      await (this.options.path === '-' ? print(bytes, () => this.#deadline) : this.#append(bytes));
      return null;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #lost(error: unknown, count: number): void {
    if (count > 0) this.options.onLines?.('lost', count);
    if (this.#fault === null) this.options.onLoss(error);
    this.#fault = messageOf(error);
  }

  async #append(bytes: Buffer): Promise<void> {
    if (this.#file === null || (await this.#isElsewhere())) await this.#open();
    if (this.#bytes > 0 && this.#bytes + bytes.length > this.options.maxBytes) await this.#turn();
    try {
      await this.#file?.appendFile(bytes);
      this.#bytes += bytes.length;
    } catch (error) {
      // Half a line would damage the next.
      await this.#file?.truncate(this.#bytes).catch(() => undefined);
      throw error;
    }
  }

  async #isElsewhere(): Promise<boolean> {
    const found = await stat(this.options.path, { bigint: true }).catch(() => null);
    return found?.ino !== this.#inode;
  }

  async #open(): Promise<void> {
    const { path } = this.options;
    await this.#file?.close();
    this.#file = null;
    // One level only: where the file system refuses folders, making parents would never end.
    await mkdir(dirname(path), { mode: DIRECTORY_MODE }).catch((error: unknown) => {
      if (errorCode(error) !== 'EEXIST') throw error;
    });
    // Opening a pipe waits for its reader.
    const there = await stat(path).catch(() => null);
    if (there !== null && !there.isFile()) throw Object.assign(new Error('is no file'), { code: 'EINVAL' });
    const file = await open(path, 'a+', FILE_MODE);
    const { ino, size } = await file.stat({ bigint: true });
    this.#file = file;
    this.#inode = ino;
    this.#bytes = Number(size);
    await this.#endTornLine(file);
  }

  /** A killed process or a power failure may leave half a line: the next line starts on a line of its own. */
  async #endTornLine(file: FileHandle): Promise<void> {
    if (this.#bytes === 0) return;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, this.#bytes - 1);
    if (bytesRead === 0 || buffer[0] === NEWLINE) return;
    await file.appendFile('\n');
    this.#bytes++;
  }

  async #turn(): Promise<void> {
    const { path, now } = this.options;
    const { dir, name, ext } = parse(path);
    await rename(path, join(dir, `${name}-${stampOf(now())}${ext}`));
    await this.#open();
    await this.#prune();
  }

  /** Rotated files beyond the number or the age that is kept. */
  async #prune(): Promise<void> {
    const { path, maxBackups, maxAgeMs, now } = this.options;
    const { dir, name, ext } = parse(path);
    const stamps = (await readdir(dir === '' ? '.' : dir))
      .filter((entry) => entry.startsWith(`${name}-`) && entry.endsWith(ext))
      .map((entry) => entry.slice(name.length + 1, entry.length - ext.length))
      .filter((stamp) => STAMP.test(stamp))
      .sort()
      .reverse();
    const oldest = maxAgeMs === 0 ? '' : stampOf(now() - maxAgeMs);
    const surplus = stamps.filter((stamp, index) => (maxBackups > 0 && index >= maxBackups) || stamp < oldest);
    for (const stamp of surplus) await unlink(join(dir, `${name}-${stamp}${ext}`));
  }
}

const STAMP = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/;

/** A time in UTC, as in the names of rotated files. */
function stampOf(time: number): string {
  return new Date(time).toISOString().slice(0, -1).replaceAll(':', '-');
}

const writeSome = promisify(writeTo);

/** @param deadline the latest time to wait for a full pipe, in milliseconds of `performance.now()`; read at each attempt. */
async function print(bytes: Buffer, deadline: () => number): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await printSome(bytes, at, deadline);
  }
}

/**
 * Returns how many bytes were written. A pipe that another process made non-blocking is full while its reader is slow
 * (write(2), EAGAIN): then this waits.
 */
async function printSome(bytes: Buffer, at: number, deadline: () => number): Promise<number> {
  const end = performance.now() + FULL_MS;
  for (;;) {
    try {
      return (await writeSome(STANDARD_OUTPUT, bytes, at)).bytesWritten;
    } catch (error) {
      if (errorCode(error) !== 'EAGAIN' || performance.now() > Math.min(end, deadline())) throw error;
      await sleep(RETRY_MS);
    }
  }
}
