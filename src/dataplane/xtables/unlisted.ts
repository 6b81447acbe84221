import type { IptablesChainListing, IptablesFlavor, IptablesTable } from '../../native/contract.js';
import type { Limitation } from '../contract.js';
import type { ChainState } from './chain-states.js';
import { tableOf } from './operations.js';
import { chainId, type ChainId } from './rules.js';

/** So many chains are named. */
const MOST_NAMED = 3;

/**
 * Tables that the programs cannot list because of other programs' rules. The addon reads their chains one by one, and the jumps to them from nf_tables. A
 * chain of ours that cannot be read like this is written again, once: then it counts as it was written.
 */
export class Unlisted {
  private tables: readonly IptablesTable[] = [];
  private readonly chains = new Set<ChainId>();
  private reported = '';

  constructor(
    private readonly flavor: IptablesFlavor,
    private readonly isOwn: (table: IptablesTable, chain: string) => boolean,
  ) {}

  /** The listing, in which chains that were written since they could last be listed count as acknowledged. */
  believe(
    listing: readonly IptablesChainListing[],
    acknowledged: ReadonlyMap<ChainId, ChainState> | null,
  ): readonly IptablesChainListing[] {
    this.tables = [...new Set(listing.filter(isUnlisted).map(({ table }) => table))];
    return listing.map((chain) => {
      const id = chainId(chain.table, chain.name);
      if (chain.digest !== null) this.chains.delete(id);
      const state = this.chains.has(id) ? acknowledged?.get(id) : undefined;
      return state === undefined ? chain : { ...chain, digest: state.digest };
    });
  }

  /** Chains of ours that the listing does not show are about to be written. */
  note(listing: readonly IptablesChainListing[]): void {
    for (const { table, name, digest } of listing)
      if (digest === null && this.isOwn(table, name)) this.chains.add(chainId(table, name));
    this.reported = this.text;
  }

  /** Whether the limitations are others than those of the last sync. */
  get isNews(): boolean {
    return this.text !== this.reported;
  }

  get limitations(): readonly Limitation[] {
    const program = this.flavor === 'nft' ? 'iptables-nft-save' : 'iptables-legacy-save';
    return this.tables.map((table) => {
      const chains = [...this.chains].filter((id) => tableOf(id) === table).map((id) => id.slice(table.length + 1));
      const named = chains.slice(0, MOST_NAMED).join(', ') + (chains.length > MOST_NAMED ? ' …' : '');
      const unverified = chains.length === 0 ? '' : `; ${chains.length} of them cannot be verified: ${named}`;
      const text = `other programs' rules keep ${program} from listing table ${table}: our chains are read one by one${unverified}`;
      return { of: 'rules', text };
    });
  }

  private get text(): string {
    return this.limitations.map(({ text }) => text).join('\n');
  }
}

/** Built-in chains always have a digest where the programs list the table. */
function isUnlisted({ policy, digest }: IptablesChainListing): boolean {
  return policy !== null && digest === null;
}
