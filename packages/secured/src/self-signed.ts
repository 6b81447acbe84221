import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { makePrivateDirectory, writeDurably } from '../../../src/base/durable-file.js';
import { errorCode, messageOf } from '../../../src/base/error-message.js';
import { isLoopback, parseAddress, type IPAddress } from '../../../src/base/ip.js';
import type { Log } from '../../../src/base/log.js';
import { certificateBlocks } from '../../../src/base/pem.js';
import { specialAddress } from '../../../src/base/special-address.js';
import { selfSigned } from './certificate.js';

/** Key and certificate in one file, so that they always go together. */
const FILE = 'serving.pem';
const DAY_MS = 86_400_000;
const LIFE_MS = 365 * DAY_MS;
/** With less of its life left than this it is made anew. */
const RENEWED_BEFORE_MS = LIFE_MS / 5;
/** Clocks of clients may be behind. */
const BACKDATED_MS = 3_600_000;
/** A node may have the addresses of every Service. */
const MAX_ADDRESSES = 32;

export interface SelfSignedOptions {
  readonly directory: string;
  readonly nodeName: string;
  /** The addresses that this node has now. */
  readonly addresses: () => readonly IPAddress[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

/** A self-signed certificate of this node. It is kept, and made anew before it ends or when the node has addresses that it lacks. */
export class SelfSigned {
  private readonly path: string;
  /** Made by this process, and could not be kept. */
  private unsaved: string | null = null;
  private isStart = true;

  constructor(private readonly options: SelfSignedOptions) {
    this.path = join(options.directory, FILE);
  }

  /** Certificate and key, as they are kept or just made. Rejects with the system's error. */
  async read(): Promise<readonly [certificate: string, key: string]> {
    const { kept, flaw } = await this.kept();
    if (kept !== null && flaw === null) return [kept, kept];
    const { unsaved } = this;
    if (unsaved !== null && this.flawOf(unsaved) === null) {
      await this.save(unsaved, false);
      return [unsaved, unsaved];
    }
    const { nodeName, now, log } = this.options;
    const made = await selfSigned({
      commonName: nodeName,
      names: this.names(),
      addresses: this.addresses(),
      validFrom: now() - BACKDATED_MS,
      validTo: now() + LIFE_MS,
    });
    const text = made.key + made.certificate;
    log.info(0, 'a self-signed certificate was made', { file: this.path, because: flaw });
    await this.save(text, true);
    return [text, text];
  }

  /** A full disk does not stop the service: the certificate counts as long as the process runs, and is written when that works. */
  private async save(text: string, isNew: boolean): Promise<void> {
    try {
      await makePrivateDirectory(this.options.directory);
      await writeDurably(this.path, text);
      this.unsaved = null;
    } catch (error) {
      this.unsaved = text;
      if (!isNew) return;
      const message = 'the self-signed certificate cannot be saved: the next start makes another one';
      this.options.log.warn(message, { file: this.path, because: messageOf(error) });
    }
  }

  /** The certificate of the file, and why it does not do; at a start also that the file cannot be read. */
  private async kept(): Promise<{ readonly kept: string | null; readonly flaw: string | null }> {
    try {
      const kept = await readFile(this.path, 'latin1');
      this.isStart = false;
      return { kept, flaw: this.flawOf(kept) };
    } catch (error) {
      const code = errorCode(error);
      const isFatal = code === 'ENOTDIR' || (!this.isStart && this.unsaved === null && code !== 'ENOENT');
      if (isFatal) throw error;
      this.isStart = false;
      return { kept: null, flaw: code === 'ENOENT' ? 'there is none' : messageOf(error) };
    }
  }

  /** Why a certificate does not do; null: it does. */
  private flawOf(text: string): string | null {
    try {
      createSecureContext({ cert: text, key: text });
      const [block = ''] = certificateBlocks(text);
      const certificate = new X509Certificate(block);
      if (Date.parse(certificate.validTo) - this.options.now() < RENEWED_BEFORE_MS) return 'it ends soon';
      const isMissing =
        this.names().some((name) => certificate.checkHost(name) === undefined) ||
        this.addresses().some((address) => certificate.checkIP(address) === undefined);
      return isMissing ? 'it lacks an address of this node' : null;
    } catch (error) {
      return messageOf(error);
    }
  }

  private names(): readonly string[] {
    const { nodeName } = this.options;
    return [
      'localhost',
      ...(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(nodeName) && parseAddress(nodeName) === null ? [nodeName] : []),
    ];
  }

  private addresses(): readonly IPAddress[] {
    const own = this.options.addresses().filter((address) => !isLoopback(address) && specialAddress(address) === null);
    const loopback = ['127.0.0.1', '::1'].flatMap((text) => parseAddress(text) ?? []);
    return [...loopback, ...own.slice(0, MAX_ADDRESSES)];
  }
}
