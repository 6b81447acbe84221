import type { ObjectKey } from '../state/rows.js';

/** A large Service has more than this part of the most entries of one plan. */
const LARGE = 0.25;

/**
 * Services that wait to be planned. One plan takes a limited number of entries, so that many large changes do not delay the
 * small changes of others. Small ones come first, and large ones do not join them. Every other plan also takes the Service
 * that has waited longest, of any size: no Service waits for ever.
 */
export class PlanQueue {
  /** In the order in which they began to wait. */
  private waiting: Set<ObjectKey> = new Set();
  /** The last plan took the one that had waited longest, or none waited. */
  private wasInOrder = true;

  add(services: Iterable<ObjectKey>): void {
    for (const service of services) this.waiting.add(service);
  }

  /** Those that are left. */
  get rest(): ReadonlySet<ObjectKey> {
    return this.waiting;
  }

  clear(): void {
    this.waiting = new Set();
    this.wasInOrder = true;
  }

  /**
   * Takes the Services of the next plan: at least one, if any waits.
   *
   * @param most entries of one plan; small Services come in addition to the one that has waited longest.
   * @param size the most entries of a Service, in its former and its new state.
   */
  take(most: number, size: (service: ObjectKey) => number): ReadonlySet<ObjectKey> {
    if (this.waiting.size <= 1 || most === Infinity) return this.takeAll();
    const sizes = new Map([...this.waiting].map((service) => [service, size(service)]));
    let sum = 0;
    for (const each of sizes.values()) sum += each;
    if (sum <= most) return this.takeAll();
    const taken = new Set<ObjectKey>();
    const [oldest] = this.waiting;
    let roomOfLarge = most;
    if (!this.wasInOrder && oldest !== undefined) {
      taken.add(oldest);
      roomOfLarge -= sizes.get(oldest) ?? 0;
      sizes.delete(oldest);
    }
    this.wasInOrder = !this.wasInOrder;
    let room = most;
    let hasSmall = false;
    for (const [service, each] of [...sizes].sort(([, one], [, other]) => one - other)) {
      room -= each;
      const isLarge = each > LARGE * most;
      if (isLarge) roomOfLarge -= each;
      if (taken.size > 0 && (room < 0 || (isLarge && (hasSmall || roomOfLarge < 0)))) break;
      hasSmall ||= !isLarge;
      taken.add(service);
    }
    this.waiting = new Set([...this.waiting].filter((service) => !taken.has(service)));
    return taken;
  }

  private takeAll(): ReadonlySet<ObjectKey> {
    const all = this.waiting;
    this.clear();
    return all;
  }
}
