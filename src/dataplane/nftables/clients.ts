import { endpointSize, packedKey, type EndpointList } from '../../base/endpoint-list.js';
import { addressLength } from '../../base/ip.js';
import type { NftablesAddon, NftElementsListing, NftElementsOperation, NftSetListing } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import { heldClientKeys } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan } from '../../plan/types.js';
import { packRange, unpackFrontend } from './keys.js';
import { NFT_FAMILY, TABLE, affinitySecondsOf, clientsMaps } from './names.js';

/** Which remembered clients of a frontend have to be forgotten: those whose endpoint is gone, or all. */
export type Forget = 'gone' | 'all';

/** What removes some clients, to be sent in one transaction. */
export type Forgetting = readonly [NftElementsOperation, NftElementsOperation];

const ROWS_AT_ONCE = 256;

/** What one {@link Forgetting} takes on the wire at most: added and deleted, a client takes some 250 bytes. */
export const FORGETTING_BYTES = ROWS_AT_ONCE * 256;

/**
 * Clients of session affinity whose endpoint they may no longer use. The kernel only ever adds to the client maps, so this is asked twice: before
 * a removal, to forget them in its own transaction, and after its acknowledgement, for those whom the kernel remembered in between.
 */
export async function staleClients(
  addon: Pick<NftablesAddon, 'nftElements'>,
  table: FamilyTable,
  timeouts: readonly number[],
  forget: ReadonlyMap<FrontendKey, Forget> | 'check-all',
): Promise<readonly Forgetting[]> {
  const sets = await addon.nftElements(NFT_FAMILY[table.family], TABLE, timeouts.flatMap(clientsMaps));
  const forgettings: Forgetting[] = [];
  for (const set of sets) {
    const seconds = affinitySecondsOf(set.name);
    if (set.elements === null || seconds === null) continue;
    const rows = staleRows(table, set, set.elements, seconds, forget);
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
      const operation = rowsOperation(set, set.elements, rows.slice(start, start + ROWS_AT_ONCE));
      // An entry may expire at any moment and deleting what is not there fails: adding it first makes the deletion certain.
      forgettings.push([operation, { ...operation, verb: 'delete', dataLength: 0, data: null }]);
    }
  }
  return forgettings;
}

/** Finds and removes stale clients in transactions of their own; how many. */
export async function forgetClients(
  addon: Pick<NftablesAddon, 'nftElements' | 'nftTransact'>,
  table: FamilyTable,
  timeouts: readonly number[],
  forget: ReadonlyMap<FrontendKey, Forget> | 'check-all',
): Promise<number> {
  let forgotten = 0;
  for (const operations of await staleClients(addon, table, timeouts, forget)) {
    try {
      await addon.nftTransact({ family: NFT_FAMILY[table.family], table: TABLE, operations });
      forgotten += operations[0].count;
    } catch (error) {
      // A sync removed the map while the search went on beside it, and its clients with it.
      if (!isNativeError(error) || error.errno !== 'ENOENT') throw error;
    }
  }
  return forgotten;
}

/** Rows of a client map to forget. A key is `client . destination . protocol . port`. */
function staleRows(
  table: FamilyTable,
  set: NftSetListing,
  elements: NftElementsListing,
  seconds: number,
  forget: ReadonlyMap<FrontendKey, Forget> | 'check-all',
): readonly number[] {
  const allowed = new Map<FrontendKey, Allowed>();
  const isPod = podTest(table);
  const rows: number[] = [];
  for (let row = 0; row < elements.count; row++) {
    const key = packedKey(elements.keys, row * set.keyLength, set.keyLength);
    const found = findFrontend(table, key, forget);
    if (found === null) continue;
    const { frontendKey, mode } = found;
    const frontend = table.frontend(frontendKey);
    let endpoints = allowed.get(frontendKey);
    if (endpoints === undefined) {
      endpoints = mode === 'all' || frontend?.affinitySeconds !== seconds ? NOBODY : allowedBy(frontend, table);
      allowed.set(frontendKey, endpoints);
    }
    const endpoint = packedKey(elements.data ?? new Uint8Array(0), row * set.dataLength, endpointSize(table.family));
    if (!(isPod(key) ? endpoints.pods : endpoints.others).has(endpoint)) rows.push(row);
  }
  return rows;
}

