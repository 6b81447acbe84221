import type { IPAddress } from '../base/ip.js';
import type { AddressSet } from './types.js';

/** A set of addresses that several Services may put there: an address stays while anyone still wants it. */
export class AddressCounts implements AddressSet {
  private readonly counts = new Map<IPAddress, number>();
  private changed = new Set<IPAddress>();

  has(address: IPAddress): boolean {
    return this.counts.has(address);
  }

  [Symbol.iterator](): IterableIterator<IPAddress> {
    return this.counts.keys();
  }

  /** One holder's addresses change from `previous` to `next`, neither with duplicates. */
  replace(previous: readonly IPAddress[], next: readonly IPAddress[]): void {
    for (const address of next) this.add(address, 1);
    for (const address of previous) this.add(address, -1);
  }

  /** Addresses that came or went since the last call, and perhaps some that did both. */
  takeChanged(): ReadonlySet<IPAddress> {
    const changed = this.changed;
    this.changed = new Set();
    return changed;
  }

  private add(address: IPAddress, amount: 1 | -1): void {
    const before = this.counts.get(address) ?? 0;
    const after = before + amount;
    if (after > 0) this.counts.set(address, after);
    else this.counts.delete(address);
    if (before === 0 || after === 0) this.changed.add(address);
  }
}
