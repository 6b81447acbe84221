import type { Family } from '../base/ip.js';
import type { SourceTracing } from '../base/tracing.js';
import type { SyncReport } from '../dataplane/contract.js';
import type { RowEdit } from '../state/store.js';

/** What the sync cycle tells whoever follows changes on their way. Null where nobody does. */
export interface SyncTracing {
  /**
   * The state changed, and changes can go to the kernel.
   *
   * @param receivedAt when that was heard of, on performance.now's clock; null: now.
   * @param families those that are synced.
   */
  committed(edits: readonly RowEdit[], receivedAt: number | null, families: readonly WithFamily[]): void;
  /** A run begins, with all that was committed so far. @param full whether everything is compared. */
  run(full: boolean): RunTrace;
  /** Compares a family beside runs. */
  audit(family: Family, work: () => Promise<boolean>): Promise<boolean>;
}

export interface WithFamily {
  readonly family: Family;
}

/** One run of the cycle. */
export interface RunTrace {
  /** The plan is made, or as much of it as can be. */
  planned(): void;
  /** A family's sync begins. @param suspected somebody else is known to have changed its rules. */
  family(family: Family, suspected: boolean): FamilyTrace;
  /** @param error what failed; null: nothing did. */
  ended(error: unknown): void;
}

/** One family's sync. */
export interface FamilyTrace {
  /** The mode's part: every call to the kernel meanwhile is seen. */
  apply(work: () => Promise<SyncReport>): Promise<SyncReport>;
  /** The kernel acknowledged all that the run was to bring, by whichever sync. */
  acknowledged(report: SyncReport): void;
  /** A pass over stale flows. */
  flows(work: () => Promise<void>): Promise<void>;
  /** @param error what failed; null: nothing did. */
  ended(error: unknown): void;
}

/** Spans that ended, by what became of them: sent, or dropped as the collector did not take them in time. */
export interface SpanCounter {
  spansEnded(result: 'exported' | 'dropped', count: number): void;
}

/** All of it, of one process. */
export interface ProcessTracing extends SyncTracing, SourceTracing {
  /** From now on spans are counted. */
  countBy(counter: SpanCounter): void;
  /** What is in force from the next run on. */
  setMode(mode: string): void;
}
