import { invalid } from './errors.js';

/** How many events a process sends. */
export interface EventRates {
  /** A second; 0: as many as there are. */
  readonly qps: number;
  /** How many may go at once before that. */
  readonly burst: number;
  /** Path of an EventRateLimit `Configuration`, which counts as well; null: none. */
  readonly limitFile: string | null;
}

/** Of a whole cluster's trouble this many events go at once, then one in ten seconds. */
export const DEFAULT_EVENT_RATES = { qps: 0.1, burst: 25 } as const;

/** What is wrong with the flags. */
export function eventRateProblems({ qps, burst }: EventRates): readonly string[] {
  return [
    ...(Number.isFinite(qps) && qps >= 0 ? [] : [invalid('--event-qps', qps, 'must be 0, for no limit, or above')]),
    ...(Number.isInteger(burst) && burst >= 1 ? [] : [invalid('--event-burst', burst, 'must be at least 1')]),
  ];
}
