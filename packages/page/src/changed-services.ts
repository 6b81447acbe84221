import { objectKey } from '../../../src/plan/types.js';
import type { ObjectKey } from '../../../src/state/rows.js';
import type { RowEdit } from '../../../src/state/store.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ServicesChanged } from './api.js';
import { ServiceProblems } from './service-problems.js';

/** How many are reported by name. */
const MAX_KEYS = 200;

/** Services that changed, until they are reported: by name as long as they are few. */
export class ChangedServices {
  /** How many plans had begun when each changed. */
  private readonly changed = new Map<ObjectKey, number>();
  /** The same of those that have no name here; null: there are none. */
  private others: number | null = null;
  private membership = false;
  private problems = new Map<ObjectKey, string>();

  constructor(private readonly running: RunningProcess) {}

  begin(): void {
    this.problems = this.problemTexts();
  }

  end(): void {
    this.changed.clear();
    this.others = null;
    this.membership = false;
    this.problems.clear();
  }

  /** These rows changed. */
  note(edits: readonly RowEdit[]): void {
    for (const { before, after } of edits) {
      const row = after ?? before;
      switch (row?.kind) {
        case 'Service':
          this.membership ||= before === null || after === null;
          this.add(objectKey(row.namespace, row.name));
          break;
        case 'EndpointSlice':
          this.add(objectKey(row.namespace, row.serviceName));
          break;
        case 'Node':
          // Planning asks for no other.
          if (row.name === this.running.planned().nodeName) this.others = this.running.progress.plansBegun;
          break;
        case 'ServiceCIDR':
        case undefined:
          break;
      }
    }
  }

  /** What is to be reported now; null: nothing. What has not been planned yet waits: a client that asked again would see the earlier state. */
  take(): ServicesChanged | null {
    this.noteProblems();
    const { plans, deferred } = this.running.progress;
    const isPlanned = (at: number): boolean => at < plans || !this.running.snapshot.ready;
    const keys = [...this.changed].filter(([key, at]) => isPlanned(at) && !deferred.has(key)).map(([key]) => key);
    const more = this.others !== null && isPlanned(this.others);
    if (keys.length === 0 && !more && !this.membership) return null;
    const { membership } = this;
    for (const key of keys) this.changed.delete(key);
    // Services that a plan left to a later one may be among them.
    if (more && deferred.size === 0) this.others = null;
    this.membership = false;
    return { keys, more, membership };
  }

  private add(key: ObjectKey): void {
    const { plansBegun } = this.running.progress;
    if (this.changed.has(key) || this.changed.size < MAX_KEYS) this.changed.set(key, plansBegun);
    else this.others = plansBegun;
  }

  /** Problems come and go with syncs, not with the objects. */
  private noteProblems(): void {
    const before = this.problems;
    this.problems = this.problemTexts();
    const differs = [...before.keys(), ...this.problems.keys()].filter(
      (key) => before.get(key) !== this.problems.get(key),
    );
    for (const key of differs) if (this.changed.has(key) || this.changed.size < MAX_KEYS) this.changed.set(key, -1);
  }

  private problemTexts(): Map<ObjectKey, string> {
    const { reported } = new ServiceProblems(this.running);
    return new Map([...reported].map(([key, problems]) => [key, [...problems].join()]));
  }
}
