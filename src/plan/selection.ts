import { EndpointList } from '../base/endpoint-list.js';
import { addressFromBytes, FAMILIES, type Family, type IPAddress } from '../base/ip.js';
import { READY, SERVING, type EndpointSliceRow } from '../state/rows.js';
import { collect, portOf, targetPorts, type PortName } from './candidates.js';
import type { NodeFacts } from './facts.js';
import {
  clusterExclusion,
  localExclusion,
  Tally,
  type PolicyUse,
  type Selection,
  type SelectionModes,
} from './selection-rules.js';
import { sortedKeys, type SortedKeys } from './sorted-keys.js';

/** How endpoints are selected; {@link selectEndpoints}, or what comes to the same. */
export type Select = typeof selectEndpoints;

/**
 * Selects endpoints by readiness, locality and topology hints (KEP-1669 terminating endpoints, KEP-2433 and KEP-3015 hints).
 * Depends on its arguments alone: slices must come in an order that does not depend on their arrival.
 */
export function selectEndpoints(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  uses: PolicyUse,
): Selection {
  return selectWhole(family, port, slices, node, uses, false).selection;
}

/** A selection with what later ones among the same endpoints can start from. */
export interface WholeSelection {
  readonly selection: Selection;
  readonly tally: Tally;
  readonly modes: SelectionModes;
  /** Every endpoint of the port, if that was asked for; null: otherwise, or one is there twice. */
  readonly all: EndpointList | null;
}

/** As {@link selectEndpoints}. @param keepsAll whether all endpoints are asked for. */
export function selectWhole(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  uses: PolicyUse,
  keepsAll: boolean,
): WholeSelection {
  const runs = runsOf(family, port, slices);
  const selected = selectAmong(family, runs, node, uses, keepsAll);
  if (selected !== null) return selected;
  // An endpoint is there twice: one after the other, without those that do not count.
  const each = collect(family, port, slices).map((candidate): Run => {
    const { slice, index } = candidate;
    return { slice, target: portOf(candidate), from: index, end: index + 1 };
  });
  const unique = selectAmong(family, each, node, uses, false);
  if (unique === null) throw new Error('an endpoint was collected twice');
  return unique;
}

/** Endpoints of a slice that are neighbours, at one port. */
export interface Run {
  readonly slice: EndpointSliceRow;
  readonly target: number;
  readonly from: number;
  readonly end: number;
}

export function runsOf(family: Family, port: PortName, slices: readonly EndpointSliceRow[]): readonly Run[] {
  const runs: Run[] = [];
  for (const slice of slices)
    for (const target of targetPorts(family, port, slice)) runs.push({ slice, target, from: 0, end: slice.count });
  return runs;
}

/** Marks of an endpoint: the lists that have it. */
export const IN_CLUSTER = 1;
export const IN_LOCAL = 2;
export const IN_SERVING = 4;
export const IN_ALL = 8;
const MARKS = 16;

/** The marks of an endpoint. */
export function marksOf(
  slice: EndpointSliceRow,
  index: number,
  modes: SelectionModes,
  node: NodeFacts,
  uses: PolicyUse,
): number {
  let marks = IN_ALL;
  if (((slice.conditions[index] ?? 0) & SERVING) !== 0) marks |= IN_SERVING;
  if (uses.cluster && clusterExclusion(modes.cluster, node, slice, index) === null) marks |= IN_CLUSTER;
  if (uses.local && localExclusion(modes.local, node, slice, index) === null) marks |= IN_LOCAL;
  return marks;
}

/** Walks the columns twice, to count what decides and to take what is selected; null: an endpoint is there twice. */
function selectAmong(
  family: Family,
  runs: readonly Run[],
  node: NodeFacts,
  uses: PolicyUse,
  keepsAll: boolean,
): WholeSelection | null {
  const tally = new Tally(node);
  let total = 0;
  for (const { slice, from, end } of runs) {
    total += end - from;
    for (let index = from; index < end; index++) tally.add(slice, index, 1);
  }
  const { modes } = tally;
  const ports = uses.onePort ? new OnePort(runs, modes, node, uses) : null;
  const lists = new MarkedLists(family, total);
  for (const { slice, target, from, end } of runs) {
    const { addresses } = slice;
    const allowed = ports === null ? MARKS - 1 : ports.marks(target);
    for (let index = from; index < end; index++)
      lists.put(addresses, index, target, marksOf(slice, index, modes, node, uses) & allowed);
  }
  if (!lists.sort()) return null;
  const [cluster, local, serving] = [lists.of(IN_CLUSTER), lists.of(IN_LOCAL), lists.of(IN_SERVING)];
  const any = cluster.count > 0 || (uses.local && tally.anyAble);
  const { hairpin, own, readyHere } = addressesHere(runs, modes, node, uses, ports);
  const otherPorts = ports?.others ?? NO_PORTS;
  const selection = { cluster, local, any, serving, hairpin, own, readyHere, otherPorts };
  return { selection, tally, modes, all: keepsAll ? lists.of(IN_ALL) : null };
}

/** How many endpoints of the port under way have which marks. */
const counts = new Uint32Array(MARKS);

