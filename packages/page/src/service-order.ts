import { objectKey } from '../../../src/plan/types.js';
import type { ObjectKey } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';

/** How long the order is kept up to date without a request for it. */
const IDLE_MS = 60_000;

/** The keys of all Services in their order. Made when it is asked for, and then kept in step with the state; gone again after a minute without a request. */
export class ServiceOrder {
  private sorted: ObjectKey[] | null = null;
  private stop: (() => void) | null = null;
  private cancelTimer: (() => void) | null = null;

  constructor(
    private readonly running: Pick<RunningProcess, 'snapshot' | 'onChange'>,
    private readonly callLater: (ms: number, callback: () => void) => () => void,
  ) {}

  keys(): readonly ObjectKey[] {
    this.cancelTimer?.();
    this.cancelTimer = this.callLater(IDLE_MS, () => {
      this.forget();
    });
    return (this.sorted ??= this.make());
  }

  forget(): void {
    this.cancelTimer?.();
    this.stop?.();
    this.sorted = null;
    this.stop = null;
  }

  private make(): ObjectKey[] {
    const keys: ObjectKey[] = [];
    for (const { namespace, name } of this.running.snapshot.services()) keys.push(objectKey(namespace, name));
    this.stop = this.running.onChange((edits) => {
      for (const { before, after } of edits) {
        const row = after ?? before;
        if (row?.kind !== 'Service' || (before !== null && after !== null)) continue;
        this.place(objectKey(row.namespace, row.name), after !== null);
      }
    });
    return keys.sort();
  }

  private place(key: ObjectKey, exists: boolean): void {
    const { sorted } = this;
    if (sorted === null) return;
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? '') < key) low = middle + 1;
      else high = middle;
    }
    const isThere = sorted[low] === key;
    if (exists && !isThere) sorted.splice(low, 0, key);
    if (!exists && isThere) sorted.splice(low, 1);
  }
}
