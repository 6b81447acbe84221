import type { SyncReport } from '../dataplane/contract.js';
import type { FrontendKey, FrontendPlan } from '../plan/types.js';

/** One sync that changed something, or compared everything. */
export interface SyncRecord {
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

/** A record as it is kept: hardly any is ever read, and printing a time costs as much as the rest. */
interface Kept extends Omit<SyncRecord, 'endedAt'> {
  readonly endedAt: Date;
}

const NEVER: Occurrences = { count: 0, last: null };
const RECENT = 5;
const SLOWEST = 5;
const NAMED = 3;

/** What is told of one family's syncs: the last few, the slowest few, and what went wrong. Its size does not grow. */
export class SyncHistory {
  private recentSyncs: readonly Kept[] = [];
  private slowestSyncs: readonly Kept[] = [];
  private failed: Occurrences = NEVER;
  private repaired: Occurrences = NEVER;
  /** @param now wall time. */
  constructor(private readonly now: () => Date = () => new Date()) {}

  /** Latest first. */
  get recent(): readonly SyncRecord[] {
    return this.recentSyncs.map(printed);
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

  /**
   * The kernel acknowledged a sync, and with it all that earlier ones owed.
   *
   * @param frontends those that changed.
   */
  acknowledged(
    report: SyncReport,
    frontends: ReadonlySet<FrontendKey>,
    plan: (key: FrontendKey) => FrontendPlan | undefined,
    times: { readonly syncMs: number; readonly sinceChangeMs: number },
  ): void {
    if (report.repairs.length > 0)
      this.repaired = this.again(this.repaired, report.repairs.length, report.repairs.join('; '));
    if (report.transactions === 0 && !report.full) return;
    const { full, transactions, elementOperations, ruleOperations, bytes } = report;
    const { syncMs, sinceChangeMs } = times;
    const counts = { transactions, elementOperations, ruleOperations, bytes, frontends: frontends.size };
    const servicePorts = someServicePorts(frontends, plan);
    const record: Kept = { endedAt: this.now(), full, syncMs, sinceChangeMs, ...counts, servicePorts };
    this.recentSyncs = [record, ...this.recentSyncs].slice(0, RECENT);
    const least = this.slowestSyncs[SLOWEST - 1]?.syncMs ?? 0;
    if (full || syncMs <= least) return;
    this.slowestSyncs = [...this.slowestSyncs, record]
      .sort((one, other) => other.syncMs - one.syncMs)
      .slice(0, SLOWEST);
  }

  failedWith(message: string): void {
    this.failed = this.again(this.failed, 1, message);
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
