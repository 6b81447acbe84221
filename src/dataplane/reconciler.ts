import type { Family } from '../base/ip.js';
import { isNativeError } from '../native/errors.js';
import { isDatagramKey } from '../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../plan/types.js';
import { Calls } from './calls.js';
import {
  blameNode,
  type AffinityQuestion,
  type AwaitChange,
  type ConnectionResets,
  type FamilyDataplane,
  type Inspection,
  type QuarantinedFrontend,
  type RefusedPackets,
  type SyncReport,
  type UnrememberedClients,
} from './contract.js';
import type { Delivered, Driver, Quiet, SyncScope } from './driver.js';
import { TimeBudget } from './time-budget.js';

/** Limits, per family, of the share of time for reads of the kernel beside syncs: of everything, and of what costs little. */
const AUDIT_SHARE = 0.01;
const PROBE_SHARE = 0.02;

/**
 * The loop of every mode, for one IP family. Its driver lists and writes the kernel. The loop decides when, and what follows:
 *
 *     desire ─▶ known? ──yes──▶ deliver ─▶ tidy ─▶ report        what is pending after a failure the next sync sends
 *                 │ no, or a comparison is asked for    ▲
 *                 └▶ list ─▶ losses ─▶ read back ───────┘        deliver answers that the kernel is not as known: list, once
 *
 * - The kernel is *known* from the end of one sync to the beginning of the next. A failure in between makes the next sync list everything, unless writes
 *   replace everything that the kernel holds.
 * - *Losses* are acknowledged values that a listing lacks. They are reported with the sync that has repaired them.
 * - *Unsynced sources*: entries of a listing that the plan does not name stay until it names them, or until all sources are
 *   synced.
 * - *Gone* datagram frontends are remembered until their flows are gone too, here or in the kernel.
 * - *Audits* compare beside syncs. What they find makes the next comparison that is asked for list everything.
 */
export class Reconciler<Listing> implements FamilyDataplane {
  readonly family: Family;
  readonly polls: boolean;
  private table: FamilyTable | null = null;
  private isKnown = false;
  /** Nothing was delivered yet: the first listing has the rules of an earlier process. */
  private isFirst = true;
  /** The last sync listed everything. */
  private wasFull = false;
  /** An audit found a difference that no listing has confirmed yet. */
  private differs = false;
  /** The kernel keeps entries that the plan does not name. */
  private keeps = false;
  /** Losses that were found and not reported: the repair may take several attempts. */
  private repairs: readonly string[] = [];
  private readonly gone = new Set<FrontendKey>();
  /** Datagram frontends that changed since flows were last reported. */
  private flows: Set<FrontendKey> | 'all' = new Set();
  private readonly calls = new Calls();
  private readonly audits: TimeBudget;
  private readonly probes: TimeBudget;
  /** An audit or a probe. */
  private looking: Promise<boolean> | null = null;
  /** An audit that begins after the one under way. */
  private nextAudit: Promise<boolean> | null = null;

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(
    readonly driver: Driver<Listing>,
    now: () => number,
  ) {
    this.family = driver.family;
    this.polls = driver.polls !== null;
    const spent = (): number => driver.comparingMs ?? now();
    this.audits = new TimeBudget(now, AUDIT_SHARE, spent);
    this.probes = new TimeBudget(now, PROBE_SHARE, spent);
  }

  get awaitChange(): AwaitChange | null {
    return this.driver.awaitChange ?? null;
  }

  get resets(): ConnectionResets | null {
    return this.driver.resets;
  }

  get lacksTimeouts(): boolean {
    return this.driver.lacksTimeouts ?? false;
  }

  prepare(): void {
    this.driver.prepare();
  }

  apply(table: FamilyTable, change: TableChange, options: { readonly full: boolean }): Promise<SyncReport> {
    return this.calls.change(() =>
      this.sync(table, change, options.full).catch(async (error: unknown) => {
        throw isNativeError(error) ? blameNode(error, (await this.blamed(table)).nodeFaults ?? []) : error;
      }),
    );
  }

