import type { IptablesChainListing, IptablesFamily, IptablesTable } from '../../native/contract.js';
import type { ChainStates } from './chain-states.js';
import { hookRepairs, type Hook } from './hooks.js';
import { chainId } from './rules.js';

/**
 * Where listed chains are not as they should be, a line for each rule.
 *
 * @param isOwn which chains are the mode's; @param hooks the jumps that lead to them.
 */
export function printDifferences(
  family: IptablesFamily,
  listing: readonly IptablesChainListing[],
  wanted: ChainStates,
  isOwn: (table: IptablesTable, chain: string) => boolean,
  hooks: readonly Hook[],
): readonly string[] {
  const lines: string[] = [];
  const missing = new Set(wanted.keys());
  for (const { table, name, digest, rules } of listing.filter((chain) => isOwn(chain.table, chain.name))) {
    const id = chainId(table, name);
    if (wanted.get(id)?.digest !== digest)
      lines.push(...(rules ?? []).map((rule) => `${family} kernel chain ${id} has: ${rule}`));
    if (!missing.delete(id)) lines.push(`${family} kernel chain ${id} is not ours`);
  }
  for (const id of missing) lines.push(`${family} kernel chain ${id} is missing`);
  for (const { verb, table, chain, text } of hookRepairs(listing, hooks))
    lines.push(`${family} kernel chain ${table} ${chain} ${verb === 'delete' ? 'has surplus' : 'lacks'}: ${text}`);
  return lines;
}
