import { endpointSize, packedKey, type EndpointList } from '../../../base/endpoint-list.js';
import { addressLength } from '../../../base/ip.js';
import type {
  NftablesAddon,
  NftElementsListing,
  NftElementsOperation,
  NftSetListing,
} from '../../../native/contract.js';
import { isNativeError } from '../../../native/errors.js';
import { heldClientKeys } from '../../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan } from '../../../plan/types.js';
import { packRange } from '../keys.js';
import { NFT_FAMILY, TABLE, clientsMap, parseClientsMap } from '../names.js';
import { nameClientKey } from './key-names.js';

/** Operations that remove some clients, to be sent in one transaction. */
type Forgetting = readonly [NftElementsOperation, NftElementsOperation];

const ROWS_AT_ONCE = 256;

/** The most bytes of one {@link Forgetting} on the wire: added and deleted, a client takes some 250 bytes. */
export const FORGETTING_BYTES = ROWS_AT_ONCE * 256;

/** Clients to remove from a map. */
export interface StaleClients {
  /** The key by which they are remembered. */
  readonly key: FrontendKey;
  /** How many clients the map has, stale or not. */
  readonly count: number;
  readonly forgettings: readonly Forgetting[];
}

/**
 * Clients of session affinity whose endpoint they may no longer use. The kernel only ever adds to the maps of clients, so
 * this is called twice. Before a removal, the removal's transaction forgets them. After its acknowledgement, it finds clients
 * that the kernel remembered in between.
 *
 * @param keys by which the clients are remembered. A key without a map has no clients.
 */
export async function staleClients(
  addon: Pick<NftablesAddon, 'nftElements'>,
  table: FamilyTable,
  keys: readonly FrontendKey[],
): Promise<readonly StaleClients[]> {
  const names = keys.map((key) => clientsMap(nameClientKey(key)));
  const sets = await addon.nftElements(NFT_FAMILY[table.family], TABLE, names);
  const isPod = podTest(table);
  return sets.flatMap((set) => {
    const key = parseClientsMap(set.name);
    const { elements } = set;
    if (elements === null || key === null) return [];
    const rows = staleRows(table, set, elements, key, isPod);
    const forgettings: Forgetting[] = [];
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
      const operation = rowsOperation(set, elements, rows.slice(start, start + ROWS_AT_ONCE));
      // An entry may expire at any moment and deleting what is not there fails: adding it first makes the deletion certain.
      forgettings.push([operation, { ...operation, verb: 'delete', dataLength: 0, data: null }]);
    }
    return [{ key, count: elements.count, forgettings }];
  });
}

/** A full map may refuse to add a client that has just expired. Then it is listed again, at most this often. */
const ATTEMPTS = 4;

/** Finds and removes stale clients in separate transactions. Returns the clients found first. */
export async function forgetClients(
  addon: Pick<NftablesAddon, 'nftElements' | 'nftTransact'>,
  table: FamilyTable,
  keys: readonly FrontendKey[],
): Promise<readonly StaleClients[]> {
  const found = await staleClients(addon, table, keys);
  for (const { key, forgettings } of found) {
    let left = forgettings;
    for (let attempt = 1; left.length > 0; attempt++) {
      const refusal = await forgetIn(addon, table, left);
      if (refusal === null) break;
      if (attempt === ATTEMPTS) throw refusal;
      left = (await staleClients(addon, table, [key])).flatMap((again) => again.forgettings);
    }
  }
  return found;
}

/** The error of a full map; null: all its stale clients were removed. */
async function forgetIn(
  addon: Pick<NftablesAddon, 'nftTransact'>,
  { family }: FamilyTable,
  forgettings: readonly Forgetting[],
): Promise<Error | null> {
  for (const operations of forgettings) {
    try {
      await addon.nftTransact({ family: NFT_FAMILY[family], table: TABLE, operations });
    } catch (error) {
      if (!isNativeError(error)) throw error;
      if (error.errno === 'ENFILE') return error;
      // A sync removed the map and its clients during the search.
      if (error.errno !== 'ENOENT') throw error;
    }
  }
  return null;
}

/** Rows of a map whose clients are removed. */
function staleRows(
  table: FamilyTable,
  set: NftSetListing,
  elements: NftElementsListing,
  key: FrontendKey,
  isPod: (client: string) => boolean,
): readonly number[] {
  const frontend = table.frontend(key);
  const { pods, others } =
    frontend === undefined || frontend.affinitySeconds === null ? NO_CLIENT : allowedBy(frontend, table);
  const rows: number[] = [];
  for (let row = 0; row < elements.count; row++) {
    const client = packedKey(elements.keys, row * set.keyLength, set.keyLength);
    const endpoint = packedKey(elements.data ?? new Uint8Array(0), row * set.dataLength, endpointSize(table.family));
    if (!(isPod(client) ? pods : others).has(endpoint)) rows.push(row);
  }
  return rows;
}

/** Endpoints that remembered clients may keep. */
interface Allowed {
  readonly pods: ReadonlySet<string>;
  readonly others: ReadonlySet<string>;
}

const NO_CLIENT: Allowed = { pods: new Set(), others: new Set() };

/**
 * If the frontend's key stands for a list of endpoints: those in the list. A frontend that remembers its clients alone may use
 * two lists. Pods never use the list of local endpoints. The node itself uses the other one too, so for all other clients
 * both are allowed.
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

/** Whether a client is a pod by its address. Where pods are known by their interface, no client is. */
function podTest({ node, family }: FamilyTable): (client: string) => boolean {
  if (node.localDetector?.type !== 'source-prefix') return () => false;
  const range = packRange(node.localDetector.prefix);
  const size = addressLength(family);
  const [first, last] = [range.slice(0, size), range.slice(size)];
  return (client) => client >= first && client <= last;
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
