import { EndpointIndex } from '../../base/endpoint-index.js';
import { endpointSize, packedKey, type EndpointList } from '../../base/endpoint-list.js';
import { commonLength, sortedDifference } from '../../base/sorted-endpoints.js';
import { addressFromBytes, addressLength, type Family, type IPAddress } from '../../base/ip.js';

/**
 * The endpoints of one frontend by slot, packed as in {@link EndpointList}. A slot of zeros is empty: only an external change
 * leaves empty slots before the last.
 */
export type Slots = Uint8Array;

export const NO_SLOTS: Slots = new Uint8Array(0);

interface SlotChange {
  readonly slot: number;
  /** Where the slot is in both, in bytes. */
  readonly at: number;
  /** Whether the kernel holds an endpoint in the slot, which has to go first. */
  readonly held: boolean;
  /** Whether there is to be one. */
  readonly wanted: boolean;
}

/** From this number of endpoints on, their slots remember the list from which they were assigned. */
const LARGE = 512;
/** With more differences all slots are looked at. */
const FEW = 32;
/** So many are found one by one. */
const FEW_SEARCHES = 8;

/** For slots that were assigned here and are many: the sorted list of their endpoints. */
const sortedLists = new WeakMap<Slots, Uint8Array>();

/**
 * Puts endpoints into slots 0 … n−1 so that as few slots as possible change: an endpoint in one of these slots stays, the
 * others fill the holes. Removing an endpoint thus moves the last one into its place.
 */
export function assignSlots(current: Slots, desired: EndpointList): Slots {
  const isSame = current.length === 0 || Buffer.compare(current, desired.packed) === 0;
  const slots = isSame ? desired.packed : (assignFew(current, desired) ?? assignAll(current, desired));
  if (desired.count >= LARGE) sortedLists.set(slots, desired.packed);
  return slots;
}

/** The endpoint of each slot of a table. If the kernel's slots are equal, the same array is used. */
export function tableSlots(current: Slots, { family, packed }: EndpointList, table: Uint16Array): Slots {
  const size = endpointSize(family);
  const slots = new Uint8Array(table.length * size);
  for (const [slot, place] of table.entries()) copy(packed, place * size, slots, slot * size, size);
  return Buffer.compare(slots, current) === 0 ? current : slots;
}

/** As {@link assignAll}, where it is known which few endpoints differ; null where it is not. */
function assignFew(current: Slots, { family, packed }: EndpointList): Slots | null {
  const size = endpointSize(family);
  const before = sortedLists.get(current);
  const difference = before === undefined ? null : sortedDifference(before, packed, size, FEW);
  if (before === undefined || difference === null) return null;
  const gone = difference.gone.map((at) => slotOf(current, before.subarray(at, at + size)));
  const [kept, end] = [Math.min(current.length, packed.length), current.length];
  const homeless = difference.come.map((at) => packedKey(packed, at, size));
  for (let at = kept; at < end; at += size) if (!gone.includes(at)) homeless.push(packedKey(current, at, size));
  const holes = gone.filter((at) => at < kept).sort((one, other) => one - other);
  for (let at = kept; at < packed.length; at += size) holes.push(at);
  const slots = new Uint8Array(packed.length);
  slots.set(current.subarray(0, kept));
  for (const [index, key] of homeless.sort().entries()) {
    const at = holes[index] ?? 0;
    for (let byte = 0; byte < size; byte++) slots[at + byte] = key.charCodeAt(byte);
  }
  return slots;
}

/** Where an endpoint is, in bytes; less than 0 when it is not there. */
function slotOf(slots: Slots, endpoint: Uint8Array): number {
  const bytes = Buffer.from(slots.buffer, slots.byteOffset, slots.length);
  let at = bytes.indexOf(endpoint);
  while (at % endpoint.length > 0) at = bytes.indexOf(endpoint, at + 1);
  return at;
}

function assignAll(current: Slots, desired: EndpointList): Slots {
  const size = endpointSize(desired.family);
  const { packed } = desired;
  const find = finder(desired);
  const placed = new Uint8Array(desired.count);
  const slots = new Uint8Array(packed.length);
  const kept = Math.min(current.length, slots.length);
  const holes: number[] = [];
  for (let [at, next] = [0, 0]; at < kept;) {
    // Most slots are in the order of the list, but for those that were filled when others went.
    const same = commonLength(current, at, packed, next);
    const run = Math.min(same - (same % size), kept - at);
    const [from, end] = [next / size, (next + run) / size];
    if (run > 0 && !placed.subarray(from, end).includes(1)) {
      slots.set(current.subarray(at, at + run), at);
      placed.fill(1, from, end);
      at += run;
      next += run;
      continue;
    }
    const position = find(current, at);
    if (position < 0 || placed[position] === 1) holes.push(at);
    else {
      placed[position] = 1;
      copy(current, at, slots, at, size);
    }
    if (position >= 0) next = (position + 1) * size;
    at += size;
  }
  for (let at = kept; at < slots.length; at += size) holes.push(at);
  let position = -1;
  for (const at of holes) {
    position = placed.indexOf(0, position + 1);
    copy(packed, position * size, slots, at, size);
  }
  return slots;
}

/** Finds the position of the endpoint at an offset of some slots, -1 for none. The first few are searched for: for more an index is made. */
function finder(endpoints: EndpointList): (slots: Slots, at: number) => number {
  const size = endpointSize(endpoints.family);
  let index: EndpointIndex | null = null;
  let searched = 0;
  return (slots, at) => {
    if (searched++ < FEW_SEARCHES) return Math.floor(slotOf(endpoints.packed, slots.subarray(at, at + size)) / size);
    index ??= new EndpointIndex(endpoints);
    return index.find(slots, at, at + size - 2);
  };
}

/** The changes in the kernel from one assignment to the other. */
export function diffSlots(family: Family, current: Slots, next: Slots): readonly SlotChange[] {
  const size = endpointSize(family);
  const changes: SlotChange[] = [];
  for (let at = 0; ; at += size) {
    // Thousands are the same for one that differs.
    const same = commonLength(current, at, next, at);
    at += same - (same % size);
    if (at >= Math.max(current.length, next.length)) break;
    const held = at < current.length && !isEmpty(current, at, size);
    const wanted = at < next.length;
    if (held || wanted) changes.push({ slot: at / size, at, held, wanted });
  }
  return changes;
}

/** Endpoints of `current` that are in no slot of `next`. */
export function lostEndpoints(family: Family, current: Slots, next: Slots): readonly string[] {
  const changes = diffSlots(family, current, next);
  const size = endpointSize(family);
  const placed = new Set(changes.flatMap(({ at, wanted }) => (wanted ? packedKey(next, at, size) : [])));
  const before = changes.flatMap(({ at, held }) => (held ? packedKey(current, at, size) : []));
  return before.filter((endpoint) => !placed.has(endpoint));
}

export function* addressesIn(family: Family, slots: Slots): IterableIterator<IPAddress> {
  const size = endpointSize(family);
  for (let at = 0; at < slots.length; at += size)
    yield addressFromBytes(slots.subarray(at, at + addressLength(family)));
}

function copy(from: Uint8Array, start: number, to: Uint8Array, at: number, size: number): void {
  for (let index = 0; index < size; index++) to[at + index] = from[start + index] ?? 0;
}

function isEmpty(slots: Slots, at: number, size: number): boolean {
  for (let index = at; index < at + size; index++) if (slots[index] !== 0) return false;
  return true;
}
