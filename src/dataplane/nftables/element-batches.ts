import type { Family } from '../../base/ip.js';
import type { NftElementsOperation } from '../../native/contract.js';
import type { PackedKey } from './keys.js';

/** Element operations on one set with one verb, gathered until they are sent. */
class Batch {
  readonly keys: PackedKey[] = [];
  readonly keyEnds: PackedKey[] = [];
  readonly data: PackedKey[] = [];
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
      count: this.keys.length,
      keyLength: this.keys[0]?.length ?? 0,
      keys: join(this.keys),
      keyEnds: this.keyEnds.length === 0 ? null : join(this.keyEnds),
      dataLength: this.data[0]?.length ?? 0,
      data: this.data.length === 0 ? null : join(this.data),
      gotoChains: this.chains.length === 0 ? null : this.chains,
      comments: this.comments.some((comment) => comment !== null) ? this.comments : null,
    };
  }
}

/** Netlink attributes and headers around one element, roughly: for judging whether a batch still fits the socket. */
const ELEMENT_OVERHEAD = 48;

/**
 * Gathers element operations per set. Deletions come before additions, so that a key can change its value and a range can be replaced by an
 * overlapping one in the same transaction; sets are independent of each other.
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

  addRange(set: string, first: PackedKey, last: PackedKey): void {
    this.push(this.additions, 'add', set, first).keyEnds.push(last);
  }

  addMapping(map: string, key: PackedKey, value: PackedKey): void {
    this.push(this.additions, 'add', map, key).data.push(value);
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

  deleteRange(set: string, first: PackedKey, last: PackedKey): void {
    this.push(this.deletions, 'delete', set, first).keyEnds.push(last);
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

function join(parts: readonly string[]): Uint8Array {
  const text = parts.join('');
  const bytes = Buffer.allocUnsafeSlow(text.length);
  bytes.write(text, 'latin1');
  return bytes;
}
