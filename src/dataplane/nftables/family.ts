import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftTransaction } from '../../native/contract.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../plan/types.js';
import type { AffinityQuestion, FamilyDataplane, Inspection, RefusedPackets, SyncReport } from '../contract.js';
import { RememberedClients } from './affinity/remembered-clients.js';
import { Audit } from './audit.js';
import { refusedObject } from './blame.js';
import { Delivery, sum } from './delivery.js';
import { differences } from './differences.js';
import { dumpTable } from './dump.js';
import { Generation } from './generation.js';
import { inspectTable, inspectedSets, rememberedEndpoint } from './inspect.js';
import { deleteChain, deleteSet, deleteTable, flushChain, flushSet, addTable } from './json.js';
import { readKernelTable, type KernelTable, type ListedTable } from './kernel-table.js';
import { Lister } from './lister.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { refusedPackets } from './refused-packets.js';
import { Structure } from './structure.js';
import { isRefusal, Sender } from './sender.js';
import { noKeys, TableLedger, type TableKeys } from './table-ledger.js';

/** So many chains and sets one transaction removes, and one sync of a change. */
const MOST_REMOVED = 512;
/** So many that the kernel refuses to remove are found one by one. */
const MOST_REFUSED = 8;

type Addon = Pick<
  NftablesAddon,
  'nftCompile' | 'nftTransact' | 'nftList' | 'nftElements' | 'nftGeneration' | 'nftMaxBatch'
>;

/** The nftables mode of one family. The README of this folder says what the table looks like and why. */
export class NftablesFamily implements FamilyDataplane {
  readonly family: Family;
  private readonly structure: Structure;
  private readonly ledger: TableLedger;
  private readonly clients: RememberedClients;
  private readonly sender: Sender;
  private readonly delivery: Delivery;
  private readonly lister: Lister;
  /** Whether the kernel holds what the ledger says: not at the start and after any failure. Then everything is listed. */
  private trusted = false;
  /** The last sync compared everything. */
  private compared = false;
  /** Settles when the kernel holds what it is known to hold. */
  private underWay: Promise<unknown> = Promise.resolve();
  private audited: Audit | null = null;
  /** Losses that were found and not reported: the repair may take several attempts. */
  private repairs: readonly string[] = [];
  private knownMaxBatch: number | null = null;
  /** The kernel has frontends that the plan does not name, and may be right: see {@link FamilyTable.gaps}. */
  private leftAlone = false;
  /** Chains are not as they should be, which nobody owes: the next check has everything compared, and so tries them again. */
  private chainsRefused = false;

  constructor(
    private readonly addon: Addon,
    family: Family,
    generation: Generation = new Generation(addon),
    onTransaction: (transaction: NftTransaction) => void = () => undefined,
    private readonly now = (): number => performance.now(),
    countsRefused = false,
  ) {
    this.family = family;
    this.structure = new Structure(addon, family, countsRefused);
    this.ledger = new TableLedger(now, (name) => this.structure.isStatic(name));
    this.ledger.doubtAll();
    const counted = {
      nftElements: (...parameters: Parameters<Addon['nftElements']>) => addon.nftElements(...parameters),
      nftTransact: (transaction: NftTransaction) => {
        onTransaction(transaction);
        return generation.count(() => addon.nftTransact(transaction));
      },
    };
    this.lister = new Lister(addon, family, generation, now);
    const onFailure = (): void => {
      // The full sync that makes up for it really looks.
      this.lister.distrust();
    };
    this.clients = new RememberedClients(counted, family, onFailure, now);
    this.sender = new Sender(counted, family, this.ledger, (keys) => this.audited?.touched(keys));
    const { structure, ledger, clients, sender } = this;
    const [maxBatch, readBack] = [(): number => this.maxBatch(), (): Promise<void> => this.readBack()];
    this.delivery = new Delivery({ family, structure, ledger, clients, sender, maxBatch, readBack });
  }

  /** Lists the table that the last process left while the sources are still being read. */
  prepare(): void {
    this.lister.prepare();
  }

  apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const sync = this.sync(table, change, options);
    this.underWay = sync.catch(() => undefined);
    return sync;
  }

  async audit(table: FamilyTable): Promise<boolean> {
    await this.settled();
    if (!this.trusted || this.audited !== null) return false;
    if (this.chainsRefused) return true;
    const { lister } = this;
    const known = this.ledger.held;
    const audit = new Audit(this.family, known);
    // Before anything is waited for: a sync may begin at any moment from now on.
    this.audited = audit;
    try {
      if (await lister.isUntouched()) return false;
      await this.settled();
      if (!this.knows(known)) return false;
      const look = await lister.look();
      // A set that is not known is a difference, whatever is in it.
      const found = await audit.compare(await lister.listSets([...known.sets.keys()]));
      if (this.ledger.held !== known) return false;
      if (found.length > 0) return true;
      await this.clients.checkAll(table, known.sets.keys());
      lister.confirm(look);
      return false;
    } finally {
      this.audited = null;
    }
  }

  /** Resolves when no sync is under way. */
  private async settled(): Promise<void> {
    let seen: unknown;
    do {
      seen = this.underWay;
      await seen;
    } while (seen !== this.underWay);
  }

  /** Whether nothing failed and nothing was compared since the kernel was known to hold this: whoever did that knows better than an audit. */
  private knows(known: KernelTable): boolean {
    return this.trusted && this.ledger.held === known;
  }

  private unchanged(): SyncReport {
    const nothing = { transactions: 0, elementOperations: 0, ruleOperations: 0, bytes: 0, repairs: [], problems: [] };
    return {
      family: this.family,
      full: false,
      ...nothing,
      rules: null,
      setAside: this.ledger.aside,
      flows: new Set(),
      ...this.nextRemoval(),
    };
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    const { held, staleFlows } = this.ledger;
    const gone = this.trusted ? [...held.staleFlows.keys()] : [];
    // Of those that are set aside the flows are gone.
    return new Set(gone.filter((key) => !staleFlows.aside.has(key)));
  }

  async clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    const gone = this.goneFlows();
    const held = [...keys].filter((key) => gone.has(key));
    if (held.length === 0) return;
    this.trusted = false;
    const cleared = this.delivery.forgetFlows(held, this.compared);
    this.underWay = cleared.catch(() => undefined);
    await cleared;
    this.trusted = true;
  }

  async cleanup(): Promise<void> {
    this.trusted = false;
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    // Adding it first makes the deletion succeed whether or not the table is there.
    await this.sender.transact([{ type: 'commands', commands: [addTable(where), deleteTable(where)] }]);
  }

  async dump({ node }: Pick<FamilyTable, 'node'>): Promise<readonly string[]> {
    const listing = await this.lister.listTable();
    if (listing === null) return [];
    const { family, structure, ledger } = this;
    return dumpTable(family, readKernelTable(family, listing), structure, node, ledger.uses.unused);
  }

  async inspect(
    { node }: Pick<FamilyTable, 'node'>,
    scope: PacketScope,
    affinity: AffinityQuestion | null,
  ): Promise<Inspection> {
    const { addon, family, structure, ledger } = this;
    const listing = await addon.nftList(NFT_FAMILY[family], TABLE, inspectedSets(scope));
    if (listing === null) return { lines: [], remembered: null };
    const kernel = readKernelTable(family, listing);
    const lines = inspectTable(family, kernel, structure, node, scope, ledger.uses.unused);
    const remembered =
      affinity === null || affinity.source === null
        ? null
        : await rememberedEndpoint(addon, node, scope, affinity.source, affinity.clientKey);
    return { lines, remembered };
  }

  refused(): Promise<readonly RefusedPackets[]> {
    return refusedPackets(this.addon, this.family);
  }

  private async sync(
    table: FamilyTable,
    change: TableChange,
    options: { readonly full: boolean },
  ): Promise<SyncReport> {
    const { ledger, trusted } = this;
    ledger.noteRemoved(table, change);
    // Until the last acknowledgement the kernel's state is in doubt: a failure in between makes the next sync look for itself, and find the change.
    this.trusted = false;
    this.compared = false;
    const full = !trusted || (options.full && !(await this.lister.isUntouched()));
    // Most changes are of one family and come to both.
    const idle = isEmpty(change) && ledger.settled;
    if (!full && idle && !this.leftAlone && !this.isRemovalDue) {
      this.trusted = true;
      return this.unchanged();
    }
    const owed = ledger.owed(change);
    if (full) await this.readBack();
    // Until a change is sent nothing is waited for: whoever has nothing to do for it would have its turn before.
    const frontends = this.look(table, change, full, owed);
    const rules = full || change.node;
    const delivered = await this.delivery.deliver(table, { frontends, rules }, full);
    if (full) this.chainsRefused = delivered.refusedChains.length > 0;
    if (this.chainsRefused) this.lister.distrust();
    const restored = ledger.damaged.size === 0 ? [] : await this.delivery.restore(table);
    const retried = ledger.hasAside ? await this.delivery.retry(table) : { sent: [], taken: [] };
    const beside = await this.clients.forgetRest(table, full ? ledger.held.sets.keys() : null);
    const left = await this.removeUnneeded(full ? [...ledger.uses.unused] : ledger.uses.due(MOST_REMOVED));
    const looked = [...frontends, ...retried.taken].filter((key) => !key.endsWith('/TCP'));
    const changed = looked.filter((key) => !ledger.frontends.aside.has(key));
    this.trusted = true;
    this.compared = full;
    const { repairs } = this;
    this.repairs = [];
    return {
      family: this.family,
      full,
      ...sum([delivered.sent, ...restored, ...retried.sent]),
      ...{ repairs, problems: left, refusedChains: delivered.refusedChains, rules: null, setAside: ledger.aside },
      // Other addresses of the node take node ports when its settings change: any flow may be of another frontend now.
      flows: rules ? 'all' : new Set(changed),
      ...beside,
      ...this.nextRemoval(),
    };
  }

  private get isRemovalDue(): boolean {
    const { dueAt } = this.ledger.uses;
    return dueAt !== null && dueAt <= this.now();
  }

  /** When a further sync removes what nothing leads to. */
  private nextRemoval(): Pick<SyncReport, 'dueAt'> {
    const { dueAt } = this.ledger.uses;
    return dueAt === null ? {} : { dueAt };
  }

  /** Which frontends have to be looked at. @param owed before the kernel's table was listed. */
  private look(table: FamilyTable, change: TableChange, full: boolean, owed: TableKeys): Iterable<FrontendKey> {
    const { ledger } = this;
    if (full || (this.leftAlone && !table.gaps)) {
      const { frontends, leftAlone } = ledger.lookAtEverything(table, owed);
      this.leftAlone = leftAlone;
      return frontends;
    }
    ledger.lookAtChange(table, change);
    return owed.frontends;
  }

  private async readBack(): Promise<void> {
    const listed = await this.lister.read();
    const lost = this.losses(listed);
    if (lost.length > 0) this.repairs = lost;
    this.ledger.readBack(listed);
  }

  private maxBatch(): number {
    this.knownMaxBatch ??= this.addon.nftMaxBatch();
    return this.knownMaxBatch;
  }

  /**
   * What a listing lacks of what was acknowledged. After a failure that which was on its way may or may not have arrived: it is not missed, nor is
   * anything that is there in addition.
   */
  private losses(listed: ListedTable): readonly string[] {
    const { held, allUnknown, frontends, clusterAddresses, hairpinAddresses, chains, sets } = this.ledger;
    if (allUnknown) return [];
    return differences(held, listed, {
      frontends: frontends.unknown,
      clusterAddresses: clusterAddresses.unknown,
      hairpinAddresses: hairpinAddresses.unknown,
      structure: (name) => chains.unknown.has(name) || sets.unknown.has(name),
    });
  }

  /**
   * Removes chains and sets that nothing leads to any more: ours, another proxy's, or an earlier version's. What cannot be removed, because somebody else's
   * rule leads to it, keeps the others from nothing. What of it remains the next check finds.
   */
  private async removeUnneeded(names: readonly string[]): Promise<readonly string[]> {
    const { chains, sets } = this.ledger;
    const problems: string[] = [];
    for (let start = 0; start < names.length; start += MOST_REMOVED) {
      let left = names.slice(start, start + MOST_REMOVED);
      // The next full sync looks whether it worked; emptying what is empty the kernel does not even count.
      if (left.length > 0) this.lister.distrust();
      for (let refusals = 0; left.length > 0; refusals++) {
        const refusal = await this.remove(left);
        if (refusal === null) break;
        const culprit = isRefusal(refusal.error) ? refusedObject(refusal.error) : null;
        const isFound = culprit !== null && left.includes(culprit) && refusals < MOST_REFUSED;
        const kept = isFound ? [culprit] : left;
        left = left.filter((name) => !kept.includes(name));
        // A chain that may have been emptied must not pass for one with its rules. Adding what is there again does no harm.
        for (const name of kept) for (const ledger of [chains, sets]) ledger.readBack(name, undefined);
        problems.push(`could not remove foreign objects (${kept.slice(0, 5).join(', ')}): ${messageOf(refusal.error)}`);
      }
    }
    return problems;
  }

  /** First everything is emptied, then deleted: kernels before 6.2 let go of a map's references only after the transaction. */
  private async remove(names: readonly string[]): Promise<{ readonly error: unknown } | null> {
    const { ledger, structure } = this;
    const { chains, sets } = ledger;
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    const keys = {
      ...noKeys(),
      chains: names.filter((name) => chains.acknowledged.has(name)),
      sets: names.filter((name) => sets.acknowledged.has(name)),
    };
    for (const name of keys.chains) chains.desire(name, undefined);
    for (const name of keys.sets) sets.desire(name, undefined);
    this.audited?.touched(keys);
    ledger.uses.dropped(names);
    structure.forget(names);
    this.clients.dropped(names);
    try {
      const flushes = [
        ...keys.chains.map((name) => flushChain(where, name)),
        ...keys.sets.map((name) => flushSet(where, name)),
      ];
      await this.sender.transact([{ type: 'commands', commands: flushes }]);
      const deletions = [
        ...keys.chains.map((name) => deleteChain(where, name)),
        ...keys.sets.map((name) => deleteSet(where, name)),
      ];
      await this.sender.commit({ operations: [{ type: 'commands', commands: deletions }], keys });
      return null;
    } catch (error) {
      return { error };
    }
  }
}

function isEmpty({ frontends, clusterAddresses, hairpinAddresses, node }: TableChange): boolean {
  return frontends.size + clusterAddresses.size + hairpinAddresses.size === 0 && !node;
}
