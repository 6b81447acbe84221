import { addressBytes, addressLength, familyOf, type Family } from '../../base/ip.js';
import { protocolNumber } from '../../base/protocol.js';
import {
  IPSET_ELEMENT,
  type IpsetCreation,
  type IpsetName,
  type IpsetType,
  type IpvsService,
} from '../../native/contract.js';
import type { Virtual } from './frontends.js';
import { OWN_ROLES, setName, setType, type SetRole } from './names.js';

/** Bytes of a packed element. */
export function elementSize(family: Family, type: IpsetType): number {
  const { addresses, others } = IPSET_ELEMENT[type];
  return addresses * addressLength(family) + others;
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

/** Of sets that kube-proxy has too (behaviour IV-20): the kernel refuses it the same set with another size. */
const PEER_MAX_ELEMENTS = 65_536;
const MAX_ELEMENTS = 1_048_576;

export function setCreation(family: Family, role: SetRole): IpsetCreation {
  const type = setType(role);
  const name = setName(family, role);
  if (type === 'bitmap:port')
    return { name, type, family: null, hashSize: 0, maxElements: 0, comments: true, ports: { first: 0, last: 65_535 } };
  const maxElements = OWN_ROLES.has(role) ? MAX_ELEMENTS : PEER_MAX_ELEMENTS;
  return { name, type, family, hashSize: 1024, maxElements, comments: true, ports: null };
}
