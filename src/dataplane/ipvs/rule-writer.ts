import type { IptablesAddon, IptablesChainListing, IptablesOperation } from '../../native/contract.js';
import type { FrontendPlan, NodePlan } from '../../plan/types.js';
import type { Limitation } from '../contract.js';
import { differences, listedStates, statesOf, type ChainStates } from '../xtables/chain-states.js';
import { hookRemovals, hookRepairs, PROXY_FIREWALL_HOOKS } from '../xtables/hooks.js';
import { chainOperation, deleteOperation } from '../xtables/operations.js';
import { chainId } from '../xtables/rules.js';
import { Tables, type TablesOptions } from '../xtables/tables.js';
import { Unlisted } from '../xtables/unlisted.js';
import { isOwnChain } from './footprint.js';
import { CHAIN } from './names.js';
import { chains, HOOKS } from './rules.js';

interface RuleWriterOptions extends TablesOptions {
  readonly addon: IptablesAddon;
}

/** The rules to be written, in three parts. */
interface RulePlan {
  /** Before there is anything that these rules are for. */
  readonly first: readonly IptablesOperation[];
  /** After all else: another mode, or another proxy, translates until then. */
  readonly last: readonly IptablesOperation[];
  /** Removals of rules that nothing needs any more. */
  readonly stale: readonly IptablesOperation[];
  readonly wanted: ChainStates;
}

/** The chains of one family: as they should be, and as the kernel acknowledged them. */
export class RuleWriter {
  /** Null: unknown. */
  private acknowledged: ChainStates | null = null;
  private readonly tables: Tables;
  private readonly unlisted: Unlisted;
  rules = 0;
  bytes = 0;

  constructor(private readonly options: RuleWriterOptions) {
    this.tables = new Tables(options);
    this.unlisted = new Unlisted(options.flavor, isOwnChain);
  }

  /** Another value after every change of what the kernel is known to hold. */
  get version(): unknown {
    return this.acknowledged;
  }

  get limitations(): readonly Limitation[] {
    return this.unlisted.limitations;
  }

  async list(textOf: readonly string[] = []): Promise<readonly IptablesChainListing[]> {
    return this.unlisted.believe(await this.tables.list(textOf), this.acknowledged);
  }

  /** Rules lost or altered since they were acknowledged, a line each. */
  repairs(listing: readonly IptablesChainListing[]): readonly string[] {
    if (this.acknowledged === null) return [];
    const jumps = hookRepairs(listing, HOOKS).filter(({ verb }) => verb === 'insert');
    return [
      ...differences(this.acknowledged, listedStates(listing, isOwnChain), () => true),
      ...jumps.map(({ table, chain, text }) => `rule of ${table} ${chain} was missing: ${text}`),
    ];
  }

  /**
   * @param counts see {@link chains}.
   * @param listing null: the kernel is as it acknowledged.
   */
  async plan(
    node: NodePlan,
    restricted: Iterable<FrontendPlan>,
    counts: boolean,
    listing: readonly IptablesChainListing[] | null,
  ): Promise<RulePlan> {
    const { addon, family } = this.options;
    const all = chains(node, restricted, counts);
    const wanted = await statesOf(addon, family, all);
    const held = listing === null ? this.acknowledged : listedStates(listing, isOwnChain);
    const operations: IptablesOperation[] = all
      .filter(({ table, name }) => {
        const id = chainId(table, name);
        return held?.get(id)?.digest !== wanted.get(id)?.digest;
      })
      .map(chainOperation);
    if (listing !== null) {
      this.unlisted.note(listing);
      operations.push(...hookRepairs(listing, HOOKS), ...hookRemovals(listing, PROXY_FIREWALL_HOOKS.iptables));
    }
    const takesOver = listing !== null && held?.has(chainId('nat', CHAIN.services)) === true;
    const isLast = ({ table }: IptablesOperation): boolean => takesOver && table === 'nat';
    return {
      first: operations.filter((operation) => !isLast(operation)),
      last: operations.filter(isLast),
      stale: [...(held?.keys() ?? [])].filter((id) => !wanted.has(id)).map(deleteOperation),
      wanted,
    };
  }

  async send(operations: readonly IptablesOperation[]): Promise<void> {
    if (operations.length === 0) return;
    this.acknowledged = null;
    const { rules, bytes } = await this.tables.restore(operations);
    this.rules += rules;
    this.bytes += bytes;
  }

  /** All of the plan is in the kernel. */
  acknowledge({ wanted }: RulePlan): void {
    this.acknowledged = wanted;
  }
}
