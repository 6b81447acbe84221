import type { Family } from '../../../src/base/ip.js';
import type { AffinityQuestion, Inspection } from '../../../src/dataplane/contract.js';
import {
  NOTHING_SENT,
  type Delivered,
  type Driver,
  type FlowNotes,
  type SyncScope,
  type Tidied,
  type WaitForQuiet,
} from '../../../src/dataplane/driver.js';
import type { Footprint } from '../../../src/dataplane/removal/footprint.js';
import { ModeError, type ModeDefinition } from '../../../src/dataplane/mode.js';
import { Ledger } from '../../../src/dataplane/ledger.js';
import { Reconciler, undisturbed } from '../../../src/dataplane/reconciler.js';
import { printScope, printTable } from '../../../src/plan/text.js';
import type { FamilyTable, FrontendKey, FrontendPlan, PacketScope, TableChange } from '../../../src/plan/types.js';
import type { ScenarioMode } from '../scenario-world.js';
import { isDatagram, ToyKernel, ToyTable } from './kernel.js';
import { TOY_TRAITS } from './traits.js';

/*
 * All that a mode has to bring, in the least that tells every story right: a driver. Its kernel (kernel.ts) takes the plan's own table, so what is left here is
 *
 * - to list, and to say what a listing lacks of what was acknowledged;
 * - to enter in what is held only what the kernel said, and to send the difference;
 * - to keep what it is told to keep;
 * - to note datagram frontends that are gone where a restart finds them;
 * - to print what the kernel holds in the plan's words, as a whole and around one packet.
 *
 * When each of this is done the reconciler decides. Real modes send less than a table per change: they follow `change`, and render, order and read back in their
 * kernel's terms.
 */

const FOOTPRINT: Footprint = { nftTables: [], chains: null, ipvs: null };

export const TOY: ModeDefinition = {
  name: 'toy',
  platforms: [process.platform],
  traits: () => TOY_TRAITS,
  footprint: FOOTPRINT,
  metrics: {
    tellsFullSyncs: true,
    syncFailures: { name: 'sync_proxy_rules_toy_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: null,
    rules: null,
    counted: [],
  },
  sysctls: () => [],
  deprecation: null,
  async open({ addon, now }, families) {
    await Promise.resolve();
    if (!(addon instanceof ToyKernel)) throw new ModeError('this kernel is no toy');
    return {
      families,
      dataplane: (family) => new Reconciler(new ToyDriver(addon, family), now),
      own: { footprint: FOOTPRINT, flavor: null },
      remove: null,
      watch: null,
      attempts: null,
      modeCounts: () => Promise.resolve(null),
    };
  },
  tryKernel: () => Promise.resolve([]),
  render: (_, tables) => Promise.resolve(tables.flatMap(printTable).join('\n')),
};

export const TOY_STORIES: ScenarioMode = {
  definition: TOY,
  forgetsGoneFlows: false,
  tellsRemembered: true,
  world: () => new ToyKernel(),
};

export class ToyDriver implements Driver<ToyTable | null> {
  polls: Driver<unknown>['polls'] = null;
  readonly replaces = false;
  readonly dueAt = null;
  readonly resets = null;
  readonly notes: FlowNotes = {
    keys: () => this.held?.gone ?? [],
    remove: async (keys) => {
      const { held } = this;
      if (held === null) return;
      await this.replace(new ToyTable(held, [], new Set([...held.gone].filter((key) => !keys.includes(key)))));
    },
  };
  /** Of one thing: this kernel's table. */
  private readonly ledger = new Ledger<'table', ToyTable>({ same: sameTable, now: () => 0 });
  /** What stays although the plan does not name it. */
  private kept: readonly FrontendPlan[] = [];

  constructor(
    private readonly kernel: ToyKernel,
    readonly family: Family,
  ) {}

  prepare(): void {
    // One read is soon done.
  }

  end(): void {
    // So is one write.
  }

  desire(table: FamilyTable, { frontends }: TableChange): void {
    // The kernel takes whole tables, so there is no more to say than what stays beside the plan's.
    this.kept = this.kept.filter(({ key }) => !frontends.has(key) && table.frontend(key) === undefined);
  }

  release(): void {
    this.kept = [];
  }

  going(): readonly FrontendKey[] {
    return [];
  }

  isUntouched(): Promise<boolean> {
    return Promise.resolve(false);
  }

  list(): Promise<ToyTable | null> {
    return this.kernel.read(this.family);
  }

  losses(listing: ToyTable | null): readonly string[] {
    const isLost = !this.ledger.unknown.has('table') && listing?.text !== this.held?.text;
    return isLost ? ['the table was another'] : [];
  }

  readBack(listing: ToyTable | null, { table, keeps }: SyncScope): boolean {
    this.ledger.readBack('table', listing ?? undefined);
    this.kept = keeps ? [...(listing?.frontends() ?? [])].filter(({ key }) => table.frontend(key) === undefined) : [];
    return this.kept.length > 0;
  }

  async deliver({ table }: SyncScope): Promise<Delivered> {
    const wanted = next(table, this.held, this.kept);
    if (wanted.text === this.held?.text) return { sent: NOTHING_SENT };
    await this.replace(wanted);
    return { sent: { ...NOTHING_SENT, transactions: 1 } };
  }

  tidy(): Promise<Tidied> {
    return Promise.resolve({ problems: [] });
  }

  compare(_: FamilyTable, quiet: WaitForQuiet): Promise<boolean> {
    return undisturbed(quiet, async () => this.losses(await this.list()).length > 0);
  }

  probe(): Promise<boolean> {
    return Promise.resolve(false);
  }

  quarantined(): readonly [] {
    return [];
  }

  async print(_: FamilyTable, scope: PacketScope | null): Promise<readonly string[]> {
    const held = await this.kernel.read(this.family);
    if (held === null) return [];
    return scope === null ? printTable(held) : printScope(held, scope);
  }

  remembered(
    _: PacketScope,
    { source, servicePort, endpoints }: AffinityQuestion,
  ): Promise<Pick<Inspection, 'remembered'>> {
    const remembered = source === null ? null : this.kernel.remembered(servicePort, source);
    return Promise.resolve({ remembered: remembered !== null && endpoints.includes(remembered) ? remembered : null });
  }

  refused(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  unremembered(): Promise<null> {
    return Promise.resolve(null);
  }

  /** What the kernel acknowledged; null: nothing. */
  private get held(): ToyTable | null {
    return this.ledger.acknowledged.get('table') ?? null;
  }

  private async replace(wanted: ToyTable): Promise<void> {
    this.ledger.desire('table', wanted);
    const claim = this.ledger.claim(['table']);
    try {
      await this.kernel.replace(this.family, wanted);
      claim.acknowledge();
    } catch (error) {
      claim.lose();
      throw error;
    }
  }
}

function sameTable(one: ToyTable, other: ToyTable): boolean {
  return one.text === other.text;
}

/** The table that the kernel is to hold after the one that it holds. @param kept what stays beside the plan's. */
function next(table: FamilyTable, held: ToyTable | null, kept: readonly FrontendPlan[]): ToyTable {
  const isThere = new Set(kept.map(({ key }) => key));
  const unnamed = [...(held?.frontends() ?? [])].map(({ key }) => key).filter((key) => !isThere.has(key));
  const gone = [...(held?.gone ?? []), ...unnamed.filter(isDatagram)];
  return new ToyTable(table, kept, new Set(gone.filter((key) => table.frontend(key) === undefined)));
}
