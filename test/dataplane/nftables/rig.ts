import type { Family } from '../../../src/base/ip.js';
import type { SyncReport } from '../../../src/dataplane/contract.js';
import { NftablesFamily } from '../../../src/dataplane/nftables/family.js';
import type { NftElementsOperation, NftOperation, NftTransaction } from '../../../src/native/contract.js';
import type { PlanSettings } from '../../../src/plan/facts.js';
import type { ForwardingTable } from '../../../src/plan/forwarding-table.js';
import { Planner } from '../../../src/plan/planner.js';
import { printTable } from '../../../src/plan/text.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { Store } from '../../../src/state/store.js';
import type { SourceWriter } from '../../../src/state/writer.js';
import { loadCompiler } from '../../support/fake-kernel/compiler.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { planSettings } from '../../support/plan-settings.js';
import { node, serviceCIDR } from '../../support/rows.js';

export const compiler = loadCompiler();

/** This node, and where Services have their addresses. */
export const NODE_ROWS: readonly Row[] = [
  node('me', ['192.168.0.2', '2001:db8::1'], { zone: 'zone-a' }),
  serviceCIDR('kubernetes', ['10.96.0.0/12', 'fd00:96::/112']),
];

/** One family of one process on a fake kernel, with the planning before it. */
export class Rig {
  readonly table: ForwardingTable;
  dataplane: NftablesFamily;
  private readonly store = new Store();
  private readonly writer: SourceWriter;
  private readonly planner: Planner;

  constructor(
    readonly kernel: FakeKernel = new FakeKernel(compiler),
    readonly family: Family = 'IPv4',
    settings: Partial<PlanSettings> = {},
  ) {
    this.writer = this.store.register('test');
    this.planner = new Planner(planSettings(settings));
    this.table = this.planner.tables[family];
    this.dataplane = this.process();
  }

  /** Rows that come, and rows that go. */
  commit(rows: readonly Row[], gone: readonly RowRef[] = []): void {
    this.writer.apply([
      ...rows.map((row) => ({ type: 'upsert' as const, row })),
      ...gone.map((ref) => ({ type: 'remove' as const, ref })),
    ]);
  }

  /** Whether the source could not read something from its start on. */
  gaps(present: boolean): void {
    this.writer.gaps(present);
  }

  plan(): void {
    this.planner.update(this.store.snapshot, this.store.takeChanges());
  }

  /** @param full after somebody else did something to the ruleset, so that it cannot be skipped. */
  async sync(full = false): Promise<SyncReport> {
    if (full) this.kernel.touch();
    this.plan();
    const report = await this.dataplane.apply(this.table, this.table.takeChange(), { full });
    await report.aside;
    return report;
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

  /** Transactions committed while something was done. */
  async during(work: () => Promise<unknown>): Promise<readonly NftTransaction[]> {
    const before = this.kernel.committed.length;
    await work();
    return this.kernel.committed.slice(before);
  }

  /** On a clock that stands still: no search for clients takes long, however busy the machine is. */
  private process(): NftablesFamily {
    return new NftablesFamily(this.kernel, this.family, undefined, undefined, () => 0);
  }
}

/** Commands of transactions as `add chain dispatch`, `add rule dispatch`, in order. */
export function commandsOf(transactions: readonly NftTransaction[]): readonly string[] {
  return transactions.flatMap(({ operations }) =>
    operations.flatMap((operation) => {
      if (operation.type !== 'commands') return [];
      type Objects = Readonly<Record<string, { readonly name?: string; readonly chain?: string }>>;
      return operation.commands.flatMap((command) =>
        Object.entries(command as Readonly<Record<string, Objects>>).flatMap(([verb, objects]) =>
          Object.entries(objects).map(([kind, body]) => `${verb} ${kind} ${body.name ?? body.chain ?? ''}`),
        ),
      );
    }),
  );
}

export function elementsOf(transactions: readonly NftTransaction[]): readonly NftElementsOperation[] {
  return transactions.flatMap(({ operations }) => operations.filter((operation) => operation.type === 'elements'));
}

/** `add frontends 1` per operation. */
export function elementLines(transactions: readonly NftTransaction[]): readonly string[] {
  return elementsOf(transactions).map(({ verb, set, count }) => `${verb} ${set.replace(/-\d+$/, '')} ${count}`);
}

type Command = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export const where = { family: 'ip', table: 'kube-proxy' } as const;

/** Somebody else's transaction. */
export async function change(kernel: FakeKernel, ...operations: readonly (Command | NftOperation)[]): Promise<void> {
  await kernel.nftTransact({
    ...where,
    operations: operations.map((operation) =>
      isOperation(operation) ? operation : { type: 'commands', commands: [operation] },
    ),
  });
}

function isOperation(operation: Command | NftOperation): operation is NftOperation {
  return operation.type === 'commands' || operation.type === 'elements';
}

/** One element, its bytes in hexadecimal. */
export function element(
  verb: 'add' | 'delete',
  set: string,
  key: string,
  data: string | null = null,
  chain: string | null = null,
): NftOperation {
  const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  return {
    type: 'elements',
    verb,
    set,
    count: 1,
    keyLength: bytes(key).length,
    keys: bytes(key),
    keyEnds: null,
    dataLength: data === null ? 0 : bytes(data).length,
    data: data === null ? null : bytes(data),
    gotoChains: chain === null ? null : [chain],
    comments: null,
  };
}
