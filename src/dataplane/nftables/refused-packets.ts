import { packedKey } from '../../base/endpoint-list.js';
import type { Family } from '../../base/ip.js';
import { protocolFromNumber } from '../../base/protocol.js';
import type { NftablesAddon } from '../../native/contract.js';
import type { ModeCounts, RefusedPackets } from '../contract.js';
import { unpackFrontend } from './keys.js';
import { COUNTED, NFT_FAMILY, SET, TABLE, countedSet } from './names.js';
import { REJECTED_ON_LOOPBACK } from './packet-metrics.js';

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

/** The kernel's counts of packets to node ports on loopback that rules refused; null: no rule has counted any. */
export async function rejectedOnLoopback(
  addon: Pick<NftablesAddon, 'nftElements'>,
  families: readonly Family[],
): Promise<ModeCounts | null> {
  const counts = await Promise.all(
    families.map(async (family) => {
      const [set] = await addon.nftElements(NFT_FAMILY[family], TABLE, [SET.rejectedOnLoopback]);
      const { elements = null, keyLength = 0 } = set ?? {};
      return [...(elements?.packets ?? [])].map((packets, row) => {
        const number = elements?.keys[row * keyLength] ?? 0;
        return {
          labels: { ip_family: family, protocol: protocolFromNumber(number) ?? String(number) },
          count: packets,
        };
      });
    }),
  );
  const rows = counts.flat();
  return rows.length === 0 ? null : { [REJECTED_ON_LOOPBACK.name]: rows };
}
