import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { slice } from '../../support/rows.js';
import { change, compiler, element, elementLines, NODE_ROWS, Rig } from './rig.js';
import { sticky, endpoints, started, connect, answers, clients } from './clients-scene.js';

/** Session affinity where not every endpoint is for every connection: who may keep which. */

/** The first is on this node. */
function zoned(...hints: readonly string[]): Row {
  const endpoints = hints.map((zone, index) => ({
    address: `10.0.1.${index + 1}`,
    node: index === 0 ? 'me' : 'other',
    zones: [zone],
  }));
  return slice('web', endpoints, { ports: [{ port: 8080 }] });
}

t.test('a client that may use all endpoints leaves one that only external connections may still use', async (t) => {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, sticky({ externalTrafficPolicy: 'Local' }), zoned('zone-a', 'zone-a', 'zone-a')]);
  await rig.sync();
  connect(rig, '10.0.7.1', '192.168.0.2:30080', 1);
  connect(rig, '203.0.113.9', '192.168.0.2:30080', 1);
  const all = ['10.0.7.1 1', '10.0.7.1 1', '203.0.113.9 1', '203.0.113.9 1'];
  t.same(clients(rig), all, 'it is in both lists');
  rig.commit([zoned('zone-b', 'zone-a', 'zone-a')]);
  await rig.sync();
  t.same(clients(rig), ['10.0.7.1 1', '203.0.113.9 1'], 'and now in that of local endpoints');
  const others = ['10.0.1.2:8080', '10.0.1.3:8080'];
  t.same(answers(rig, '10.0.7.1', '192.168.0.2:30080'), others);
  t.same(answers(rig, '203.0.113.9', '10.96.0.10:80'), others);
  connect(rig, '203.0.113.8', '192.168.0.2:30080', 1);
  t.same(
    answers(rig, '203.0.113.8', '10.96.0.10:80'),
    others,
    'no client is remembered for an endpoint that it may not use',
  );
  rig.commit([zoned('zone-a', 'zone-a', 'zone-a')]);
  await rig.sync();
  connect(rig, '203.0.113.7', '192.168.0.2:30080', 1);
  t.same(answers(rig, '203.0.113.7', '10.96.0.10:80'), ['10.0.1.1:8080'], 'until it is in both again');
  t.same(await rig.difference(), []);
});

t.test('an endpoint that is no longer local is kept by the cluster IP only', async (t) => {
  const at = (...nodes: readonly string[]): Row =>
    slice(
      'web',
      nodes.map((node, index) => ({ address: `10.0.1.${index + 1}`, node })),
      { ports: [{ port: 8080 }] },
    );
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, sticky({ externalTrafficPolicy: 'Local' }), at('me', 'me', 'me', 'other')]);
  await rig.sync();
  connect(rig, '203.0.113.9', '10.96.0.10:80', 1);
  connect(rig, '203.0.113.8', '10.96.0.10:80', 4);
  t.same(clients(rig), ['203.0.113.8 4', '203.0.113.9 1', '203.0.113.9 1']);
  t.same(answers(rig, '203.0.113.9', '192.168.0.2:30080'), ['10.0.1.1:8080']);
  rig.commit([at('other', 'me', 'me', 'other')]);
  await rig.sync();
  t.same(clients(rig), ['203.0.113.8 4', '203.0.113.9 1']);
  t.same(answers(rig, '203.0.113.9', '10.96.0.10:80'), ['10.0.1.1:8080']);
  t.same(answers(rig, '203.0.113.9', '192.168.0.2:30080'), ['10.0.1.2:8080', '10.0.1.3:8080']);
});

