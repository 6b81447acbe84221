import type {
  IptablesAck,
  IptablesAddon,
  IptablesChainListing,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTransaction,
} from '../../native/contract.js';
import { inOrder, TABLE_ORDER } from './operations.js';

export interface TablesOptions {
  readonly addon: Pick<IptablesAddon, 'iptablesList' | 'iptablesListingMs' | 'iptablesRestore'>;
  readonly family: IptablesFamily;
  readonly flavor: IptablesFlavor;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  /** Called with what is sent. */
  readonly onTransaction?: (transaction: IptablesTransaction) => void;
}

/** The share of the time that listing may take: large rulesets take seconds. */
const LISTING_SHARE = 0.01;

/** The programs' tables of one family in one flavour. */
export class Tables {
  private listedAt = 0;
  private listingTook = 0;

  constructor(private readonly options: TablesOptions) {}

  get family(): IptablesFamily {
    return this.options.family;
  }

  /** All chains, with the rules of built-in ones and of those whose names begin with one of `textOf`; for callers that only read. */
  async peek(textOf: readonly string[]): Promise<readonly IptablesChainListing[]> {
    const { addon, family, flavor } = this.options;
    return await addon.iptablesList(family, flavor, TABLE_ORDER, textOf);
  }

  /** The same for a comparison of everything, after which the next one has time: see {@link isListingDue}. */
  async list(textOf: readonly string[]): Promise<readonly IptablesChainListing[]> {
    const { addon, now } = this.options;
    const before = addon.iptablesListingMs();
    const listing = await this.peek(textOf);
    this.listedAt = now();
    this.listingTook = addon.iptablesListingMs() - before;
    return listing;
  }

  /** Whether everything is due to be listed again. In between only a chain of mangle is looked for, which a flush removes. */
  async isListingDue(canary: string): Promise<boolean> {
    const { addon, family, flavor, now } = this.options;
    if (now() - this.listedAt >= this.listingTook / LISTING_SHARE) return true;
    const mangle = await addon.iptablesList(family, flavor, ['mangle'], []);
    return !mangle.some(({ name }) => name === canary);
  }

  /** Sends operations, in any order, in one stream. */
  async restore(operations: readonly IptablesOperation[]): Promise<IptablesAck> {
    const { addon, family, flavor, onTransaction } = this.options;
    const transaction = { family, flavor, operations: inOrder(operations) };
    onTransaction?.(transaction);
    return await addon.iptablesRestore(transaction);
  }
}
