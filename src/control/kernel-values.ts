import { BEAT_MS, nextLook, type Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { SeenFile } from '../base/sysctl.js';
import type { Host, KernelValue, WrittenValue } from '../host/host.js';
import type { SysctlAddon } from '../native/contract.js';

interface KernelValuesOptions {
  /** Those that the configuration in force asks for. */
  readonly values: () => readonly KernelValue[];
  readonly clock: Clock;
  readonly log: Log;
  /** A value that was right had been changed, and is right again. */
  readonly onRepaired: (value: WrittenValue) => void;
  /** Called after every look with what is not as it should be, in sentences. */
  readonly onChecked: (problems: readonly string[]) => void;
  readonly apply: Host['applyKernelValues'];
  /** Calls back once, when a file no longer is as it was seen; answers what ends that. */
  readonly watch: SysctlAddon['sysctlWatch'];
}

/** From an external change to the look that finds it. The kernel does not notify of a written sysctl. */
const INTERVAL_MS = BEAT_MS;
/** Between attempts to set what the kernel refuses while all files stay as they are. */
const RETRY_MS = 10 * BEAT_MS;
/** Who sets a value all the time is not answered all the time. */
const LONGEST_INTERVAL_MS = 60_000;

/**
 * Sees to it that the sysctls of the configuration hold: sets them, and again when they cannot be set yet or after an external change. One that the
 * configuration no longer asks for gets back what it was before it was first set.
 */
export class KernelValues {
  /** Values that were right once, by path. */
  private readonly known = new Map<string, KernelValue>();
  /** What values were before they were first set, by path. What was right from the start may be the work of a process before this one. */
  private readonly originals = new Map<string, KernelValue>();
  private problems: readonly string[] = [];
  private intervalMs = INTERVAL_MS;
  private endWait = (): void => undefined;
  private running: Promise<readonly SeenFile[]> = Promise.resolve([]);
  private stopped = false;

  constructor(private readonly options: KernelValuesOptions) {}

  /** Sets what differs, and goes on looking while there are values to look at, until {@link stop}. Never rejects. */
  async apply(): Promise<void> {
    this.endWait();
    const run = this.running.then(() => this.check());
    this.running = run;
    const seen = await run;
    if (this.stopped || this.running !== run || !this.isNeeded()) return;
    this.endWait = this.wait(seen);
  }

  stop(): void {
    this.stopped = true;
    this.endWait();
  }

  /** Until the next look. Answers what ends it. */
  private wait(seen: readonly SeenFile[]): () => void {
    const { clock, watch } = this.options;
    const look = (): void => void this.apply();
    // Somebody may go on setting it: how often that is answered is for this side to say.
    if (this.intervalMs > INTERVAL_MS) return clock.callAt(nextLook(clock.now(), this.intervalMs), look);
    const endWatch = watch(seen, INTERVAL_MS, look);
    if (this.problems.length === 0) return endWatch;
    const cancelRetry = clock.callAt(nextLook(clock.now(), RETRY_MS), look);
    return () => {
      endWatch();
      cancelRetry();
    };
  }

  /** Whether there is a value to look at: one that is asked for, or one that is still to be given back. */
  private isNeeded(): boolean {
    return this.options.values().length > 0 || this.originals.size > 0;
  }

  /** Answers what the files said in the end. */
  private async check(): Promise<readonly SeenFile[]> {
    if (this.stopped) return [];
    const { log, onRepaired, onChecked, apply } = this.options;
    const values = this.options.values();
    const wanted = new Set(values.map(({ path }) => path));
    const restored = this.restorations(wanted);
    const { written, problems, seen } = await apply([...values, ...restored]);
    let isRepaired = false;
    for (const each of written) {
      const { path, value, found } = each;
      if (this.known.get(path)?.value === value) {
        log.warn('repaired an external change of a sysctl', { path, value, found });
        onRepaired(each);
        isRepaired = true;
        continue;
      }
      this.remember(each);
      log.info(1, wanted.has(path) ? 'set sysctl' : 'restored the former value of a sysctl', { path, value });
    }
    this.intervalMs = isRepaired ? Math.min(2 * this.intervalMs, LONGEST_INTERVAL_MS) : INTERVAL_MS;

    const wrong = new Set(problems.map(({ path }) => path));
    // A value that is wrong now and was right is still known: setting it again, once that works, is a repair.
    for (const value of values) if (!wrong.has(value.path)) this.known.set(value.path, value);
    for (const { path } of restored) if (!wrong.has(path)) this.originals.delete(path);
    const reported = new Set(this.problems);
    this.problems = problems.map(({ message }) => message);
    for (const problem of this.problems) log.info(reported.has(problem) ? 4 : 0, problem);
    onChecked(this.problems);
    return seen;
  }

  private remember({ path, value, found, match, stays }: WrittenValue): void {
    const original = this.originals.get(path);
    if (stays === true || (original === undefined && this.known.has(path))) return;
    // A minimum that somebody raised since is theirs.
    const isOnlyOurs = match === 'at-least' ? { inPlaceOf: value } : {};
    this.originals.set(path, { path, value: original?.value ?? Number(found), match: 'equal', ...isOnlyOurs });
  }

  /** What is to be given back, now that only these are asked for; of what is not known, a word is said. */
  private restorations(wanted: ReadonlySet<string>): readonly KernelValue[] {
    for (const { path, value, match, stays } of this.known.values()) {
      if (wanted.has(path)) continue;
      this.known.delete(path);
      if (this.originals.has(path) || match === 'at-least' || stays === true) continue;
      const message = 'a sysctl that the configuration no longer asks for stays: what it was before is not known';
      this.options.log.warn(message, { path, value });
    }
    return [...this.originals.values()].filter(({ path }) => !wanted.has(path));
  }
}
