import { isDeepStrictEqual } from 'node:util';
import type { BalanceSettings } from '../base/balance.js';
import {
  isUnspecified,
  familyOf,
  prefixContains,
  type Family,
  type IPAddress,
  type IPPrefix,
  type NodePortAddress,
} from '../base/ip.js';
import type { LocalDetection } from '../base/local-detection.js';
import type { RetryTimes } from '../base/conntrack-timeouts.js';
import type { ServiceLimits } from '../base/service-limits.js';
import type { NodeRow, ServiceCIDRRow } from '../state/rows.js';
import { clusterRanges, type ClusterRanges } from './cluster-ranges.js';

/** How modes differ in what they do to packets that the plan has no frontend for. */
export interface ModeTraits {
  /**
   * The mode refuses ports of cluster IPs without a Service port, and drops packets to addresses of Service CIDRs without a
   * Service (behaviour VD-15, VD-16).
   */
  readonly guardsClusterAddresses: boolean;
  /**
   * Unused ports of every Service's addresses are refused, except on the node's own addresses. The mode gives the node all of
   * the Services' addresses, and programs that listen on the node must not be reachable there (VD-17, IV-23).
   */
  readonly guardsServiceAddresses: boolean;
  /**
   * An address has one list of endpoints for all clients, pods and the node itself included (IV-03). With external policy
   * Local the list has the endpoints on this node, or all endpoints if there are none here.
   */
  readonly prefersLocal: boolean;
  /**
   * Which attempts go to another endpoint when theirs does not answer, if the settings or the Service ask for it: those of
   * all Services, of Services without session affinity, or none.
   */
  readonly retriesAttempts: 'all' | 'without-affinity' | 'none';
  /** Node ports answer on IPv4's loopback where their addresses have it (SV-32, SV-35): see {@link opensLoopback}. */
  readonly servesLocalhost: boolean;
  /** This process accepts TCP connections to node ports on loopback: see {@link nodePortListener}. */
  readonly listensOnLocalhost: boolean;
  /**
   * The platform spreads connections over endpoints and does nothing else (WK-07, WK-09): it refuses and drops none, admits
   * every source, and translates sources as it likes. It knows TCP and UDP. An address has one list of endpoints for all
   * clients, and the list is of one port. Node ports answer on every address of the node.
   */
  readonly balancesOnly: boolean;
  /**
   * How connections are shared where a Service asks for it: by tables of slots, by weights without hashing, or by schedulers
   * that do both. Absent: always equally.
   */
  readonly shares?: 'slots' | 'weights' | 'schedulers';
  /** Connections to endpoints that are gone can be reset. Absent: they go on. */
  readonly resetsConnections?: boolean;
  /**
   * The most endpoints of an address whose answers come back through it: of cluster IPs, and of others under policy Cluster.
   * Absent: no limit.
   */
  readonly endpointLimits?: { readonly internal: number; readonly external: number };
}

/** The part of the configuration that planning uses. */
export interface PlanSettings {
  readonly traits: ModeTraits;
  readonly nodeName: string;
  readonly bindAddress: IPAddress;
  readonly allowExternalIPs: boolean;
  /** External IPs and load balancer addresses within the cluster's own ranges are served. Absent: they are refused. */
  readonly externalIPsInClusterRanges?: boolean;
  readonly localDetection: LocalDetection;
  readonly masqueradeAll: boolean;
  readonly masqueradeBit: number;
  /** Prefix length that identifies an IPv6 client for session affinity, 1–128. */
  readonly affinityIPv6Prefix: number;
  /** `primary`: the node's own first address of each family. A family without entry: every local address. */
  readonly nodePortAddresses: readonly NodePortAddress[];
  readonly limits: ServiceLimits;
  /** Absent: {@link DEFAULT_BALANCE}. */
  readonly balance?: BalanceSettings;
  /** The times of the whole node. */
  readonly retryTimes: RetryTimes;
  /** Whether connections of Services that do not configure this are reset when their endpoint is gone. Absent: they are not. */
  readonly resetRemovedEndpoints?: boolean;
}

const SETTINGS = Object.keys({
  traits: true,
  nodeName: true,
  bindAddress: true,
  allowExternalIPs: true,
  externalIPsInClusterRanges: true,
  localDetection: true,
  masqueradeAll: true,
  masqueradeBit: true,
  affinityIPv6Prefix: true,
  nodePortAddresses: true,
  limits: true,
  balance: true,
  retryTimes: true,
  resetRemovedEndpoints: true,
} satisfies Record<keyof PlanSettings, true>) as readonly (keyof PlanSettings)[];

/** Whether both give the same plans. */
export function sameSettings(one: PlanSettings, other: PlanSettings): boolean {
  return SETTINGS.every((name) => isDeepStrictEqual(one[name], other[name]));
}

/** The facts of this node that planning a Service needs. */
export interface NodeFacts {
  readonly name: string;
  readonly zone: string | null;
  /** This node's first address of each family; null when not known. */
  readonly addresses: Readonly<Record<Family, IPAddress | null>>;
  /** Null: addresses in them are served, too. */
  readonly ranges: Readonly<Record<Family, ClusterRanges>> | null;
}

/** Behaviour ST-14, ST-20: the first address of each family, a specified bindAddress before them. */
export function nodeFacts(
  settings: PlanSettings,
  node: NodeRow | undefined,
  serviceCIDRs: readonly ServiceCIDRRow[] = [],
): NodeFacts {
  const first = (family: Family): IPAddress | null => {
    if (!isUnspecified(settings.bindAddress) && familyOf(settings.bindAddress) === family) return settings.bindAddress;
    return node?.addresses.find((address) => familyOf(address) === family) ?? null;
  };
  const ranges = (family: Family): ClusterRanges => clusterRanges(family, settings.localDetection, node, serviceCIDRs);
  return {
    name: settings.nodeName,
    zone: node?.zone ?? null,
    addresses: { IPv4: first('IPv4'), IPv6: first('IPv6') },
    ranges: settings.externalIPsInClusterRanges === true ? null : { IPv4: ranges('IPv4'), IPv6: ranges('IPv6') },
  };
}

/** Whether both give the same plan in a family of every Service without addresses from outside. */
export function sameFacts(family: Family, one: NodeFacts, other: NodeFacts): boolean {
  return one.name === other.name && one.zone === other.zone && one.addresses[family] === other.addresses[family];
}

/** Whether Services with addresses from outside are planned alike, if the other facts are equal. */
export function sameRanges(family: Family, one: NodeFacts, other: NodeFacts): boolean {
  return isDeepStrictEqual(one.ranges?.[family], other.ranges?.[family]);
}

export function anyContains(prefixes: readonly IPPrefix[], address: IPAddress): boolean {
  return prefixes.some((prefix) => prefixContains(prefix, address));
}
