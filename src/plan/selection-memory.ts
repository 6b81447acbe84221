import { EndpointList } from '../base/endpoint-list.js';
import type { Family, IPAddress } from '../base/ip.js';
import { positionOf, withChanges } from '../base/sorted-endpoints.js';
import { READY, SERVING, type EndpointSliceRow, type ObjectKey } from '../state/rows.js';
import { candidateAt, collect, has, pack, targetPorts, type Candidate, type PortName } from './candidates.js';
import type { NodeFacts } from './facts.js';
import type { PolicyUse, Selection } from './selection-rules.js';
import { selectAmong, selectEndpoints, type Select } from './selection.js';
import { admitted, clusterRules, localRules, Tally, type ClusterMode, type LocalMode } from './selection-rules.js';

/** Of Services with fewer endpoints all of them are looked at, which takes less than to remember them. */
const LARGE = 512;

/** Sorted lists of a port's endpoints, each of which a selection is made of. */
type Lists = Readonly<Record<(typeof LISTS)[number], EndpointList>>;

const LISTS = ['all', 'cluster', 'local', 'serving', 'hairpin', 'own', 'readyHere'] as const;

/** Whether an endpoint belongs in each of the lists. */
type Membership = Readonly<Record<keyof Lists, (candidate: Candidate) => boolean>>;

/** What came of the last selection among the endpoints of one port of a Service. */
interface Remembered {
  readonly slices: readonly EndpointSliceRow[];
  readonly node: NodeFacts;
  readonly uses: PolicyUse;
  readonly tally: Tally;
  readonly modes: { readonly cluster: ClusterMode; readonly local: LocalMode };
  readonly lists: Lists;
  readonly selection: Selection;
}

/**
 * Selects as {@link selectEndpoints} does. Of a large Service it remembers what came of it, so that the next time only those endpoints are looked at that have
 * changed; all of them where one is in two slices, and where what has changed decides over the others.
 */
export class SelectionMemory {
  private readonly services = new Map<ObjectKey, Map<string, Remembered>>();

  constructor(
    private readonly family: Family,
    private readonly large = LARGE,
  ) {}

  /** For the planning of one Service, in whose course each of its ports is selected for once; what is not is forgotten. */
  planning(service: ObjectKey): Select {
    const before = this.services.get(service);
    this.services.delete(service);
    return (family, port, slices, node, uses) => {
      const count = slices.reduce((sum, slice) => sum + slice.count, 0);
      if (uses.onePort || count < this.large) return selectEndpoints(family, port, slices, node, uses);
      const name = `${port.protocol} ${port.name}`;
      const held = before?.get(name);
      // What follows it changes it.
      before?.delete(name);
      const next = held && applies(held, node, uses) ? followed(this.family, port, slices, held) : null;
      const remembered = next ?? this.selected(port, slices, node, uses);
      if (!('slices' in remembered)) return remembered;
      this.services.set(service, (this.services.get(service) ?? new Map<string, Remembered>()).set(name, remembered));
      return remembered.selection;
    };
  }

  /** Among all endpoints; the selection alone when it is not to be followed. */
  private selected(
    port: PortName,
    slices: readonly EndpointSliceRow[],
    node: NodeFacts,
    uses: PolicyUse,
  ): Remembered | Selection {
    const { family } = this;
    const duplicates: Candidate[] = [];
    const candidates = collect(family, port, slices, {
      duplicate: (candidate) => duplicates.push(candidate),
      slice: () => undefined,
    });
    const tally = Tally.of(candidates, node);
    const selection = selectAmong(family, candidates, tally, node, uses);
    if (duplicates.length > 0) return selection;
    const modes = { cluster: tally.clusterMode, local: tally.localMode };
    const membership = membershipIn(modes, node, uses);
    const list = (name: keyof Lists): EndpointList => pack(family, candidates.filter(membership[name]));
    const { cluster, local, serving } = selection;
    const [all, hairpin, own, readyHere] = [list('all'), list('hairpin'), list('own'), list('readyHere')];
    const lists = shared({ all, cluster, local, serving, hairpin, own, readyHere });
    return { slices, node, uses, tally, modes, lists, selection };
  }
}

