/** Time as this source sees it, so that tests can own it. */
export interface Clock {
  /** Monotonic milliseconds; the origin means nothing. */
  now(): number;
  /** Calls back once, when `now() >= time`. Returns what cancels it. */
  callAt(time: number, callback: () => void): () => void;
}

/** All in milliseconds but where it says otherwise. */
export interface Timing {
  readonly backoffInitialMs: number;
  readonly backoffMaxMs: number;
  /** A watch that lived this long proves that the trouble before it is over. */
  readonly healthyMs: number;
  /** A response that brings no byte for so long is given up. The API server sends a bookmark about every minute. */
  readonly silenceMs: number;
  /** For the headers of a response. */
  readonly headersMs: number;
  /** A Retry-After beyond this is not believed. */
  readonly retryAfterMaxMs: number;
  /** Seconds a watch is asked to last: at least this, at most twice as long, so that the watches of many nodes do not end together. */
  readonly watchSeconds: number;
}

export const DEFAULT_TIMING: Timing = {
  backoffInitialMs: 800,
  backoffMaxMs: 30_000,
  healthyMs: 120_000,
  silenceMs: 180_000,
  headersMs: 60_000,
  retryAfterMaxMs: 300_000,
  watchSeconds: 300,
};

/** What every part needs of the world around it. */
export interface Surroundings {
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
  readonly timing: Timing;
}

/** Share of a delay that chance takes off at most, so that nodes that failed together do not come back together. */
const JITTER = 0.5;

/** Exponential backoff: each delay doubles the one before, up to the maximum. */
export class Backoff {
  private base = 0;

  constructor(private readonly surroundings: Surroundings) {}

  /** How long to wait after a failure, in milliseconds. */
  next(): number {
    const { timing, random } = this.surroundings;
    this.base = this.base === 0 ? timing.backoffInitialMs : Math.min(this.base * 2, timing.backoffMaxMs);
    return this.base * (1 - JITTER * random());
  }

  reset(): void {
    this.base = 0;
  }
}

/** Resolves after `ms`, or at once when the signal is or becomes aborted. */
export function sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.callAt(clock.now() + ms, wake);
    signal.addEventListener('abort', wake);
  });
}
