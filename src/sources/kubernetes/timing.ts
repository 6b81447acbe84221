import { Backoff } from '../../base/backoff.js';
import type { Clock } from '../../base/clock.js';

/** All in milliseconds unless a comment names another unit. */
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
export interface Dependencies {
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
  readonly timing: Timing;
}

/** As an API server is to be asked again by many nodes that failed together: each delay doubles the one before, and half of it is chance. */
export function apiBackoff(
  { backoffInitialMs, backoffMaxMs }: Pick<Timing, 'backoffInitialMs' | 'backoffMaxMs'>,
  random: () => number,
): Backoff {
  return new Backoff({ initialMs: backoffInitialMs, maxMs: backoffMaxMs, factor: 2, jitter: 0.5 }, random);
}
