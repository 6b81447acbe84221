import { BUILT_IN_TIMEOUTS, type ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftTableListing, NftTransaction } from '../../native/contract.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../plan/types.js';
import type {
  AffinityQuestion,
  QuarantinedFrontend,
  ConnectionResets,
  Inspection,
  Limitation,
  RefusedPackets,
  UnrememberedClients,
} from '../contract.js';
import {
  NOTHING_SENT,
  type Delivered,
  type Driver,
  type FlowNotes,
  type FoundFaults,
  type SyncScope,
  type Tidied,
  type WaitForQuiet,
} from '../driver.js';
import { Reconciler } from '../reconciler.js';
import { RememberedClients } from './affinity/remembered-clients.js';
import { unrememberedClients } from './affinity/unremembered-clients.js';
import { Audit } from './audit.js';
import { connectionResets } from './connection-resets.js';
import { Delivery, sum } from './delivery.js';
import { differences } from './differences.js';
import { dumpTable } from './dump.js';
import { Generation } from '../generation.js';
import { inspectTable, inspectedSets, rememberedEndpoint } from './inspect.js';
import { addTable } from './json.js';
import { readListing, type ListedTable } from './listing.js';
import { Listings } from './listings.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { refusedPackets } from './refused-packets.js';
import { isTimeoutUsed } from './retry.js';
import { Structure } from './structure.js';
import { Sender } from './sender.js';
import { noKeys, TableLedger, type TableKeys } from './table-ledger.js';
import { hasTimeouts, NO_TIMEOUT_OBJECTS, TimeoutSupport } from './timeout-support.js';
import { Unneeded } from './unneeded.js';

/** So many chains and sets one sync of a change removes. */
const MOST_REMOVED = 512;

type Addon = Pick<
  NftablesAddon,
  'nftCompile' | 'nftTransact' | 'nftList' | 'nftElements' | 'nftGeneration' | 'nftMaxBatch'
>;

/** A family in mode nftables at work. */
export function nftablesDataplane(
  addon: Addon,
  family: Family,
  generation: Generation = new Generation(addon),
  onTransaction: (transaction: NftTransaction) => void = () => undefined,
  now = (): number => performance.now(),
  countsRefused = false,
  conntrackTimeouts = (): ConntrackTimeouts => BUILT_IN_TIMEOUTS,
): Reconciler<ListedTable> {
  const counts = countsRefused;
  return new Reconciler(
    new NftablesDriver(addon, family, generation, onTransaction, now, counts, conntrackTimeouts),
    now,
  );
}

/** The nftables mode of one family. The README of this folder explains the table. */
class NftablesDriver implements Driver<ListedTable> {
  readonly polls = null;
  readonly replaces = false;
  readonly notes: FlowNotes;
  readonly resets: ConnectionResets;
  private readonly structure: Structure;
  private readonly ledger: TableLedger;
  private readonly clients: RememberedClients;
  private readonly delivery: Delivery;
  private readonly listings: Listings;
  private readonly unneeded: Unneeded;
  private readonly timeouts: TimeoutSupport;
  private audited: Audit | null = null;
  private knownMaxBatch: number | null = null;
  /** Pending before the change, and what the change concerns. */
  private pending: TableKeys = noKeys();
  /** Frontends that the next delivery has to look at. */
  private looked: Iterable<FrontendKey> = [];
  /** They are not of a change alone. */
  private looksAtAll = false;
  /** Chains are not as they should be, and no ledger shows it: the next check compares everything, and so tries them again. */
  private chainsRefused = false;

  constructor(
    private readonly addon: Addon,
    readonly family: Family,
    generation: Generation,
    onTransaction: (transaction: NftTransaction) => void,
    now: () => number,
    private readonly countsRefused: boolean,
    conntrackTimeouts: () => ConntrackTimeouts,
  ) {
    this.structure = new Structure(addon, family, countsRefused);
    this.ledger = new TableLedger(now, (name) => this.structure.isStatic(name));
    this.ledger.markAllUnknown();
    this.timeouts = new TimeoutSupport(addon, family, conntrackTimeouts);
    const counted = {
      nftElements: (...parameters: Parameters<Addon['nftElements']>) => addon.nftElements(...parameters),
      nftTransact: (transaction: NftTransaction) => {
        onTransaction(transaction);
        return generation.count(() => addon.nftTransact(transaction));
      },
    };
    this.resets = connectionResets(counted, family);
    this.listings = new Listings(addon, family, generation, now);
    const onFailure = (): void => {
      // The full sync that makes up for it really looks.
      this.listings.distrust();
    };
    this.clients = new RememberedClients(counted, family, onFailure, now);
    const onKeys = (keys: TableKeys): void => this.audited?.touched(keys);
    const sender = new Sender(counted, family, this.ledger, onKeys);
    const { structure, ledger, clients, listings } = this;
    const maxBatch = (): number => this.maxBatch();
    const readBack = async (): Promise<void> => {
      ledger.readBack(await listings.read());
    };
    const probe = (): Promise<unknown> => this.addTable();
    this.delivery = new Delivery({ family, structure, ledger, clients, sender, maxBatch, probe, readBack });
    this.unneeded = new Unneeded({ family, structure, ledger, clients, sender, listings, onKeys });
    this.notes = {
      // The flows of quarantined frontends are gone.
      keys: () => [...ledger.held.staleFlows.keys()].filter((key) => !ledger.staleFlows.quarantined.has(key)),
      remove: (keys, compared) => this.delivery.forgetFlows(keys, compared),
    };
  }

