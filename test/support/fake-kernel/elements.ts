import { packedKey } from '../../../src/base/endpoint-list.js';
import type { PackedKey } from '../../../src/dataplane/nftables/keys.js';
import type { NftElementsOperation } from '../../../src/native/contract.js';
import { Refusal } from './kernel-error.js';
import { componentLengths, findElement, type FakeChain, type FakeElement, type FakeSet } from './table.js';

/**
 * Adds elements to a set that may be written. An element that is there with the same value is no error; with another it is.
 *
 * @throws Refusal with the position of the element.
 */
export function addElements(
  set: FakeSet,
  operation: NftElementsOperation,
  chains: ReadonlyMap<string, FakeChain>,
): void {
  checkShape(set, operation);
  for (let index = 0; index < operation.count; index++) {
    const element = elementAt(operation, index);
    if (element.chain !== null) {
      const target = chains.get(element.chain);
      if (target === undefined) throw new Refusal('ENOENT', index);
      if (target.hook !== null) throw new Refusal('EOPNOTSUPP', index);
    }
    const held = findElement(set, element.key) ?? (element.keyEnd === null ? null : findElement(set, element.keyEnd));
    if (held !== null) {
      if (!sameElement(held, element)) throw new Refusal('EEXIST', index);
      continue;
    }
    if (element.keyEnd !== null && !inOrder(element.key, element.keyEnd, set)) throw new Refusal('EINVAL', index);
    if (set.declaration.size !== null && set.elements.size >= set.declaration.size) throw new Refusal('ENFILE', index);
    set.elements.set(element.key, element);
  }
}

/**
 * Deletes elements of a set that may be written and returns them.
 *
 * @throws Refusal with the position of the element.
 */
export function deleteElements(set: FakeSet, operation: NftElementsOperation): readonly FakeElement[] {
  checkShape(set, operation);
  const deleted: FakeElement[] = [];
  for (let index = 0; index < operation.count; index++) {
    const held = findElement(set, elementAt(operation, index).key);
    if (held === null) throw new Refusal('ENOENT', index);
    set.elements.delete(held.key);
    deleted.push(held);
  }
  return deleted;
}

function elementAt(operation: NftElementsOperation, index: number): FakeElement {
  const row = (bytes: Uint8Array | null, length: number): string | null =>
    bytes === null ? null : packedKey(bytes, index * length, length);
  return {
    key: row(operation.keys, operation.keyLength) ?? '',
    keyEnd: row(operation.keyEnds, operation.keyLength),
    value: row(operation.data, operation.dataLength),
    chain: operation.gotoChains?.[index] ?? null,
    comment: operation.comments?.[index] ?? null,
  };
}

/** Lengths and kinds of what the set was declared with. The first element is the one the kernel stumbles over. */
function checkShape(set: FakeSet, operation: NftElementsOperation): void {
  const { declaration, keyLength, dataLength } = set;
  const adds = operation.verb === 'add';
  const wrong =
    operation.keyLength !== keyLength ||
    (operation.keyEnds !== null && !declaration.flags.includes('interval')) ||
    (adds && (operation.gotoChains !== null) !== (declaration.map === 'verdict')) ||
    (adds && (operation.data !== null) !== dataLength > 0) ||
    (adds && operation.data !== null && operation.dataLength !== dataLength);
  if (wrong && operation.count > 0) throw new Refusal('EINVAL', 0);
}

/** The comment of an element that is there already stays as it is. */
function sameElement(one: FakeElement, other: FakeElement): boolean {
  return (
    one.key === other.key &&
    (one.keyEnd ?? one.key) === (other.keyEnd ?? other.key) &&
    one.value === other.value &&
    one.chain === other.chain
  );
}

/** Every component of a range begins before it ends. */
function inOrder(start: PackedKey, end: PackedKey, set: FakeSet): boolean {
  let at = 0;
  return componentLengths(set.declaration.type).every((length) => {
    const ordered = start.slice(at, at + length) <= end.slice(at, at + length);
    at += length;
    return ordered;
  });
}
