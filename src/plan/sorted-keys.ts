import { endpointSize } from '../base/endpoint-list.js';
import type { Family } from '../base/ip.js';

/** Four bits beside an endpoint: a number has room for no more beside an address of IPv4 and a port. */
const MARKS = 16;
const MARK_BITS = 4;

/**
 * Endpoints of one port with marks beside them, from columns to packed lists in the order of their bytes. No endpoint
 * becomes an object or a string: a cluster has hundreds of thousands, and a start plans them all.
 */
export interface SortedKeys {
  /** @param index of the address among addresses of the family, one character for each byte. */
  put(addresses: string, index: number, port: number, marks: number): void;
  /** Whether every endpoint was put once; otherwise nothing can be written. */
  sort(): boolean;
  /** The `count` endpoints that have a mark. */
  write(mark: number, count: number): Uint8Array;
}

/** @param count the number of endpoints that will be put. Until they are written no other keys may be. */
export function sortedKeys(family: Family, count: number): SortedKeys {
  return family === 'IPv4' ? new NumberKeys(count) : new WordKeys(count);
}

/** For one port after the other: an array of its own for each costs more than to sort it. */
let numbersOfOne = new Float64Array(64);
let wordsOfOne = new Uint32Array(64);
let placesOfOne = new Uint32Array(64);

const PORT_AND_MARKS = 65_536 * MARKS;

/** IPv4: address, port and marks fit in a number, and numbers are sorted without being compared one by one. */
class NumberKeys implements SortedKeys {
  private readonly numbers: Float64Array;
  private filled = 0;

  constructor(count: number) {
    if (numbersOfOne.length < count) numbersOfOne = new Float64Array(count);
    this.numbers = numbersOfOne.subarray(0, count);
  }

  put(addresses: string, index: number, port: number, marks: number): void {
    this.numbers[this.filled++] = word(addresses, index * 4) * PORT_AND_MARKS + ((port << MARK_BITS) | marks);
  }

  sort(): boolean {
    const { numbers } = this;
    numbers.sort();
    for (let index = 1; index < numbers.length; index++)
      if (Math.floor((numbers[index] ?? 0) / MARKS) === Math.floor((numbers[index - 1] ?? 0) / MARKS)) return false;
    return true;
  }

  write(mark: number, count: number): Uint8Array {
    const packed = new Uint8Array(count * endpointSize('IPv4'));
    let at = 0;
    for (const number of this.numbers) {
      const address = Math.floor(number / PORT_AND_MARKS);
      const rest = number - address * PORT_AND_MARKS;
      if ((rest & mark) === 0) continue;
      at = writeWord(packed, at, address);
      at = writePort(packed, at, rest);
    }
    return packed;
  }
}

const WORDS = 5;
const ADDRESS_WORDS = 4;

/** IPv6: an address is four words, and the fifth has port and marks. */
class WordKeys implements SortedKeys {
  private readonly words: Uint32Array;
  private readonly places: Uint32Array;
  private filled = 0;

  constructor(count: number) {
    if (placesOfOne.length < count) placesOfOne = new Uint32Array(count);
    if (wordsOfOne.length < count * WORDS) wordsOfOne = new Uint32Array(count * WORDS);
    this.words = wordsOfOne;
    this.places = placesOfOne.subarray(0, count);
  }

  put(addresses: string, index: number, port: number, marks: number): void {
    const place = this.filled * WORDS;
    for (let each = 0; each < ADDRESS_WORDS; each++) this.words[place + each] = word(addresses, index * 16 + each * 4);
    this.words[place + ADDRESS_WORDS] = (port << MARK_BITS) | marks;
    this.places[this.filled++] = place;
  }

  sort(): boolean {
    const { words, places } = this;
    places.sort((one, other) => {
      for (let each = 0; each < WORDS; each++) {
        const difference = (words[one + each] ?? 0) - (words[other + each] ?? 0);
        if (difference !== 0) return difference;
      }
      return 0;
    });
    for (let index = 1; index < places.length; index++)
      if (this.isSame(places[index - 1] ?? 0, places[index] ?? 0)) return false;
    return true;
  }

  write(mark: number, count: number): Uint8Array {
    const packed = new Uint8Array(count * endpointSize('IPv6'));
    let at = 0;
    for (const place of this.places) {
      const rest = this.words[place + ADDRESS_WORDS] ?? 0;
      if ((rest & mark) === 0) continue;
      for (let each = 0; each < ADDRESS_WORDS; each++) at = writeWord(packed, at, this.words[place + each] ?? 0);
      at = writePort(packed, at, rest);
    }
    return packed;
  }

  private isSame(one: number, other: number): boolean {
    const { words } = this;
    for (let each = 0; each < ADDRESS_WORDS; each++) if (words[one + each] !== words[other + each]) return false;
    return (words[one + ADDRESS_WORDS] ?? 0) >> MARK_BITS === (words[other + ADDRESS_WORDS] ?? 0) >> MARK_BITS;
  }
}

/** Four bytes of a text as a number, the first one the highest. */
function word(text: string, at: number): number {
  return (
    ((text.charCodeAt(at) << 24) |
      (text.charCodeAt(at + 1) << 16) |
      (text.charCodeAt(at + 2) << 8) |
      text.charCodeAt(at + 3)) >>>
    0
  );
}

/** Writes a word, and answers the offset of the next byte. */
function writeWord(packed: Uint8Array, at: number, value: number): number {
  packed[at] = value >>> 24;
  packed[at + 1] = value >>> 16;
  packed[at + 2] = value >>> 8;
  packed[at + 3] = value;
  return at + 4;
}

function writePort(packed: Uint8Array, at: number, portAndMarks: number): number {
  packed[at] = portAndMarks >>> (MARK_BITS + 8);
  packed[at + 1] = portAndMarks >>> MARK_BITS;
  return at + 2;
}
