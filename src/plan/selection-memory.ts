import type { EndpointList } from '../base/endpoint-list.js';
import { addressLength, type Family } from '../base/ip.js';
import { positionOf, withChanges } from '../base/sorted-endpoints.js';
import { READY, type EndpointSliceRow, type ObjectKey } from '../state/rows.js';
import { keyAt, targetPorts, type PortName } from './candidates.js';
import type { NodeFacts } from './facts.js';
import {
  IN_ALL,
  IN_CLUSTER,
  IN_LOCAL,
  IN_SERVING,
  addressesHere,
  marksOf,
  runsOf,
  selectEndpoints,
  selectWhole,
  type AddressesHere,
  type Run,
  type Select,
  type WholeSelection,
} from './selection.js';
import type { PolicyUse, SelectionModes } from './selection-rules.js';

/** Services with fewer endpoints are selected for as a whole, which takes less than to remember them. */
const LARGE = 512;

/** The result of the last selection among the endpoints of one port of a Service. */
interface Remembered extends WholeSelection {
  readonly slices: readonly EndpointSliceRow[];
  readonly node: NodeFacts;
  readonly uses: PolicyUse;
  readonly all: EndpointList;
}

/**
 * Selects as {@link selectEndpoints} does. It remembers the result for a large Service, so that next time it looks only at
 * endpoints that have changed. It looks at all of them if one is in two slices, or if the change decides over the others.
 */
export class SelectionMemory {
  private readonly services = new Map<ObjectKey, Map<string, Remembered>>();

  constructor(
    private readonly family: Family,
    private readonly large = LARGE,
  ) {}

  /** For the planning of one Service, which selects for each of its ports once; results for other ports are forgotten. */
  planning(service: ObjectKey): Select {
    const before = this.services.get(service);
    this.services.delete(service);
    return (family, port, slices, node, uses) => {
      const count = slices.reduce((sum, slice) => sum + slice.count, 0);
      if (uses.onePort || count < this.large) return selectEndpoints(family, port, slices, node, uses);
      const name = `${port.protocol} ${port.name}`;
      const held = before?.get(name);
      // The next change modifies it in place.
      before?.delete(name);
      const next = held && applies(held, node, uses) ? followed(this.family, port, slices, held) : null;
      const { all, ...whole } = next ?? selectWhole(this.family, port, slices, node, uses, true);
      if (all === null) return whole.selection;
      const remembered = { slices, node, uses, all, ...whole };
      this.services.set(service, (this.services.get(service) ?? new Map<string, Remembered>()).set(name, remembered));
      return whole.selection;
    };
  }
}

function applies(held: Remembered, node: NodeFacts, uses: PolicyUse): boolean {
  const sameNode = held.node.name === node.name && held.node.zone === node.zone;
  return sameNode && held.uses.cluster === uses.cluster && held.uses.local === uses.local;
}

/** The selection among what the slices are now, by what has changed in them; null when that does not suffice. */
function followed(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  held: Remembered,
): WholeSelection | null {
  const { node, uses, tally, selection } = held;
  const { gone, come } = changedRuns(family, port, held.slices, slices);
  for (const { slice, from, end } of gone) for (let index = from; index < end; index++) tally.add(slice, index, -1);
  for (const { slice, from, end } of come) for (let index = from; index < end; index++) tally.add(slice, index, 1);
  const { modes } = tally;
  if (modes.cluster !== held.modes.cluster || modes.local !== held.modes.local) return null;
  const [before, after] = [marksByKey(gone, modes, node, uses), marksByKey(come, modes, node, uses)];
  if (before === null || after === null) return null;
  let here: AddressesHere = selection;
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(key) ?? 0, after.get(key) ?? 0];
    // It is in a slice that has not changed, too.
    if (was === 0 && positionOf(held.all, key) >= 0) return null;
    if (was === is || ((was | is) & (IS_OWN | IS_NOWHERE)) === 0 || here !== selection) continue;
    here = addressesHere(runsOf(family, port, slices), modes, node, uses);
  }
  const made: { readonly from: EndpointList; readonly changes: string; readonly list: EndpointList }[] = [];
  const listOf = (from: EndpointList, mark: number): EndpointList => {
    const goes = [...before].filter(([key, marks]) => (marks & mark) !== 0 && ((after.get(key) ?? 0) & mark) === 0);
    const comes = [...after].filter(([key, marks]) => (marks & mark) !== 0 && ((before.get(key) ?? 0) & mark) === 0);
    const changes = `${goes.length} ${keysOf([...goes, ...comes]).join('')}`;
    // Mostly two lists are the same before and after, and a list is long.
    const same = made.find((other) => other.from === from && other.changes === changes);
    const changed = same?.list ?? withChanges(from, keysOf(goes), keysOf(comes));
    const list = made.find((other) => other.list.equals(changed))?.list ?? changed;
    made.push({ from, changes, list });
    return list;
  };
  const cluster = listOf(selection.cluster, IN_CLUSTER);
  const [local, serving] = [listOf(selection.local, IN_LOCAL), listOf(selection.serving, IN_SERVING)];
  const any = cluster.count > 0 || (uses.local && tally.anyAble);
  const all = listOf(held.all, IN_ALL);
  const { hairpin, own, readyHere } = here;
  const next = { ...selection, cluster, local, serving, any, hairpin, own, readyHere };
  return { selection: next, tally, modes, all };
}

