import { endpointSize } from '../../base/endpoint-list.js';
import { clientKeyOf } from '../../plan/frontend-key.js';
import { printServicePort } from '../../plan/text.js';
import type { ClientKeys, FrontendKey, FrontendPlan } from '../../plan/types.js';
import { nameClientKey, packLocal, type ClientKeyName } from './client-keys.js';
import { className, classSize, parseClassName, type ServiceClass } from './classes.js';
import type { ElementBatches } from './element-batches.js';
import { packFrontend, packParts, packRange, packSlot, shardOf, type PackedKey } from './keys.js';
import {
  SET,
  endpointsMap,
  sharingMap,
  sharingNodePortMap,
  stickyLocalsSet,
  stickyNodePortSet,
  stickySet,
} from './names.js';
import { isOwnKey, parseSharedChain, sharedRememberChain } from './remember-chains.js';
import { assignSlots, diffSlots, NO_SLOTS, type Slots } from './slots.js';

/** Every element that one frontend has in the table: as the kernel holds it, or as it should be. */
export interface FrontendElements {
  /** The chain its verdict goes to; null when it has no verdict. */
  readonly chain: string | null;
  readonly comment: string | null;
  readonly rejected: boolean;
  readonly dropped: boolean;
  readonly restricted: boolean;
  /** Packed source ranges, sorted. */
  readonly admitted: readonly PackedKey[];
  /** Affinity timeouts under which it is listed, as one whose clients are remembered by its own key: none or one, unless someone else added more. */
  readonly sticky: readonly number[];
  /** The chain that remembers its clients by keys of the whole Service port; null for none. */
  readonly sharing: string | null;
  /** By timeout the local endpoints, packed and sorted, that the set of {@link stickyLocalsSet} has under its key. */
  readonly stickyLocals: ReadonlyMap<number, readonly PackedKey[]>;
  readonly endpoints: Slots;
  readonly localEndpoints: Slots;
}

const EMPTY: readonly never[] = [];
const NO_LOCALS: FrontendElements['stickyLocals'] = new Map();

/** A frontend that the kernel does not know. */
export const NO_ELEMENTS: FrontendElements = {
  chain: null,
  comment: null,
  rejected: false,
  dropped: false,
  restricted: false,
  admitted: EMPTY,
  sticky: EMPTY,
  sharing: null,
  stickyLocals: NO_LOCALS,
  endpoints: NO_SLOTS,
  localEndpoints: NO_SLOTS,
};

export function sameElements(one: FrontendElements, other: FrontendElements): boolean {
  return (
    one.chain === other.chain &&
    one.comment === other.comment &&
    one.rejected === other.rejected &&
    one.dropped === other.dropped &&
    one.restricted === other.restricted &&
    sameList(one.admitted, other.admitted) &&
    sameList(one.sticky, other.sticky) &&
    one.sharing === other.sharing &&
    (one.stickyLocals === other.stickyLocals || printLocals(one) === printLocals(other)) &&
    Buffer.compare(one.endpoints, other.endpoints) === 0 &&
    Buffer.compare(one.localEndpoints, other.localEndpoints) === 0
  );
}

function printLocals({ stickyLocals }: FrontendElements): string {
  return [...stickyLocals]
    .map(([seconds, endpoints]) => `${seconds}: ${endpoints.join()}`)
    .sort()
    .join();
}

function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one === other || (one.length === other.length && one.every((item, index) => item === other[index]));
}

/** Affinity timeouts that a frontend needs. */
export function timeoutsOfFrontend(elements: FrontendElements): readonly number[] {
  if (elements.sharing === null) return elements.sticky;
  return [...new Set([...elements.sticky, ...sharedTimeouts(elements)])];
}

function sharedTimeouts({ sharing }: FrontendElements): readonly number[] {
  const shared = sharing === null ? null : parseSharedChain(sharing);
  return shared === null ? [] : [shared.seconds];
}

/** Names of the chains that a frontend leads to, but for those of the skeleton. */
export function chainsOfFrontend({ chain, sharing }: FrontendElements): readonly string[] {
  return [chain, sharing].filter((name) => name !== null);
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
  const sharing = seconds === null || clientKeys === null ? null : sharedRememberChain(plan.key, seconds, clientKeys);
  return {
    chain: className(classFor(plan, current, clientKeys)),
    comment: comment(plan),
    rejected: reachable.count === 0 && plan.whenEmpty === 'reject',
    dropped: reachable.count === 0 && plan.whenEmpty === 'drop',
    restricted: plan.sourceRanges !== null,
    admitted: plan.sourceRanges === null ? EMPTY : plan.sourceRanges.map(packRange).sort(),
    sticky: seconds !== null && sharing === null ? [seconds] : EMPTY,
    sharing,
    stickyLocals: seconds === null ? NO_LOCALS : stickyLocals(plan.key, seconds, clientKeys),
    endpoints: assignSlots(current.endpoints, plan.endpoints),
    localEndpoints: plan.localEndpoints === null ? NO_SLOTS : assignSlots(current.localEndpoints, plan.localEndpoints),
  };
}

function stickyLocals(
  key: FrontendKey,
  seconds: number,
  clientKeys: ClientKeys | null,
): FrontendElements['stickyLocals'] {
  const local = clientKeys?.local ?? null;
  const list =
    local === null ? null : key === local.key ? local.endpoints : key === clientKeys?.cluster ? local.apart : null;
  if (list === null || list.count === 0) return NO_LOCALS;
  return new Map([[seconds, Array.from({ length: list.count }, (_, index) => list.key(index)).sort()]]);
}

