import type { Family } from '../../base/ip.js';
import type { IptablesFlavor, NftablesAddon, NftReadFamily } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';

/** Priorities of table raw, and of connection tracking (NF_IP_PRI_RAW, NF_IP_PRI_CONNTRACK). */
const RAW = -300;
const CONNTRACK = -200;
const HOOK = /^type filter hook (?:prerouting|output) priority (-\d+) /;
/** `notrack`, `ct zone set` (NFT_CT_ZONE), and the targets CT and NOTRACK of the other flavour, as the addon lists them. */
const DECISION =
  /\[unknown\(notrack\)|\[unknown\(ct\) 0x[0-9a-f]*0800020000000011|\[unknown\(target\) 0x[0-9a-f]{8}(?:435400|4e4f545241434b00)/;
/** A table with more is not read. It counts as one that decides. */
const MOST_RULES = 20_000;

/**
 * A table of others whose chains may meet packets between table raw and connection tracking, and decide there whether or
 * where these are tracked. The kernel heeds no such rule for a packet that has a timeout policy already (nft_notrack_eval,
 * nft_ct_set_zone_eval). No rule of table raw can stand behind these chains. Null: there is none.
 */
export async function decidesLater(
  addon: Pick<NftablesAddon, 'nftBaseChains' | 'nftList'>,
  family: Family,
  flavor: IptablesFlavor,
): Promise<string | null> {
  const own = family === 'IPv4' ? 'ip' : 'ip6';
  // Without nf_tables there are no such chains.
  const bases = await addon.nftBaseChains('kube-proxy').catch(() => []);
  const between = bases.filter((base) => {
    const priority = Number(HOOK.exec(base.hook)?.[1]);
    const isOurs = flavor === 'nft' && base.family === own && base.table === 'raw';
    return priority >= RAW && priority <= CONNTRACK && (base.family === own || base.family === 'inet') && !isOurs;
  });
  for (const { family: of, table } of between) if (await decides(addon, of, table)) return `table ${of} ${table}`;
  return null;
}

async function decides(addon: Pick<NftablesAddon, 'nftList'>, family: NftReadFamily, table: string): Promise<boolean> {
  try {
    const listing = await addon.nftList(family, table, [], MOST_RULES);
    return listing?.chains.some(({ rules }) => rules.some((rule) => DECISION.test(rule))) ?? false;
  } catch (error) {
    if (isNativeError(error) && error.errno === 'E2BIG') return true;
    throw error;
  }
}
