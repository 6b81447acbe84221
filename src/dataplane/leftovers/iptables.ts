import type {
  IptablesAddon,
  IptablesChainListing,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
} from '../../native/contract.js';
import { hasLeftovers, tableRemoval } from './chains.js';
import { isLeftoverChain, isServiceChain, TABLES } from './names.js';
import type { Keep, Removal } from './removal.js';

export type IptablesPart = Pick<IptablesAddon, 'iptablesFlavors' | 'iptablesList' | 'iptablesRestore'>;

/** Removes kube-proxy's chains and jumps of one family from both flavours; where no programs are installed there is nothing to do. */
export async function removeChains(
  addon: IptablesPart,
  family: IptablesFamily,
  keep: Keep,
  report: Removal,
): Promise<void> {
  for (const { flavor } of await report.attempt([], () => addon.iptablesFlavors(family))) {
    const ipvsOnly = keep.type === 'iptables' && keep.flavor === flavor;
    await report.attempt(undefined, () => removeFlavor(addon, family, flavor, ipvsOnly, report));
  }
}

async function removeFlavor(
  addon: IptablesPart,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  ipvsOnly: boolean,
  report: Removal,
): Promise<void> {
  const names = await addon.iptablesList(family, flavor, TABLES, []);
  if (!hasLeftovers(names, ipvsOnly)) return;
  const chains = await withRules(addon, family, flavor, ipvsOnly, names);
  const operations: IptablesOperation[] = [];
  for (const removal of TABLES.map((table) => tableRemoval(table, chains, ipvsOnly))) {
    operations.push(...removal.operations);
    for (const [chain, because] of removal.kept)
      report.kept.push(`iptables (${flavor}) ${family} ${removal.table} chain ${chain}, which ${because} leads to`);
  }
  if (operations.length === 0) return;
  await addon.iptablesRestore({ family, flavor, operations });
  const count = (type: IptablesOperation['type']): number => operations.filter((each) => each.type === type).length;
  report.removed.push(
    `iptables (${flavor}) ${family}: ${count('delete-chain')} chains, ${count('rule')} jumps to them`,
  );
}

/**
 * The chains with the rules that matter: those of others and of the few fixed chains. Where one of others leads to a chain of a single Service, its
 * rules matter too; as a rule there is none, and so a large cluster's rules need not be read.
 */
async function withRules(
  addon: IptablesPart,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  ipvsOnly: boolean,
  names: readonly IptablesChainListing[],
): Promise<readonly IptablesChainListing[]> {
  const wanted = new Set(names.filter(({ name }) => !isServiceChain(name)).map(({ name }) => name));
  const chains = await addon.iptablesList(family, flavor, TABLES, [...wanted]);
  const isKeptUnread = TABLES.some((table) =>
    [...tableRemoval(table, chains, ipvsOnly).kept.keys()].some(
      (name) => isServiceChain(name) && isLeftoverChain(table, name, ipvsOnly),
    ),
  );
  return isKeptUnread ? await addon.iptablesList(family, flavor, TABLES, ['']) : chains;
}
