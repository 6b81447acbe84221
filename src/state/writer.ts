import type { ObjectKey, Row, RowRef } from './rows.js';

export type StateChange =
  | {
      readonly type: 'upsert';
      readonly row: Row;
      /** The row's `namespace/name`, where the source has it anyway: the state keeps that string rather than one of its own. */
      readonly key?: ObjectKey;
    }
  | { readonly type: 'remove'; readonly ref: RowRef };

/**
 * The only way into the state. A source registers before it starts, and applies changes as they come (each call is one atomic commit: a relist or a re-read
 * file is one call). It reports `complete` once everything it knew at its start has been applied. Applying rows equal to what is held changes nothing and
 * calls no listener.
 */
export interface Writer {
  register(source: string): SourceWriter;
}

export interface SourceWriter {
  /** @param receivedAt when the first of them reached the process, on performance.now's clock; null, or not given: now. */
  apply(changes: readonly StateChange[], receivedAt?: number | null): void;
  complete(): void;
  /**
   * Whether there is something that the source could not read and of which it has no earlier version. While this holds, what the kernel holds
   * and the plan does not may still be wanted, so it stays. To be called before `complete`.
   */
  unsynced(present: boolean): void;
}
