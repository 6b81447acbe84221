import { TokenBucket } from './token-bucket.js';

export const LINES_AT_ONCE = 50;
export const LINES_PER_SECOND = 0.1;

/** Lines of the log that objects of others cause: one that is broken in another way each time must not fill the log. */
export class LineLimit {
  private omitted = 0;
  private readonly bucket: TokenBucket;

  /** @param now milliseconds of a clock that never goes back. */
  constructor(now: () => number) {
    this.bucket = new TokenBucket(LINES_PER_SECOND, LINES_AT_ONCE, now);
  }

  /** Fields of a line, with the number of those left out before it; null: it is left out, too. */
  take(): { readonly omitted?: number } | null {
    if (!this.bucket.take()) {
      this.omitted++;
      return null;
    }
    const { omitted } = this;
    this.omitted = 0;
    return omitted === 0 ? {} : { omitted };
  }
}
