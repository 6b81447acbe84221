import { parsePrefix, prefixAddress, prefixLength, type IPAddress, type IPPrefix } from './ip.js';

/** Finds the prefix that an address or another prefix is within, however many there are. */
export class PrefixIndex<T> {
  readonly #values = new Map<string, T>();
  readonly #lengths = new Set<number>();

  constructor(entries: Iterable<readonly [IPPrefix, T]> = []) {
    for (const [prefix, value] of entries) this.add(prefix, value);
  }

  add(prefix: IPPrefix, value: T): void {
    this.#values.set(prefix, value);
    this.#lengths.add(prefixLength(prefix));
  }

  /** The value of a prefix that contains the address; undefined: none does. */
  holding(address: IPAddress, maxLength = 128): T | undefined {
    for (const length of this.#lengths) {
      const prefix = length <= maxLength ? parsePrefix(`${address}/${length}`) : null;
      const value = prefix === null ? undefined : this.#values.get(prefix);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** The same for a whole prefix. */
  around(prefix: IPPrefix): T | undefined {
    return this.holding(prefixAddress(prefix), prefixLength(prefix));
  }
}
