import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftAck, NftOperation, NftTableListing, NftTransaction } from '../../native/contract.js';
import type { FamilyTable, FrontendKey, NodePlan, PacketScope, TableChange } from '../../plan/types.js';
import {
  blameFrontend,
  type AffinityQuestion,
  type FamilyDataplane,
  type Inspection,
  type SyncReport,
} from '../contract.js';
import { Audit } from './audit.js';
import { refusedFrontend } from './blame.js';
import { differences } from './differences.js';
import { dumpTable } from './dump.js';
import { ElementBatches } from './element-batches.js';
import { chainsOfFrontend, timeoutsOfFrontend } from './frontend-elements.js';
import { Generation, type Mark } from './generation.js';
import { inspectTable, inspectedSets, rememberedEndpoint } from './inspect.js';
import { deleteChain, deleteSet, deleteTable, flushChain, flushSet, addTable } from './json.js';
import { emptyKernelTable, readKernelTable, type KernelTable } from './kernel-table.js';
import { packFrontend } from './keys.js';
import { NFT_FAMILY, TABLE, isOfClients, staleSet } from './names.js';
import { Pending } from './pending.js';
import { RememberedClients } from './remembered-clients.js';
import { Structure, timeoutsOf } from './structure.js';
import { planSync, type SyncPlan } from './sync-plan.js';

type Addon = Pick<
  NftablesAddon,
  'nftCompile' | 'nftTransact' | 'nftList' | 'nftElements' | 'nftHas' | 'nftGeneration' | 'nftMaxBatch'
>;

/** How long the kernel's word is taken that nobody else changed the ruleset. */
const TRUST_MS = 3_600_000;

/** The nftables mode of one family. The README of this folder says what the table looks like and why. */
export class NftablesFamily implements FamilyDataplane {
  readonly family: Family;
  private readonly structure: Structure;
  private readonly pending = new Pending();
  /** The addon with our transactions counted. */
  private readonly counted: Pick<NftablesAddon, 'nftElements' | 'nftHas' | 'nftTransact'>;
  private readonly clients: RememberedClients;
  /** Null while we do not know what the kernel holds: at the start and after any failure. */
  private kernel: KernelTable | null = null;
  /** What {@link prepare} listed; null when it did not or when it has been used. */
  private prepared: Promise<KernelTable | null> | null = null;
  /** What the kernel acknowledged last, whatever became of it since; null before the first listing. */
  private acknowledged: KernelTable | null = null;
  /** Settles when the kernel holds what it is known to hold. */
  private underWay: Promise<unknown> = Promise.resolve();
  private audited: Audit | null = null;
  /** Losses that were found and not reported: the repair may take several attempts. */
  private repairs: readonly string[] = [];
  /** Where the ruleset stood when the kernel's table was last listed; null when that cannot be said. */
  private mark: Mark | null = null;
  private listedAt = 0;
  private knownMaxBatch: number | null = null;
  /** The kernel has frontends that the plan does not name, and may be right: see {@link FamilyTable.gaps}. */
  private leftAlone = false;
  /** The kernel has chains and sets that nothing needs any more: the next sync removes them. */
  private untidy = false;

  constructor(
    private readonly addon: Addon,
    family: Family,
    private readonly generation: Generation = new Generation(addon),
    onTransaction: (transaction: NftTransaction) => void = () => undefined,
    private readonly now = (): number => performance.now(),
  ) {
    this.family = family;
    this.structure = new Structure(addon, family);
    this.counted = {
      nftElements: (...parameters) => addon.nftElements(...parameters),
      nftHas: (...parameters) => addon.nftHas(...parameters),
      nftTransact: (transaction) => {
        onTransaction(transaction);
        return generation.count(() => addon.nftTransact(transaction));
      },
    };
    // The full sync that makes up for a failure really looks.
    this.clients = new RememberedClients(this.counted, family, () => (this.mark = null), now);
  }

  /** Lists the table that the last process left while the sources are still being read. */
  prepare(): void {
    // A failure is for the first sync to meet when it lists for itself.
    this.prepared = this.list().catch(() => null);
  }

  apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    const sync = this.sync(table, change, options);
    this.underWay = sync.catch(() => undefined);
    return sync;
  }

  async audit(table: FamilyTable): Promise<boolean> {
    await this.underWay;
    const known = this.kernel;
    if (known === null || this.audited !== null || (await this.isUntouched())) return false;
    const audit = new Audit(this.family, known);
    this.audited = audit;
    try {
      const mark = await this.generation.mark();
      const listedAt = this.now();
      const found = await audit.compare(await this.listTable());
      // A sync that failed or compared everything itself meanwhile knows better.
      if (this.acknowledged !== known) return false;
      if (found.length > 0) return true;
      this.untidy = hasObjects(this.foreign(table.node, known));
      await this.clients.checkAll(table, timeoutsOf(known));
      if (mark !== null) this.mark = mark;
      this.listedAt = listedAt;
      return false;
    } finally {
      this.audited = null;
    }
  }

  private unchanged(): SyncReport {
    const nothing = { transactions: 0, elementOperations: 0, ruleOperations: 0, bytes: 0, repairs: [], problems: [] };
    return { family: this.family, full: false, ...nothing, rules: null, setAside: [], flows: new Set() };
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    return this.kernel?.staleFlows ?? new Set();
  }

  async clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    const kernel = this.kernel;
    const held = [...keys].filter((key) => kernel?.staleFlows.has(key));
    if (kernel === null || held.length === 0) return;
    const batches = new ElementBatches(this.family);
    for (const key of held) batches.delete(staleSet(key), packFrontend(key));
    this.kernel = null;
    const cleared = this.transact(batches.operations());
    this.underWay = cleared.catch(() => undefined);
    await cleared;
    for (const key of held) kernel.staleFlows.delete(key);
    this.kernel = kernel;
  }

  async cleanup(): Promise<void> {
    this.kernel = null;
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    // Adding it first makes the deletion succeed whether or not the table is there.
    await this.transact([{ type: 'commands', commands: [addTable(where), deleteTable(where)] }]);
  }

  async dump(node: NodePlan): Promise<readonly string[]> {
    const listing = await this.listTable();
    return listing === null ? [] : dumpTable(this.family, readKernelTable(this.family, listing), this.structure, node);
  }

  async inspect(node: NodePlan, scope: PacketScope, affinity: AffinityQuestion | null): Promise<Inspection> {
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

  private async sync(
    table: FamilyTable,
    change: TableChange,
    options: { readonly full: boolean },
  ): Promise<SyncReport> {
    this.pending.add(change);
    const full = this.kernel === null || (options.full && !(await this.isUntouched()));
    // Most changes are of one family and come to both.
    if (!full && this.pending.empty && !this.leftAlone && !this.untidy) return this.unchanged();
    this.audited?.touched(this.pending);
    const kernel = full ? ((await this.takePrepared()) ?? (await this.list())) : (this.kernel ?? emptyKernelTable());
    const lost = full ? this.losses(kernel) : [];
    if (lost.length > 0) this.repairs = lost;
    if (full || (this.leftAlone && !table.gaps)) this.leftAlone = this.pending.addEverything(table, kernel);
    this.acknowledged = kernel;
    // Until the last acknowledgement the kernel's state is in doubt: a failure in between makes the next sync look for itself.
    this.kernel = null;
    const tidy = full || this.untidy;
    if (tidy) this.pending.rules = true;
    const plan = planSync(this.structure, kernel, table, this.pending, tidy, this.maxBatch());
    for (const step of plan.steps) this.clients.note(step);
    const forgetting = plan.rebuild
      ? []
      : await this.clients.ofRemoved(table, timeoutsOf(kernel), Math.floor(this.maxBatch() / 4));
    const sent = await this.send(kernel, plan, forgetting);
    const aside = await this.clients.forgetRest(table, timeoutsOf(kernel), full);
    const problems = tidy ? await this.removeForeign(table.node, kernel) : [];
    // Other addresses of the node take node ports when its settings change: any flow may be of another frontend now.
    const flows =
      full || this.pending.rules ? 'all' : new Set([...this.pending.frontends].filter((key) => !key.endsWith('/TCP')));
    this.kernel = kernel;
    this.pending.clear();
    const { repairs } = this;
    this.repairs = [];
    return { family: this.family, full, ...sent, repairs, problems, rules: null, setAside: [], flows, ...aside };
  }

  private maxBatch(): number {
    this.knownMaxBatch ??= this.addon.nftMaxBatch();
    return this.knownMaxBatch;
  }

  /** Whether a listing would show what the last one and our own acknowledgements say. Looked at again after a while all the same. */
  private async isUntouched(): Promise<boolean> {
    if (this.mark === null || this.now() - this.listedAt >= TRUST_MS) return false;
    return await this.generation.isUntouchedSince(this.mark);
  }

  /** The table as it was listed ahead, unless somebody has touched the ruleset since. */
  private async takePrepared(): Promise<KernelTable | null> {
    const kernel = await this.prepared;
    this.prepared = null;
    return kernel !== null && (await this.isUntouched()) ? kernel : null;
  }

  private async list(): Promise<KernelTable> {
    this.mark = await this.generation.mark();
    this.listedAt = this.now();
    const listing = await this.listTable();
    return listing === null ? emptyKernelTable() : readKernelTable(this.family, listing);
  }

  /** Everything but the clients, of whom there may be very many and of whom no sync needs to know. */
  private async listTable(): Promise<NftTableListing | null> {
    const outline = await this.addon.nftList(NFT_FAMILY[this.family], TABLE, []);
    if (outline === null) return null;
    const names = outline.sets.flatMap(({ name }) => (isOfClients(name) ? [] : [name]));
    return await this.addon.nftList(NFT_FAMILY[this.family], TABLE, names);
  }

  /**
   * What a listing lacks of what was acknowledged. After a failure that which was on its way may or may not have arrived: it is not missed, nor is
   * anything that is there in addition.
   */
  private losses(listed: KernelTable): readonly string[] {
    const known = this.acknowledged;
    if (known === null) return [];
    if (this.kernel !== null) return differences(known, listed);
    const { frontends, clusterAddresses, hairpinAddresses, rules } = this.pending;
    const structure = (name: string): boolean => rules || !(known.chains.has(name) || known.sets.has(name));
    return differences(known, listed, { frontends, clusterAddresses, hairpinAddresses, structure });
  }

  /** @param last operations that go with the last transaction. */
  private async send(
    kernel: KernelTable,
    plan: SyncPlan,
    last: readonly NftOperation[],
  ): Promise<Pick<SyncReport, 'transactions' | 'elementOperations' | 'ruleOperations' | 'bytes'>> {
    let bytes = 0;
    for (const [index, transaction] of plan.transactions.entries()) {
      const further = index === plan.transactions.length - 1 ? last : [];
      bytes += (await this.transact([...transaction.operations, ...further])).bytes;
      transaction.acknowledge(kernel);
    }
    const { elementOperations, ruleOperations } = plan;
    return { transactions: plan.transactions.length, elementOperations, ruleOperations, bytes };
  }

  /**
   * Removes what another proxy or an earlier version of ours left in the table, after our rules are in place. First everything is emptied, then
   * deleted: kernels before 6.2 let go of a map's references only after the transaction.
   */
  private async removeForeign(node: NodePlan, kernel: KernelTable): Promise<readonly string[]> {
    const foreign = this.foreign(node, kernel);
    this.untidy = false;
    if (!hasObjects(foreign)) return [];
    const where = { family: NFT_FAMILY[this.family], table: TABLE };
    // The next full sync looks whether it worked; emptying what is empty the kernel does not even count.
    this.mark = null;
    // Even if it fails: a chain that may have been emptied must not pass for one with its rules. Adding what is there again does no harm.
    for (const name of foreign.chains) kernel.chains.delete(name);
    for (const name of foreign.sets) kernel.sets.delete(name);
    try {
      const flushes = [
        ...foreign.chains.map((name) => flushChain(where, name)),
        ...foreign.sets.map((name) => flushSet(where, name)),
      ];
      await this.transact([{ type: 'commands', commands: flushes }]);
      const deletions = [
        ...foreign.chains.map((name) => deleteChain(where, name)),
        ...foreign.sets.map((name) => deleteSet(where, name)),
      ];
      await this.transact([{ type: 'commands', commands: deletions }]);
    } catch (error) {
      const names = [...foreign.chains, ...foreign.sets].slice(0, 5).join(', ');
      return [`could not remove foreign objects (${names}): ${error instanceof Error ? error.message : String(error)}`];
    }
    return [];
  }

  /** Chains and sets that neither the rules nor the frontends in the kernel need. */
  private foreign(node: NodePlan, kernel: KernelTable): ForeignObjects {
    const frontends = [...kernel.frontends.values()];
    const timeouts = new Set(frontends.flatMap(timeoutsOfFrontend));
    return this.structure.foreign(
      kernel,
      node,
      new Set(frontends.flatMap(chainsOfFrontend)),
      [...timeouts].sort((one, other) => one - other),
    );
  }

  private async transact(operations: readonly NftOperation[]): Promise<NftAck> {
    try {
      return await this.counted.nftTransact({ family: NFT_FAMILY[this.family], table: TABLE, operations });
    } catch (error) {
      const frontend = refusedFrontend(this.family, operations, error);
      throw frontend === null ? error : blameFrontend(error, frontend);
    }
  }
}

type ForeignObjects = ReturnType<Structure['foreign']>;

function hasObjects({ chains, sets }: ForeignObjects): boolean {
  return chains.length > 0 || sets.length > 0;
}
