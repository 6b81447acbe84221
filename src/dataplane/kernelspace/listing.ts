import {
  familyOf,
  parseAddress,
  parsePrefix,
  prefixContains,
  prefixLength,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../../base/ip.js';
import type { HnsNetworkChoice } from '../../config/hns-network.js';
import {
  HCN_ENDPOINT_FLAGS,
  HCN_PORT_MAPPING_FLAGS,
  type HcnAddon,
  type HcnEndpoint,
  type HcnListed,
  type HcnNetwork,
  type HcnPolicy,
} from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { isUsualNodePort } from '../removal/footprint.js';
import { endpointsOf, familyOfLoadBalancer, readLoadBalancer, type LoadBalancer } from './load-balancers.js';
import { objects, text, whole } from './members.js';
import { isOwnId, isProxyMac, normalMac } from './names.js';

/** HNS's content of one family, in the mode's terms. Ids are in lower case. */

/** Behind which node a part of an overlay network is. */
interface RemoteSubnet {
  readonly prefix: IPPrefix;
  /** The node's address. */
  readonly provider: IPAddress;
}

export interface Network {
  readonly id: string;
  readonly isOverlay: boolean;
  readonly remoteSubnets: readonly RemoteSubnet[];
}

/** Whether what is made in them is the same. Null: there is none. */
export function sameNetwork(one: Network | null, other: Network | null): boolean {
  if (one === null || other === null) return one === other;
  const routes = ({ remoteSubnets }: Network): string =>
    remoteSubnets
      .map(({ prefix, provider }) => `${prefix} ${provider}`)
      .sort()
      .join();
  return one.id === other.id && one.isOverlay === other.isOverlay && routes(one) === routes(other);
}

/** An endpoint that the mode makes: behind a provider's address in overlay networks, or on this node as the source of balanced traffic. */
export interface MadeEndpoint {
  readonly isRemote: boolean;
  /** Empty: HNS chooses it. */
  readonly mac: string;
  readonly provider: IPAddress | null;
}

/** By address; an endpoint whose address another has already is found by its id. */
export type EndpointKey = IPAddress | `unexpected ${string}`;
/** A {@link FrontendKey}; `unexpected ID` for what has a frontend that another has already, or none. */
export type LoadBalancerKey = string;

export interface Endpoints {
  /** Those of others that can be used: pods of this node above all. */
  readonly found: ReadonlyMap<IPAddress, string>;
  /** A proxy's. */
  readonly made: Map<EndpointKey, MadeEndpoint>;
  readonly ids: ReadonlyMap<EndpointKey, string>;
  /** Ids of all endpoints of the network, of either family. */
  readonly onNetwork: ReadonlySet<string>;
  /** Ids of all endpoints that there are. */
  readonly all: ReadonlySet<string>;
  /** Ids by name, on all networks. */
  readonly byName: ReadonlyMap<string, string>;
  /** Addresses of the family by name, which is in lower case here, of those on the network. */
  readonly addressByName: ReadonlyMap<string, IPAddress>;
}

export interface LoadBalancers {
  /** A proxy's. */
  readonly made: Map<LoadBalancerKey, LoadBalancer>;
  readonly ids: ReadonlyMap<LoadBalancerKey, string>;
  /** Endpoints that others' load balancers use. */
  readonly othersEndpoints: ReadonlySet<string>;
}

/** Which load balancers that do not have our id are a proxy's all the same. */
export interface Ownership {
  /** Whether a Service has the frontend. */
  readonly isWanted: (key: FrontendKey) => boolean;
  /** Where Services have their addresses. */
  readonly serviceCIDRs: readonly IPPrefix[];
}

/**
 * Null: there is none.
 *
 * @throws when there are several: which one is the pods' is unknown.
 */
export async function findNetwork(addon: Pick<HcnAddon, 'hcnList'>, choice: HnsNetworkChoice): Promise<Network | null> {
  const networks = await addon.hcnList('network', null);
  const [found, ...others] = networks.filter(({ properties }) => isChosen(properties, choice));
  if (found === undefined) return null;
  if (others.length > 0) {
    const names = [found, ...others].map(({ properties }) => text(properties.Name)).sort();
    throw new Error(`winkernel.networkName: several HNS networks fit: ${names.join(', ')}`);
  }
  return { id: found.id, ...readNetwork(found.properties) };
}

/** Network plugins make a network of this name to have a switch before the first pod comes, and give pods another. */
const WITHOUT_PODS = 'external';

/** Names are compared as HNS itself does. */
function isChosen({ Name, Type }: HcnNetwork, { by, text: wanted }: HnsNetworkChoice): boolean {
  const [name, type, asked] = [text(Name), text(Type), wanted].map((each) => each.toLowerCase()) as [
    string,
    string,
    string,
  ];
  if (by === 'name') return name === asked;
  return by === 'prefix' ? name.startsWith(asked) : type === asked && name !== WITHOUT_PODS;
}

function readNetwork({ Type, Policies }: HcnNetwork): Omit<Network, 'id'> {
  const remoteSubnets = objects(Policies).flatMap((policy) => {
    const { DestinationPrefix = '', ProviderAddress = '' } = settingsOfType(policy, 'RemoteSubnetRoute');
    const [prefix, provider] = [parsePrefix(DestinationPrefix), parseAddress(ProviderAddress)];
    return prefix === null || provider === null ? [] : [{ prefix, provider }];
  });
  return { isOverlay: text(Type).toLowerCase() === 'overlay', remoteSubnets };
}

/** RemoteSubnetRoute: the node of a subnet of an overlay network. ProviderAddress: the node of a remote endpoint. */
type PolicySettings = Readonly<Partial<Record<'DestinationPrefix' | 'ProviderAddress', string>>>;

function settingsOfType({ Type, Settings }: HcnPolicy, type: string): PolicySettings {
  if (Type !== type || typeof Settings !== 'object' || Settings === null) return {};
  return Object.fromEntries(Object.entries(Settings).filter(([, value]) => typeof value === 'string'));
}

/** The address of the node that an address is behind, or its own if it is a node's; null: neither (behaviour WK-06). The longest prefix counts. */
export function providerOf({ remoteSubnets }: Network, address: IPAddress): IPAddress | null {
  if (remoteSubnets.some(({ provider }) => provider === address)) return address;
  const within = remoteSubnets.filter(
    ({ prefix }) => familyOf(prefix) === familyOf(address) && prefixContains(prefix, address),
  );
  const [longest] = within.sort((one, other) => prefixLength(other.prefix) - prefixLength(one.prefix));
  return longest?.provider ?? null;
}

/** @param some ids of those that are looked at; null: all. */
export async function listEndpoints(
  addon: Pick<HcnAddon, 'hcnList'>,
  family: Family,
  network: Network,
  some: readonly string[] | null = null,
): Promise<Endpoints> {
  const listed = await addon.hcnList('endpoint', some);
  const found = new Map<IPAddress, string>();
  const made = new Map<EndpointKey, MadeEndpoint>();
  const ids = new Map<EndpointKey, string>();
  const onNetwork = new Set<string>();
  const macs = new Set<string>();
  const addressByName = new Map<string, IPAddress>();
  for (const { id, properties } of listed) {
    const isNear = text(properties.HostComputeNetwork).toLowerCase() === network.id;
    if (isNear) onNetwork.add(id);
    // One of ours may be left on a network that was configured before.
    else if (!isOwnId(id)) continue;
    for (const address of addressesOf(properties)) {
      if (familyOf(address) !== family) continue;
      if (isNear) addressByName.set(text(properties.Name).toLowerCase(), address);
      const state = readMade(id, properties);
      if (state === null) {
        // If two have one address, packets go to the one on this node.
        if (!found.has(address) || !isRemote(properties)) found.set(address, id);
        continue;
      }
      const isOdd = !isNear || made.has(address) || macs.has(state.mac);
      const key: EndpointKey = isOdd ? `unexpected ${id}` : address;
      // Endpoints of Services' addresses share the node's.
      if (isProxyMac(state.mac)) macs.add(state.mac);
      made.set(key, state);
      ids.set(key, id);
    }
  }
  const all = new Set(listed.map(({ id }) => id));
  const byName = new Map(listed.map(({ id, properties }) => [text(properties.Name), id]));
  return { found, made, ids, onNetwork, all, byName, addressByName };
}

function addressesOf({ IpConfigurations }: HcnEndpoint): readonly IPAddress[] {
  return objects(IpConfigurations).flatMap(({ IpAddress }) => parseAddress(text(IpAddress)) ?? []);
}

function isRemote({ Flags }: HcnEndpoint): boolean {
  return (whole(Flags) & HCN_ENDPOINT_FLAGS.remote) !== 0;
}

/** Null: it is not a proxy's. */
function readMade(id: string, properties: HcnEndpoint): MadeEndpoint | null {
  const mac = normalMac(text(properties.MacAddress));
  const remote = isRemote(properties);
  if (!isOwnId(id) && !(remote && isProxyMac(mac))) return null;
  const providers = objects(properties.Policies).map(
    (policy) => settingsOfType(policy, 'ProviderAddress').ProviderAddress ?? '',
  );
  const [provider = null] = providers.flatMap((text) => parseAddress(text) ?? []);
  return { isRemote: remote, mac: remote ? mac : '', provider };
}

export async function listLoadBalancers(
  addon: Pick<HcnAddon, 'hcnList'>,
  family: Family,
  { onNetwork, all }: Pick<Endpoints, 'onNetwork' | 'all'>,
  ownership: Ownership,
): Promise<LoadBalancers> {
  const made = new Map<LoadBalancerKey, LoadBalancer>();
  const ids = new Map<LoadBalancerKey, string>();
  const othersEndpoints = new Set<string>();
  for (const listed of await addon.hcnList('loadBalancer', null)) {
    if (familyOfLoadBalancer(listed.properties) !== family) continue;
    const read = readLoadBalancer(listed.properties);
    const isNear = (endpoint: string): boolean => onNetwork.has(endpoint) || !all.has(endpoint);
    if (!isProxys(listed, read, isNear, ownership)) {
      for (const endpoint of endpointsOf(listed.properties)) othersEndpoints.add(endpoint);
      continue;
    }
    const key: LoadBalancerKey = read === null || made.has(read.key) ? `unexpected ${listed.id}` : read.key;
    made.set(key, read?.loadBalancer ?? UNREADABLE);
    ids.set(key, listed.id);
  }
  return { made, ids, othersEndpoints };
}

/** It only has to go. */
const UNREADABLE: LoadBalancer = {
  internalPort: 0,
  flags: 0,
  portFlags: 0,
  distribution: 0,
  sourceVip: '',
  endpoints: [],
};

/**
 * HNS keeps no notes. So an object without our id, such as kube-proxy's, is recognized by its purpose: all its endpoints are
 * on our network, if they are still there, and it takes connections where a Service has them, or could.
 */
function isProxys(
  { id }: HcnListed<'loadBalancer'>,
  read: ReturnType<typeof readLoadBalancer>,
  isNear: (endpoint: string) => boolean,
  { isWanted, serviceCIDRs }: Ownership,
): boolean {
  if (isOwnId(id)) return true;
  if (read === null || !read.loadBalancer.endpoints.every(isNear)) return false;
  return isWanted(read.key) || couldBeService(read, serviceCIDRs);
}

function couldBeService(
  { key, loadBalancer: { portFlags } }: { readonly key: FrontendKey; readonly loadBalancer: LoadBalancer },
  serviceCIDRs: readonly IPPrefix[],
): boolean {
  const { address, port } = parseFrontendKey(key);
  const has = (flag: keyof typeof HCN_PORT_MAPPING_FLAGS): boolean => (portFlags & HCN_PORT_MAPPING_FLAGS[flag]) !== 0;
  if (address === null) return has('localRoutedVip') && isUsualNodePort(port);
  // kube-proxy's mark of external IPs and load balancers' addresses, which may be any.
  if (has('vipExternalIp')) return true;
  return serviceCIDRs.some((cidr) => prefixContains(cidr, address));
}
