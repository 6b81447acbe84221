import type { IPPrefix } from '../../../src/base/ip.js';
import type { Log } from '../../../src/base/log.js';
import { cutMessage } from '../../../src/base/outside-text.js';
import { DEFAULT_SERVICE_LIMITS } from '../../../src/base/service-limits.js';
import type { Cluster } from '../../../src/plan/claim-problems.js';
import { PlannedCluster } from '../../../src/plan/planned-cluster.js';
import { TranslateError } from '../../../src/sources/translate/errors.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import { identify } from '../../../src/sources/translate/metadata.js';
import { translate } from '../../../src/sources/translate/object.js';
import type { RowKind } from '../../../src/state/rows.js';
import { Store } from '../../../src/state/store.js';

/** Kinds that Services are judged by. */
export const OBSERVED_KINDS = ['Service', 'Node', 'ServiceCIDR'] as const satisfies readonly RowKind[];
export type ObservedKind = (typeof OBSERVED_KINDS)[number];

/** The cluster as informers report it: its rows, and what nodes would make of them. */
export class ObservedCluster {
  readonly names = new Interner(undefined, false);
  private readonly store = new Store();
  private readonly writer = this.store.register('cluster');
  private readonly planned: PlannedCluster;
  private readonly missing = new Set<ObservedKind>(OBSERVED_KINDS);
  private isBehind = true;

  /** @param serviceRanges beside those of ServiceCIDRs. */
  constructor(
    serviceRanges: readonly IPPrefix[],
    private readonly log: Log,
    limits = DEFAULT_SERVICE_LIMITS,
  ) {
    this.planned = new PlannedCluster(serviceRanges, limits);
    this.store.onChange(() => {
      this.isBehind = true;
    });
  }

  /** Kinds that have not all been read. */
  get unread(): readonly ObservedKind[] {
    return [...this.missing];
  }

  /** What Services are judged by now; null: it has not all been read. */
  get current(): Cluster | null {
    if (this.missing.size > 0) return null;
    this.plan();
    return this.planned;
  }

  /**
   * All of a kind has been read. After the last kind all Services are planned. 10,000 of them take up to 0.2 s, and the first review would wait for that.
   */
  listed(kind: ObservedKind): void {
    this.missing.delete(kind);
    if (this.missing.size === 0) this.plan();
  }

  private plan(): void {
    if (!this.isBehind) return;
    this.isBehind = false;
    for (const failure of this.planned.update(this.store.snapshot, this.store.takeChanges()))
      this.log.error(failure, 'a Service is left out');
  }

  /** Stores an object. If it cannot be used, the last usable version stays, as on nodes. */
  put(kind: ObservedKind, object: unknown): void {
    try {
      const { ref, row } = translate(kind, object, this.names);
      this.writer.apply([row === null ? { type: 'remove', ref } : { type: 'upsert', row }]);
    } catch (error) {
      if (!(error instanceof TranslateError)) throw error;
      this.log.info(2, 'an object cannot be used', {
        kind,
        object: cutMessage(identify(object, kind)?.name ?? ''),
        why: cutMessage(error.message),
      });
    }
  }

  remove(kind: ObservedKind, object: unknown): void {
    const ref = identify(object, kind);
    if (ref !== null) this.writer.apply([{ type: 'remove', ref }]);
  }
}
