import { randomUUID } from 'node:crypto';
import { familyOf, parseAddress, type IPAddress } from '../../../src/base/ip.js';
import {
  HCN_ENDPOINT_FLAGS,
  HCN_LOAD_BALANCER_FLAGS,
  hcnFeatures,
  type HcnAddon,
  type HcnChange,
  type HcnEndpoint,
  type HcnKind,
  type HcnListed,
  type HcnLoadBalancer,
  type HcnNetwork,
  type HcnOperation,
  type HcnVersion,
} from '../../../src/native/contract.js';
import type { NativeError } from '../../../src/native/errors.js';
import { HnsFaults } from './faults.js';
import { HnsError, objectOf } from './hns-error.js';

/**
 * The Host Networking Service behind the addon's contract, in memory: networks, endpoints and load balancers, what may refer to what, which version knows what,
 * and the errors for what it refuses, as far as Microsoft's documentation of HCN and its error codes, hcsshim and reports of users tell. No real HNS was asked.
 *
 * - Ids are unique, and taken as they are given; an id or a frontend that exists: ERROR_ALREADY_EXISTS (the report is of 0x800700b7).
 * - A frontend is each address with a protocol and port, or, for node ports, the protocol and port alone, in its family.
 * - An endpoint's network, and a load balancer's endpoints, are there: HCN_E_NETWORK_NOT_FOUND, HCN_E_ENDPOINT_NOT_FOUND.
 * - On one network no two endpoints have one address, but for one on this node beside a remote one (Windows Server 2019 is known for it), nor one link address.
 * - What a load balancer refers to cannot be deleted: HCN_E_ENTITY_HAS_REFERENCES. With a network go its endpoints, and load balancers lose them.
 * - Ports are not 0, protocols TCP and UDP, addresses of one family: HCN_E_INVALID_INTERNAL_PORT, HCN_E_INVALID_POLICY.
 * - A load balancer without direct server return has 64 destinations at most: E_INVALIDARG.
 * - What a version does not know: HCN_E_REQUEST_UNSUPPORTED. Version 15.4 answers that it has modified a load balancer, and has not (kubernetes/kubernetes#131466).
 */
export class FakeHns implements HcnAddon {
  readonly networks = new Map<string, HcnNetwork>();
  readonly endpoints = new Map<string, HcnEndpoint>();
  readonly loadBalancers = new Map<string, HcnLoadBalancer>();
  readonly faults = new HnsFaults();
  /** Operations that were done, as calls took them. */
  readonly committed: (readonly HcnOperation[])[] = [];
  /** Listings that were answered, by kind. */
  readonly listed: HcnKind[] = [];
  /** Objects that were asked for: each costs a call. */
  looks = 0;
  version: HcnVersion = { major: 15, minor: 5 };
  /** Answers that it has changed a load balancer and changes nothing; null: as its version does. */
  pretendsToModify: boolean | null = null;
  /** Is called before each operation. */
  beforeOperation: ((operation: HcnOperation) => void) | null = null;
  /** Operations wait for it: HNS is slow. */
  slow: Promise<unknown> | null = null;
  /** Is called after each listing. */
  afterList: (() => void) | null = null;
  private readonly watches = new Set<(change: HcnChange) => void>();

  /** Operations that changed something, so far. */
  get changes(): number {
    return this.committed.reduce((sum, operations) => sum + operations.length, 0);
  }

  hcnVersion(): Promise<HcnVersion> {
    return Promise.resolve(this.version);
  }

  async hcnIds(kind: HcnKind): Promise<readonly string[]> {
    await Promise.resolve();
    if (this.faults.failsListing()) throw new HnsError('RPC_S_CALL_FAILED', 'hcn ids', null, null);
    return [...this.objects(kind).keys()];
  }

  async hcnList<Kind extends HcnKind>(kind: Kind, ids: readonly string[] | null): Promise<readonly HcnListed<Kind>[]> {
    await Promise.resolve();
    if (this.faults.failsListing()) throw new HnsError('RPC_S_CALL_FAILED', 'hcn list', null, null);
    this.listed.push(kind);
    const objects: ReadonlyMap<string, unknown> = this.objects(kind);
    const asked = [...objects].filter(([id]) => ids === null || ids.includes(id));
    this.looks += asked.length;
    this.afterList?.();
    return asked.map(([id, properties]) => ({ id, properties: structuredClone(properties) })) as HcnListed<Kind>[];
  }

