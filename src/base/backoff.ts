export interface BackoffOptions {
  /** Delay after the first failure. */
  readonly initialMs: number;
  /** No delay is longer. */
  readonly maxMs: number;
  readonly factor: number;
  /** Share of a delay that chance takes off at most, so that nodes that failed together do not retry together; a fifth when not given. */
  readonly jitter?: number;
}

const JITTER = 0.2;

/** Exponential backoff with jitter. Delays are in milliseconds. */
export class Backoff {
  private base: number;

  /** @param random as Math.random: 0 ≤ x < 1. */
  constructor(
    private readonly options: BackoffOptions,
    private readonly random: () => number,
  ) {
    this.base = Math.min(options.initialMs, options.maxMs);
  }

  /** How long to wait now. */
  delay(): number {
    return this.base * (1 - (this.options.jitter ?? JITTER) * this.random());
  }

  grow(): void {
    this.base = Math.min(this.base * this.options.factor, this.options.maxMs);
  }

  /** How long to wait now; the next delay is longer. */
  next(): number {
    const delay = this.delay();
    this.grow();
    return delay;
  }

  reset(): void {
    this.base = Math.min(this.options.initialMs, this.options.maxMs);
  }
}
