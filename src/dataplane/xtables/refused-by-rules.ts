import type { IptablesAddon, IptablesChainCounts, IptablesFlavor } from '../../native/contract.js';
import type { Family } from '../../base/ip.js';
import type { FrontendKey } from '../../plan/types.js';
import type { RefusedPackets } from '../contract.js';

/** A rule's verdict on packets to a frontend. */
export type Refusal = Omit<RefusedPackets, 'packets'>;

export interface RefusedByRulesParts {
  readonly addon: Pick<IptablesAddon, 'iptablesCounts'>;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  /** Beginning of the names of the chains of filter that refuse. */
  readonly prefix: string;
  /** Null: the rule refuses no frontend. */
  readonly refusalIn: (chain: string, rule: string) => Refusal | null;
}

type Counted = ReadonlyMap<string, number>;

/**
 * Packets that rules refused, by the kernel's counter of each rule. A chain that is written anew counts from zero. Its former
 * counts stay in the sums, except those since the last look.
 */
export class RefusedByRules {
  /** The counts of the last look, by name and digest of a chain. */
  private counted = new Map<string, Counted>();
  private readonly sums = new Map<string, RefusedPackets>();

  constructor(private readonly parts: RefusedByRulesParts) {}

  /** One look at a time. @param isThere frontends that are gone are left out from now on. */
  async read(isThere: (frontend: FrontendKey) => boolean): Promise<readonly RefusedPackets[]> {
    const { addon, family, flavor, prefix } = this.parts;
    const chains = await addon.iptablesCounts(family, flavor, 'filter', prefix);
    const counted = new Map<string, Counted>();
    for (const chain of chains) {
      const id = `${chain.chain} ${chain.digest}`;
      counted.set(id, this.add(chain, this.counted.get(id)));
    }
    this.counted = counted;
    for (const [key, { frontend }] of this.sums) if (!isThere(frontend)) this.sums.delete(key);
    return [...this.sums.values()];
  }

  private add({ chain, rules, packets }: IptablesChainCounts, before: Counted | undefined): Counted {
    const now = new Map(rules.map((rule, index) => [rule, packets[index] ?? 0]));
    for (const [rule, count] of now) {
      const known = before?.get(rule) ?? 0;
      // It was set to zero.
      const more = count < known ? count : count - known;
      const refusal = more === 0 ? null : this.parts.refusalIn(chain, rule);
      if (refusal === null) continue;
      const key = `${refusal.frontend} ${refusal.reason} ${refusal.verdict}`;
      this.sums.set(key, { ...refusal, packets: (this.sums.get(key)?.packets ?? 0) + more });
    }
    return now;
  }
}
