import { printEndpoint } from '../base/endpoint-list.js';
import { familyOf, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import type { Protocol } from '../base/protocol.js';
import type { ObjectKey, ServicePortRow, ServiceRow } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import { percentages, printBy, selectionFacts } from './balance.js';
import { resetPolicy } from './departures.js';
import { anyContains, nodeFacts, type ModeTraits, type PlanSettings } from './facts.js';
import { internalAddress } from './cluster-ranges.js';
import type { ForwardingTable } from './forwarding-table.js';
import { clientKeyOf, frontendKey, heldClientKeys, portNameOf, serviceOf } from './frontend-key.js';
import type { Question, Sender } from './question.js';
import type { SkippedSlice } from './candidates.js';
import { examineEndpoints, type EndpointVerdict } from './examine.js';
import type { Exclusion } from './selection-rules.js';
import { retryOf } from './retry.js';
import { printInternal, RANGES_WITHOUT_EFFECT } from './limitations.js';
import { hasLocalAlone, localPolicies } from './service-plan.js';
import {
  nodePortRefusal,
  sourceKind,
  tracePacket,
  type MasqueradeReason,
  type SourceKind,
  type Trace,
  type Verdict,
} from './trace.js';
import type {
  Conflict,
  FrontendKey,
  FrontendKind,
  FrontendPlan,
  NodePlan,
  Shares,
  ServiceLimitation,
} from './types.js';

/** What happens to the first packet of a connection on this node, and why. As JSON it is the answer of `pointsman explain -o json`. */
export interface Explanation {
  readonly family: Family;
  readonly protocol: Protocol;
  /** `address:port`. */
  readonly destination: string;
  readonly source: ExplainedSource;
  readonly verdict: Verdict;
  /** Null: no Service has the address and port on this node. */
  readonly frontend: ExplainedFrontend | null;
  /** Other Services that claim the frontend and do not get it. */
  readonly conflicts: readonly Conflict[];
  /** Null without a frontend. */
  readonly policy: ExplainedPolicy | null;
  /** Every endpoint of the port, those used first. */
  readonly endpoints: readonly ExplainedEndpoint[];
  readonly skippedSlices: readonly SkippedSlice[];
  /** How the endpoint is picked, if not by chance alone with equal shares; null: it is. */
  readonly balance: ExplainedBalance | null;
  /** ClientIP affinity; null: none. */
  readonly affinitySeconds: number | null;
  /** After how many seconds an unanswered attempt goes to another endpoint; null: it stays. */
  readonly retrySeconds: number | null;
  /** The frontend by whose key the client is remembered; null: the one asked for. */
  readonly clientKey: FrontendKey | null;
  /** Null: all sources are admitted. */
  readonly sourceRanges: readonly IPPrefix[] | null;
  /** Null unless the packet is forwarded. */
  readonly masquerade: MasqueradeReason | null;
  /** Endpoints on the node itself, whose connections keep their source: see {@link Trace.delivered}. */
  readonly delivered: readonly string[];
  /** Further hints, one sentence each. */
  readonly notes: readonly string[];
}

export interface ExplainedBalance {
  /** As the annotation spells it. */
  readonly by: string;
  /** The table's slots for this packet; null: the mode has none. */
  readonly slots: number | null;
}

export interface ExplainedSource {
  readonly sender: Sender;
  /** Null: any. */
  readonly address: IPAddress | null;
  /** The packet's input interface; null: not known, or sent by the node itself. */
  readonly interface: string | null;
  readonly kind: SourceKind;
}

interface ExplainedFrontend {
  readonly key: FrontendKey;
  readonly kind: FrontendKind;
  /** `namespace/name:port`. */
  readonly servicePort: string;
}

export interface ExplainedPolicy {
  readonly field: 'internalTrafficPolicy' | 'externalTrafficPolicy';
  readonly value: 'Cluster' | 'Local';
  /** The policy by which endpoints are chosen for this packet. */
  readonly applied: 'Cluster' | 'Local';
}

export interface ExplainedEndpoint {
  /** `address:port`. */
  readonly endpoint: string;
  readonly node: string | null;
  /** Null: it is none, or its name is not known. */
  readonly pod: string | null;
  readonly conditions: readonly ('ready' | 'serving' | 'terminating')[];
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Null: the packet may go there. */
  readonly excluded: Exclusion | null;
  /** Its percentage of all connections; absent: equal shares. */
  readonly share?: number;
}

/**
 * Explains the forwarding table's decision on a packet by the sources' rows of its Service. Pure. It calls the functions
 * that plan, so its reasons are those of the decision. It walks the whole table: too slow to be called for every change.
 *
 * @param localAddresses every address of the node.
 */
export function explain(
  snapshot: Snapshot,
  table: ForwardingTable,
  settings: PlanSettings,
  localAddresses: readonly IPAddress[],
  question: Question,
): Explanation {
  const { destination, port, protocol } = question;
  const notes: string[] = [];
  const source = locate(snapshot, table.node, settings, localAddresses, question, notes);
  const trace = tracePacket(
    table,
    { source: source.address, from: source.kind, destination, port, protocol },
    localAddresses,
    settings.traits,
  );
  const { frontend } = trace;
  if (frontend === null) notes.push(...aboutUnserved(snapshot, table, settings, localAddresses, question));
  notes.push(...aboutUnplanned(snapshot, table, trace.frontend, destination));
  notes.push(...balanceNotes(table, frontend));
  notes.push(...resetNotes(snapshot, settings, frontend));
  if (table.unsynced) notes.push('the sources could not read everything yet: what is missing here may be wanted');
  const key = frontend?.key ?? frontendKey(destination, port, protocol);
  return {
    family: table.family,
    protocol,
    destination: printEndpoint(destination, port),
    source,
    verdict: trace.verdict,
    frontend: frontend && { key, kind: frontend.kind, servicePort: frontend.servicePort },
    conflicts: table.conflictsAt(key),
    ...ofService(snapshot, table, settings, trace, notes),
    balance: explainedBalance(trace),
    affinitySeconds: frontend?.affinitySeconds ?? null,
    retrySeconds: frontend === null ? null : retryOf(frontend, table.node.retryTimes),
    clientKey: heldClientKey(table, trace),
    sourceRanges: frontend?.sourceRanges ?? null,
    masquerade: trace.masquerade,
    delivered: trace.delivered,
    notes,
  };
}

function sharesFor({ frontend, local }: Trace): Shares | null {
  const balance = frontend?.balance ?? null;
  return (local ? balance?.localEndpoints : balance?.endpoints) ?? null;
}

function explainedBalance(trace: Trace): ExplainedBalance | null {
  const [balance, shares] = [trace.frontend?.balance ?? null, sharesFor(trace)];
  return balance === null || shares === null ? null : { by: printBy(balance.by), slots: shares.slots?.length ?? null };
}

/** The Service's requests about its connections that are not met. */
function balanceNotes(table: ForwardingTable, frontend: FrontendPlan | null): readonly string[] {
  const limitations = frontend === null ? [] : (table.plan(serviceOf(frontend.servicePort))?.limitations ?? []);
  return limitations.filter(({ cause }) => BALANCE_CAUSES.includes(cause)).map(({ text }) => text);
}

/** When connections of the Service end although neither side ends them. */
function resetNotes(snapshot: Snapshot, settings: PlanSettings, frontend: FrontendPlan | null): readonly string[] {
  const service = frontend?.protocol === 'TCP' ? snapshot.service(serviceOf(frontend.servicePort)) : undefined;
  if (service === undefined || settings.traits.resetsConnections !== true) return [];
  const policy = resetPolicy(service, settings);
  const drainSeconds = service.endingConnections?.drainSeconds ?? null;
  return [
    ...(policy === 'off' ? [] : [RESET_NOTES[policy]]),
    ...(drainSeconds === null
      ? []
      : [`connections are reset when their endpoint has been terminating for ${drainSeconds} s`]),
  ];
}

const RESET_NOTES = {
  removed: 'connections are reset when the address of their pod has been in no EndpointSlice for 1 s',
  service: 'connections are reset when their endpoint has not been in this Service for 1 s',
} as const;

const BALANCE_CAUSES: readonly ServiceLimitation['cause'][] = ['annotation', 'mode', 'slots'];

function heldClientKey(table: ForwardingTable, { frontend, local }: Trace): FrontendKey | null {
  const keys = frontend === null ? null : heldClientKeys(frontend, table);
  return frontend === null || keys === null ? null : clientKeyOf(frontend, keys, local);
}

type OfService = Pick<Explanation, 'policy' | 'endpoints' | 'skippedSlices'>;

/** The policy, and what became of each endpoint. */
function ofService(
  snapshot: Snapshot,
  table: ForwardingTable,
  settings: PlanSettings,
  trace: Trace,
  notes: string[],
): OfService {
  const { frontend, local } = trace;
  const nothing: OfService = { policy: null, endpoints: [], skippedSlices: [] };
  // The frontends of a Service that cannot be planned do not come from its present rows in the sources.
  if (frontend === null || isBehind(table, serviceOf(frontend.servicePort))) return nothing;
  const [service, port] = servicePortOf(snapshot, frontend);
  if (service === null || port === null) {
    notes.push(`${frontend.servicePort} is gone; the next sync takes the frontend away`);
    return nothing;
  }
  if (settings.traits.balancesOnly && frontend.kind === 'LoadBalancer' && service.loadBalancerSourceRanges.length > 0)
    notes.push(RANGES_WITHOUT_EFFECT);
  const policies = localPolicies(service);
  const internal = frontend.kind === 'ClusterIP';
  const value = (internal ? policies.internal : policies.external) ? 'Local' : 'Cluster';
  const prefersLocal = settings.traits.prefersLocal && (frontend.localEndpoints?.count ?? 0) > 0;
  const { traits } = settings;
  const isLocalAlone = hasLocalAlone(traits, frontend.kind, policies.external, service);
  const usual = internal ? value : local || prefersLocal || isLocalAlone ? 'Local' : 'Cluster';
  const slices = snapshot.slicesOf(`${service.namespace}/${service.name}`);
  const facts = selectionFacts(nodeFacts(settings, snapshot.node(settings.nodeName)), service, settings);
  const examine = (policy: 'Local' | 'Cluster'): ReturnType<typeof examineEndpoints> =>
    examineEndpoints(frontend.family, port, slices, facts, { policy, onePort: traits.balancesOnly });
  const hasLocal = (frontend.localEndpoints?.count ?? 0) > 0;
  // As frontends are planned: the node's own serve those from here where policy Cluster leaves none.
  const isNowhereElse = hasLocal && examine(usual).endpoints.every(({ excluded }) => excluded !== null);
  const applied = isNowhereElse ? 'Local' : usual;
  const { endpoints, skipped } = examine(applied);
  return {
    policy: { field: internal ? 'internalTrafficPolicy' : 'externalTrafficPolicy', value, applied },
    endpoints: endpoints
      .map(explainedEndpoint)
      .map(limited(frontend, local, traits))
      .map(withShare(trace)),
    skippedSlices: skipped,
  };
}

/** The list that applies to the packet: clients outside may have one of their own. */
function listOf({ endpoints, localEndpoints }: FrontendPlan, local: boolean): readonly string[] {
  return ((local ? localEndpoints : null) ?? endpoints).toStrings();
}

/** Those that would be used but for the platform's limit, or the shares of zones. */
function limited(
  frontend: FrontendPlan,
  local: boolean,
  { endpointLimits }: ModeTraits,
): (endpoint: ExplainedEndpoint) => ExplainedEndpoint {
  const excluded = endpointLimits === undefined ? 'zone-share' : 'over-limit';
  const used = new Set(listOf(frontend, local));
  return (endpoint) =>
    endpoint.excluded === null && !used.has(endpoint.endpoint) ? { ...endpoint, excluded } : endpoint;
}

function withShare(trace: Trace): (endpoint: ExplainedEndpoint) => ExplainedEndpoint {
  const { frontend, local } = trace;
  const shares = sharesFor(trace);
  if (frontend === null || shares === null) return (endpoint) => endpoint;
  const names = listOf(frontend, local);
  const parts = percentages(shares);
  const byName = new Map(names.map((name, place) => [name, parts[place] ?? 0]));
  return (endpoint) => {
    const share = endpoint.excluded === null ? byName.get(endpoint.endpoint) : undefined;
    return share === undefined ? endpoint : { ...endpoint, share };
  };
}

export function explainedEndpoint({
  address,
  port,
  nodeName,
  podName,
  zoneHints,
  nodeHints,
  excluded,
  ...conditions
}: EndpointVerdict): ExplainedEndpoint {
  return {
    endpoint: printEndpoint(address, port),
    node: nodeName,
    pod: podName,
    conditions: CONDITIONS.filter((condition) => conditions[condition]),
    zoneHints,
    nodeHints,
    excluded,
  };
}

/** Whether the table has a Service's former state, and not the sources' present one. */
function isBehind({ unplanned, deferred }: ForwardingTable, service: ObjectKey): boolean {
  return unplanned.has(service) || deferred.has(service);
}

/** Services whose present state is not planned: the one that has the frontend, or those that would have the address. */
function aboutUnplanned(
  snapshot: Snapshot,
  { unplanned, deferred }: ForwardingTable,
  frontend: FrontendPlan | null,
  destination: IPAddress,
): readonly string[] {
  const has = (key: ObjectKey): boolean => {
    const service = snapshot.service(key);
    const ingress = service?.loadBalancerIngress.map(({ address }) => address) ?? [];
    return [...(service?.clusterIPs ?? []), ...(service?.externalIPs ?? []), ...ingress].includes(destination);
  };
  const isAbout = (key: ObjectKey): boolean => (frontend === null ? has(key) : serviceOf(frontend.servicePort) === key);
  const failed = [...unplanned].filter(([key]) => isAbout(key));
  return [
    ...failed.map(
      ([key, reason]) => `Service ${key} cannot be planned, so it is as it was, which is tried again: ${reason}`,
    ),
    ...[...deferred]
      .filter(isAbout)
      .map((key) => `Service ${key} has changed, and a sync that follows soon takes that: it is as it was`),
  ];
}

const CONDITIONS = ['ready', 'serving', 'terminating'] as const;

function servicePortOf(
  snapshot: Snapshot,
  frontend: FrontendPlan,
): readonly [ServiceRow | null, ServicePortRow | null] {
  const { servicePort, address, port, protocol } = frontend;
  const portName = portNameOf(servicePort);
  const service = snapshot.service(serviceOf(frontend.servicePort)) ?? null;
  const row = service?.ports.find(
    (candidate) =>
      candidate.name === portName &&
      candidate.protocol === protocol &&
      (address === null ? candidate.nodePort : candidate.port) === port,
  );
  return [service, row ?? null];
}

/** The sender's class in the rules: a pod, the node, or another source. */
function locate(
  snapshot: Snapshot,
  node: NodePlan,
  settings: PlanSettings,
  localAddresses: readonly IPAddress[],
  { sender, destination }: Question,
  notes: string[],
): ExplainedSource {
  const byInterface = node.localDetector !== null && node.localDetector.type !== 'source-prefix';
  switch (sender.type) {
    case 'external':
      return { sender, address: null, interface: null, kind: 'other' };
    case 'node': {
      const facts = nodeFacts(settings, snapshot.node(settings.nodeName));
      const address = facts.addresses[familyOf(destination)];
      const pod = sourceKind(node, address, null, []) === 'pod';
      return { sender, address, interface: null, kind: pod ? 'pod' : 'node' };
    }
    case 'interface': {
      if (node.localDetector?.type === 'source-prefix')
        notes.push('pods are recognised by their address, not by an interface: ask with address%interface');
      const kind = sourceKind(node, null, sender.name, localAddresses);
      return { sender, address: null, interface: sender.name, kind };
    }
    case 'address': {
      const { address, interface: name } = sender;
      const kind = sourceKind(node, address, name, localAddresses);
      if (!byInterface || name !== null || kind === 'node') return { sender, address, interface: name, kind };
      const isPod = anyContains(snapshot.node(settings.nodeName)?.podCIDRs ?? [], address);
      notes.push(
        `pods are recognised by the interface they come in through; the sender counts as ${isPod ? 'one, being' : 'none, not being'} in the Node's podCIDRs: ask with address%interface to be sure`,
      );
      return { sender, address, interface: null, kind: isPod ? 'pod' : 'other' };
    }
  }
}

/** Hints about an address and port that no Service has on this node. */
function aboutUnserved(
  snapshot: Snapshot,
  table: ForwardingTable,
  settings: PlanSettings,
  localAddresses: readonly IPAddress[],
  { destination, port, protocol }: Question,
): readonly string[] {
  const notes: string[] = [];
  const others = [...table.frontends()].filter(({ address }) => address === destination);
  if (others.length > 0) {
    const list = others.map((frontend) => `${frontend.port}/${frontend.protocol} of ${frontend.servicePort}`).sort();
    notes.push(`the address has ${list.join(', ')}`);
  }
  const nodePort = table.frontend(frontendKey(null, port, protocol));
  const refusal = nodePortRefusal(table.node, destination, localAddresses);
  if (nodePort !== undefined && refusal !== null)
    notes.push(
      `${port}/${protocol} is a node port of ${nodePort.servicePort}; ${table.node.nodePortListener === destination ? 'only TCP ones answer on loopback' : REFUSALS[refusal]}`,
    );
  const { ranges } = nodeFacts(settings, snapshot.node(settings.nodeName), snapshot.serviceCIDRs());
  for (const { namespace, name, clusterIPs, loadBalancerIngress, externalIPs } of snapshot.services()) {
    if (loadBalancerIngress.some(({ address, ipMode }) => address === destination && ipMode === 'Proxy'))
      notes.push(`it is a load balancer address of ${namespace}/${name} with ipMode Proxy: left to the load balancer`);
    if (!settings.allowExternalIPs && externalIPs.includes(destination))
      notes.push(`it is an external IP of ${namespace}/${name}, and external IPs are switched off`);
    const isIngress = loadBalancerIngress.some(({ address, ipMode }) => address === destination && ipMode === 'VIP');
    const kind = isIngress ? 'LoadBalancer' : externalIPs.includes(destination) ? 'ExternalIP' : null;
    if (ranges === null || kind === null || clusterIPs.includes(destination)) continue;
    const internal = internalAddress(kind, destination, ranges[table.family]);
    if (internal !== null) notes.push(`${namespace}/${name}: ${printInternal([internal])}`);
  }
  return notes;
}

const REFUSALS = {
  loopback: 'node ports do not answer on loopback',
  'not-local': 'this is no address of the node',
  'not-configured': 'nodePortAddresses leave this address out',
} as const;
