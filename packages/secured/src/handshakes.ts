import { clientOf } from '../../../src/base/client-network.js';
import type { Clock } from '../../../src/base/clock.js';
import { TokenBucket } from '../../../src/base/token-bucket.js';
import { TokenBuckets } from '../../../src/base/token-buckets.js';

/** Each costs about a millisecond of the thread that also follows the cluster. */
export const HANDSHAKES_PER_SECOND = 50;
export const HANDSHAKES_AT_ONCE = 200;
/** The limit of one address, so that one client does not use up what others need. */
export const ADDRESS_HANDSHAKES_PER_SECOND = 10;
export const ADDRESS_HANDSHAKES_AT_ONCE = 50;
/** The most admitted clients that are remembered: the one that was admitted longest ago is forgotten. */
const MAX_ADMITTED = 512;

/**
 * Limits new connections. An attacker with many addresses uses up the share of unknown clients, but not the shares of this machine and of clients that were
 * admitted before.
 */
export class Handshakes {
  private readonly ofClient: TokenBuckets;
  private readonly ofLoopback: TokenBucket;
  private readonly ofAdmitted: TokenBucket;
  private readonly ofUnknown: TokenBucket;
  private readonly admitted = new Set<string>();

  constructor(clock: Clock) {
    const now = (): number => clock.now();
    const share = (): TokenBucket => new TokenBucket(HANDSHAKES_PER_SECOND, HANDSHAKES_AT_ONCE, now);
    const ofClient = [ADDRESS_HANDSHAKES_PER_SECOND, ADDRESS_HANDSHAKES_AT_ONCE] as const;
    this.ofClient = new TokenBuckets(() => new TokenBucket(...ofClient, now));
    [this.ofLoopback, this.ofAdmitted, this.ofUnknown] = [share(), share(), share()];
  }

  /** Whether a connection may begin now, which then counts. */
  take(remoteAddress: string | undefined): boolean {
    const { key, isLoopback } = clientOf(remoteAddress);
    if (!this.ofClient.take(key)) return false;
    const share = isLoopback ? this.ofLoopback : this.admitted.has(key) ? this.ofAdmitted : this.ofUnknown;
    return share.take();
  }

  /** A request from there was answered with what it asked for. */
  admit(remoteAddress: string | undefined): void {
    const { key } = clientOf(remoteAddress);
    this.admitted.delete(key);
    this.admitted.add(key);
    const [oldest] = this.admitted;
    if (this.admitted.size > MAX_ADMITTED && oldest !== undefined) this.admitted.delete(oldest);
  }
}
