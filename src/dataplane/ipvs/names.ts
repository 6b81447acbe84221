import type { Family } from '../../base/ip.js';
import type { IpsetType } from '../../native/contract.js';
import { SHARED_CHAIN } from '../xtables/names.js';

/**
 * Names in the kernel. Objects that kube-proxy has in this mode have its names here too (behaviour IV-01, IV-10 to IV-21),
 * so that either goes on where the other stopped.
 */

/** Holds the addresses of Services that the node does not have anyway. */
export const LINK = 'kube-ipvs0';

export const CHAIN = {
  ...SHARED_CHAIN,
  /** nat: what external traffic to Services with policy Local needs. */
  loadBalancer: 'KUBE-LOAD-BALANCER',
  /** nat: what is sent to a node port; filter: lets health checks in. */
  nodePort: 'KUBE-NODE-PORT',
  /** Load balancers with source ranges: the admitted sources. */
  sourceRanges: 'KUBE-SOURCE-RANGES-FIREWALL',
  /** Incoming packets for Services that must not reach them, or the node itself. */
  guard: 'KUBE-IPVS-FILTER',
  /** The same for what the node itself sends. */
  outGuard: 'KUBE-IPVS-OUT-FILTER',
  /** Where refusals are counted: what is to be refused, or dropped, for want of an endpoint. */
  noEndpoints: 'KUBE-IPVS-NO-ENDPOINTS',
  noLocal: 'KUBE-IPVS-NO-LOCAL',
} as const;

/** The purpose of a set, by the end of its name and its type. */
const SETS = {
  cluster: ['CLUSTER-IP', 'hash:ip,port'],
  external: ['EXTERNAL-IP', 'hash:ip,port'],
  externalLocal: ['EXTERNAL-IP-LOCAL', 'hash:ip,port'],
  loadBalancer: ['LOAD-BALANCER', 'hash:ip,port'],
  loadBalancerLocal: ['LOAD-BALANCER-LOCAL', 'hash:ip,port'],
  /** Load balancers with source ranges. */
  restricted: ['LOAD-BALANCER-FW', 'hash:ip,port'],
  admittedPrefixes: ['LOAD-BALANCER-SOURCE-CIDR', 'hash:ip,port,net'],
  admittedAddresses: ['LOAD-BALANCER-SOURCE-IP', 'hash:ip,port,ip'],
  tcpNodePorts: ['NODE-PORT-TCP', 'bitmap:port'],
  tcpNodePortsLocal: ['NODE-PORT-LOCAL-TCP', 'bitmap:port'],
  udpNodePorts: ['NODE-PORT-UDP', 'bitmap:port'],
  udpNodePortsLocal: ['NODE-PORT-LOCAL-UDP', 'bitmap:port'],
  sctpNodePorts: ['NODE-PORT-SCTP-HASH', 'hash:ip,port'],
  sctpNodePortsLocal: ['NODE-PORT-LOCAL-SCTP-HASH', 'hash:ip,port'],
  healthChecks: ['HEALTH-CHECK-NODE-PORT', 'bitmap:port'],
  /** Addresses on {@link LINK}. */
  addresses: ['IPVS-IPS', 'hash:ip'],
  /** The rest are ours alone. Frontends by which no client reaches an endpoint, for which new connections are refused. */
  refusing: ['NO-ENDPOINTS', 'hash:ip,port'],
  /** Frontends for which all new connections are dropped, or all but those from pods: external policy Local. */
  dropping: ['NO-LOCAL', 'hash:ip,port'],
  droppingOthers: ['NO-LOCAL-EXTERNAL', 'hash:ip,port'],
  /** Addresses that may be sent back to themselves, each as a pair with itself. */
  hairpin: ['HAIRPIN', 'hash:net,net'],
  /** Whose each frontend is, in comments, which kube-proxy's sets do not have; node ports at the loopback address. */
  names: ['SERVICE-NAMES', 'hash:ip,port'],
} as const satisfies Readonly<Record<string, readonly [name: string, type: IpsetType]>>;

export type SetRole = keyof typeof SETS;

export const SET_ROLES = Object.keys(SETS) as readonly SetRole[];

/** Those that kube-proxy does not have. */
export const OWN_ROLES: ReadonlySet<SetRole> = new Set<SetRole>([
  'refusing',
  'dropping',
  'droppingOthers',
  'hairpin',
  'names',
]);

/** Whether its elements have comments. */
export function hasComments(role: SetRole): boolean {
  return role === 'names';
}

/** Those that have frontends by address, port and protocol. */
export const FRONTEND_ROLES = SET_ROLES.filter((role) => SETS[role][1] === 'hash:ip,port');

/** kube-proxy's. */
export const SET_PREFIXES: Readonly<Record<Family, string>> = { IPv4: 'KUBE-', IPv6: 'KUBE-6-' };

/** kube-proxy's set for what it sends back to its sender, which nothing of ours needs (IV-10). */
export const PEER_HAIRPIN = 'LOOP-BACK';

/** IPSET_MAXNAMELEN − 1; kube-proxy cuts longer names. */
const NAME_LENGTH = 31;

export function setName(family: Family, role: SetRole): string {
  return (SET_PREFIXES[family] + SETS[role][0]).slice(0, NAME_LENGTH);
}

/** Sets that count what is refused or dropped, by frontend and for what reason; there where that is asked for. */
const COUNTERS = {
  noEndpoints: 'COUNT-NO-ENDPOINTS',
  noLocal: 'COUNT-NO-LOCAL',
  sourceRanges: 'COUNT-SOURCE-RANGES',
} as const;

export type CounterRole = keyof typeof COUNTERS;

export const COUNTER_ROLES = Object.keys(COUNTERS) as readonly CounterRole[];

export function counterName(family: Family, role: CounterRole): string {
  return SET_PREFIXES[family] + COUNTERS[role];
}

export function setType(role: SetRole): IpsetType {
  return SETS[role][1];
}
