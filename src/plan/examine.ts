import { unpackNames } from '../base/unpacked-names.js';
import type { Family, IPAddress } from '../base/ip.js';
import { READY, SERVING, TERMINATING, type EndpointSliceRow, type ServicePortRow } from '../state/rows.js';
import { addressOf, collect, has, portOf, type Candidate, type SkippedSlice } from './candidates.js';
import type { NodeFacts } from './facts.js';
import { clusterExclusion, localExclusion, Tally, type Exclusion } from './selection-rules.js';
import { mostFrequent } from './selection.js';

/** Whether one endpoint of a port is used, and why not. */
export interface EndpointVerdict {
  readonly address: IPAddress;
  readonly port: number;
  readonly nodeName: string | null;
  /** Null: it is none, or its name is not known. */
  readonly podName: string | null;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Null: it is used. */
  readonly excluded: Exclusion | null;
}

/** The decision of {@link selectEndpoints} for the traffic of one policy, endpoint by endpoint: sorted, used ones first. */
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
  const tally = new Tally(node);
  for (const { slice, index } of candidates) tally.add(slice, index, 1);
  const { cluster, local } = tally.modes;
  const excluded = ({ slice, index }: Candidate): Exclusion | null =>
    policy === 'Cluster' ? clusterExclusion(cluster, node, slice, index) : localExclusion(local, node, slice, index);
  const ports = new Map<number, number>();
  for (const candidate of candidates)
    if (excluded(candidate) === null) ports.set(portOf(candidate), (ports.get(portOf(candidate)) ?? 0) + 1);
  const only = onePort ? mostFrequent(ports) : null;
  const examined = candidates.map((candidate): readonly [Candidate, Exclusion | null] => {
    const isOther = only !== null && portOf(candidate) !== only;
    return [candidate, excluded(candidate) ?? (isOther ? 'other-port' : null)];
  });
  const order = ([one, why]: readonly [Candidate, Exclusion | null]): string =>
    (why === null ? '' : '\u{ffff}') + one.key;
  examined.sort((one, other) => (order(one) < order(other) ? -1 : 1));
  for (const candidate of duplicates) examined.push([candidate, 'duplicate']);
  const pods = new Map(slices.map((slice) => [slice, unpackNames(slice.pods ?? '')]));
  const podOf = ({ slice, index }: Candidate): string | null => pods.get(slice)?.[index] ?? null;
  const verdicts = examined.map(([each, why]) => verdictOf(family, each, podOf(each), why));
  return { endpoints: verdicts, skipped };
}

function verdictOf(
  family: Family,
  candidate: Candidate,
  podName: string | null,
  excluded: Exclusion | null,
): EndpointVerdict {
  const { slice, index } = candidate;
  return {
    podName,
    address: addressOf(family, candidate),
    port: portOf(candidate),
    nodeName: slice.nodeNames[index] ?? null,
    ready: has(candidate, READY),
    serving: has(candidate, SERVING),
    terminating: has(candidate, TERMINATING),
    zoneHints: slice.zoneHints?.[index] ?? NO_HINTS,
    nodeHints: slice.nodeHints?.[index] ?? NO_HINTS,
    excluded,
  };
}

const NO_HINTS: readonly string[] = [];
