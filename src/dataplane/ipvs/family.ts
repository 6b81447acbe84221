import type { Family, IPPrefix } from '../../base/ip.js';
import { attemptsWait } from '../limitations.js';
import type { IptablesChainListing, IptablesFlavor, IptablesTransaction, NativeAddon } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import type {
  AffinityQuestion,
  AsideFrontend,
  FamilyDataplane,
  Inspection,
  RefusedPackets,
  SyncReport,
} from '../contract.js';
import { Calls } from '../calls.js';
import { everything, type Changes } from '../table-view.js';
import { Comparison } from './comparison.js';
import { Desired, virtualOf } from './desired.js';
import { Drains } from './drains.js';
import { dumpKernel } from './dump.js';
import type { Scheduling } from './frontends.js';
import { differences, keepHeld, Ledgers } from './ledgers.js';
import { list, type Listing, type Ownership } from './listing.js';
import { LINK, PEER_HAIRPIN, SET_PREFIXES, SET_ROLES, setName } from './names.js';
import type { IpvsMessage } from './print.js';
import { RefusalCounters } from './refusal-counters.js';
import type { Refusals } from './set-refusals.js';
import { rememberedEndpoint } from './remembered.js';
import { RuleWriter } from './rule-writer.js';
import { sync } from './sync.js';
import type { Timeouts } from './timeouts.js';
import { nameService } from './wire.js';
import { Writer } from './writer.js';

export interface IpvsFamilyOptions extends Scheduling {
  readonly addon: NativeAddon;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
  /** Virtual services that are left alone unless a Service has them. */
  readonly excluded: readonly IPPrefix[];
  /** Null: another family sees to them. */
  readonly timeouts: Timeouts | null;
  /** Whether packets that are refused or dropped are to be counted by frontend. */
  readonly countsRefused: boolean;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  readonly onRules?: (transaction: IptablesTransaction) => void;
  readonly onMessage?: (message: IpvsMessage) => void;
}

/** One look at the kernel. */
interface Look {
  readonly listing: Listing;
  readonly chains: readonly IptablesChainListing[];
}

const ATTEMPTS_WAIT = attemptsWait('mode ipvs cannot send them elsewhere');

/** The ipvs mode of one family. The README of this folder says what becomes of a packet, and why. */
export class IpvsFamily implements FamilyDataplane {
  readonly family: Family;
  readonly polls = true;
  readonly resets = null;
  private table: FamilyTable | null = null;
  /** Whether the ledgers are what the kernel holds. */
  private isKnown = false;
  private compared = false;
  /** Whether something stays that the plan does not name, because it may yet. */
  private keeps = false;
  private readonly gone = new Set<FrontendKey>();
  private readonly ledgers: Ledgers;
  private readonly desired: Desired;
  private readonly drains: Drains;
  private readonly rules: RuleWriter;
  private readonly ownership: Ownership;
  private readonly comparison: Comparison;
  private readonly calls = new Calls();
  private readonly counters: RefusalCounters;
  /** Null: nobody has asked. */
  private refusals: Refusals | null = null;
  /** Whether rules count what they refuse. */
  private isCounting = false;

  constructor(private readonly options: IpvsFamilyOptions) {
    const { family, addon, flavor, now, onRules, excluded } = options;
    this.family = family;
    this.ledgers = new Ledgers(now);
    const { services } = this.ledgers;
    // What this process made, or may have made, is a proxy's, whatever else has gone since.
    const isWanted = (key: FrontendKey): boolean =>
      this.table?.frontend(key) !== undefined || services.acknowledged.has(key) || services.unknown.has(key);
    this.ownership = { isWanted, excluded };
    this.desired = new Desired(() => this.plan, this.ledgers, options);
    this.drains = new Drains(family, this.ledgers, this.desired, now);
    this.counters = new RefusalCounters(options);
    const hear = onRules === undefined ? {} : { onTransaction: onRules };
    this.rules = new RuleWriter({ addon: addon.iptables, family, flavor, now, ...hear });
    const { ledgers, desired, rules, ownership } = this;
    this.comparison = new Comparison({
      ...options,
      ...{ ledgers, desired, rules, ownership },
      quiet: () => this.quiet(),
      isQuiet: (since) => this.calls.isQuiet(since),
    });
  }

  prepare(): void {
    // The first listing needs the plan.
  }

  end(): void {
    // One call is soon done.
  }

  apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    return this.calls.change(() => this.sync(table, change, options));
  }

  probe(): Promise<boolean> {
    return this.comparison.glance();
  }

  audit(): Promise<boolean> {
    return this.comparison.whole();
  }

  /** Whether addresses are others than they were: those of the mode's link, or those that the node has anyway. */
  addressesDiffer(): Promise<boolean> {
    return this.comparison.addresses();
  }

  private async sync(
    table: FamilyTable,
    change: TableChange,
    options: { readonly full: boolean },
  ): Promise<SyncReport> {
    this.follow(table, change);
    const full = options.full || !this.isKnown;
    this.isKnown = false;
    const look = full ? await this.look() : null;
    const repairs = look === null || !this.compared ? [] : this.repairs(look);
    if (look !== null) this.takeOver(look.listing, table.gaps);
    if (!table.gaps && this.keeps) this.release();
    await this.settleDrains(look?.listing ?? null);
    const { sent, rules } = await this.send(table.node, look);
    const timeouts = full ? await this.options.timeouts?.keep() : undefined;
    this.isKnown = true;
    this.compared = true;
    const flows = full || change.node ? 'all' : new Set([...change.frontends].filter((key) => !key.endsWith('/TCP')));
    return {
      ...{ family: this.family, full, flows, rules: null, setAside: this.setAside() },
      limitations: [ATTEMPTS_WAIT],
      repairs: [...repairs, ...(timeouts?.repairs ?? [])],
      problems: timeouts?.problems ?? [],
      transactions: sent.transactions,
      elementOperations: sent.objects,
      ruleOperations: rules.rules,
      bytes: sent.bytes + rules.bytes,
      ...(this.drains.dueAt === null ? {} : { dueAt: this.drains.dueAt }),
    };
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.gone;
  }

  clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    for (const key of keys) this.gone.delete(key);
    return Promise.resolve();
  }

  async dump({ node }: Pick<FamilyTable, 'node'>): Promise<readonly string[]> {
    const { addon, family } = this.options;
    const { listing, chains } = await this.look();
    return dumpKernel({ addon: addon.iptables, family, listing, chains, node });
  }

  async inspect(
    table: Pick<FamilyTable, 'node'>,
    scope: PacketScope,
    affinity: AffinityQuestion | null,
  ): Promise<Inspection> {
    const lines = withinScope(await this.dump(table), this.family, scope);
    return { lines, ...(await rememberedEndpoint(this.options.addon.ipvs, scope, affinity)) };
  }

  async refused(): Promise<readonly RefusedPackets[]> {
    const { desired } = this;
    // Loaded where it is used: it is a file of its own.
    const { Refusals } = await import('./set-refusals.js');
    this.refusals ??= new Refusals(this.options);
    return await this.refusals.read((key) => desired.frontendOf(key), desired.restricted.size > 0);
  }

  unremembered(): Promise<null> {
    return Promise.resolve(null);
  }

  private get plan(): FamilyTable {
    if (this.table === null) throw new Error('nothing is planned yet');
    return this.table;
  }

  private follow(table: FamilyTable, change: Changes): void {
    const isFirst = this.table === null;
    this.table = table;
    for (const key of change.frontends) if (table.frontend(key) !== undefined) this.gone.delete(key);
    this.desired.update(isFirst ? everything(table) : change, null);
  }

  /** Waits until nothing changes the kernel. Answers a mark of that moment; null when it is not known what the kernel holds. */
  private async quiet(): Promise<number | null> {
    const mark = await this.calls.quiet();
    return this.isKnown ? mark : null;
  }

  private async look(): Promise<Look> {
    const { addon, family } = this.options;
    const [listing, chains] = await Promise.all([list(addon, family, this.ownership), this.rules.list(['KUBE-'])]);
    return { listing, chains };
  }

  private repairs({ listing, chains }: Look): readonly string[] {
    const sets = listing.missingSets.map((role) => `set ${setName(this.family, role)} was missing`);
    const link = listing.hasLink ? [] : [`link ${LINK} was missing`];
    return [...link, ...sets, ...differences(this.family, this.ledgers, listing.held), ...this.rules.repairs(chains)];
  }

  /** What was listed is what the kernel holds; what of it the plan does not name is to go, or stays while the plan has gaps. */
  private takeOver({ held, own }: Listing, gaps: boolean): void {
    this.ledgers.readBack(held);
    this.desired.update(NO_CHANGES, own);
    this.desired.repeat();
    if (gaps) this.keep();
  }

  private keep(): void {
    const { services, destinations: held, addresses, elements } = this.ledgers;
    this.keeps = true;
    this.desired.closing.clear();
    for (const role of SET_ROLES) keepHeld(elements[role]);
    keepHeld(addresses);
    keepHeld(services);
    keepHeld(held);
  }

  /** Lets go of what was kept. */
  private release(): void {
    this.keeps = false;
    const { elements, addresses } = this.ledgers;
    const wanted = new Set<string>();
    for (const { role, key } of this.desired.elements()) wanted.add(role + key);
    for (const role of SET_ROLES)
      for (const key of elements[role].acknowledged.keys())
        if (!wanted.has(role + key)) elements[role].desire(key, undefined);
    for (const address of addresses.acknowledged.keys()) this.desired.desireAddress(address);
    this.desired.repeat();
  }

  private async settleDrains(listing: Listing | null): Promise<void> {
    const { addon } = this.options;
    if (listing !== null) this.drains.note(this.ledgers.destinations.acknowledged.keys());
    const keys = this.drains.questions(listing !== null);
    const answers = new Map(listing?.destinations);
    const unknown = keys.filter((key) => !answers.has(key));
    const found =
      unknown.length === 0 ? [] : await addon.ipvs.ipvsDestinations(unknown.map((key) => nameService(virtualOf(key))));
    for (const [index, key] of unknown.entries()) {
      const answer = found[index];
      if (answer !== undefined) answers.set(key, answer);
    }
    this.drains.answer(answers);
  }

  private async send(node: NodePlan, look: Look | null): Promise<{ sent: Writer['sent']; rules: Written }> {
    const writer = this.writer();
    const { rules: before, bytes } = this.rules;
    const { countsRefused } = this.options;
    if (look !== null) this.isCounting = countsRefused && (await this.counters.prepare());
    const restricted = this.desired.restricted.values();
    const plan = await this.rules.plan(node, restricted, this.isCounting, look?.chains ?? null);
    if (look !== null) {
      const { missingSets, wrongSets, hasLink } = look.listing;
      await writer.makeSets(missingSets, wrongSets);
      if (!hasLink) await writer.makeLink();
    }
    const drained = [...this.ledgers.destinations.owed()];
    this.noteGone();
    await sync(this.family, this.ledgers, writer, {
      first: () => this.rules.send(plan.first),
      last: () => this.rules.send(plan.last),
    });
    if (look !== null) {
      await this.rules.send(plan.stale);
      const superfluous = countsRefused || this.compared ? [] : await this.counters.names();
      for (const name of [SET_PREFIXES[this.family] + PEER_HAIRPIN, ...superfluous]) await writer.removeSet(name);
    }
    writer.settle();
    this.rules.acknowledge(plan);
    this.drains.note(drained);
    const written = { rules: this.rules.rules - before, bytes: this.rules.bytes - bytes };
    const transactions = writer.sent.transactions + (written.rules > 0 || written.bytes > 0 ? 1 : 0);
    return { sent: { ...writer.sent, transactions }, rules: written };
  }

  /** Frontends of UDP and SCTP that are about to go: what they leave in conntrack is stale. */
  private noteGone(): void {
    const { services } = this.ledgers;
    for (const key of services.owed()) {
      if (services.desired(key) !== undefined || key.endsWith('/TCP')) continue;
      const { address, port, protocol } = virtualOf(key);
      const frontends = this.desired.ownAddresses.has(address) ? [key, frontendKey(null, port, protocol)] : [key];
      for (const each of frontends) if (this.plan.frontend(each) === undefined) this.gone.add(each);
    }
  }

  private setAside(): readonly AsideFrontend[] {
    const { services, destinations: held, addresses, elements } = this.ledgers;
    const found = new Map<FrontendKey, AsideFrontend>();
    const add = (frontend: FrontendKey | undefined, aside: Omit<AsideFrontend, 'frontend'>): void => {
      if (frontend !== undefined && !found.has(frontend)) found.set(frontend, { frontend, ...aside });
    };
    for (const ledger of [services, held])
      for (const [key, { reason, since, retryAt }] of ledger.aside)
        add(this.desired.frontendOf(key) ?? key, { reason, since, retryAt });
    // Seldom anything is, and looking for whose it is walks all frontends.
    if (addresses.aside.size + SET_ROLES.reduce((sum, role) => sum + elements[role].aside.size, 0) === 0)
      return [...found.values()];
    for (const { frontend, address, elements: needed } of this.desired.needs()) {
      const asides = needed.flatMap(({ role, key }) => elements[role].aside.get(key) ?? []);
      const aside = asides[0] ?? (address === null ? undefined : addresses.aside.get(address));
      if (aside !== undefined) add(frontend, { reason: aside.reason, since: aside.since, retryAt: aside.retryAt });
    }
    return [...found.values()];
  }

  private writer(): Writer {
    const { addon, family, onMessage = () => undefined } = this.options;
    return new Writer({ addon, family, ledgers: this.ledgers, onMessage });
  }
}

type Written = Pick<RuleWriter, 'rules' | 'bytes'>;

const NO_CHANGES: Changes = {
  frontends: new Set(),
  hairpinAddresses: new Set(),
  healthChecks: false,
  node: false,
};
