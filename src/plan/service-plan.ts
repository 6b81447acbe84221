import type { BalanceBy } from '../base/balance.js';
import { endpointsWithout } from '../base/endpoint-index.js';
import { firstEndpoints, type EndpointList } from '../base/endpoint-list.js';
import { familyOf, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import {
  KEEPS_DESTINATION,
  objectKey,
  READY,
  type EndpointSliceRow,
  type ObjectKey,
  type ServicePortRow,
  type ServiceRow,
} from '../state/rows.js';
import type { ModeTraits, NodeFacts, PlanSettings } from './facts.js';
import { askedBalance, balanceLimitation, PortBalance, selectionFacts, unreadableWeights } from './balance.js';
import { collect, has, pack, type Candidate } from './candidates.js';
import { frontendKey, servicePortName } from './frontend-key.js';
import { FrontendLimit, frontendWeight, type KeptOfPort } from './frontend-limit.js';
import type { Selection } from './selection-rules.js';
import { selectEndpoints, type Select } from './selection.js';
import { internalAddress, type InternalAddress } from './cluster-ranges.js';
import { retrySeconds } from './retry.js';
import { admittedSources } from './source-ranges.js';
import { makeTable, type Tables } from './slot-tables.js';
import type { Warming } from './slow-start.js';
import { printInternal, printLeftOut, printNoRange, limitationsOf } from './limitations.js';
import type {
  ClientKeys,
  FrontendKey,
  FrontendKind,
  FrontendPlan,
  HealthCheckPlan,
  ServicePlan,
  ServiceLimitation,
} from './types.js';

/**
 * The claims of one Service in one family on this node: a function of its arguments alone. Null when the Service has
 * nothing in this family (behaviour SV-01: headless, ExternalName, no cluster IP of the family).
 *
 * @param key of the Service, as the caller has it: the plan keeps this string.
 * @param hasSlots whether the node has slots left for it.
 * @param warming how far endpoints of a Service with slow start have come; null: all have reached their weight.
 * @param tables makes its tables of slots, or finds them.
 */
export function planService(
  family: Family,
  service: ServiceRow,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  settings: PlanSettings,
  select: Select = selectEndpoints,
  key: ObjectKey = objectKey(service.namespace, service.name),
  hasSlots = true,
  warming: Warming | null = null,
  tables: Tables = makeTable,
): ServicePlan | null {
  const clusterIP = clusterIPOf(family, service);
  if (clusterIP === null) return null;
  const given = [family, service, slices, key, clusterIP, node, settings, hasSlots, warming, tables] as const;
  const planner = new ServicePlanner(...given);
  const frontends = new Map<FrontendKey, FrontendPlan>();
  const hairpin = new Set<IPAddress>();
  const own = new Set<IPAddress>();
  const readyHere = new Set<IPAddress>();
  const { balancesOnly } = settings.traits;
  const limitations = planner.ofAllPorts();
  for (const [index, port] of service.ports.entries()) {
    const kept = planner.kept(index);
    // Nothing of this port is programmed: not even its endpoints are read.
    if (kept === null) continue;
    const policies = planner.policies(port);
    const keepsLocal = policies.externalLocal || (balancesOnly && keepsDestination(service));
    const wanted = listsOf(policies, keepsLocal, balancesOnly);
    const selection = select(family, port, slices, selectionFacts(node, service, settings), wanted);
    for (const address of selection.readyHere) readyHere.add(address);
    if (balancesOnly && port.protocol === 'SCTP') {
      limitations.push(...planner.limitations(port));
      continue;
    }
    for (const address of selection.hairpin) hairpin.add(address);
    if (balancesOnly) for (const address of selection.own) own.add(address);
    // One Service may name an address twice; the first kind listed by the planner keeps it.
    const unlimited = planner.frontends(index, port, kept, policies, selection);
    const ofPort = unlimited.map((plan) => planner.withinLimit(plan));
    for (const frontend of ofPort) if (!frontends.has(frontend.key)) frontends.set(frontend.key, frontend);
    if (balancesOnly) limitations.push(...planner.limitations(port, ofPort, selection.otherPorts, unlimited));
  }
  return {
    service: key,
    family,
    creationTime: service.creationTime,
    frontends: [...frontends.values()],
    hairpinAddresses: hairpin.size === 0 ? NO_ADDRESSES : [...hairpin].sort(),
    ownEndpoints: own.size === 0 ? NO_ADDRESSES : [...own].sort(),
    healthCheck: healthCheck(service, key, readyHere.size),
    limitations: limitations.length === 0 ? NO_LIMITATIONS : limitations,
  };
}

/** The lists of endpoints that a port's policies use. */
function listsOf(
  { internalLocal, accessible }: ReturnType<ServicePlanner['policies']>,
  keepsLocal: boolean,
  onePort: boolean,
): Parameters<Select>[4] {
  return { cluster: !internalLocal || accessible, local: internalLocal || (keepsLocal && accessible), onePort };
}

/** Requests of a Service that are not met, whatever its ports and endpoints are: of a plan that is not made. */
export function limitationsOfAllPorts(
  family: Family,
  service: ServiceRow,
  node: NodeFacts,
  settings: PlanSettings,
): readonly ServiceLimitation[] {
  const clusterIP = clusterIPOf(family, service);
  if (clusterIP === null) return NO_LIMITATIONS;
  const key = objectKey(service.namespace, service.name);
  return new ServicePlanner(family, service, [], key, clusterIP, node, settings, true, null, makeTable).ofAllPorts();
}

const NO_ADDRESSES: readonly never[] = [];
const NO_LIMITATIONS: readonly never[] = [];

function keepsDestination({ loadBalancerFlags }: Pick<ServiceRow, 'loadBalancerFlags'>): boolean {
  return (loadBalancerFlags & KEEPS_DESTINATION) !== 0;
}

/**
 * Whether an external frontend has local endpoints for all clients: where an address has one list, policy Local asks for
 * it, and so do destinations that are kept (WK-05).
 */
export function hasLocalAlone(
  { balancesOnly }: ModeTraits,
  kind: FrontendKind,
  isLocal: boolean,
  service: Pick<ServiceRow, 'loadBalancerFlags'>,
): boolean {
  return balancesOnly && (isLocal || (kind !== 'ExternalIP' && keepsDestination(service)));
}

/** Behaviour SV-02: by the position of the family in ipFamilies; without ipFamilies, by the address itself. */
export function clusterIPOf(family: Family, service: ServiceRow): IPAddress | null {
  if (service.type === 'ExternalName') return null;
  const position = service.ipFamilies.indexOf(family);
  const address =
    service.ipFamilies.length === 0
      ? service.clusterIPs.find((candidate) => familyOf(candidate) === family)
      : service.clusterIPs[position];
  return address !== undefined && familyOf(address) === family ? address : null;
}

/** Whether policy Local holds for traffic to the Service's cluster IP, and for traffic to its other addresses. */
export function localPolicies(service: ServiceRow): { readonly internal: boolean; readonly external: boolean } {
  return { internal: service.internalTrafficPolicy === 'Local', external: externalPolicyLocal(service) };
}

/** Behaviour SV-08: policy Local counts for types that can be reached from outside. */
function externalPolicyLocal(service: ServiceRow): boolean {
  return service.externalTrafficPolicy === 'Local' && (service.type !== 'ClusterIP' || service.externalIPs.length > 0);
}

function healthCheck(service: ServiceRow, key: ObjectKey, localEndpoints: number): HealthCheckPlan | null {
  if (service.type !== 'LoadBalancer' || !externalPolicyLocal(service) || service.healthCheckNodePort === 0)
    return null;
  return { service: key, port: service.healthCheckNodePort, localEndpoints };
}

/**
 * The most rooms for clients of session affinity that a Service fills in one IP family. Each frontend may remember its
 * clients alone, so one with no more frontends has no more rooms.
 */
export const MOST_CLIENT_ROOMS = 16;

interface Policies {
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  /** Whether the port can be reached from outside: behaviour SV-12. */
  readonly accessible: boolean;
}

class ServicePlanner {
  /**
   * Each address once, with the first kind that has it. A load balancer address comes before an external one: it may carry
   * source ranges, which must not be lost.
   */
  private readonly externalIPs: readonly IPAddress[];
  private readonly loadBalancerAddresses: readonly IPAddress[];
  private readonly loadBalancerSources: readonly IPPrefix[] | null;
  /** Addresses that are left out: they are the cluster's own. */
  private readonly internal: InternalAddress[] = [];
  private readonly limit: FrontendLimit;
  /** The rooms for clients that its ports share, in turn; null: they do not share. */
  private readonly clientRooms: readonly FrontendKey[] | null;
  private balancing: ReturnType<ServicePlanner['findBalancing']> | null = null;

  constructor(
    private readonly family: Family,
    private readonly service: ServiceRow,
    private readonly slices: readonly EndpointSliceRow[],
    private readonly key: ObjectKey,
    private readonly clusterIP: IPAddress,
    private readonly node: NodeFacts,
    private readonly settings: PlanSettings,
    private readonly hasSlots: boolean,
    private readonly warming: Warming | null,
    private readonly tables: Tables,
  ) {
    const taken = new Set<IPAddress>([clusterIP]);
    const isNew = (address: IPAddress): boolean =>
      familyOf(address) === family && taken.size !== taken.add(address).size;
    const admitted = (kind: InternalAddress['kind'], addresses: readonly IPAddress[]): readonly IPAddress[] =>
      addresses.filter((address) => isNew(address) && this.isFromOutside(kind, address));
    const ingress = service.loadBalancerIngress.filter(({ ipMode }) => ipMode === 'VIP');
    this.loadBalancerAddresses = admitted(
      'LoadBalancer',
      ingress.map(({ address }) => address),
    );
    this.externalIPs = settings.allowExternalIPs ? admitted('ExternalIP', service.externalIPs) : [];
    const ranges = service.loadBalancerSourceRanges;
    this.loadBalancerSources = admittedSources(family, ranges, this.loadBalancerAddresses, node);
    this.limit = new FrontendLimit(
      {
        ports: service.ports,
        loadBalancerAddresses: this.loadBalancerAddresses,
        externalIPs: this.externalIPs,
        // Some nodes add the load balancer's own addresses.
        sourceRanges: ranges.length === 0 ? 0 : ranges.length + this.loadBalancerAddresses.length,
        endpoints: frontendWeight(family, service, slices),
      },
      settings.limits,
    );
    this.clientRooms =
      service.affinitySeconds === null || this.limit.kept <= MOST_CLIENT_ROOMS
        ? null
        : service.ports.slice(0, MOST_CLIENT_ROOMS).map(({ port, protocol }) => frontendKey(clusterIP, port, protocol));
  }

  /** Which of its frontends the port at this index keeps; null: none. */
  kept(index: number): KeptOfPort | null {
    const kept = this.limit.ofPort(index);
    const { clusterIP, nodePort, loadBalancerAddresses, externalIPs } = kept;
    return clusterIP || nodePort || loadBalancerAddresses + externalIPs > 0 ? kept : null;
  }

  /** Requests of the Service that are not met, independent of the port. */
  ofAllPorts(): ServiceLimitation[] {
    return [...this.leftOut(), ...this.refused(), ...this.openToAll(), ...this.unbalanced(), ...this.notReset()];
  }

  /** The frontends beyond the limits. */
  private leftOut(): readonly ServiceLimitation[] {
    const { asked, kept } = this.limit;
    if (kept === asked) return [];
    return [{ family: this.family, cause: 'limit', servicePort: this.key, text: printLeftOut(this.limit) }];
  }

  /** Addresses that are the cluster's own. */
  private refused(): readonly ServiceLimitation[] {
    const { family, internal, key: servicePort } = this;
    return internal.length === 0 ? [] : [{ family, cause: 'address', servicePort, text: printInternal(internal) }];
  }

  private isFromOutside(kind: InternalAddress['kind'], address: IPAddress): boolean {
    const { ranges } = this.node;
    const internal = ranges === null ? null : internalAddress(kind, address, ranges[this.family]);
    if (internal !== null) this.internal.push(internal);
    return internal === null;
  }

  /** That source ranges are given, and none of this family (behaviour SV-06). */
  private openToAll(): readonly ServiceLimitation[] {
    const { loadBalancerSourceRanges: ranges } = this.service;
    const isRanged = ranges.length > 0 && this.loadBalancerAddresses.length > 0;
    if (!isRanged || this.settings.traits.balancesOnly) return [];
    if (ranges.some((range) => familyOf(range) === this.family)) return [];
    const text = printNoRange(this.family);
    return [{ family: this.family, cause: 'source-ranges', servicePort: this.key, text }];
  }

  /** Annotations that cannot be read, and shares that cannot be met. */
  private unbalanced(): readonly ServiceLimitation[] {
    const { family, service, slices, settings, key: servicePort } = this;
    const unreadable = [...(service.balance?.unreadable ?? []), ...unreadableWeights(family, slices)];
    const limitation = balanceLimitation(family, service, slices, settings, this.hasSlots);
    return [
      ...(unreadable.length === 0
        ? []
        : [{ family, cause: 'annotation', servicePort, text: unreadable.join('; ') } as const]),
      ...(limitation === null ? [] : [{ family, servicePort, ...limitation }]),
    ];
  }

  /** The same of its annotations about connections that end. */
  private notReset(): readonly ServiceLimitation[] {
    const { family, service, key: servicePort } = this;
    const asked = service.endingConnections;
    if (asked === null) return [];
    const asksFor = asked.reset === 'service' || asked.drainSeconds !== null;
    const text = 'connections to removed endpoints go on: this mode cannot reset them';
    return [
      ...(asked.unreadable.length === 0
        ? []
        : [{ family, cause: 'annotation', servicePort, text: asked.unreadable.join('; ') } as const]),
      ...(asksFor && this.settings.traits.resetsConnections !== true
        ? [{ family, cause: 'mode', servicePort, text } as const]
        : []),
    ];
  }

  /** Null: equally and by chance. */
  private balanceOf(port: ServicePortRow): PortBalance | null {
    const { family, slices, warming, tables } = this;
    const { by, shares } = (this.balancing ??= this.findBalancing());
    if (by === null || shares === undefined) return null;
    return new PortBalance(family, port, slices, by, shares, warming, tables);
  }

  /** Limitations of all ports: they depend on all ports and all slices. */
  private findBalancing(): { readonly by: BalanceBy | null; readonly shares: ModeTraits['shares'] } {
    const { family, service, slices, settings } = this;
    const { shares } = settings.traits;
    const by = askedBalance(family, service, slices, settings);
    if (by === null || shares === 'weights') return { by: by && 'random', shares };
    const isLimited = balanceLimitation(family, service, slices, settings, this.hasSlots) !== null;
    return { by: isLimited ? null : by, shares };
  }

  /** Without endpoints in zones that get no connections of this node's. */
  private spilled(selection: Selection, balance: PortBalance | null): Selection {
    const { node, service } = this;
    const spill = service.balance?.spill ?? null;
    if (balance === null || spill === null || node.zone === null) return selection;
    return { ...selection, cluster: balance.spilled(selection.cluster, node.zone, spill) };
  }

  policies(port: ServicePortRow): Policies {
    const { internal, external } = localPolicies(this.service);
    return {
      internalLocal: internal,
      externalLocal: external,
      accessible: port.nodePort !== 0 || this.loadBalancerAddresses.length > 0 || this.externalIPs.length > 0,
    };
  }

  limitations(
    port: ServicePortRow,
    frontends: readonly FrontendPlan[] = [],
    otherPorts: ReadonlySet<number> = new Set(),
    unlimited: readonly FrontendPlan[] = [],
  ): readonly ServiceLimitation[] {
    const servicePort = servicePortName(this.key, port.name);
    const texts = limitationsOf(this.service, port, frontends, otherPorts, unlimited);
    return texts.map((text) => ({ family: this.family, cause: 'platform', servicePort, text }));
  }

  /** @param index of the port in the Service. */
  frontends(
    index: number,
    port: ServicePortRow,
    kept: KeptOfPort,
    policies: Policies,
    selected: Selection,
  ): readonly FrontendPlan[] {
    const balance = this.balanceOf(port);
    const selection = this.spilled(selected, balance);
    const { traits } = this.settings;
    const clientRoom = this.clientRooms?.[index % this.clientRooms.length] ?? null;
    // If only this node's endpoints have weight, clients of the node go where other clients go.
    // An example is an endpoint that terminates beside others of weight 0.
    const isNowhereElse = selection.cluster.count === 0;
    const prefersLocal = policies.externalLocal && (traits.prefersLocal || isNowhereElse) && selection.local.count > 0;
    const external = (kind: FrontendKind, address: IPAddress | null): FrontendPlan => {
      const isLocalAlone = hasLocalAlone(traits, kind, policies.externalLocal, this.service);
      const endpoints = prefersLocal || isLocalAlone ? selection.local : selection.cluster;
      return this.frontend(kind, address, port, {
        endpoints,
        localEndpoints: policies.externalLocal ? selection.local : null,
        masquerade: policies.externalLocal ? 'node' : 'always',
        whenEmpty: policies.externalLocal && selection.any ? 'drop' : 'reject',
        sourceRanges: kind === 'LoadBalancer' && !traits.balancesOnly ? this.loadBalancerSources : null,
        clientKeys,
        clientRoom,
        flowEndpoints: flows,
        draining: this.draining(endpoints, all, isLocalAlone),
        balance,
      });
    };
    const clientKeys = this.clientKeys(port, policies, selection);
    const { all, flows } = this.lasting(port, selection);
    const internal = (): FrontendPlan => {
      const endpoints = policies.internalLocal ? selection.local : selection.cluster;
      return this.frontend('ClusterIP', this.clusterIP, port, {
        endpoints,
        localEndpoints: null,
        masquerade: 'off-cluster',
        whenEmpty: policies.internalLocal && selection.any ? 'drop' : 'reject',
        sourceRanges: null,
        clientKeys,
        clientRoom,
        flowEndpoints: flows,
        draining: this.draining(endpoints, all, policies.internalLocal),
        balance,
      });
    };
    const loadBalancers = this.loadBalancerAddresses.slice(0, kept.loadBalancerAddresses);
    const externals = this.externalIPs.slice(0, kept.externalIPs);
    return [
      ...(kept.clusterIP ? [internal()] : []),
      ...loadBalancers.map((address) => external('LoadBalancer', address)),
      ...externals.map((address) => external('ExternalIP', address)),
      ...(kept.nodePort ? [external('NodePort', null)] : []),
    ];
  }

  /** With no more endpoints than the platform has for an address: the first ones. */
  withinLimit(plan: FrontendPlan): FrontendPlan {
    const { endpointLimits } = this.settings.traits;
    if (endpointLimits === undefined || plan.localEndpoints !== null) return plan;
    const most = plan.kind === 'ClusterIP' ? endpointLimits.internal : endpointLimits.external;
    const { endpoints, draining } = plan;
    if (Math.max(endpoints.count, draining?.count ?? 0) <= most) return plan;
    const first = (list: EndpointList): EndpointList => (list.count <= most ? list : firstEndpoints(list, most));
    return { ...plan, endpoints: first(endpoints), draining: draining && first(draining) };
  }

  /** The cluster IP's list of endpoints has the cluster IP's key; the other list, if any, that of the first external frontend. */
  private clientKeys(
    port: ServicePortRow,
    { internalLocal, externalLocal }: Policies,
    selection: Selection,
  ): ClientKeys | null {
    if (this.service.affinitySeconds === null) return null;
    const internal = frontendKey(this.clusterIP, port.port, port.protocol);
    const address = this.loadBalancerAddresses[0] ?? this.externalIPs[0] ?? null;
    if (address === null && port.nodePort === 0) return null;
    const first = frontendKey(address, address === null ? port.nodePort : port.port, port.protocol);
    if (!internalLocal && !externalLocal) return { cluster: internal, local: null };
    const { cluster, local } = selection;
    const [clusterKey, localKey] = internalLocal ? [first, internal] : [internal, first];
    return {
      cluster: clusterKey,
      local: { key: localKey, endpoints: local, apart: endpointsWithout(local, cluster) },
    };
  }

  /** The endpoints that existing connections may keep, and every endpoint, which only a platform that balances by itself needs. */
  private lasting(
    port: ServicePortRow,
    selection: Selection,
  ): { readonly all: readonly Candidate[]; readonly flows: EndpointList | null } {
    if (!this.settings.traits.balancesOnly) return { all: [], flows: flowEndpoints(port, selection) };
    const all = collect(this.family, port, this.slices);
    const list = pack(this.family, all);
    return { all, flows: list.equals(selection.cluster) ? selection.cluster : list };
  }

  /** See {@link FrontendPlan.draining}. @param all empty where the platform does more than balance. */
  private draining(endpoints: EndpointList, all: readonly Candidate[], isLocal: boolean): EndpointList | null {
    if (endpoints.count > 0 || this.loadBalancerAddresses.length === 0) return null;
    const isHere = ({ slice, index }: Candidate): boolean => slice.nodeNames[index] === this.node.name;
    const left = all.filter((each) => !has(each, READY) && (!isLocal || isHere(each)));
    return left.length === 0 ? null : pack(this.family, left);
  }

  /** Written field by field: objects made by spreading do not share one of V8's hidden classes, and a plan would take twice the memory. */
  private frontend(
    kind: FrontendKind,
    address: IPAddress | null,
    port: ServicePortRow,
    handling: Handling,
  ): FrontendPlan {
    const number = address === null ? port.nodePort : port.port;
    const { retryTimes, traits } = this.settings;
    return {
      key: frontendKey(address, number, port.protocol),
      kind,
      family: this.family,
      address,
      protocol: port.protocol,
      port: number,
      servicePort: servicePortName(this.key, port.name),
      affinitySeconds: this.service.affinitySeconds,
      clientKeys: handling.clientKeys,
      clientRoom: handling.clientRoom,
      retrySeconds: retrySeconds(this.service, port, number, retryTimes, traits.retriesAttempts),
      flowEndpoints: handling.flowEndpoints,
      draining: handling.draining,
      endpoints: handling.endpoints,
      localEndpoints: handling.localEndpoints,
      masquerade: handling.masquerade,
      whenEmpty: handling.whenEmpty,
      sourceRanges: handling.sourceRanges,
      loadBalancerFlags: this.settings.traits.balancesOnly ? this.service.loadBalancerFlags : 0,
      balance: handling.balance?.of(handling.endpoints, handling.localEndpoints) ?? null,
    };
  }
}

/** How packets to a frontend are handled. */
type Handling = Pick<
  FrontendPlan,
  | 'endpoints'
  | 'localEndpoints'
  | 'flowEndpoints'
  | 'draining'
  | 'masquerade'
  | 'whenEmpty'
  | 'sourceRanges'
  | 'clientKeys'
  | 'clientRoom'
> & {
  readonly balance: PortBalance | null;
};

/** Datagram flows outlive their packets in conntrack; TCP ends by itself (behaviour CT-05). */
function flowEndpoints(port: ServicePortRow, selection: Selection): EndpointList | null {
  if (port.protocol === 'TCP') return null;
  return selection.serving.equals(selection.cluster) ? selection.cluster : selection.serving;
}
