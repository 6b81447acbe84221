import type { Clock } from '../base/clock.js';
import type { IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { ConntrackReconciler } from '../dataplane/conntrack/reconciler.js';
import type { FamilyDataplane, SyncReport } from '../dataplane/contract.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { nodePortRefusal } from '../plan/trace.js';
import type { FrontendKey } from '../plan/types.js';
import type { TakeoverPass } from './takeover.js';

export interface StaleFlowsParts {
  readonly table: ForwardingTable;
  /** Null: the platform has no conntrack, and nothing is owed. */
  readonly conntrack: Pick<ConntrackReconciler, 'reconcile'> | null;
  readonly localAddresses: () => readonly IPAddress[];
  /** Null: nothing is counted. */
  readonly metrics: Pick<ProxyMetrics, 'flowsReconciled'> | null;
  readonly log: Log;
  readonly clock: Clock;
}

/** Flows of one family that may contradict its rules: owed from the change on until a pass over them has succeeded, whichever mode is in force then. */
export class StaleFlows {
  private owed = new Set<FrontendKey>();
  private allOwed = false;
  /** Frontends that went while rules of another mode may still have been there, which let their flows come back; null: there are none. */
  private goneEarly: Set<FrontendKey> | null = new Set();
  private lastFailure: string | null = null;

  constructor(private readonly parts: StaleFlowsParts) {}

  /** Whether the last pass failed: what it was about is owed to the next. */
  get refused(): boolean {
    return this.lastFailure !== null;
  }

  owe(flows: SyncReport['flows']): void {
    if (flows === 'all') this.allOwed = true;
    else for (const key of flows) this.owed.add(key);
  }

  /** These frontends changed. Those that are gone no dataplane may know by the time that the rules are in the kernel: not one of another mode. */
  changed(frontends: ReadonlySet<FrontendKey>): void {
    for (const key of frontends) {
      if (key.endsWith('/TCP') || this.parts.table.frontend(key) !== undefined) continue;
      this.owed.add(key);
      this.goneEarly?.add(key);
    }
  }

  /** Another mode takes this one's place, whose rules go on forwarding for a while. */
  replaced(former: FamilyDataplane): void {
    this.owe(former.goneFlows());
    this.goneEarly = new Set([...(this.goneEarly ?? []), ...this.owed]);
  }

  /** A pass over what other modes left has ended: where rules went flows may have come back since they were removed, and by those left they still may. */
  leftoversRemoved({ removed, finished, goneFlows }: TakeoverPass): void {
    if (removed) {
      this.owe('all');
      this.owe(new Set(goneFlows.get(this.parts.table.family)));
      this.owe(this.goneEarly ?? new Set());
    }
    if (finished) this.goneEarly = null;
  }

  /**
   * Removes what is owed. Conntrack's refusal does not reject: the rules are in the kernel and new flows are right, and a kernel may lack ctnetlink
   * (behaviour RT-08).
   */
  async reconcile(dataplane: FamilyDataplane): Promise<void> {
    const { table, conntrack, metrics, log, clock } = this.parts;
    if (conntrack === null) {
      this.owed.clear();
      return;
    }
    const gone = new Set(dataplane.goneFlows());
    this.owe(gone);
    if (!this.allOwed && this.owed.size === 0) return;
    const own = this.parts.localAddresses();
    const startedAt = clock.now();
    // What comes to be owed during the pass is left for the next.
    const { owed, allOwed } = this;
    this.owed = new Set();
    this.allOwed = false;
    const report = await conntrack.reconcile({
      table,
      isNodePortAddress: (address) => nodePortRefusal(table.node, address, own) === null,
      full: allOwed,
      changed: owed,
    });
    metrics?.flowsReconciled(table.family, report.deleted, (clock.now() - startedAt) / 1000);
    if (report.deleted > 0)
      log.info(2, 'removed stale flows', { family: table.family, deleted: report.deleted, listed: report.flows });
    if (this.reportErrors(report.errors)) {
      this.owe(owed);
      if (allOwed) this.owe('all');
      return;
    }
    await dataplane.clearGoneFlows(gone);
  }

  /** Speaks when it breaks and when the reason changes, not at every retry. */
  private reportErrors(errors: readonly Error[]): boolean {
    const { table, log } = this.parts;
    const failure = errors.length === 0 ? null : errors.map(({ message }) => message).join('; ');
    if (failure !== null && failure !== this.lastFailure) {
      log.error(new AggregateError(errors, failure), 'cannot remove stale flows, will be retried', {
        family: table.family,
      });
    }
    this.lastFailure = failure;
    return failure !== null;
  }
}
