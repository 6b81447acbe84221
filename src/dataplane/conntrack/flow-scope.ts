import { EndpointIndex } from '../../base/endpoint-index.js';
import { EndpointList, packedKey } from '../../base/endpoint-list.js';
import { addressBytes, addressFromBytes, addressLength, type Family, type IPAddress } from '../../base/ip.js';
import { protocolNumber, type Protocol } from '../../base/protocol.js';
import type { FlowFilter } from '../../native/contract.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan } from '../../plan/types.js';

/** One listing each. */
const FLOW_PROTOCOLS: readonly Protocol[] = ['UDP', 'SCTP', 'TCP'];

export interface FlowView {
  readonly table: Pick<FamilyTable, 'family' | 'frontend' | 'frontends'>;
  /** Whether it is one of this node's own addresses and node ports answer on it. */
  readonly isNodePortAddress: (address: IPAddress) => boolean;
  /** Look at every frontend of the table, as at a start or when the node's addresses changed. */
  readonly full: boolean;
  /**
   * Frontends that changed or went since the last successful pass. A frontend that the table does not have is gone: it
   * existed, and none of its flows may stay.
   */
  readonly changed: ReadonlySet<FrontendKey>;
}

/** Which endpoints the flows to one frontend may have. */
interface FlowTarget {
  /** Null: every node port address. */
  readonly address: IPAddress | null;
  readonly port: number;
  /** Endpoints of flows that have begun; null: any. */
  readonly kept: EndpointList | null;
  /** Endpoints of new connections, each list for some clients. */
  readonly taking: readonly EndpointList[];
}

/** The frontends of one protocol that a pass looks at. */
export class FlowScope {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly full: boolean;
  readonly #view: FlowView;
  readonly #listTargets: () => readonly FlowTarget[];
  #lookup: TargetLookup | null = null;
  /** Cluster IP, load balancer and node port of one Service share their list, and with it the index of it. */
  readonly #endpointIndexes = new Map<EndpointList, EndpointIndex>();
  /** Whether a destination with a port of a node port reaches it: one node address takes many flows. */
  readonly #reachesNodePorts = new Map<string, boolean>();

  /** @param targets asked for when they are needed: where no flow is listed, that is never. */
  constructor(view: FlowView, protocol: Protocol, targets: () => readonly FlowTarget[]) {
    this.family = view.table.family;
    this.protocol = protocol;
    this.full = view.full;
    this.#view = view;
    this.#listTargets = targets;
  }

  /**
   * Whether the endpoint at the reply offsets may have the flow to the destination at these offsets. Null when this pass does
   * not look at the destination. A frontend's own address comes before a node port.
   *
   * @param isAttempt whether it is a connection attempt without a reply: it needs an endpoint that takes new connections.
   */
  mayStay(
    bytes: Uint8Array,
    destination: { readonly address: number; readonly port: number },
    reply: { readonly address: number; readonly port: number },
    isAttempt: boolean,
  ): boolean | null {
    const target = this.#target(bytes, destination.address, destination.port);
    if (target === null) return null;
    if (!isAttempt && target.kept === null) return true;
    const lists = isAttempt ? target.taking : target.kept === null ? [] : [target.kept];
    return lists.some((list) => this.#indexOf(list).find(bytes, reply.address, reply.port) >= 0);
  }

  #target(bytes: Uint8Array, addressOffset: number, portOffset: number): FlowTarget | null {
    this.#lookup ??= lookup(this.family, this.#listTargets());
    const { addressed, index, nodePorts } = this.#lookup;
    const target = addressed[index.find(bytes, addressOffset, portOffset)];
    if (target !== undefined) return target;
    const port = ((bytes[portOffset] ?? 0) << 8) | (bytes[portOffset + 1] ?? 0);
    const byNodePort = nodePorts.get(port);
    return byNodePort !== undefined && this.#reachesNodePort(bytes, addressOffset, port) ? byNodePort : null;
  }

