import { addressBytes, type Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing, IptablesOperation } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import type { AffinityQuestion, FamilyDataplane, Inspection, SyncReport } from '../contract.js';
import {
  addRules,
  countRules,
  countStates,
  differences,
  listedStates,
  statesOf,
  type ChainState,
  type ChainStates,
  type RuleCounts,
} from '../xtables/chain-states.js';
import { cleanupOperations } from '../xtables/cleanup.js';
import { hookRepairs } from '../xtables/hooks.js';
import { chainOperation, deleteOperation } from '../xtables/operations.js';
import { chainId, type ChainId } from '../xtables/rules.js';
import { Tables, type TablesOptions } from '../xtables/tables.js';
import { AdoptedTable } from './adopted-table.js';
import { dumpRules } from './dump.js';
import type { ModeSettings, NodeSettings } from './fixed-chains.js';
import { firewallOperations, HOOKS, wantedHooks } from './hooks.js';
import { CHAIN, clientList, DISPATCH_PREFIXES, isOwnChain } from './names.js';
import type { PacketCounters } from './packet-counters.js';
import { readBack } from './read-back.js';
import { everything, Ruleset, type Changes } from './ruleset.js';

export interface IptablesOptions extends TablesOptions {
  readonly addon: IptablesAddon;
  /** Asked for at every full sync. */
  readonly settings: () => Promise<NodeSettings>;
  readonly counters: PacketCounters;
}

/** The iptables mode of one family. The README of this folder says what the chains look like and why. */
export class IptablesFamily implements FamilyDataplane {
  readonly family: Family;
  private settings: ModeSettings = { dropInvalid: false, countsPackets: false };
  /** Null before the first sync. */
  private desired: { readonly view: AdoptedTable; readonly ruleset: Ruleset } | null = null;
  /** Our chains as the kernel acknowledged them; null while that is not known: at the start and after any failure. */
  private acknowledged: ChainStates | null = null;
  private readonly gone = new Set<FrontendKey>();
  /** Whether loopback was served, and so guarded, when everything was last compared. */
  private guardsLoopback = false;
  private readonly tables: Tables;

  constructor(private readonly options: IptablesOptions) {
    this.family = options.family;
    this.tables = new Tables(options);
  }

