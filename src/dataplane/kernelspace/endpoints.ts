import type { Family, IPAddress } from '../../base/ip.js';
import type { HcnAddon } from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import type { Desired } from './desired.js';
import type { Ledgers } from './ledgers.js';
import {
  listEndpoints,
  providerOf,
  type EndpointKey,
  type Endpoints,
  type MadeEndpoint,
  type Network,
} from './listing.js';
import { isOwnId, normalMac, remoteMac } from './names.js';

/** How soon it is looked again for a pod of this node that HNS does not know, at first and at the most; milliseconds. */
export const AWAIT_MS = { first: 100, most: 5000 } as const;

interface EndpointParts {
  readonly family: Family;
  readonly ledgers: Ledgers;
  readonly desired: Pick<Desired, 'addresses' | 'usersOf' | 'isLeaving'>;
  readonly table: () => FamilyTable;
  /** The source of what is balanced on overlay networks, if it is of the family. */
  readonly sourceVip: () => IPAddress | null;
  /** The link address of the interface that has an address; null: none has. */
  readonly interfaceMac: (address: IPAddress) => string | null;
}

/**
 * Sets in the ledger which endpoints are to be made, and knows the id of the one at an address. The container runtime makes
 * the endpoints of pods on this node: HNS may get them later than the plan, and until then they are awaited.
 */
export class EndpointSet {
  /** Endpoints of this node's pods that are used and not yet in HNS. Since when, on the clock. */
  readonly awaited = new Map<IPAddress, number>();
  private found = new Map<IPAddress, string>();
  /** Endpoints that need not be looked at again to find an address. */
  private seen = new Set<string>();
  private readonly macs = new Map<string, IPAddress>();
  private awaitMs: number = AWAIT_MS.first;

  constructor(
    private readonly parts: EndpointParts,
    private readonly now: () => number,
  ) {}

  /** A look at all that HNS has. */
  update(endpoints: Endpoints): void {
    this.found = new Map(endpoints.found);
    this.seen = new Set(steadyEndpoints(endpoints));
  }

  /**
   * Looks for awaited endpoints among those that HNS did not have before, as a look at all of them takes a call for each.
   * Answers the addresses at which the endpoint has changed.
   */
  async look(hcn: Pick<HcnAddon, 'hcnIds' | 'hcnList'>, network: Network): Promise<readonly IPAddress[]> {
    const ids = await hcn.hcnIds('endpoint');
    const there = new Set(ids);
    const changed = [...this.found].flatMap(([address, id]) => (there.has(id) ? [] : [address]));
    for (const address of changed) this.found.delete(address);
    const others = ids.filter((id) => !this.seen.has(id) && !isOwnId(id));
    this.seen = new Set(ids.filter((id) => this.seen.has(id)));
    if (others.length === 0) return changed;
    const looked = await listEndpoints(hcn, this.parts.family, network, others);
    for (const id of steadyEndpoints(looked)) this.seen.add(id);
    for (const [address, id] of looked.found) {
      if (this.found.has(address)) continue;
      this.found.set(address, id);
      changed.push(address);
    }
    return changed;
  }

  /**
   * Forgets endpoints that are gone, among those at these addresses that were on this node and that the plan has elsewhere by
   * now. Answers their addresses.
   */
  async forgetGone(hcn: Pick<HcnAddon, 'hcnList'>, addresses: Iterable<EndpointKey>): Promise<IPAddress[]> {
    const { ownEndpoints } = this.parts.table();
    const unsureKeys = new Map<IPAddress, string>();
    for (const key of addresses) {
      const id = this.found.get(key as IPAddress);
      if (id !== undefined && !ownEndpoints.has(key as IPAddress)) unsureKeys.set(key as IPAddress, id);
    }
    if (unsureKeys.size === 0) return [];
    const there = new Set((await hcn.hcnList('endpoint', [...unsureKeys.values()])).map(({ id }) => id));
    const gone = [...unsureKeys].flatMap(([address, id]) => (there.has(id) ? [] : [address]));
    for (const address of gone) this.found.delete(address);
    return gone;
  }

  /** When it is to be looked for those that are awaited, ever more rarely; null: none is. To be asked once a sync. */
  lookAt(): number | null {
    // Link addresses of endpoints that are gone would stay otherwise.
    if (this.macs.size > 2 * this.parts.ledgers.endpoints.acknowledged.size) this.noteMacs();
    if (this.awaited.size === 0) {
      this.awaitMs = AWAIT_MS.first;
      return null;
    }
    const dueAt = this.now() + this.awaitMs;
    this.awaitMs = Math.min(this.awaitMs * 2, AWAIT_MS.most);
    return dueAt;
  }

