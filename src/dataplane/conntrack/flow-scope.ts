import { EndpointIndex } from '../../base/endpoint-index.js';
import { EndpointList, packedKey } from '../../base/endpoint-list.js';
import { addressBytes, addressFromBytes, addressLength, type Family, type IPAddress } from '../../base/ip.js';
import { protocolNumber, type Protocol } from '../../base/protocol.js';
import type { FlowFilter } from '../../native/contract.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';

/** Protocols whose flows have no end that the kernel could see and so outlive their endpoint for as long as a client keeps sending. */
const FLOW_PROTOCOLS: readonly Protocol[] = ['UDP', 'SCTP'];

export interface FlowView {
  readonly table: Pick<FamilyTable, 'family' | 'frontend' | 'frontends'>;
  /** Whether it is one of this node's own addresses and node ports answer on it. */
  readonly isNodePortAddress: (address: IPAddress) => boolean;
  /** Look at every frontend of the table, as at a start or when the node's addresses changed. */
  readonly full: boolean;
  /**
   * Frontends that changed or went since the last pass that succeeded. One that the table does not have is gone: it existed, and none of
   * its flows may stay.
   */
  readonly changed: ReadonlySet<FrontendKey>;
}

/** What flows to one destination may reply from. */
interface FlowTarget {
  /** Null: every node port address. */
  readonly address: IPAddress | null;
  readonly port: number;
  readonly allowed: EndpointList;
}

/** The frontends of one protocol that a pass looks at. */
export class FlowScope {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly full: boolean;
  readonly #view: FlowView;
  readonly #targets: readonly FlowTarget[];
  readonly #addressed: readonly FlowTarget[];
  readonly #index: EndpointIndex;
  readonly #nodePorts: ReadonlyMap<number, EndpointList>;
  /** Cluster IP, load balancer and node port of one Service share their list, and with it the index of it. */
  readonly #endpointIndexes = new Map<EndpointList, EndpointIndex>();
  /** By destination, for ports that are node ports: one node address takes many flows. */
  readonly #reachesNodePorts = new Map<string, boolean>();

  constructor(view: FlowView, protocol: Protocol, targets: readonly FlowTarget[]) {
    this.family = view.table.family;
    this.protocol = protocol;
    this.full = view.full;
    this.#view = view;
    this.#targets = targets;
    this.#addressed = targets.filter((target) => target.address !== null);
    this.#index = new EndpointIndex(
      EndpointList.of(
        this.family,
        targets.flatMap(({ address, port }) => (address === null ? [] : [{ address, port }])),
      ),
    );
    this.#nodePorts = new Map(
      targets.flatMap(({ address, port, allowed }) => (address === null ? [[port, allowed]] : [])),
    );
  }

  /**
   * The endpoints from which flows to the destination at these offsets may reply; null when this pass does not look at it. An address of
   * its own comes before a node port.
   */
  allowed(bytes: Uint8Array, addressOffset: number, portOffset: number): EndpointIndex | null {
    const target = this.#addressed[this.#index.find(bytes, addressOffset, portOffset)];
    if (target !== undefined) return this.#indexOf(target.allowed);
    const port = ((bytes[portOffset] ?? 0) << 8) | (bytes[portOffset + 1] ?? 0);
    const byNodePort = this.#nodePorts.get(port);
    if (byNodePort === undefined || !this.#reachesNodePort(bytes, addressOffset, port)) return null;
    return this.#indexOf(byNodePort);
  }

  /** Whether packets to this address and port meet the node port: the address is the node's own, and no frontend has just this address. */
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

  /** One listing that holds every flow of the scope: as narrow as its frontends have in common, of everything in a full pass. */
  filter(): FlowFilter {
    const first = this.full ? undefined : this.#targets[0];
    const address = first?.address ?? null;
    const sameAddress = address !== null && this.#targets.every((target) => target.address === address);
    const samePort = first !== undefined && this.#targets.every((target) => target.port === first.port);
    return {
      family: this.family === 'IPv4' ? 'ip' : 'ip6',
      protocol: protocolNumber(this.protocol),
      destination: sameAddress ? addressBytes(address) : null,
      port: samePort ? first.port : null,
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

/** The scopes of one pass: at most one per protocol, none for a protocol of which no frontend is concerned. */
export function flowScopes(view: FlowView): readonly FlowScope[] {
  const targets = new Map<Protocol, FlowTarget[]>(FLOW_PROTOCOLS.map((protocol) => [protocol, []]));
  if (view.full) {
    for (const { address, port, protocol, flowEndpoints } of view.table.frontends()) {
      if (flowEndpoints !== null) targets.get(protocol)?.push({ address, port, allowed: flowEndpoints });
    }
  }
  for (const key of view.changed) {
    const plan = view.table.frontend(key);
    if (view.full && plan !== undefined) continue;
    const { address, port, protocol } = plan ?? parseFrontendKey(key);
    const allowed = plan === undefined ? successorEndpoints(view, address, port, protocol) : plan.flowEndpoints;
    if (allowed !== null) targets.get(protocol)?.push({ address, port, allowed });
  }
  return FLOW_PROTOCOLS.flatMap((protocol) => {
    const concerned = targets.get(protocol) ?? [];
    return concerned.length === 0 ? [] : [new FlowScope(view, protocol, concerned)];
  });
}

/** Where packets to a gone frontend go now: a node port may answer on the same address and port; otherwise no flow of it may stay. */
function successorEndpoints(view: FlowView, address: IPAddress | null, port: number, protocol: Protocol): EndpointList {
  const nodePort =
    address !== null && view.isNodePortAddress(address)
      ? view.table.frontend(frontendKey(null, port, protocol))
      : undefined;
  return nodePort?.flowEndpoints ?? EndpointList.of(view.table.family, []);
}
