import { EndpointList, endpointSize } from './endpoint-list.js';

/** Lists whose endpoints are in the order of their bytes, each of them once: what a few changes of thousands of endpoints come to costs little more than the changes. */

/** Where the endpoint is in a sorted list, by its {@link EndpointList.key}; -1 minus where it would go, when it is not there. */
export function positionOf(list: EndpointList, key: string): number {
  const size = endpointSize(list.family);
  let low = 0;
  let high = list.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    const order = compareKey(list.packed, middle * size, key);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return -1 - low;
}

function compareKey(packed: Uint8Array, start: number, key: string): number {
  for (let index = 0; index < key.length; index++) {
    const difference = (packed[start + index] ?? 0) - key.charCodeAt(index);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * A sorted list with some endpoints taken out, and others put in.
 *
 * @param gone keys that are in the list.
 * @param come keys that are not.
 */
export function withChanges(list: EndpointList, gone: readonly string[], come: readonly string[]): EndpointList {
  if (gone.length === 0 && come.length === 0) return list;
  const size = endpointSize(list.family);
  // Additions go before the existing ones, which may be removed.
  const edits = [
    ...[...come].sort().map((key) => ({ at: -1 - positionOf(list, key), key })),
    ...gone.map((key) => ({ at: positionOf(list, key), key: null })),
  ].sort((one, other) => one.at - other.at);
  const packed = new Uint8Array(list.packed.length + (come.length - gone.length) * size);
  let [from, to] = [0, 0];
  const copyUntil = (end: number): void => {
    packed.set(list.packed.subarray(from, end), to);
    to += end - from;
    from = end;
  };
  for (const { at, key } of edits) {
    copyUntil(at * size);
    if (key === null) from += size;
    else for (let index = 0; index < size; index++) packed[to++] = key.charCodeAt(index);
  }
  copyUntil(list.packed.length);
  return new EndpointList(list.family, packed);
}

/** What one sorted run of endpoints has and another has not, as offsets into each. */
interface SortedDifference {
  readonly gone: readonly number[];
  readonly come: readonly number[];
}

/**
 * The difference of two sorted runs of packed endpoints.
 *
 * @param size bytes per endpoint.
 * @returns null: it is of more endpoints than `limit`.
 */
export function sortedDifference(
  before: Uint8Array,
  after: Uint8Array,
  size: number,
  limit: number,
): SortedDifference | null {
  const gone: number[] = [];
  const come: number[] = [];
  for (let [from, to] = [0, 0]; ;) {
    const same = commonLength(before, from, after, to);
    from += same - (same % size);
    to += same - (same % size);
    if (from >= before.length && to >= after.length) return { gone, come };
    if (gone.length + come.length === limit) return null;
    if (to >= after.length || (from < before.length && comesFirst(before, from, after, to, size))) {
      gone.push(from);
      from += size;
    } else {
      come.push(to);
      to += size;
    }
  }
}

function comesFirst(one: Uint8Array, from: number, other: Uint8Array, to: number, size: number): boolean {
  return Buffer.compare(one.subarray(from, from + size), other.subarray(to, to + size)) < 0;
}

/** So many bytes are compared one by one: for fewer it takes longer to ask for it. */
const SHORT = 64;

/** How many bytes two runs have in common from here on. The system compares them, as they are thousands. */
export function commonLength(one: Uint8Array, from: number, other: Uint8Array, to: number): number {
  const length = Math.max(0, Math.min(one.length - from, other.length - to));
  let same = 0;
  // Doubling, then halving: differences that lie close together must not cost a look at all the rest each.
  for (let step = SHORT; ;) {
    const end = Math.min(length, same + step);
    const isShort = end - same <= SHORT;
    if (isShort ? sameBytes(one, from + same, other, to + same, end - same) : equal(one, from, other, to, same, end)) {
      if (end === length) return length;
      same = end;
      step *= 2;
    } else if (isShort) {
      while (one[from + same] === other[to + same]) same++;
      return same;
    } else step = Math.max(SHORT, Math.floor((end - same) / 4));
  }
}

function equal(one: Uint8Array, from: number, other: Uint8Array, to: number, start: number, end: number): boolean {
  return Buffer.compare(one.subarray(from + start, from + end), other.subarray(to + start, to + end)) === 0;
}

function sameBytes(one: Uint8Array, from: number, other: Uint8Array, to: number, count: number): boolean {
  for (let index = 0; index < count; index++) if (one[from + index] !== other[to + index]) return false;
  return true;
}
