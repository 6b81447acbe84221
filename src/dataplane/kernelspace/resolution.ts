import { familyOf, type Family, type IPAddress } from '../../base/ip.js';
import type { LoadBalancer } from './load-balancers.js';
import type { Wanted } from './desired.js';
import { providerOf, type Network } from './listing.js';
import type { FamilyTable, FrontendPlan } from '../../plan/types.js';

/** The facts of HNS and the node that a load balancer is made of beside its plan. */
export interface Resolution {
  readonly network: Network;
  /** The id of the endpoint at an address; null: HNS has none yet. */
  readonly idOf: (address: IPAddress) => string | null;
  /** Whether the endpoint is on this node. */
  readonly isOwn: (address: IPAddress) => boolean;
  /** The endpoint that health checks go to; null: there is none. */
  readonly healthCheckEndpoint: string | null;
  readonly sourceVip: IPAddress | null;
  /** The node's own. */
  readonly nodeAddress: IPAddress | null;
}

/** The load balancer with what is there of its endpoints; null: nothing is. */
export function resolve({ handling, endpoints }: Wanted, resolution: Resolution): LoadBalancer | null {
  const { idOf, healthCheckEndpoint } = resolution;
  const ids = endpoints === null ? [healthCheckEndpoint] : endpoints.map(idOf);
  const there = ids.filter((id) => id !== null);
  if (there.length === 0) return null;
  return { ...handling, sourceVip: sourceOf(endpoints ?? [], resolution), endpoints: [...new Set(there)].sort() };
}

/**
 * The rest of an existing load balancer whose frontend has no endpoint for new connections; null: it has to go. It was made
 * for an endpoint that may still have connections, so it stays as long as one of those is left.
 *
 * @param frontend undefined: the plan does not have it any more.
 */
export function remainder(
  held: LoadBalancer | undefined,
  frontend: Pick<FrontendPlan, 'draining'> | undefined,
  idOf: Resolution['idOf'],
): LoadBalancer | null {
  const draining = frontend?.draining ?? null;
  if (held === undefined || draining === null) return null;
  const ids = new Set<string>();
  for (let index = 0; index < draining.count; index++) {
    const id = draining.port(index) === held.internalPort ? idOf(draining.address(index)) : null;
    if (id !== null) ids.add(id);
  }
  return held.endpoints.some((id) => ids.has(id)) ? { ...held, endpoints: [...ids].sort() } : null;
}

/** Behaviour WK-06: on overlay networks what goes to nodes, or out of the cluster, has the node's address. */
function sourceOf(endpoints: readonly IPAddress[], { network, sourceVip, nodeAddress, isOwn }: Resolution): string {
  const leaves = (address: IPAddress): boolean => {
    if (isOwn(address)) return false;
    const provider = providerOf(network, address);
    return provider === null || provider === address;
  };
  if (!network.isOverlay) return '';
  return (nodeAddress !== null && endpoints.some(leaves) ? nodeAddress : sourceVip) ?? '';
}

/** The configured source, if it is of the family. */
export function sourceVipOf(family: Family, configured: IPAddress | null): IPAddress | null {
  return configured !== null && familyOf(configured) === family ? configured : null;
}

/** What the last look at HNS found beside our own objects. */
export interface Found {
  readonly network: Network;
  readonly healthCheckEndpoint: string | null;
  /** The source of what is balanced on overlay networks; null: there is none. */
  readonly sourceVip: IPAddress | null;
  /** Ids of endpoints that load balancers of others use. */
  readonly othersEndpoints: ReadonlySet<string>;
}

export function resolutionOf(
  { network, healthCheckEndpoint, sourceVip }: Found,
  idOf: Resolution['idOf'],
  { ownEndpoints, node }: FamilyTable,
): Resolution {
  const isOwn = (address: IPAddress): boolean => ownEndpoints.has(address);
  return { network, idOf, isOwn, healthCheckEndpoint, sourceVip, nodeAddress: node.address };
}
