import type { EndpointList } from '../../src/net/endpoint-list.js';
import { printEndpoint } from '../../src/net/endpoint-list.js';
import { isLoopback, prefixContains, type IPAddress } from '../../src/net/ip.js';
import type { Protocol } from '../../src/net/protocol.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import type { FamilyTable, FrontendPlan, NodePlan } from '../../src/plan/types.js';

/**
 * What has to happen on this node to the first packet of a connection, read off the forwarding table: the plan's meaning, whatever renders it. Knows
 * of no rules, hooks or sets.
 */

/** A pod by the local detector, an address of the node itself, anything else. A pod comes first where both hold (NF-36). */
export type SourceKind = 'pod' | 'node' | 'other';

export interface TracedPacket {
  readonly source: IPAddress;
  readonly from: SourceKind;
  readonly destination: IPAddress;
  readonly port: number;
  readonly protocol: Protocol;
}

export type Verdict =
  /** Not ours: the packet goes on as it is. */
  | { readonly type: 'none' }
  /** `unused-port`: of a cluster IP in use (VD-15). */
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

/** @param localAddresses every address of the node; node ports answer on those the plan admits. */
export function tracePacket(table: FamilyTable, packet: TracedPacket, localAddresses: readonly IPAddress[]): Verdict {
  const frontend = findFrontend(table, packet, localAddresses);
  if (frontend === undefined) return withoutFrontend(table, packet);
  const { sourceRanges, whenEmpty } = frontend;
  if (sourceRanges !== null && !sourceRanges.some((range) => prefixContains(range, packet.source)))
    return { type: 'drop', because: 'source-range' };

  const from = seenAs(table.node, packet.from, frontend);
  const list = from === 'other' ? (frontend.localEndpoints ?? frontend.endpoints) : frontend.endpoints;
  if (list.count === 0) {
    return whenEmpty === 'drop' ? { type: 'drop', because: 'policy' } : { type: 'reject', because: 'no-endpoints' };
  }
  return {
    type: 'forward',
    endpoints: list.toStrings(),
    masquerade: isMasqueraded(table.node, from, frontend),
    hairpin: table.hairpinAddresses.has(packet.source) ? endpointsAt(list, packet.source) : [],
  };
}

/** What kind of source a packet has. An interface detector knows a pod by where the packet came in; null: it did not, it was sent here. */
export function sourceKind(
  node: NodePlan,
  source: IPAddress,
  inputInterface: string | null,
  localAddresses: readonly IPAddress[],
): SourceKind {
  if (isPod(node, source, inputInterface)) return 'pod';
  return localAddresses.includes(source) ? 'node' : 'other';
}

/** `reject`, `drop`, `none`, or the endpoints with `m` (masqueraded) or `-` behind them. */
export function printVerdict(verdict: Verdict): string {
  if (verdict.type !== 'forward') return verdict.type;
  const { endpoints, masquerade, hairpin } = verdict;
  if (masquerade || hairpin.length === endpoints.length) return [...endpoints, 'm'].join(' ');
  return [...endpoints.map((endpoint) => (hairpin.includes(endpoint) ? `${endpoint}(m)` : endpoint)), '-'].join(' ');
}

/** A frontend of the address itself comes before a node port (NF-30). */
function findFrontend(
  table: FamilyTable,
  { destination, port, protocol }: TracedPacket,
  localAddresses: readonly IPAddress[],
): FrontendPlan | undefined {
  const own = table.frontend(frontendKey(destination, port, protocol));
  if (own !== undefined || !isNodePortAddress(table.node, destination, localAddresses)) return own;
  return table.frontend(frontendKey(null, port, protocol));
}

function isNodePortAddress(node: NodePlan, address: IPAddress, localAddresses: readonly IPAddress[]): boolean {
  if (isLoopback(address) || !localAddresses.includes(address)) return false;
  return node.nodePortPrefixes?.some((prefix) => prefixContains(prefix, address)) ?? true;
}

function withoutFrontend(table: FamilyTable, { destination }: TracedPacket): Verdict {
  if (table.clusterAddresses.has(destination)) return { type: 'reject', because: 'unused-port' };
  const unallocated = table.node.serviceCIDRs.some((cidr) => prefixContains(cidr, destination));
  return unallocated ? { type: 'drop', because: 'unallocated' } : { type: 'none' };
}

/** Without a detector every source of cluster IP traffic counts as a pod, and none of external traffic (VD-10, VD-20). */
function seenAs(node: NodePlan, from: SourceKind, { masquerade }: FrontendPlan): SourceKind {
  if (node.localDetector !== null) return from;
  if (masquerade === 'off-cluster') return 'pod';
  return from === 'pod' ? 'other' : from;
}

function isMasqueraded(node: NodePlan, from: SourceKind, { masquerade }: FrontendPlan): boolean {
  switch (masquerade) {
    case 'always':
      return true;
    case 'node':
      return from === 'node';
    case 'off-cluster':
      return node.masqueradeAll || from !== 'pod';
  }
}

function endpointsAt(list: EndpointList, address: IPAddress): readonly string[] {
  const found: string[] = [];
  for (let index = 0; index < list.count; index++) {
    if (list.address(index) === address) found.push(printEndpoint(address, list.port(index)));
  }
  return found;
}

function isPod({ localDetector }: NodePlan, source: IPAddress, inputInterface: string | null): boolean {
  switch (localDetector?.type) {
    case undefined:
      return false;
    case 'source-prefix':
      return prefixContains(localDetector.prefix, source);
    case 'input-interface':
      return inputInterface === localDetector.name;
    case 'input-interface-prefix':
      return inputInterface?.startsWith(localDetector.prefix) ?? false;
  }
}
