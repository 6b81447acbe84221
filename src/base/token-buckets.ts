import type { TokenBucket } from './token-bucket.js';

const MAX_BUCKETS = 512;

/** A bucket for each of many, so that one cannot use up what others need. */
export class TokenBuckets {
  private readonly buckets = new Map<string, TokenBucket>();

  /** @param limit the most keys that are kept apart: the key seen longest ago begins anew. */
  constructor(
    private readonly create: () => TokenBucket,
    private readonly limit = MAX_BUCKETS,
  ) {}

  /** As {@link TokenBucket.take}, from the bucket of `key`. */
  take(key: string): boolean {
    return this.of(key).take();
  }

  of(key: string): TokenBucket {
    const bucket = this.buckets.get(key) ?? this.create();
    this.buckets.delete(key);
    const [oldest] = this.buckets.keys();
    if (this.buckets.size >= this.limit && oldest !== undefined) this.buckets.delete(oldest);
    this.buckets.set(key, bucket);
    return bucket;
  }
}
