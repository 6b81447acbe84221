import type { Family } from '../../../src/base/ip.js';
import type { SyncReport } from '../../../src/dataplane/contract.js';
import { IptablesFamily } from '../../../src/dataplane/iptables/family.js';
import type { NodeSettings } from '../../../src/dataplane/iptables/fixed-chains.js';
import { PacketCounters } from '../../../src/dataplane/iptables/packet-counters.js';
import type { IptablesOperation } from '../../../src/native/contract.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { ForwardingTable } from '../../../src/plan/forwarding-table.js';
import { Planner } from '../../../src/plan/planner.js';
import { printTable } from '../../../src/plan/text.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { Store } from '../../../src/state/store.js';
import type { SourceWriter } from '../../../src/state/writer.js';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { planSettings } from '../../support/plan-settings.js';
import { node } from '../../support/rows.js';

export const NODE_ROWS: readonly Row[] = [node('me', ['192.168.0.2', '2001:db8::1'], { zone: 'zone-a' })];

/** One family of one process on fake iptables, with the planning before it. */
export class Rig {
  readonly table: ForwardingTable;
  counters: PacketCounters;
  dataplane: IptablesFamily;
  settings: NodeSettings = { dropInvalid: true };
  /** Milliseconds since the process began; every full sync comes long after what was before. */
  private now = 0;
  private readonly store = new Store();
  private readonly writer: SourceWriter;
  private readonly planner: Planner;

  constructor(
    readonly kernel: FakeIptables = new FakeIptables(),
    readonly family: Family = 'IPv4',
    settings: Partial<PlanSettings> = {},
  ) {
    this.writer = this.store.register('test');
    this.planner = new Planner(modeSettings(settings));
    this.table = this.planner.tables[family];
    this.counters = new PacketCounters({ iptables: this.kernel, accounting: this.kernel }, 'nft');
    this.dataplane = this.process();
  }

  commit(rows: readonly Row[], gone: readonly RowRef[] = []): void {
    this.writer.apply([
      ...rows.map((row) => ({ type: 'upsert' as const, row })),
      ...gone.map((ref) => ({ type: 'remove' as const, ref })),
    ]);
  }

  gaps(present: boolean): void {
    this.writer.gaps(present);
  }

  configure(settings: Partial<PlanSettings>): void {
    this.planner.setSettings(modeSettings(settings));
  }

  sync(full = false): Promise<SyncReport> {
    if (full) this.now += 3_600_000;
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    return this.dataplane.apply(this.table, this.table.takeChange(), { full });
  }

  /** A new process on the same kernel, which plans the same. */
  restart(): void {
    this.dataplane = this.process();
  }

  /** What the kernel has and the plan has not (`+`), and the other way round (`-`). */
  async difference(): Promise<readonly string[]> {
    const plan = printTable(this.table);
    const dump = await this.dataplane.dump(this.table.node);
    return [
      ...dump.filter((line) => !plan.includes(line)).map((line) => `+ ${line}`),
      ...plan.filter((line) => !dump.includes(line)).map((line) => `- ${line}`),
    ];
  }

  /** `chain nat KUBE-SERVICES`, `delete-chain …`, `insert nat PREROUTING …`, of what was sent while something was done. */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    const before = this.kernel.committed.length;
    await work();
    return this.kernel.committed.slice(before).flatMap(({ operations }) => operations.map(printOperation));
  }

  private process(): IptablesFamily {
    this.counters = new PacketCounters({ iptables: this.kernel, accounting: this.kernel }, 'nft');
    return new IptablesFamily({
      addon: this.kernel,
      family: this.family,
      flavor: 'nft',
      settings: () => Promise.resolve(this.settings),
      counters: this.counters,
      now: () => this.now++,
    });
  }
}

/** Settings as an unconfigured process in this mode has them. */
function modeSettings(fields: Partial<PlanSettings>): PlanSettings {
  const traits = { guardsClusterAddresses: false, servesLocalhost: true };
  return planSettings({ nodePortAddresses: [], traits, ...fields });
}

function printOperation(operation: IptablesOperation): string {
  const verb = operation.type === 'rule' ? operation.verb : operation.type;
  return `${verb} ${operation.table} ${operation.chain}`;
}