t.test('maps of local endpoints have an element only for Services with two lists of endpoints', async (t) => {
  const rig = await started();
  const locals = (): number => rig.kernel.table('ip')?.sets.get('sticky-local-endpoints')?.elements.size ?? -1;
  const chains = (): readonly string[] => [...(rig.kernel.table('ip')?.chains.keys() ?? [])];
  t.equal(locals(), 0);
  t.notOk(chains().some((name) => name.includes('-local-nodeport')));
  rig.commit([sticky({ externalTrafficPolicy: 'Local' })]);
  await rig.sync();
  t.equal(locals(), 1);
  t.same(
    chains()
      .filter((name) => name.startsWith('remember-clients-60-'))
      .sort(),
    [
      'remember-clients-60-10.96.0.10-tcp-80',
      'remember-clients-60-10.96.0.10-tcp-80-local-nodeport-tcp-30080',
      'remember-clients-60-nodeport-tcp-30080',
    ],
  );
  const lines = async (row: Row): Promise<readonly string[]> => {
    rig.commit([row]);
    return [...elementLines(await rig.during(() => rig.sync()))].sort();
  };
  t.same(await lines(endpoints(1, 2, 3, 4)), ['add endpoints 1', 'add nodeport-endpoints 1'], 'one elsewhere');
  const here = (last: number): Row =>
    slice(
      'web',
      [1, 2, 3, last].map((number) => ({ address: `10.0.1.${number}`, node: number < 3 ? 'other' : 'me' })),
      {
        ports: [{ port: 8080 }],
      },
    );
  const sticking = async (last: number): Promise<readonly string[]> =>
    (await lines(here(last))).filter((line) => line.includes('sticky-local'));
  t.same(await sticking(4), ['add sticky-local-endpoints 2', 'delete sticky-local-endpoints 1']);
  t.same(await sticking(5), ['add sticky-local-endpoints 1', 'delete sticky-local-endpoints 1']);
  t.equal(locals(), 2);
  rig.commit([sticky()]);
  await rig.sync(true);
  t.equal(locals(), 0);
  t.same(await rig.difference(), []);
});

t.test('maps of local endpoints are adopted and repaired', async (t) => {
  const set = 'sticky-local-endpoints';
  const held = (rig: Rig): readonly string[] =>
    [...(rig.kernel.table('ip')?.sets.get(set)?.elements.keys() ?? [])].sort();
  const [nodePort, clusterIP] = ['00000000 06000000 75800000', '0a60000a 06000000 00500000'];
  const local = (endpoint: string, key: string): string => {
    const [address = '', ...rest] = key.split(' ');
    const combined = (Number.parseInt(endpoint.slice(0, 8), 16) ^ Number.parseInt(address, 16)).toString(16);
    return [endpoint, combined.padStart(8, '0'), ...rest].join(' ');
  };
  for (const [key, policies] of [
    [nodePort, { externalTrafficPolicy: 'Local' }],
    [clusterIP, { internalTrafficPolicy: 'Local' }],
    [clusterIP, { internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' }],
  ] as const) {
    const rig = await started(sticky(policies));
    rig.commit([
      slice(
        'web',
        [1, 2].map((number) => ({ address: `10.0.1.${number}`, node: 'me' })),
        { ports: [{ port: 8080 }] },
      ),
    ]);
    await rig.sync(true);
    const wanted = held(rig);
    t.equal(wanted.length, 2);
    rig.restart();
    t.same(await rig.during(() => rig.sync()), [], 'a start changes nothing');
    for (const [verb, text] of [
      ['delete', local('0a000101 1f900000', key)],
      ['add', local('0a000163 1f900000', key)],
      ['add', local('0a000101 1f900000', '0a600063 06000000 00500000')],
      ['add', local('0a000101 1f900000', '0a60000a 01000000 00500000')],
      ['add', local('0a000101 1f900001', '0a60000a 06000000 00500000')],
    ] as const) {
      await change(rig.kernel, element(verb, set, text));
      t.not((await rig.difference()).length, 0, `${verb} ${text}: it is to be seen`);
      t.match(await rig.sync(true), { transactions: 1, elementOperations: 1, repairs: [/./] });
      t.same(held(rig), wanted);
      t.same(await rig.difference(), []);
    }
  }
});
