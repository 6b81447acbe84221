import { open, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { TAR_END, tarBlocks, type ArchivedFile } from './tar.js';

/** The file or stream that an archive is written to. */
interface Target {
  append(bytes: Uint8Array): Promise<unknown>;
  close(): Promise<void>;
  abandon(): Promise<void>;
}

/**
 * Where an archive about something goes: a path; null: to standard output.
 *
 * @param file a path, or `-`; empty: to standard output, but where that is a terminal to a file named after subject and time.
 */
export function archivePlace(file: string, subject: string, now: Date): string | null {
  if (file === '-' || (file === '' && !process.stdout.isTTY)) return null;
  return file === '' ? `pointsman-${subject}-${now.toISOString().replace(/[:.]/g, '-')}.tar.gz` : file;
}

/** A compressed archive that is written as its files come, for its owner alone. What has been added is not in memory any more. */
export class Archive {
  private constructor(
    private readonly target: Target,
    private readonly modified: Date,
  ) {}

  /**
   * @param path null: standard output.
   * @throws Error of the system, also where the file is there already.
   */
  static async create(path: string | null, modified: Date): Promise<Archive> {
    return new Archive(path === null ? STANDARD_OUTPUT : await newFile(path), modified);
  }

  /** @throws Error of the system. */
  async add(files: readonly ArchivedFile[]): Promise<void> {
    // Streams of gzip behind each other are one.
    await this.target.append(await promisify(gzip)(tarBlocks(files, this.modified)));
  }

  /** @throws Error of the system. */
  async end(): Promise<void> {
    await this.target.append(await promisify(gzip)(TAR_END));
    await this.target.close();
  }

  /** As if there had been none; what went to standard output is cut off. */
  async abandon(): Promise<void> {
    await this.target.abandon();
  }
}

const STANDARD_OUTPUT: Target = {
  append: (bytes) =>
    new Promise<void>((resolve, reject) => {
      process.stdout.write(bytes, (error) => {
        if (error) reject(error);
        else resolve();
      });
    }),
  close: () => Promise.resolve(),
  abandon: () => Promise.resolve(),
};

async function newFile(path: string): Promise<Target> {
  const file = await open(path, 'wx', 0o600);
  return {
    append: (bytes) => file.appendFile(bytes),
    close: () => file.close(),
    abandon: async () => {
      await file.close().catch(() => undefined);
      await rm(path, { force: true });
    },
  };
}
