import t from 'tap';
import { nftablesDataplane } from '../../../src/dataplane/nftables/driver.js';
import { Generation } from '../../../src/dataplane/generation.js';
import type { NftOperation } from '../../../src/native/contract.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { address, node, service, slice } from '../../support/rows.js';
import { change, commandsOf, compiler, element, elementLines, elementsOf, NODE_ROWS, Rig, webOf } from './rig.js';
import { ROWS, started, on, WEB_NODE_PORT } from './family-scene.js';

/** One family on the fake kernel: what it sends at a start, and what it makes of tables that someone else touched. */

t.test('a cold start is one transaction, structure before elements', async (t) => {
  const rig = new Rig();
  rig.commit(ROWS);
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 1);
  const kinds = (sent[0]?.operations ?? []).map((operation) =>
    operation.type === 'commands' ? 'commands' : operation.verb,
  );
  t.equal(kinds[0], 'commands', 'structure first');
  t.equal(kinds[kinds.length - 1], 'commands', 'the rules that use it last');
  t.ok(kinds.slice(1, -1).every((kind) => kind === 'add'));
  const last = sent[0]?.operations[kinds.length - 1];
  t.ok(
    last?.type === 'commands' && !JSON.stringify(last.commands).includes('"pick-'),
    'class chains are not among the last',
  );
  t.same(await rig.difference(), []);
});

t.test('a table that is as planned is adopted without a transaction', async (t) => {
  const rig = await started();
  rig.restart();
  const sent = await rig.during(async () => {
    const report = await rig.sync();
    t.match(report, {
      full: true,
      transactions: 0,
      elementOperations: 0,
      ruleOperations: 0,
      repairs: [],
      problems: [],
    });
  });
  t.same(sent, []);
});

t.test('an altered rule: only its chain is written again', async (t) => {
  for (const chain of ['dispatch', 'check-frontends', 'pick-4-shard-', 'nat-postrouting']) {
    const rig = await started();
    const name = [...(rig.kernel.table('ip')?.chains.keys() ?? [])].find((held) => held.startsWith(chain)) ?? '';
    await change(rig.kernel, { add: on('rule', { chain: name, expr: [{ drop: null }] }) });
    rig.restart();
    const sent = await rig.during(() => rig.sync());
    t.equal(sent.length, 1);
    t.same(new Set(commandsOf(sent)), new Set([`flush chain ${name}`, `add rule ${name}`]), name);
    t.same(elementsOf(sent), []);
    t.same(await rig.difference(), []);
  }
});

t.test('a running process finds the altered rule at its next full sync and reports it', async (t) => {
  const rig = await started();
  await change(rig.kernel, { flush: on('chain', { name: 'dispatch' }) });
  await change(rig.kernel, element('delete', 'nodeport-frontends', WEB_NODE_PORT));
  const report = await rig.sync(true);
  t.same(report.repairs, ['chain dispatch was altered', 'frontend nodeport:30080/TCP was altered']);
  t.same(await rig.difference(), []);
});

t.test('a table deleted externally is made again, and reported once', async (t) => {
  const rig = await started();
  await change(rig.kernel, { delete: { table: { family: 'ip', name: 'kube-proxy' } } });
  const report = await rig.sync(true);
  t.ok(report.repairs.includes('chain dispatch was lost'));
  t.ok(report.repairs.length <= 21, 'not every object by name');
  t.same(await rig.difference(), []);
  t.same((await rig.sync(true)).repairs, []);
});

t.test('a table deleted externally before a change: the failure leads to a full comparison', async (t) => {
  const rig = await started();
  await change(rig.kernel, { delete: { table: { family: 'ip', name: 'kube-proxy' } } });
  rig.commit([slice('web', [{ address: '10.0.1.1', node: 'me' }])]);
  await t.rejects(rig.sync(), /ENOENT/);
  t.equal((await rig.sync()).full, true);
  t.same(await rig.difference(), []);
});

t.test('a set with a foreign declaration: the table is made anew in one transaction', async (t) => {
  const kernel = new FakeKernel(compiler);
  await change(
    kernel,
    { add: { table: { family: 'ip', name: 'kube-proxy' } } },
    { add: on('set', { name: 'hairpin-pairs', type: 'ipv4_addr' }) },
    { add: on('set', { name: 'mine', type: 'ipv4_addr' }) },
  );
  const rig = new Rig(kernel);
  rig.commit(ROWS);
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 1);
  t.same(commandsOf(sent).slice(0, 3), ['add table kube-proxy', 'delete table kube-proxy', 'add table kube-proxy']);
  t.equal(kernel.table('ip')?.sets.has('mine'), false);
  t.same(await rig.difference(), []);
});

