import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { forgetClients } from '../../../src/dataplane/nftables/affinity/clients.js';
import type { NftTransaction } from '../../../src/native/contract.js';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import { usually } from '../../support/extent.js';
import { KernelError } from '../../support/fake-kernel/kernel-error.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { commandsOf, elementLines } from './rig.js';
import { sticky, endpoints, started, connect, connectMany, answers, clients } from './clients-scene.js';

/** Session affinity: which remembered clients are forgotten, and when. */

t.test('a client that is remembered while its endpoint is removed is deleted afterwards', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
  const transact = rig.kernel.nftTransact.bind(rig.kernel);
  let late = true;
  rig.kernel.nftTransact = async (transaction) => {
    if (late) connect(rig, '10.0.0.2', '10.96.0.10:80', 2);
    late = false;
    return await transact(transaction);
  };
  rig.commit([endpoints(1, 3)]);
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 2);
  t.same(clients(rig), ['10.0.0.1 1']);
  t.end();
});

t.test('clients of a removed endpoint are deleted in the transaction that removes it', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
  connect(rig, '10.0.0.2', '10.96.0.10:80', 2);
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 2);
  connect(rig, '203.0.113.8', '192.168.0.2:30080', 3);
  t.same(clients(rig), ['10.0.0.1 1', '10.0.0.2 2', '203.0.113.8 3', '203.0.113.9 2']);
  rig.commit([endpoints(1, 3)]);
  const sent = await rig.during(() => rig.sync());
  t.same(clients(rig), ['10.0.0.1 1', '203.0.113.8 3']);
  t.equal(sent.length, 1);
  const forgetting = ['add clients-10.96.0.10-tcp 2', 'delete clients-10.96.0.10-tcp 2'];
  t.same(elementLines(sent).slice(-2), forgetting, 'an entry may expire at any moment');
});

t.test('without a removed endpoint no client is deleted or listed', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
  const listings = rig.kernel.listed.length;
  rig.commit([endpoints(4, 3, 2, 1), service('other', { clusterIPs: ['10.96.0.99'] })]);
  await rig.sync();
  t.same(clients(rig), ['10.0.0.1 1']);
  t.equal(rig.kernel.listed.length, listings);
});

t.test('a removed endpoint: only clients of its Service port are listed, before and after', async (t) => {
  const rig = await started();
  rig.commit([service('other', { clusterIPs: ['10.96.0.99'], ports: [{ port: 80 }], affinitySeconds: 60 })]);
  rig.commit([slice('other', [{ address: '10.0.1.9', node: 'other' }], { ports: [{ port: 8080 }] })]);
  await rig.sync();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 2);
  connect(rig, '10.0.0.1', '10.96.0.99:80', 9);
  const listings = rig.kernel.listed.length;
  rig.commit([endpoints(1)]);
  await rig.sync();
  t.same(
    rig.kernel.listed.slice(listings).map(({ elements }) => elements),
    [['clients-10.96.0.10-tcp-80'], ['clients-10.96.0.10-tcp-80']],
  );
  t.same(clients(rig), ['10.0.0.1 9']);
});

t.test('thousands of clients of one Service port delay no removal of an endpoint', async (t) => {
  const rig = await started();
  rig.commit([service('other', { clusterIPs: ['10.96.0.99'], ports: [{ port: 80 }], affinitySeconds: 60 })]);
  const other = (...numbers: readonly number[]): Row =>
    slice(
      'other',
      numbers.map((number) => ({ address: `10.0.1.${number}`, node: 'other' })),
      { ports: [{ port: 8080 }] },
    );
  rig.commit([other(7, 9)]);
  await rig.sync();
  connectMany(rig, 9000, '10.96.0.10:80', 2);
  rig.commit([endpoints(1, 3, 4)]);
  await rig.sync();
  t.same(clients(rig), [], 'their number was not known yet');
  connectMany(rig, 9000, '10.96.0.10:80', 4);
  connect(rig, '10.0.0.1', '10.96.0.99:80', 9);
  rig.commit([endpoints(1, 3), other(7)]);
  rig.plan();
  const sent = await rig.during(() => rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: false }));
  const forgotten = elementLines(sent.slice(0, 1)).filter((line) => line.includes('clients'));
  t.same(forgotten, ['add clients-10.96.0.99-tcp 1', 'delete clients-10.96.0.99-tcp 1'], 'in the transaction itself');
  t.ok(clients(rig).length > 0, 'the others are looked for beside further syncs');
  await rig.sync(true);
  t.same(clients(rig), []);
});

