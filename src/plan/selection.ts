import { EndpointList, endpointSize, packedKey } from '../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family, type IPAddress } from '../base/ip.js';
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
  /** Those of them that are on this node. */
  readonly own: ReadonlySet<IPAddress>;
}

export interface PolicyUse {
  readonly cluster: boolean;
  readonly local: boolean;
  /** Whether a list may have endpoints of one port only: that of most of them, and of several such the smallest (behaviour WK-07). */
  readonly onePort: boolean;
}

/**
 * Why an endpoint is left out: not ready while others are; not serving, or not terminating, where none is ready; hinted for other nodes or other
 * zones; not on this node under policy Local; a duplicate; on another port than most, where the platform has one for an address.
 */
export type Exclusion =
  | 'not-ready'
  | 'not-serving'
  | 'not-terminating'
  | 'node-hint'
  | 'zone-hint'
  | 'other-node'
  | 'duplicate'
  | 'other-port';

/** Whether one endpoint of a port is used, and why not. */
export interface EndpointVerdict {
  readonly address: IPAddress;
  readonly port: number;
  readonly nodeName: string | null;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Null: it is used. */
  readonly excluded: Exclusion | null;
}

/** A slice of the Service without endpoints for the port. */
export interface SkippedSlice {
  readonly slice: string;
  readonly family: Family;
  readonly endpoints: number;
  readonly because: 'other-family' | 'no-such-port';
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
  const chosen = (rules: readonly Rule[]): readonly Candidate[] =>
    keep(candidates, uses.onePort ? withOnePort(candidates, rules) : rules);
  const cluster = uses.cluster ? chosen(clusterRules(candidates, node)) : [];
  const local = uses.local ? chosen(localRules(candidates, node)) : [];
  const any = cluster.length > 0 || (uses.local && candidates.some(couldServe));

  const hairpin = new Set<IPAddress>();
  const own = new Set<IPAddress>();
  for (const candidate of [...cluster, ...local]) {
    const isOwn = candidate.nodeName === node.name;
    if (!isOwn && candidate.nodeName !== null) continue;
    const address = addressOf(family, candidate);
    hairpin.add(address);
    if (isOwn) own.add(address);
  }
  const clusterList = pack(family, cluster);
  const listOf = (list: readonly Candidate[]): EndpointList =>
    sameCandidates(list, cluster) ? clusterList : pack(family, list);
  return {
    cluster: clusterList,
    local: listOf(local),
    any,
    serving: listOf(candidates.filter((candidate) => has(candidate, SERVING))),
    hairpin,
    own,
  };
}

