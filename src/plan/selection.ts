import type { EndpointList } from '../base/endpoint-list.js';
import type { Family, IPAddress } from '../base/ip.js';
import { READY, SERVING, TERMINATING, type EndpointSliceRow, type ServicePortRow } from '../state/rows.js';
import {
  addressOf,
  collect,
  has,
  pack,
  portOf,
  type Candidate,
  type PortName,
  type SkippedSlice,
} from './candidates.js';
import type { NodeFacts } from './facts.js';
import {
  admitted,
  clusterRules,
  localRules,
  Tally,
  type Exclusion,
  type PolicyUse,
  type Rule,
  type Selection,
} from './selection-rules.js';
import { selectUniform } from './uniform-selection.js';

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

/** How endpoints are selected; {@link selectEndpoints}, or what comes to the same. */
export type Select = typeof selectEndpoints;

/**
 * Selects endpoints by readiness, locality and topology hints (KEP-1669 terminating endpoints, KEP-2433 and KEP-3015 hints). Depends on its
 * arguments alone: slices must come in an order that does not depend on their arrival.
 */
export function selectEndpoints(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  uses: PolicyUse,
): Selection {
  const uniform = selectUniform(family, port, slices, node, uses);
  if (uniform !== null) return uniform;
  const candidates = collect(family, port, slices);
  return selectAmong(family, candidates, Tally.of(candidates, node), node, uses);
}

/** @param tally of the candidates. */
export function selectAmong(
  family: Family,
  candidates: readonly Candidate[],
  tally: Tally,
  node: NodeFacts,
  uses: PolicyUse,
): Selection {
  const otherPorts = uses.onePort ? new Set<number>() : NO_PORTS;
  const chosen = (rules: readonly Rule[]): readonly Candidate[] => {
    const kept = keep(candidates, rules);
    const samePort = uses.onePort ? samePortRule(kept) : null;
    if (samePort === null) return kept;
    for (const candidate of kept) if (!samePort.admits(candidate)) otherPorts.add(portOf(candidate));
    return kept.filter(samePort.admits);
  };
  const cluster = uses.cluster ? chosen(clusterRules(tally.clusterMode, node)) : [];
  const local = uses.local ? chosen(localRules(tally.localMode, node)) : [];

  const hairpin = new Set<IPAddress>();
  const own = new Set<IPAddress>();
  const readyHere = candidates.filter((candidate) => candidate.nodeName === node.name && has(candidate, READY));
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
    any: cluster.length > 0 || (uses.local && tally.anyAble),
    serving: listOf(candidates.filter((candidate) => has(candidate, SERVING))),
    hairpin,
    own,
    readyHere: new Set(readyHere.map((candidate) => addressOf(family, candidate))),
    otherPorts,
  };
}

/** Nobody adds to it. */
const NO_PORTS = new Set<number>();

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
  const tally = Tally.of(candidates, node);
  const ofPolicy = policy === 'Cluster' ? clusterRules(tally.clusterMode, node) : localRules(tally.localMode, node);
  const samePort = onePort ? samePortRule(keep(candidates, ofPolicy)) : null;
  const rules = samePort === null ? ofPolicy : [...ofPolicy, samePort];
  const examined = candidates.map((candidate): readonly [Candidate, Exclusion | null] => [
    candidate,
    rules.find(({ admits }) => !admits(candidate))?.excludes ?? null,
  ]);
  const order = ([one, why]: readonly [Candidate, Exclusion | null]): string =>
    (why === null ? '' : '\u{ffff}') + one.key;
  examined.sort((one, other) => (order(one) < order(other) ? -1 : 1));
  for (const candidate of duplicates) examined.push([candidate, 'duplicate']);
  return { endpoints: examined.map(([candidate, why]) => verdictOf(family, candidate, why)), skipped };
}

function keep(candidates: readonly Candidate[], rules: readonly Rule[]): readonly Candidate[] {
  return candidates.filter((candidate) => admitted(candidate, rules));
}

/** That an endpoint has the port that most of these have; null: all have one. */
function samePortRule(candidates: readonly Candidate[]): Rule | null {
  const counts = new Map<number, number>();
  for (const candidate of candidates) {
    const port = portOf(candidate);
    counts.set(port, (counts.get(port) ?? 0) + 1);
  }
  if (counts.size < 2) return null;
  const [most] = [...counts].sort(([one, count], [other, otherCount]) => otherCount - count || one - other);
  return { excludes: 'other-port', admits: (candidate) => portOf(candidate) === most?.[0] };
}

/** Both lists are in the same order. */
function sameCandidates(one: readonly Candidate[], other: readonly Candidate[]): boolean {
  return one.length === other.length && one.every((candidate, index) => candidate === other[index]);
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
