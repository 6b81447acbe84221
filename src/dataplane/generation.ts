import type { NftablesAddon } from '../native/contract.js';

/** A point in the ruleset's history: its generation, and how many transactions of ours had been acknowledged by then. */
export interface Mark {
  readonly generation: number;
  readonly own: number;
}

const MODULUS = 2 ** 32;

/** For a stream of ours of which nobody knows what the kernel counts: no difference of generations has a fraction. */
const UNCERTAIN = 2 ** -20;

/**
 * Finds out whether there was an external change since a mark, in one small request instead of a listing: the kernel counts
 * all transactions of the network namespace, and we count ours. Shared by the families, whose transactions the kernel counts
 * together.
 */
export class Generation {
  private own = 0;
  private underWay = 0;

  constructor(private readonly addon: Pick<NftablesAddon, 'nftGeneration'>) {}

  /**
   * Sends what is a transaction of ours, or several, and counts it when the kernel acknowledges.
   *
   * @param transactions null: maybe none. Marks from before then count as touched.
   */
  async count<Ack>(send: () => Promise<Ack>, transactions: number | null = 1): Promise<Ack> {
    this.underWay++;
    try {
      const ack = await send();
      this.own += transactions ?? UNCERTAIN;
      return ack;
    } finally {
      this.underWay--;
    }
  }

  /**
   * Take it before listing, so that transactions during the listing count as foreign. Null while a transaction of ours is
   * under way: it may count or not.
   */
  async mark(): Promise<Mark | null> {
    const { own } = this;
    if (this.underWay > 0) return null;
    const generation = await this.addon.nftGeneration();
    return this.underWay === 0 && this.own === own ? { generation, own } : null;
  }

  /** Whether nothing but our own transactions happened since; false when unknown. */
  async isUntouchedSince(mark: Mark): Promise<boolean> {
    const { own } = this;
    return this.isSame(mark, await this.addon.nftGeneration(), own);
  }

  /** Whether something else happened since, and the generation until when that is known; null when unknown. */
  async touchesSince(mark: Mark): Promise<{ readonly isTouched: boolean; readonly until: number } | null> {
    const { own } = this;
    const until = await this.addon.nftGeneration();
    const isKnown = this.underWay === 0 && this.own === own;
    return isKnown ? { isTouched: !this.isSame(mark, until, own), until } : null;
  }

  private isSame(mark: Mark, now: number, own: number): boolean {
    // The counter skips 0 when it wraps, which shows as one foreign change in four billion.
    return (now - mark.generation + MODULUS) % MODULUS === own - mark.own;
  }
}
