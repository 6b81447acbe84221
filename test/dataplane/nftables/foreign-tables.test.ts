import t from 'tap';
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
    `a table that kube-proxy left is taken over, then cleaned${lateRelease ? ', on kernels before 6.2' : ''}`,
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

t.test('foreign objects that cannot be removed are a problem, not a failure', async (t) => {
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
