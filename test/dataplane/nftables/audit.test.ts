import t from 'tap';
import { parseAddress } from '../../../src/base/ip.js';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import type { NftTransaction } from '../../../src/native/contract.js';
import { frontendKey } from '../../../src/plan/frontend-key.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice } from '../../support/rows.js';
import { change, commandsOf, compiler, NODE_ROWS, Rig, webOf } from './rig.js';

/** The comparison beside syncs. */

async function started(): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([
    ...NODE_ROWS,
    service('web', { clusterIPs: ['10.96.0.10'] }),
    webOf(3),
    service('other', { clusterIPs: ['10.96.0.11'], affinitySeconds: 60 }),
    slice('other', [{ address: '10.0.2.1' }]),
  ]);
  await rig.sync();
  return rig;
}

function flush(chain: string): NftTransaction {
  const commands = [{ flush: { chain: { family: 'ip', table: 'kube-proxy', name: chain } } }];
  return { family: 'ip', table: 'kube-proxy', operations: [{ type: 'commands', commands }] };
}

/** Lets something happen in the middle of the next listing. */
function during(rig: Rig, work: () => Promise<unknown>): void {
  const list = rig.kernel.nftList.bind(rig.kernel);
  rig.kernel.nftList = async (family, table, elements) => {
    const listing = await list(family, table, elements);
    if (elements?.length === 0) return listing;
    rig.kernel.nftList = list;
    await work();
    return listing;
  };
}

t.test('an audit without an external change lists nothing', async (t) => {
  const rig = await started();
  const listings = rig.kernel.listed.length;
  t.equal(await rig.dataplane.audit(), false);
  t.equal(rig.kernel.listed.length, listings);
});

t.test('an external change of another table leads to one listing, without clients', async (t) => {
  const rig = await started();
  rig.kernel.touch();
  t.equal(await rig.dataplane.audit(), false);
  const elements = rig.kernel.listed.map((listing) => listing.elements ?? ['all']);
  t.notOk(elements.flat().includes('all'));
  const listings = rig.kernel.listed.length;
  t.equal(await rig.dataplane.audit(), false);
  t.equal(rig.kernel.listed.length, listings, 'and is trusted again');
});

