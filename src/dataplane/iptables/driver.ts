import { addressBytes, type Family } from '../../base/ip.js';
import type {
  IptablesAddon,
  IptablesChainListing,
  IptablesOperation,
  IptablesTransaction,
} from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, FrontendPlan, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import { messageOf } from '../../base/error-message.js';
import type {
  AffinityQuestion,
  AwaitChange,
  QuarantinedFrontend,
  Inspection,
  Limitation,
  RefusedPackets,
} from '../contract.js';
import type { Delivered, Driver, FoundFaults, SyncScope, Tidied, WaitForQuiet } from '../driver.js';
import { CONNECTIONS_GO_ON } from '../limitations.js';
import { undisturbed } from '../reconciler.js';
import { ChainLedger } from '../xtables/chain-ledger.js';
import { differences, listedStates } from '../xtables/chain-states.js';
import { inOtherFlavors } from '../xtables/flavor.js';
import { hookRemovals, hookRepairs, PROXY_FIREWALL_HOOKS } from '../xtables/hooks.js';
import { faultsOf, lackingParts, partsOf, type LackingPart } from '../xtables/parts.js';
import type { RefusedByRules } from '../xtables/refused-by-rules.js';
import { Tables, type TablesOptions } from '../xtables/tables.js';
import { Unlisted } from '../xtables/unlisted.js';
import { AdoptedTable } from './adopted-table.js';
import { ChainWriter, type RefusedStream, type SentStreams } from './chain-writer.js';
import { dumpRules } from './dump.js';
import type { ModeSettings, NodeSettings } from './fixed-chains.js';
import { firewallOperations, RETRY_HOOKS, wantedHooks } from './hooks.js';
import { CHAIN, clientList, DISPATCH_PREFIXES, isOwnChain } from './names.js';
import { GroupWriter } from './group-writer.js';
import type { PacketCounters } from './packet-counters.js';
import { readBack } from './read-back.js';
import { hasRetries, policyOf } from './retry.js';
import { Ruleset } from './ruleset.js';
import type { TimeoutPolicies } from './timeout-policies.js';
import type { Since, Traces } from './traces.js';
import { groupsOf, ServiceGroups } from './service-groups.js';
import { everything, type Changes } from '../table-view.js';

interface IptablesOptions extends TablesOptions {
  readonly addon: IptablesAddon;
  /** Asked for at every full sync. */
  readonly settings: () => Promise<NodeSettings>;
  readonly counters: PacketCounters;
  readonly traces: Traces;
  readonly policies: TimeoutPolicies;
  /** A table of others that decides behind table raw how packets are tracked; null: none does. */
  readonly decidesLater: () => Promise<string | null>;
}

type Chains = readonly IptablesChainListing[];

/** The iptables mode of one family. The README of this folder explains the chains. */
export class IptablesDriver implements Driver<Chains> {
  readonly family: Family;
  readonly polls = 'little';
  readonly replaces = true;
  readonly notes = null;
  readonly resets = null;
  readonly dueAt = null;
  private settings: ModeSettings = { dropInvalid: false, countsPackets: false, retries: false };
  /** Null before the first plan. */
  private desired: Pipeline | null = null;
  private readonly groups: ServiceGroups;
  private readonly chains: ChainLedger;
  /** Rules that built-in chains, and chains with rules of others, lack. */
  private jumps: readonly IptablesOperation[] = [];
  /** Frontends that another process left and that the plan does not have. */
  private unplanned: readonly FrontendKey[] = [];
  /** Whether mode ipvs translates until this sync has written nat. */
  private followsIpvs = false;
  /** Whether loopback was served, and so guarded, when everything was last written. */
  private guardsLoopback = false;
  /** Whether unanswered attempts were limited, and so hooked, when everything was last written. */
  private hooksRetries = false;
  private written: SentStreams['rules'] = { filter: 0, nat: 0 };
  /** All streams go through it, so that none of ours looks like an external change. */
  private readonly programs: TablesOptions['addon'];
  private readonly tables: Tables;
  private readonly unlisted: Unlisted;
  /** Chains that are no longer used could not be removed. No trace shows it: the next check lists all chains, and so tries again. */
  private leavesChains = false;
  /** Since all chains were last in their known state. */
  private known: Since | null = null;
  /** Null: not asked for yet. */
  private refusals: RefusedByRules | null = null;
  /** As of the last full sync. */
  private laterDecider: string | null = null;
  /** Asked for in this delivery; null: not yet. */
  private lacking: Promise<readonly LackingPart[]> | null = null;
  /** Acknowledged timeout policies that the last listing lacked. */
  private policyLosses: readonly string[] = [];