  async apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const { view, ruleset } = this.follow(table, change);
    const before = this.acknowledged;
    const full =
      before === null ||
      this.lacksGuard(table.node) ||
      (options.full && (await this.tables.isListingDue(CHAIN.canary)));
    this.acknowledged = null;
    const listing = full ? await this.list(before === null ? this.textsToRead(table) : []) : null;
    if (listing !== null) await this.readSettings(ruleset, listing);
    if (before === null && listing !== null) this.takeOver(table, view, ruleset, listing);
    const repairs = before !== null && listing !== null ? repairsOf(before, listing) : [];
    const plan = await this.plan(ruleset, before, listing, table.node);
    const first = await this.send(plan.operations);
    const rest = ruleset.settle() ? await this.plan(ruleset, plan.wanted, null, table.node) : null;
    const second = await this.send(rest?.operations ?? []);
    const problems = await this.tidyUp(plan.later);
    this.acknowledged = plan.wanted;
    if (listing !== null) this.guardsLoopback = table.node.nodePortsOnLoopback;
    const flows = full || change.node ? 'all' : new Set([...change.frontends].filter((key) => !key.endsWith('/TCP')));
    const rules = {
      written: { ...addRules(plan.written, rest?.written) },
      held: { ...countStates(plan.wanted) },
    };
    const sent: Sent = {
      transactions: first.transactions + second.transactions,
      ruleOperations: first.ruleOperations + second.ruleOperations,
      bytes: first.bytes + second.bytes,
    };
    return { family: this.family, full, ...sent, elementOperations: 0, repairs, problems, flows, rules, setAside: [] };
  }

  /** Whether loopback has come to be served since everything was last compared: others use its guard too, so it is not among our chains. */
  private lacksGuard(node: NodePlan): boolean {
    return node.nodePortsOnLoopback && !this.guardsLoopback;
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.gone;
  }

  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    for (const key of keys) this.gone.delete(key);
    return Promise.resolve();
  }

  async cleanup(): Promise<void> {
    this.acknowledged = null;
    const operations = cleanupOperations(await this.list([]), HOOKS, isOwnChain);
    if (operations.length > 0) await this.tables.restore(operations);
  }

  async dump(node: NodePlan): Promise<readonly string[]> {
    const { addon, settings } = this.options;
    return await dumpRules(addon, this.family, await this.list(['KUBE-']), node, await settings());
  }

  /** Lists everything: the programs know no less. */
  async inspect(node: NodePlan, scope: PacketScope, affinity: AffinityQuestion | null): Promise<Inspection> {
    const lines = withinScope(await this.dump(node), this.family, scope);
    return { lines, remembered: affinity && (await this.remembered(scope, affinity)) };
  }

  private async remembered(
    { frontend }: PacketScope,
    { source, seconds, servicePort, endpoints }: AffinityQuestion,
  ): Promise<string | null> {
    if (source === null) return null;
    const { protocol } = parseFrontendKey(frontend);
    const lists = endpoints.map((endpoint) => clientList(servicePort, protocol, endpoint));
    const index = await this.options.addon.iptablesRemembering(lists, addressBytes(source), seconds);
    return index === null ? null : (endpoints[index] ?? null);
  }

  /** Brings what is wanted up to date with the table. */
  private follow(table: FamilyTable, change: TableChange): { readonly view: AdoptedTable; readonly ruleset: Ruleset } {
    if (this.desired === null) {
      const view = new AdoptedTable(table);
      const ruleset = new Ruleset(view, () => this.settings);
      this.desired = { view, ruleset };
      ruleset.update(everything(table));
      return this.desired;
    }
    const { view, ruleset } = this.desired;
    view.follow(table);
    view.forget(change.frontends);
    this.update(view, ruleset, change);
    if (!table.gaps) this.update(view, ruleset, view.release());
    return this.desired;
  }

  private update(view: AdoptedTable, ruleset: Ruleset, changes: Changes): void {
    for (const key of changes.frontends) {
      if (key.endsWith('/TCP')) continue;
      if (view.frontend(key) !== undefined) this.gone.delete(key);
      else if (ruleset.has(key)) this.gone.add(key);
    }
    ruleset.update(changes);
  }

  /** Of which chains the rules themselves are needed at a start. */
  private textsToRead({ gaps }: FamilyTable): readonly string[] {
    return gaps ? ['KUBE-'] : DISPATCH_PREFIXES;
  }

  private async readSettings(ruleset: Ruleset, listing: readonly IptablesChainListing[]): Promise<void> {
    const countsPackets = await this.options.counters.prepare(this.family, listing);
    const settings = { ...(await this.options.settings()), countsPackets };
    if (JSON.stringify(settings) !== JSON.stringify(this.settings)) ruleset.touchAll();
    this.settings = settings;
  }

  /** What a predecessor left: frontends that the plan does not have are gone, or if it has gaps, stay. */
  private takeOver(
    table: FamilyTable,
    view: AdoptedTable,
    ruleset: Ruleset,
    listing: readonly IptablesChainListing[],
  ): void {
    const held = readBack(this.family, listing);
    if (table.gaps) ruleset.update(view.adopt(held));
    ruleset.adoptRefusals(held.refusals);
    for (const key of held.frontends.keys()) {
      if (!key.endsWith('/TCP') && view.frontend(key) === undefined) this.gone.add(key);
    }
    ruleset.touchAll();
  }

  /** What has to be written, and what our chains are after that. */
  private async plan(
    ruleset: Ruleset,
    before: ChainStates | null,
    listing: readonly IptablesChainListing[] | null,
    node: NodePlan,
  ): Promise<Plan> {
    const { chains, gone } = ruleset.takeTouched();
    const states = await statesOf(this.options.addon, this.family, chains);
    const kernel: ChainStates =
      listing === null ? (before ?? new Map<ChainId, ChainState>()) : listedStates(listing, isOwnChain);
    const differs = (id: ChainId, digest: string): boolean => kernel.get(id)?.digest !== digest;
    const changed = chains.filter(({ table, name }) => {
      const id = chainId(table, name);
      return differs(id, states.get(id)?.digest ?? '');
    });
    const stale = gone.filter((id) => kernel.has(id));
    const wanted: ChainStates = before ?? new Map<ChainId, ChainState>();
    for (const id of gone) wanted.delete(id);
    for (const [id, state] of states) wanted.set(id, state);
    if (listing === null) {
      const operations = [...changed.map(chainOperation), ...stale.map(deleteOperation)];
      return { operations, later: [], wanted, written: countRules(changed, this.family) };
    }
    const lost = [...wanted].filter(([id, { digest }]) => !states.has(id) && differs(id, digest)).map(([id]) => id);
    const written = [...changed, ...ruleset.make(new Set(lost))];
    return {
      operations: [...written.map(chainOperation), ...this.hookOperations(listing, node)],
      later: [...kernel.keys()].filter((id) => !wanted.has(id)).map(deleteOperation),
      wanted,
      written: countRules(written, this.family),
    };
  }

  private hookOperations(listing: readonly IptablesChainListing[], node: NodePlan): readonly IptablesOperation[] {
    const withFirewall = node.nodePortsOnLoopback;
    return [...hookRepairs(listing, wantedHooks(withFirewall)), ...(withFirewall ? firewallOperations(listing) : [])];
  }

  private async send(operations: readonly IptablesOperation[]): Promise<Sent> {
    if (operations.length === 0) return { transactions: 0, ruleOperations: 0, bytes: 0 };
    const { bytes, rules } = await this.tables.restore(operations);
    return { transactions: 1, ruleOperations: rules, bytes };
  }

  /** Removes what a complete ruleset does not need; forwarding does not depend on it. Answers what did not work. */
  private async tidyUp(later: readonly IptablesOperation[]): Promise<readonly string[]> {
    if (later.length === 0) return [];
    try {
      await this.tables.restore(later);
      return [];
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return [`cannot remove chains that are no longer used: ${reason}`];
    }
  }

  private list(textOf: readonly string[]): Promise<readonly IptablesChainListing[]> {
    return this.tables.list([CHAIN.firewall, CHAIN.forward, ...textOf]);
  }
}

type Sent = Pick<SyncReport, 'transactions' | 'ruleOperations' | 'bytes'>;

interface Plan {
  readonly operations: readonly IptablesOperation[];
  /** Removals that can wait until everything else is in place. */
  readonly later: readonly IptablesOperation[];
  readonly wanted: ChainStates;
  readonly written: RuleCounts;
}

/** What a periodic comparison found lost or altered. */
function repairsOf(acknowledged: ChainStates, listing: readonly IptablesChainListing[]): readonly string[] {
  const jumps = hookRepairs(listing, HOOKS).filter(({ verb }) => verb === 'insert');
  return [
    ...differences(acknowledged, listedStates(listing, isOwnChain)),
    ...jumps.map(({ table, chain, text }) => `rule of ${table} ${chain} was missing: ${text}`),
  ];
}