t.test('an audit finds an external change, and the next full sync names and repairs it', async (t) => {
  const rig = await started();
  rig.kernel.foreign(flush('dispatch'));
  t.equal(await rig.dataplane.audit(), true);
  t.equal(await rig.dataplane.audit(), true, 'until it is repaired');
  t.same((await rig.sync(true)).repairs, ['chain dispatch was altered']);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('a set that was added externally is a difference', async (t) => {
  const rig = await started();
  const set = { family: 'ip', table: 'kube-proxy', name: 'endpoints-8', type: 'ipv4_addr' };
  rig.kernel.foreign({
    family: 'ip',
    table: 'kube-proxy',
    operations: [{ type: 'commands', commands: [{ add: { set } }] }],
  });
  t.equal(await rig.dataplane.audit(), true);
  await rig.sync(true);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('an audit reports no difference for changes by a sync meanwhile', async (t) => {
  const rig = await started();
  rig.kernel.touch();
  during(rig, async () => {
    rig.commit([webOf(9), service('new', { clusterIPs: ['10.96.0.12'], affinitySeconds: 90 })]);
    t.match(await rig.sync(), { full: false, transactions: 2 }, 'and the sync does not wait');
  });
  t.equal(await rig.dataplane.audit(), false);
  t.same(await rig.difference(), []);
});

t.test('an external change during a sync of something else is a difference', async (t) => {
  const rig = await started();
  rig.kernel.foreign(flush('dispatch'));
  during(rig, async () => {
    rig.commit([webOf(9)]);
    await rig.sync();
  });
  t.equal(await rig.dataplane.audit(), true);
});

t.test('an audit reports nothing if a sync fails or compares everything meanwhile', async (t) => {
  const rig = await started();
  rig.kernel.foreign(flush('dispatch'));
  during(rig, () => rig.sync(true));
  t.equal(await rig.dataplane.audit(), false);
  t.same(await rig.difference(), []);
});

t.test('an audit reports no difference for a sync that begins while it reads the generation', async (t) => {
  const rig = await started();
  const { kernel } = rig;
  kernel.touch();
  const [transact, ask] = [kernel.nftTransact.bind(kernel), kernel.nftGeneration.bind(kernel)];
  let sync: Promise<unknown> = Promise.resolve();
  kernel.nftGeneration = () => {
    kernel.nftGeneration = ask;
    rig.commit([webOf(9)]);
    sync = rig.sync();
    return ask();
  };
  kernel.nftTransact = async (transaction) => {
    const ack = await transact(transaction);
    // The kernel has done it and its answer is under way: longer than a listing takes, unless the audit waits for it.
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    return ack;
  };
  t.equal(await rig.dataplane.audit(), false, 'our own change is no difference');
  await sync;
  t.same(await rig.difference(), []);
});

t.test('two audits at once share one listing', async (t) => {
  const rig = await started();
  rig.kernel.touch();
  const listings = (): number => rig.kernel.listed.filter(({ elements }) => elements?.includes('frontends')).length;
  const before = listings();
  await Promise.all([rig.dataplane.audit(), rig.dataplane.audit()]);
  t.equal(listings(), before + 1);
});

t.test('an object that a sync changed during the audit is compared again', async (t) => {
  const rig = await started();
  rig.commit([service('other', { clusterIPs: ['10.96.0.11'], affinitySeconds: 90 })]);
  await rig.sync();
  rig.kernel.touch();
  await rig.dataplane.audit();
  rig.kernel.touch();
  rig.now += LINGER_MS;
  during(rig, async () => {
    t.ok((await rig.during(() => rig.sync())).length > 0, 'it removes unused objects');
  });
  t.equal(await rig.dataplane.audit(), false);
  rig.plan();
  const { full } = await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
  t.equal(full, true, 'the next check sees whether that worked');
});

t.test('an audit that fails is an error, and the next sync is right', async (t) => {
  const rig = await started();
  rig.kernel.touch();
  rig.kernel.faults.next({ type: 'fail-list', errno: 'EINTR' });
  await t.rejects(rig.dataplane.audit(), /EINTR/);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('unused objects are removed after a delay, without a listing', async (t) => {
  const rig = await started();
  const objects = (): number => (rig.kernel.table('ip')?.chains.size ?? 0) + (rig.kernel.table('ip')?.sets.size ?? 0);
  const before = objects();
  rig.commit([
    service('more', { clusterIPs: ['10.96.0.77'], affinitySeconds: 90 }),
    slice('more', [{ address: '10.0.1.77' }]),
  ]);
  t.notOk('dueAt' in (await rig.sync()));
  t.ok(objects() > before);
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'more' }]);
  const report = await rig.sync();
  t.equal(report.dueAt, rig.now + LINGER_MS, 'the loop gets the time of the next call');
  t.same(await rig.during(() => rig.sync()), [], 'not yet');
  rig.kernel.touch();
  t.equal(await rig.dataplane.audit(), false, 'which is no difference');
  const listings = rig.kernel.listed.length;
  rig.now += LINGER_MS;
  const sent = await rig.during(() => rig.sync());
  t.ok(commandsOf(sent).includes('delete set clients-10.96.0.77-tcp-80'), 'its map of clients');
  t.ok(commandsOf(sent).includes('delete chain remember-clients-90-10.96.0.77-tcp-80'));
  t.equal(rig.kernel.listed.length, listings);
  t.equal(objects(), before);
  t.same(await rig.difference(), []);
  t.same(await rig.during(() => rig.sync()), []);
});

t.test('objects that became unused during one sync are removed in any division', async (t) => {
  const rig = await started();
  const before = rig.kernel.table('ip')?.chains.size;
  rig.commit([
    service('more', {
      clusterIPs: ['10.96.0.77'],
      loadBalancer: ['203.0.113.77'],
      externalTrafficPolicy: 'Local',
      affinitySeconds: 90,
    }),
    slice('more', [{ address: '10.0.1.77' }]),
  ]);
  await rig.sync();
  // As on a slow machine: each became unused at another time, and each next sync finds some that it is time to remove.
  rig.step = 0.5;
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'more' }]);
  let { dueAt } = await rig.sync();
  rig.step = 0;
  let syncs = 0;
  for (; dueAt !== undefined; syncs++) {
    rig.now = dueAt;
    const report = await rig.sync();
    t.same(report.problems, []);
    dueAt = report.dueAt;
  }
  t.ok(syncs > 3, `${syncs} syncs`);
  t.equal(rig.kernel.table('ip')?.chains.size, before);
  t.same(await rig.difference(), []);
});

