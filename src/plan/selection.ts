import { EndpointList, endpointSize, packedKey } from '../net/endpoint-list.js';
import { addressFromBytes, addressLength, type Family, type IPAddress } from '../net/ip.js';
import { READY, SERVING, TERMINATING, type EndpointSliceRow, type ServicePortRow } from '../state/rows.js';
import type { NodeFacts } from './facts.js';

/** An endpoint of one Service port as the selection rules see it. */
interface Candidate {
  /** Packed address and port, one character per byte; sorts as the packed bytes do. */
  readonly key: string;
  readonly conditions: number;
  readonly nodeName: string | null;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
}

/** Which of its endpoints a Service port may use on this node (behaviour §4.3). */
export interface Selection {
  /** For traffic under policy Cluster; empty when no traffic of the port is. */
  readonly cluster: EndpointList;
  /** For traffic under policy Local; empty when no traffic of the port is. */
  readonly local: EndpointList;
  /** Whether any endpoint anywhere could serve: decides between reject (no) and drop (yes, but not here). */
  readonly any: boolean;
  /** Every serving endpoint, whatever the policies. */
  readonly serving: EndpointList;
  /** Addresses in `cluster` or `local` of endpoints on this node, or on no node that we know of. */
  readonly hairpin: ReadonlySet<IPAddress>;
}

export interface PolicyUse {
  readonly cluster: boolean;
  readonly local: boolean;
}

/**
 * Selects endpoints by readiness, locality and topology hints (KEP-1669 terminating endpoints, KEP-2433 and KEP-3015 hints). Depends on its
 * arguments alone: slices must come in an order that does not depend on their arrival.
 */
export function selectEndpoints(
  family: Family,
  port: ServicePortRow,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  uses: PolicyUse,
): Selection {
  const candidates = collect(family, port, slices);
  const ready = candidates.filter((candidate) => has(candidate, READY));
  const fallback = candidates.filter((candidate) => has(candidate, SERVING) && has(candidate, TERMINATING));
  const onNode = (candidate: Candidate): boolean => candidate.nodeName === node.name;

  let cluster: readonly Candidate[] = [];
  let local: readonly Candidate[] = [];
  if (uses.cluster) cluster = orElse(withinTopology(ready, node), fallback);
  if (uses.local) local = orElse(ready.filter(onNode), fallback.filter(onNode));
  const any = cluster.length > 0 || (uses.local && (ready.length > 0 || fallback.length > 0));

  const hairpin = new Set<IPAddress>();
  for (const candidate of [...cluster, ...local]) {
    if (candidate.nodeName === null || onNode(candidate)) hairpin.add(addressOf(family, candidate));
  }
  const clusterList = pack(family, cluster);
  const localList = pack(family, local);
  return {
    cluster: clusterList,
    local: localList.equals(clusterList) ? clusterList : localList,
    any,
    serving: pack(
      family,
      candidates.filter((candidate) => has(candidate, SERVING)),
    ),
    hairpin,
  };
}

/** Distinct addresses of ready endpoints on this node over all ports (behaviour SH-04). */
export function countReadyLocal(
  family: Family,
  ports: readonly ServicePortRow[],
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
): number {
  const addresses = new Set<IPAddress>();
  for (const port of ports) {
    for (const candidate of collect(family, port, slices)) {
      if (has(candidate, READY) && candidate.nodeName === node.name) addresses.add(addressOf(family, candidate));
    }
  }
  return addresses.size;
}

function has(candidate: Candidate, condition: number): boolean {
  return (candidate.conditions & condition) !== 0;
}

function orElse(first: readonly Candidate[], second: readonly Candidate[]): readonly Candidate[] {
  return first.length > 0 ? first : second;
}

/** Ready endpoints that topology hints leave: all of them unless every one is hinted and some are hinted to us. */
function withinTopology(ready: readonly Candidate[], node: NodeFacts): readonly Candidate[] {
  if (ready.length > 0 && ready.every((candidate) => candidate.nodeHints.length > 0)) {
    const sameNode = ready.filter((candidate) => candidate.nodeHints.includes(node.name));
    if (sameNode.length > 0) return sameNode;
  }
  const zone = node.zone;
  if (zone === null || !ready.every((candidate) => candidate.zoneHints.length > 0)) return ready;
  return orElse(
    ready.filter((candidate) => candidate.zoneHints.includes(zone)),
    ready,
  );
}

const NO_HINTS: readonly string[] = [];

/** Endpoints of every slice port of the right name and protocol, without duplicates. */
function collect(family: Family, port: ServicePortRow, slices: readonly EndpointSliceRow[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  const size = addressLength(family);
  for (const slice of slices) {
    if (slice.family !== family) continue;
    for (const target of slice.ports) {
      if (target.name !== port.name || target.protocol !== port.protocol) continue;
      const suffix = String.fromCharCode(target.port >> 8, target.port & 0xff);
      for (let index = 0; index < slice.count; index++) {
        const key = packedKey(slice.addresses, index * size, size) + suffix;
        const conditions = slice.conditions[index] ?? 0;
        // Of two endpoints with one address the later counts, unless it is on its way out (behaviour EP-06).
        if ((conditions & TERMINATING) !== 0 && found.has(key)) continue;
        found.set(key, {
          key,
          conditions,
          nodeName: slice.nodeNames[index] ?? null,
          zoneHints: slice.zoneHints?.[index] ?? NO_HINTS,
          nodeHints: slice.nodeHints?.[index] ?? NO_HINTS,
        });
      }
    }
  }
  return [...found.values()];
}

function pack(family: Family, candidates: readonly Candidate[]): EndpointList {
  const keys = candidates.map((candidate) => candidate.key).sort();
  const size = endpointSize(family);
  const packed = new Uint8Array(keys.length * size);
  for (const [index, key] of keys.entries()) {
    for (let at = 0; at < size; at++) packed[index * size + at] = key.charCodeAt(at);
  }
  return new EndpointList(family, packed);
}

function addressOf(family: Family, candidate: Candidate): IPAddress {
  return addressFromBytes(Buffer.from(candidate.key, 'latin1').subarray(0, addressLength(family)));
}
