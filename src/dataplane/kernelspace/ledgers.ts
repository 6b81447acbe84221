import { differing } from '../differences.js';
import { Ledger } from '../ledger.js';
import { sameBalancer, type Balancer } from './balancers.js';
import type { BalancerKey, Balancers, EndpointKey, Endpoints, MadeEndpoint } from './listing.js';

/** The desired and the held state of one family, with the ids of HNS. */
export class Ledgers {
  readonly endpoints: Ledger<EndpointKey, MadeEndpoint>;
  readonly balancers: Ledger<BalancerKey, Balancer>;
  readonly endpointIds = new Map<EndpointKey, string>();
  readonly balancerIds = new Map<BalancerKey, string>();

  constructor(now: () => number) {
    this.endpoints = new Ledger({ same: sameEndpoint, now });
    this.balancers = new Ledger({ same: sameBalancer, now });
    this.endpoints.markAllUnknown();
    this.balancers.markAllUnknown();
  }

  /** Enters the listed state of HNS. */
  readBack(endpoints: Pick<Endpoints, 'made' | 'ids'>, balancers: Pick<Balancers, 'made' | 'ids'>): void {
    this.endpoints.readBackAll(
      new Map([...endpoints.made].map(([key, made]) => [key, this.known(key, made, endpoints)])),
    );
    this.balancers.readBackAll(new Map(balancers.made));
    fill(this.endpointIds, endpoints.ids);
    fill(this.balancerIds, balancers.ids);
  }

  /** With the provider that it was made with, if HNS does not report one. */
  private known(key: EndpointKey, made: MadeEndpoint, { ids }: Pick<Endpoints, 'ids'>): MadeEndpoint {
    const before = this.endpoints.acknowledged.get(key);
    const isSame = before !== undefined && made.provider === null && this.endpointIds.get(key) === ids.get(key);
    return isSame ? { ...made, provider: before.provider } : made;
  }

  /** Values lost, altered or added since they were acknowledged, a line each. */
  differences(endpoints: Pick<Endpoints, 'made'>, balancers: Pick<Balancers, 'made'>): readonly string[] {
    return [
      ...differing(this.endpoints, endpoints.made, sameEndpoint, (key) => `endpoint ${key}`),
      ...differing(this.balancers, balancers.made, sameBalancer, (key) => `load balancer ${key}`),
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
