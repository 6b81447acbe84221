import { MAX_SECRET_BYTES, readFileWithin } from '../../../base/bounded-file.js';
import { messageOf } from '../../../base/error-message.js';
import type { Log } from '../../../base/log.js';
import { isHeaderToken } from './access.js';
import { CredentialsError } from './errors.js';

/** The kubelet and others replace the file well before the token in it expires; kube-proxy reads it as often. */
const REREAD_MS = 60_000;

/** A bearer token in a file that others renew. The last one that could be read counts until another can. */
export class TokenFile {
  private token: string | null = null;
  private readAt = Number.NEGATIVE_INFINITY;
  private reading: Promise<void> | null = null;
  private failing = false;

  /**
   * @param fallback counts as long as the file was never readable; empty: none.
   * @param now milliseconds of a clock that never goes back.
   */
  constructor(
    private readonly path: string,
    private readonly fallback: string,
    private readonly now: () => number,
    private readonly log: Log,
  ) {}

  /** @throws CredentialsError when there is no token at all. */
  async current(): Promise<string> {
    if (this.now() - this.readAt >= REREAD_MS) await this.reread();
    const token = this.token ?? this.fallback;
    if (token === '') throw new CredentialsError(`token file ${this.path}: no token could be read from it yet`);
    return token;
  }

  /** Reads the file now, after the server refused a token. Answers whether there is another token than that. */
  async renew(refused: string): Promise<boolean> {
    await this.reread();
    return this.token !== null && this.token !== refused;
  }

  private reread(): Promise<void> {
    this.reading ??= this.readOnce().finally(() => (this.reading = null));
    return this.reading;
  }

  private async readOnce(): Promise<void> {
    try {
      this.token = checkToken((await readFileWithin(this.path, MAX_SECRET_BYTES)).toString('latin1'));
      if (this.failing) this.log.info(0, 'token file can be read again', { file: this.path });
      this.failing = false;
    } catch (error) {
      if (this.token === null && this.fallback === '') {
        throw new CredentialsError(`token file ${this.path}: ${messageOf(error)}`, { cause: error });
      }
      if (!this.failing)
        this.log.error(error, 'token file cannot be read, the last token stays in use', { file: this.path });
      this.failing = true;
    }
    // Also after a failure, lest a file that is gone be asked for with every request.
    this.readAt = this.now();
  }
}

function checkToken(text: string): string {
  const token = text.trim();
  if (token === '') throw new Error('is empty');
  if (!isHeaderToken(token)) throw new Error('holds something else than one line of printable ASCII');
  return token;
}
