import type { IptablesChainListing, IptablesOperation, IptablesTable } from '../../native/contract.js';
import type { LeftoverChains } from './remains.js';

/** How to remove what kube-proxy left in one table. */
interface TableRemoval {
  readonly table: IptablesTable;
  /** The jumps first. */
  readonly operations: readonly IptablesOperation[];
  /** Chains that stay because rules of others need them, each with the first such chain. */
  readonly kept: ReadonlyMap<string, string>;
}

export function hasLeftovers(chains: readonly IptablesChainListing[], { isLeftover }: LeftoverChains): boolean {
  return chains.some(({ table, name }) => isLeftover(table, name));
}

/**
 * What to remove from a table, given its chains. A chain whose rules were not listed counts as one without jumps.
 *
 * A chain stays where a rule of others leads to it, together with all that it leads to itself, and its companion.
 */
export function tableRemoval(
  table: IptablesTable,
  listing: readonly IptablesChainListing[],
  { isLeftover, isHooked, companion }: LeftoverChains,
): TableRemoval {
  const chains = listing.filter((chain) => chain.table === table);
  const leftovers = new Map(chains.filter(({ name }) => isLeftover(table, name)).map((chain) => [chain.name, chain]));
  const foreign = chains.filter(({ name }) => !leftovers.has(name));
  const kept = new Map<string, string>();
  const keep = (name: string, because: string): void => {
    const chain = leftovers.get(name);
    if (chain === undefined || kept.has(name)) return;
    kept.set(name, because);
    for (const rule of chain.rules ?? []) keep(ruleTarget(rule) ?? '', name);
    keep(companion(name) ?? '', name);
  };
  for (const { name, policy, rules } of foreign) {
    for (const rule of rules ?? []) {
      const target = ruleTarget(rule);
      if (target !== null && (policy === null || !isHooked(target))) keep(target, name);
    }
  }
  const jumps = foreign.flatMap(({ name: chain, policy, rules }) =>
    (policy === null ? [] : (rules ?? []))
      .filter((rule) => isRemoved(ruleTarget(rule)))
      .map((text): IptablesOperation => ({ type: 'rule', verb: 'delete', table, chain, text })),
  );
  const deletions = [...leftovers.keys()]
    .filter((name) => !kept.has(name))
    .map((chain): IptablesOperation => ({ type: 'delete-chain', table, chain }));
  return { table, operations: [...jumps, ...deletions], kept };

  function isRemoved(target: string | null): boolean {
    return target !== null && leftovers.has(target) && !kept.has(target);
  }
}

/** Where a rule jumps or goes; null for nowhere. Quoted text, such as a comment, does not count. */
export function ruleTarget(rule: string): string | null {
  const unquoted = rule.replaceAll(/"(?:[^"\\]|\\[^]?)*"?/g, '""');
  return /(?:^| )-[jg] (\S+)/.exec(unquoted)?.[1] ?? null;
}