t.test('a table made anew has the size classes that Services need now', async (t) => {
  const rig = await started();
  rig.commit([webOf(8)]);
  await rig.sync();
  rig.commit([webOf(2)]);
  await rig.sync();
  await change(
    rig.kernel,
    { flush: on('chain', { name: 'masquerade-sources' }) },
    { delete: on('set', { name: 'hairpin-pairs' }) },
    { add: on('set', { name: 'hairpin-pairs', type: 'ipv4_addr' }) },
  );
  await rig.sync(true);
  t.same(await rig.difference(), []);
});

t.test('a table made anew keeps the flows that are to be deleted', async (t) => {
  const rig = await started();
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'dns' }]);
  await rig.sync();
  t.same([...rig.dataplane.goneFlows()], ['10.96.0.53:53/UDP']);
  await change(
    rig.kernel,
    { flush: on('chain', { name: 'masquerade-sources' }) },
    { delete: on('set', { name: 'hairpin-pairs' }) },
    {
      add: on('set', { name: 'hairpin-pairs', type: 'ipv4_addr' }),
    },
  );
  rig.restart();
  const sent = await rig.during(() => rig.sync());
  t.ok(commandsOf(sent).includes('delete table kube-proxy'));
  t.same([...rig.dataplane.goneFlows()], ['10.96.0.53:53/UDP']);
  await rig.dataplane.clearGoneFlows(new Set(['10.96.0.53:53/UDP', '10.96.0.54:53/UDP']));
  t.same([...rig.dataplane.goneFlows()], []);
  t.same(await rig.difference(), []);
});

t.test('a base chain on another hook, and a class chain on a hook, are made anew', async (t) => {
  const hooks = [
    { name: 'nat-prerouting', type: 'nat', hook: 'prerouting', prio: -50, policy: 'accept' },
    { name: 'dispatch', type: 'filter', hook: 'input', prio: 0, policy: 'accept' },
    { name: 'nodeport-pick-4', type: 'filter', hook: 'input', prio: 0, policy: 'accept' },
  ];
  for (const hook of hooks) {
    const kernel = new FakeKernel(compiler);
    await change(kernel, { add: { table: { family: 'ip', name: 'kube-proxy' } } }, { add: on('chain', hook) });
    const rig = new Rig(kernel);
    rig.commit(ROWS);
    const sent = await rig.during(() => rig.sync());
    t.equal(sent.length, 1, hook.name);
    t.same(await rig.difference(), []);
  }
});

t.test('a chain exists before a frontend jumps to it', async (t) => {
  const rig = await started();
  rig.commit([webOf(9)]);
  const grown = await rig.during(() => rig.sync());
  t.equal(grown.length, 2);
  t.same(elementsOf(grown.slice(0, 1)), [], 'chains, then elements');
  t.ok(commandsOf(grown).every((command) => /^add (?:chain|rule) (?:nodeport-)?(?:pick|external)-16/.test(command)));
  t.same(commandsOf(grown.slice(1)), []);
  rig.commit([webOf(3)]);
  t.equal((await rig.during(() => rig.sync())).length, 1, 'the smaller class has its chain still');
  rig.commit([
    service('new', { clusterIPs: ['10.96.0.12'], affinitySeconds: 77 }),
    slice('new', [{ address: '10.0.4.1' }]),
  ]);
  t.equal((await rig.during(() => rig.sync())).length, 1, 'nothing went to a frontend that was not there');
});

t.test('a class chain that was emptied and not deleted is filled again when needed', async (t) => {
  const rig = await started();
  // Nine endpoints and three again: the class of 16 is left behind.
  rig.commit([webOf(9)]);
  await rig.sync();
  rig.commit([webOf(3)]);
  await rig.sync();
  const { kernel } = rig;
  const refuseDeletion = kernel.nftTransact.bind(kernel);
  kernel.nftTransact = (transaction) => {
    const deletes = commandsOf([transaction]).some((command) => command.startsWith('delete chain'));
    if (deletes) kernel.faults.next({ type: 'refuse', errno: 'ENOMEM', operation: 0 });
    return refuseDeletion(transaction);
  };
  t.equal((await rig.sync(true)).problems.length, 1);
  rig.commit([webOf(9)]);
  await rig.sync();
  const destination = address('10.96.0.10');
  const packet = {
    source: address('10.0.0.9'),
    destination,
    port: 80,
    protocol: 'TCP',
    inputInterface: 'eth0',
  } as const;
  t.equal(rig.kernel.trace(packet, []).type, 'forward');
});

