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

/** As many as can be told apart; whoever was seen longest ago begins anew. */
const MAX_BUCKETS = 512;

/** A bucket for each of many, so that one cannot use up what others need. */
export class TokenBuckets {
  private readonly buckets = new Map<string, TokenBucket>();

  constructor(private readonly create: () => TokenBucket) {}

  /** As {@link TokenBucket.take}, from the bucket of `key`. */
  take(key: string): boolean {
    const bucket = this.buckets.get(key) ?? this.create();
    this.buckets.delete(key);
    const [oldest] = this.buckets.keys();
    if (this.buckets.size >= MAX_BUCKETS && oldest !== undefined) this.buckets.delete(oldest);
    this.buckets.set(key, bucket);
    return bucket.take();
  }
}