  get lacksTimeouts(): boolean {
    return this.timeouts.isLacking;
  }

  get limitations(): readonly Limitation[] {
    return this.timeouts.isLacking ? [NO_TIMEOUT_OBJECTS] : [];
  }

  get dueAt(): number | null {
    return this.ledger.uses.dueAt;
  }

  /** Lists the table that the last process left while the sources are still being read. */
  prepare(): void {
    this.listings.prepare();
  }

  end(): void {
    // One transaction is soon sent.
  }

  desire(table: FamilyTable, change: TableChange): void {
    const { ledger } = this;
    ledger.noteRemoved(table, change);
    this.pending = ledger.pending(change);
    ledger.lookAtChange(table, change);
    this.looked = this.pending.frontends;
    this.looksAtAll = false;
  }

  release(table: FamilyTable): void {
    this.looked = this.ledger.lookAtEverything(table, this.pending, false).frontends;
    this.looksAtAll = true;
  }

  /** The kernel notes them. */
  going(): readonly FrontendKey[] {
    return [];
  }

  isUntouched(): Promise<boolean> {
    return this.listings.isUntouched();
  }

  list(): Promise<ListedTable> {
    return this.listings.read();
  }

  /** After a failure the change under way may or may not have arrived. It is not reported as lost, nor are additional objects. */
  losses(listed: ListedTable): readonly string[] {
    const { held, allUnknown, frontends, clusterAddresses, hairpinAddresses, chains, sets, objects } = this.ledger;
    if (allUnknown) return [];
    return differences(held, listed, {
      frontends: frontends.unknown,
      clusterAddresses: clusterAddresses.unknown,
      hairpinAddresses: hairpinAddresses.unknown,
      structure: (name) => [chains, sets, objects].some(({ unknown }) => unknown.has(name)),
    });
  }

  readBack(listed: ListedTable, { table, keeps }: SyncScope): boolean {
    const { ledger } = this;
    ledger.readBack(listed);
    const { frontends, leftAlone } = ledger.lookAtEverything(table, this.pending, keeps);
    this.looked = frontends;
    this.looksAtAll = true;
    return leftAlone;
  }

  async deliver({ table, change, full }: SyncScope): Promise<Delivered> {
    const { ledger, delivery, clients } = this;
    // Most changes are of one family and come to both.
    if (!this.looksAtAll && isEmpty(change) && ledger.isSteady) return { sent: NOTHING_SENT };
    const looked = this.lookAtTimeouts(table, full || change.node);
    // A change is sent in the turn in which it comes.
    if (looked !== null) await looked;
    const scope = { frontends: this.looked, rules: full || change.node };
    const delivered = await delivery.deliver(table, scope, full);
    if (full) this.chainsRefused = delivered.refusedChains.length > 0;
    if (this.chainsRefused) this.listings.distrust();
    const restored = ledger.frontends.damaged.size === 0 ? [] : await delivery.restore(table);
    const retried = ledger.hasQuarantined ? await delivery.retry(table) : { sent: [], taken: [] };
    const { background } = await clients.forgetRest(table, full ? ledger.held.sets.keys() : null);
    const sent = sum([delivered.sent, ...restored, ...retried.sent]);
    const { refusedChains } = delivered;
    return { sent, refusedChains, released: retried.taken, ...(background === undefined ? {} : { background }) };
  }

  async tidy({ full }: SyncScope): Promise<Tidied> {
    const { uses } = this.ledger;
    const problems = await this.unneeded.remove(full ? [...uses.unused] : uses.due(MOST_REMOVED));
    // Rules that named them are gone by now.
    const { objects, chains } = this.ledger.held;
    const unused = [...objects.keys()].filter((name) => !isTimeoutUsed(name, chains));
    return { problems: [...problems, ...(await this.unneeded.remove(unused))] };
  }