function keysOf(entries: readonly (readonly [string, number])[]): readonly string[] {
  return entries.map(([key]) => key);
}

/**
 * Beside the marks of lists: the endpoint is on this node, on no node that we know of, ready. If these stay, so do addresses
 * on this node.
 */
const IS_OWN = 16;
const IS_NOWHERE = 32;
const IS_READY = 64;

/** The marks of endpoints; null when one of them is there twice. */
function marksByKey(
  runs: readonly Run[],
  modes: SelectionModes,
  node: NodeFacts,
  uses: PolicyUse,
): ReadonlyMap<string, number> | null {
  const found = new Map<string, number>();
  for (const { slice, target, from, end } of runs)
    for (let index = from; index < end; index++) {
      const key = keyAt(slice, index, target);
      if (found.has(key)) return null;
      const nodeName = slice.nodeNames[index] ?? null;
      const here = nodeName === null ? IS_NOWHERE : nodeName === node.name ? IS_OWN : 0;
      const ready = ((slice.conditions[index] ?? 0) & READY) === 0 ? 0 : IS_READY;
      found.set(key, marksOf(slice, index, modes, node, uses) | here | ready);
    }
  return found;
}

interface ChangedRuns {
  readonly gone: readonly Run[];
  readonly come: readonly Run[];
}

/** Changed endpoints, in their former and their present state. */
function changedRuns(
  family: Family,
  port: PortName,
  before: readonly EndpointSliceRow[],
  after: readonly EndpointSliceRow[],
): ChangedRuns {
  const [gone, come]: [Run[], Run[]] = [[], []];
  for (const [one, other] of changedSlices(before, after)) {
    const oldPorts = one === null ? [] : targetPorts(family, port, one);
    const newPorts = other === null ? [] : targetPorts(family, port, other);
    const isAlike =
      one !== null && other !== null && oldPorts.join() === newPorts.join() && one.weight === other.weight;
    const [from, oldEnd, newEnd] = isAlike ? changedRange(one, other) : [0, one?.count ?? 0, other?.count ?? 0];
    if (one !== null) for (const target of oldPorts) gone.push({ slice: one, target, from, end: oldEnd });
    if (other !== null) for (const target of newPorts) come.push({ slice: other, target, from, end: newEnd });
  }
  return { gone, come };
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

/** The range between the slices' common first and last endpoints: its begin in both, and its end in each. */
function changedRange(one: EndpointSliceRow, other: EndpointSliceRow): readonly [number, number, number] {
  const least = Math.min(one.count, other.count);
  let from = 0;
  while (from < least && sameEndpoint(one, from, other, from)) from++;
  let same = 0;
  while (same < least - from && sameEndpoint(one, one.count - 1 - same, other, other.count - 1 - same)) same++;
  return [from, one.count - same, other.count - same];
}

function sameEndpoint(one: EndpointSliceRow, at: number, other: EndpointSliceRow, to: number): boolean {
  const size = addressLength(one.family);
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
