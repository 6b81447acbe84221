import t from 'tap';
import { Reconciler } from '../../src/dataplane/reconciler.js';
import { Planner } from '../../src/plan/planner.js';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import type { Row, RowRef } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings } from '../support/plan-settings.js';
import { service, slice } from '../support/rows.js';
import { ToyKernel, ToyTable } from '../support/toy-mode/kernel.js';
import { ToyDriver } from '../support/toy-mode/mode.js';

/** What is decided for every mode alike, shown with the least driver that there is. */

const WEB = service('web', { clusterIPs: ['10.96.0.1'], ports: [{ port: 53, protocol: 'UDP' }] });
const OTHER = service('other', { clusterIPs: ['10.96.0.2'], ports: [{ port: 53, protocol: 'UDP' }] });
const REFUSED = { type: 'refuse', errno: 'ENOMEM', operation: null } as const;
const LOST = { type: 'lose-ack' } as const;
const WEB_KEY = '10.96.0.1:53/UDP';
const OTHER_KEY = '10.96.0.2:53/UDP';

class Scene {
  now = 0;
  driver: ToyDriver;
  dataplane: Reconciler<ToyTable | null>;
  readonly table: ForwardingTable;
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings());

  constructor(readonly kernel = new ToyKernel()) {
    this.table = this.planner.tables.IPv4;
    this.driver = new ToyDriver(kernel, 'IPv4');
    this.dataplane = new Reconciler(this.driver, () => this.now);
  }

  commit(rows: readonly Row[], gone: readonly RowRef[] = []): void {
    this.writer.apply([
      ...rows.map((row) => ({ type: 'upsert' as const, row })),
      ...gone.map((ref) => ({ type: 'remove' as const, ref })),
    ]);
  }

  unsynced(present: boolean): void {
    this.writer.unsynced(present);
  }

  sync(full = false): ReturnType<Reconciler<ToyTable | null>['apply']> {
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    return this.dataplane.apply(this.table, this.table.takeChange(), { full });
  }

  async held(): Promise<readonly string[]> {
    const table = await this.kernel.read('IPv4');
    return [...(table?.frontends() ?? [])].map(({ key }) => key).sort();
  }

  /** Somebody else empties the kernel. */
  async flush(): Promise<void> {
    await this.kernel.replace('IPv4', null);
  }
}

async function started(...rows: readonly Row[]): Promise<Scene> {
  const scene = new Scene();
  scene.commit(rows);
  await scene.sync();
  return scene;
}

function gone(name: string): readonly RowRef[] {
  return [{ kind: 'Service', namespace: 'default', name }];
}

t.test('after a failed sync everything is listed, and the failure is not reported as a loss', async (t) => {
  for (const fault of [LOST, REFUSED]) {
    const scene = await started(WEB);
    scene.kernel.faults.next(fault);
    scene.commit([OTHER]);
    await t.rejects(scene.sync());
    const { full, flows, repairs } = await scene.sync();
    t.same([full, flows, repairs], [true, 'all', []]);
    t.same(await scene.held(), [WEB_KEY, OTHER_KEY]);
    t.match(await scene.sync(), { full: false, transactions: 0, flows: new Set() });
  }
});

t.test('losses are reported once, by the sync that repaired them', async (t) => {
  const scene = await started(WEB);
  await scene.flush();
  scene.kernel.faults.next(REFUSED);
  await t.rejects(scene.sync(true));
  t.same((await scene.sync()).repairs, ['the table was another']);
  t.same((await scene.sync(true)).repairs, []);
});

t.test('rules that the plan lacks stay while sources are unsynced, through failures and listings', async (t) => {
  const before = await started(WEB, OTHER);
  const scene = new Scene(before.kernel);
  scene.unsynced(true);
  scene.commit([]);
  await scene.sync();
  t.same(await scene.held(), [WEB_KEY, OTHER_KEY]);
  await scene.sync(true);
  t.same(await scene.held(), [WEB_KEY, OTHER_KEY]);
  scene.commit([WEB]);
  await scene.sync();
  scene.commit([], gone('web'));
  await scene.sync();
  t.same(await scene.held(), [OTHER_KEY], 'what the plan did name goes when the plan says so');
  scene.unsynced(false);
  const { full, flows } = await scene.sync();
  t.same([full, flows, await scene.held()], [false, 'all', []], 'without another listing');
});

