import { endpointSize, type EndpointList } from '../../base/endpoint-list.js';
import { clientKeyOf, isNodePortKey } from '../../plan/frontend-key.js';
import { printServicePort } from '../../plan/frontend-fields.js';
import type { ClientKeys, FrontendKey, FrontendPlan, Shares } from '../../plan/types.js';
import { findChainOf, rememberChainOf, secondsOf } from './affinity/chains.js';
import { packLocal } from './affinity/local-endpoints.js';
import { className, classSize, parseClassName, type ServiceClass } from './classes.js';
import type { ElementBatches } from './element-batches.js';
import { packFrontend, packParts, packRange, packSlot, packSource, shardOf, type PackedKey } from './keys.js';
import { SET, endpointsMap } from './names.js';
import { retryClassOf } from './retry.js';
import { assignSlots, diffSlots, NO_SLOTS, tableSlots, type Slots } from './slots.js';

/** Every element that one frontend has in the table: as the kernel holds it, or as it should be. */
export interface FrontendElements {
  /** The chain its verdict goes to; null when it has no verdict. */
  readonly chain: string | null;
  readonly comment: string | null;
  readonly rejected: boolean;
  readonly dropped: boolean;
  /** A node port of UDP or SCTP. */
  readonly datagramNodePort: boolean;
  readonly restricted: boolean;
  /** Packed source ranges, sorted. */
  readonly admitted: readonly PackedKey[];
  /** Session affinity: the chains that find its clients, find those of its local endpoints, and remember them; null for none. */
  readonly finds: string | null;
  readonly findsLocal: string | null;
  readonly remembers: string | null;
  /** The local endpoints, packed and sorted, that {@link SET.stickyLocals} has under its key. */
  readonly stickyLocals: readonly PackedKey[];
  readonly endpoints: Slots;
  readonly localEndpoints: Slots;
}

const EMPTY: readonly never[] = [];

/** A frontend that the kernel does not know. */
export const NO_ELEMENTS: FrontendElements = {
  chain: null,
  comment: null,
  rejected: false,
  dropped: false,
  datagramNodePort: false,
  restricted: false,
  admitted: EMPTY,
  finds: null,
  findsLocal: null,
  remembers: null,
  stickyLocals: EMPTY,
  endpoints: NO_SLOTS,
  localEndpoints: NO_SLOTS,
};

export function sameElements(one: FrontendElements, other: FrontendElements): boolean {
  return (
    one.chain === other.chain &&
    one.comment === other.comment &&
    one.rejected === other.rejected &&
    one.dropped === other.dropped &&
    one.datagramNodePort === other.datagramNodePort &&
    one.restricted === other.restricted &&
    sameList(one.admitted, other.admitted) &&
    one.finds === other.finds &&
    one.findsLocal === other.findsLocal &&
    one.remembers === other.remembers &&
    sameList(one.stickyLocals, other.stickyLocals) &&
    Buffer.compare(one.endpoints, other.endpoints) === 0 &&
    Buffer.compare(one.localEndpoints, other.localEndpoints) === 0
  );
}

function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one === other || (one.length === other.length && one.every((item, index) => item === other[index]));
}

/** The affinity timeout of a frontend; null for none. */
export function timeoutOfFrontend({ remembers }: FrontendElements): number | null {
  return remembers === null ? null : secondsOf(remembers);
}

/** Names of the chains that a frontend leads to, but for those of the skeleton. */
export function chainsOfFrontend({ chain, finds, findsLocal, remembers }: FrontendElements): readonly string[] {
  if (chain !== null && finds === null && findsLocal === null && remembers === null) return [chain];
  return [chain, finds, findsLocal, remembers].filter((name) => name !== null);
}

/**
 * What the kernel should hold for a plan, changing as little as can be of what it holds now.
 *
 * @param clientKeys those of the plan, unless others hold the frontends.
 */
