import type { Family, IPAddress } from '../base/ip.js';
import type { ServiceLimits } from '../base/service-limits.js';
import type { EndpointSliceRow, ServicePortRow, ServiceRow } from '../state/rows.js';

/** The limited numbers, counted before anything is made. */
interface AskedFrontends {
  readonly ports: readonly Pick<ServicePortRow, 'nodePort'>[];
  /** Addresses of load balancers, then external ones, each once and none of them the cluster IP. */
  readonly loadBalancerAddresses: readonly IPAddress[];
  readonly externalIPs: readonly IPAddress[];
  /** The source ranges of the load balancer addresses. */
  readonly sourceRanges: number;
  /** As {@link frontendWeight} counts them. */
  readonly endpoints: number;
}

/** The frontends that one port of a Service keeps: those of its first addresses. */
export interface KeptOfPort {
  readonly clusterIP: boolean;
  readonly nodePort: boolean;
  readonly loadBalancerAddresses: number;
  readonly externalIPs: number;
}

/**
 * Decides which frontends of a Service are programmed, without making any. It uses the Service and the number of its
 * endpoints alone, so all nodes decide alike. Cluster IPs come first, then node ports, load balancers' addresses and
 * external IPs. Each address with all ports comes before the next; ports and addresses are in the order of the object. The
 * first one is always kept. The first that does not fit ends the row: nothing comes after it.
 */
export class FrontendLimit {
  readonly asked: number;
  readonly kept: number;
  private readonly nodePortRanks: readonly number[];
  private readonly keptOf: Readonly<Record<'clusterIP' | 'nodePort' | 'loadBalancer' | 'external', number>>;
  private readonly portCount: number;

  constructor(asked: AskedFrontends, limits: ServiceLimits) {
    const { ports, loadBalancerAddresses, externalIPs, sourceRanges, endpoints } = asked;
    let nodePorts = 0;
    this.nodePortRanks = ports.map(({ nodePort }) => (nodePort === 0 ? -1 : nodePorts++));
    this.portCount = ports.length;
    const room = { frontends: limits.frontends, entries: Math.max(limits.entries, endpoints + sourceRanges) };
    const take = (count: number, weight: number): number => {
      const fitting = weight === 0 ? count : Math.floor(room.entries / weight);
      const taken = Math.min(count, room.frontends, fitting);
      room.entries -= taken * weight;
      room.frontends = taken < count ? 0 : room.frontends - taken;
      return taken;
    };
    this.keptOf = {
      clusterIP: take(ports.length, endpoints),
      nodePort: take(nodePorts, endpoints),
      loadBalancer: take(ports.length * loadBalancerAddresses.length, endpoints + sourceRanges),
      external: take(ports.length * externalIPs.length, endpoints),
    };
    this.asked = ports.length * (1 + loadBalancerAddresses.length + externalIPs.length) + nodePorts;
    this.kept = Object.values(this.keptOf).reduce((sum, count) => sum + count, 0);
  }

  /** @param index of the port in the Service. */
  ofPort(index: number): KeptOfPort {
    const { clusterIP, nodePort, loadBalancer, external } = this.keptOf;
    const rank = this.nodePortRanks[index] ?? -1;
    const addresses = (count: number): number => Math.ceil((count - index) / this.portCount);
    return {
      clusterIP: index < clusterIP,
      nodePort: rank >= 0 && rank < nodePort,
      loadBalancerAddresses: Math.max(0, addresses(loadBalancer)),
      externalIPs: Math.max(0, addresses(external)),
    };
  }
}

/**
 * A frontend with session affinity may be a map and chains of its own in mode nftables, which takes as long as so many
 * endpoints. It counts in all modes, so that all nodes decide alike.
 */
export const AFFINITY_ENTRIES = 100;

/** The most that a frontend may take on any node, without its source ranges: its endpoints, and its session affinity. */
export function frontendWeight(
  family: Family,
  { affinitySeconds }: Pick<ServiceRow, 'affinitySeconds'>,
  slices: readonly EndpointSliceRow[],
): number {
  return endpointWeight(family, slices) + (affinitySeconds === null ? 0 : AFFINITY_ENTRIES);
}

/** The most that a frontend's endpoints may take on any node. A slice without endpoints is read too, and counts as one. */
export function endpointWeight(family: Family, slices: readonly EndpointSliceRow[]): number {
  let sum = 0;
  for (const slice of slices) if (slice.family === family) sum += Math.max(1, slice.count);
  return sum;
}
