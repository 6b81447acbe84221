import { EndpointList, endpointSize } from '../../base/endpoint-list.js';
import { parsePrefix, prefixRange, type Family, type IPAddress } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey, NodePlan, PacketScope } from '../../plan/types.js';
import { clientKeysOf, parseAffinityChain } from './affinity/chains.js';
import { nameClientKey } from './affinity/key-names.js';
import { dumpPart, printUnneeded, unneededObjects } from './dump.js';
import type { HeldTable } from './listing.js';
import { packFrontend, shardOf } from './keys.js';
import { NFT_FAMILY, SET, TABLE, clientsMap, endpointsMap, parseClientsMap } from './names.js';
import type { Structure } from './structure.js';

/** Names of the sets in which something of a scope may be: of the maps of endpoints just the frontend's own. */
export function inspectedSets({ frontend }: PacketScope): readonly string[] {
  const packed = packFrontend(frontend);
  const nodePort = parseFrontendKey(frontend).address === null;
  const shard = nodePort ? null : shardOf(packed);
  return [
    ...(nodePort
      ? [SET.nodePortFrontends, SET.rejectedNodePorts, SET.droppedNodePorts, SET.datagramNodePorts]
      : [SET.frontends, SET.rejected, SET.dropped, SET.restricted, SET.admitted, SET.admittedAddresses]),
    ...(nodePort
      ? [SET.stickyNodePorts, SET.localStickyNodePorts, SET.rememberingNodePorts]
      : [SET.sticky, SET.localSticky, SET.remembering]),
    SET.stickyLocals,
    endpointsMap(shard, false),
    endpointsMap(shard, true),
    SET.clusterAddresses,
    SET.hairpin,
  ];
}

/**
 * A table's content in a scope, in the lines of plan/text.ts. Rules count as far as the scope's packets meet them. Unneeded
 * objects count as far as they are the frontend's.
 *
 * @param lingering chains and sets that nothing needs, and that are about to go.
 */
export function inspectTable(
  family: Family,
  kernel: HeldTable,
  structure: Structure,
  node: NodePlan,
  { frontend, addresses }: PacketScope,
  lingering: ReadonlySet<string>,
): readonly string[] {
  const elements = kernel.frontends.get(frontend);
  const among = (held: ReadonlyMap<IPAddress, true>): ReadonlyMap<IPAddress, true> =>
    new Map(addresses.flatMap((address) => (held.has(address) ? [[address, true]] : [])));
  const part: HeldTable = {
    ...kernel,
    frontends: new Map(elements === undefined ? [] : [[frontend, elements]]),
    clusterAddresses: among(kernel.clusterAddresses),
    hairpinAddresses: among(kernel.hairpinAddresses),
    unexpected: new Map(),
  };
  const unneeded = unneededObjects(kernel, structure).filter((name) => isOf(name, frontend) && !lingering.has(name));
  return [...dumpPart(family, part, structure, node), ...printUnneeded(family, unneeded)];
}

/** Whether a chain or map is for clients that are remembered by a frontend's key. */
function isOf(name: string, frontend: FrontendKey): boolean {
  const chain = parseAffinityChain(name);
  return parseClientsMap(name) === frontend || (chain !== null && clientKeysOf(chain).includes(frontend));
}

/** The endpoint that a map of clients holds for a source, `address:port`; null for none. */
export async function rememberedEndpoint(
  addon: Pick<NftablesAddon, 'nftElements'>,
  { family, clientPrefix }: Pick<NodePlan, 'family' | 'clientPrefix'>,
  { frontend }: PacketScope,
  source: IPAddress,
  clientKey: FrontendKey | null,
): Promise<string | null> {
  const network = parsePrefix(`${source}/${clientPrefix}`);
  if (network === null) return null;
  const wanted = Buffer.from(prefixRange(network)[0]);
  const map = clientsMap(nameClientKey(clientKey ?? frontend));
  const [set] = await addon.nftElements(NFT_FAMILY[family], TABLE, [map]);
  const { elements = null, keyLength = 0, dataLength = 0 } = set ?? {};
  if (elements === null || elements.data === null || keyLength !== wanted.length) return null;
  for (let row = 0; row < elements.count; row++) {
    if (wanted.compare(elements.keys, row * keyLength, (row + 1) * keyLength) !== 0) continue;
    const at = row * dataLength;
    const [endpoint] = new EndpointList(family, elements.data.slice(at, at + endpointSize(family))).toStrings();
    return endpoint ?? null;
  }
  return null;
}