  /** Finds out how long unanswered attempts are given; null where nothing has to be asked for. */
  private lookAtTimeouts(table: FamilyTable, isAsked: boolean): Promise<void> | null {
    const { timeouts, structure, ledger } = this;
    if (hasTimeouts(ledger.held.objects.values())) timeouts.held();
    const isKnown = structure.timeouts !== null;
    if (timeouts.isLacking || (isKnown && !isAsked)) return null;
    const { tcp, dns } = table.node.retryTimes;
    const isOfFrontend = (key: FrontendKey): boolean => (table.frontend(key)?.retrySeconds ?? 0) > 0;
    if (!isKnown && tcp === null && dns === null && ![...this.looked].some(isOfFrontend)) return null;
    return timeouts.current().then((current) => {
      structure.timeouts = current;
    });
  }

  async compare(table: FamilyTable, quiet: WaitForQuiet): Promise<boolean> {
    if (this.chainsRefused || this.timeouts.isOutdated) return true;
    const { listings } = this;
    const known = this.ledger.held;
    const audit = new Audit(this.family, known);
    // Before anything is waited for: a sync may begin at any moment from now on.
    this.audited = audit;
    try {
      if (await listings.isUntouched()) return false;
      // Who failed or compared meanwhile knows better.
      if (!(await quiet()).isKnown || this.ledger.held !== known) return false;
      const look = await listings.look();
      // A set that is not known is a difference, with any content.
      const found = await audit.compare(await listings.listTable());
      if (this.ledger.held !== known) return false;
      if (found.length > 0) return true;
      await this.clients.checkAll(table, known.sets.keys());
      listings.confirm(look);
      return false;
    } finally {
      this.audited = null;
    }
  }

  /** The kernel notifies of changes, but not when the owner of a table leaves: whether it takes a transaction is found out by one. */
  async probe(): Promise<boolean> {
    try {
      await this.addTable();
      return true;
    } catch {
      return false;
    }
  }

  quarantined(): readonly QuarantinedFrontend[] {
    return this.ledger.quarantined;
  }

  async nodeFaults({ node }: Pick<FamilyTable, 'node'>): Promise<FoundFaults> {
    return (await import('./faults.js')).nodeFaults(this.addon, node, this.countsRefused);
  }

  async print({ node }: Pick<FamilyTable, 'node'>, scope: PacketScope | null): Promise<readonly string[]> {
    const { addon, family, structure, ledger, listings } = this;
    const { unused } = ledger.uses;
    if (scope === null) {
      const listing = await listings.listTable();
      if (listing === null) return [];
      this.readTimeouts(listing);
      return dumpTable(family, readListing(family, listing), structure, node, unused);
    }
    const listing = await addon.nftList(NFT_FAMILY[family], TABLE, inspectedSets(scope));
    if (listing === null) return [];
    this.readTimeouts(listing);
    return inspectTable(family, readListing(family, listing), structure, node, scope, unused);
  }

  async remembered(
    scope: PacketScope,
    { source, clientKey }: AffinityQuestion,
    { node }: Pick<FamilyTable, 'node'>,
  ): Promise<Omit<Inspection, 'lines'>> {
    const remembered = source === null ? null : await rememberedEndpoint(this.addon, node, scope, source, clientKey);
    return { remembered };
  }

  refused(): Promise<readonly RefusedPackets[]> {
    return refusedPackets(this.addon, this.family);
  }

  unremembered(): Promise<readonly UnrememberedClients[]> {
    return unrememberedClients(this.addon, this.family);
  }

  /** Nothing may have been delivered yet: the kernel's table shows whether it has such objects. */
  private readTimeouts({ objects }: NftTableListing): void {
    if (this.structure.timeouts === null && hasTimeouts(objects.map(({ declaration }) => declaration)))
      this.structure.timeouts = this.timeouts.ofKernel();
  }

  /** The kernel does not count a transaction that changes nothing among its generations. */
  private async addTable(): Promise<void> {
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    await this.addon.nftTransact({ ...where, operations: [{ type: 'commands', commands: [addTable(where)] }] });
  }

  private maxBatch(): number {
    this.knownMaxBatch ??= this.addon.nftMaxBatch();
    return this.knownMaxBatch;
  }
}

function isEmpty({ frontends, clusterAddresses, hairpinAddresses, node }: TableChange): boolean {
  return frontends.size + clusterAddresses.size + hairpinAddresses.size === 0 && !node;
}
