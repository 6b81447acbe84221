import {
  addressFromBytes,
  addressLength,
  familyOf,
  prefixContains,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../../base/ip.js';
import { protocolFromNumber, type Protocol } from '../../base/protocol.js';
import type {
  IpsetListing,
  IpvsDestinations,
  IpvsListedService,
  IpvsServiceState,
  NativeAddon,
} from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { listedDestinations, type Destinations } from './destinations.js';
import { packPort, packVirtual, serviceKey, type ElementKey, type ServiceKey, type Virtual } from './frontends.js';
import type { Held } from './ledgers.js';
import { LINK, SET_ROLES, setName, setType, type SetRole } from './names.js';
import { elementSize, setCreation } from './wire.js';

export type IpvsParts = Pick<NativeAddon, 'ipvs' | 'ipset' | 'route'>;

/** One look at what one family has in the kernel, chains apart. */
export interface Listing {
  readonly held: Held;
  /** As they were listed, with connections. */
  readonly destinations: ReadonlyMap<ServiceKey, IpvsDestinations>;
  /** What the mode's sets lack, or cannot be used for. */
  readonly missingSets: readonly SetRole[];
  readonly wrongSets: readonly SetRole[];
  readonly hasLink: boolean;
  /** Addresses of the node's other links. */
  readonly own: ReadonlySet<IPAddress>;
}

/** Decides which virtual services are a proxy's. */
export interface Ownership {
  /** Asked about addresses that a Service may have, and about node ports. */
  readonly isWanted: (key: FrontendKey) => boolean;
  /** Left alone unless they are wanted. */
  readonly excluded: readonly IPPrefix[];
}

export async function list(addon: IpvsParts, family: Family, ownership: Ownership): Promise<Listing> {
  const [sets, services, links, linked] = await Promise.all([
    addon.ipset.ipsetList(SET_ROLES.map((role) => setName(family, role))),
    addon.ipvs.ipvsServices(family),
    addon.route.allAddresses(),
    addon.route.linkAddresses(LINK),
  ]);
  const { elements, missing, wrong } = readSets(family, sets);
  const own = ownAddresses(family, links);
  const addresses = (linked ?? []).map(addressFromBytes).filter((address) => familyOf(address) === family);
  const proxys = new Proxys(own, new Set(addresses), elements, ownership);
  const ours = services.flatMap((service) => {
    const virtual = virtualOf(service);
    return virtual !== null && proxys.has(virtual) ? [{ key: serviceKey(virtual), service }] : [];
  });
  const listed = await addon.ipvs.ipvsDestinations(ours.map(({ service }) => service));
  const destinations = new Map<ServiceKey, IpvsDestinations>();
  const parsed = new Map<ServiceKey, Destinations>();
  for (const [index, { key }] of ours.entries()) {
    const found = listed[index];
    if (found === undefined) continue;
    destinations.set(key, found);
    parsed.set(key, listedDestinations(family, found));
  }
  return {
    held: {
      services: new Map(ours.map(({ key, service }) => [key, stateOf(service)])),
      destinations: parsed,
      elements,
      addresses: new Map(addresses.map((address) => [address, true])),
    },
    ...{ destinations, own, hasLink: linked !== null, missingSets: missing, wrongSets: wrong },
  };
}

/** IPv6 addresses of a single link have to be asked for with the link's name, which no Service has. */
function ownAddresses(
  family: Family,
  links: Awaited<ReturnType<IpvsParts['route']['allAddresses']>>,
): ReadonlySet<IPAddress> {
  const own = new Set<IPAddress>();
  const length = addressLength(family);
  for (const { link, ipv4, ipv6 } of links) {
    if (link === LINK) continue;
    const packed = family === 'IPv4' ? ipv4 : ipv6;
    for (let at = 0; at < packed.length; at += length) {
      const address = addressFromBytes(packed.subarray(at, at + length));
      if (!address.startsWith('fe80:')) own.add(address);
    }
  }
  return own;
}

/** The API server's default for --service-node-port-range. */
const NODE_PORTS = { first: 30_000, last: 32_767 } as const;

/**
 * Virtual services that a proxy made, this one or kube-proxy: those that are wanted, those on the mode's link, those that its sets name, and those on a node
 * port. Others, such as those of a load balancer on the same node, are none of ours.
 */
class Proxys {
  constructor(
    private readonly own: ReadonlySet<IPAddress>,
    private readonly linked: ReadonlySet<IPAddress>,
    private readonly elements: Held['elements'],
    private readonly ownership: Ownership,
  ) {}

  has(virtual: Virtual): boolean {
    const { isWanted, excluded } = this.ownership;
    const { address, port, protocol } = virtual;
    const isOwn = this.own.has(address);
    if (isWanted(serviceKey(virtual)) || (isOwn && isWanted(frontendKey(null, port, protocol)))) return true;
    if (excluded.some((prefix) => prefixContains(prefix, address))) return false;
    if (this.linked.has(address)) return true;
    const key = packVirtual(virtual);
    if (NAMING.some((role) => this.elements[role].has(key))) return true;
    if (!isOwn) return false;
    const isNamed = PORT_NAMING[protocol].some((role) => this.elements[role].has(packPort(port)));
    return isNamed || (port >= NODE_PORTS.first && port <= NODE_PORTS.last);
  }
}

const PORT_NAMING: Readonly<Record<Protocol, readonly SetRole[]>> = {
  TCP: ['tcpNodePorts', 'tcpNodePortsLocal'],
  UDP: ['udpNodePorts', 'udpNodePortsLocal'],
  SCTP: [],
};

const NAMING: readonly SetRole[] = [
  'external',
  'externalLocal',
  'balancer',
  'balancerLocal',
  'sctpNodePorts',
  'sctpNodePortsLocal',
];

function virtualOf({ address, port, protocol }: IpvsListedService): Virtual | null {
  const known = protocolFromNumber(protocol);
  return address === null || known === null ? null : { address: addressFromBytes(address), port, protocol: known };
}

function stateOf({ scheduler, flags, timeoutSeconds, prefixLength }: IpvsListedService): IpvsServiceState {
  return { scheduler, flags, timeoutSeconds, prefixLength };
}

interface Sets {
  readonly elements: Held['elements'];
  readonly missing: readonly SetRole[];
  readonly wrong: readonly SetRole[];
}

function readSets(family: Family, listings: readonly (IpsetListing | null)[]): Sets {
  const elements = Object.fromEntries(SET_ROLES.map((role) => [role, new Map<ElementKey, string>()])) as {
    [Role in SetRole]: Map<ElementKey, string>;
  };
  const missing: SetRole[] = [];
  const wrong: SetRole[] = [];
  for (const [index, role] of SET_ROLES.entries()) {
    const listing = listings[index] ?? null;
    if (listing === null) missing.push(role);
    else if (!isUsable(family, role, listing)) wrong.push(role);
    else readElements(family, role, listing, elements[role]);
  }
  return { elements, missing, wrong };
}

function isUsable(family: Family, role: SetRole, listing: IpsetListing): boolean {
  const { type, plain, comments, elements } = listing;
  const wanted = setCreation(family, role);
  return type === wanted.type && listing.family === wanted.family && plain && comments && elements !== null;
}

function readElements(family: Family, role: SetRole, listing: IpsetListing, found: Map<ElementKey, string>): void {
  const size = elementSize(family, setType(role));
  const bytes = Buffer.from(listing.elements ?? new Uint8Array(0)).toString('latin1');
  for (let at = 0; at < bytes.length; at += size)
    found.set(bytes.slice(at, at + size), listing.elementComments?.[at / size] ?? '');
}