  async hcnApply(operations: readonly HcnOperation[]): Promise<readonly (string | NativeError)[]> {
    await this.slow;
    const fault = this.faults.take();
    if (fault === 'refuse') throw lost();
    const done = fault === 'halve' ? operations.slice(0, operations.length >> 1) : operations;
    const named = typeof fault === 'object' ? fault : null;
    const spared = fault === 'refuse-one' ? operations.length >> 1 : (named?.operation ?? -1);
    const answers = done.map((operation, index) => {
      this.beforeOperation?.(operation);
      const refused = index === spared ? (named?.errno ?? 'E_OUTOFMEMORY') : this.check(operation);
      if (refused !== null) return new HnsError(refused, 'hcn apply', objectOf(operation), index);
      return this.change(operation);
    });
    this.committed.push(done);
    if (fault === 'lose-answer' || fault === 'halve') throw lost();
    return answers;
  }

  hcnWatch(onChange: (change: HcnChange) => void): Promise<() => void> {
    this.watches.add(onChange);
    return Promise.resolve(() => this.watches.delete(onChange));
  }

  /** The service starts anew. */
  disconnect(): void {
    const watches = [...this.watches];
    this.watches.clear();
    for (const tell of watches) tell({ networks: false, disconnected: true });
  }

  addNetwork(Name: string, properties: Partial<HcnNetwork> = {}): string {
    const id = randomUUID();
    this.networks.set(id, { ID: id, Name, Type: 'L2Bridge', ...properties });
    this.tell();
    return id;
  }

  /** With its endpoints, which load balancers lose. */
  removeNetwork(id: string): void {
    this.networks.delete(id);
    for (const [endpoint, { HostComputeNetwork }] of this.endpoints)
      if (HostComputeNetwork === id) this.removeEndpoint(endpoint);
    this.tell();
  }

  /** As a CNI plugin does for a pod. */
  addEndpoint(network: string, addresses: readonly string[], properties: Partial<HcnEndpoint> = {}): string {
    const id = randomUUID();
    const IpConfigurations = addresses.map((IpAddress) => ({ IpAddress, PrefixLength: 24 }));
    this.endpoints.set(id, {
      ID: id,
      Name: `pod-${id}`,
      HostComputeNetwork: network,
      IpConfigurations,
      MacAddress: `00-15-5D-${id.slice(0, 2)}-${id.slice(2, 4)}-${id.slice(4, 6)}`.toUpperCase(),
      ...properties,
    });
    return id;
  }

  removeEndpoint(id: string): void {
    this.endpoints.delete(id);
    for (const [loadBalancer, properties] of this.loadBalancers) {
      const { HostComputeEndpoints = [] } = properties;
      if (HostComputeEndpoints.includes(id))
        this.loadBalancers.set(loadBalancer, {
          ...properties,
          HostComputeEndpoints: HostComputeEndpoints.filter((each) => each !== id),
        });
    }
  }

  addressesOf(endpoint: string): readonly IPAddress[] {
    const { IpConfigurations = [] } = this.endpoints.get(endpoint) ?? {};
    return IpConfigurations.flatMap(({ IpAddress = '' }) => parseAddress(IpAddress) ?? []);
  }

  private tell(): void {
    for (const tell of this.watches) tell({ networks: true, disconnected: false });
  }

  private get pretends(): boolean {
    const { major, minor } = this.version;
    return this.pretendsToModify ?? (major === 15 && minor === 4);
  }

  private objects(kind: HcnKind): ReadonlyMap<string, HcnNetwork | HcnEndpoint | HcnLoadBalancer> {
    if (kind === 'network') return this.networks;
    return kind === 'endpoint' ? this.endpoints : this.loadBalancers;
  }

  private change(operation: HcnOperation): string {
    const id = operation.id ?? randomUUID();
    if (operation.type === 'delete') (operation.kind === 'endpoint' ? this.endpoints : this.loadBalancers).delete(id);
    else if (operation.type === 'modify' && this.pretends) return id;
    else if (operation.kind === 'endpoint') this.endpoints.set(id, { ...operation.settings, ID: id });
    else this.loadBalancers.set(id, { ...operation.settings, ID: id });
    return id;
  }

  private check(operation: HcnOperation): string | null {
    const { type, kind, id } = operation;
    const objects = kind === 'endpoint' ? this.endpoints : this.loadBalancers;
    if (type === 'create' && id !== null && objects.has(id)) return 'ERROR_ALREADY_EXISTS';
    if (type === 'modify' && !this.pretends && !hcnFeatures(this.version).modifyLoadBalancer)
      return 'HCN_E_REQUEST_UNSUPPORTED';
    if (type !== 'create' && !objects.has(id))
      return kind === 'endpoint' ? 'HCN_E_ENDPOINT_NOT_FOUND' : 'ERROR_NOT_FOUND';
    if (type === 'delete') return kind === 'endpoint' && this.isReferred(id) ? 'HCN_E_ENTITY_HAS_REFERENCES' : null;
    return operation.kind === 'endpoint'
      ? this.checkEndpoint(operation.network, operation.settings)
      : this.checkLoadBalancer(id, operation.settings);
  }

