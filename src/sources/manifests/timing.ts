import { BEAT_MS } from '../../base/clock.js';

/** All in milliseconds. */
export interface Timing {
  /** Between looks at files, for changes that no event reported. */
  readonly filePollMs: number;
  /** From a change event to the look at it, so that a burst of events costs one look. */
  readonly settleMs: number;
  /** How long a removal must last, and how old a file's last change must be, to be taken as final. */
  readonly graceMs: number;
  readonly urlPollMs: number;
  /** For a whole request, from connecting to the last byte. */
  readonly urlTimeoutMs: number;
}

export const DEFAULT_TIMING: Timing = {
  filePollMs: BEAT_MS,
  settleMs: 2,
  graceMs: 100,
  urlPollMs: 10_000,
  urlTimeoutMs: 30_000,
};
