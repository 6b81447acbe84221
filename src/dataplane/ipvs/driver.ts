import type { Family, IPPrefix } from '../../base/ip.js';
import type { IptablesChainListing, IptablesFlavor, IptablesTransaction, NativeAddon } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../plan/types.js';
import type { AffinityQuestion, QuarantinedFrontend, Inspection, Limitation, RefusedPackets } from '../contract.js';
import type { Delivered, Driver, FoundFaults, SyncScope, Tidied, WaitForQuiet } from '../driver.js';
import { ATTEMPTS_NOT_COUNTED, attemptsWait, CONNECTIONS_GO_ON } from '../limitations.js';
import { undisturbed } from '../reconciler.js';
import { everything, type Changes } from '../table-view.js';
import { Comparison } from './comparison.js';
import { Desired, virtualOf } from './desired.js';
import { Drains } from './drains.js';
import { dumpKernel } from './dump.js';
import { HASHING_SCHEDULER, type Scheduling } from './frontends.js';
import { differences, keepHeld, Ledgers } from './ledgers.js';
import { list, type Listing, type Ownership } from './listing.js';
import { LINK, PEER_HAIRPIN, SET_PREFIXES, SET_ROLES, setName } from './names.js';
import type { IpvsMessage } from './print.js';
import { RefusalCounters } from './refusal-counters.js';
import { rememberedEndpoint } from './remembered.js';
import { RuleWriter } from './rule-writer.js';
import type { Refusals } from './set-refusals.js';
import { sync } from './sync.js';
import { nodeFaults } from './trial.js';
import type { Timeouts } from './timeouts.js';
import { nameService } from './wire.js';
import { Writer } from './writer.js';

interface IpvsOptions extends Scheduling {
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

/** One listing of what a family has in the kernel. */
export interface Look {
  readonly listing: Listing;
  readonly chains: readonly IptablesChainListing[];
}

/** A comparison that a sync disturbed is repeated so often. If syncs leave no time, the next audit has to find a difference. */
const ATTEMPTS = 3;

function withoutScheduler(scheduler: string): Limitation {
  const what = scheduler === HASHING_SCHEDULER ? 'hashing' : 'weights';
  return {
    of: 'mode',
    text: `Services that ask for ${what} get the default scheduler: this kernel has no ${scheduler}`,
  };
}

/** The ipvs mode of one family. The README of this folder explains what becomes of a packet. */
export class IpvsDriver implements Driver<Look> {
  readonly family: Family;
  private readonly ownLimitations: readonly Limitation[];
  readonly polls = 'everything';
  readonly replaces = false;
  readonly notes = null;
  readonly resets = null;
  private table: FamilyTable | null = null;
  /** The listing that the delivery under way starts from; null: the kernel is as it acknowledged. */
  private listed: Look | null = null;
  private readonly ledgers: Ledgers;
  private readonly desired: Desired;
  private readonly drains: Drains;
  private readonly rules: RuleWriter;
  private readonly ownership: Ownership;
  private readonly comparison: Comparison;
  private readonly counters: RefusalCounters;
  /** Null: they were not asked for yet. */
  private refusals: Refusals | null = null;
  /** Whether rules count what they refuse. */
  private isCounting = false;

  constructor(private readonly options: IpvsOptions) {
    const { family, addon, flavor, now, onRules, excluded } = options;
    this.family = family;
    const withoutThem = (options.lacking ?? []).map(withoutScheduler);
    const attempts = attemptsWait('mode ipvs cannot send them elsewhere');
    this.ownLimitations = [attempts, CONNECTIONS_GO_ON, ATTEMPTS_NOT_COUNTED, ...withoutThem];
    this.ledgers = new Ledgers(now);
    const { services } = this.ledgers;
    // An object that this process made, or may have made, is a proxy's, independent of what else has gone since.
    const isWanted = (key: FrontendKey): boolean =>
      this.table?.frontend(key) !== undefined || services.acknowledged.has(key) || services.unknown.has(key);
    this.ownership = { isWanted, excluded };
    this.desired = new Desired(() => this.plan, this.ledgers, options);
    this.drains = new Drains(family, this.ledgers, this.desired, now);
    this.counters = new RefusalCounters(options);
    const observer = onRules === undefined ? {} : { onTransaction: onRules };
    this.rules = new RuleWriter({ addon: addon.iptables, family, flavor, now, ...observer });
    const { ledgers, desired, rules, ownership } = this;
    this.comparison = new Comparison({ ...options, ledgers, desired, rules, ownership });
  }

