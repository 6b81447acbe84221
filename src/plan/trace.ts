import { printEndpoint, type EndpointList } from '../base/endpoint-list.js';
import { isLoopback, prefixContains, type IPAddress } from '../base/ip.js';
import type { Protocol } from '../base/protocol.js';
import { anyContains, type ModeTraits } from './facts.js';
import { frontendKey } from './frontend-key.js';
import type { FamilyTable, FrontendPlan, NodePlan } from './types.js';

/**
 * The forwarding table's decision on the first packet of a connection on this node. The rules of every mode must implement
 * it. Knows of no rules, hooks or sets.
 */

/** A pod by the local detector, an address of the node itself, anything else. An address that is both counts as a pod (NF-36). */
export type SourceKind = 'pod' | 'node' | 'other';

interface TracedPacket {
  /** Null: some address that is neither the node's nor in any prefix that matters. */
  readonly source: IPAddress | null;
  readonly from: SourceKind;
  readonly destination: IPAddress;
  readonly port: number;
  readonly protocol: Protocol;
}

export type Verdict =
  /** The packet goes on unchanged: it is not ours, or finds no endpoint where the platform refuses nothing. */
  | { readonly type: 'none' }
  /** `unused-port`: of a cluster IP in use (VD-15), or of another address of a Service (VD-17). */
  | { readonly type: 'reject'; readonly because: 'no-endpoints' | 'unused-port' }
  /** `policy`: endpoints elsewhere only. `unallocated`: no Service has the address (VD-16). */
  | { readonly type: 'drop'; readonly because: 'policy' | 'source-range' | 'unallocated' }
  | {
      readonly type: 'forward';
      /** Any of these with equal probability; `address:port`, in the plan's order, at least one. */
      readonly endpoints: readonly string[];
      /** Whether the source is translated whichever endpoint is chosen. */
      readonly masquerade: boolean;
      /** Those of `endpoints` that are the sender itself: chosen, the source is translated in any case (VD-14). */
      readonly hairpin: readonly string[];
    };

/** Why the source of a forwarded packet is translated, or why not. */
export type MasqueradeReason =
  | 'external-policy-cluster'
  | 'sent-by-node'
  | 'masquerade-all'
  | 'not-a-pod'
  | 'kept-pod'
  | 'kept-no-detector'
  | 'kept-policy-local'
  /** The platform does as it likes. */
  | 'platform';

/** A verdict and what it comes from. */
export interface Trace {
  readonly verdict: Verdict;
  /** Null: none has the address and port. */
  readonly frontend: FrontendPlan | null;
  /** Whether the frontend's `localEndpoints` are the list that applies. */
  readonly local: boolean;
  /** Null unless the packet is forwarded. */
  readonly masquerade: MasqueradeReason | null;
  /**
   * Endpoints on the node's own addresses, for a packet from outside the node. Such a packet is delivered locally and never
   * leaves. Only packets that leave have their source translated (netfilter's postrouting).
   */
  readonly delivered: readonly string[];
}

/** @param localAddresses every address of the node; node ports answer on those the plan admits. */
export function tracePacket(
  table: FamilyTable,
  packet: TracedPacket,
  localAddresses: readonly IPAddress[],
  traits: ModeTraits,
): Trace {
  const frontend = findFrontend(table, packet, localAddresses);
  if (frontend === undefined) {
    const verdict = withoutFrontend(table, packet, localAddresses, traits);
    return { verdict, frontend: null, local: false, masquerade: null, delivered: [] };
  }
  const from = seenAs(table.node, packet.from, frontend);
  const isAccepted = isAcceptedHere(table.node, packet);
  const local = (from === 'other' || isAccepted) && frontend.localEndpoints !== null;
  const list = (local ? frontend.localEndpoints : null) ?? frontend.endpoints;
  const { sourceRanges, whenEmpty } = frontend;
  const ending = (verdict: Verdict): Trace => ({ verdict, frontend, local, masquerade: null, delivered: [] });
  if (sourceRanges !== null && (packet.source === null || !anyContains(sourceRanges, packet.source)))
    return ending({ type: 'drop', because: 'source-range' });
  if (list.count === 0 && traits.balancesOnly) return ending({ type: 'none' });
  if (list.count === 0)
    return ending(
      whenEmpty === 'drop' && !isAccepted
        ? { type: 'drop', because: 'policy' }
        : { type: 'reject', because: 'no-endpoints' },
    );
  if (traits.balancesOnly) {
    const endpoints = list.toStrings();
    const verdict: Verdict = { type: 'forward', endpoints, masquerade: false, hairpin: [] };
    return { ...ending(verdict), masquerade: 'platform' };
  }
  const masquerade = masqueradeReason(table.node, from, frontend);
  return {
    verdict: {
      type: 'forward',
      endpoints: list.toStrings(),
      masquerade: !masquerade.startsWith('kept-'),
      hairpin:
        packet.source !== null && table.hairpinAddresses.has(packet.source)
          ? endpointsAt(list, (address) => address === packet.source)
          : [],
    },
    frontend,
    local,
    masquerade,
    delivered: isOwn(packet, localAddresses) ? [] : endpointsAt(list, (address) => localAddresses.includes(address)),
  };
}