t.test('an unused object that is needed again before its removal stays', async (t) => {
  const rig = await started();
  const rows = [
    service('more', { clusterIPs: ['10.96.0.77'], affinitySeconds: 90 }),
    slice('more', [{ address: '10.0.1.77' }]),
  ];
  rig.commit(rows);
  await rig.sync();
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'more' }]);
  await rig.sync();
  rig.commit(rows);
  const sent = commandsOf(await rig.during(() => rig.sync()));
  t.same(sent, ['flush set clients-10.96.0.77-tcp-80'], 'but for the clients');
  rig.now += LINGER_MS;
  t.same(await rig.during(() => rig.sync()), []);
  t.same(await rig.difference(), []);
});

t.test('an object in use by a foreign rule is reported once, blocks nothing, and is retried', async (t) => {
  const rig = await started();
  rig.commit([
    service('more', { clusterIPs: ['10.96.0.77'], affinitySeconds: 90 }),
    slice('more', [{ address: '10.0.1.77' }]),
  ]);
  await rig.sync();
  const find = 'find-clients-10.96.0.77-tcp-80';
  const rule = { family: 'ip', table: 'kube-proxy', chain: 'dispatch', expr: [{ jump: { target: find } }] };
  await change(rig.kernel, { add: { rule } });
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'more' }]);
  await rig.sync();
  rig.now += LINGER_MS;
  const { problems } = await rig.sync();
  t.match(problems, [new RegExp(`could not remove .*${find}.*EBUSY`)]);
  const names = (): readonly string[] =>
    [...(rig.kernel.table('ip')?.chains.keys() ?? []), ...(rig.kernel.table('ip')?.sets.keys() ?? [])].filter((name) =>
      name.includes('10.96.0.77'),
    );
  t.same(names(), [find]);
  rig.now += LINGER_MS;
  t.same((await rig.sync()).problems, []);
  rig.kernel.touch();
  t.equal(await rig.dataplane.audit(), true);
  const line = `IPv4 kernel ${find} is needed by nothing`;
  t.ok((await rig.difference()).includes(`+ ${line}`));
  const destination = parseAddress('10.96.0.77')!;
  const frontend = frontendKey(destination, 80, 'TCP');
  const { lines } = await rig.dataplane.inspect(rig.table, { frontend, addresses: [], destination }, null);
  t.ok(lines.includes(line), 'what is inspected of its address');
  // The check takes the rule away first.
  await rig.sync(true);
  t.same(names(), []);
  t.same(await rig.difference(), []);
});

t.test('losses are reported although the repair fails at first', async (t) => {
  const rig = await started();
  rig.kernel.foreign(flush('dispatch'));
  rig.kernel.faults.next({ type: 'refuse', errno: 'EPERM', operation: 0 });
  await t.rejects(rig.sync(true));
  t.same((await rig.sync()).repairs, ['chain dispatch was altered']);
  t.same((await rig.sync(true)).repairs, []);
});

t.test('a deleted table is reported as lost after the change that failed', async (t) => {
  const rig = await started();
  const commands = [{ delete: { table: { family: 'ip', name: 'kube-proxy' } } }];
  rig.kernel.foreign({ family: 'ip', table: 'kube-proxy', operations: [{ type: 'commands', commands }] });
  rig.commit([webOf(4)]);
  await t.rejects(rig.sync(), /ENOENT/);
  t.ok((await rig.sync()).repairs.includes('chain dispatch was lost'));
  t.same(await rig.difference(), []);
});
