import type { IptablesAddon, IptablesChainListing, IptablesFamily, IptablesTable } from '../../native/contract.js';
import { chainOperation, tableOf } from './operations.js';
import { chainId, ruleCount, type Chain, type ChainId } from './rules.js';

/** The state of a chain in a listing. */
export interface ChainState {
  readonly digest: string;
  readonly rules: number;
}

export type ChainStates = Map<ChainId, ChainState>;

/** The states of these chains in a listing once they are written. */
export async function statesOf(
  addon: Pick<IptablesAddon, 'iptablesDigests'>,
  family: IptablesFamily,
  chains: readonly Chain[],
): Promise<ChainStates> {
  if (chains.length === 0) return new Map();
  // Digests are the same in both flavours, so either does.
  const digests = await addon.iptablesDigests({ family, flavor: 'nft', operations: chains.map(chainOperation) });
  return new Map(
    chains.map((chain, index) => [
      chainId(chain.table, chain.name),
      { digest: digests[index] ?? '', rules: ruleCount(chain, family) },
    ]),
  );
}

/** The digest of a chain that could not be listed: no rules have it. */
const UNKNOWN = '';

/** The states of listed chains. @param isOwn which of them are the mode's, or kube-proxy's in the same mode. */
export function listedStates(
  listing: readonly IptablesChainListing[],
  isOwn: (table: IptablesTable, chain: string) => boolean,
): ChainStates {
  return new Map(
    listing
      .filter(({ table, name }) => isOwn(table, name))
      .map(({ table, name, digest, ruleCount: rules }) => [chainId(table, name), { digest: digest ?? UNKNOWN, rules }]),
  );
}

/** Chains lost or altered since they were acknowledged, one line each. @param isMissed whether a chain had to be unchanged. */
export function differences(
  acknowledged: ReadonlyMap<ChainId, ChainState>,
  found: ChainStates,
  isMissed: (id: ChainId) => boolean,
): readonly string[] {
  return [...acknowledged].flatMap(([id, { digest }]) => {
    if (!isMissed(id)) return [];
    const state = found.get(id);
    if (state === undefined) return [`chain ${id} was missing`];
    if (state.digest === UNKNOWN) return [`chain ${id} could not be listed`];
    return state.digest === digest ? [] : [`chain ${id} had other rules`];
  });
}

/** Numbers of rules in the tables that kube-proxy counts in. */
export interface RuleCounts {
  readonly filter: number;
  readonly nat: number;
}

export function countRules(chains: readonly Chain[], family: IptablesFamily): RuleCounts {
  return sumRules(chains.map((chain) => [chain.table, ruleCount(chain, family)]));
}

export function countStates(states: Iterable<readonly [ChainId, ChainState]>): RuleCounts {
  return sumRules([...states].map(([id, { rules }]) => [tableOf(id), rules]));
}

export function addRules(one: RuleCounts, other: RuleCounts): RuleCounts {
  return { filter: one.filter + other.filter, nat: one.nat + other.nat };
}

function sumRules(counts: readonly (readonly [table: IptablesTable, rules: number])[]): RuleCounts {
  const sum = (wanted: IptablesTable): number =>
    counts.reduce((total, [table, rules]) => (table === wanted ? total + rules : total), 0);
  return { filter: sum('filter'), nat: sum('nat') };
}