  /** Whether packets to this address and port meet the node port: the address is the node's, and no frontend has exactly it. */
  #reachesNodePort(bytes: Uint8Array, addressOffset: number, port: number): boolean {
    const packed = packedKey(bytes, addressOffset, addressLength(this.family));
    const destination = `${packed}:${port}`;
    const known = this.#reachesNodePorts.get(destination);
    if (known !== undefined) return known;
    const address = addressFromBytes(bytes.subarray(addressOffset, addressOffset + packed.length));
    const reaches =
      this.#view.isNodePortAddress(address) &&
      this.#view.table.frontend(frontendKey(address, port, this.protocol)) === undefined;
    this.#reachesNodePorts.set(destination, reaches);
    return reaches;
  }

  /** One listing that holds every flow of the scope: as narrow as its frontends allow, and of everything in a full pass. */
  filter(): FlowFilter {
    const targets = this.full ? [] : this.#listTargets();
    const [first] = targets;
    const address = first?.address ?? null;
    const sameAddress = address !== null && targets.every((target) => target.address === address);
    const samePort = first !== undefined && targets.every((target) => target.port === first.port);
    return {
      family: this.family === 'IPv4' ? 'ip' : 'ip6',
      protocol: protocolNumber(this.protocol),
      destination: sameAddress ? addressBytes(address) : null,
      port: samePort ? first.port : null,
      // TCP connections end by themselves. They are most of what a node has, so that the kernel leaves them out matters.
      unanswered: this.protocol === 'TCP',
    };
  }

  #indexOf(endpoints: EndpointList): EndpointIndex {
    const known = this.#endpointIndexes.get(endpoints);
    if (known !== undefined) return known;
    const index = new EndpointIndex(endpoints);
    this.#endpointIndexes.set(endpoints, index);
    return index;
  }
}

/** Targets by where flows are addressed to. */
interface TargetLookup {
  readonly addressed: readonly FlowTarget[];
  readonly index: EndpointIndex;
  readonly nodePorts: ReadonlyMap<number, FlowTarget>;
}

function lookup(family: Family, targets: readonly FlowTarget[]): TargetLookup {
  const addressed = targets.filter((target) => target.address !== null);
  const addresses = addressed.flatMap(({ address, port }) => (address === null ? [] : [{ address, port }]));
  return {
    addressed,
    index: new EndpointIndex(EndpointList.of(family, addresses)),
    nodePorts: new Map(targets.flatMap((target) => (target.address === null ? [[target.port, target]] : []))),
  };
}

/** The scopes of one pass: at most one per protocol, none for a protocol of which no frontend is concerned. */
export function flowScopes(view: FlowView): readonly FlowScope[] {
  const changed = new Map<Protocol, FlowTarget[]>(FLOW_PROTOCOLS.map((protocol) => [protocol, []]));
  for (const key of view.changed) {
    const plan = view.table.frontend(key);
    if (view.full && plan !== undefined) continue;
    const { address, port, protocol } = plan ?? parseFrontendKey(key);
    const target = plan === undefined ? successor(view, address, port, protocol) : targetOf(plan);
    changed.get(protocol)?.push(target);
  }
  const planned = view.full ? protocolsOf(view.table) : new Set<Protocol>();
  return FLOW_PROTOCOLS.flatMap((protocol) => {
    const own = changed.get(protocol) ?? [];
    if (own.length === 0 && !planned.has(protocol)) return [];
    return [new FlowScope(view, protocol, () => (view.full ? [...targetsOf(view.table, protocol), ...own] : own))];
  });
}

function protocolsOf(table: FlowView['table']): ReadonlySet<Protocol> {
  const found = new Set<Protocol>();
  for (const { protocol } of table.frontends()) {
    found.add(protocol);
    if (found.size === FLOW_PROTOCOLS.length) break;
  }
  return found;
}

function* targetsOf(table: FlowView['table'], protocol: Protocol): IterableIterator<FlowTarget> {
  for (const plan of table.frontends()) if (plan.protocol === protocol) yield targetOf(plan);
}

function targetOf({ address, port, flowEndpoints, endpoints, localEndpoints }: FrontendPlan): FlowTarget {
  const taking = localEndpoints === null ? [endpoints] : [endpoints, localEndpoints];
  return { address, port, kept: flowEndpoints, taking };
}

/**
 * The present destination of packets to a gone frontend: a node port may answer on the same address and port. Otherwise no
 * flow of the frontend may stay.
 */
function successor(view: FlowView, address: IPAddress | null, port: number, protocol: Protocol): FlowTarget {
  const nodePort =
    address !== null && view.isNodePortAddress(address)
      ? view.table.frontend(frontendKey(null, port, protocol))
      : undefined;
  if (nodePort !== undefined) return { ...targetOf(nodePort), address };
  const kept = protocol === 'TCP' ? null : EndpointList.of(view.table.family, []);
  return { address, port, kept, taking: [] };
}