  private async sync(table: FamilyTable, change: TableChange, isAsked: boolean): Promise<SyncReport> {
    const { driver, isKnown } = this;
    this.table = table;
    if (this.gone.size > 0)
      for (const key of change.frontends) if (table.frontend(key) !== undefined) this.gone.delete(key);
    driver.desire(table, change);
    this.noteFlows(change);
    if (this.keeps && !table.unsynced) this.release(table);
    // After a failure from here on, the next sync lists the kernel.
    this.isKnown = isKnown && driver.replaces;
    const isListed = !isKnown || (isAsked && (this.differs || !(await driver.isUntouched())));
    let scope: SyncScope = { table, change, full: isListed, isFirst: this.isFirst, keeps: table.unsynced };
    if (isListed) await this.list(scope);
    this.noteGone(table);
    // No await before the change is sent: unrelated work would run first.
    let delivered = await driver.deliver(scope);
    if (delivered === null) {
      scope = { ...scope, full: true };
      await this.list(scope);
      this.noteGone(table);
      delivered = await driver.deliver(scope);
      if (delivered === null) throw new Error('the kernel is not as it was just listed');
    }
    const { full } = scope;
    const tidied = await driver.tidy(scope, delivered);
    this.isKnown = true;
    this.isFirst = false;
    this.wasFull = full;
    if (full) this.differs = false;
    const repairs = tidied.repairs === undefined ? this.repairs : [...this.repairs, ...tidied.repairs];
    this.repairs = [];
    const { transactions, elementOperations, ruleOperations, bytes } = delivered.sent;
    const { dueAt } = driver;
    return {
      family: this.family,
      full,
      transactions,
      elementOperations,
      ruleOperations,
      bytes,
      repairs,
      problems: tidied.problems,
      refusedChains: delivered.refusedChains ?? [],
      limitations: driver.limitations ?? [],
      rules: tidied.rules ?? null,
      ...(await this.blamed(table, driver.quarantined())),
      flows: this.takeFlows(delivered),
      ...(dueAt === null ? {} : { dueAt }),
      ...(delivered.background === undefined ? {} : { background: delivered.background }),
    };
  }

  /** Whose fault refusals are. @param quarantined null: the whole sync was refused. */
  private async blamed(
    table: FamilyTable,
    quarantined: readonly QuarantinedFrontend[] | null = null,
  ): Promise<Pick<SyncReport, 'quarantined' | 'nodeFaults'>> {
    if (quarantined?.length === 0) return { quarantined };
    const { blame } = await import('./node-faults.js');
    return await blame(this.driver, table, quarantined ?? this.driver.quarantined());
  }

  /** Lists the kernel's state. */
  private async list(scope: SyncScope): Promise<void> {
    const { driver } = this;
    this.isKnown = false;
    this.flows = 'all';
    const listing = await driver.list(scope);
    const lost = scope.isFirst ? [] : driver.losses(listing);
    if (lost.length > 0) this.repairs = lost;
    this.keeps = driver.readBack(listing, scope);
  }

  private release(table: FamilyTable): void {
    this.keeps = false;
    this.flows = 'all';
    this.driver.release(table);
  }

  private noteFlows({ frontends, node }: TableChange): void {
    // With changed settings node ports are on other addresses of the node: any flow may belong to another frontend.
    if (node) this.flows = 'all';
    if (this.flows !== 'all') for (const key of frontends) if (isDatagramKey(key)) this.flows.add(key);
  }

  private takeFlows({ released = [] }: Delivered): SyncReport['flows'] {
    const { flows } = this;
    if (flows !== 'all') {
      for (const key of released) if (isDatagramKey(key)) flows.add(key);
      if (flows.size === 0) return NO_FLOWS;
    }
    this.flows = new Set();
    return flows;
  }