t.test('a full affinity map blocks neither a sync nor another search', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
  connect(rig, '10.0.0.2', '10.96.0.10:80', 2);
  const full = (times: number): { readonly attempts: () => number; readonly done: Promise<unknown> } => {
    let attempts = 0;
    const error = new KernelError('ENFILE', 'nft transaction', { object: null, index: 0, element: 0 });
    const addon = {
      nftElements: rig.kernel.nftElements.bind(rig.kernel),
      nftTransact: async (transaction: NftTransaction) => {
        if (++attempts <= times) throw error;
        return await rig.kernel.nftTransact(transaction);
      },
    };
    rig.commit([endpoints(1, 3)]);
    rig.plan();
    return { attempts: () => attempts, done: forgetClients(addon, rig.table, ['10.96.0.10:80/TCP']) };
  };
  await t.rejects(full(9).done, /ENFILE/, 'a full sync has to make up for it');
  const third = full(2);
  await third.done;
  t.equal(third.attempts(), 3);
  t.same(clients(rig), ['10.0.0.1 1']);
});

t.test('searches for clients do not pile up', async (t) => {
  const rig = await started();
  const list = rig.kernel.nftElements.bind(rig.kernel);
  let listings = 0;
  const held: (() => void)[] = [];
  rig.kernel.nftElements = async (...parameters) => {
    listings++;
    await new Promise<void>((resolve) => held.push(resolve));
    return await list(...parameters);
  };
  const quarantined: unknown[] = [];
  for (let round = 0; round < 10; round++) {
    rig.kernel.touch();
    rig.plan();
    const report = await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
    quarantined.push(report.quarantined);
  }
  const release = setInterval(() => held.shift()?.(), 1);
  await Promise.all(quarantined);
  clearInterval(release);
  t.ok(listings <= 2, 'the one under way, and one for all that came meanwhile');
});

t.test('a repeated search for clients spares clients that came since', async (t) => {
  const rig = await started();
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 2);
  const list = rig.kernel.nftElements.bind(rig.kernel);
  let calls = 0;
  rig.kernel.nftElements = async (...parameters) => {
    calls++;
    if (calls === 2) throw new Error('no listing');
    return calls === 1 ? [] : await list(...parameters);
  };
  rig.commit([endpoints(1, 3)]);
  await t.rejects(rig.sync(), /no listing/);
  connect(rig, '203.0.113.10', '192.168.0.2:30080', 1);
  t.same(clients(rig), ['203.0.113.10 1', '203.0.113.9 2']);
  await rig.sync();
  t.same(clients(rig), ['203.0.113.10 1']);
});

t.test('a removed Service takes its clients along, and the next one with its address starts without', async (t) => {
  const gone = [{ kind: 'Service', namespace: 'default', name: 'web' }] as const;
  for (const waits of [true, false]) {
    const rig = await started();
    connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
    rig.commit([], gone);
    await rig.sync();
    t.equal(clients(rig).length, 1, 'they are not searched for any more');
    if (waits) {
      rig.now += LINGER_MS;
      await rig.sync();
      t.same(clients(rig), []);
    }
    rig.commit([sticky()]);
    await rig.sync();
    t.same(clients(rig), []);
    t.equal(answers(rig, '10.0.0.1', '10.96.0.10:80').length, 3);
    t.same(await rig.difference(), []);
  }
});

t.test('another traffic policy of a Service uses other remembered endpoints', async (t) => {
  const rig = await started(sticky({ externalTrafficPolicy: 'Cluster', type: 'NodePort' }));
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 2);
  connect(rig, '10.0.0.1', '10.96.0.10:80', 2);
  t.same(answers(rig, '203.0.113.9', '192.168.0.2:30080'), ['10.0.1.2:8080']);
  rig.commit([sticky({ externalTrafficPolicy: 'Local', type: 'NodePort' })]);
  await rig.sync();
  const local = answers(rig, '203.0.113.9', '192.168.0.2:30080');
  t.same(local, ['10.0.1.1:8080'], 'the client from outside may not go to another node any more');
  t.same(answers(rig, '203.0.113.9', '10.96.0.10:80'), ['10.0.1.2:8080'], 'but by the cluster IP');
});

t.test('another affinity timeout keeps the map and its clients', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 2);
  rig.commit([sticky({ affinitySeconds: 90 })]);
  await rig.sync();
  t.same(await rig.difference(), []);
  t.same(clients(rig), ['10.0.0.1 2']);
  t.same(answers(rig, '10.0.0.1', '10.96.0.10:80'), ['10.0.1.2:8080']);
  const seconds = /timeout":90[^]*clients-10.96.0.10-tcp-80/;
  t.match(
    JSON.stringify([...(rig.kernel.table('ip')?.chains.get('remember-clients-90-10.96.0.10-tcp-80')?.rules ?? [])]),
    seconds,
  );
});

