import { addressBytes, addressLength, familyOf, type Family } from '../../base/ip.js';
import { protocolNumber } from '../../base/protocol.js';
import {
  IPSET_ELEMENT,
  type IpsetCreation,
  type IpsetName,
  type IpsetType,
  type IpvsService,
} from '../../native/contract.js';
import type { ElementKey, Virtual } from './frontends.js';
import { hasComments, OWN_ROLES, setName, setType, type SetRole } from './names.js';

/** Bytes of a packed element. */
export function elementSize(family: Family, type: IpsetType): number {
  const { addresses, others } = IPSET_ELEMENT[type];
  return addresses * addressLength(family) + others;
}

/** Packed elements one by one. */
export function packedElements(family: Family, type: IpsetType, elements: Uint8Array): readonly ElementKey[] {
  const size = elementSize(family, type);
  const bytes = Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength).toString('latin1');
  return Array.from({ length: bytes.length / size }, (_, index) => bytes.slice(index * size, (index + 1) * size));
}

export function nameSet(family: Family, role: SetRole): IpsetName {
  const type = setType(role);
  return { name: setName(family, role), type, family: type === 'bitmap:port' ? null : family };
}

export function nameService({ address, port, protocol }: Virtual): IpvsService {
  return {
    family: familyOf(address),
    protocol: protocolNumber(protocol),
    address: addressBytes(address),
    port,
    mark: 0,
  };
}

/** The size of sets that kube-proxy has too (behaviour IV-20): the kernel refuses it the same set with another size, or with comments. */
const PEER_MAX_ELEMENTS = 65_536;
const MAX_ELEMENTS = 1_048_576;
/** The sizes of a bitmap. */
const NO_HASH = { hashSize: 0, maxElements: 0 } as const;

export function setCreation(family: Family, role: SetRole): IpsetCreation {
  const type = setType(role);
  const name = setName(family, role);
  const comments = hasComments(role);
  if (type === 'bitmap:port')
    return { name, type, family: null, ...NO_HASH, comments, counters: false, ports: { first: 0, last: 65_535 } };
  const maxElements = OWN_ROLES.has(role) ? MAX_ELEMENTS : PEER_MAX_ELEMENTS;
  return { name, type, family, hashSize: 1024, maxElements, comments, counters: false, ports: null };
}
