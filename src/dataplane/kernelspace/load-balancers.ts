import type { EndpointList } from '../../base/endpoint-list.js';
import { parseAddress, type Family } from '../../base/ip.js';
import { isPort, protocolFromNumber, protocolNumber } from '../../base/protocol.js';
import {
  HCN_DISTRIBUTION,
  HCN_LOAD_BALANCER_FLAGS,
  HCN_PORT_MAPPING_FLAGS,
  type HcnFeatures,
  type HcnLoadBalancer,
} from '../../native/contract.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import { KEEPS_DESTINATION, type FrontendKey, type FrontendPlan } from '../../plan/types.js';
import { objects, text, texts, whole } from './members.js';

/** From the plan to load balancers of HNS, frontend by frontend (behaviour WK-05). Nothing here knows what HNS holds. */

/** A load balancer's handling of its connections. HNS's objects supply endpoints and the source. */
export interface Handling {
  /** The port of every endpoint. */
  readonly internalPort: number;
  /** {@link HCN_LOAD_BALANCER_FLAGS} */
  readonly flags: number;
  /** {@link HCN_PORT_MAPPING_FLAGS} */
  readonly portFlags: number;
  /** {@link HCN_DISTRIBUTION} */
  readonly distribution: number;
}

/** A load balancer as HNS holds it, or is to hold it. */
export interface LoadBalancer extends Handling {
  /** Empty: none. */
  readonly sourceVip: string;
  /** Ids, sorted. */
  readonly endpoints: readonly string[];
}

/** The mode's configuration of load balancers. */
export interface Balancing {
  /** Whether answers from cluster IPs' endpoints go straight to the client. */
  readonly enableDSR: boolean;
  readonly features: HcnFeatures;
}

export function handlingOf(plan: FrontendPlan, { enableDSR, features }: Balancing): Handling {
  const { kind, family, masquerade, affinitySeconds, loadBalancerFlags, endpoints } = plan;
  const isLocal = masquerade === 'node';
  const keeps = kind === 'LoadBalancer' && features.dsr && (loadBalancerFlags & KEEPS_DESTINATION) !== 0;
  const isDirect = kind === 'ClusterIP' ? enableDSR : features.dsr && (isLocal || keeps);
  return {
    internalPort: firstPort(endpoints),
    flags: familyFlag(family) | (isDirect ? HCN_LOAD_BALANCER_FLAGS.directServerReturn : 0),
    portFlags:
      (kind === 'ClusterIP' ? 0 : HCN_PORT_MAPPING_FLAGS.vipExternalIp) |
      (kind === 'NodePort' ? HCN_PORT_MAPPING_FLAGS.localRoutedVip : 0) |
      (keeps ? KEPT : 0),
    distribution:
      affinitySeconds !== null && features.sessionAffinity ? HCN_DISTRIBUTION.sourceIp : HCN_DISTRIBUTION.connection,
  };
}

const KEPT = HCN_PORT_MAPPING_FLAGS.useMux | HCN_PORT_MAPPING_FLAGS.preserveDestination;

/** Passes health checks of a load balancer on to this node (behaviour WK-08). */
export function healthCheckHandling(
  { family, loadBalancerFlags }: FrontendPlan,
  port: number,
  { features }: Balancing,
): Handling {
  const keeps = features.dsr && (loadBalancerFlags & KEEPS_DESTINATION) !== 0;
  return {
    internalPort: port,
    flags: familyFlag(family),
    portFlags: keeps ? KEPT : 0,
    distribution: HCN_DISTRIBUTION.connection,
  };
}

function familyFlag(family: Family): number {
  return family === 'IPv6' ? HCN_LOAD_BALANCER_FLAGS.ipv6 : 0;
}

/** The plan's lists are of one port each. */
function firstPort(endpoints: EndpointList): number {
  return endpoints.count === 0 ? 0 : endpoints.port(0);
}

export function sameLoadBalancer(one: LoadBalancer, other: LoadBalancer): boolean {
  return (
    one.internalPort === other.internalPort &&
    one.flags === other.flags &&
    one.portFlags === other.portFlags &&
    one.distribution === other.distribution &&
    one.sourceVip === other.sourceVip &&
    one.endpoints.length === other.endpoints.length &&
    one.endpoints.every((id, index) => id === other.endpoints[index])
  );
}

/** As HNS takes it; members that are empty or 0 are left out, as HNS does. */
export function settingsOf(key: FrontendKey, loadBalancer: LoadBalancer): HcnLoadBalancer {
  const { address, protocol, port } = parseFrontendKey(key);
  const { sourceVip, endpoints, internalPort, distribution, portFlags, flags } = loadBalancer;
  return {
    HostComputeEndpoints: endpoints,
    ...(sourceVip === '' ? {} : { SourceVIP: sourceVip }),
    FrontendVIPs: address === null ? [] : [address],
    PortMappings: [
      {
        Protocol: protocolNumber(protocol),
        InternalPort: internalPort,
        ExternalPort: port,
        ...(distribution === 0 ? {} : { DistributionType: distribution }),
        ...(portFlags === 0 ? {} : { Flags: portFlags }),
      },
    ],
    SchemaVersion: { Major: 2, Minor: 0 },
    ...(flags === 0 ? {} : { Flags: flags }),
  };
}

export function familyOfLoadBalancer({ Flags, FrontendVIPs }: HcnLoadBalancer): Family {
  if (texts(FrontendVIPs).some((vip) => vip.includes(':'))) return 'IPv6';
  return (whole(Flags) & HCN_LOAD_BALANCER_FLAGS.ipv6) === 0 ? 'IPv4' : 'IPv6';
}

/** The frontend and its load balancer. Null if no proxy makes it: several ports or addresses, or neither TCP nor UDP. */
export function readLoadBalancer(
  properties: HcnLoadBalancer,
): { readonly key: FrontendKey; readonly loadBalancer: LoadBalancer } | null {
  const [mapping, ...others] = objects(properties.PortMappings);
  const [vip, ...furtherVips] = texts(properties.FrontendVIPs);
  if (mapping === undefined || others.length + furtherVips.length > 0) return null;
  const address = vip === undefined ? null : parseAddress(vip);
  const protocol = protocolFromNumber(whole(mapping.Protocol));
  const port = whole(mapping.ExternalPort);
  if (protocol === null || !isPort(port) || (vip !== undefined && address === null)) return null;
  const sourceVip = text(properties.SourceVIP);
  return {
    key: frontendKey(address, port, protocol),
    loadBalancer: {
      internalPort: whole(mapping.InternalPort),
      flags: whole(properties.Flags) & KNOWN_FLAGS,
      portFlags: whole(mapping.Flags) & KNOWN_PORT_FLAGS,
      distribution: whole(mapping.DistributionType),
      sourceVip: parseAddress(sourceVip) ?? sourceVip,
      endpoints: endpointsOf(properties),
    },
  };
}

/** Ids, sorted. */
export function endpointsOf({ HostComputeEndpoints }: HcnLoadBalancer): readonly string[] {
  return texts(HostComputeEndpoints)
    .map((id) => id.toLowerCase())
    .sort();
}

/** HNS may set other flags, which are ignored. */
const KNOWN_FLAGS = HCN_LOAD_BALANCER_FLAGS.directServerReturn | HCN_LOAD_BALANCER_FLAGS.ipv6;
const KNOWN_PORT_FLAGS = KEPT | HCN_PORT_MAPPING_FLAGS.localRoutedVip | HCN_PORT_MAPPING_FLAGS.vipExternalIp;