t.test('removed UDP frontends are remembered until their flows are deleted, by the next process too', async (t) => {
  const scene = await started(WEB, OTHER);
  scene.commit([], gone('web'));
  t.same((await scene.sync()).flows, new Set([WEB_KEY]));
  const next = new Scene(scene.kernel);
  next.commit([OTHER]);
  await next.sync();
  t.same(next.dataplane.goneFlows(), new Set([WEB_KEY]));
  scene.kernel.faults.next(REFUSED);
  await t.rejects(next.dataplane.clearGoneFlows(new Set([WEB_KEY])));
  t.same(next.dataplane.goneFlows(), new Set(), 'the notes are unknown');
  t.equal((await next.sync()).full, true);
  await next.dataplane.clearGoneFlows(new Set([WEB_KEY, OTHER_KEY]));
  t.same(next.dataplane.goneFlows(), new Set());
  t.match(await next.sync(), { full: false, transactions: 0 });
});

t.test('after a sync that fails while it removes a note, everything is read again', async (t) => {
  const scene = await started(WEB);
  scene.commit([], gone('web'));
  await scene.sync();
  const { notes } = scene.driver;
  const remove = notes.remove.bind(notes);
  notes.remove = async (keys, wasFull) => {
    await remove(keys, wasFull);
    scene.kernel.faults.next(REFUSED);
    scene.commit([OTHER]);
    await t.rejects(scene.sync());
  };
  await scene.dataplane.clearGoneFlows(scene.dataplane.goneFlows());
  t.match(await scene.sync(), { full: true }, 'it lists what the kernel holds');
  t.same(await scene.held(), [OTHER_KEY]);
});

t.test('an audit finds external changes, and nothing after the repair', async (t) => {
  const scene = await started(WEB);
  t.equal(await scene.dataplane.audit(), false);
  await scene.flush();
  t.equal(await scene.dataplane.audit(), true);
  scene.driver.isUntouched = () => Promise.resolve(true);
  t.match(await scene.sync(true), { full: true, repairs: ['the table was another'] }, 'whatever the driver says');
  t.equal(await scene.dataplane.audit(), false);
  t.equal((await scene.sync(true)).full, false, 'a listing would show nothing new');
});

t.test('there is no audit before the first listing', async (t) => {
  const scene = new Scene();
  let looks = 0;
  scene.driver.compare = () => Promise.resolve(++looks > 0);
  t.equal(await scene.dataplane.audit(), false);
  scene.commit([WEB]);
  scene.kernel.faults.next(LOST);
  await t.rejects(scene.sync());
  t.equal(await scene.dataplane.audit(), false);
  t.equal(looks, 0);
});

t.test('requests for an audit during an audit share one more', async (t) => {
  const scene = await started(WEB);
  const ends: ((differs: boolean) => void)[] = [];
  scene.driver.compare = () => new Promise((resolve) => ends.push(resolve));
  const first = scene.dataplane.audit();
  const later = [scene.dataplane.audit(), scene.dataplane.audit()];
  await new Promise(setImmediate);
  t.equal(ends.length, 1);
  t.equal(await scene.dataplane.probe(), false, 'a probe would find nothing else');
  ends[0]?.(false);
  t.equal(await first, false);
  await new Promise(setImmediate);
  t.equal(ends.length, 2);
  ends[1]?.(true);
  t.same(await Promise.all(later), [true, true]);
});

t.test('full probes take a hundredth of the time, cheap ones two', async (t) => {
  const scene = await started(WEB);
  const looks: string[] = [];
  scene.driver.compare = () => {
    looks.push(`all ${scene.now}`);
    scene.now += 100;
    return Promise.resolve(false);
  };
  scene.driver.probe = () => {
    looks.push(`little ${scene.now}`);
    scene.now += 20;
    return Promise.resolve(false);
  };
  scene.driver.polls = 'everything';
  for (scene.now = 0; scene.now < 22_000; scene.now += 1000) await scene.dataplane.probe();
  t.same(looks.filter((look) => look.startsWith('all')).length, 3, looks.join());
  const little = looks.filter((look) => look.startsWith('little'));
  t.ok(little.length >= 10 && little.length <= 20, looks.join());
  looks.length = 0;
  scene.driver.polls = 'little';
  for (scene.now = 100_000; scene.now < 120_000; scene.now += 1000) await scene.dataplane.probe();
  t.notOk(
    looks.some((look) => look.startsWith('all')),
    'where what costs little tells of everything it is all',
  );
  t.ok(looks.length > 10, looks.join());
});

t.test('a comparison reports nothing if a sync began meanwhile', async (t) => {
  const scene = await started(WEB);
  const { kernel } = scene;
  const read = kernel.read.bind(kernel);
  let isRead = false;
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  kernel.read = async (family) => {
    const table = await read(family);
    isRead = true;
    await held;
    return table;
  };
  const audit = scene.dataplane.audit();
  await until(() => isRead);
  scene.commit([OTHER, slice('other', [{ address: '10.0.0.1' }])]);
  const synced = scene.sync();
  goOn();
  await synced;
  t.equal(await audit, false);
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate);
}
