import type {
  IptablesAddon,
  IptablesChainListing,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTable,
} from '../../native/contract.js';
import { hasLeftovers, tableRemoval } from './chains.js';
import type { LeftoverChains, Remains } from './remains.js';
import type { Removal } from './removal.js';

const TABLES: readonly IptablesTable[] = ['mangle', 'filter', 'nat', 'raw'];

export interface IptablesPart {
  readonly iptables: Pick<IptablesAddon, 'iptablesFlavors' | 'iptablesList' | 'iptablesRestore'>;
}

/** Removes leftover chains and jumps of one family from both flavours; where no programs are installed there is nothing to do. */
export async function removeChains(
  addon: IptablesPart,
  family: IptablesFamily,
  remains: Remains,
  report: Removal,
): Promise<void> {
  for (const { flavor } of await report.attempt([], () => addon.iptables.iptablesFlavors(family))) {
    await report.attempt(undefined, () => removeFlavor(addon, family, flavor, remains.chainsIn(flavor), report));
  }
}

async function removeFlavor(
  addon: IptablesPart,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  leftovers: LeftoverChains,
  report: Removal,
): Promise<void> {
  const names = await addon.iptables.iptablesList(family, flavor, TABLES, []);
  if (!hasLeftovers(names, leftovers)) return;
  const chains = await withRules(addon, family, flavor, leftovers, names);
  const removals = TABLES.map((table) => tableRemoval(table, chains, leftovers));
  for (const { table, kept } of removals)
    for (const [chain, because] of kept)
      report.kept.push(`iptables (${flavor}) ${family} ${table} chain ${chain}, which ${because} leads to`);
  const operations = removals.flatMap((removal) => removal.operations);
  if (operations.length === 0) return;
  await addon.iptables.iptablesRestore({ family, flavor, operations });
  const count = (type: IptablesOperation['type']): number => operations.filter((each) => each.type === type).length;
  report.removed.push(
    `iptables (${flavor}) ${family}: ${count('delete-chain')} chains, ${count('rule')} jumps to them`,
  );
}

/**
 * The chains with the rules that matter: those of others and of the few fixed chains. If another owner's rule leads to a chain
 * of a single Service, that chain's rules matter too. Usually there is none, so a large cluster's rules need not be read.
 */
async function withRules(
  addon: IptablesPart,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  leftovers: LeftoverChains,
  names: readonly IptablesChainListing[],
): Promise<readonly IptablesChainListing[]> {
  const wanted = new Set(names.filter(({ name }) => !leftovers.isPerService(name)).map(({ name }) => name));
  const chains = await addon.iptables.iptablesList(family, flavor, TABLES, [...wanted]);
  const isKeptUnread = TABLES.some((table) =>
    [...tableRemoval(table, chains, leftovers).kept.keys()].some(
      (name) => leftovers.isPerService(name) && leftovers.isLeftover(table, name),
    ),
  );
  return isKeptUnread ? await addon.iptables.iptablesList(family, flavor, TABLES, ['']) : chains;
}
