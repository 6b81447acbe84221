import type { Backoff } from '../../../base/backoff.js';
import type { Log } from '../../../base/log.js';
import type { SourceWriter } from '../../../state/writer.js';
import { failureOf, type FailureKind } from '../failure.js';
import { SERVICE_CIDRS } from '../resources.js';
import { apiBackoff, type Dependencies } from '../timing.js';
import type { Exchanger } from './exchange.js';
import type { Inventory } from './inventory.js';
import { Lister } from './lister.js';
import { noEvents, type ResourceStatus } from './status.js';
import { Trouble } from './trouble.js';

/** Failures after which a server may soon answer. */
const PASSING: ReadonlySet<FailureKind> = new Set<FailureKind>(['throttled', 'unavailable', 'silent', 'truncated']);
/** Failures of these credentials: if the Node cannot be read either, they will soon be mended; otherwise only ServiceCIDRs are refused, perhaps for ever. */
const REFUSED: ReadonlySet<FailureKind> = new Set<FailureKind>(['unauthorized', 'forbidden']);

interface ServiceCIDRListOptions {
  readonly exchanger: Exchanger;
  readonly inventory: Inventory;
  readonly writer: SourceWriter;
  readonly log: Log;
  readonly dependencies: Dependencies;
  readonly configSyncPeriodMs: number;
}

/**
 * ServiceCIDRs are listed now and then instead of watched: they change about never, a connection per node is worth more, and nothing is in a
 * hurry for them (behaviour WA-14). Servers before 1.33 have none, which is asked again as rarely.
 */
export class ServiceCIDRList {
  private readonly lister: Lister;
  private readonly backoff: Backoff;
  private readonly trouble: Trouble;
  private nextAt = Number.NEGATIVE_INFINITY;
  private seen = '';
  private synced = false;
  private absent = false;
  /** Nothing was ever listed, and the last attempt failed for a reason that passes. */
  private unanswered = false;
  /** Nothing was ever listed, and the credentials were refused at the last attempt. */
  private refused = false;
  private lists = 0;
  private lastListAt: number | null = null;
  private completed = false;

  constructor(private readonly options: ServiceCIDRListOptions) {
    const { exchanger, inventory, log, dependencies } = options;
    this.lister = new Lister(SERVICE_CIDRS, exchanger, inventory);
    this.backoff = apiBackoff(dependencies.timing, dependencies.random);
    this.trouble = new Trouble(SERVICE_CIDRS.name, log);
  }

  /**
   * Lists when it is time to. Never rejects: what is known stays, and readiness does not wait for more than the first attempt. Answers after how many
   * milliseconds it wants to be called again, where nothing is known for want of an answer; null: whenever it is.
   *
   * @param isNodeFailing the last request for the Node failed.
   */
  async refresh(signal: AbortSignal, isNodeFailing: boolean): Promise<number | null> {
    const { clock } = this.options.dependencies;
    if (clock.now() >= this.nextAt) await this.attempt(signal);
    if (this.refused && isNodeFailing) this.unanswered = true;
    return this.unanswered ? Math.max(0, this.nextAt - clock.now()) : null;
  }

  private async attempt(signal: AbortSignal): Promise<void> {
    const { dependencies, configSyncPeriodMs } = this.options;
    try {
      await this.list(signal);
      this.backoff.reset();
      this.nextAt = dependencies.clock.now() + configSyncPeriodMs;
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    }
    if (signal.aborted || this.completed) return;
    this.completed = true;
    this.options.writer.complete();
  }

  status(): ResourceStatus {
    const { inventory, dependencies } = this.options;
    return {
      resource: SERVICE_CIDRS.name,
      synced: this.synced,
      watching: false,
      version: this.seen,
      objects: inventory.size,
      sinceLastEventMs: this.lastListAt === null ? null : dependencies.clock.now() - this.lastListAt,
      events: noEvents(),
      lists: this.lists,
      watches: 0,
      failures: { ...this.trouble.counts },
      trouble: this.trouble.present,
      ...inventory.faults,
    };
  }

  private async list(signal: AbortSignal): Promise<void> {
    const { relist, version } = await this.lister.list(this.seen, signal);
    if (signal.aborted) return;
    this.options.writer.apply(relist.commit());
    this.seen = version;
    this.lists++;
    this.synced = true;
    this.unanswered = false;
    this.refused = false;
    this.absent = false;
    this.lastListAt = this.options.dependencies.clock.now();
    this.trouble.over();
  }

  private fail(error: unknown): void {
    const { dependencies, configSyncPeriodMs, log } = this.options;
    const failure = failureOf(error);
    this.unanswered = !this.synced && PASSING.has(failure.kind);
    this.refused = !this.synced && REFUSED.has(failure.kind);
    if (failure.kind === 'missing' && !this.synced) {
      if (!this.absent) log.info(2, 'The API server has no ServiceCIDRs');
      this.absent = true;
      this.nextAt = dependencies.clock.now() + configSyncPeriodMs;
      return;
    }
    if (failure.kind === 'ahead') this.lister.startAgain();
    this.trouble.report(failure);
    this.nextAt = dependencies.clock.now() + (failure.retryAfterMs ?? this.backoff.next());
  }
}
