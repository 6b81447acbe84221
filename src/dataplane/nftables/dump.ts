import { NO_RETRIES } from '../../base/conntrack-timeouts.js';
import type { BalanceBy } from '../../base/balance.js';
import { EndpointList, endpointSize, packedKey } from '../../base/endpoint-list.js';
import {
  addressFromBytes,
  addressLength,
  prefixRange,
  parsePrefix,
  type Family,
  type IPPrefix,
} from '../../base/ip.js';
import { UNHELD } from '../../plan/frontend-fields.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { clusterAddressLine, hairpinLine, printFrontend, printNode } from '../../plan/text.js';
import type { Balance, FrontendKey, FrontendKind, NodePlan, Shares } from '../../plan/types.js';
import { findChainOf, parseAffinityChain } from './affinity/chains.js';
import { parseClassName } from './classes.js';
import { chainsOfFrontend, timeoutOfFrontend, type FrontendElements } from './frontend-elements.js';
import type { HeldTable } from './listing.js';
import type { PackedKey } from './keys.js';
import type { Slots } from './slots.js';
import { isTimeoutUsed, retrySecondsOf } from './retry.js';
import { hasCounters, isCounter, objectsOfChain, type Structure } from './structure.js';

/**
 * The kernel's table in the lines of plan/text.ts, sorted. What has no counterpart there is printed as `kernel …` lines.
 *
 * @param lingering chains and sets that nothing needs, and that are about to go.
 */
export function dumpTable(
  family: Family,
  kernel: HeldTable,
  structure: Structure,
  node: NodePlan,
  lingering: ReadonlySet<string>,
): readonly string[] {
  const unneeded = unneededObjects(kernel, structure).filter((name) => !lingering.has(name));
  return [...dumpPart(family, kernel, structure, node), ...printUnneeded(family, unneeded)].sort();
}

/** The same of a part of the table, which does not show what is needed. */
export function dumpPart(family: Family, kernel: HeldTable, structure: Structure, node: NodePlan): readonly string[] {
  const lines: string[] = [];
  for (const address of kernel.clusterAddresses.keys()) lines.push(clusterAddressLine(family, address));
  for (const address of kernel.hairpinAddresses.keys()) lines.push(hairpinLine(family, address));
  for (const [key, elements] of kernel.frontends) lines.push(...dumpFrontend(family, key, elements));
  for (const key of kernel.staleFlows.keys()) lines.push(`${family} kernel flows of ${key} are still to be removed`);
  for (const element of kernel.unexpected.values())
    lines.push(`${family} kernel set ${element.set} has an element that is not ours`);
  lines.push(...dumpRules(family, kernel, structure, node));
  return lines.sort();
}

/** Chains, sets and other objects that no frontend leads to. */
export function unneededObjects(
  { chains, sets, objects, frontends }: HeldTable,
  structure: Structure,
): readonly string[] {
  const roots = new Set([...frontends.values()].flatMap(chainsOfFrontend));
  const needed = new Set([...roots].flatMap(objectsOfChain));
  const isNeeded = (name: string): boolean => needed.has(name) || structure.isStatic(name) || isCounter(name);
  const unused = [...objects.keys()].filter((name) => !isTimeoutUsed(name, chains));
  return [...[...chains.keys(), ...sets.keys()].filter((name) => !isNeeded(name)), ...unused];
}

export function printUnneeded(family: Family, names: readonly string[]): readonly string[] {
  return names.map((name) => `${family} kernel ${name} is needed by nothing`);
}

/**
 * The node's lines if the rules are right for it; otherwise the rules that differ. The caller need not know whether the
 * running process counts refused packets.
 */
function dumpRules(family: Family, kernel: HeldTable, structure: Structure, node: NodePlan): readonly string[] {
  const classNames = new Set([...kernel.frontends.values()].flatMap(chainsOfFrontend));
  const wanted = structure.chainTexts(node, classNames, hasCounters(kernel));
  const lines: string[] = [];
  for (const [name, text] of wanted) {
    const held = kernel.chains.get(name);
    if (held === undefined) lines.push(`${family} kernel chain ${name} is missing`);
    else if (held !== text)
      lines.push(...held.split('\n').map((rule) => `${family} kernel chain ${name} has: ${rule}`));
  }
  for (const [name, text] of kernel.objects) {
    const named = structure.timeoutNamed(name);
    if (named !== null && named !== text) lines.push(`${family} kernel ct timeout ${name} has: ${text}`);
  }
  return lines.length === 0 ? printNode(structure.timeouts === null ? withoutRetries(node) : node) : lines;
}

/** Where the kernel has no objects for it attempts stay with their endpoint. */
function withoutRetries(node: NodePlan): NodePlan {
  return { ...node, retryTimes: NO_RETRIES };
}

