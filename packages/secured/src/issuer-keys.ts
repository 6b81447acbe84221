import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import type { JSONWebKeySet } from 'jose';
import { serverIdentity } from '../../../src/base/server-identity.js';
import type { Clock } from '../../../src/base/clock.js';
import { isMapping, parseMapping, type Mapping } from '../../../src/base/mapping.js';
import { readTextWithin } from '../../../src/base/read-text.js';
import type { JwtSettings } from './authentication-file.js';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1 << 20;
/** Keys are asked for again after so long, and then those at hand still count. */
const FRESH_MS = 3_600_000;
/** An unknown key is not asked for again sooner: who makes up key names does not reach the issuer. */
const PAUSE_MS = 10_000;

/** The keys of one issuer, by its discovery document. */
export class IssuerKeys {
  private keys: JSONWebKeySet | null = null;
  private askedAt = Number.NEGATIVE_INFINITY;
  private asking: Promise<void> | null = null;

  constructor(
    private readonly issuer: JwtSettings['issuer'],
    private readonly clock: Clock,
  ) {}

  /**
   * The keys as they are known.
   *
   * @throws Error when there never were any, and the issuer does not answer.
   */
  async current(): Promise<JSONWebKeySet> {
    const age = this.clock.now() - this.askedAt;
    if (this.keys === null) await this.ask();
    else if (age >= FRESH_MS) void this.ask().catch(() => undefined);
    if (this.keys === null) throw new Error('the issuer has not published its keys');
    return this.keys;
  }

  /** Asks for keys again because one is missing; whether that was done. @throws Error when the issuer does not answer. */
  async renew(): Promise<boolean> {
    if (this.clock.now() - this.askedAt < PAUSE_MS) return false;
    await this.ask();
    return true;
  }

  private ask(): Promise<void> {
    if (this.asking === null && this.keys === null && this.clock.now() - this.askedAt < PAUSE_MS)
      return Promise.reject(new Error('the issuer did not answer a moment ago'));
    this.asking ??= this.askOnce().finally(() => (this.asking = null));
    return this.asking;
  }

  private async askOnce(): Promise<void> {
    this.askedAt = this.clock.now();
    const { url, discoveryUrl, authority } = this.issuer;
    const { issuer, jwks_uri: keysUrl } = await fetchJson(discoveryUrl, authority);
    if (issuer !== url) throw new Error('the discovery document is of another issuer');
    if (typeof keysUrl !== 'string' || !keysUrl.startsWith('https://'))
      throw new Error('the discovery document names no jwks_uri https://…');
    const { keys } = await fetchJson(keysUrl, authority);
    if (!Array.isArray(keys) || !keys.every(isMapping)) throw new Error('the answer is no set of keys');
    this.keys = { keys };
  }
}

/** @param authority PEM; null: what the runtime trusts. */
async function fetchJson(url: string, authority: string | null): Promise<Mapping> {
  const options = {
    ...serverIdentity(new URL(url).hostname),
    ...(authority === null ? {} : { ca: authority }),
    headers: { Accept: 'application/json' },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    agent: false,
  } as const;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, options, resolve).on('error', reject);
  });
  const text = await readTextWithin(response, MAX_BYTES, () => new Error(`answer longer than ${MAX_BYTES} bytes`));
  if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode ?? 0}`);
  return parseMapping(text) ?? {};
}
