import type { Log } from '../../base/log.js';
import type { SourceWriter } from '../../state/writer.js';
import type { PollTimer } from './poll-timer.js';
import type { ProblemSink } from './problems.js';
import type { Timing } from './timing.js';

/** What a location is read with. */
export interface Dependencies {
  readonly writer: SourceWriter;
  readonly problems: ProblemSink;
  readonly log: Log;
  readonly timing: Timing;
  /** Rung when there is something to look at before the next poll. */
  readonly timer: PollTimer;
}

/** One location of manifests. */
export interface ManifestLocation {
  /** Milliseconds between rounds when nothing rings. */
  readonly pollMs: number;
  /** Looks once at what changed and commits it. The first round that can read the location reports complete. */
  round(): Promise<void>;
  close(): void;
}
