import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import { TimeBudget } from '../dataplane/time-budget.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';

interface CountPollerParts {
  readonly log: Log;
  readonly clock: Clock;
}

/** Without a client that asks. What the kernel counts is kept by its Service until then, and finds it if that is still there. */
const INTERVAL_MS = 30_000;
/** Of the time: 50,000 flows take a sixth of a second to list. */
const SHARE = 0.01;

/** Takes what the kernel has counted of Services: when a client asks, and now and then. */
export abstract class CountPoller<Parts extends CountPollerParts> {
  private readonly budget: TimeBudget;
  private pass: Promise<void> | null = null;
  private cancel: (() => void) | null = null;
  private stopped = false;
  /** What was there before is known. */
  private based = false;
  private planned = false;
  private lastAt: number | null = null;
  private failure: string | null = null;

  /** @param problem what the log says cannot be done when it fails. */
  constructor(
    protected readonly parts: Parts,
    private readonly tables: readonly Pick<ForwardingTable, 'counts'>[],
    private readonly problem: string,
  ) {
    const { clock } = parts;
    this.budget = new TimeBudget(() => clock.now(), SHARE);
  }

  /** What is taken the first time was there before. */
  protected abstract take(): Promise<void>;

  /** Resolves when what was there before is known. Never rejects. */
  async start(): Promise<void> {
    // Beside all else that happens at a start it takes longer than any look after it, so it is no measure of these.
    await this.look(() => this.take());
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    this.cancel?.();
  }

  /** Whether {@link collect} would take what was counted by now. */
  get isDue(): boolean {
    return this.budget.isDue && !this.stopped && this.isPlanned();
  }

  /** When what the kernel had counted was last taken, on the clock; null: never. */
  get takenAt(): number | null {
    return this.lastAt;
  }

  /** What was counted by now has been taken, unless the last look is so recent that another would cost more than its share. Never rejects. */
  async collect(): Promise<void> {
    if (this.pass === null && !this.isDue) return;
    await this.look(() => this.budget.take(() => this.take()));
  }

  private look(take: () => Promise<void>): Promise<void> {
    this.pass ??= take()
      .then(
        () => {
          this.based = true;
          this.lastAt = this.parts.clock.now();
          this.failed(null);
        },
        (error: unknown) => {
          this.failed(error);
        },
      )
      .finally(() => {
        this.pass = null;
      });
    return this.pass;
  }

  private schedule(): void {
    const { clock } = this.parts;
    if (this.stopped) return;
    this.cancel = clock.callAt(clock.now() + INTERVAL_MS, () => {
      void this.collect().then(() => {
        this.schedule();
      });
    });
  }

  /** Rules of a process before this one may forward already: what they count waits until there is a plan that says whose it is. */
  private isPlanned(): boolean {
    this.planned ||= this.tables.some(({ counts }) => counts.services > 0);
    return this.planned || !this.based;
  }

  /** Speaks when it breaks and when the reason changes. */
  private failed(error: unknown): void {
    const message = error === null ? null : messageOf(error);
    if (message !== null && message !== this.failure) this.parts.log.error(error, this.problem);
    this.failure = message;
  }
}
