import { open, rm, type FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { TAR_END, tarBlocks, type ArchivedFile } from './tar.js';

/** A compressed archive that is written as its files come, for its owner alone. What has been added is not in memory any more. */
export class Archive {
  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    private readonly modified: Date,
  ) {}

  /** @throws Error of the system, also where the file is there already. */
  static async create(path: string, modified: Date): Promise<Archive> {
    return new Archive(path, await open(path, 'wx', 0o600), modified);
  }

  /** @throws Error of the system. */
  async add(files: readonly ArchivedFile[]): Promise<void> {
    // Streams of gzip behind each other are one.
    await this.file.appendFile(await promisify(gzip)(tarBlocks(files, this.modified)));
  }

  /** @throws Error of the system. */
  async end(): Promise<void> {
    await this.file.appendFile(await promisify(gzip)(TAR_END));
    await this.file.close();
  }

  /** As if there had been none. */
  async abandon(): Promise<void> {
    await this.file.close().catch(() => undefined);
    await rm(this.path, { force: true });
  }
}