  private isReferred(id: string): boolean {
    return [...this.loadBalancers.values()].some(
      ({ HostComputeEndpoints }) => HostComputeEndpoints?.includes(id) === true,
    );
  }

  private checkEndpoint(network: string, { IpConfigurations = [], MacAddress, Flags = 0 }: HcnEndpoint): string | null {
    if (!this.networks.has(network)) return 'HCN_E_NETWORK_NOT_FOUND';
    const addresses = IpConfigurations.flatMap(({ IpAddress = '' }) => parseAddress(IpAddress) ?? []);
    if (addresses.length === 0) return 'HCN_E_INVALID_IP';
    const isRemote = (flags: number): boolean => (flags & HCN_ENDPOINT_FLAGS.remote) !== 0;
    for (const [id, other] of this.endpoints) {
      if (other.HostComputeNetwork !== network) continue;
      const sharesAddress = this.addressesOf(id).some((address) => addresses.includes(address));
      if (sharesAddress && isRemote(other.Flags ?? 0) === isRemote(Flags)) return 'ERROR_ALREADY_EXISTS';
      if (MacAddress !== undefined && MacAddress === other.MacAddress && isOnlyOwner(MacAddress))
        return 'HCN_E_PORT_ALREADY_EXISTS';
    }
    return null;
  }

  private checkLoadBalancer(own: string | null, properties: HcnLoadBalancer): string | null {
    const { HostComputeEndpoints = [], PortMappings = [], FrontendVIPs = [], Flags = 0 } = properties;
    if (PortMappings.length === 0 || HostComputeEndpoints.length === 0) return 'HCN_E_INVALID_POLICY';
    if (HostComputeEndpoints.some((id) => !this.endpoints.has(id))) return 'HCN_E_ENDPOINT_NOT_FOUND';
    const isDirect = (Flags & HCN_LOAD_BALANCER_FLAGS.directServerReturn) !== 0;
    if (!isDirect && HostComputeEndpoints.length > MOST_DESTINATIONS) return 'E_INVALIDARG';
    const family = (Flags & HCN_LOAD_BALANCER_FLAGS.ipv6) === 0 ? 'IPv4' : 'IPv6';
    for (const vip of FrontendVIPs) {
      const address = parseAddress(vip);
      if (address === null || familyOf(address) !== family) return 'HCN_E_INVALID_IP';
    }
    for (const { InternalPort = 0, ExternalPort = 0, Protocol = 0, DistributionType = 0 } of PortMappings) {
      if (InternalPort === 0 || ExternalPort === 0) return 'HCN_E_INVALID_INTERNAL_PORT';
      if (![6, 17].includes(Protocol)) return 'HCN_E_INVALID_POLICY';
      if (DistributionType !== 0 && !hcnFeatures(this.version).sessionAffinity) return 'HCN_E_REQUEST_UNSUPPORTED';
    }
    if (family === 'IPv6' && !hcnFeatures(this.version).ipv6DualStack) return 'HCN_E_REQUEST_UNSUPPORTED';
    const places = new Set(placesOf(properties));
    for (const [id, other] of this.loadBalancers)
      if (id !== own && placesOf(other).some((place) => places.has(place))) return 'ERROR_ALREADY_EXISTS';
    return null;
  }
}

/** Of a load balancer without direct server return (kubernetes/kubernetes#98680). */
const MOST_DESTINATIONS = 64;

/** Addresses of Services have the node's own on overlay networks. */
function isOnlyOwner(mac: string): boolean {
  return mac.startsWith('02-1');
}

function placesOf({ FrontendVIPs = [], PortMappings = [], Flags = 0 }: HcnLoadBalancer): readonly string[] {
  const vips = FrontendVIPs.length === 0 ? [`node ${Flags & HCN_LOAD_BALANCER_FLAGS.ipv6}`] : FrontendVIPs;
  return vips.flatMap((vip) => PortMappings.map(({ Protocol, ExternalPort }) => `${vip} ${Protocol} ${ExternalPort}`));
}

function lost(): HnsError {
  return new HnsError('RPC_S_CALL_FAILED', 'hcn apply', null, null);
}
