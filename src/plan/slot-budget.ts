import type { ObjectKey } from '../state/rows.js';
import { compareAge } from './forwarding-table.js';

interface Asking {
  readonly service: ObjectKey;
  readonly creationTime: number | null;
  readonly slots: number;
}

/**
 * Which Services have tables of slots when all of them together ask for more than there are. The oldest have, so every node
 * decides alike and no new Service takes slots from others. A Service that asks for more than is left has none, and ends the
 * row.
 */
export class SlotBudget {
  private readonly asking = new Map<ObjectKey, Asking>();
  private total = 0;
  /** Services that ask and have none. */
  private refused: ReadonlySet<ObjectKey> = new Set();
  private stale = false;

  constructor(private most: number) {}

  /** Notes what a Service asks for; 0 for nothing. */
  set(service: ObjectKey, creationTime: number | null, slots: number): void {
    const before = this.asking.get(service);
    if ((before?.slots ?? 0) === slots && (slots === 0 || before?.creationTime === creationTime)) return;
    this.total += slots - (before?.slots ?? 0);
    if (slots === 0) this.asking.delete(service);
    else this.asking.set(service, { service, creationTime, slots });
    this.stale = true;
  }

  setMost(most: number): void {
    this.stale ||= most !== this.most;
    this.most = most;
  }

  /**
   * Decides anew. Returns Services that gained or lost their slots. Looks at all Services that ask only while there are too
   * few slots.
   */
  decide(): readonly ObjectKey[] {
    if (!this.stale) return [];
    this.stale = false;
    const before = this.refused;
    this.refused = this.total <= this.most ? new Set() : this.beyond();
    return [...new Set([...before, ...this.refused])].filter((key) => before.has(key) !== this.refused.has(key));
  }

  has(service: ObjectKey): boolean {
    return !this.refused.has(service);
  }

  private beyond(): ReadonlySet<ObjectKey> {
    const sorted = [...this.asking.values()].sort((one, other) => compareAge(one, other).order);
    let left = this.most;
    const first = sorted.findIndex(({ slots }) => {
      left -= slots;
      return left < 0;
    });
    return new Set(sorted.slice(first).map(({ service }) => service));
  }
}
