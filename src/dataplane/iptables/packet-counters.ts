import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing, IptablesFlavor, NativeAddon } from '../../native/contract.js';
import type { ModeCounts } from '../contract.js';
import { tryRule } from '../xtables/probe.js';
import { INVALID_DROPPED, LOCALHOST_ACCEPTED } from './packet-metrics.js';

/** Accounting objects of the kernel, by kube-proxy's names; both families share them (behaviour IT-22, IT-26, IT-47). */
export const ACCOUNT = {
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  localhostAccepted: 'localhost_nps_accepted_pkts',
} as const;

/** The streams that try a rule count as ours. */
type Programs = Pick<IptablesAddon, 'iptablesRestore'>;

const MATCH = '-m nfacct --nfacct-name';

/** The match by which a rule counts the packets that come as far as it. */
export function countIn(account: string): string {
  return `${MATCH} ${account}`;
}

/** Whether some listed rule counts packets. */
export function countsPackets(listing: readonly IptablesChainListing[]): boolean {
  return listing.some(({ rules }) => rules?.some((rule) => rule.includes(MATCH)));
}

/** Counts packets if the kernel has accounting objects and their match, and the programs know it: any of the three may be missing. */
export class PacketCounters {
  private readonly working = new Set<Family>();
  /** Where it was not possible, and was asked once: a moment without memory or locks looks like a kernel without it. */
  private readonly unknown = new Set<Family>();

  constructor(
    private readonly addon: Pick<NativeAddon, 'accounting'>,
    private readonly flavor: IptablesFlavor,
  ) {}

  /**
   * Makes the missing objects, and answers whether rules may name them. Any program can delete objects that no rule names,
   * so they are made before every writing of all rules; a rule is tried once.
   *
   * @param listing the present one: rules that count already need not be tried.
   */
  async prepare(family: Family, listing: readonly IptablesChainListing[], iptables: Programs): Promise<boolean> {
    const isPossible = await this.isPossible(family, listing, iptables);
    const [now, before] = isPossible ? [this.working, this.unknown] : [this.unknown, this.working];
    now.add(family);
    before.delete(family);
    return isPossible;
  }

  /** Whether it was not possible, and is to be asked once more. */
  isUnknown(family: Family): boolean {
    return this.unknown.has(family);
  }

  /** Asks once more where it was not possible: whether it is now, so that all rules are to be written again. */
  async isPossibleAfterAll(
    family: Family,
    listing: readonly IptablesChainListing[],
    iptables: Programs,
  ): Promise<boolean> {
    return this.unknown.delete(family) && (await this.isPossible(family, listing, iptables));
  }

  /** Other kernels have no such counts; everything else goes on without. */
  private async isPossible(
    family: Family,
    listing: readonly IptablesChainListing[],
    iptables: Programs,
  ): Promise<boolean> {
    try {
      for (const account of Object.values(ACCOUNT)) await this.addon.accounting.accountCreate(account);
    } catch {
      return false;
    }
    if (this.working.has(family) || countsPackets(listing)) return true;
    return (await tryRule(iptables, family, this.flavor, countIn(ACCOUNT.invalidDropped))) === null;
  }

  /** Null: no rule counts. */
  async read(): Promise<ModeCounts | null> {
    if (this.working.size === 0) return null;
    const packets = async (account: string): Promise<number> =>
      (await this.addon.accounting.accountPackets(account)) ?? 0;
    return {
      [INVALID_DROPPED.name]: await packets(ACCOUNT.invalidDropped),
      [LOCALHOST_ACCEPTED.name]: await packets(ACCOUNT.localhostAccepted),
    };
  }
}
