import type {
  IptablesAddon,
  IptablesChainListing,
  IptablesChainOperation,
  IptablesDeleteChainOperation,
  IptablesFamily,
  IptablesOperation,
  IptablesTable,
} from '../../native/contract.js';
import { isOwnChain } from './names.js';
import { ruleCount, type Chain } from './rules.js';
import { chainId, type ChainId } from './ruleset.js';

/** What a listing of a chain shows. */
export interface ChainState {
  readonly digest: string;
  readonly rules: number;
}

export type ChainStates = Map<ChainId, ChainState>;

/** Tables in the order in which a stream goes through them: refusals first, so that nothing is let through untranslated while nat is written. */
const TABLE_ORDER: readonly IptablesTable[] = ['filter', 'nat', 'mangle'];

/** One order for all streams: table by table, chains before the jumps that lead to them, removals last. */
export function inOrder(operations: readonly IptablesOperation[]): readonly IptablesOperation[] {
  const kinds: readonly IptablesOperation['type'][] = ['chain', 'rule', 'delete-chain'];
  return TABLE_ORDER.flatMap((table) =>
    kinds.flatMap((type) => operations.filter((operation) => operation.table === table && operation.type === type)),
  );
}

export function chainOperation({ table, name, rules, owner }: Chain): IptablesChainOperation {
  return {
    ...{ type: 'chain', table, chain: name, owner },
    rules: rules.map((rule) => (typeof rule === 'string' ? { type: 'text', text: rule } : rule)),
  };
}

export function deleteOperation(id: ChainId): IptablesDeleteChainOperation {
  const [table, chain = ''] = id.split(' ');
  return { type: 'delete-chain', table: TABLE_ORDER.find((each) => each === table) ?? 'nat', chain };
}

/** What a listing would show of these chains once they are written. */
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

/** Our chains, and kube-proxy's in the same mode, as they were listed. */
export function listedStates(listing: readonly IptablesChainListing[]): ChainStates {
  return new Map(
    listing
      .filter(({ table, name }) => isOwnChain(table, name))
      .map(({ table, name, digest, ruleCount: rules }) => [chainId(table, name), { digest, rules }]),
  );
}