  get limitations(): readonly Limitation[] {
    return [...this.ownLimitations, ...this.rules.limitations];
  }

  /** When it is to be looked whether connections have ended. */
  get dueAt(): number | null {
    return this.drains.dueAt;
  }

  prepare(): void {
    // The first listing needs the plan.
  }

  end(): void {
    // One call is soon done.
  }

  desire(table: FamilyTable, change: TableChange): void {
    const isFirst = this.table === null;
    this.table = table;
    this.desired.update(isFirst ? everything(table) : change, null);
  }

  release(): void {
    const { elements, addresses } = this.ledgers;
    const wanted = new Set<string>();
    for (const { role, key } of this.desired.elements()) wanted.add(role + key);
    for (const role of SET_ROLES)
      for (const key of elements[role].acknowledged.keys())
        if (!wanted.has(role + key)) elements[role].desire(key, undefined);
    for (const address of addresses.acknowledged.keys()) this.desired.desireAddress(address);
    this.desired.repeat();
  }

  /** No virtual service of UDP or SCTP waits for the end of its connections: the next delivery removes all unwanted ones. */
  *going(): IterableIterator<FrontendKey> {
    const { services } = this.ledgers;
    const { closing, ownAddresses } = this.desired;
    for (const key of new Set([...closing, ...services.pending()])) {
      if (!closing.has(key) && services.desired(key) !== undefined) continue;
      yield key;
      const { address, port, protocol } = virtualOf(key);
      if (ownAddresses.has(address)) yield frontendKey(null, port, protocol);
    }
  }