function classFor(plan: FrontendPlan, current: FrontendElements, clientKeys: ClientKeys | null): ServiceClass {
  const keyOf = (isLocal: boolean): ClientKeyName | null => {
    const key = clientKeys === null ? plan.key : clientKeyOf(plan, clientKeys, isLocal);
    return clientKeys === null || isOwnKey(plan.key, key) ? null : nameClientKey(key);
  };
  const held = current.chain === null ? null : parseClassName(current.chain);
  return {
    shard: plan.address === null ? null : shardOf(packParts(plan)),
    kind: plan.masquerade === 'off-cluster' ? 'pick' : plan.masquerade === 'always' ? 'external' : 'external-local',
    size: classSize(plan.endpoints.count, held?.size ?? 0),
    localSize: plan.localEndpoints === null ? 0 : classSize(plan.localEndpoints.count, held?.localSize ?? 0),
    affinitySeconds: plan.affinitySeconds,
    clients: keyOf(false),
    localClients: plan.localEndpoints === null ? null : keyOf(true),
  };
}

/**
 * `Kind namespace/name:port`, so that `nft list` and `dump` tell whose frontend it is. It stays within what nft takes back, 127 characters
 * (libnftables-json(5), NFTNL_UDATA_COMMENT_MAXLEN).
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
  const nodePort = key.startsWith('nodeport:');
  const verdicts = nodePort ? SET.nodePortFrontends : SET.frontends;
  if (current.chain !== next.chain || current.comment !== next.comment) {
    if (current.chain !== null) batches.delete(verdicts, packed);
    if (next.chain !== null) batches.addVerdict(verdicts, packed, next.chain, next.comment);
  }
  if (current.sharing !== next.sharing) {
    const mapOf = nodePort ? sharingNodePortMap : sharingMap;
    for (const seconds of sharedTimeouts(current)) batches.delete(mapOf(seconds), packed);
    for (const seconds of sharedTimeouts(next)) batches.addVerdict(mapOf(seconds), packed, next.sharing ?? '', null);
  }
  diffMember(batches, nodePort ? SET.rejectedNodePorts : SET.rejected, packed, current.rejected, next.rejected);
  diffMember(batches, nodePort ? SET.droppedNodePorts : SET.dropped, packed, current.dropped, next.dropped);
  diffAdmitted(batches, packed, current, next);
  const stickyName = nodePort ? stickyNodePortSet : stickySet;
  for (const seconds of current.sticky) if (!next.sticky.includes(seconds)) batches.delete(stickyName(seconds), packed);
  for (const seconds of next.sticky) if (!current.sticky.includes(seconds)) batches.add(stickyName(seconds), packed);
  diffStickyLocals(batches, key, current, next);
  const shard = nodePort ? null : shardOf(packed);
  diffEndpoints(batches, endpointsMap(shard, false), packed, current.endpoints, next.endpoints);
  diffEndpoints(batches, endpointsMap(shard, true), packed, current.localEndpoints, next.localEndpoints);
}

function diffMember(batches: ElementBatches, set: string, packed: PackedKey, current: boolean, next: boolean): void {
  if (current && !next) batches.delete(set, packed);
  if (!current && next) batches.add(set, packed);
}

function diffAdmitted(
  batches: ElementBatches,
  packed: PackedKey,
  current: FrontendElements,
  next: FrontendElements,
): void {
  diffMember(batches, SET.restricted, packed, current.restricted, next.restricted);
  const ends = (range: PackedKey): [PackedKey, PackedKey] => {
    const half = range.length / 2;
    return [range.slice(0, half) + packed, range.slice(half) + packed];
  };
  if (current.admitted === next.admitted) return;
  const before = new Set(current.admitted);
  const after = new Set(next.admitted);
  for (const range of before) if (!after.has(range)) batches.deleteRange(SET.admitted, ...ends(range));
  for (const range of after) if (!before.has(range)) batches.addRange(SET.admitted, ...ends(range));
}

function diffStickyLocals(
  batches: ElementBatches,
  key: FrontendKey,
  { stickyLocals: current }: FrontendElements,
  { stickyLocals: next }: FrontendElements,
): void {
  if (current === next) return;
  for (const seconds of new Set([...current.keys(), ...next.keys()])) {
    const set = stickyLocalsSet(seconds);
    const before = new Set(current.get(seconds));
    const after = new Set(next.get(seconds));
    const packed = (endpoint: PackedKey): PackedKey => packLocal(batches.family, endpoint, key);
    for (const endpoint of before) if (!after.has(endpoint)) batches.delete(set, packed(endpoint));
    for (const endpoint of after) if (!before.has(endpoint)) batches.add(set, packed(endpoint));
  }
}

function diffEndpoints(batches: ElementBatches, map: string, packed: PackedKey, current: Slots, next: Slots): void {
  const size = endpointSize(batches.family);
  for (const { slot, at, held, wanted } of diffSlots(batches.family, current, next)) {
    const key = packSlot(slot) + packed;
    if (held) batches.delete(map, key);
    if (wanted) batches.addEndpoint(map, key, next, at, size);
  }
}