t.test('elements without meaning are removed, once', async (t) => {
  const rig = await started();
  const unexpected: readonly NftOperation[] = [
    element('add', 'nodeport-endpoints', `00000000 01000000 00500000`, '0a000101 00500000'),
    element('add', 'rejected-frontends', '0a600063 02000000 00500000'),
    element('add', 'hairpin-pairs', '0a000101 0a000102'),
    element('add', 'stale-nodeport-flows', '06000000 00000000'),
  ];
  await change(rig.kernel, ...unexpected);
  t.ok((await rig.difference()).length > 0);
  const sent = await rig.during(() => rig.sync(true));
  t.equal(sent.length, 1);
  t.equal(
    elementsOf(sent).reduce((sum, { count, verb }) => sum + (verb === 'delete' ? count : 100), 0),
    unexpected.length,
  );
  t.same(await rig.difference(), []);
  rig.commit([slice('web', [{ address: '10.0.1.1', node: 'me' }])]);
  t.match(await rig.sync(), { full: false, transactions: 1 }, 'the next change does not delete them again');
});

t.test('frontends, addresses and endpoints that no plan has are removed', async (t) => {
  const rig = await started();
  await change(
    rig.kernel,
    element('add', 'rejected-frontends', '0a600001 06000000 00500000'),
    element('add', 'cluster-addresses', '0a600001'),
    element('add', 'nodeport-endpoints', `05000000 ${WEB_NODE_PORT}`, '0a000101 00500000'),
  );
  rig.restart();
  const sent = await rig.during(() => rig.sync());
  t.same([...elementLines(sent)].sort(), [
    'delete cluster-addresses 1',
    'delete nodeport-endpoints 1',
    'delete rejected-frontends 1',
  ]);
  t.same(await rig.difference(), []);
});

t.test('a changed endpoint in a slot is overwritten', async (t) => {
  const rig = await started();
  const slot = `00000000 ${WEB_NODE_PORT}`;
  await change(
    rig.kernel,
    element('delete', 'nodeport-endpoints', slot),
    element('add', 'nodeport-endpoints', slot, '08080808 00500000'),
  );
  const report = await rig.sync(true);
  t.same(report.repairs, ['frontend nodeport:30080/TCP was altered']);
  t.same(await rig.difference(), []);
});

t.test('a change of the node changes rules only', async (t) => {
  const rig = await started();
  rig.commit([node('me', ['192.168.7.7'], { zone: 'zone-a' })]);
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 1);
  t.same(elementsOf(sent), []);
  t.same(
    new Set(commandsOf(sent).map((command) => command.replace(/^(add rule|flush chain) /, ''))),
    new Set(['dispatch', 'check-nodeports']),
  );
  t.same(await rig.difference(), []);
});

t.test('a full sync lists the table only after an external change', async (t) => {
  const kernel = new FakeKernel(compiler);
  const generation = new Generation(kernel);
  const rig = new Rig(kernel);
  const other = new Rig(kernel, 'IPv6');
  for (const each of [rig, other]) {
    each.dataplane = nftablesDataplane(kernel, each.family, generation);
    each.commit(ROWS);
    await each.sync();
  }
  const full = async (): Promise<boolean> => {
    const { listed } = kernel;
    const before = listed.length;
    const report = await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
    t.equal(listed.length > before, report.full);
    return report.full;
  };
  t.equal(await full(), false, 'no external change');
  other.commit([service('six', { clusterIPs: ['fd00:96::6'] })]);
  await other.sync();
  t.equal(await full(), false, 'our other family did');
  kernel.touch();
  t.equal(await full(), true, 'an external change');
  t.equal(await full(), false);
  kernel.faults.next({ type: 'lose-ack' });
  rig.commit([slice('web', [{ address: '10.0.1.1', node: 'me' }])]);
  await t.rejects(rig.sync(), /ENOBUFS/);
  t.equal(await full(), true, 'we do not know what we did');
  await change(kernel, { add: on('chain', { name: 'service-A' }) });
  t.equal(await full(), true, 'a chain was added externally');
  t.equal(await full(), true, 'which was removed: is it gone?');
  t.equal(await full(), false, 'it is');
});

t.test('a change is sent in the same turn of the event loop, before families without changes', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, service('web', { clusterIPs: ['10.96.0.10'] }), webOf(3)]);
  await rig.sync();
  const { kernel } = rig;
  const transact = kernel.nftTransact.bind(kernel);
  let sent = 0;
  kernel.nftTransact = (transaction) => {
    sent++;
    return transact(transaction);
  };
  rig.commit([webOf(2)]);
  rig.plan();
  const applied = rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: false });
  t.equal(sent, 1, 'before anything is waited for');
  t.match(await applied, { transactions: 1 });
});
