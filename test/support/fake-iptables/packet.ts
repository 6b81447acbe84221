import { familyOf, isLoopback, addressFromBytes, type Family, type IPAddress } from '../../../src/base/ip.js';
import { type PackedKey } from '../../../src/dataplane/nftables/keys.js';
import { OTHERS_MARK, type Arrived } from '../courses.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import { packedAddress } from '../../../src/base/pack-address.js';

/** A packet on its way through chains. */
export interface Traveller extends Arrived {
  readonly family: Family;
  readonly protocol: string;
  readonly source: PackedKey;
  readonly originalDestination: PackedKey;
  readonly originalPort: PackedKey;
  readonly inputInterface: string;
  /** Whether the node has the address. */
  readonly isLocal: (address: PackedKey) => boolean;
  /** Whether a set has what the packet says in these directions. */
  readonly isInSet: (name: string, directions: readonly string[], packet: Traveller) => boolean;
  /** Whether it came by a virtual service. */
  readonly cameByIpvs: boolean;
  /** How likely it came this way. */
  readonly probability: number;
  /** `recent` lists that saw it on its way. */
  readonly notes: readonly string[];
}

export function traveller(
  packet: KernelPacket,
  localAddresses: readonly IPAddress[],
  isInSet: Traveller['isInSet'] = () => false,
): Traveller {
  const own = new Set(localAddresses.map(packedAddress));
  const destination = packedAddress(packet.destination);
  return {
    family: familyOf(packet.destination),
    protocol: packet.protocol.toLowerCase(),
    source: packedAddress(packet.source),
    originalDestination: destination,
    destination,
    port: packPort(packet.port),
    originalPort: packPort(packet.port),
    isInSet,
    cameByIpvs: false,
    mark: OTHERS_MARK,
    translated: false,
    masqueraded: false,
    inputInterface: packet.inputInterface ?? '',
    isLocal: (address) => own.has(address) || isLoopback(addressFromBytes(Buffer.from(address, 'latin1'))),
    probability: 1,
    notes: [],
  };
}

export function packPort(port: number): PackedKey {
  return String.fromCharCode(port >> 8, port & 0xff);
}
