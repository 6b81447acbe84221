import type { Family } from '../../src/base/ip.js';
import type { FamilyDataplane, SyncReport } from '../../src/dataplane/contract.js';
import type { PlanSettings } from '../../src/plan/facts.js';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { Planner } from '../../src/plan/planner.js';
import { printTable } from '../../src/plan/text.js';
import type { Row, RowRef } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter } from '../../src/state/writer.js';
import { planSettings } from './plan-settings.js';

/** One family of one process on a fake kernel, with the planning before it. A mode's own says what its kernel and its processes are. */
export abstract class FamilyRig<Kernel, Process extends FamilyDataplane> {
  readonly table: ForwardingTable;
  abstract dataplane: Process;
  readonly store = new Store();
  private readonly writer: SourceWriter;
  private readonly planner: Planner;

  /** @param defaults settings as an unconfigured process in this mode has them, where they are not those of `planSettings`. */
  protected constructor(
    readonly kernel: Kernel,
    readonly family: Family,
    private readonly defaults: Partial<PlanSettings>,
    settings: Partial<PlanSettings>,
  ) {
    this.writer = this.store.register('test');
    this.planner = new Planner(planSettings({ ...defaults, ...settings }));
    this.table = this.planner.tables[family];
  }

  /** A process on the kernel that has seen nothing yet. */
  protected abstract process(): Process;

  /** The next sync is to compare everything, and must not be able to skip that. */
  protected abstract mistrust(): void;

  /** Rows that come, and rows that go. */
  commit(rows: readonly Row[], gone: readonly RowRef[] = []): void {
    this.writer.apply([
      ...rows.map((row) => ({ type: 'upsert' as const, row })),
      ...gone.map((ref) => ({ type: 'remove' as const, ref })),
    ]);
  }

  /** Whether the source could not read something from its start on. */
  unsynced(present: boolean): void {
    this.writer.unsynced(present);
  }

  configure(settings: Partial<PlanSettings>): void {
    this.planner.setSettings(planSettings({ ...this.defaults, ...settings }));
  }

  plan(): void {
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }

  /** With what goes on beside further syncs. */
  async sync(full = false): Promise<SyncReport> {
    if (full) this.mistrust();
    this.plan();
    const report = await this.dataplane.apply(this.table, this.table.takeChange(), { full });
    await report.background;
    return report;
  }

  /** A new process on the same kernel, which plans the same. */
  restart(): void {
    this.dataplane = this.process();
  }

  /** What the kernel has and the plan has not (`+`), and the other way round (`-`). */
  async difference(): Promise<readonly string[]> {
    const plan = printTable(this.table);
    const dump = await this.dataplane.dump(this.table);
    const [dumped, planned] = [new Set(dump), new Set(plan)];
    return [
      ...dump.filter((line) => !planned.has(line)).map((line) => `+ ${line}`),
      ...plan.filter((line) => !dumped.has(line)).map((line) => `- ${line}`),
    ];
  }
}

/** What was committed to a kernel while something was done. */
export async function committedDuring<Transaction>(
  kernel: { readonly committed: readonly Transaction[] },
  work: () => Promise<unknown>,
): Promise<readonly Transaction[]> {
  const before = kernel.committed.length;
  await work();
  return kernel.committed.slice(before);
}