function applies(held: Remembered, node: NodeFacts, uses: PolicyUse): boolean {
  const sameNode = held.node.name === node.name && held.node.zone === node.zone;
  return sameNode && held.uses.cluster === uses.cluster && held.uses.local === uses.local;
}

function membershipIn(modes: Remembered['modes'], node: NodeFacts, uses: PolicyUse): Membership {
  const [ofCluster, ofLocal] = [clusterRules(modes.cluster, node), localRules(modes.local, node)];
  const cluster = (candidate: Candidate): boolean => uses.cluster && admitted(candidate, ofCluster);
  const local = (candidate: Candidate): boolean => uses.local && admitted(candidate, ofLocal);
  const isOwn = ({ nodeName }: Candidate): boolean => nodeName === node.name;
  return {
    all: () => true,
    cluster,
    local,
    serving: (candidate) => has(candidate, SERVING),
    hairpin: (candidate) =>
      (candidate.nodeName === null || isOwn(candidate)) && (cluster(candidate) || local(candidate)),
    own: (candidate) => isOwn(candidate) && (cluster(candidate) || local(candidate)),
    readyHere: (candidate) => isOwn(candidate) && has(candidate, READY),
  };
}

/** Of lists that are the same only one is kept. */
function shared(lists: Lists): Lists {
  const distinct: EndpointList[] = [];
  const one = (list: EndpointList): EndpointList => {
    const same = distinct.find((other) => other.equals(list));
    if (same === undefined) distinct.push(list);
    return same ?? list;
  };
  const { all, cluster, local, serving, hairpin, own, readyHere } = lists;
  return {
    ...{ cluster: one(cluster), local: one(local), serving: one(serving), all: one(all) },
    ...{ hairpin: one(hairpin), own: one(own), readyHere: one(readyHere) },
  };
}

/** The selection among what the slices are now, by what has changed in them; null when that does not suffice. */
function followed(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  held: Remembered,
): Remembered | null {
  const { node, uses, tally, lists } = held;
  const changes = changedCandidates(family, port, held.slices, slices);
  if (changes === null) return null;
  const { gone, come } = changes;
  for (const key of come.keys()) if (!gone.has(key) && positionOf(lists.all, key) >= 0) return null;
  for (const candidate of gone.values()) tally.add(candidate, -1);
  for (const candidate of come.values()) tally.add(candidate, 1);
  const modes = { cluster: tally.clusterMode, local: tally.localMode };
  if (modes.cluster !== held.modes.cluster || modes.local !== held.modes.local) return null;
  const membership = membershipIn(modes, node, uses);
  const made: { readonly from: EndpointList; readonly changes: string; readonly list: EndpointList }[] = [];
  const listOf = (name: keyof Lists): EndpointList => {
    const from = lists[name];
    const isMember = (candidate: Candidate | undefined): boolean =>
      candidate !== undefined && membership[name](candidate);
    const goes = [...gone].filter(([key, candidate]) => isMember(candidate) && !isMember(come.get(key)));
    const comes = [...come].filter(([key, candidate]) => isMember(candidate) && !isMember(gone.get(key)));
    const changes = `${goes.length} ${keysOf([...goes, ...comes]).join('')}`;
    // Mostly two lists are the same before and after, and a list is long.
    const same = made.find((other) => other.from === from && other.changes === changes);
    const list = same?.list ?? withChanges(from, keysOf(goes), keysOf(comes));
    made.push({ from, changes, list });
    return list;
  };
  const next = shared(Object.fromEntries(LISTS.map((name) => [name, listOf(name)])) as Lists);
  const addresses = (name: 'hairpin' | 'own' | 'readyHere'): ReadonlySet<IPAddress> =>
    next[name].equals(lists[name]) ? held.selection[name] : addressesOf(next[name]);
  const { cluster, local, serving } = next;
  const any = cluster.count > 0 || (uses.local && tally.anyAble);
  const { otherPorts } = held.selection;
  const sets = { hairpin: addresses('hairpin'), own: addresses('own'), readyHere: addresses('readyHere'), otherPorts };
  return { slices, node, uses, tally, modes, lists: next, selection: { cluster, local, any, serving, ...sets } };
}

