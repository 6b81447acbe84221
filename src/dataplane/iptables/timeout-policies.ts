import { isDeepStrictEqual } from 'node:util';
import type { ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type {
  IptablesAddon,
  IptablesChainListing,
  IptablesFlavor,
  TimeoutPolicy,
  TimeoutsAddon,
} from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { Limitation } from '../contract.js';
import { tryRule } from '../xtables/probe.js';
import { CHAIN, POLICY_NAME } from './names.js';
import { policyNamed, usePolicy } from './retry.js';

/** Refusals that do not show what the kernel has. */
const PASSING: readonly (string | null)[] = ['ENOMEM', 'ENOBUFS', 'EAGAIN', 'EINTR', 'EPERM', 'ETIMEDOUT'];

interface TimeoutPoliciesOptions {
  readonly addon: TimeoutsAddon;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  /** The sysctls in force. */
  readonly sysctls: () => ConntrackTimeouts;
}

/**
 * Policies of one family that rules name. No program can remove a policy that a rule names, so they are looked at before
 * all rules are written. Others may only give them other seconds.
 */
export class TimeoutPolicies {
  /** Null: not known yet. */
  private isPossible: boolean | null = null;
  private reason: string | null = null;
  /** As the kernel acknowledged them. */
  private readonly acknowledged = new Map<string, TimeoutPolicy>();

  constructor(private readonly options: TimeoutPoliciesOptions) {}

  /** Why there are none; null: there are, or it is not known yet. */
  get limitation(): Limitation | null {
    if (this.reason === null) return null;
    return { of: 'kernel', text: `connection attempts wait for an endpoint that does not answer: ${this.reason}` };
  }

  get isLacking(): boolean {
    return this.reason !== null;
  }

  /** Rules do without from now on. */
  giveUp(reason: string): void {
    this.isPossible = false;
    this.reason = reason;
  }

  /**
   * Makes the kernel hold these policies with the seconds that the sysctls call for.
   *
   * @param listing the present one: if it has such rules already, they need not be tried.
   * @param iptables with streams that count as ours.
   * @returns acknowledged values that were lost, a line each; null if rules cannot name policies.
   */
  async prepare(
    names: ReadonlySet<string>,
    listing: readonly IptablesChainListing[],
    iptables: Pick<IptablesAddon, 'iptablesRestore'>,
  ): Promise<readonly string[] | null> {
    if (this.isPossible === false) return null;
    try {
      const held = await this.held();
      const losses = [...this.acknowledged.values()].flatMap((each) => lossOf(each, held.get(each.name)));
      for (const name of [...this.acknowledged.keys()]) if (!held.has(name)) this.acknowledged.delete(name);
      // One that is not wanted may still be in the rules of a frontend that is quarantined.
      for (const name of new Set([...names, ...held.keys()])) await this.set(name, held.get(name));
      const [first] = names;
      if (this.isPossible === null && first !== undefined) await this.tryRule(first, listing, iptables);
      return this.isLacking ? null : losses;
    } catch (error) {
      if (!isNativeError(error) || PASSING.includes(error.errno)) throw error;
      // Programs that cannot begin with table raw name no line of it.
      if (error.code === 'ERR_IPTABLES') this.giveUp(this.untaken(messageOf(error)));
      else this.giveUp(`this kernel has no timeout policies (CONFIG_NF_CT_NETLINK_TIMEOUT): ${messageOf(error)}`);
      return null;
    }
  }

  /** Makes those of these policies that are new. */
  async add(names: Iterable<string>): Promise<void> {
    for (const name of names) if (!this.acknowledged.has(name)) await this.set(name, undefined);
  }

  /** Whether the kernel holds other policies than it acknowledged, or other sysctls call for others. */
  async differ(): Promise<boolean> {
    const { acknowledged } = this;
    if (acknowledged.size === 0) return false;
    const sysctls = this.options.sysctls();
    const held = await this.held();
    return [...acknowledged.keys()].some((name) => !isDeepStrictEqual(held.get(name), policyNamed(name, sysctls)));
  }

  /** Removes our policies but for these. One that a rule names stays: the next call tries again. */
  async removeOthers(names: ReadonlySet<string>): Promise<void> {
    for (const name of this.acknowledged.keys()) {
      if (names.has(name)) continue;
      try {
        await this.options.addon.timeoutDelete(name);
        this.acknowledged.delete(name);
      } catch (error) {
        if (!isNativeError(error) || error.errno !== 'EBUSY') throw error;
      }
    }
  }

  private async set(name: string, held: TimeoutPolicy | undefined): Promise<void> {
    const policy = policyNamed(name, this.options.sysctls());
    if (!isDeepStrictEqual(held, policy)) await this.options.addon.timeoutSet(policy);
    this.acknowledged.set(name, policy);
  }

  /** Those of the family and ours, which this takes over. */
  private async held(): Promise<ReadonlyMap<string, TimeoutPolicy>> {
    const all = await this.options.addon.timeoutList();
    const own = all.filter(({ name, family }) => family === this.options.family && POLICY_NAME.test(name));
    for (const policy of own) if (!this.acknowledged.has(policy.name)) this.acknowledged.set(policy.name, policy);
    return new Map(own.map((policy) => [policy.name, policy]));
  }

  private untaken(reason: string): string {
    return `iptables (${this.options.flavor}) does not take -j CT --timeout in table raw: ${reason}`;
  }

  private async tryRule(
    name: string,
    listing: readonly IptablesChainListing[],
    iptables: Pick<IptablesAddon, 'iptablesRestore'>,
  ): Promise<void> {
    const { family, flavor } = this.options;
    const isUsed = listing.some(({ table, name: chain }) => table === 'raw' && chain === CHAIN.retry);
    const word = name.charAt(1).toLowerCase() === 't' ? 'tcp' : 'udp';
    const refused = isUsed ? null : await tryRule(iptables, family, flavor, `-p ${word} ${usePolicy(name)}`, 'raw');
    if (refused === null) this.isPossible = true;
    else this.giveUp(this.untaken(refused));
  }
}

/** Values that the sysctls called for at their time are no loss. */
function lossOf(acknowledged: TimeoutPolicy, held: TimeoutPolicy | undefined): readonly string[] {
  if (held === undefined) return [`timeout policy ${acknowledged.name} was missing`];
  return isDeepStrictEqual(acknowledged, held) ? [] : [`timeout policy ${acknowledged.name} had other seconds`];
}