export function renderFrontend(
  plan: FrontendPlan,
  current: FrontendElements,
  clientKeys: ClientKeys | null,
): FrontendElements {
  const reachable = plan.localEndpoints ?? plan.endpoints;
  const seconds = plan.affinitySeconds;
  const keyOf = (isLocal: boolean): FrontendKey =>
    clientKeys === null ? plan.key : clientKeyOf(plan, clientKeys, isLocal);
  return {
    chain: className(classFor(plan, current)),
    comment: comment(plan),
    rejected: reachable.count === 0 && plan.whenEmpty === 'reject',
    dropped: reachable.count === 0 && plan.whenEmpty === 'drop',
    datagramNodePort: plan.address === null && plan.protocol !== 'TCP',
    restricted: plan.sourceRanges !== null,
    admitted: plan.sourceRanges === null ? EMPTY : plan.sourceRanges.map(packRange).sort(),
    finds: seconds === null ? null : findChainOf(keyOf(false)),
    findsLocal: seconds === null || plan.localEndpoints === null ? null : findChainOf(keyOf(true)),
    remembers: seconds === null ? null : rememberChainOf(plan.key, seconds, clientKeys, plan.clientRoom),
    stickyLocals: seconds === null ? EMPTY : stickyLocals(plan.key, clientKeys),
    endpoints: slotsFor(plan.endpoints, plan.balance?.endpoints, current.endpoints),
    localEndpoints:
      plan.localEndpoints === null
        ? NO_SLOTS
        : slotsFor(plan.localEndpoints, plan.balance?.localEndpoints, current.localEndpoints),
  };
}

function slotsFor(list: EndpointList, shares: Shares | null | undefined, current: Slots): Slots {
  const table = shares?.slots ?? null;
  return table === null ? assignSlots(current, list) : tableSlots(current, list, table);
}

function stickyLocals(key: FrontendKey, clientKeys: ClientKeys | null): readonly PackedKey[] {
  const local = clientKeys?.local ?? null;
  const list =
    local === null ? null : key === local.key ? local.endpoints : key === clientKeys?.cluster ? local.apart : null;
  if (list === null || list.count === 0) return EMPTY;
  return Array.from({ length: list.count }, (_, index) => list.key(index)).sort();
}

function classFor(plan: FrontendPlan, current: FrontendElements): ServiceClass {
  const held = current.chain === null ? null : parseClassName(current.chain);
  const { balance } = plan;
  const draw = balance?.by ?? 'even';
  const before = held?.draw === 'even' ? held : null;
  const sizeOf = (list: EndpointList, shares: Shares | null | undefined, size = 0): number =>
    draw === 'even' ? classSize(list.count, size) : Math.max(1, shares?.slots?.length ?? 0);
  return {
    shard: plan.address === null ? null : shardOf(packParts(plan)),
    kind: plan.masquerade === 'off-cluster' ? 'pick' : plan.masquerade === 'always' ? 'external' : 'external-local',
    draw,
    size: sizeOf(plan.endpoints, balance?.endpoints, before?.size),
    localSize:
      plan.localEndpoints === null ? 0 : sizeOf(plan.localEndpoints, balance?.localEndpoints, before?.localSize),
    retry: retryClassOf(plan),
    sticky: plan.affinitySeconds !== null,
  };
}

/**
 * `Kind namespace/name:port`, so that `nft list` and `dump` show whose frontend it is. It stays within what nft takes back,
 * 127 characters (libnftables-json(5), NFTNL_UDATA_COMMENT_MAXLEN).
 */
function comment(plan: FrontendPlan): string {
  return `${plan.kind} ${printServicePort(plan.servicePort)}`;
}

