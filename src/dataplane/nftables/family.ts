import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftTransaction } from '../../native/contract.js';
import type { FamilyTable, FrontendKey, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import type { AffinityQuestion, FamilyDataplane, Inspection, RefusedPackets, SyncReport } from '../contract.js';
import { Audit } from './audit.js';
import { Delivery, sum } from './delivery.js';
import { differences } from './differences.js';
import { dumpTable } from './dump.js';
import { chainsOfFrontend, timeoutsOfFrontend } from './frontend-elements.js';
import { Generation } from './generation.js';
import { inspectTable, inspectedSets, rememberedEndpoint } from './inspect.js';
import { deleteChain, deleteSet, deleteTable, flushChain, flushSet, addTable } from './json.js';
import { readKernelTable, type KernelTable, type ListedTable } from './kernel-table.js';
import { Lister } from './lister.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { refusedPackets } from './refused-packets.js';
import { RememberedClients } from './remembered-clients.js';
import { Structure, timeoutsOf } from './structure.js';
import { Sender } from './sender.js';
import { noKeys, TableLedger, type TableKeys } from './table-ledger.js';

type Addon = Pick<
  NftablesAddon,
  'nftCompile' | 'nftTransact' | 'nftList' | 'nftElements' | 'nftHas' | 'nftGeneration' | 'nftMaxBatch'
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
  /** The kernel has chains and sets that nothing needs any more: the next sync removes them. */
  private untidy = false;
  /** Chains are not as they should be, which nobody owes: the next check has everything compared, and so tries them again. */
  private chainsRefused = false;

  constructor(
    private readonly addon: Addon,
    family: Family,
    generation: Generation = new Generation(addon),
    onTransaction: (transaction: NftTransaction) => void = () => undefined,
    now = (): number => performance.now(),
    countsRefused = false,
  ) {
    this.family = family;
    this.structure = new Structure(addon, family, countsRefused);
    this.ledger = new TableLedger(now);
    this.ledger.doubtAll();
    const counted = {
      nftElements: (...parameters: Parameters<Addon['nftElements']>) => addon.nftElements(...parameters),
      nftHas: (...parameters: Parameters<Addon['nftHas']>) => addon.nftHas(...parameters),
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
      this.untidy = hasObjects(this.foreign(table.node));
      await this.clients.checkAll(table, timeoutsOf(known));
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
    return { family: this.family, full: false, ...nothing, rules: null, setAside: this.ledger.aside, flows: new Set() };
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
    return listing === null ? [] : dumpTable(this.family, readKernelTable(this.family, listing), this.structure, node);
  }

  async inspect(
    { node }: Pick<FamilyTable, 'node'>,
    scope: PacketScope,
    affinity: AffinityQuestion | null,
  ): Promise<Inspection> {
    const { addon, family, structure } = this;
    const listing = await addon.nftList(NFT_FAMILY[family], TABLE, inspectedSets(scope, affinity && affinity.seconds));
    if (listing === null) return { lines: [], remembered: null };
    const lines = inspectTable(family, readKernelTable(family, listing), structure, node, scope);
    const remembered =
      affinity === null || affinity.source === null
        ? null
        : await rememberedEndpoint(addon, family, scope, affinity.source, affinity);
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
    if (!full && idle && !this.leftAlone && !this.untidy) {
      this.trusted = true;
      return this.unchanged();
    }
    const owed = ledger.owed(change);
    if (full) await this.readBack();
    // Until a change is sent nothing is waited for: whoever has nothing to do for it would have its turn before.
    const frontends = this.look(table, change, full, owed);
    const tidy = full || this.untidy;
    const rules = tidy || change.node;
    const delivered = await this.delivery.deliver(table, { frontends, rules, tidy }, full);
    if (tidy) this.chainsRefused = delivered.refusedChains.length > 0;
    if (this.chainsRefused) this.lister.distrust();
    const restored = ledger.damaged.size === 0 ? [] : await this.delivery.restore(table);
    const retried = ledger.hasAside ? await this.delivery.retry(table) : { sent: [], taken: [] };
    const beside = await this.clients.forgetRest(table, ledger.timeouts, full);
    // Rules that are in force still name what only those needed that were tried again: it goes with the next sync.
    if (tidy) this.untidy = retried.taken.length > 0;
    const left = tidy && !this.untidy ? await this.removeForeign(table.node) : [];
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
    };
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
   * Removes what another proxy or an earlier version of ours left in the table, after our rules are in place. First everything is emptied, then
   * deleted: kernels before 6.2 let go of a map's references only after the transaction.
   */
  private async removeForeign(node: NodePlan): Promise<readonly string[]> {
    const foreign = this.foreign(node);
    if (!hasObjects(foreign)) return [];
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    // The next full sync looks whether it worked; emptying what is empty the kernel does not even count.
    this.lister.distrust();
    const { chains, sets } = this.ledger;
    for (const name of foreign.chains) chains.desire(name, undefined);
    for (const name of foreign.sets) sets.desire(name, undefined);
    const keys = { ...noKeys(), chains: [...foreign.chains], sets: [...foreign.sets] };
    this.audited?.touched(keys);
    try {
      const flushes = [
        ...foreign.chains.map((name) => flushChain(where, name)),
        ...foreign.sets.map((name) => flushSet(where, name)),
      ];
      await this.sender.transact([{ type: 'commands', commands: flushes }]);
      const deletions = [
        ...foreign.chains.map((name) => deleteChain(where, name)),
        ...foreign.sets.map((name) => deleteSet(where, name)),
      ];
      await this.sender.commit({ operations: [{ type: 'commands', commands: deletions }], keys });
    } catch (error) {
      // A chain that may have been emptied must not pass for one with its rules. Adding what is there again does no harm.
      for (const name of foreign.chains) chains.readBack(name, undefined);
      for (const name of foreign.sets) sets.readBack(name, undefined);
      const names = [...foreign.chains, ...foreign.sets].slice(0, 5).join(', ');
      return [`could not remove foreign objects (${names}): ${messageOf(error)}`];
    }
    return [];
  }

  /** Chains and sets that neither the rules nor the frontends in the kernel need. */
  private foreign(node: NodePlan): ForeignObjects {
    const kernel = this.ledger.held;
    const frontends = [...kernel.frontends.values()];
    const timeouts = new Set(frontends.flatMap(timeoutsOfFrontend));
    return this.structure.foreign(
      kernel,
      node,
      new Set(frontends.flatMap(chainsOfFrontend)),
      [...timeouts].sort((one, other) => one - other),
    );
  }
}

function isEmpty({ frontends, clusterAddresses, hairpinAddresses, node }: TableChange): boolean {
  return frontends.size + clusterAddresses.size + hairpinAddresses.size === 0 && !node;
}

type ForeignObjects = ReturnType<Structure['foreign']>;

function hasObjects({ chains, sets }: ForeignObjects): boolean {
  return chains.length > 0 || sets.length > 0;
}