function dumpFrontend(family: Family, key: FrontendKey, elements: FrontendElements): readonly string[] {
  const service = elements.chain === null ? null : parseClassName(elements.chain);
  if (service === null)
    return [`${family} kernel frontend ${key} has elements and the verdict ${elements.chain ?? 'none'}`];
  const { address, port, protocol } = parseFrontendKey(key);
  const [kind = '', servicePort = ''] = (elements.comment ?? '').split(' ');
  const local = service.kind === 'external-local';
  const isTable = service.draw !== 'even';
  const lines = printFrontend({
    key,
    kind: kind as FrontendKind,
    family,
    address,
    protocol,
    port,
    servicePort,
    endpoints: listOf(family, elements.endpoints, isTable),
    localEndpoints: local ? listOf(family, elements.localEndpoints, isTable) : null,
    masquerade: service.kind === 'pick' ? 'off-cluster' : local ? 'node' : 'always',
    whenEmpty: elements.dropped ? 'drop' : 'reject',
    retrySeconds: retrySecondsOf(service.retry),
    affinitySeconds: timeoutOfFrontend(elements),
    balance: service.draw === 'even' ? null : balanceOf(family, service.draw, elements, local),
    sourceRanges: elements.restricted ? elements.admitted.map((range) => prefixOf(family, range)).sort() : null,
    ...UNHELD,
  });
  if (!hasRightLocals(family, key, elements, local))
    lines.push(`${family} kernel frontend ${key} remembers clients of other local endpoints than its own`);
  if (!findsWhatItRemembers(key, elements, service.sticky, local))
    lines.push(`${family} kernel frontend ${key} does not find the clients that it remembers`);
  const empty = local ? elements.localEndpoints : elements.endpoints;
  const refused = elements.rejected || elements.dropped;
  if (refused !== (empty.length === 0) || (elements.rejected && elements.dropped)) {
    lines.push(`${family} kernel frontend ${key} rejected=${elements.rejected} dropped=${elements.dropped}`);
  }
  return lines;
}

/**
 * Whether clients are found by the keys by which they are remembered: by the frontend's own key if it stands for a list,
 * otherwise by the list's key.
 */
function findsWhatItRemembers(
  key: FrontendKey,
  { finds, findsLocal, remembers }: FrontendElements,
  sticky: boolean,
  hasLocalList: boolean,
): boolean {
  const remembering = remembers === null ? null : parseAffinityChain(remembers);
  if (remembers === null) return !sticky && finds === null && findsLocal === null;
  if (!sticky || remembering === null || remembering.does === 'find') return false;
  const { cluster, local } =
    remembering.does === 'remember' ? { cluster: remembering.key, local: remembering.key } : remembering;
  const list = !hasLocalList && key === local ? local : cluster;
  return finds === findChainOf(list) && findsLocal === (hasLocalList ? findChainOf(local) : null);
}

/** Whether the frontend's key remembers clients for the frontend's endpoints, as far as it has the list of the key. */
function hasRightLocals(family: Family, key: FrontendKey, elements: FrontendElements, hasLocalList: boolean): boolean {
  const remembering = elements.remembers === null ? null : parseAffinityChain(elements.remembers);
  const held = elements.stickyLocals;
  const own = (slots: Slots): readonly PackedKey[] => {
    const list = listOf(family, slots, true);
    return Array.from({ length: list.count }, (_, index) => list.key(index));
  };
  if (remembering?.does !== 'remember-both') return held.length === 0;
  if (remembering.local === key) {
    const locals = own(hasLocalList ? elements.localEndpoints : elements.endpoints);
    return held.join() === locals.join();
  }
  const cluster = own(elements.endpoints);
  return remembering.cluster === key ? !held.some((endpoint) => cluster.includes(endpoint)) : held.length === 0;
}

/** The balance that the slots of a table amount to. */
function balanceOf(
  family: Family,
  by: BalanceBy,
  { endpoints, localEndpoints }: FrontendElements,
  local: boolean,
): Balance {
  return {
    by,
    endpoints: sharesOf(family, endpoints),
    localEndpoints: local ? sharesOf(family, localEndpoints) : null,
  };
}

function sharesOf(family: Family, slots: Slots): Shares {
  const size = endpointSize(family);
  const list = listOf(family, slots, true);
  const places = new Map(Array.from({ length: list.count }, (_, place) => [list.key(place), place]));
  // An empty slot has no place: it is not in the table that is printed, whose digest is another one then.
  const filled = Array.from({ length: slots.length / size }, (_, slot) =>
    places.get(packedKey(slots, slot * size, size)),
  );
  return { weights: [], slots: Uint16Array.from(filled.filter((place) => place !== undefined)) };
}

/** Slots as a sorted list without the empty ones. Of a table each endpoint is there once. */
function listOf(family: Family, slots: Slots, isTable = false): EndpointList {
  const size = endpointSize(family);
  const endpoints: Buffer[] = [];
  for (let at = 0; at < slots.length; at += size) {
    const endpoint = Buffer.from(slots.subarray(at, at + size));
    if (endpoint.some((byte) => byte !== 0)) endpoints.push(endpoint);
  }
  endpoints.sort((one, other) => Buffer.compare(one, other));
  const distinct = endpoints.filter(
    (endpoint, index) => !isTable || index === 0 || !endpoint.equals(endpoints[index - 1] ?? NO_BYTES),
  );
  return new EndpointList(family, Buffer.concat(distinct));
}

const NO_BYTES = Buffer.alloc(0);

/** A packed range as a prefix; ranges that are none are printed by their first address. */
function prefixOf(family: Family, range: PackedKey): IPPrefix {
  const size = addressLength(family);
  const bytes = Buffer.from(range, 'latin1');
  const first = addressFromBytes(bytes.subarray(0, size));
  for (let length = 0; length <= size * 8; length++) {
    const prefix = parsePrefix(`${first}/${length}`);
    if (prefix === null) continue;
    const [start, end] = prefixRange(prefix);
    if (Buffer.compare(Buffer.concat([start, end]), bytes) === 0) return prefix;
  }
  return `${first}-${addressFromBytes(bytes.subarray(size))}` as IPPrefix;
}
