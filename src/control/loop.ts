import { Backoff, type BackoffOptions } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { Pacing } from './pacing.js';

export interface RunRequest {
  /** Whether everything is to be compared, not only what changed: the first run, periodically, and until such a run succeeds. */
  readonly full: boolean;
}

/** Intervals that may change while the loop runs. */
type LoopIntervals = Pick<LoopOptions, 'minIntervalMs' | 'fullIntervalMs'>;

export interface LoopOptions {
  /** The work. It keeps what is pending and says why it failed by itself: a rejected run is called again, with nothing but the request. */
  readonly run: (request: RunRequest) => Promise<void>;
  /** Least time from the start of one run to the start of the next; 0: as {@link Pacing} has it. */
  readonly minIntervalMs: number;
  /** Time from the end of a successful full run to the next full run. */
  readonly fullIntervalMs: number;
  readonly retry: BackoffOptions;
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
}

/**
 * Runs something after it was triggered: never twice at a time, triggers coalesced, starts at least the minimum interval apart or paced by
 * what runs cost, failures retried with backoff, and a full run now and then. Nothing runs before the first trigger.
 *
 * The minimum interval counts from start to start. Counting from the end of a run, as kube-proxy's runner does, adds the length of the
 * run to every delay: the larger the cluster, the later the change.
 */
export class Loop {
  private readonly backoff: Backoff;
  private readonly pacing = new Pacing();
  private cancelTimer: (() => void) | null = null;
  private running = false;
  private stopped = false;
  private lastRun: Promise<void> = Promise.resolve();
  /** First trigger since the last run started. */
  private queuedSince: number | null = null;
  /** The queued run does not wait for others' sake; nor does the retry of such a run. */
  private urgent = false;
  private urgentPending = false;
  /** The queued run takes what the one before it left. */
  private continues = false;
  private fullPending = true;
  private fullAt: number | null = null;
  private retryAt: number | null = null;
  private lastStart: number | null = null;
  private intervals: LoopIntervals;

  constructor(private readonly options: LoopOptions) {
    this.intervals = options;
    this.backoff = new Backoff(options.retry, options.random);
  }

  /** Asks for a run that starts after this call. Cheap when one is asked for already. */
  trigger(): void {
    if (this.stopped || this.queuedSince !== null) return;
    this.queuedSince = this.options.clock.now();
    this.arm();
  }

  /** The same without keeping the minimum interval or any rest: what is wrong in the kernel does not wait. */
  triggerNow(): void {
    if (this.stopped) return;
    this.queuedSince ??= this.options.clock.now();
    this.urgent = true;
    this.arm();
  }

  /**
   * The run under way leaves something to the next, which comes soon: it keeps no minimum interval, as both are parts of one, and rests no longer than after
   * a comparison.
   */
  proceed(): void {
    this.continues = true;
    this.trigger();
  }

  /** These hold from the next start on. */
  setIntervals(intervals: LoopIntervals): void {
    this.intervals = intervals;
    if (this.fullAt !== null) this.fullAt = this.options.clock.now() + intervals.fullIntervalMs;
    this.arm();
  }

  /** Starts no further run; resolves when the one in flight, if any, has ended. What is still pending is dropped. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.disarm();
    await this.lastRun;
  }

  private disarm(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
  }

  /** Sets the one timer to the next start. */
  private arm(): void {
    this.disarm();
    if (this.stopped || this.running) return;
    const at = this.nextStart();
    if (at === null) return;
    this.cancelTimer = this.options.clock.callAt(at, () => {
      this.cancelTimer = null;
      this.lastRun = this.runOnce();
    });
  }

  private nextStart(): number | null {
    const spaced = this.spacedFromLast();
    const queued = this.urgent ? this.queuedSince : later(this.queuedSince, spaced);
    const retry = this.urgentPending ? this.retryAt : later(this.retryAt, spaced);
    const due = Math.min(queued ?? Infinity, retry ?? Infinity, later(this.fullAt, spaced) ?? Infinity);
    return due === Infinity ? null : due;
  }

  private spacedFromLast(): number {
    const { minIntervalMs } = this.intervals;
    if (minIntervalMs === 0 || this.continues) return this.pacing.earliest;
    return this.lastStart === null ? -Infinity : this.lastStart + minIntervalMs;
  }

  private async runOnce(): Promise<void> {
    const startedAt = this.options.clock.now();
    const isRetry = this.retryAt !== null && startedAt >= this.retryAt;
    const full = this.fullPending || (this.fullAt !== null && startedAt >= this.fullAt);
    this.running = true;
    this.lastStart = startedAt;
    this.queuedSince = null;
    this.urgentPending ||= this.urgent;
    this.urgent = false;
    this.continues = false;
    this.retryAt = null;
    if (full) {
      this.fullPending = true;
      this.fullAt = null;
    }
    const urgent = this.urgentPending;
    let succeeded = true;
    try {
      await this.options.run({ full });
    } catch {
      succeeded = false;
    }
    const finishedAt = this.options.clock.now();
    if (succeeded) this.succeeded(full, finishedAt);
    else this.failed(isRetry, finishedAt);
    this.running = false;
    this.pacing.ended({ startedAt, finishedAt, extra: succeeded && (full || urgent || this.continues) });
    this.arm();
  }

  private succeeded(full: boolean, finishedAt: number): void {
    this.urgentPending = false;
    this.backoff.reset();
    if (!full) return;
    this.fullPending = false;
    this.fullAt = finishedAt + this.intervals.fullIntervalMs;
  }

  private failed(isRetry: boolean, finishedAt: number): void {
    // Only a retry lengthens the wait: a burst of triggers that all fail must not push the retry after it to the maximum.
    if (isRetry) this.backoff.grow();
    this.retryAt = finishedAt + this.backoff.delay();
  }
}

function later(time: number | null, least: number): number | null {
  return time === null ? null : Math.max(time, least);
}
