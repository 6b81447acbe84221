import type { Family } from '../../base/ip.js';
import type { NftElementsOperation } from '../../native/contract.js';
import type { PackedKey } from './keys.js';

/** Bytes of the first rows: one change needs no more. */
const FIRST_ROWS = 64;

/** Rows of equal length, one after the other, in memory of their own: the addon may still read them when JavaScript goes on. */
class PackedRows {
  private bytes = new Uint8Array(FIRST_ROWS);
  private used = 0;
  private rows = 0;

  get count(): number {
    return this.rows;
  }

  /** Bytes of a row; 0 as long as there is none. */
  get length(): number {
    return this.rows === 0 ? 0 : this.used / this.rows;
  }

  push(key: PackedKey): void {
    const at = this.next(key.length);
    for (let index = 0; index < key.length; index++) this.bytes[at + index] = key.charCodeAt(index);
  }

  /** Bytes from elsewhere, and after them zeros, which memory has that was not written to. */
  copy(from: Uint8Array, start: number, size: number, padding: number): void {
    const at = this.next(size + padding);
    for (let index = 0; index < size; index++) this.bytes[at + index] = from[start + index] ?? 0;
  }

  /** A view: no row is pushed after it. */
  toBytes(): Uint8Array {
    return this.bytes.subarray(0, this.used);
  }

  toBytesOrNull(): Uint8Array | null {
    return this.rows === 0 ? null : this.toBytes();
  }

  /** Where the next row begins. */
  private next(length: number): number {
    const at = this.used;
    this.used += length;
    this.rows++;
    if (this.used > this.bytes.length) {
      const larger = new Uint8Array(2 * this.used);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    return at;
  }
}

/** Element operations on one set with one verb, gathered until they are sent. */
class Batch {
  readonly keys = new PackedRows();
  readonly data = new PackedRows();
  readonly chains: string[] = [];
  readonly comments: (string | null)[] = [];

  constructor(
    readonly set: string,
    readonly verb: 'add' | 'delete',
  ) {}

  toOperation(): NftElementsOperation {
    return {
      type: 'elements',
      verb: this.verb,
      set: this.set,
      count: this.keys.count,
      keyLength: this.keys.length,
      keys: this.keys.toBytes(),
      keyEnds: null,
      dataLength: this.data.length,
      data: this.data.toBytesOrNull(),
      gotoChains: this.chains.length === 0 ? null : this.chains,
      comments: this.comments.some((comment) => comment !== null) ? this.comments : null,
    };
  }
}

/** Netlink attributes and headers around one element, roughly: for judging whether a batch still fits the socket. */
const ELEMENT_OVERHEAD = 48;

/**
 * Gathers element operations per set. Deletions come before additions, so that a key can change its value in the same
 * transaction; sets are independent of each other.
 */
export class ElementBatches {
  readonly family: Family;
  private readonly additions = new Map<string, Batch>();
  private readonly deletions = new Map<string, Batch>();
  private operationCount = 0;
  private byteCount = 0;

  constructor(family: Family) {
    this.family = family;
  }

  /** Elements added and deleted so far. */
  get count(): number {
    return this.operationCount;
  }

  /** Estimate, in bytes on the wire. */
  get bytes(): number {
    return this.byteCount;
  }

  add(set: string, key: PackedKey): void {
    this.push(this.additions, 'add', set, key);
  }

  /** Maps the key to one of packed endpoints, `size` bytes at an offset, as {@link packEndpoint} would have it. */
  addEndpoint(map: string, key: PackedKey, endpoints: Uint8Array, at: number, size: number): void {
    this.push(this.additions, 'add', map, key).data.copy(endpoints, at, size, 2);
  }

  addVerdict(map: string, key: PackedKey, chain: string, comment: string | null): void {
    const batch = this.push(this.additions, 'add', map, key);
    batch.chains.push(chain);
    batch.comments.push(comment);
    this.byteCount += chain.length + (comment?.length ?? 0);
  }

  delete(set: string, key: PackedKey): void {
    this.push(this.deletions, 'delete', set, key);
  }

  /** In the order in which they have to be sent. */
  operations(): NftElementsOperation[] {
    return [...this.deletions.values(), ...this.additions.values()].map((batch) => batch.toOperation());
  }

  private push(batches: Map<string, Batch>, verb: 'add' | 'delete', set: string, key: PackedKey): Batch {
    let batch = batches.get(set);
    if (batch === undefined) {
      batch = new Batch(set, verb);
      batches.set(set, batch);
    }
    batch.keys.push(key);
    this.operationCount++;
    this.byteCount += ELEMENT_OVERHEAD + key.length * 2;
    return batch;
  }
}