t.test('a full sync deletes clients of an endpoint that was removed while they connected', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 2);
  connect(rig, '10.0.0.2', '10.96.0.10:80', 3);
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 2);
  rig.commit([endpoints(1, 3)]);
  rig.plan();
  rig.restart();
  await rig.sync();
  t.same(clients(rig), ['10.0.0.2 3']);
});

t.test('a deletion of clients that fails is completed by the next sync', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 2);
  rig.commit([endpoints(1, 3)]);
  const transact = rig.kernel.nftTransact.bind(rig.kernel);
  rig.kernel.nftTransact = (transaction) => {
    const forgets = elementLines([transaction]).some((line) => line.includes('clients'));
    if (forgets && rig.kernel.faults.happened === 0)
      rig.kernel.faults.next({ type: 'refuse', errno: 'ENOMEM', operation: 0 });
    return transact(transaction);
  };
  await t.rejects(rig.sync(), /ENOMEM/);
  t.same(clients(rig), ['10.0.0.1 2']);
  await rig.sync();
  t.same(clients(rig), []);
});

t.test('clients are deleted with their map, even during a search', async (t) => {
  const rig = await started();
  connect(rig, '10.0.0.1', '10.96.0.10:80', 1);
  const fails = (errno: string) => () =>
    Promise.reject(new KernelError(errno, 'nft transaction', { object: null, index: 0, element: null }));
  rig.commit([endpoints(2, 3)]);
  rig.plan();
  const forget = (errno: string): Promise<unknown> => {
    const addon = { nftElements: rig.kernel.nftElements.bind(rig.kernel), nftTransact: fails(errno) };
    return forgetClients(addon, rig.table, ['10.96.0.10:80/TCP']);
  };
  await forget('ENOENT');
  await t.rejects(forget('ENOMEM'), { message: /ENOMEM/ });
});

t.test('thousands of clients are deleted in batches that fit', async (t) => {
  const rig = await started();
  const count = usually(500, 2000);
  for (let index = 0; index < count; index++) connect(rig, `10.9.${index >> 8}.${index & 255}`, '10.96.0.10:80', 2);
  rig.kernel.maxBatch = 100 * count;
  rig.commit([endpoints(1, 3)]);
  await rig.sync();
  t.same(clients(rig), []);
});

t.test('frontends of a Service port share their affinity clients', async (t) => {
  const balanced = (fields: ServiceText = {}): Row =>
    sticky({ type: 'LoadBalancer', loadBalancer: ['192.0.2.1'], externalIPs: ['192.0.2.11'], ...fields });
  const rig = await started(balanced());
  const frontends = ['10.96.0.10:80', '192.168.0.2:30080', '192.0.2.1:80', '192.0.2.11:80'] as const;
  const all = (client: string): readonly (readonly string[])[] => frontends.map((to) => answers(rig, client, to));
  for (const [index, to] of frontends.entries()) {
    const client = `203.0.113.${index}`;
    connect(rig, client, to, 2);
    t.same(new Set(all(client).flat()), new Set(['10.0.1.2:8080']), `known by ${to}`);
  }
  t.equal(clients(rig).length, frontends.length, 'remembered once');
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 3);
  const sent = await rig.during(async () => {
    rig.commit([endpoints(1, 3, 4)]);
    await rig.sync();
  });
  t.notOk(
    commandsOf(sent).some((command) => /chain|rule|set|map/.test(command)),
    'an endpoint change is elements',
  );
  t.same(clients(rig), ['203.0.113.9 3'], 'all others moved from the endpoint that is gone');
});

t.test('affinity clients are not shared with the Service that wins the cluster IP', async (t) => {
  const rig = await started(sticky({ creationTime: 5 }));
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 2);
  const older = service('older', { clusterIPs: ['10.96.0.10'], ports: [{ port: 80 }], affinitySeconds: 60 });
  rig.commit([older, slice('older', [{ address: '10.0.1.7', node: 'other' }], { ports: [{ port: 8080 }] })]);
  await rig.sync();
  connect(rig, '203.0.113.8', '10.96.0.10:80', 7);
  t.same(answers(rig, '203.0.113.8', '192.168.0.2:30080'), ['10.0.1.1:8080', '10.0.1.2:8080', '10.0.1.3:8080']);
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'older' }]);
  await rig.sync();
  connect(rig, '203.0.113.8', '10.96.0.10:80', 3);
  t.same(answers(rig, '203.0.113.8', '192.168.0.2:30080'), ['10.0.1.3:8080'], 'it is shared again');
  t.same(await rig.difference(), []);
});