  /** Whether another endpoint is found at an address that is used. */
  differ({ found }: Pick<Endpoints, 'found'>): boolean {
    return [...this.parts.desired.addresses].some((address) => this.found.get(address) !== found.get(address));
  }

  /** Null: there is none, or none that is as it should be. */
  idOf(address: IPAddress): string | null {
    const found = this.found.get(address);
    if (found !== undefined) return found;
    const { endpoints, endpointIds } = this.parts.ledgers;
    const isRight = endpoints.acknowledged.has(address) && !endpoints.isPending(address);
    return isRight ? (endpointIds.get(address) ?? null) : null;
  }

  /** Every address that may have an endpoint of ours, or is to have one. */
  everyAddress(network: Network): ReadonlySet<EndpointKey> {
    const { ledgers, desired, table } = this.parts;
    const sourceVip = this.parts.sourceVip();
    const addresses = new Set<EndpointKey>([...desired.addresses, ...ledgers.endpoints.acknowledged.keys()]);
    if (!network.isOverlay) return addresses;
    for (const address of table().clusterAddresses) addresses.add(address);
    return sourceVip === null ? addresses : addresses.add(sourceVip);
  }

  /** Decides anew what is to be at these addresses. */
  desire(network: Network, addresses: Iterable<EndpointKey>): void {
    const { endpoints } = this.parts.ledgers;
    for (const key of addresses) {
      const address = key as IPAddress;
      const isFound = this.found.has(address);
      const own = isFound ? null : this.special(network, address);
      const isUsed = this.parts.desired.usersOf(address).size > 0;
      const isOwn = this.parts.table().ownEndpoints.has(address);
      // A pod in the node's own network has no endpoint, and never gets one (behaviour WK-04).
      const isHost = address === this.parts.table().node.address;
      if (isUsed && isOwn && !isFound && !isHost) this.await(address);
      else this.awaited.delete(address);
      const remote = isUsed && !isOwn && !isFound ? this.remote(network, address) : undefined;
      // One that serves no more is not made, and stays as long as it has connections to end.
      const left = this.parts.desired.isLeaving(address) && !isFound ? endpoints.acknowledged.get(key) : undefined;
      endpoints.desire(key, own ?? remote ?? left);
    }
  }

  private await(address: IPAddress): void {
    if (!this.awaited.has(address)) this.awaited.set(address, this.now());
  }

  private remote(network: Network, address: IPAddress): MadeEndpoint {
    const { endpoints } = this.parts.ledgers;
    const held = endpoints.acknowledged.get(address);
    const mac = held?.isRemote === true ? held.mac : this.freeMac(address);
    return { isRemote: true, mac, provider: network.isOverlay ? this.provider(network, address) : null };
  }

  /** Behaviour WK-04: one that is behind no node is reached through this one. */
  private provider(network: Network, address: IPAddress): IPAddress | null {
    return providerOf(network, address) ?? this.parts.table().node.address;
  }

  private freeMac(address: IPAddress): string {
    const mac = remoteMac(address, (taken) => (this.macs.get(taken) ?? address) !== address);
    this.macs.set(mac, address);
    return mac;
  }

  /** In overlay networks: the source of balanced traffic, and addresses of Services, behind this node (behaviour WK-02, WK-04). */
  private special(network: Network, address: IPAddress): MadeEndpoint | null {
    if (!network.isOverlay) return null;
    const { table, interfaceMac } = this.parts;
    const node = table().node.address;
    const mac = node === null ? null : interfaceMac(node);
    if (address === this.parts.sourceVip())
      return { isRemote: false, mac: mac === null ? '' : normalMac(mac), provider: null };
    if (node === null || mac === null || !table().clusterAddresses.has(address)) return null;
    return { isRemote: true, mac: normalMac(mac), provider: node };
  }

  /** Link addresses of what HNS holds. */
  noteMacs(): void {
    this.macs.clear();
    for (const [key, { mac }] of this.parts.ledgers.endpoints.acknowledged) this.macs.set(mac, key as IPAddress);
  }
}

/** Those whose address is known, and those that are elsewhere: one without an address may get it yet. */
function steadyEndpoints({ found, ids, onNetwork, all }: Endpoints): readonly string[] {
  const addressed = new Set([...found.values(), ...ids.values()]);
  return [...all].filter((id) => addressed.has(id) || !onNetwork.has(id));
}