  constructor(private readonly options: IptablesOptions) {
    this.family = options.family;
    this.programs = counted(options);
    this.tables = new Tables({ ...options, addon: this.programs });
    this.unlisted = new Unlisted(options.flavor, isOwnChain);
    this.groups = new ServiceGroups(options.now);
    this.chains = new ChainLedger(options.now);
  }

  get comparingMs(): number {
    return this.options.addon.iptablesListingMs();
  }

  get awaitChange(): AwaitChange | null {
    return this.known?.awaitChange ?? null;
  }

  get lacksTimeouts(): boolean {
    return this.options.policies.isLacking || this.laterDecider !== null;
  }

  get limitations(): readonly Limitation[] {
    const { limitation } = this.options.policies;
    const decided = this.laterDecider === null ? null : decidedByOthers(this.laterDecider);
    return [limitation ?? decided ?? REMEMBERED_WAIT, CONNECTIONS_GO_ON, ...this.unlisted.limitations];
  }

  prepare(): void {
    // Listing needs the plan, which determines the texts to read.
  }

  end(): void {
    // One stream is soon sent.
  }

  /** Brings what is desired up to date with the table. */
  desire(table: FamilyTable, change: TableChange): void {
    if (this.desired === null) {
      this.desired = this.follow(table);
      this.update(this.desired, everything(table));
      return;
    }
    const { view, writer } = this.desired;
    writer.takeSent();
    view.follow(table);
    view.forget(change.frontends);
    this.update(this.desired, change);
  }

  release(): void {
    this.update(this.plan, this.plan.view.release());
  }

  *going(): IterableIterator<FrontendKey> {
    yield* this.unplanned;
    this.unplanned = [];
    const { view } = this.plan;
    const { ledger } = this.groups;
    for (const hash of ledger.pending())
      for (const { key } of ledger.acknowledged.get(hash)?.frontends ?? [])
        if (view.frontend(key) === undefined) yield key;
  }

