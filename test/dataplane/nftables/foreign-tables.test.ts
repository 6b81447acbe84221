import t from 'tap';
import { removalFromShared } from '../../../src/dataplane/nftables/shared-table.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { change, commandsOf, compiler, element, Rig } from './rig.js';
import { ROWS, started, on, WEB } from './family-scene.js';

/** A start on the table that somebody else left. */

/** As kube-proxy leaves its table: base chains of the same names, its own chains and maps that refer to each other. */
async function leaveForeignTable(kernel: FakeKernel): Promise<void> {
  const chains = [
    'service-ULMVA6XW-ns1/svc1/tcp/p80',
    'external-ULMVA6XW-ns1/svc1/tcp/p80',
    'services',
    'masquerading',
  ];
  await change(
    kernel,
    { add: { table: { family: 'ip', name: 'kube-proxy', comment: 'rules for kube-proxy' } } },
    { add: on('chain', { name: 'nat-prerouting', type: 'nat', hook: 'prerouting', prio: -100, policy: 'accept' }) },
    { add: on('chain', { name: 'nat-output', type: 'nat', hook: 'output', prio: -100, policy: 'accept' }) },
    ...chains.map((name) => ({ add: on('chain', { name }) })),
    { add: on('set', { name: 'cluster-ips', type: 'ipv4_addr' }) },
    { add: on('map', { name: 'service-ips', type: ['ipv4_addr', 'inet_proto', 'inet_service'], map: 'verdict' }) },
    element('add', 'service-ips', WEB, null, 'service-ULMVA6XW-ns1/svc1/tcp/p80'),
    { add: on('rule', { chain: 'external-ULMVA6XW-ns1/svc1/tcp/p80', expr: [{ goto: { target: chains[0] } }] }) },
    {
      add: on('rule', {
        chain: 'services',
        expr: [
          {
            vmap: {
              key: {
                concat: [
                  { payload: { protocol: 'ip', field: 'daddr' } },
                  { meta: { key: 'l4proto' } },
                  { payload: { protocol: 'th', field: 'dport' } },
                ],
              },
              data: '@service-ips',
            },
          },
        ],
      }),
    },
    { add: on('rule', { chain: 'nat-prerouting', expr: [{ jump: { target: 'services' } }] }) },
    { add: on('rule', { chain: 'nat-output', expr: [{ jump: { target: 'services' } }] }) },
  );
}

for (const lateRelease of [false, true]) {
  t.test(
    `a table that kube-proxy left is adopted, then cleaned${lateRelease ? ', on kernels before 6.2' : ''}`,
    async (t) => {
      const rig = new Rig(new FakeKernel(compiler, { lateRelease }));
      await leaveForeignTable(rig.kernel);
      rig.commit(ROWS);
      const sent = await rig.during(async () => {
        t.same((await rig.sync()).problems, []);
      });
      t.equal(sent.length, 3, 'ours, then theirs emptied, then theirs deleted');
      t.same(
        commandsOf(sent.slice(0, 1)).filter((command) => command.startsWith('delete')),
        [],
      );
      const table = rig.kernel.table('ip');
      const names = [...(table?.chains.keys() ?? []), ...(table?.sets.keys() ?? [])];
      t.same(
        names.filter(
          (name) => name.includes('/') || ['services', 'masquerading', 'cluster-ips', 'service-ips'].includes(name),
        ),
        [],
      );
      t.same(await rig.difference(), []);
      rig.restart();
      t.same(await rig.during(() => rig.sync()), []);
    },
  );
}

t.test("of another proxy's sets no elements are listed, however many sets there are", async (t) => {
  const rig = await started();
  await change(
    rig.kernel,
    { add: on('set', { name: 'affinity-ULMVA6XW-ns1/svc1/tcp/p80__10.0.1.1/80', type: 'ipv4_addr' }) },
    { add: on('set', { name: 'cluster-ips', type: 'ipv4_addr' }) },
  );
  rig.restart();
  rig.kernel.listed.length = 0;
  t.same((await rig.sync()).problems, []);
  const asked = rig.kernel.listed.flatMap(({ elements }) => elements ?? ['all']);
  t.ok(asked.includes('frontends'));
  t.same(
    asked.filter((name) => name === 'all' || name.startsWith('affinity-') || name === 'cluster-ips'),
    [],
  );
  t.same(await rig.difference(), []);
});

