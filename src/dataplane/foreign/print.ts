import type { NativeAddon } from '../../native/contract.js';

/** Rules of tables with more are left out. */
const MOST_RULES = 5000;

/** In the addon's words, as `explain` reads them. */
export async function printForeign({ nftables }: Pick<NativeAddon, 'nftables'>): Promise<string> {
  // No table is called so: those of ours are listed with the others', without their rules.
  const bases = await nftables.nftBaseChains('-');
  const lines = bases.map(({ family, table, chain, hook }) => `table ${family} ${table} chain ${chain}: ${hook}`);
  const others = new Map(bases.map((each) => [`${each.family} ${each.table}`, each]));
  for (const [name, { family, table }] of others) {
    const isOurs =
      table === 'kube-proxy' || bases.some((each) => each.table === table && each.hook.startsWith('type nat'));
    const listing = isOurs ? null : await nftables.nftList(family, table, []);
    if (listing === null) continue;
    const count = listing.chains.reduce((sum, { rules }) => sum + rules.length, 0);
    lines.push('', `table ${name}: ${count} rules`);
    if (count > MOST_RULES) continue;
    for (const { name: chain, rules } of listing.chains)
      lines.push(`chain ${chain}`, ...rules.map((rule, place) => `  ${place + 1}: ${rule}`));
  }
  return `${lines.join('\n')}\n`;
}
