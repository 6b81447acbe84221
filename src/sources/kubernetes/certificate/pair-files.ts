import { createPrivateKey, generateKeyPair, X509Certificate, type KeyObject } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { MAX_PEM_BYTES, readFileWithin } from '../../../base/bounded-file.js';
import { linkDurably, makePrivateDirectory, writeDurably } from '../../../base/durable-file.js';
import { errorCode, messageOf } from '../../../base/error-message.js';
import { certificateBlocks, endOfValidity } from '../../../base/pem.js';
import { checkPair, type PemPair } from '../auth/tls-trust.js';
import { RefusedRequest } from './signing.js';

const newKey = promisify(generateKeyPair);

const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2';
/** Names as node agents give them to theirs. */
const PREFIX = 'kube-proxy-client';

/**
 * A key and its certificate in one file, to which a link leads. Beside it is the key of a pending certificate request. Every step leaves what
 * the next start can go on with. What fails rejects with the system's error.
 */
export class PairFiles {
  /** What a kubeconfig names. */
  readonly link: string;
  /** Where a kubeconfig may be for as long as a new pair is tried. */
  readonly trial: string;
  private readonly pending: string;

  constructor(private readonly directory: string) {
    this.link = resolve(directory, `${PREFIX}-current.pem`);
    this.trial = join(directory, `${PREFIX}-trial.conf`);
    this.pending = join(directory, `${PREFIX}.key.tmp`);
  }

  /** The pair that the link leads to; null: there is none. */
  async current(): Promise<string | null> {
    return readIfThere(this.link);
  }

  /** The key for which a certificate is asked; null: there is none that could be used. */
  async pendingKey(): Promise<KeyObject | null> {
    const text = await readIfThere(this.pending);
    try {
      return text === null ? null : createPrivateKey(text);
    } catch {
      return null;
    }
  }

  async makeKey(): Promise<KeyObject> {
    const { privateKey } = await newKey('ec', { namedCurve: 'P-256' });
    await makePrivateDirectory(this.directory);
    await writeDurably(this.pending, exported(privateKey));
    return privateKey;
  }

  async dropKey(): Promise<void> {
    await rm(this.pending, { force: true });
  }

  /** Lets the link lead to a new pair. @param now milliseconds since the epoch. */
  async install(certificate: string, key: KeyObject, now: number): Promise<void> {
    const time = new Date(now).toISOString().slice(0, 19).replace(/[T:]/g, '-');
    const name = `${PREFIX}-${time}.pem`;
    await writeDurably(join(this.directory, name), `${certificate}${exported(key)}`);
    await linkDurably(this.link, name);
    await this.removeFormer(name);
  }

  /** All but the last two: who has the one before open may go on with it. */
  private async removeFormer(last: string): Promise<void> {
    const isDated = (name: string): boolean =>
      name.startsWith(`${PREFIX}-`) && /^[-0-9]{19}\.pem$/.test(name.slice(PREFIX.length + 1));
    const former = (await readdir(this.directory)).filter((name) => isDated(name) && name !== last).sort();
    for (const name of former.slice(0, -1)) await rm(join(this.directory, name), { force: true });
  }
}

/** Why a pair is of no use; null: it can be used. @param now milliseconds since the epoch. */
export function flawOf(pair: PemPair, now: number): string | null {
  try {
    checkPair(pair, 'its certificate');
    const end = endOfValidity(pair.certificate);
    return now < end ? null : `its certificate ended at ${new Date(end).toISOString()}`;
  } catch (error) {
    return messageOf(error);
  }
}

export function belongsTo(pair: string, key: KeyObject): boolean {
  try {
    return firstOf(pair).checkPrivateKey(key);
  } catch {
    return false;
  }
}

/** The certificate of a PEM text that the following ones vouch for. @throws Error */
export function firstOf(pem: string): X509Certificate {
  const [first = ''] = certificateBlocks(pem);
  return new X509Certificate(first);
}

/** What was issued, and nothing else that came with it. @throws RefusedRequest */
export function usableCertificate(text: string, key: KeyObject, now: number): string {
  const certificate = certificateBlocks(text)
    .map((block) => `${block}\n`)
    .join('');
  const flaw = flawOf({ certificate, key: exported(key) }, now);
  if (flaw !== null) throw new RefusedRequest('failed', `what was issued cannot be used: ${flaw}`);
  // Without the extension it is for everything, and Node has none.
  const usages: unknown = firstOf(certificate).keyUsage;
  if (Array.isArray(usages) && !usages.includes(CLIENT_AUTHENTICATION))
    throw new RefusedRequest('failed', 'what was issued cannot be used: its certificate is not for clients');
  return certificate;
}

/** As PEM text. */
export function exported(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return (await readFileWithin(path, MAX_PEM_BYTES)).toString('latin1');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}
