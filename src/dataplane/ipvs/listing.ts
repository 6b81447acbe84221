import { addressFromBytes, prefixContains, type Family, type IPAddress, type IPPrefix } from '../../base/ip.js';
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
import { addressesBeside, addressesOf } from '../link-addresses.js';
import { isUsualNodePort } from '../removal/footprint.js';
import { listedDestinations, type Destinations } from './destinations.js';
import { packPort, packVirtual, serviceKey, type ElementKey, type ServiceKey, type Virtual } from './frontends.js';
import type { Held } from './ledgers.js';
import { FRONTEND_ROLES, hasComments, LINK, SET_ROLES, setName, setType, type SetRole } from './names.js';
import { packedElements, setCreation } from './wire.js';
import { packedAddress } from '../../base/pack-address.js';

type IpvsParts = Pick<NativeAddon, 'ipvs' | 'ipset' | 'route'>;

/** One look at what one family has in the kernel, chains apart. */
export interface Listing {
  readonly held: Held;
  /** As they were listed, with connections. */
  readonly destinations: ReadonlyMap<ServiceKey, IpvsDestinations>;
  /** Sets that the mode lacks, or that it cannot use. */
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

/** The traces that show a proxy's virtual services. */
export interface Traces {
  /** Addresses of the node's other links. */
  readonly own: ReadonlySet<IPAddress>;
  /** On the mode's link. */
  readonly linked: { has(address: IPAddress): boolean };
  /** Whether one of its sets has an element. */
  readonly names: (role: SetRole, key: ElementKey) => boolean;
}

export async function list(addon: IpvsParts, family: Family, ownership: Ownership): Promise<Listing> {
  const [sets, services, addresses, linked] = await Promise.all([
    listSets(addon, family, SET_ROLES),
    addon.ipvs.ipvsServices(family),
    listAddresses(addon, family),
    addon.route.linkAddresses(LINK),
  ]);
  const { elements, missing, wrong } = sets;
  const { own } = addresses;
  const ours = proxysOf(services, { ...addresses, names: (role, key) => elements[role].has(key) }, ownership);
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
      addresses: new Map([...addresses.linked].map((address) => [address, true])),
    },
    destinations,
    own,
    hasLink: linked !== null,
    missingSets: missing,
    wrongSets: wrong,
  };
}

/** Virtual services that a proxy made. */
export function proxysOf(
  services: readonly IpvsListedService[],
  traces: Traces,
  ownership: Ownership,
): readonly { readonly key: ServiceKey; readonly service: IpvsListedService }[] {
  const proxys = new Proxys(traces, ownership);
  return services.flatMap((service) => {
    const virtual = virtualOf(service);
    return virtual !== null && proxys.has(virtual) ? [{ key: serviceKey(virtual), service }] : [];
  });
}

/** Addresses of the mode's link and of the node's others. */
export async function listAddresses(
  addon: Pick<IpvsParts, 'route'>,
  family: Family,
): Promise<{ readonly linked: ReadonlySet<IPAddress>; readonly own: ReadonlySet<IPAddress> }> {
  const links = await addon.route.allAddresses();
  const linked = links.filter(({ link }) => link === LINK).flatMap((link) => addressesOf(family, link));
  return { linked: new Set(linked), own: addressesBeside(LINK, family, links) };
}

/**
 * Virtual services that a proxy made, this one or kube-proxy: those that are wanted, those on the mode's link, those that its sets name, and those on a node
 * port. Others, such as those of a load balancer on the same node, are none of ours.
 */
class Proxys {
  constructor(
    private readonly traces: Traces,
    private readonly ownership: Ownership,
  ) {}

  has(virtual: Virtual): boolean {
    const { isWanted, excluded } = this.ownership;
    const { own, linked, names } = this.traces;
    const { address, port, protocol } = virtual;
    const isOwn = own.has(address);
    if (isWanted(serviceKey(virtual)) || (isOwn && isWanted(frontendKey(null, port, protocol)))) return true;
    if (excluded.some((prefix) => prefixContains(prefix, address))) return false;
    if (linked.has(address) || names('addresses', packedAddress(address))) return true;
    const key = packVirtual(virtual);
    if (FRONTEND_ROLES.some((role) => names(role, key))) return true;
    if (!isOwn) return false;
    const isNamed = PORT_NAMING[protocol].some((role) => names(role, packPort(port)));
    return isNamed || isUsualNodePort(port);
  }
}

const PORT_NAMING: Readonly<Record<Protocol, readonly SetRole[]>> = {
  TCP: ['tcpNodePorts', 'tcpNodePortsLocal'],
  UDP: ['udpNodePorts', 'udpNodePortsLocal'],
  SCTP: [],
};

function virtualOf({ address, port, protocol }: IpvsListedService): Virtual | null {
  const known = protocolFromNumber(protocol);
  return address === null || known === null ? null : { address: addressFromBytes(address), port, protocol: known };
}

export function stateOf({ scheduler, flags, timeoutSeconds, prefixLength }: IpvsListedService): IpvsServiceState {
  return { scheduler, flags, timeoutSeconds, prefixLength };
}

interface Sets {
  readonly elements: Held['elements'];
  readonly missing: readonly SetRole[];
  readonly wrong: readonly SetRole[];
}

/** The sets of the given roles; the others have no elements. */
export async function listSets(
  addon: Pick<IpvsParts, 'ipset'>,
  family: Family,
  roles: readonly SetRole[],
): Promise<Sets> {
  const listings = await addon.ipset.ipsetList(roles.map((role) => setName(family, role)));
  const elements = Object.fromEntries(SET_ROLES.map((role) => [role, new Map<ElementKey, string>()])) as {
    [Role in SetRole]: Map<ElementKey, string>;
  };
  const missing: SetRole[] = [];
  const wrong: SetRole[] = [];
  for (const [index, role] of roles.entries()) {
    const listing = listings[index] ?? null;
    if (listing === null) missing.push(role);
    else if (!isUsable(family, role, listing)) wrong.push(role);
    else readElements(family, role, listing, elements[role]);
  }
  return { elements, missing, wrong };
}

/** Comments that are not needed do no harm. */
function isUsable(family: Family, role: SetRole, listing: IpsetListing): boolean {
  const { type, plain, elements } = listing;
  const wanted = setCreation(family, role);
  const isLike = type === wanted.type && listing.family === wanted.family && (listing.comments || !wanted.comments);
  return isLike && plain && elements !== null;
}

function readElements(family: Family, role: SetRole, listing: IpsetListing, found: Map<ElementKey, string>): void {
  const keys = packedElements(family, setType(role), listing.elements ?? new Uint8Array(0));
  const comments = hasComments(role) ? listing.elementComments : null;
  for (const [index, key] of keys.entries()) found.set(key, comments?.[index] ?? '');
}
