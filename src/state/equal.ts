import type { EndpointSliceRow, Row } from './rows.js';

/** Whether two rows are equal: compares every field, lists in order, columns byte by byte. `lastChangeTriggerTime` is not compared. */
export function rowsEqual(one: Row, other: Row): boolean {
  // Slices are most of what comes, so their fields are named here rather than found.
  if (one.kind === 'EndpointSlice' && other.kind === 'EndpointSlice') return slicesEqual(one, other);
  return equal(one, other);
}

/** All fields but `lastChangeTriggerTime`. */
function slicesEqual(one: EndpointSliceRow, other: EndpointSliceRow): boolean {
  return (
    one.count === other.count &&
    bytesEqual(one.conditions, other.conditions) &&
    one.addresses === other.addresses &&
    one.family === other.family &&
    one.name === other.name &&
    one.namespace === other.namespace &&
    one.serviceName === other.serviceName &&
    equal(one.ports, other.ports) &&
    equal(one.nodeNames, other.nodeNames) &&
    equal(one.zoneHints, other.zoneHints) &&
    equal(one.nodeHints, other.nodeHints) &&
    (one.zones ?? '') === (other.zones ?? '') &&
    equal(one.zoneNames ?? [], other.zoneNames ?? []) &&
    one.weight === other.weight &&
    one.unreadable === other.unreadable
  );
}

function equal(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other)) return false;
  if (Array.isArray(one)) return Array.isArray(other) && listsEqual(one, other);
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  for (const name of names) {
    if (!Object.hasOwn(other, name) || !equal(one[name], other[name])) return false;
  }
  return true;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function listsEqual(one: readonly unknown[], other: readonly unknown[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (!equal(one[index], other[index])) return false;
  return true;
}

function bytesEqual(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}
