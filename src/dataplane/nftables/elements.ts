import { addressFromBytes } from '../../base/ip.js';
import type { NftElementsOperation } from '../../native/contract.js';
import { unpackSlot } from './keys.js';

/** A component of a key or of data, as libnftables spells it. */
type Component = string | number;

const PROTOCOL_NAMES: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' };

/** The components of a key or of data by their types, each padded to 4 bytes. */
export function componentsOf(bytes: Uint8Array, types: readonly string[]): readonly Component[] {
  let offset = 0;
  return types.map((type) => {
    const component = componentAt(bytes, offset, type);
    offset += type === 'ipv6_addr' ? 16 : 4;
    return component;
  });
}

function componentAt(bytes: Uint8Array, offset: number, type: string): Component {
  const first = bytes[offset] ?? 0;
  switch (type) {
    case 'ipv4_addr':
      return addressFromBytes(bytes.subarray(offset, offset + 4));
    case 'ipv6_addr':
      return addressFromBytes(bytes.subarray(offset, offset + 16));
    case 'inet_proto':
      return PROTOCOL_NAMES[first] ?? first;
    case 'inet_service':
      return (first << 8) | (bytes[offset + 1] ?? 0);
    default:
      return unpackSlot(bytes, offset);
  }
}

/** One element of an operation; what it does not have is null. */
interface PackedElement {
  readonly key: Uint8Array;
  readonly keyEnd: Uint8Array | null;
  readonly data: Uint8Array | null;
  /** Where its verdict goes to. */
  readonly chain: string | null;
  readonly comment: string | null;
}

export function elementAt(operation: NftElementsOperation, index: number): PackedElement {
  const { keyLength, dataLength } = operation;
  const row = (bytes: Uint8Array, size: number): Uint8Array => bytes.subarray(index * size, (index + 1) * size);
  return {
    key: row(operation.keys, keyLength),
    keyEnd: operation.keyEnds && row(operation.keyEnds, keyLength),
    data: operation.data && row(operation.data, dataLength),
    chain: operation.gotoChains?.[index] ?? null,
    comment: operation.comments?.[index] ?? null,
  };
}
