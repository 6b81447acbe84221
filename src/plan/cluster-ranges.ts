import { familyOf, prefixContains, prefixLength, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import type { LocalDetection } from '../base/local-detection.js';
import type { NodeRow, ServiceCIDRRow } from '../state/rows.js';
import type { FrontendKind } from './types.js';

/** The cluster's own ranges, as far as this node knows them: what is in them is no address from outside. */
export interface ClusterRanges {
  readonly services: readonly IPPrefix[];
  readonly pods: readonly IPPrefix[];
  /** Addresses of this node that are in the pods' ranges: of a flat network, or of a Node whose first pod it is. */
  readonly ownNode: readonly IPAddress[];
}

/** The known ranges of pods' addresses: of the whole cluster, or of this node. A range of all addresses tells nothing. */
export function podRanges(
  family: Family,
  localDetection: LocalDetection,
  node: NodeRow | undefined,
): readonly IPPrefix[] {
  const all =
    localDetection.type === 'ClusterCIDR'
      ? localDetection.prefixes
      : localDetection.type === 'NodeCIDR'
        ? (node?.podCIDRs ?? [])
        : [];
  return all.filter((range) => familyOf(range) === family && prefixLength(range) > 0);
}

export function clusterRanges(
  family: Family,
  localDetection: LocalDetection,
  node: NodeRow | undefined,
  serviceCIDRs: readonly ServiceCIDRRow[],
): ClusterRanges {
  const pods = podRanges(family, localDetection, node);
  const cidrs = serviceCIDRs.flatMap((row) => row.cidrs).filter((cidr) => familyOf(cidr) === family);
  return {
    services: [...new Set(cidrs)].sort(),
    pods,
    ownNode: (node?.addresses ?? []).filter((address) => rangeOf(pods, address) !== undefined),
  };
}

/** An address that a Service asks for, within one of the cluster's own ranges. */
export interface InternalAddress {
  readonly kind: Extract<FrontendKind, 'ExternalIP' | 'LoadBalancer'>;
  readonly address: IPAddress;
  readonly of: 'Services' | 'pods';
  readonly range: IPPrefix;
}

/**
 * Whether an address from outside is within the cluster's own ranges. A load balancer's may be in the pods' range: in a flat
 * network pods, nodes and load balancers share it.
 */
export function internalAddress(
  kind: InternalAddress['kind'],
  address: IPAddress,
  { services, pods, ownNode }: ClusterRanges,
): InternalAddress | null {
  const service = rangeOf(services, address);
  if (service !== undefined) return { kind, address, of: 'Services', range: service };
  if (kind === 'LoadBalancer' || ownNode.includes(address)) return null;
  const pod = rangeOf(pods, address);
  return pod === undefined ? null : { kind, address, of: 'pods', range: pod };
}

function rangeOf(ranges: readonly IPPrefix[], address: IPAddress): IPPrefix | undefined {
  return ranges.find((range) => prefixContains(range, address));
}
