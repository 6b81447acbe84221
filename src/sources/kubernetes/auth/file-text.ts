import { readFile, stat } from 'node:fs/promises';

/** A file's text, read again only when the file is another one or was written to. */
export class FileText {
  private identity = '';
  private text = '';

  constructor(readonly path: string) {}

  /** @throws Error of the file system. */
  async read(): Promise<string> {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(this.path, { bigint: true });
    const identity = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
    if (identity === this.identity) return this.text;
    // Latin-1 keeps every byte; PEM text and tokens are ASCII.
    this.text = await readFile(this.path, 'latin1');
    this.identity = identity;
    return this.text;
  }
}
