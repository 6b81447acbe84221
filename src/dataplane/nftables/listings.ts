import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftTableListing } from '../../native/contract.js';
import type { Generation, Mark } from '../generation.js';
import { emptyTable, readListing, type ListedTable } from './listing.js';
import { NFT_FAMILY, TABLE, isWrittenByPackets } from './names.js';
import { staticSets } from './schema.js';

/** How long the kernel's answer is relied on that there was no external change. */
const TRUST_MS = 3_600_000;

/** A moment from which on a listing is known to be true, if it holds. */
interface Look {
  /** Where the ruleset stood; null: unknown. */
  readonly mark: Mark | null;
  readonly at: number;
  readonly distrusted: number;
}

/** Lists a family's table, and knows whether another listing would show something new. */
export class Listings {
  /** Null before the first listing and while it cannot be relied on. */
  private last: { readonly mark: Mark; readonly at: number } | null = null;
  /** How many times {@link distrust} was called. */
  private distrusted = 0;
  /** The listing of {@link prepare}; null when there is none or when it has been used. */
  private prepared: Promise<ListedTable | null> | null = null;

  /** Sets whose elements are listed. */
  private readonly sets: readonly string[];

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(
    private readonly addon: Pick<NftablesAddon, 'nftList'>,
    private readonly family: Family,
    private readonly generation: Generation,
    private readonly now: () => number,
  ) {
    const names = staticSets(family).map(({ name }) => name);
    this.sets = names.filter((name) => !isWrittenByPackets(name));
  }

  /** Lists ahead what {@link read} will ask for first. */
  prepare(): void {
    // A failure is for the first sync to meet when it lists for itself.
    this.prepared = this.list().catch(() => null);
  }

  /** The kernel's content: the listing made ahead, unless there was an external change since. */
  async read(): Promise<ListedTable> {
    const prepared = await this.prepared;
    this.prepared = null;
    return prepared !== null && (await this.isUntouched()) ? prepared : await this.list();
  }

  /**
   * All chains and sets, with the elements of sets that syncs write. No sync needs the others: above all clients, who may be
   * very many. Another proxy may have thousands of sets, and the kernel looks at all of them for each whose elements it lists.
   */
  async listTable(): Promise<NftTableListing | null> {
    return await this.addon.nftList(NFT_FAMILY[this.family], TABLE, this.sets);
  }

  /** Whether a listing would equal the last one plus our own acknowledgements. After a while it is read again all the same. */
  async isUntouched(): Promise<boolean> {
    if (this.last === null || this.now() - this.last.at >= TRUST_MS) return false;
    return await this.generation.isUntouchedSince(this.last.mark);
  }

  /** The next check really looks. */
  distrust(): void {
    this.last = null;
    this.distrusted++;
  }

  /** To be called before a listing that is compared with what is known. */
  async look(): Promise<Look> {
    const { distrusted } = this;
    const at = this.now();
    return { mark: await this.generation.mark(), at, distrusted };
  }

  /** The listing since the look equals the known state. If it was distrusted meanwhile it stays so. */
  confirm({ mark, at, distrusted }: Look): void {
    if (mark !== null && distrusted === this.distrusted) this.last = { mark, at };
  }

  private async list(): Promise<ListedTable> {
    this.distrust();
    const look = await this.look();
    const listing = await this.listTable();
    this.confirm(look);
    return listing === null ? emptyTable() : readListing(this.family, listing);
  }
}
