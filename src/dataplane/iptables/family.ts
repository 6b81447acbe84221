import { addressBytes, type Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing, IptablesOperation } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import type { AffinityQuestion, FamilyDataplane, Inspection, RefusedPackets, SyncReport } from '../contract.js';
import { ChainLedger } from '../xtables/chain-ledger.js';
import { differences, listedStates } from '../xtables/chain-states.js';
import { cleanupOperations } from '../xtables/cleanup.js';
import { inOtherFlavors } from '../xtables/flavor.js';
import { hookRemovals, hookRepairs, PROXY_FIREWALL_HOOKS } from '../xtables/hooks.js';
import type { RefusedByRules } from '../xtables/refused-by-rules.js';
import { Tables, type TablesOptions } from '../xtables/tables.js';
import { AdoptedTable } from './adopted-table.js';
import { ChainWriter, type Refused } from './chain-writer.js';
import { dumpRules } from './dump.js';
import type { ModeSettings, NodeSettings } from './fixed-chains.js';
import { firewallOperations, HOOKS, wantedHooks } from './hooks.js';
import { CHAIN, clientList, DISPATCH_PREFIXES, isOwnChain } from './names.js';
import { GroupWriter } from './group-writer.js';
import type { PacketCounters } from './packet-counters.js';
import { readBack } from './read-back.js';
import { Ruleset } from './ruleset.js';
import { groupsOf, ServiceGroups } from './service-groups.js';
import { everything, type Changes } from '../table-view.js';

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
  private desired: Desired | null = null;
  private readonly groups: ServiceGroups;
  private readonly chains: ChainLedger;
  /** Whether a sync has been through that compared everything: what a predecessor left is taken over until then. */
  private adopted = false;
  /** Whether nothing makes everything be compared again, see the README: not at the start. */
  private compared = false;
  /** Losses that were found and not reported: the repair may take several attempts. */
  private repairs: readonly string[] = [];
  /** UDP and SCTP frontends that changed since flows were last reported; all of them after a comparison of everything. */
  private flows: Set<FrontendKey> | 'all' = new Set();
  private readonly gone = new Set<FrontendKey>();
  /** Whether mode ipvs translates until this sync has written nat. */
  private followsIpvs = false;
  /** Whether loopback was served, and so guarded, when everything was last compared. */
  private guardsLoopback = false;
  private readonly tables: Tables;
  /** Null: nobody has asked. */
  private refusals: RefusedByRules | null = null;

  constructor(private readonly options: IptablesOptions) {
    this.family = options.family;
    this.tables = new Tables(options);
    this.groups = new ServiceGroups(options.now);
    this.chains = new ChainLedger(options.now);
  }

  async apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const desired = this.follow(table, change);
    const { writer, groups } = desired;
    this.noteFlows(change.node ? 'all' : change.frontends);
    let full =
      !this.compared || this.lacksGuard(table.node) || (options.full && (await this.tables.isListingDue(CHAIN.canary)));
    writer.takeSent();
    let jumps = full ? await this.compare(table, desired) : [];
    let refused = await groups.bringOwed(!full, jumps);
    if (refused !== null && !full) {
      // Others may have removed chains that the stream refers to.
      full = true;
      jumps = await this.compare(table, desired);
      refused = await groups.bringOwed(false, jumps);
    }
    if (refused !== null) await this.blame(desired, refused, jumps);
    await groups.restore();
    const due = await groups.bringDue();
    this.noteFlows(full ? 'all' : due);
    const problems = full || due.size > 0 ? await writer.tidyUp() : [];
    if (full) this.guardsLoopback = table.node.nodePortsOnLoopback;
    this.compared = this.adopted = true;
    this.followsIpvs = false;
    return this.report(desired, full, problems);
  }

  private report({ writer, groups }: Desired, full: boolean, problems: readonly string[]): SyncReport {
    const { flows, repairs } = this;
    this.flows = new Set();
    this.repairs = [];
    const { rules: written, ...sent } = writer.takeSent();
    const rules = { written: { ...written }, held: { ...this.chains.held } };
    const setAside = groups.setAside();
    return { family: this.family, full, ...sent, elementOperations: 0, repairs, problems, flows, rules, setAside };
  }

  /** Whether loopback has come to be served since everything was last compared: others use its guard too, so it is not among our chains. */
  private lacksGuard(node: NodePlan): boolean {
    return node.nodePortsOnLoopback && !this.guardsLoopback;
  }

  private async blame(desired: Desired, refused: Refused, jumps: readonly IptablesOperation[]): Promise<void> {
    if (!this.adopted) await this.readHeld(desired);
    await desired.groups.blame(refused, jumps);
  }

  /** Reads back whole what a predecessor left of the groups that are owed: it stays of those that are refused. */
  private async readHeld({ view }: Desired): Promise<void> {
    const { ledger } = this.groups;
    const { frontends } = readBack(this.family, await this.list(['KUBE-']));
    const held = groupsOf(frontends.values(), view.node);
    for (const hash of [...ledger.owed()]) ledger.readBack(hash, held.get(hash));
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.gone;
  }

  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    for (const key of keys) this.gone.delete(key);
    return Promise.resolve();
  }

  async cleanup(): Promise<void> {
    this.compared = this.adopted = false;
    const operations = cleanupOperations(await this.list([]), HOOKS, isOwnChain);
    if (operations.length > 0) await this.tables.restore(operations);
  }

  async dump({ node }: Pick<FamilyTable, 'node'>): Promise<readonly string[]> {
    const { addon, settings } = this.options;
    return await dumpRules(addon, this.family, await this.tables.peek(ASKED), node, await settings());
  }

  /** Lists everything: the programs know no less. */
  async inspect(
    table: Pick<FamilyTable, 'node'>,
    scope: PacketScope,
    affinity: AffinityQuestion | null,
  ): Promise<Inspection> {
    const lines = withinScope(await this.dump(table), this.family, scope);
    return { lines, remembered: affinity && (await this.remembered(scope, affinity)) };
  }

  async refused(): Promise<readonly RefusedPackets[]> {
    // Loaded where it is used: it is a file of its own.
    const { rulesThatRefuse } = await import('./rule-refusals.js');
    this.refusals ??= rulesThatRefuse(this.options);
    return await this.refusals.read((frontend) => this.desired?.view.frontend(frontend) !== undefined);
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
  private follow(table: FamilyTable, change: TableChange): Desired {
    if (this.desired === null) {
      const view = new AdoptedTable(table);
      const ruleset = new Ruleset(view, () => this.settings);
      const { tables, chains } = this;
      const writer = new ChainWriter({
        ...{ addon: this.options.addon, tables, ruleset, chains },
        followsIpvs: () => this.followsIpvs,
      });
      const groups = new GroupWriter({ groups: this.groups, ruleset, chains, writer });
      this.desired = { view, ruleset, writer, groups };
      this.update(this.desired, everything(table));
      return this.desired;
    }
    const { view } = this.desired;
    view.follow(table);
    view.forget(change.frontends);
    this.update(this.desired, change);
    if (!table.gaps) this.update(this.desired, view.release());
    return this.desired;
  }

  private update({ view, ruleset, groups }: Desired, changes: Changes): void {
    for (const key of changes.frontends) {
      if (key.endsWith('/TCP')) continue;
      if (view.frontend(key) !== undefined) this.gone.delete(key);
      else if (this.groups.has(key)) this.gone.add(key);
    }
    groups.follow(this.groups.follow(view, changes));
    ruleset.update(changes);
  }

  private noteFlows(changed: ReadonlySet<FrontendKey> | 'all'): void {
    if (changed === 'all') this.flows = 'all';
    if (changed === 'all' || this.flows === 'all') return;
    for (const key of changed) if (!key.endsWith('/TCP')) this.flows.add(key);
  }

  /** Finds out what the kernel holds. Answers what its built-in chains, and those that others have rules in, lack. */
  private async compare(table: FamilyTable, desired: Desired): Promise<readonly IptablesOperation[]> {
    // Until everything of this sync is done, the next one compares again.
    this.compared = false;
    const listing = await this.list(this.adopted ? [] : this.textsToRead(table));
    await this.readSettings(desired.ruleset, listing);
    if (this.adopted) {
      const lost = this.losses(listing);
      if (lost.length > 0) this.repairs = lost;
    }
    this.followsIpvs = await this.findsIpvs(listing);
    const listed = listedStates(listing, isOwnChain);
    desired.groups.noteDamage(listed);
    this.chains.readBackAll(listed);
    if (!this.adopted) this.takeOver(table, desired, listing);
    desired.groups.checkAside();
    return this.hookOperations(listing, table.node);
  }

  /** Whether mode ipvs was before, in this flavour or another. Of another nothing is asked where nat translates already. */
  private async findsIpvs(listing: readonly IptablesChainListing[]): Promise<boolean> {
    const hooks = PROXY_FIREWALL_HOOKS.ipvs;
    if (hookRemovals(listing, hooks).length > 0) return true;
    if (this.adopted || listing.some(({ table, name }) => table === 'nat' && name === CHAIN.services)) return false;
    const { addon, family, flavor } = this.options;
    return await inOtherFlavors(addon, family, flavor, hooks);
  }

  /** What a comparison found lost or altered. What was on its way when its answer was lost is not missed. */
  private losses(listing: readonly IptablesChainListing[]): readonly string[] {
    const { acknowledged, unknown } = this.chains;
    const jumps = hookRepairs(listing, HOOKS).filter(({ verb }) => verb === 'insert');
    return [
      ...differences(acknowledged, listedStates(listing, isOwnChain), (id) => !unknown.has(id)),
      ...jumps.map(({ table, chain, text }) => `rule of ${table} ${chain} was missing: ${text}`),
    ];
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
  private takeOver(table: FamilyTable, desired: Desired, listing: readonly IptablesChainListing[]): void {
    const { view, ruleset } = desired;
    const held = readBack(this.family, listing);
    if (table.gaps) this.update(desired, view.adopt(held));
    ruleset.adoptRefusals(held.refusals);
    for (const key of held.frontends.keys()) {
      if (!key.endsWith('/TCP') && view.frontend(key) === undefined) this.gone.add(key);
    }
  }

  private hookOperations(listing: readonly IptablesChainListing[], node: NodePlan): readonly IptablesOperation[] {
    const withFirewall = node.nodePortsOnLoopback;
    return [
      ...hookRepairs(listing, wantedHooks(withFirewall)),
      ...hookRemovals(listing, PROXY_FIREWALL_HOOKS.ipvs),
      ...(withFirewall ? firewallOperations(listing) : []),
    ];
  }

  private list(textOf: readonly string[]): Promise<readonly IptablesChainListing[]> {
    return this.tables.list([...OTHERS_CHAINS, ...textOf]);
  }
}

/** Chains of others that are looked into. */
const OTHERS_CHAINS = [CHAIN.firewall, CHAIN.forward];
/** What `dump` reads. */
const ASKED = [...OTHERS_CHAINS, 'KUBE-'];

/** What is wanted, and what brings it to the kernel. */
interface Desired {
  readonly view: AdoptedTable;
  readonly ruleset: Ruleset;
  readonly writer: ChainWriter;
  readonly groups: GroupWriter;
}
