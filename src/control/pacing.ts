/** How long a change may wait after a run that no change asked for, in milliseconds. */
const LONGEST_REST_MS = 100;
/** What a run may rest when earlier ones left some of their rest over, in multiples of its own length. */
const MOST_REST = 2;

/** A finished run. Times are the loop's clock's, in milliseconds. */
interface PacedRun {
  readonly startedAt: number;
  readonly finishedAt: number;
  /** It succeeded and was no change's: a periodic comparison of everything, or a repair. These are rare, or paced by the caller. */
  readonly extra: boolean;
}

/**
 * How long runs rest where no interval between them is set: as long as they took, so that in the long run they take half of the time at the most, and
 * the first after a pause starts at once. The length of a run stands for its cost: the work may be another thread's or another process's.
 *
 * Comparing everything takes as long as hundreds of changes, and the next change must not wait for that: such runs rest for 100 ms at the most. The
 * rest that they leave over is pending, and runs of changes rest up to twice their length until it has been taken. A change therefore waits for the run in
 * flight, at most twice its length (or 100 ms after a comparison), and its own run: with runs of 24 ms it is there after 96.
 */
export class Pacing {
  /** Rest still to be taken, as of the end of the last run. */
  private pendingRest = 0;
  private endedAt = -Infinity;
  /** When the next run may start. */
  private restUntil = -Infinity;

  get earliest(): number {
    return this.restUntil;
  }

  ended({ startedAt, finishedAt, extra }: PacedRun): void {
    const took = finishedAt - startedAt;
    this.pendingRest = Math.max(0, this.pendingRest - (startedAt - this.endedAt)) + took;
    const most = extra ? Math.min(took, LONGEST_REST_MS) : MOST_REST * took;
    this.endedAt = finishedAt;
    this.restUntil = finishedAt + Math.min(this.pendingRest, most);
  }
}