/** The lists that the endpoints of a port are in. */
class MarkedLists {
  private readonly keys: SortedKeys;
  private readonly made: { readonly mark: number; readonly list: EndpointList }[] = [];

  constructor(
    private readonly family: Family,
    total: number,
  ) {
    this.keys = sortedKeys(family, total);
    counts.fill(0);
  }

  put(addresses: string, index: number, port: number, marks: number): void {
    this.keys.put(addresses, index, port, marks);
    counts[marks] = (counts[marks] ?? 0) + 1;
  }

  /** Whether every endpoint was put once; otherwise there are no lists. */
  sort(): boolean {
    return this.keys.sort();
  }

  /** The list of a mark; equal lists are made once. */
  of(mark: number): EndpointList {
    let count = 0;
    for (let marks = 0; marks < MARKS; marks++) if ((marks & mark) !== 0) count += counts[marks] ?? 0;
    if (count === 0) return NO_ENDPOINTS[this.family];
    for (const { mark: other, list } of this.made) if (isSame(mark, other)) return list;
    const list = new EndpointList(this.family, this.keys.write(mark, count));
    this.made.push({ mark, list });
    return list;
  }
}

/** Whether every endpoint is in both lists or in neither. */
function isSame(one: number, other: number): boolean {
  for (let marks = 0; marks < MARKS; marks++)
    if ((counts[marks] ?? 0) > 0 && ((marks & one) === 0) !== ((marks & other) === 0)) return false;
  return true;
}

const NO_PORTS: ReadonlySet<number> = new Set();
const NO_ENDPOINTS = Object.fromEntries(
  FAMILIES.map((family) => [family, new EndpointList(family, new Uint8Array(0))]),
) as Readonly<Record<Family, EndpointList>>;

export type AddressesHere = Pick<Selection, 'hairpin' | 'own' | 'readyHere'>;

/** Addresses of endpoints on this node, or on no node that we know of. @param ports null: of every port. */
export function addressesHere(
  runs: readonly Run[],
  modes: SelectionModes,
  node: NodeFacts,
  uses: PolicyUse,
  ports: OnePort | null = null,
): AddressesHere {
  let found = NOWHERE;
  for (const { slice, target, from, end } of runs) {
    const { nodeNames } = slice;
    for (let index = from; index < end; index++) {
      const nodeName = nodeNames[index] ?? null;
      if (nodeName !== null && nodeName !== node.name) continue;
      if (found === NOWHERE) found = new AddressSets();
      const allowed = ports === null ? MARKS - 1 : ports.marks(target);
      found.add(slice, index, nodeName !== null, marksOf(slice, index, modes, node, uses) & allowed);
    }
  }
  return found;
}

/** One address at a time. */
const ADDRESS: Readonly<Record<Family, Uint8Array>> = { IPv4: new Uint8Array(4), IPv6: new Uint8Array(16) };

class AddressSets {
  readonly hairpin = new Set<IPAddress>();
  readonly own = new Set<IPAddress>();
  readonly readyHere = new Set<IPAddress>();

  add({ family, addresses, conditions }: EndpointSliceRow, index: number, isOwn: boolean, marks: number): void {
    const isUsed = (marks & (IN_CLUSTER | IN_LOCAL)) !== 0;
    const isReady = isOwn && ((conditions[index] ?? 0) & READY) !== 0;
    if (!isUsed && !isReady) return;
    const bytes = ADDRESS[family];
    for (let byte = 0; byte < bytes.length; byte++) bytes[byte] = addresses.charCodeAt(index * bytes.length + byte);
    const address = addressFromBytes(bytes);
    if (isUsed) this.hairpin.add(address);
    if (isUsed && isOwn) this.own.add(address);
    if (isReady) this.readyHere.add(address);
  }
}

/** Shared by the many ports that have no endpoints here; never modified. */
const NOWHERE = new AddressSets();

/** The one port that each list has, where it may have one only. */
class OnePort {
  /** That some endpoint of a list has, and the list does not. */
  readonly others = new Set<number>();
  private readonly kept: readonly (readonly [mark: number, port: number | null])[];

  constructor(runs: readonly Run[], modes: SelectionModes, node: NodeFacts, uses: PolicyUse) {
    this.kept = [IN_CLUSTER, IN_LOCAL].map((mark) => {
      const counts = new Map<number, number>();
      for (const { slice, target, from, end } of runs)
        for (let index = from; index < end; index++)
          if ((marksOf(slice, index, modes, node, uses) & mark) !== 0)
            counts.set(target, (counts.get(target) ?? 0) + 1);
      const port = mostFrequent(counts);
      for (const each of counts.keys()) if (each !== port) this.others.add(each);
      return [mark, port];
    });
  }

  /** Marks that endpoints of a port may have. */
  marks(port: number): number {
    return this.kept.reduce((marks, [mark, kept]) => (kept === port ? marks : marks & ~mark), MARKS - 1);
  }
}

/** The port that most endpoints have, and of several such the smallest; null: there are none. */
export function mostFrequent(counts: ReadonlyMap<number, number>): number | null {
  const [most] = [...counts].sort(([one, count], [other, otherCount]) => otherCount - count || one - other);
  return most?.[0] ?? null;
}
