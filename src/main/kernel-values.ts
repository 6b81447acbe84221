import {
  applyKernelValues,
  KERNEL_FILES,
  type KernelFiles,
  type KernelValue,
  type WrittenValue,
} from '../dataplane/sysctl.js';
import type { Clock } from '../loop/clock.js';
import type { Log } from '../net/log.js';

export interface KernelValuesOptions {
  /** Those that the configuration in force asks for. */
  readonly values: () => readonly KernelValue[];
  readonly clock: Clock;
  readonly log: Log;
  /** A value that was right had been changed, and is right again. */
  readonly onRepaired: (value: WrittenValue) => void;
  /** Called after every look with what is not as it should be, in sentences. */
  readonly onChecked: (problems: readonly string[]) => void;
  readonly files?: KernelFiles;
}

/** Reading a handful of small files takes some hundred microseconds. The kernel tells nobody that a sysctl was written. */
const INTERVAL_MS = 1000;
/** Who sets a value all the time is not answered all the time. */
const LONGEST_INTERVAL_MS = 60_000;

/** Sees to it that the sysctls of the configuration hold: sets them, and again when they cannot be set yet or when somebody changes them. */
export class KernelValues {
  /** Values that were right once, by path. */
  private readonly known = new Map<string, number>();
  private problems: readonly string[] = [];
  private intervalMs = INTERVAL_MS;
  private cancelTimer: (() => void) | null = null;
  private running = Promise.resolve();
  private stopped = false;

  constructor(private readonly options: KernelValuesOptions) {}

  /** Sets what differs, and goes on looking until {@link stop}. Never rejects. */
  async apply(): Promise<void> {
    this.cancelTimer?.();
    const run = this.running.then(() => this.check());
    this.running = run;
    await run;
    if (this.stopped || this.running !== run) return;
    const { clock } = this.options;
    this.cancelTimer = clock.callAt(clock.now() + this.intervalMs, () => void this.apply());
  }

  stop(): void {
    this.stopped = true;
    this.cancelTimer?.();
  }

  private async check(): Promise<void> {
    const { log, onRepaired, onChecked, files } = this.options;
    const values = this.options.values();
    const { written, problems } = await applyKernelValues(values, files ?? KERNEL_FILES);
    const repaired = written.filter(({ path, value }) => this.known.get(path) === value);
    for (const { path, value, found } of written) {
      if (this.known.get(path) === value) {
        log.warn('repaired a sysctl that somebody else had changed', { path, value, found });
      } else log.info(1, 'set sysctl', { path, value });
    }
    for (const value of repaired) onRepaired(value);
    this.intervalMs = repaired.length > 0 ? Math.min(2 * this.intervalMs, LONGEST_INTERVAL_MS) : INTERVAL_MS;

    const wrong = new Set(problems.map(({ path }) => path));
    // A value that is wrong now and was right is still known: setting it again, once that works, is a repair.
    for (const { path, value } of values) if (!wrong.has(path)) this.known.set(path, value);
    const said = new Set(this.problems);
    this.problems = problems.map(({ message }) => message);
    for (const problem of this.problems) log.info(said.has(problem) ? 4 : 0, problem);
    onChecked(this.problems);
  }
}
