import { endpointSize, packedKey, type EndpointList } from '../../net/endpoint-list.js';
import type { Family } from '../../net/ip.js';

/**
 * The endpoints of one frontend by slot, packed as in {@link EndpointList}. A slot of zeros is empty: only a table that someone else touched has
 * empty slots before its last.
 */
export type Slots = Uint8Array;

export const NO_SLOTS: Slots = new Uint8Array(0);

export interface SlotChange {
  readonly slot: number;
  /** Packed endpoint, or null to leave the slot empty. */
  readonly endpoint: string | null;
  /** Whether the kernel holds something in the slot that has to go first. */
  readonly replaces: boolean;
}

/**
 * Puts endpoints into slots 0 … n−1 so that as few slots as possible change: who is already in one of these slots stays, the others fill the
 * holes. Removing an endpoint thus moves the last one into its place.
 */
export function assignSlots(current: Slots, desired: EndpointList): Slots {
  const size = endpointSize(desired.family);
  const waiting = new Set<string>();
  for (let index = 0; index < desired.count; index++) waiting.add(desired.key(index));
  const slots = new Uint8Array(desired.packed.length);
  const holes: number[] = [];
  for (let slot = 0; slot < desired.count; slot++) {
    const at = slot * size;
    const held = at < current.length ? packedKey(current, at, size) : '';
    if (waiting.delete(held)) slots.set(current.subarray(at, at + size), at);
    else holes.push(at);
  }
  for (const endpoint of waiting) {
    const at = holes.shift();
    if (at !== undefined) slots.set(Buffer.from(endpoint, 'latin1'), at);
  }
  return slots;
}

/** What has to change in the kernel to get from one assignment to the other. */
export function diffSlots(family: Family, current: Slots, next: Slots): readonly SlotChange[] {
  if (Buffer.compare(current, next) === 0) return [];
  const size = endpointSize(family);
  const changes: SlotChange[] = [];
  for (let at = 0; at < Math.max(current.length, next.length); at += size) {
    const before = at < current.length ? packedKey(current, at, size) : null;
    const after = at < next.length ? packedKey(next, at, size) : null;
    const held = before !== null && !isEmpty(before);
    if (before === after || (!held && after === null)) continue;
    changes.push({ slot: at / size, endpoint: after, replaces: held });
  }
  return changes;
}

/** Whether an endpoint of `current` is in no slot of `next`. */
export function lostSlot(family: Family, current: Slots, next: Slots): boolean {
  const size = endpointSize(family);
  const kept = new Set<string>();
  for (let at = 0; at < next.length; at += size) kept.add(packedKey(next, at, size));
  for (let at = 0; at < current.length; at += size) if (!kept.has(packedKey(current, at, size))) return true;
  return false;
}

function isEmpty(endpoint: string): boolean {
  return /^\0+$/.test(endpoint);
}
