import { packedKey } from '../../base/endpoint-list.js';
import type { PackedKey } from './keys.js';
import type { Slots } from './slots.js';

/** Slots beyond this are no work of ours. */
const SLOT_LIMIT = 1 << 20;
/** The slot, with which a key begins, in host order. */
const SLOT_LENGTH = 4;
const NO_OWNER = -1;

interface ListedEndpoints {
  readonly count: number;
  readonly keys: Uint8Array;
  /** A multiple of 4, as every component of a key is padded. */
  readonly keyLength: number;
  readonly data: Uint8Array;
  /** A multiple of 4. */
  readonly dataLength: number;
  /** Bytes of an endpoint, with which an element's data begins: an even number. */
  readonly size: number;
}

/**
 * The elements of a map of endpoints by frontend. There are hundreds of thousands, in no order, so no object is made for a
 * single one. The frontend's part of its key is compared in place, and its data is copied to the frontend's slots. A start
 * does this once, before the compiler has seen any of it, so it is a few loops over words rather than functions over bytes.
 */
export class ListedSlots {
  private readonly keys: Uint32Array;
  /** The number of each element's frontend. */
  private readonly owners: Int32Array;
  /** Which element of each frontend came first. */
  private readonly firsts: number[] = [];
  /** How many slots each has, the last one counted. */
  private readonly lengths: number[] = [];

  constructor(private readonly listed: ListedEndpoints) {
    this.keys = wordsOf(listed.keys);
    this.owners = new Int32Array(listed.count);
    this.number();
  }

  /** Each frontend with its slots, all of them on one buffer, and its number in {@link elementsOf}. */
  *frontends(): IterableIterator<{ readonly owner: number; readonly frontend: PackedKey; readonly slots: Slots }> {
    const { keys, keyLength, size } = this.listed;
    const starts = [0];
    for (const [owner, length] of this.lengths.entries()) starts.push((starts[owner] ?? 0) + length * size);
    const packed = this.pack(starts);
    for (const [owner, first] of this.firsts.entries()) {
      const slots = packed.subarray(starts[owner], starts[owner + 1]);
      yield { owner, frontend: packedKey(keys, first * keyLength + SLOT_LENGTH, keyLength - SLOT_LENGTH), slots };
    }
  }

  /** The keys of a frontend's elements. */
  elementsOf(owner: number): readonly PackedKey[] {
    const { count, keys, keyLength } = this.listed;
    const found: PackedKey[] = [];
    for (let index = 0; index < count; index++)
      if (this.owners[index] === owner) found.push(packedKey(keys, index * keyLength, keyLength));
    return found;
  }

  /** The keys of elements in slots of no frontend. */
  beyondLimit(): readonly PackedKey[] {
    return this.owners.includes(NO_OWNER) ? this.elementsOf(NO_OWNER) : [];
  }

  /** Finds the frontend of each element: by open addressing, in a table that is at most half full, so that every search ends. */
  private number(): void {
    const { keys, owners, firsts, lengths } = this;
    const { count, keyLength } = this.listed;
    const width = keyLength / 4;
    // A hash table by the frontend's part of a key: an entry is the frontend's number + 1, or 0 when free.
    const table = new Int32Array(2 ** Math.ceil(Math.log2(2 * count + 2)));
    const mask = table.length - 1;
    for (let index = 0, at = 0; index < count; index++, at += width) {
      const slot = keys[at] ?? 0;
      if (slot >= SLOT_LIMIT) {
        owners[index] = NO_OWNER;
        continue;
      }
      let hash = 0;
      for (let word = 1; word < width; word++) {
        hash = Math.imul(hash ^ (keys[at + word] ?? 0), 0x9e3779b1);
        // The mask keeps low bits, and multiplication only carries upwards: fold the high bits back.
        hash ^= hash >>> 15;
      }
      let place = hash & mask;
      let owner = (table[place] ?? 0) - 1;
      while (owner >= 0) {
        const first = (firsts[owner] ?? 0) * width;
        let word = 1;
        while (word < width && keys[at + word] === keys[first + word]) word++;
        if (word === width) break;
        place = (place + 1) & mask;
        owner = (table[place] ?? 0) - 1;
      }
      if (owner < 0) {
        owner = lengths.push(0) - 1;
        table[place] = firsts.push(index);
      }
      owners[index] = owner;
      if (slot >= (lengths[owner] ?? 0)) lengths[owner] = slot + 1;
    }
  }

  /** @param starts where the slots of each frontend begin, and where those of the last one end. */
  private pack(starts: readonly number[]): Uint8Array {
    const { keys, owners } = this;
    const { count, keyLength, dataLength, size } = this.listed;
    const data = halvesOf(this.listed.data);
    const [width, stride, halves] = [keyLength / 4, dataLength / 2, size / 2];
    const packed = new Uint16Array((starts.at(-1) ?? 0) / 2);
    for (let index = 0; index < count; index++) {
      const owner = owners[index] ?? NO_OWNER;
      if (owner === NO_OWNER) continue;
      const to = (starts[owner] ?? 0) / 2 + (keys[index * width] ?? 0) * halves;
      for (let half = 0; half < halves; half++) packed[to + half] = data[index * stride + half] ?? 0;
    }
    return new Uint8Array(packed.buffer);
  }
}

/** The same bytes as numbers in host order, of which nothing but the slot means anything. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  const { buffer, byteOffset, length } = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Uint32Array(buffer, byteOffset, length / 4);
}

function halvesOf(bytes: Uint8Array): Uint16Array {
  const { buffer, byteOffset, length } = bytes.byteOffset % 2 === 0 ? bytes : new Uint8Array(bytes);
  return new Uint16Array(buffer, byteOffset, length / 2);
}
