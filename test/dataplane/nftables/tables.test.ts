import t from 'tap';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import type { EndpointSliceRow, Row } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { change, compiler, element, elementLines, elementsOf, NODE_ROWS, Rig } from './rig.js';

/** Tables of slots in the kernel: how they get there, and what a change of them costs. */

const HASHED = { by: 'address', unreadable: [] } as const;

const PLAIN: ServiceText = { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] };

function web(fields: ServiceText = {}): Row {
  return service('web', { ...PLAIN, balance: HASHED, ...fields });
}

function pods(count: number, name = 'a', weight?: number): EndpointSliceRow {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    address: `10.0.${name.charCodeAt(0)}.${index + 1}`,
    node: 'other',
  }));
  const row = slice('web', endpoints, { name, ports: [{ port: 8080 }] });
  return weight === undefined ? row : { ...row, weight };
}

async function started(...rows: readonly Row[]): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, ...rows]);
  await rig.sync();
  return rig;
}

/** Slots of the cluster IP by endpoint, as the kernel has them. */
async function slots(rig: Rig): Promise<ReadonlyMap<string, number>> {
  const dump = await rig.dataplane.dump(rig.table);
  const found = dump.flatMap((line) => / 10\.96\.0\.10:80\/TCP share (\S+) (\d+)\//.exec(line)?.slice(1) ?? []);
  return new Map(found.flatMap((each, index) => (index % 2 === 0 ? [[each, Number(found[index + 1])] as const] : [])));
}

t.test('slot tables are filled, and dump prints the same as plan', async (t) => {
  const rig = await started(web(), pods(10));
  t.same(await rig.difference(), []);
  const counts = [...(await slots(rig)).values()];
  t.equal(counts.length, 10);
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    251,
  );
  const chains = [...(rig.kernel.table('ip')?.chains.keys() ?? [])].filter((name) => name.includes('hash'));
  t.match(chains.sort(), [
    /^external-hash-address-251-shard|^nodeport-external-hash-address-251$/,
    'nodeport-pick-hash-address-251',
    /^pick-hash-address-251-shard-\d$/,
  ]);
});

t.test('a removed endpoint changes only its slots, in one transaction', async (t) => {
  const rig = await started(web(), pods(10));
  const transactions = await rig.during(async () => {
    rig.commit([pods(9)]);
    await rig.sync();
  });
  t.equal(transactions.length, 1);
  const changed = elementsOf(transactions).reduce((sum, { count }) => sum + count, 0);
  // Deletions and additions for the cluster IP and the node port: its own slots, and few others.
  t.ok(changed <= 4 * 45, `${changed} elements`);
  t.same(await rig.difference(), []);
  const nothing = await rig.during(async () => {
    rig.commit([pods(9)]);
    await rig.sync();
  });
  t.same(elementLines(nothing), []);
});

t.test('a changed weight moves slots only', async (t) => {
  const rig = await started(web({ balance: { by: null, unreadable: [] } }), pods(2, 'a', 1), pods(2, 'b', 3));
  t.same(
    [...(await slots(rig)).values()].map((count) => Math.round(count / 31.4)),
    [1, 1, 3, 3],
  );
  const transactions = await rig.during(async () => {
    rig.commit([pods(2, 'b', 1)]);
    await rig.sync();
  });
  t.same(await rig.difference(), [], 'equal weights take no table');
  t.same([...(await slots(rig)).keys()], []);
  t.ok(transactions.length > 0);
  rig.commit([pods(2, 'b', 0)]);
  await rig.sync();
  t.same(await rig.difference(), []);
  const dump = (await rig.dataplane.dump(rig.table)).join('\n');
  t.notMatch(dump, /endpoint 10\.0\.98/, 'weight 0: no new connections');
});

t.test('a restart finds its slot tables and sends nothing', async (t) => {
  const rig = await started(web({ externalTrafficPolicy: 'Local', affinitySeconds: 60 }), pods(10), pods(3, 'b', 2));
  rig.restart();
  const transactions = await rig.during(() => rig.sync(true));
  t.same(transactions, []);
  t.same(await rig.difference(), []);
});

t.test('a slot that was changed or removed externally is found and repaired', async (t) => {
  const rig = await started(web(), pods(10));
  const before = await slots(rig);
  const key = (slot: string): string => `${slot} 06000000 75800000`;
  await change(rig.kernel, element('delete', 'nodeport-endpoints', key('05000000')));
  t.equal(await rig.dataplane.audit(), true);
  const report = await rig.sync(true);
  t.match(report.repairs.join(), /nodeport:30080\/TCP was altered/);
  t.same(await rig.difference(), []);
  t.same(await slots(rig), before);
  await change(
    rig.kernel,
    element('delete', 'nodeport-endpoints', key('06000000')),
    element('add', 'nodeport-endpoints', key('06000000'), '0a006101 1f900000'),
    element('delete', 'nodeport-endpoints', key('07000000')),
    element('add', 'nodeport-endpoints', key('07000000'), '0a006102 1f900000'),
  );
  t.not((await rig.difference()).length, 0, 'dump shows it, whatever the shares are');
  await rig.sync(true);
  t.same(await rig.difference(), []);
});

t.test('slot tables come, grow, shrink and go, and leave nothing behind', async (t) => {
  const plain = service('web', PLAIN);
  const rig = await started(plain, pods(3));
  const names = (): readonly string[] => [...(rig.kernel.table('ip')?.chains.keys() ?? [])].sort();
  const before = names();
  const steps: readonly (readonly Row[])[] = [
    [web()],
    [pods(20)],
    [web({ balance: { by: 'address-port', unreadable: [] } })],
    [pods(60)],
    [pods(1)],
    [pods(0)],
    [pods(12)],
    [web({ affinitySeconds: 60 })],
    [web({ externalTrafficPolicy: 'Local' })],
    [plain, pods(3)],
  ];
  for (const rows of steps) {
    rig.commit(rows);
    await rig.sync();
    t.same(await rig.difference(), []);
  }
  rig.now += LINGER_MS;
  for (let { dueAt } = await rig.sync(); dueAt !== undefined; { dueAt } = await rig.sync());
  t.same(names(), before);
});
