import type { ObjectKey } from '../state/rows.js';
import { compareAge } from './forwarding-table.js';
import { namespaceOf } from './frontend-key.js';

interface Asking {
  readonly service: ObjectKey;
  readonly creationTime: number | null;
  readonly slots: number;
}

/** So many of a node's slots belong to each namespace; what it has beyond that is on loan. */
export const NAMESPACE_SHARE = 0.25;

/**
 * Which Services have tables of slots when all of them together ask for more than there are. First come Services within the
 * share of their namespace, then the others. In both groups tables in force stay, so that no Service moves another's
 * connections. Of the others those come first whose namespace would have the fewest slots, then the oldest: nodes that start
 * decide alike. One that does not fit is passed over.
 */
export class SlotBudget {
  private readonly asking = new Map<ObjectKey, Asking>();
  private total = 0;
  /** Services that ask and have none. */
  private refused: ReadonlySet<ObjectKey> = new Set();
  /** Slots in force. */
  private granted: ReadonlyMap<ObjectKey, number> = new Map();
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

  /** Decides anew. Returns Services that gained or lost their slots. */
  decide(): readonly ObjectKey[] {
    if (!this.stale) return [];
    this.stale = false;
    const before = this.refused;
    const isEnough = this.total <= this.most;
    const fitting = isEnough ? [...this.asking.values()] : this.fitting();
    this.granted = new Map(fitting.map(({ service, slots }) => [service, slots]));
    this.refused = isEnough ? new Set() : new Set([...this.asking.keys()].filter((key) => !this.granted.has(key)));
    return [...new Set([...before, ...this.refused])].filter((key) => before.has(key) !== this.refused.has(key));
  }

  has(service: ObjectKey): boolean {
    return !this.refused.has(service);
  }

  /** Services that get slots. */
  private fitting(): readonly Asking[] {
    let left = this.most;
    return this.ranked().filter(({ slots }) => {
      if (slots > left) return false;
      left -= slots;
      return true;
    });
  }

  private ranked(): readonly Asking[] {
    const share = this.most * NAMESPACE_SHARE;
    const [sums, totals] = [new Map<string, number>(), new Map<string, number>()];
    const ranked = [...this.asking.values()]
      .sort((one, other) => this.seniority(one) - this.seniority(other) || compareAge(one, other).order)
      .map((asking) => {
        const namespace = namespaceOf(asking.service);
        const sum = (sums.get(namespace) ?? 0) + asking.slots;
        const total = (totals.get(namespace) ?? 0) + asking.slots;
        totals.set(namespace, total);
        const isLoan = sum > share;
        if (!isLoan) sums.set(namespace, sum);
        return { asking, sum: isLoan ? total : sum, isLoan, seniority: this.seniority(asking) };
      });
    return ranked
      .sort(
        (one, other) =>
          Number(one.isLoan) - Number(other.isLoan) || one.seniority - other.seniority || one.sum - other.sum,
      )
      .map(({ asking }) => asking);
  }

  /** In force and not grown, in force and grown, not in force. */
  private seniority({ service, slots }: Asking): number {
    const granted = this.granted.get(service);
    if (granted === undefined) return 2;
    return slots <= granted ? 0 : 1;
  }
}
