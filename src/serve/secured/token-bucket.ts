/** Limits how often something happens, without waiting. Full at first. */
export class TokenBucket {
  private tokens: number;
  private filledAt: number;

  /**
   * @param perSecond how many come back in a second, up to `burst`.
   * @param now milliseconds of a clock that never goes back.
   */
  constructor(
    private readonly perSecond: number,
    private readonly burst: number,
    private readonly now: () => number,
  ) {
    this.tokens = burst;
    this.filledAt = now();
  }

  /** Whether it may happen now, which then counts. */
  take(): boolean {
    const now = this.now();
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.filledAt) / 1000) * this.perSecond);
    this.filledAt = now;
    if (this.tokens < 1) return false;
    this.tokens--;
    return true;
  }
}
