import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_TIMEOUT_MS } from '../../../base/timeout.js';
import { TokenBucket } from '../../../base/token-bucket.js';
import { abortReason } from './attempt.js';

/** What `clientConnection.qps` and `burst` allow. */
export class RateLimit {
  private readonly bucket: TokenBucket;

  /**
   * @param qps requests per second; negative: unlimited.
   * @param burst at least 1.
   * @param now milliseconds of a clock that never goes back.
   */
  constructor(
    private readonly qps: number,
    burst: number,
    now: () => number,
  ) {
    this.bucket = new TokenBucket(qps, burst, now);
  }

  /** Waits for this caller's turn, in the order of calls; answers how long, in milliseconds. Rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    if (this.qps < 0) return 0;
    const wait = this.bucket.borrow();
    if (wait === 0) return 0;
    try {
      await sleep(Math.min(wait, MAX_TIMEOUT_MS), undefined, { signal });
      return wait;
    } catch {
      this.bucket.giveBack();
      throw abortReason(signal);
    }
  }
}
