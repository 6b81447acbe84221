import type { IPAddress } from '../base/ip.js';
import type { ObjectKey } from '../state/rows.js';
import type { AddressSet, ServicePlan } from './types.js';

/** Addresses with the plans that ask for them: mostly one, but any number of Services may ask for an address. */
export class AddressHolders implements AddressSet {
  private readonly holders = new Map<IPAddress, ServicePlan | Map<ObjectKey, ServicePlan>>();

  /** @param changed gets addresses that come and go. */
  constructor(private readonly changed: Set<IPAddress> | null = null) {}

  has(address: IPAddress): boolean {
    return this.holders.has(address);
  }

  [Symbol.iterator](): IterableIterator<IPAddress> {
    return this.holders.keys();
  }

  of(address: IPAddress): Iterable<ServicePlan> {
    const holders = this.holders.get(address);
    if (holders === undefined) return [];
    return holders instanceof Map ? holders.values() : [holders];
  }

  /** The plan of a Service other than this one. */
  ofOther(address: IPAddress, service: ObjectKey): ServicePlan | undefined {
    for (const plan of this.of(address)) if (plan.service !== service) return plan;
    return undefined;
  }

  /** Replaces a Service's plan and its addresses, which have no duplicates. */
  replace(
    service: ObjectKey,
    previous: readonly IPAddress[],
    plan: ServicePlan | null,
    next: readonly IPAddress[],
  ): void {
    const stays = new Set(next);
    for (const address of previous) if (!stays.has(address)) this.remove(address, service);
    if (plan !== null) for (const address of next) this.put(address, plan);
  }

  private put(address: IPAddress, plan: ServicePlan): void {
    const holders = this.holders.get(address);
    if (holders === undefined) this.changed?.add(address);
    if (holders instanceof Map) holders.set(plan.service, plan);
    else if (holders === undefined || holders.service === plan.service) this.holders.set(address, plan);
    else
      this.holders.set(
        address,
        new Map([
          [holders.service, holders],
          [plan.service, plan],
        ]),
      );
  }

  private remove(address: IPAddress, service: ObjectKey): void {
    const holders = this.holders.get(address);
    if (holders instanceof Map) holders.delete(service);
    if (holders instanceof Map ? holders.size > 0 : holders?.service !== service) return;
    this.holders.delete(address);
    this.changed?.add(address);
  }
}
