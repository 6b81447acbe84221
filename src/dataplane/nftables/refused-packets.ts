import { packedKey } from '../../base/endpoint-list.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import type { RefusedPackets } from '../contract.js';
import { unpackFrontend } from './keys.js';
import { COUNTED, NFT_FAMILY, TABLE, countedSet } from './names.js';

/** The kernel's counts of packets that rules ended; nothing if there is no set that counts. */
export async function refusedPackets(
  addon: Pick<NftablesAddon, 'nftElements'>,
  family: Family,
): Promise<readonly RefusedPackets[]> {
  const rows: RefusedPackets[] = [];
  const names = COUNTED.map(({ of }) => countedSet(of));
  for (const { name, keyLength, elements } of await addon.nftElements(NFT_FAMILY[family], TABLE, names)) {
    const kind = COUNTED[names.indexOf(name)];
    if (kind === undefined || elements === null || elements.packets === null) continue;
    for (const [row, packets] of elements.packets.entries()) {
      const frontend = unpackFrontend(family, packedKey(elements.keys, row * keyLength, keyLength));
      if (frontend !== null) rows.push({ frontend, verdict: kind.verdict, reason: kind.reason, packets });
    }
  }
  return rows;
}