/** Adds the element operations that turn `current` into `next`. */
export function diffFrontend(
  batches: ElementBatches,
  key: FrontendKey,
  current: FrontendElements,
  next: FrontendElements,
): void {
  const packed = packFrontend(key);
  const nodePort = isNodePortKey(key);
  const verdicts = nodePort ? SET.nodePortFrontends : SET.frontends;
  if (current.chain !== next.chain || current.comment !== next.comment) {
    if (current.chain !== null) batches.delete(verdicts, packed);
    if (next.chain !== null) batches.addVerdict(verdicts, packed, next.chain, next.comment);
  }
  diffVerdict(batches, nodePort ? SET.stickyNodePorts : SET.sticky, packed, current.finds, next.finds);
  const localSticky = nodePort ? SET.localStickyNodePorts : SET.localSticky;
  diffVerdict(batches, localSticky, packed, current.findsLocal, next.findsLocal);
  const remembering = nodePort ? SET.rememberingNodePorts : SET.remembering;
  diffVerdict(batches, remembering, packed, current.remembers, next.remembers);
  diffMember(batches, nodePort ? SET.rejectedNodePorts : SET.rejected, packed, current.rejected, next.rejected);
  diffMember(batches, nodePort ? SET.droppedNodePorts : SET.dropped, packed, current.dropped, next.dropped);
  diffMember(batches, SET.datagramNodePorts, packed, current.datagramNodePort, next.datagramNodePort);
  diffAdmitted(batches, packed, current, next);
  diffStickyLocals(batches, key, current, next);
  const shard = nodePort ? null : shardOf(packed);
  diffEndpoints(batches, endpointsMap(shard, false), packed, current.endpoints, next.endpoints);
  diffEndpoints(batches, endpointsMap(shard, true), packed, current.localEndpoints, next.localEndpoints);
}

function diffMember(batches: ElementBatches, set: string, packed: PackedKey, current: boolean, next: boolean): void {
  if (current && !next) batches.delete(set, packed);
  if (!current && next) batches.add(set, packed);
}

function diffVerdict(
  batches: ElementBatches,
  map: string,
  packed: PackedKey,
  current: string | null,
  next: string | null,
): void {
  if (current === next) return;
  if (current !== null) batches.delete(map, packed);
  if (next !== null) batches.addVerdict(map, packed, next, null);
}

function diffAdmitted(
  batches: ElementBatches,
  packed: PackedKey,
  current: FrontendElements,
  next: FrontendElements,
): void {
  diffMember(batches, SET.restricted, packed, current.restricted, next.restricted);
  const element = (range: PackedKey): [string, PackedKey] => {
    const source = packSource(range);
    return source === null
      ? [SET.admittedAddresses, range.slice(range.length / 2) + packed]
      : [SET.admitted, source + packed];
  };
  if (current.admitted === next.admitted) return;
  const before = new Set(current.admitted);
  const after = new Set(next.admitted);
  for (const range of before) if (!after.has(range)) batches.delete(...element(range));
  for (const range of after) if (!before.has(range)) batches.add(...element(range));
}

function diffStickyLocals(
  batches: ElementBatches,
  key: FrontendKey,
  { stickyLocals: current }: FrontendElements,
  { stickyLocals: next }: FrontendElements,
): void {
  if (current === next) return;
  const [before, after] = [new Set(current), new Set(next)];
  const packed = (endpoint: PackedKey): PackedKey => packLocal(batches.family, endpoint, key);
  for (const endpoint of before) if (!after.has(endpoint)) batches.delete(SET.stickyLocals, packed(endpoint));
  for (const endpoint of after) if (!before.has(endpoint)) batches.add(SET.stickyLocals, packed(endpoint));
}

function diffEndpoints(batches: ElementBatches, map: string, packed: PackedKey, current: Slots, next: Slots): void {
  const size = endpointSize(batches.family);
  for (const { slot, at, held, wanted } of diffSlots(batches.family, current, next)) {
    const key = packSlot(slot) + packed;
    if (held) batches.delete(map, key);
    if (wanted) batches.addEndpoint(map, key, next, at, size);
  }
}
