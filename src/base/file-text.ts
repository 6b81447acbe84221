import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { MAX_PEM_BYTES, readFileWithin } from './bounded-file.js';

/** Another text when the file is another one or was written to. */
export function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(':');
}

/** A PEM file's text, read again only when the file is another one or was written to. */
export class FileText {
  private identity = '';
  private text = '';

  constructor(readonly path: string) {}

  /** @throws Error of the file system, or that it is too large for PEM. */
  async read(): Promise<string> {
    const identity = identityOf(await stat(this.path, { bigint: true }));
    if (identity === this.identity) return this.text;
    // Latin-1 keeps every byte; PEM text and tokens are ASCII.
    this.text = (await readFileWithin(this.path, MAX_PEM_BYTES)).toString('latin1');
    this.identity = identity;
    return this.text;
  }

  /** As {@link read}, of a text that is no PEM. */
  async readUtf8(): Promise<string> {
    return Buffer.from(await this.read(), 'latin1').toString('utf8');
  }
}
