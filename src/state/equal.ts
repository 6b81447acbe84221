import type { EndpointSliceRow, Row } from './rows.js';

/** Says when a row came about, not what it says. */
const NOT_COMPARED: keyof EndpointSliceRow = 'lastChangeTriggerTime';

/** Whether two rows say the same: compares every field but the time of its change, lists in order, columns byte by byte. */
export function rowsEqual(one: Row, other: Row): boolean {
  return equal(one, other);
}

function equal(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other)) return false;
  if (one instanceof Uint8Array) return other instanceof Uint8Array && equalLists(one, other);
  if (Array.isArray(one)) return Array.isArray(other) && equalLists(one, other);
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  for (const name of names) {
    if (name === NOT_COMPARED) continue;
    if (!Object.hasOwn(other, name) || !equal(one[name], other[name])) return false;
  }
  return true;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function equalLists(one: ArrayLike<unknown>, other: ArrayLike<unknown>): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (!equal(one[index], other[index])) return false;
  return true;
}