  isUntouched(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async list({ table, isFirst }: SyncScope): Promise<Chains> {
    const since = await this.options.traces.mark();
    const chains = await this.listChains(isFirst ? textsToRead(table) : []);
    const countsPackets = await this.options.counters.prepare(this.family, chains, this.programs);
    const retries = await this.preparePolicies(table, chains);
    const settings = { ...(await this.options.settings()), countsPackets, retries };
    if (JSON.stringify(settings) !== JSON.stringify(this.settings)) this.plan.ruleset.touchAll();
    this.settings = settings;
    this.followsIpvs = await this.findsIpvs(chains, isFirst);
    this.known = since;
    return chains;
  }

  /** Whether rules name timeout policies, which are there from now on. */
  private async preparePolicies({ node }: Pick<FamilyTable, 'node'>, chains: Chains): Promise<boolean> {
    const { policies } = this.options;
    const isWanted = hasRetries(node, this.plan.view.frontends());
    this.laterDecider = isWanted ? await this.options.decidesLater() : null;
    const names = this.policyNames(this.plan.view.frontends());
    this.policyLosses = [];
    if (!isWanted && !chains.some(({ table, name }) => table === 'raw' && isOwnChain(table, name))) return false;
    const losses = await policies.prepare(names, chains, this.programs);
    this.policyLosses = losses ?? [];
    return isWanted && losses !== null && this.laterDecider === null;
  }

  /** Policies that rules of these frontends name. */
  private policyNames(frontends: Iterable<FrontendPlan>): ReadonlySet<string> {
    const { retryTimes } = this.plan.view.node;
    const names = new Set<string>();
    if (this.laterDecider !== null) return names;
    for (const frontend of frontends) {
      const name = policyOf(frontend, retryTimes);
      if (name !== null) names.add(name);
    }
    return names;
  }

  /** A change under way when its answer was lost is not reported as lost. */
  losses(listing: Chains): readonly string[] {
    const { acknowledged, unknown } = this.chains;
    const hooks = wantedHooks(false, this.hooksRetries);
    const jumps = hookRepairs(listing, hooks).filter(({ verb }) => verb !== 'delete');
    return [
      ...differences(acknowledged, listedStates(listing, isOwnChain), (id) => !unknown.has(id)),
      ...jumps.map(
        ({ verb, table, chain, text }) =>
          `rule of ${table} ${chain} was missing${verb === 'append' ? ' or not last' : ''}: ${text}`,
      ),
      ...this.policyLosses,
    ];
  }

  readBack(listing: Chains, { table, isFirst, keeps }: SyncScope): boolean {
    const { view, groups } = this.plan;
    const listed = listedStates(listing, isOwnChain);
    this.unlisted.note(listing);
    groups.noteDamage(listed);
    this.chains.readBackAll(listed);
    if (isFirst) this.takeOver(listing, keeps);
    groups.hideDamaged();
    this.jumps = hookOperations(listing, table.node, this.settings);
    return keeps && view.isAdopting;
  }

  async deliver({ table, change, full, isFirst }: SyncScope): Promise<Delivered | null> {
    this.lacking = null;
    // Others use the guard too, so it is not among our chains.
    const lacksGuard = table.node.nodePortsOnLoopback && !this.guardsLoopback;
    if (!full && (lacksGuard || (await this.lacksRetries(table, change)))) return null;
    const { writer, groups } = this.plan;
    const jumps = full ? this.jumps : [];
    const refused = await groups.bringPending(!full, jumps);
    // Others may have removed chains that the stream refers to.
    if (refused !== null && !full) return null;
    if (refused?.table === 'raw') {
      // Forwarding does not depend on it: everything is written once more without.
      this.options.policies.giveUp(`table raw is refused: ${messageOf(refused.error)}`);
      return null;
    }
    if (refused !== null) await this.blame(refused, jumps, isFirst);
    await groups.restore();
    const released = await groups.bringDue();
    if (full) {
      this.guardsLoopback = table.node.nodePortsOnLoopback;
      this.hooksRetries = this.settings.retries;
    }
    this.followsIpvs = false;
    const { rules, ...sent } = writer.takeSent();
    this.written = rules;
    return { sent: { ...sent, elementOperations: 0 }, released: [...released] };
  }

  /** Makes the timeout policies that a change calls for. Answers whether rules do not name any yet and should. */
  private async lacksRetries({ node }: FamilyTable, change: TableChange): Promise<boolean> {
    const { policies } = this.options;
    if (this.lacksTimeouts) return false;
    const { view } = this.plan;
    const changed = change.node
      ? [...view.frontends()]
      : [...change.frontends].flatMap((key) => view.frontend(key) ?? []);
    if (!this.settings.retries) return hasRetries(node, changed);
    await policies.add(this.policyNames(changed));
    return false;
  }

  async tidy({ full }: SyncScope, { released }: Delivered): Promise<Tidied> {
    const isDue = full || (released?.length ?? 0) > 0;
    const problems = isDue ? await this.plan.writer.tidyUp() : [];
    this.leavesChains = problems.length > 0 || (this.leavesChains && !full);
    // Rules that named them are gone by now.
    if (full) await this.options.policies.removeOthers(this.policyNames(this.plan.view.frontends()));
    return { problems, rules: { written: { ...this.written }, held: { ...this.chains.held } } };
  }

  private async blame(refused: RefusedStream, jumps: readonly IptablesOperation[], isFirst: boolean): Promise<void> {
    if (isFirst) await this.readHeld();
    await this.plan.groups.blame(refused, jumps);
  }

  /** Reads back whole what a predecessor left of the groups that are pending: it stays of those that are refused. */
  private async readHeld(): Promise<void> {
    const { ledger } = this.groups;
    const { frontends } = readBack(this.family, await this.listChains(['KUBE-']), this.plan.view.node);
    const held = groupsOf(frontends.values(), this.plan.view.node);
    for (const hash of [...ledger.pending()]) ledger.readBack(hash, held.get(hash));
  }

  /** Large rulesets take seconds to list, so they are listed for a share of the time, and only when traces call for it. */
  async compare(table: FamilyTable, quiet: WaitForQuiet): Promise<boolean> {
    const { policies, traces, counters } = this.options;
    if ((await policies.differ()) || (await this.differsInSettings())) return true;
    const isUncertain = !traces.isComplete || counters.isUnknown(this.family) || this.leavesChains;
    if (!isUncertain && !(await this.known?.isTouched())) return false;
    if (!(await this.tables.isListingDue(CHAIN.canary))) return false;
    return await undisturbed(quiet, () => this.differs(table));
  }

  /** Compares everything if the traces show an external change: they do not show whether our rules are affected. */
  async probe(quiet: WaitForQuiet): Promise<boolean> {
    if (!(await this.known?.isTouched())) return false;
    return await undisturbed(quiet, () => this.differs(this.plan.view));
  }

  private async differs({ node }: Pick<FamilyTable, 'node'>): Promise<boolean> {
    const since = await this.options.traces.mark();
    const differs = await this.anyDiffers(node);
    if (!differs) this.known = since;
    return differs;
  }

  private async differsInSettings(): Promise<boolean> {
    const { dropInvalid } = await this.options.settings();
    return dropInvalid !== this.settings.dropInvalid;
  }

  private async anyDiffers(node: NodePlan): Promise<boolean> {
    const listing = await this.listChains([]);
    if (this.unlisted.isNews || (await this.differsInSettings()) || this.losses(listing).length > 0) return true;
    if (hookOperations(listing, node, this.settings).length > 0) return true;
    const decider = hasRetries(node, this.plan.view.frontends()) ? await this.options.decidesLater() : null;
    if (decider !== this.laterDecider) return true;
    if (await this.options.counters.isPossibleAfterAll(this.family, listing, this.programs)) return true;
    const { acknowledged } = this.chains;
    return [...listedStates(listing, isOwnChain).keys()].some((id) => !acknowledged.has(id));
  }

  quarantined(): readonly QuarantinedFrontend[] {
    return this.plan.groups.quarantined();
  }

  async nodeFaults(): Promise<FoundFaults> {
    return { faults: faultsOf('iptables', await this.lackingParts()), explains: () => false };
  }

  private lackingParts(): Promise<readonly LackingPart[]> {
    const { family, flavor } = this.options;
    return (this.lacking ??= lackingParts({ addon: this.programs, family, flavor }, partsOf(family, true)));
  }

  /** Lists everything: the programs know no less. */
  async print({ node }: Pick<FamilyTable, 'node'>, scope: PacketScope | null): Promise<readonly string[]> {
    const { addon, settings } = this.options;
    const lines = await dumpRules(addon, this.family, await this.tables.peek(ASKED), node, await settings());
    return scope === null ? lines : withinScope(lines, this.family, scope);
  }

  async remembered(
    { frontend }: PacketScope,
    { source, seconds, servicePort, endpoints }: AffinityQuestion,
  ): Promise<Omit<Inspection, 'lines'>> {
    if (source === null) return { remembered: null };
    const { protocol } = parseFrontendKey(frontend);
    const lists = endpoints.map((endpoint) => clientList(servicePort, protocol, endpoint));
    const index = await this.options.addon.iptablesRemembering(lists, addressBytes(source), seconds);
    return { remembered: index === null ? null : (endpoints[index] ?? null) };
  }

  async refused(): Promise<readonly RefusedPackets[]> {
    // Loaded where it is used: it is a file of its own.
    const { rulesThatRefuse } = await import('./rule-refusals.js');
    this.refusals ??= rulesThatRefuse(this.options);
    return await this.refusals.read((frontend) => this.desired?.view.frontend(frontend) !== undefined);
  }

  unremembered(): Promise<null> {
    return Promise.resolve(null);
  }

  private get plan(): Pipeline {
    if (this.desired === null) throw new Error('nothing is planned yet');
    return this.desired;
  }

  private follow(table: FamilyTable): Pipeline {
    const view = new AdoptedTable(table);
    const ruleset = new Ruleset(view, () => this.settings);
    const { tables, chains } = this;
    const { addon } = this.options;
    const writer = new ChainWriter({ addon, tables, ruleset, chains, followsIpvs: () => this.followsIpvs });
    const lacking = (): Promise<readonly LackingPart[]> => this.lackingParts();
    return {
      view,
      ruleset,
      writer,
      groups: new GroupWriter({ groups: this.groups, ruleset, chains, writer, lacking }),
    };
  }

  private update({ view, ruleset, groups }: Pipeline, changes: Changes): void {
    groups.follow(this.groups.follow(view, changes));
    ruleset.update(changes);
  }

  /** Whether mode ipvs was in force before, in this flavour or another. The other is not read if nat translates already. */
  private async findsIpvs(listing: Chains, isFirst: boolean): Promise<boolean> {
    const hooks = PROXY_FIREWALL_HOOKS.ipvs;
    if (hookRemovals(listing, hooks).length > 0) return true;
    if (!isFirst || listing.some(({ table, name }) => table === 'nat' && name === CHAIN.services)) return false;
    const { addon, family, flavor } = this.options;
    return await inOtherFlavors(addon, family, flavor, hooks);
  }

  /** Takes over a predecessor's rules. */
  private takeOver(listing: Chains, keeps: boolean): void {
    const { view, ruleset } = this.plan;
    const held = readBack(this.family, listing, view.node);
    if (keeps) this.update(this.plan, view.adopt(held));
    ruleset.adoptRefusals(held.refusals);
    this.unplanned = [...held.frontends.keys()].filter((key) => view.frontend(key) === undefined);
  }

  private async listChains(textOf: readonly string[]): Promise<Chains> {
    return this.unlisted.believe(await this.tables.list([...OTHERS_CHAINS, ...textOf]), this.chains.acknowledged);
  }
}

/** The addon with its streams counted. */
function counted({ addon, traces }: IptablesOptions): TablesOptions['addon'] {
  return {
    iptablesList: (...asked) => addon.iptablesList(...asked),
    iptablesListingMs: () => addon.iptablesListingMs(),
    iptablesRestore: (transaction) => traces.count(changes(transaction), () => addon.iptablesRestore(transaction)),
  };
}

/**
 * How many tables a stream changes; null: uncertain. A table in which it only empties chains is not changed, and not counted by
 * nf_tables, if another program emptied them before. Each start writes the canary alone, which would call for a listing.
 */
function changes({ operations }: IptablesTransaction): number | null {
  const isCertain = (operation: IptablesOperation): boolean =>
    operation.type !== 'chain' || operation.rules.length > 0 || operation.chain === CHAIN.canary;
  const tables = (of: readonly IptablesOperation[]): number => new Set(of.map(({ table }) => table)).size;
  const count = tables(operations);
  return tables(operations.filter(isCertain)) === count ? count : null;
}

/** The chains whose rules themselves are needed at a start. */
function textsToRead({ unsynced }: FamilyTable): readonly string[] {
  return unsynced ? ['KUBE-'] : DISPATCH_PREFIXES;
}

function hookOperations(
  listing: Chains,
  node: NodePlan,
  { retries }: Pick<ModeSettings, 'retries'>,
): readonly IptablesOperation[] {
  const withFirewall = node.nodePortsOnLoopback;
  return [
    ...hookRepairs(listing, wantedHooks(withFirewall, retries)),
    ...(retries ? [] : hookRemovals(listing, RETRY_HOOKS)),
    ...hookRemovals(listing, PROXY_FIREWALL_HOOKS.ipvs),
    ...(withFirewall ? firewallOperations(listing) : []),
  ];
}

function decidedByOthers(table: string): Limitation {
  return {
    of: 'kernel',
    text: `connection attempts wait for an endpoint that does not answer: ${table} decides which packets are tracked, and how, after table raw`,
  };
}

const REMEMBERED_WAIT: Limitation = {
  of: 'mode',
  text: 'connection attempts to Services with session affinity wait for an endpoint that does not answer until it is removed: mode iptables remembers clients by their first packet',
};

/** Chains of others that are looked into. */
const OTHERS_CHAINS = [CHAIN.firewall, CHAIN.forward];
/** The chains that `dump` reads. */
const ASKED = [...OTHERS_CHAINS, 'KUBE-'];

/** The desired rules, and the writers that bring them to the kernel. */
interface Pipeline {
  readonly view: AdoptedTable;
  readonly ruleset: Ruleset;
  readonly writer: ChainWriter;
  readonly groups: GroupWriter;
}
