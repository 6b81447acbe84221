import { differing } from '../differences.js';
import { Ledger } from '../ledger.js';
import { sameLoadBalancer, type LoadBalancer } from './load-balancers.js';
import type { LoadBalancerKey, LoadBalancers, EndpointKey, Endpoints, MadeEndpoint } from './listing.js';

/** The desired and the held state of one family, with the ids of HNS. */
export class Ledgers {
  readonly endpoints: Ledger<EndpointKey, MadeEndpoint>;
  readonly loadBalancers: Ledger<LoadBalancerKey, LoadBalancer>;
  readonly endpointIds = new Map<EndpointKey, string>();
  readonly loadBalancerIds = new Map<LoadBalancerKey, string>();

  constructor(now: () => number) {
    this.endpoints = new Ledger({ same: sameEndpoint, now });
    this.loadBalancers = new Ledger({ same: sameLoadBalancer, now });
    this.endpoints.markAllUnknown();
    this.loadBalancers.markAllUnknown();
  }

  /** Enters the listed state of HNS. */
  readBack(endpoints: Pick<Endpoints, 'made' | 'ids'>, loadBalancers: Pick<LoadBalancers, 'made' | 'ids'>): void {
    this.endpoints.readBackAll(
      new Map([...endpoints.made].map(([key, made]) => [key, this.known(key, made, endpoints)])),
    );
    this.loadBalancers.readBackAll(new Map(loadBalancers.made));
    fill(this.endpointIds, endpoints.ids);
    fill(this.loadBalancerIds, loadBalancers.ids);
  }

  /** With the provider that it was made with, if HNS does not report one. */
  private known(key: EndpointKey, made: MadeEndpoint, { ids }: Pick<Endpoints, 'ids'>): MadeEndpoint {
    const before = this.endpoints.acknowledged.get(key);
    const isSame = before !== undefined && made.provider === null && this.endpointIds.get(key) === ids.get(key);
    return isSame ? { ...made, provider: before.provider } : made;
  }

  /** Values lost, altered or added since they were acknowledged, a line each. */
  differences(endpoints: Pick<Endpoints, 'made'>, loadBalancers: Pick<LoadBalancers, 'made'>): readonly string[] {
    return [
      ...differing(this.endpoints, endpoints.made, sameEndpoint, (key) => `endpoint ${key}`),
      ...differing(this.loadBalancers, loadBalancers.made, sameLoadBalancer, (key) => `load balancer ${key}`),
    ];
  }
}

/**
 * A provider that HNS does not report is taken for right: to make all endpoints anew would be worse. So is the link address
 * of an endpoint on this node, which HNS chooses.
 */
function sameEndpoint(one: MadeEndpoint, other: MadeEndpoint): boolean {
  if (one.isRemote !== other.isRemote || (one.isRemote && one.mac !== other.mac)) return false;
  return one.provider === null || other.provider === null || one.provider === other.provider;
}

function fill<Key>(ids: Map<Key, string>, listed: ReadonlyMap<Key, string>): void {
  ids.clear();
  for (const [key, id] of listed) ids.set(key, id);
}

/** Pending keys, and quarantined keys whose time has come. */
export function toSend<Key>(ledger: { pending(): Iterable<Key>; due(): readonly Key[] }): readonly Key[] {
  return [...ledger.pending(), ...ledger.due()];
}