function keysOf(entries: readonly (readonly [string, Candidate])[]): readonly string[] {
  return entries.map(([key]) => key);
}

function addressesOf(list: EndpointList): ReadonlySet<IPAddress> {
  return new Set(Array.from({ length: list.count }, (_, index) => list.address(index)));
}

type Candidates = ReadonlyMap<string, Candidate>;

/** Endpoints that are no longer as they were, as they were and as they are; null when one of them is there twice. */
function changedCandidates(
  family: Family,
  port: PortName,
  before: readonly EndpointSliceRow[],
  after: readonly EndpointSliceRow[],
): { readonly gone: Candidates; readonly come: Candidates } | null {
  const gone = new Map<string, Candidate>();
  const come = new Map<string, Candidate>();
  let unique = true;
  for (const [one, other] of changedSlices(before, after)) {
    const oldPorts = one === null ? [] : targetPorts(family, port, one);
    const newPorts = other === null ? [] : targetPorts(family, port, other);
    const [from, oldEnd, newEnd] =
      one !== null && other !== null && oldPorts.join() === newPorts.join() && one.weight === other.weight
        ? changedRange(one, other)
        : [0, one?.count ?? 0, other?.count ?? 0];
    for (const candidate of candidatesIn(one, oldPorts, from, oldEnd)) gone.set(candidate.key, candidate);
    for (const candidate of candidatesIn(other, newPorts, from, newEnd)) {
      unique &&= !come.has(candidate.key);
      come.set(candidate.key, candidate);
    }
  }
  return unique ? { gone, come } : null;
}

/** Slices that are not the same rows as before; both lists are sorted by name. */
function* changedSlices(
  before: readonly EndpointSliceRow[],
  after: readonly EndpointSliceRow[],
): IterableIterator<readonly [EndpointSliceRow | null, EndpointSliceRow | null]> {
  for (let [from, to] = [0, 0]; from < before.length || to < after.length;) {
    const [one, other] = [before[from] ?? null, after[to] ?? null];
    const order = one === null ? 1 : other === null ? -1 : one.name < other.name ? -1 : one.name > other.name ? 1 : 0;
    if (order <= 0) from++;
    if (order >= 0) to++;
    if (one !== other) yield [order <= 0 ? one : null, order >= 0 ? other : null];
  }
}

/** What lies between the endpoints that both slices have at their beginning and at their end: where it begins in both, and where it ends in each. */
function changedRange(one: EndpointSliceRow, other: EndpointSliceRow): readonly [number, number, number] {
  const least = Math.min(one.count, other.count);
  let from = 0;
  while (from < least && sameEndpoint(one, from, other, from)) from++;
  let same = 0;
  while (same < least - from && sameEndpoint(one, one.count - 1 - same, other, other.count - 1 - same)) same++;
  return [from, one.count - same, other.count - same];
}

function sameEndpoint(one: EndpointSliceRow, at: number, other: EndpointSliceRow, to: number): boolean {
  const size = one.addresses.length / one.count;
  for (let index = 0; index < size; index++)
    if (one.addresses.charCodeAt(at * size + index) !== other.addresses.charCodeAt(to * size + index)) return false;
  return (
    one.conditions[at] === other.conditions[to] &&
    one.nodeNames[at] === other.nodeNames[to] &&
    sameHints(one.zoneHints?.[at], other.zoneHints?.[to]) &&
    sameHints(one.nodeHints?.[at], other.nodeHints?.[to])
  );
}

function sameHints(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  return one === other || one?.join() === other?.join();
}

function* candidatesIn(
  slice: EndpointSliceRow | null,
  targets: readonly number[],
  from: number,
  end: number,
): IterableIterator<Candidate> {
  if (slice === null) return;
  for (const target of targets) for (let index = from; index < end; index++) yield candidateAt(slice, index, target);
}
