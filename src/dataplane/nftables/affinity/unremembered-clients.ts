import { packedKey } from '../../../base/endpoint-list.js';
import type { Family } from '../../../base/ip.js';
import type { NftablesAddon } from '../../../native/contract.js';
import type { UnrememberedClients } from '../../contract.js';
import { unpackFrontend } from '../keys.js';
import { NFT_FAMILY, SET, TABLE } from '../names.js';

/** The kernel's counts of clients that found no room; nothing if there is no such set. */
export async function unrememberedClients(
  addon: Pick<NftablesAddon, 'nftElements'>,
  family: Family,
): Promise<readonly UnrememberedClients[]> {
  const rows: UnrememberedClients[] = [];
  for (const { keyLength, elements } of await addon.nftElements(NFT_FAMILY[family], TABLE, [SET.unremembered])) {
    for (const [row, connections] of (elements?.packets ?? []).entries()) {
      const asked = unpackFrontend(family, packedKey(elements?.keys ?? new Uint8Array(), row * keyLength, keyLength));
      if (asked !== null) rows.push({ asked, connections });
    }
  }
  return rows;
}