  isUntouched(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async list(): Promise<Look> {
    const { addon, family } = this.options;
    const [listing, chains] = await Promise.all([list(addon, family, this.ownership), this.rules.list(['KUBE-'])]);
    return { listing, chains };
  }

  losses({ listing, chains }: Look): readonly string[] {
    const sets = listing.missingSets.map((role) => `set ${setName(this.family, role)} was missing`);
    const link = listing.hasLink ? [] : [`link ${LINK} was missing`];
    return [...link, ...sets, ...differences(this.family, this.ledgers, listing.held), ...this.rules.repairs(chains)];
  }

  readBack(look: Look, { keeps }: SyncScope): boolean {
    const { held, own } = look.listing;
    this.listed = look;
    this.ledgers.readBack(held);
    this.desired.update(NO_CHANGES, own);
    this.desired.repeat();
    if (keeps) this.keep();
    return keeps;
  }

  private keep(): void {
    const { services, destinations, addresses, elements } = this.ledgers;
    this.desired.closing.clear();
    for (const role of SET_ROLES) keepHeld(elements[role]);
    keepHeld(addresses);
    keepHeld(services);
    keepHeld(destinations);
  }

  async deliver({ table, isFirst }: SyncScope): Promise<Delivered> {
    const look = this.listed;
    this.listed = null;
    await this.finishDrains(look?.listing ?? null);
    const { addon, family, countsRefused, onMessage = () => undefined } = this.options;
    const { ledgers, rules, counters } = this;
    const writer = new Writer({ addon, family, ledgers, onMessage });
    const before = { rules: rules.rules, bytes: rules.bytes };
    if (look !== null) this.isCounting = countsRefused && (await counters.prepare());
    const restricted = this.desired.restricted.values();
    const plan = await rules.plan(table.node, restricted, this.isCounting, look?.chains ?? null);
    if (look !== null) {
      const { missingSets, wrongSets, hasLink } = look.listing;
      await writer.makeSets(missingSets, wrongSets);
      if (!hasLink) await writer.makeLink();
    }
    const drained = [...ledgers.destinations.pending()];
    await sync(family, ledgers, writer, {
      first: () => rules.send(plan.first),
      last: () => rules.send(plan.last),
    });
    if (look !== null) {
      await rules.send(plan.stale);
      const superfluous = countsRefused || !isFirst ? [] : await counters.names();
      for (const name of [SET_PREFIXES[family] + PEER_HAIRPIN, ...superfluous]) await writer.removeSet(name);
    }
    writer.finish();
    rules.acknowledge(plan);
    this.drains.note(drained);
    const { transactions, objects, bytes } = writer.sent;
    const written = { rules: rules.rules - before.rules, bytes: rules.bytes - before.bytes };
    return {
      sent: {
        transactions: transactions + (written.rules > 0 || written.bytes > 0 ? 1 : 0),
        elementOperations: objects,
        ruleOperations: written.rules,
        bytes: bytes + written.bytes,
      },
    };
  }

  /** Looks which of the connections have ended that virtual services and destinations wait for. */
  private async finishDrains(listing: Listing | null): Promise<void> {
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

  async tidy({ full }: SyncScope): Promise<Tidied> {
    return (full ? await this.options.timeouts?.keep() : undefined) ?? { problems: [] };
  }

  compare(_: FamilyTable, quiet: WaitForQuiet): Promise<boolean> {
    return this.anyDiffers(quiet, this.comparison.everything());
  }

  /** Virtual services, sizes of sets, and rules. */
  probe(quiet: WaitForQuiet): Promise<boolean> {
    return this.anyDiffers(quiet, this.comparison.little());
  }

  /** Whether addresses are others than they were: those of the mode's link, or those that the node has anyway. */
  addressesDiffer(quiet: WaitForQuiet): Promise<boolean> {
    return this.anyDiffers(quiet, [() => this.comparison.addresses()]);
  }

  private async anyDiffers(quiet: WaitForQuiet, comparisons: Iterable<() => Promise<boolean>>): Promise<boolean> {
    for (const compare of comparisons) if (await undisturbed(quiet, compare, ATTEMPTS)) return true;
    return false;
  }

  async print({ node }: Pick<FamilyTable, 'node'>, scope: PacketScope | null): Promise<readonly string[]> {
    const { addon, family } = this.options;
    const { listing, chains } = await this.list();
    const lines = await dumpKernel({ addon: addon.iptables, family, listing, chains, node });
    return scope === null ? lines : withinScope(lines, family, scope);
  }

  remembered(scope: PacketScope, affinity: AffinityQuestion): Promise<Omit<Inspection, 'lines'>> {
    return rememberedEndpoint(this.options.addon.ipvs, scope, affinity);
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

  nodeFaults(): Promise<FoundFaults> {
    const { addon, family, scheduler } = this.options;
    return nodeFaults(addon, family, scheduler);
  }

  quarantined(): readonly QuarantinedFrontend[] {
    const { services, destinations: held, addresses, elements } = this.ledgers;
    const found = new Map<FrontendKey, QuarantinedFrontend>();
    const add = (frontend: FrontendKey | undefined, quarantined: Omit<QuarantinedFrontend, 'frontend'>): void => {
      if (frontend !== undefined && !found.has(frontend)) found.set(frontend, { frontend, ...quarantined });
    };
    for (const ledger of [services, held])
      for (const [key, { reason, since, retryAt }] of ledger.quarantined)
        add(this.desired.frontendOf(key) ?? key, { reason, since, retryAt });
    // Seldom anything is, and looking for whose it is walks all frontends.
    if (addresses.quarantined.size + SET_ROLES.reduce((sum, role) => sum + elements[role].quarantined.size, 0) === 0)
      return [...found.values()];
    for (const { frontend, address, elements: needed } of this.desired.needs()) {
      const quarantines = needed.flatMap(({ role, key }) => elements[role].quarantined.get(key) ?? []);
      const quarantined = quarantines[0] ?? (address === null ? undefined : addresses.quarantined.get(address));
      if (quarantined !== undefined)
        add(frontend, { reason: quarantined.reason, since: quarantined.since, retryAt: quarantined.retryAt });
    }
    return [...found.values()];
  }
}

const NO_CHANGES: Changes = {
  frontends: new Set(),
  hairpinAddresses: new Set(),
  healthChecks: false,
  node: false,
};
