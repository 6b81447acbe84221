/** How often something may happen: full at first, filled at a rate up to its size. */
export class TokenBucket {
  private tokens: number;
  private filledAt: number;

  /**
   * @param perSecond how many come back in a second.
   * @param burst its size.
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

  /** Whether it may happen now, so many times, which then count. */
  take(times = 1): boolean {
    this.fill();
    if (this.tokens < times) return false;
    this.tokens -= times;
    return true;
  }

  /** Takes tokens that may still have to come; answers in how many milliseconds they do. */
  borrow(times = 1): number {
    this.fill();
    this.tokens -= times;
    return this.tokens >= 0 ? 0 : (-this.tokens / this.perSecond) * 1000;
  }

  /** What was borrowed is not needed. */
  giveBack(): void {
    this.tokens++;
  }

  private fill(): void {
    const now = this.now();
    this.tokens = Math.min(this.burst, this.tokens + ((now - this.filledAt) / 1000) * this.perSecond);
    this.filledAt = now;
  }
}