t.test('a large table of another proxy is removed, whatever leads where in it', async (t) => {
  const rig = await started();
  const numbers = Array.from({ length: 600 }, (_, number) => number);
  const chain = (kind: string, number: number): string => `${kind}-ULMVA6XW-ns1/svc${number}/tcp/p80`;
  await change(
    rig.kernel,
    ...['endpoint', 'external', 'service'].flatMap((kind) =>
      numbers.map((number) => ({ add: on('chain', { name: chain(kind, number) }) })),
    ),
    ...numbers.flatMap((number) => [
      { add: on('rule', { chain: chain('external', number), expr: [{ goto: { target: chain('service', number) } }] }) },
      { add: on('rule', { chain: chain('service', number), expr: [{ goto: { target: chain('endpoint', number) } }] }) },
    ]),
  );
  rig.restart();
  t.same((await rig.sync()).problems, []);
  t.same(
    [...(rig.kernel.table('ip')?.chains.keys() ?? [])].filter((name) => name.includes('/')),
    [],
  );
  t.same(await rig.difference(), []);
});

t.test('foreign objects that cannot be removed are reported, and the sync succeeds', async (t) => {
  const rig = await started();
  await change(rig.kernel, { add: on('chain', { name: 'service-A' }) });
  rig.restart();
  rig.kernel.faults.next({ type: 'refuse', errno: 'EBUSY', operation: 0 });
  const { problems } = await rig.sync();
  t.equal(problems.length, 1);
  t.match(problems[0], /^could not remove foreign objects \(service-A\): .*EBUSY/);
  t.same((await rig.sync(true)).problems, []);
  t.equal(rig.kernel.table('ip')?.chains.has('service-A'), false);
});

/** What `--cleanup` sends, as {@link commandsOf} has it; null when it deletes the table. */
async function removal(kernel: FakeKernel): Promise<readonly (readonly string[])[] | null> {
  const where = { family: 'ip', table: 'kube-proxy' } as const;
  const listing = await kernel.nftList(where.family, where.table, []);
  if (listing === null) throw new TypeError('no table');
  const transactions = removalFromShared(where, listing);
  return (
    transactions?.map((commands) => commandsOf([{ ...where, operations: [{ type: 'commands', commands }] }])) ?? null
  );
}

t.test('a table is deleted whole unless another proxy has rules in it', async (t) => {
  const rig = await started();
  t.equal(await removal(rig.kernel), null, 'ours alone');
  await change(
    rig.kernel,
    { add: on('chain', { name: 'service-A/b' }) },
    { add: on('chain', { name: 'external-A/b' }) },
    { add: on('set', { name: 'cluster-ips', type: 'ipv4_addr' }) },
  );
  t.equal(await removal(rig.kernel), null, 'our rules are in force, objects of another proxy are there');

  const bases = ['nat-prerouting', 'nat-output', 'nat-postrouting', 'filter-input', 'filter-forward', 'filter-output'];
  const all = [...bases, 'filter-prerouting-pre-dnat', 'filter-output-pre-dnat'];
  await change(rig.kernel, ...all.map((name) => ({ flush: on('chain', { name }) })), {
    add: on('rule', { chain: 'nat-prerouting', expr: [{ jump: { target: 'service-A/b' } }] }),
  });
  const [flushes = [], deletions = []] = (await removal(rig.kernel)) ?? [];
  const table = rig.kernel.table('ip');
  const own = (names: Iterable<string>, others: readonly string[]): readonly string[] =>
    [...names].filter((name) => !others.includes(name));
  const chains = own(table?.chains.keys() ?? [], [...all, 'service-A/b', 'external-A/b']);
  const sets = own(table?.sets.keys() ?? [], ['cluster-ips']);
  t.ok(chains.length > 10 && sets.length > 10);
  const verb = (word: string): readonly string[] =>
    [...chains.map((name) => `${word} chain ${name}`), ...sets.map((name) => `${word} set ${name}`)].sort();
  t.same([...flushes].sort(), verb('flush'));
  t.same([...deletions].sort(), verb('delete'));

  const kernel = new FakeKernel(compiler);
  await leaveForeignTable(kernel);
  t.same(await removal(kernel), [], 'nothing of ours is in it');
});
