import { EndpointList, endpointSize } from './endpoint-list.js';
import { addressLength } from './ip.js';

/**
 * Positions of packed (address, port) endpoints by their bytes. A conntrack table holds up to a million flows and a Service thousands of endpoints. A map
 * keyed by text would make as many strings only to throw them away. Here a lookup reads the bytes where they lie.
 */
export class EndpointIndex {
  readonly #packed: Uint8Array;
  readonly #addressLength: 4 | 16;
  /** Open addressing with linear probing: position + 1, or 0 when free. At most half full, so every probe ends. */
  readonly #slots: Int32Array;

  /** The first of equal endpoints is found. */
  constructor(endpoints: EndpointList) {
    this.#packed = endpoints.packed;
    this.#addressLength = addressLength(endpoints.family);
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * endpoints.count + 2)));
    for (let position = 0; position < endpoints.count; position++) this.#insert(position);
  }

  /** Position of the endpoint whose address lies at `addressOffset` of `bytes` and whose big-endian port at `portOffset`; -1 for none. */
  find(bytes: Uint8Array, addressOffset: number, portOffset: number): number {
    return (this.#slots[this.#probe(bytes, addressOffset, portOffset)] ?? 0) - 1;
  }

  #insert(position: number): void {
    const start = position * (this.#addressLength + 2);
    const slot = this.#probe(this.#packed, start, start + this.#addressLength);
    if (this.#slots[slot] === 0) this.#slots[slot] = position + 1;
  }

  /** The slot that holds the endpoint, or the free one where it would go. */
  #probe(bytes: Uint8Array, addressOffset: number, portOffset: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#hash(bytes, addressOffset, portOffset) & mask;
    for (;;) {
      const position = (this.#slots[slot] ?? 0) - 1;
      if (position < 0 || this.#equals(position, bytes, addressOffset, portOffset)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #hash(bytes: Uint8Array, addressOffset: number, portOffset: number): number {
    let hash = ((bytes[portOffset] ?? 0) << 8) | (bytes[portOffset + 1] ?? 0);
    for (let index = 0; index < this.#addressLength; index++) {
      hash = Math.imul(hash ^ (bytes[addressOffset + index] ?? 0), 0x01000193);
    }
    // The mask keeps low bits, and multiplication only carries upwards: fold the high bits back.
    return hash ^ (hash >>> 15);
  }

  #equals(position: number, bytes: Uint8Array, addressOffset: number, portOffset: number): boolean {
    const start = position * (this.#addressLength + 2);
    const port = start + this.#addressLength;
    if (this.#packed[port] !== bytes[portOffset] || this.#packed[port + 1] !== bytes[portOffset + 1]) return false;
    for (let index = 0; index < this.#addressLength; index++) {
      if (this.#packed[start + index] !== bytes[addressOffset + index]) return false;
    }
    return true;
  }
}

/** The endpoints of `list` that `other` lacks, in the order of `list`. */
export function endpointsWithout(list: EndpointList, other: EndpointList): EndpointList {
  const size = endpointSize(list.family);
  const positions = new EndpointIndex(list);
  const shared = new Uint8Array(list.count);
  for (let at = 0; at < other.packed.length; at += size) {
    const position = positions.find(other.packed, at, at + size - 2);
    if (position >= 0) shared[position] = 1;
  }
  return new EndpointList(
    list.family,
    list.packed.filter((_, at) => shared[Math.floor(at / size)] === 0),
  );
}