/** The same decision for the traffic of one policy, endpoint by endpoint: sorted, those used first. */
export function examineEndpoints(
  family: Family,
  port: ServicePortRow,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  { policy, onePort }: { readonly policy: 'Cluster' | 'Local'; readonly onePort: boolean },
): { readonly endpoints: readonly EndpointVerdict[]; readonly skipped: readonly SkippedSlice[] } {
  const duplicates: Candidate[] = [];
  const skipped: SkippedSlice[] = [];
  const candidates = collect(family, port, slices, {
    duplicate: (candidate) => duplicates.push(candidate),
    slice: ({ name, family: sliceFamily, count }, because) =>
      skipped.push({ slice: name, family: sliceFamily, endpoints: count, because }),
  });
  const ofPolicy = policy === 'Cluster' ? clusterRules(candidates, node) : localRules(candidates, node);
  const rules = onePort ? withOnePort(candidates, ofPolicy) : ofPolicy;
  const examined = candidates.map((candidate): readonly [Candidate, Exclusion | null] => [
    candidate,
    rules.find(({ admits }) => !admits(candidate))?.excludes ?? null,
  ]);
  const order = ([one, why]: readonly [Candidate, Exclusion | null]): string =>
    (why === null ? '' : '\u{ffff}') + one.key;
  examined.sort((one, other) => (order(one) < order(other) ? -1 : 1));
  examined.push(...duplicates.map((candidate): readonly [Candidate, Exclusion] => [candidate, 'duplicate']));
  return { endpoints: examined.map(([candidate, why]) => verdictOf(family, candidate, why)), skipped };
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

/** One condition that endpoints have to meet, and the reason to give for those that do not. */
interface Rule {
  readonly excludes: Exclusion;
  readonly admits: (candidate: Candidate) => boolean;
}

const IS_READY: Rule = { excludes: 'not-ready', admits: (candidate) => has(candidate, READY) };

/** Where nothing is ready: endpoints that are terminating and still serve (KEP-1669). */
const LAST_RESORT: readonly Rule[] = [
  { excludes: 'not-serving', admits: (candidate) => has(candidate, SERVING) },
  { excludes: 'not-terminating', admits: (candidate) => has(candidate, TERMINATING) },
];

function keep(candidates: readonly Candidate[], rules: readonly Rule[]): readonly Candidate[] {
  return candidates.filter((candidate) => rules.every(({ admits }) => admits(candidate)));
}

/** These rules, and that an endpoint has the port that most of those have which meet them. */
function withOnePort(candidates: readonly Candidate[], rules: readonly Rule[]): readonly Rule[] {
  const counts = new Map<number, number>();
  for (const candidate of keep(candidates, rules)) {
    const port = portOf(candidate);
    counts.set(port, (counts.get(port) ?? 0) + 1);
  }
  if (counts.size < 2) return rules;
  const [most] = [...counts].sort(([one, count], [other, otherCount]) => otherCount - count || one - other);
  return [...rules, { excludes: 'other-port', admits: (candidate) => portOf(candidate) === most?.[0] }];
}

function couldServe(candidate: Candidate): boolean {
  return has(candidate, READY) || (has(candidate, SERVING) && has(candidate, TERMINATING));
}

/** What endpoints have to meet for traffic under policy Cluster. */
function clusterRules(candidates: readonly Candidate[], node: NodeFacts): readonly Rule[] {
  const ready = candidates.filter(IS_READY.admits);
  return ready.length === 0 ? LAST_RESORT : [IS_READY, ...topologyRules(ready, node)];
}

/** What endpoints have to meet for traffic under policy Local, to which topology never applies. */
function localRules(candidates: readonly Candidate[], node: NodeFacts): readonly Rule[] {
  const onNode: Rule = { excludes: 'other-node', admits: ({ nodeName }) => nodeName === node.name };
  const anyReady = candidates.some((candidate) => onNode.admits(candidate) && IS_READY.admits(candidate));
  return [onNode, ...(anyReady ? [IS_READY] : LAST_RESORT)];
}

/** Topology hints count only where every ready endpoint has one and some name us; hints for nodes come before hints for zones. */
function topologyRules(ready: readonly Candidate[], { name, zone }: NodeFacts): readonly Rule[] {
  const toNode: Rule = { excludes: 'node-hint', admits: ({ nodeHints }) => nodeHints.includes(name) };
  if (ready.every(({ nodeHints }) => nodeHints.length > 0) && ready.some(toNode.admits)) return [toNode];
  if (zone === null) return [];
  const toZone: Rule = { excludes: 'zone-hint', admits: ({ zoneHints }) => zoneHints.includes(zone) };
  return ready.every(({ zoneHints }) => zoneHints.length > 0) && ready.some(toZone.admits) ? [toZone] : [];
}

const NO_HINTS: readonly string[] = [];

/** Is called with what {@link collect} leaves out. */
interface Omissions {
  readonly duplicate: (candidate: Candidate) => void;
  readonly slice: (slice: EndpointSliceRow, because: SkippedSlice['because']) => void;
}

/** Endpoints of every slice port of the right name and protocol, without duplicates. */
function collect(
  family: Family,
  port: ServicePortRow,
  slices: readonly EndpointSliceRow[],
  omissions: Omissions | null = null,
): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  const size = addressLength(family);
  for (const slice of slices) {
    if (slice.family !== family) {
      omissions?.slice(slice, 'other-family');
      continue;
    }
    const targets = slice.ports.filter(({ name, protocol }) => name === port.name && protocol === port.protocol);
    if (targets.length === 0) omissions?.slice(slice, 'no-such-port');
    for (const target of targets) {
      const suffix = String.fromCharCode(target.port >> 8, target.port & 0xff);
      for (let index = 0; index < slice.count; index++) {
        const key = packedKey(slice.addresses, index * size, size) + suffix;
        const conditions = slice.conditions[index] ?? 0;
        const candidate: Candidate = {
          key,
          conditions,
          nodeName: slice.nodeNames[index] ?? null,
          zoneHints: slice.zoneHints?.[index] ?? NO_HINTS,
          nodeHints: slice.nodeHints?.[index] ?? NO_HINTS,
        };
        // Of two endpoints with one address and port the later counts, unless it is terminating (behaviour EP-06).
        const isLate = (conditions & TERMINATING) !== 0 && found.has(key);
        if (omissions !== null) {
          const lost = isLate ? candidate : found.get(key);
          if (lost !== undefined) omissions.duplicate(lost);
        }
        if (!isLate) found.set(key, candidate);
      }
    }
  }
  return [...found.values()];
}

/** Both lists are in the same order. */
function sameCandidates(one: readonly Candidate[], other: readonly Candidate[]): boolean {
  return one.length === other.length && one.every((candidate, index) => candidate === other[index]);
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

function portOf({ key }: Candidate): number {
  return (key.charCodeAt(key.length - 2) << 8) | key.charCodeAt(key.length - 1);
}

function addressOf(family: Family, candidate: Candidate): IPAddress {
  return addressFromBytes(Buffer.from(candidate.key, 'latin1').subarray(0, addressLength(family)));
}

function verdictOf(family: Family, candidate: Candidate, excluded: Exclusion | null): EndpointVerdict {
  const { nodeName, zoneHints, nodeHints } = candidate;
  return {
    address: addressOf(family, candidate),
    port: portOf(candidate),
    nodeName,
    ready: has(candidate, READY),
    serving: has(candidate, SERVING),
    terminating: has(candidate, TERMINATING),
    zoneHints,
    nodeHints,
    excluded,
  };
}
