import type { EndpointSliceRow, Row } from './rows.js';

/** Says when a row came about, not what it says. */
const NOT_COMPARED: keyof EndpointSliceRow = 'lastChangeTriggerTime';

/** Whether two rows say the same: compares every field but the time of its change, lists in order, columns byte by byte. */
export function rowsEqual(one: Row, other: Row): boolean {
  return equal(one, other);
}

function equal(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof Uint8Array) return other instanceof Uint8Array && Buffer.compare(one, other) === 0;
  if (Array.isArray(one)) return Array.isArray(other) && equalLists(one, other);
  const fields = Object.entries(one);
  const others = new Map(Object.entries(other));
  return (
    fields.length === others.size &&
    fields.every(([name, value]) => name === NOT_COMPARED || (others.has(name) && equal(value, others.get(name))))
  );
}

function equalLists(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => equal(item, other[index]));
}
