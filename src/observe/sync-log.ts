import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { TokenBucket } from '../base/token-bucket.js';
import type { SyncReport } from '../dataplane/contract.js';
import type { AcknowledgedSync, CycleObserver, EndedSync, FlowSearch, RepairedChange } from './cycle-observer.js';

/** Lines about repairs that may be logged at once, and in the long run. */
const REPAIR_LINES = 400;
const REPAIR_LINES_PER_SECOND = 2;

type SyncLimitation = NonNullable<SyncReport['limitations']>[number];

interface Reported {
  /** Why the last sync failed; null: it did not. */
  failure: string | null;
  limitations: ReadonlySet<string>;
  /** Of them, those that the log does not have. */
  unlogged: readonly SyncLimitation[];
  readonly repairLines: TokenBucket;
}

/** What the log says of syncs. */
export class SyncLog implements CycleObserver {
  private readonly reported = new Map<Family, Reported>();
  /** Families whose syncs are under way. */
  private readonly syncing = new Set<Family>();

  constructor(
    private readonly log: Log,
    private readonly clock: Clock,
  ) {}

  syncBegan(family: Family): void {
    this.syncing.add(family);
  }

  acknowledged({ report, syncMs, sinceChangeMs, isFirst, newProblems }: AcknowledgedSync): void {
    const { log } = this;
    const { family, full, transactions, elementOperations, ruleOperations, bytes } = report;
    this.noteLimitations(report);
    if (isFirst) log.info(0, 'rules complete', { family, sinceStartMs: Math.round(1000 * process.uptime()) });
    const counts = { family, full, transactions, elementOperations, ruleOperations, bytes, syncMs, sinceChangeMs };
    log.info(full || transactions > 0 ? 2 : 4, 'synced', counts);
    this.repairs(report);
    for (const problem of newProblems) log.warn(problem, { family });
  }

  /** Speaks when it breaks, when the reason changes and when it works again, not at every retry. */
  syncEnded({ family, result, counts }: EndedSync): void {
    this.syncing.delete(family);
    if (this.syncing.size === 0) this.logLimitations();
    if (!counts) return;
    const { log } = this;
    const reported = this.of(family);
    if (result.type === 'success') {
      if (reported.failure !== null) log.info(0, 'sync works again', { family });
      reported.failure = null;
      return;
    }
    const failure = messageOf(result.error);
    if (failure === reported.failure) log.info(2, 'sync failed again', { family, error: failure });
    else log.error(result.error, 'sync failed, will be retried', { family });
    reported.failure = failure;
  }

  flowsChecked({ family, deleted, listed }: FlowSearch): void {
    if (deleted > 0) this.log.info(2, 'removed stale flows', { family, deleted, listed });
  }

  externalChange(family: Family, process: string | null): void {
    this.log.info(2, 'external change to the table', { family, process: process ?? 'unknown' });
  }

  /** One line for an external change: by whom, how much, what first, repaired in how long. */
  repaired({ family, process, differences, what, seconds }: RepairedChange): void {
    if (differences === 0) return;
    const time = seconds === null ? {} : { seconds: Number(seconds.toFixed(3)) };
    this.log.warn('external change repaired', { family, process: process ?? 'unknown', differences, what, ...time });
  }

  private noteLimitations({ family, limitations = [] }: SyncReport): void {
    const reported = this.of(family);
    reported.unlogged = limitations.filter(({ text }) => !reported.limitations.has(text));
    reported.limitations = new Set(limitations.map(({ text }) => text));
  }

  /** Once each: most are the same for both families, whose syncs end together. */
  private logLimitations(): void {
    const found = new Map<string, { readonly of: SyncLimitation['of']; readonly families: Family[] }>();
    for (const [family, reported] of this.reported) {
      for (const { of, text } of reported.unlogged) {
        const one = found.get(text);
        if (one === undefined) found.set(text, { of, families: [family] });
        else one.families.push(family);
      }
      reported.unlogged = [];
    }
    for (const [text, { of, families }] of found) {
      const fields = { families: families.join(), limitation: text };
      if (of !== 'mode') this.log.warn('limitation', fields);
      else this.log.info(0, 'limitation', fields);
    }
  }

  /** In detail, but not for ever when external changes go on. */
  private repairs({ family, repairs }: SyncReport): void {
    if (repairs.length === 0) return;
    const { log } = this;
    const message = 'repaired what the kernel no longer held as acknowledged';
    const { repairLines } = this.of(family);
    if (repairLines.take(repairs.length)) for (const repair of repairs) log.info(2, message, { family, repair });
    else log.info(2, message, { family, differences: repairs.length });
  }

  private of(family: Family): Reported {
    let reported = this.reported.get(family);
    if (reported === undefined) {
      const repairLines = new TokenBucket(REPAIR_LINES_PER_SECOND, REPAIR_LINES, () => this.clock.now());
      this.reported.set(family, (reported = { failure: null, limitations: new Set(), unlogged: [], repairLines }));
    }
    return reported;
  }
}