/**
 * The kind of a packet's source. An interface detector recognizes a pod by the packet's input interface; null: the packet
 * was sent by this node.
 *
 * @param source null: some address that is neither the node's nor a pod's.
 */
export function sourceKind(
  node: NodePlan,
  source: IPAddress | null,
  inputInterface: string | null,
  localAddresses: readonly IPAddress[],
): SourceKind {
  if (isPod(node, source, inputInterface)) return 'pod';
  return source !== null && localAddresses.includes(source) ? 'node' : 'other';
}

/** Why node ports do not answer on an address; null where they do. */
export function nodePortRefusal(
  node: NodePlan,
  address: IPAddress,
  localAddresses: readonly IPAddress[],
): 'loopback' | 'not-local' | 'not-configured' | null {
  const loopback = isLoopback(address);
  if (loopback && !node.nodePortsOnLoopback) return 'loopback';
  if (!loopback && !localAddresses.includes(address)) return 'not-local';
  const { nodePortPrefixes } = node;
  return nodePortPrefixes === null || anyContains(nodePortPrefixes, address) ? null : 'not-configured';
}

/** A frontend of the address itself comes before a node port (NF-30). */
function findFrontend(
  table: FamilyTable,
  packet: TracedPacket,
  localAddresses: readonly IPAddress[],
): FrontendPlan | undefined {
  const { destination, port, protocol } = packet;
  const own = table.frontend(frontendKey(destination, port, protocol));
  const refusal = isAcceptedHere(table.node, packet) ? null : nodePortRefusal(table.node, destination, localAddresses);
  if (own !== undefined || refusal !== null) return own;
  return table.frontend(frontendKey(null, port, protocol));
}

/** Whether this process accepts the connection and makes another one to an endpoint. */
function isAcceptedHere({ nodePortListener }: NodePlan, { destination, protocol }: TracedPacket): boolean {
  return protocol === 'TCP' && destination === nodePortListener;
}

function withoutFrontend(
  table: FamilyTable,
  { destination }: TracedPacket,
  localAddresses: readonly IPAddress[],
  { guardsClusterAddresses, guardsServiceAddresses }: ModeTraits,
): Verdict {
  if (guardsServiceAddresses && !localAddresses.includes(destination) && holdsAddress(table, destination))
    return { type: 'reject', because: 'unused-port' };
  if (!guardsClusterAddresses) return { type: 'none' };
  if (table.clusterAddresses.has(destination)) return { type: 'reject', because: 'unused-port' };
  const unallocated = anyContains(table.node.serviceCIDRs, destination);
  return unallocated ? { type: 'drop', because: 'unallocated' } : { type: 'none' };
}

function holdsAddress(table: FamilyTable, wanted: IPAddress): boolean {
  for (const { address } of table.frontends()) if (address === wanted) return true;
  return false;
}

/** Without a detector every source of cluster IP traffic counts as a pod, and none of external traffic (VD-10, VD-20). */
function seenAs(node: NodePlan, from: SourceKind, { masquerade }: FrontendPlan): SourceKind {
  if (node.localDetector !== null) return from;
  if (masquerade === 'off-cluster') return 'pod';
  return from === 'pod' ? 'other' : from;
}

/** @param from the result of {@link seenAs}. */
function masqueradeReason(node: NodePlan, from: SourceKind, { masquerade }: FrontendPlan): MasqueradeReason {
  switch (masquerade) {
    case 'always':
      return 'external-policy-cluster';
    case 'node':
      if (from === 'node') return 'sent-by-node';
      return from === 'pod' ? 'kept-pod' : 'kept-policy-local';
    case 'off-cluster':
      if (node.masqueradeAll) return 'masquerade-all';
      if (from !== 'pod') return 'not-a-pod';
      return node.localDetector === null ? 'kept-no-detector' : 'kept-pod';
  }
}

function isOwn({ from, source }: TracedPacket, localAddresses: readonly IPAddress[]): boolean {
  return from === 'node' || (source !== null && localAddresses.includes(source));
}

function endpointsAt(list: EndpointList, isWanted: (address: IPAddress) => boolean): readonly string[] {
  const found: string[] = [];
  for (let index = 0; index < list.count; index++) {
    const address = list.address(index);
    if (isWanted(address)) found.push(printEndpoint(address, list.port(index)));
  }
  return found;
}

function isPod({ localDetector }: NodePlan, source: IPAddress | null, inputInterface: string | null): boolean {
  switch (localDetector?.type) {
    case undefined:
      return false;
    case 'source-prefix':
      return source !== null && prefixContains(localDetector.prefix, source);
    case 'input-interface':
      return inputInterface === localDetector.name;
    case 'input-interface-prefix':
      return inputInterface?.startsWith(localDetector.prefix) ?? false;
  }
}
