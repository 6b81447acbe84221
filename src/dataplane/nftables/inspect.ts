import { EndpointList, endpointSize } from '../../base/endpoint-list.js';
import type { Family, IPAddress } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { NodePlan, PacketScope } from '../../plan/types.js';
import type { AffinityQuestion } from '../contract.js';
import { packClientOf } from './client-keys.js';
import { dumpTable } from './dump.js';
import type { KernelTable } from './kernel-table.js';
import { packFrontend, shardOf } from './keys.js';
import {
  NFT_FAMILY,
  SET,
  TABLE,
  clientsMaps,
  endpointsMap,
  sharingMap,
  sharingNodePortMap,
  stickyLocalsSet,
  stickyNodePortSet,
  stickySet,
} from './names.js';
import type { Structure } from './structure.js';

/** Names of the sets in which something of a scope may be: of the maps of endpoints just the frontend's own. */
export function inspectedSets({ frontend }: PacketScope, affinitySeconds: number | null): readonly string[] {
  const packed = packFrontend(frontend);
  const nodePort = parseFrontendKey(frontend).address === null;
  const shard = nodePort ? null : shardOf(packed);
  const affinity = [...(nodePort ? [stickyNodePortSet, sharingNodePortMap] : [stickySet, sharingMap]), stickyLocalsSet];
  return [
    ...(nodePort
      ? [SET.nodePortFrontends, SET.rejectedNodePorts, SET.droppedNodePorts]
      : [SET.frontends, SET.rejected, SET.dropped, SET.restricted, SET.admitted]),
    endpointsMap(shard, false),
    endpointsMap(shard, true),
    SET.clusterAddresses,
    SET.hairpin,
    ...(affinitySeconds === null ? [] : affinity.map((nameOf) => nameOf(affinitySeconds))),
  ];
}

/** What a table says of a scope, in the lines of plan/text.ts. Rules count as far as the scope's packets meet them. */
export function inspectTable(
  family: Family,
  kernel: KernelTable,
  structure: Structure,
  node: NodePlan,
  { frontend, addresses }: PacketScope,
): readonly string[] {
  const elements = kernel.frontends.get(frontend);
  const among = (held: ReadonlyMap<IPAddress, true>): ReadonlyMap<IPAddress, true> =>
    new Map(addresses.flatMap((address) => (held.has(address) ? [[address, true]] : [])));
  const part: KernelTable = {
    ...kernel,
    frontends: new Map(elements === undefined ? [] : [[frontend, elements]]),
    clusterAddresses: among(kernel.clusterAddresses),
    hairpinAddresses: among(kernel.hairpinAddresses),
    strays: new Map(),
  };
  return dumpTable(family, part, structure, node);
}

/** The endpoint that a map of clients holds for a source, `address:port`; null for none. */
export async function rememberedEndpoint(
  addon: Pick<NftablesAddon, 'nftElements'>,
  family: Family,
  { frontend, destination }: PacketScope,
  source: IPAddress,
  { seconds, clientKey }: Pick<AffinityQuestion, 'seconds' | 'clientKey'>,
): Promise<string | null> {
  const { port, protocol } = parseFrontendKey(frontend);
  const key = clientKey ?? frontendKey(destination, port, protocol);
  const wanted = Buffer.from(packClientOf(family, source, key), 'latin1');
  const sets = await addon.nftElements(NFT_FAMILY[family], TABLE, clientsMaps(seconds));
  for (const { elements, keyLength, dataLength } of sets) {
    if (elements === null || elements.data === null) continue;
    for (let row = 0; row < elements.count; row++) {
      const key = elements.keys.subarray(row * keyLength, (row + 1) * keyLength);
      if (keyLength !== wanted.length || wanted.compare(key) !== 0) continue;
      const at = row * dataLength;
      const [endpoint] = new EndpointList(family, elements.data.slice(at, at + endpointSize(family))).toStrings();
      return endpoint ?? null;
    }
  }
  return null;
}
