import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_TIMEOUT_MS } from '../../../base/timeout.js';
import { abortReason } from './attempt.js';

/** A token bucket as `clientConnection.qps` and `burst` describe it: full at first, filled at `qps` per second up to `burst`. */
export class RateLimit {
  private tokens: number;
  private filledAt: number;

  /**
   * @param qps requests per second; negative: unlimited.
   * @param burst at least 1.
   * @param now milliseconds of a clock that never goes back.
   */
  constructor(
    private readonly qps: number,
    private readonly burst: number,
    private readonly now: () => number,
  ) {
    this.tokens = burst;
    this.filledAt = now();
  }

  /** Waits for this caller's turn, in the order of calls; answers how long, in milliseconds. Rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    if (this.qps < 0) return 0;
    const now = this.now();
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.filledAt) / 1000) * this.qps) - 1;
    this.filledAt = now;
    if (this.tokens >= 0) return 0;
    const wait = (-this.tokens / this.qps) * 1000;
    try {
      await sleep(Math.min(wait, MAX_TIMEOUT_MS), undefined, { signal });
      return wait;
    } catch {
      this.tokens++;
      throw abortReason(signal);
    }
  }
}
