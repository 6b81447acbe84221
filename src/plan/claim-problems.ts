import { inParts } from '../base/in-parts.js';
import {
  addressFromBytes,
  FAMILIES,
  familyOf,
  parsePrefix,
  prefixWithin,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../base/ip.js';
import { NO_RETRIES } from '../base/conntrack-timeouts.js';
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from '../base/service-limits.js';
import { objectKey, type ServiceRow } from '../state/rows.js';
import { nodeFacts, type PlanSettings } from './facts.js';
import { compareAge, type ForwardingTable } from './forwarding-table.js';
import { frontendCount } from './frontend-count.js';
import { frontendKey, serviceOf } from './frontend-key.js';
import { clusterIPOf, limitationsOfAllPorts, planService } from './service-plan.js';
import { printHolding } from './text.js';
import type { Conflict, FrontendKind, ServiceLimitation, ServicePlan } from './types.js';

/** A problem of a Service's request on any node of a cluster: the Service does not get it, or should not. */
export interface ClaimProblem {
  readonly rule: 'frontends' | 'conflict' | 'port' | 'node-address' | 'service-range' | 'pod-range' | 'source-ranges';
  /** `spec.externalIPs`; empty: the Service as a whole. */
  readonly path: string;
  readonly value: string;
  /** The problem of the value. */
  readonly problem: string;
  /**
   * `denied`: another Service has it. `seized`: the Service gets it, and another Service loses it. `due`: the same, and that
   * is right, as addresses of its kind come first.
   */
  readonly standing: 'denied' | 'seized' | 'due';
}

/** The rest of a cluster. */
export interface Cluster {
  /** All Services, planned by {@link ANY_NODE}. */
  readonly tables: Readonly<Record<Family, ForwardingTable>>;
  /** The Node that has an address. */
  nodeWith(address: IPAddress): string | undefined;
  /** One plan of each Service that has health checks on a port. */
  checksOn(port: number): readonly ServicePlan[];
  /** How much of one Service nodes program. */
  readonly limits: ServiceLimits;
  /** The range of Services that an address is in. */
  rangeOf(address: IPAddress): IPPrefix | undefined;
  /** The range of a Node's pods that an address is in. */
  podRangeOf(address: IPAddress): IPPrefix | undefined;
}

/** A node that is none of the cluster's, in no special mode: what clashes there clashes everywhere. */
export const ANY_NODE: PlanSettings = {
  traits: {
    guardsClusterAddresses: true,
    guardsServiceAddresses: false,
    prefersLocal: false,
    servesLocalhost: false,
    listensOnLocalhost: false,
    retriesAttempts: 'none',
    balancesOnly: false,
  },
  nodeName: '',
  bindAddress: addressFromBytes(new Uint8Array(4)),
  allowExternalIPs: true,
  // A rule of its own looks at ranges and cluster IPs: nodes may be set to serve them.
  externalIPsInClusterRanges: true,
  localDetection: { type: 'ClusterCIDR', prefixes: [] },
  masqueradeAll: false,
  masqueradeBit: 14,
  affinityIPv6Prefix: 128,
  nodePortAddresses: [],
  limits: DEFAULT_SERVICE_LIMITS,
  retryTimes: NO_RETRIES,
};

const FACTS = nodeFacts(ANY_NODE, undefined);

/** Fields that claims of a kind come from. */
const FIELDS: Readonly<Record<FrontendKind, string>> = {
  ClusterIP: 'spec.clusterIPs',
  ExternalIP: 'spec.externalIPs',
  LoadBalancer: 'status.loadBalancer.ingress',
  NodePort: 'spec.ports',
};

/**
 * The problems of a Service, whether the tables have it or not: its own entries in them do not count against it. A Service
 * that asks for too many frontends is not planned, so that it takes no time. Of its claims only the addresses are known.
 */
export function claimProblems(service: ServiceRow, cluster: Cluster): readonly ClaimProblem[] {
  return [...claimProblemSteps(service, cluster)].flat();
}

/** As {@link claimProblems}, in steps that take a few milliseconds each for the largest Service within the limits. */
export function* claimProblemSteps(service: ServiceRow, cluster: Cluster): Generator<readonly ClaimProblem[]> {
  const tooMany = FAMILIES.flatMap((family) => frontendProblem(family, service, cluster.limits) ?? []);
  if (tooMany.length > 0) {
    yield tooMany;
    yield* addressProblems(service, cluster);
    return;
  }
  const settings = { ...ANY_NODE, limits: cluster.limits };
  const plans: ServicePlan[] = [];
  for (const family of FAMILIES) {
    yield limitProblems(family, limitationsOfAllPorts(family, service, FACTS, settings));
    const parts = partsOf(family, service).entries();
    for (const [index, { row, kinds }] of parts) {
      const plan = planService(family, row, [], FACTS, settings);
      if (plan === null) break;
      if (index === 0) plans.push(plan);
      const part = { ...plan, frontends: plan.frontends.filter(({ kind }) => kinds === null || kinds.has(kind)) };
      yield Array.from(cluster.tables[family].conflictsOf(part), conflictProblem);
      yield nodePortProblems(part, cluster);
    }
  }
  yield portProblems(service, plans, cluster);
  yield* addressProblems(service, cluster);
  yield sourceProblems(service, plans);
}

/** Frontends or addresses that take a millisecond or two, and ports of Services with several addresses. */
const PART = 500;
const PORTS = 50;

interface Part {
  readonly row: ServiceRow;
  /** Those of its frontends that no other part has; null: all. */
  readonly kinds: ReadonlySet<FrontendKind> | null;
}

const EXTERNAL: ReadonlySet<FrontendKind> = new Set(['ExternalIP', 'LoadBalancer']);

/** A Service in parts of so many frontends. Together they claim what it claims. */
function partsOf(family: Family, service: ServiceRow): readonly Part[] {
  if (frontendCount(family, service) <= PART) return [{ row: service, kinds: null }];
  const taken = new Set<IPAddress>();
  const isNew = (address: IPAddress): boolean => familyOf(address) === family && taken.size !== taken.add(address).size;
  const ingress = service.loadBalancerIngress.filter(({ ipMode, address }) => ipMode === 'VIP' && isNew(address));
  const externalIPs = service.externalIPs.filter(isNew);
  const atOnce = Math.min(service.ports.length, taken.size > 1 ? PORTS : PART);
  const addresses = Math.max(1, Math.floor(PART / atOnce));
  const rest = { ...service, loadBalancerSourceRanges: [] };
  return inParts(service.ports, atOnce).flatMap((ports) => [
    { row: { ...rest, ports, loadBalancerIngress: [], externalIPs: [] }, kinds: null },
    ...inParts(ingress, addresses).map((loadBalancerIngress) => ({
      row: { ...rest, ports, loadBalancerIngress, externalIPs: [] },
      kinds: EXTERNAL,
    })),
    ...inParts(externalIPs, addresses).map((some) => ({
      row: { ...rest, ports, loadBalancerIngress: [], externalIPs: some },
      kinds: EXTERNAL,
    })),
  ]);
}

function frontendProblem(family: Family, service: ServiceRow, { frontends }: ServiceLimits): ClaimProblem | null {
  const count = clusterIPOf(family, service) === null ? 0 : frontendCount(family, service);
  if (count <= frontends) return null;
  const problem = `ports and addresses make ${count} frontends over ${family}, of which a Service has at most ${frontends}`;
  return { rule: 'frontends', path: 'spec.ports', value: String(service.ports.length), problem, standing: 'denied' };
}

/** What of its frontends no node programs. */
export function limitProblems(family: Family, limitations: readonly ServiceLimitation[]): readonly ClaimProblem[] {
  return limitations
    .filter(({ cause }) => cause === 'limit')
    .map(({ text }) => ({ rule: 'frontends', path: 'spec.ports', value: family, problem: text, standing: 'denied' }));
}

function conflictProblem({
  conflict,
  own,
}: {
  readonly conflict: Conflict;
  readonly own: 'winner' | 'loser';
}): ClaimProblem {
  const { frontend, loser, winnerKind, loserKind, reason } = conflict;
  const path = FIELDS[own === 'winner' ? winnerKind : loserKind];
  if (own === 'loser')
    return { rule: 'conflict', path, value: frontend, problem: printHolding(conflict), standing: 'denied' };
  const problem = `is claimed by ${loser} too, which does not get it`;
  return { rule: 'conflict', path, value: frontend, problem, standing: reason === 'kind' ? 'due' : 'seized' };
}

/** External IPs that yield to node ports, as {@link ForwardingTable} has it on the Node whose address it is. */
function nodePortProblems({ service, family, frontends }: ServicePlan, cluster: Cluster): readonly ClaimProblem[] {
  return frontends.flatMap(({ key, kind, address, port, protocol }): readonly ClaimProblem[] => {
    if (kind !== 'ExternalIP' || address === null) return [];
    const node = cluster.nodeWith(address);
    const nodePort =
      node === undefined ? undefined : cluster.tables[family].frontend(frontendKey(null, port, protocol));
    if (node === undefined || nodePort === undefined || serviceOf(nodePort.servicePort) === service) return [];
    const problem = `is the node port of ${nodePort.servicePort} on Node ${node}, which comes before external IP`;
    return [{ rule: 'conflict', path: FIELDS.ExternalIP, value: key, problem, standing: 'denied' }];
  });
}

/** A health check is a listener on every node, and a node port takes connections before listeners do. */
function portProblems(service: ServiceRow, plans: readonly ServicePlan[], cluster: Cluster): readonly ClaimProblem[] {
  const [plan] = plans;
  if (plan === undefined) return [];
  const own = plan.service;
  const problem = (path: string, port: number, holder: string, standing: ClaimProblem['standing']): ClaimProblem => {
    return { rule: 'port', path, value: String(port), problem: `is ${holder} already`, standing };
  };
  const checkOn = (port: number): ServicePlan | undefined =>
    cluster.checksOn(port).find((other) => other.service !== own);
  const nodePorts = new Set(service.ports.flatMap((port) => (port.protocol === 'TCP' ? port.nodePort : [])));
  const problems = [...nodePorts].flatMap((port) => {
    const check = checkOn(port);
    return check === undefined ? [] : [problem(FIELDS.NodePort, port, healthCheckOf(check), 'seized')];
  });
  const port = plan.healthCheck?.port;
  if (port === undefined) return problems;
  const path = 'spec.healthCheckNodePort';
  for (const family of FAMILIES) {
    const { servicePort = own } = cluster.tables[family].frontend(frontendKey(null, port, 'TCP')) ?? {};
    if (serviceOf(servicePort) !== own)
      return [...problems, problem(path, port, `a node port of ${servicePort}`, 'denied')];
  }
  const check = checkOn(port);
  if (check === undefined) return problems;
  const standing = compareAge(plan, check).order < 0 ? 'seized' : 'denied';
  return [...problems, problem(path, port, healthCheckOf(check), standing)];
}

function healthCheckOf({ service }: ServicePlan): string {
  return `the health check port of ${service}`;
}

/** Addresses from outside that are a Node's, another Service's cluster IP, or within a range of Services or pods. */
function* addressProblems(service: ServiceRow, cluster: Cluster): Generator<readonly ClaimProblem[]> {
  const claims = new Map<IPAddress, 'LoadBalancer' | 'ExternalIP'>();
  const claim = (kind: 'LoadBalancer' | 'ExternalIP', address: IPAddress): void => {
    const clusterIP = clusterIPOf(familyOf(address), service);
    if (clusterIP !== null && clusterIP !== address && !claims.has(address)) claims.set(address, kind);
  };
  for (const { address, ipMode } of service.loadBalancerIngress) if (ipMode === 'VIP') claim('LoadBalancer', address);
  for (const address of service.externalIPs) claim('ExternalIP', address);
  const own = objectKey(service.namespace, service.name);
  const problems = ([address, kind]: readonly [IPAddress, 'LoadBalancer' | 'ExternalIP']): readonly ClaimProblem[] => {
    const rest = { path: FIELDS[kind], value: address, standing: 'denied' } as const;
    const node = cluster.nodeWith(address);
    if (node !== undefined) return [{ rule: 'node-address', problem: `is an address of Node ${node}`, ...rest }];
    const range = cluster.rangeOf(address);
    if (range !== undefined)
      return [{ rule: 'service-range', problem: `is within the range of Services ${range}`, ...rest }];
    const holder = cluster.tables[familyOf(address)].clusterAddresses.ofOther(address, own);
    if (holder !== undefined)
      return [{ rule: 'service-range', problem: `is the cluster IP of ${holder.service}`, ...rest }];
    const pods = kind === 'ExternalIP' ? cluster.podRangeOf(address) : undefined;
    return pods === undefined ? [] : [{ rule: 'pod-range', problem: `is within the range of pods ${pods}`, ...rest }];
  };
  for (const some of inParts([...claims], PART)) yield some.flatMap(problems);
}

function sourceProblems(
  { type, loadBalancerSourceRanges }: ServiceRow,
  plans: readonly ServicePlan[],
): readonly ClaimProblem[] {
  if (type !== 'LoadBalancer') return [];
  const path = 'spec.loadBalancerSourceRanges';
  const value = loadBalancerSourceRanges.join();
  const rest = { rule: 'source-ranges', path, value } as const;
  return plans.flatMap(({ family }): readonly ClaimProblem[] => {
    const own = loadBalancerSourceRanges.filter((range) => familyOf(range) === family);
    // Behaviour SV-06: a list without any range of the family admits every client.
    if (own.length === 0 && value !== '')
      return [
        { ...rest, problem: `have none of ${family}, so every client is admitted over ${family}`, standing: 'due' },
      ];
    if (own.length === 0 || !own.every(isNoSource)) return [];
    return [{ ...rest, problem: `admit no client over ${family}: no packet comes from there`, standing: 'denied' }];
  });
}

/**
 * The unspecified address, loopback, multicast and broadcast: no packet from the network has them as its source
 * (RFC 1122 section 3.2.1.3, RFC 4291 section 2).
 */
const NO_SOURCES = ['0.0.0.0/32', '127.0.0.0/8', '224.0.0.0/4', '255.255.255.255/32', '::/127', 'ff00::/8'].flatMap(
  (text) => parsePrefix(text) ?? [],
);

function isNoSource(range: IPPrefix): boolean {
  return NO_SOURCES.some((none) => prefixWithin(range, none));
}
