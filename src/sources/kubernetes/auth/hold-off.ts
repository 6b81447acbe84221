import type { Backoff } from '../../../base/backoff.js';
import type { Clock } from '../../../base/clock.js';
import { apiBackoff } from '../timing.js';

export interface HoldOffDependencies {
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
}

const TIMING = { backoffInitialMs: 2000, backoffMaxMs: 60_000 };

/** Keeps from trying again at once what has just failed: 1 to 2 s after the first failure, up to a minute after many. */
export class HoldOff {
  private readonly backoff: Backoff;
  private until = Number.NEGATIVE_INFINITY;

  constructor(private readonly dependencies: HoldOffDependencies) {
    this.backoff = apiBackoff(TIMING, dependencies.random);
  }

  /** Milliseconds until it may be tried again; 0 for now. */
  get remainingMs(): number {
    return Math.max(0, this.until - this.dependencies.clock.now());
  }

  failed(): void {
    this.until = this.dependencies.clock.now() + this.backoff.next();
  }

  over(): void {
    this.until = Number.NEGATIVE_INFINITY;
    this.backoff.reset();
  }
}