  private noteGone(table: FamilyTable): void {
    for (const key of this.driver.going())
      if (isDatagramKey(key) && table.frontend(key) === undefined) this.gone.add(key);
  }

  goneFlows(): ReadonlySet<FrontendKey> {
    const { notes } = this.driver;
    if (notes === null) return this.gone;
    return new Set(this.isKnown ? notes.keys() : []);
  }

  async clearGoneFlows(keys: ReadonlySet<FrontendKey>): Promise<void> {
    const { notes } = this.driver;
    if (notes === null) {
      for (const key of keys) this.gone.delete(key);
      return;
    }
    const gone = this.goneFlows();
    const noted = [...keys].filter((key) => gone.has(key));
    if (noted.length === 0) return;
    await this.calls.change(async (mark) => {
      this.isKnown = false;
      await notes.remove(noted, this.wasFull);
      // A sync that began meanwhile decides whether the kernel is known.
      if (this.calls.isQuiet(mark)) this.isKnown = true;
    });
  }

  /** An audit in flight may have listed too early: one more comparison serves all callers since then. */
  audit(): Promise<boolean> {
    if (this.looking === null && this.nextAudit === null) return this.auditNow();
    return (this.nextAudit ??= this.auditNext());
  }

  private async auditNext(): Promise<boolean> {
    // The failure is reported to the caller of that audit.
    while (this.looking !== null) await this.looking.catch(() => false);
    this.nextAudit = null;
    return await this.auditNow();
  }

  private auditNow(): Promise<boolean> {
    return this.alone(() => this.audits.take(() => this.compare()));
  }

  private async compare(): Promise<boolean> {
    const { table, driver } = this;
    const { isKnown } = await this.quiet();
    if (!isKnown || table === null) return false;
    const differs = await driver.compare(table, () => this.quiet());
    if (differs) this.differs = true;
    return differs;
  }

  async probe(): Promise<boolean> {
    // A second, concurrent probe would find the same.
    if (this.looking !== null) return false;
    if (this.driver.polls === 'everything' && this.isKnown && this.audits.isDue) return await this.audit();
    if (!this.probes.isDue) return false;
    return await this.alone(() => this.probes.take(() => this.driver.probe(() => this.quiet())));
  }

  private async alone(look: () => Promise<boolean>): Promise<boolean> {
    try {
      return await (this.looking = look());
    } finally {
      this.looking = null;
    }
  }

  /** Resolves when no sync changes the kernel. */
  async quiet(): Promise<Quiet> {
    const mark = await this.calls.quiet();
    return { isKnown: this.isKnown, lasts: () => this.calls.isQuiet(mark) };
  }

  end(): void {
    this.driver.end();
  }

  dump(plan: FamilyTable): Promise<readonly string[]> {
    return this.driver.print(plan, null);
  }

  async inspect(plan: FamilyTable, scope: PacketScope, affinity: AffinityQuestion | null): Promise<Inspection> {
    const lines = await this.driver.print(plan, scope);
    if (affinity === null || affinity.source === null) return { lines, remembered: null };
    return { lines, ...(await this.driver.remembered(scope, affinity, plan)) };
  }

  refused(): Promise<readonly RefusedPackets[]> {
    return this.driver.refused();
  }

  unremembered(): Promise<readonly UnrememberedClients[] | null> {
    return this.driver.unremembered();
  }
}

const NO_FLOWS: ReadonlySet<FrontendKey> = new Set();

/** Whether a comparison found a difference with no sync in between: a difference during a sync proves nothing. */
export async function undisturbed(
  quiet: () => Promise<Quiet>,
  compare: () => Promise<boolean>,
  attempts = 1,
): Promise<boolean> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const { isKnown, lasts } = await quiet();
    if (!isKnown) return false;
    const differs = await compare();
    if (lasts()) return differs;
  }
  return false;
}
