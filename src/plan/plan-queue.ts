import type { ObjectKey } from '../state/rows.js';

/**
 * Services that wait to be planned. One plan takes a limited number of entries, so that many large changes do not delay the
 * small changes of others. Small ones come first. Every other plan also takes the Service that has waited longest, of any
 * size: no Service waits for ever.
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
   * @param most entries of one plan, without the Service that has waited longest.
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
    if (!this.wasInOrder && oldest !== undefined) taken.add(oldest);
    this.wasInOrder = !this.wasInOrder;
    let room = most;
    for (const [service, each] of [...sizes].sort(([, one], [, other]) => one - other)) {
      room -= each;
      if (room < 0 && taken.size > 0) break;
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