/** The frontend an entry belongs to: that of its destination address, else the node port. Null when it is not to be looked at. */
function findFrontend(
  table: FamilyTable,
  key: string,
  forget: ReadonlyMap<FrontendKey, Forget> | 'check-all',
): { readonly frontendKey: FrontendKey; readonly mode: Forget } | null {
  const size = addressLength(table.family);
  const byAddress = unpackFrontend(table.family, key.slice(size));
  const byNodePort = unpackFrontend(table.family, key.slice(2 * size));
  const candidates = [byAddress, byNodePort].filter((candidate) => candidate !== null);
  if (forget === 'check-all') {
    const frontendKey = candidates.find((candidate) => table.frontend(candidate) !== undefined) ?? key;
    return { frontendKey, mode: 'gone' };
  }
  for (const frontendKey of candidates) {
    const mode = forget.get(frontendKey);
    if (mode !== undefined) return { frontendKey, mode };
    if (table.frontend(frontendKey) !== undefined) return null;
  }
  return null;
}

/** Endpoints that remembered clients may keep. */
interface Allowed {
  readonly pods: ReadonlySet<string>;
  readonly others: ReadonlySet<string>;
}

const NOBODY: Allowed = { pods: new Set(), others: new Set() };

/**
 * Of a frontend whose key stands for a list of endpoints: those in the list. A frontend that remembers its clients alone may use two lists: pods never use that
 * of local endpoints; the node itself uses the other one too, so that both will do for everybody else.
 */
function allowedBy(frontend: FrontendPlan, table: FamilyTable): Allowed {
  const { key, endpoints, localEndpoints } = frontend;
  const keys = heldClientKeys(frontend, table);
  if (keys !== null) {
    const listed = keysOf(key === keys.local?.key ? keys.local.endpoints : endpoints);
    return { pods: listed, others: listed };
  }
  const pods = keysOf(endpoints);
  return { pods, others: localEndpoints === null ? pods : new Set([...pods, ...keysOf(localEndpoints)]) };
}

function keysOf(list: EndpointList): ReadonlySet<string> {
  return new Set(Array.from({ length: list.count }, (_, index) => list.key(index)));
}

/** Whether the client in an entry's key is a pod, as far as addresses tell: where pods are known by their interface nobody is. */
function podTest({ node, family }: FamilyTable): (key: string) => boolean {
  if (node.localDetector?.type !== 'source-prefix') return () => false;
  const range = packRange(node.localDetector.prefix);
  const size = addressLength(family);
  const [first, last] = [range.slice(0, size), range.slice(size)];
  return (key) => {
    const client = key.slice(0, size);
    return client >= first && client <= last;
  };
}

function rowsOperation(
  set: NftSetListing,
  elements: NftElementsListing,
  rows: readonly number[],
): NftElementsOperation {
  const pick = (bytes: Uint8Array, size: number): Uint8Array => {
    const picked = new Uint8Array(rows.length * size);
    for (const [index, row] of rows.entries()) picked.set(bytes.subarray(row * size, (row + 1) * size), index * size);
    return picked;
  };
  return {
    type: 'elements',
    verb: 'add',
    set: set.name,
    count: rows.length,
    keyLength: set.keyLength,
    keys: pick(elements.keys, set.keyLength),
    keyEnds: null,
    dataLength: set.dataLength,
    data: pick(elements.data ?? new Uint8Array(0), set.dataLength),
    gotoChains: null,
    comments: null,
  };
}
