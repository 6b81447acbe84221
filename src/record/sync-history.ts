import type { SyncReport } from '../dataplane/contract.js';
import type { FrontendKey, FrontendPlan } from '../plan/types.js';

/** One sync that changed something, or compared everything. */
export interface SyncRecord {
  /** Counted within the family, from 1 on. */
  readonly number: number;
  /** RFC 3339. */
  readonly endedAt: string;
  readonly full: boolean;
  /** Milliseconds from the start of the sync to the kernel's acknowledgement. */
  readonly syncMs: number;
  /** The same from the first change in it. */
  readonly sinceChangeMs: number;
  readonly transactions: number;
  readonly elementOperations: number;
  readonly ruleOperations: number;
  readonly bytes: number;
  /** Frontends that changed. */
  readonly frontends: number;
  /** Service ports of some of them. */
  readonly servicePorts: readonly string[];
}

/** Something that happened more than once. */
export interface Occurrences {
  readonly count: number;
  readonly last: { readonly at: string; readonly text: string } | null;
}

/** What the kernel no longer held as acknowledged, and was put right by one sync. */
export interface RepairRecord {
  /** Counted within the family, from 1 on. */
  readonly number: number;
  /** RFC 3339. */
  readonly at: string;
  /** The author of the external change, as `nft[1234]`; null: not known. */
  readonly process: string | null;
  readonly differences: number;
  /** From when the change was seen until it was repaired; null: the periodic comparison found it. */
  readonly seconds: number | null;
  /** Some of them. */
  readonly texts: readonly string[];
}

/** A record as it is kept: hardly any is ever read, and printing a time costs as much as the rest. */
interface Kept extends Omit<SyncRecord, 'endedAt'> {
  readonly endedAt: Date;
}

const NEVER: Occurrences = { count: 0, last: null };
const RECENT = 64;
const SLOWEST = 5;
const NAMED = 3;
const REPAIRS = 32;
const TEXTS = 5;

/** The record of one family's syncs: the last few, the slowest few, and the failures. Its size does not grow. */
export class SyncHistory {
  private count = 0;
  /** Latest last. */
  private readonly recentSyncs: Kept[] = [];
  private slowestSyncs: readonly Kept[] = [];
  private failed: Occurrences = NEVER;
  private repaired: Occurrences = NEVER;
  private recentRepairs: readonly RepairRecord[] = [];
  private problemsLeft: readonly string[] = [];
  /** @param now wall time. */
  constructor(private readonly now: () => Date = () => new Date()) {}

  /** How many there were. */
  get syncs(): number {
    return this.count;
  }

  /** Latest first. @param limit as many at most. */
  recent(limit = RECENT): readonly SyncRecord[] {
    return this.recentSyncs
      .slice(Math.max(0, this.recentSyncs.length - limit))
      .reverse()
      .map(printed);
  }

  /** Slowest first, since the start; those that compare everything do not count. */
  get slowest(): readonly SyncRecord[] {
    return this.slowestSyncs.map(printed);
  }

  get failures(): Occurrences {
    return this.failed;
  }

  /** Counts what was found lost or altered, not the syncs that found it. */
  get repairs(): Occurrences {
    return this.repaired;
  }

  /** Latest first. */
  get recentlyRepaired(): readonly RepairRecord[] {
    return this.recentRepairs;
  }

  /** What the last sync that looked could not put right, beside the rules: objects that nothing needs and that cannot be removed. */
  get problems(): readonly string[] {
    return this.problemsLeft;
  }

  /**
   * The kernel acknowledged a sync, and with it all that was pending from earlier ones.
   *
   * @param frontends those that changed.
   * @param author the process of the external change that was repaired, as far as it is known.
   * @returns problems that it did not have before.
   */
  acknowledged(
    report: SyncReport,
    frontends: ReadonlySet<FrontendKey>,
    plan: (key: FrontendKey) => FrontendPlan | undefined,
    times: { readonly syncMs: number; readonly sinceChangeMs: number },
    author: string | null,
  ): readonly string[] {
    if (report.repairs.length > 0) this.noteRepairs(report.repairs, author);
    const before = this.problemsLeft;
    const problems = [...(report.refusedChains ?? []), ...report.problems];
    if (report.full || problems.length > 0) this.problemsLeft = problems;
    if (report.transactions > 0 || report.full) this.noteSync(report, frontends, plan, times);
    return this.problemsLeft.filter((problem) => !before.includes(problem));
  }

  /** How long the last repair took, from when its cause was seen. */
  repairedIn(seconds: number | null): void {
    const [last, ...others] = this.recentRepairs;
    if (last !== undefined) this.recentRepairs = [{ ...last, seconds }, ...others];
  }

  failedWith(message: string): void {
    this.failed = this.again(this.failed, 1, message);
  }

  private noteSync(
    report: SyncReport,
    frontends: ReadonlySet<FrontendKey>,
    plan: (key: FrontendKey) => FrontendPlan | undefined,
    { syncMs, sinceChangeMs }: { readonly syncMs: number; readonly sinceChangeMs: number },
  ): void {
    const { full, transactions, elementOperations, ruleOperations, bytes } = report;
    const counts = { transactions, elementOperations, ruleOperations, bytes, frontends: frontends.size };
    const servicePorts = someServicePorts(frontends, plan);
    const number = ++this.count;
    const record: Kept = { number, endedAt: this.now(), full, syncMs, sinceChangeMs, ...counts, servicePorts };
    this.recentSyncs.push(record);
    if (this.recentSyncs.length > RECENT) this.recentSyncs.shift();
    const least = this.slowestSyncs[SLOWEST - 1]?.syncMs ?? 0;
    if (full || syncMs <= least) return;
    this.slowestSyncs = [...this.slowestSyncs, record]
      .sort((one, other) => other.syncMs - one.syncMs)
      .slice(0, SLOWEST);
  }

  private noteRepairs(repairs: readonly string[], process: string | null): void {
    this.repaired = this.again(this.repaired, repairs.length, repairs.join('; '));
    const record: RepairRecord = {
      number: (this.recentRepairs[0]?.number ?? 0) + 1,
      at: this.now().toISOString(),
      process,
      differences: repairs.length,
      seconds: null,
      texts: repairs.slice(0, TEXTS),
    };
    this.recentRepairs = [record, ...this.recentRepairs].slice(0, REPAIRS);
  }

  private again({ count }: Occurrences, more: number, text: string): Occurrences {
    return { count: count + more, last: { at: this.now().toISOString(), text } };
  }
}

function printed(record: Kept): SyncRecord {
  return { ...record, endedAt: record.endedAt.toISOString() };
}

function someServicePorts(
  frontends: ReadonlySet<FrontendKey>,
  plan: (key: FrontendKey) => FrontendPlan | undefined,
): readonly string[] {
  const found = new Set<string>();
  for (const key of frontends) {
    // What is gone has no Service any more.
    found.add(plan(key)?.servicePort ?? key);
    if (found.size === NAMED) break;
  }
  return [...found];
}
