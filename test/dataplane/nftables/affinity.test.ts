import t from 'tap';
import { parseAffinityChain, rememberChainOf } from '../../../src/dataplane/nftables/affinity/chains.js';
import { nameClientKey, parseClientKey } from '../../../src/dataplane/nftables/affinity/key-names.js';
import { objectsOfChain } from '../../../src/dataplane/nftables/structure.js';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { usually } from '../../support/extent.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { address, service, slice } from '../../support/rows.js';
import { answers, connect, started, sticky } from './clients-scene.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** Session affinity: what one Service may cost another, and what remains of those that are gone. */

t.test('names of affinity chains and maps parse back to their Service port', (t) => {
  const keys = ['10.96.0.10:80/TCP', 'nodeport:30080/UDP', '[fd00::10]:53/SCTP', '[::1]:65535/TCP'] as const;
  for (const key of keys) {
    t.equal(parseClientKey(nameClientKey(key)), key);
    for (const room of [null, ...keys]) {
      const name = rememberChainOf(key, 60, null, room);
      t.same(parseAffinityChain(name), { does: 'remember', key, seconds: 60, room });
      for (const local of keys) {
        const both = rememberChainOf(key, 7, { cluster: key, local: { key: local } }, room);
        t.same(parseAffinityChain(both), { does: 'remember-both', cluster: key, local, seconds: 7, room });
        t.ok(both.length < 255, 'the kernel takes names of 255 bytes');
      }
    }
  }
  const others = [
    'clients-10800-part-0',
    'remember-clients-10800',
    'remember-clients-60-as-10.96.0.10-80',
    'find-clients',
  ];
  const key = '10.96.0.10-tcp-80';
  const remembering = [`060-${key}`, `60-${key}-room-${key}-room-${key}`, `60-${key}-room-`, `60-${key}-room-a`];
  const affected = remembering.map((rest) => `remember-clients-${rest}`);
  for (const name of [...others, 'find-clients-10.96.0.10-tcp-0', ...affected]) t.same(objectsOfChain(name), [], name);
  t.end();
});

/** Service number `index`, with one endpoint, an external address and a node port. */
function numbered(index: number, affinitySeconds: number | null, local = false): readonly Row[] {
  const octets = `${index >> 8}.${index & 255}`;
  return [
    service(`s${index}`, {
      type: 'NodePort',
      clusterIPs: [`10.97.${octets}`],
      externalIPs: [`192.1.${octets}`],
      ports: [{ port: 80, nodePort: 31000 + index }],
      ...(affinitySeconds === null ? {} : { affinitySeconds }),
      ...(local ? { externalTrafficPolicy: 'Local' as const } : {}),
    }),
    slice(`s${index}`, [{ address: `10.1.${octets}`, node: 'me' }], { ports: [{ port: 8080 }] }),
  ];
}

const gone = (index: number): readonly RowRef[] => [
  { kind: 'Service', namespace: 'default', name: `s${index}` },
  { kind: 'EndpointSlice', namespace: 'default', name: `s${index}` },
];

function ruleset(rig: Rig): string {
  const table = rig.kernel.table('ip');
  const chains = [...(table?.chains.values() ?? [])].map(
    ({ name, rules }) => `${name}\n${rules.map(({ text }) => text).join('\n')}`,
  );
  const sets = [...(table?.sets.values() ?? [])].map(
    ({ name, text, elements }) => `${name} ${text} ${[...elements.keys()].join()}`,
  );
  return [...chains, ...sets].sort().join('\n');
}

/** Rules of the chains that every connection meets. */
function sharedRules(rig: Rig): number {
  const names = [
    'dispatch',
    'remember-clients',
    'find-clients',
    'masquerade-sources',
    'check-frontends',
    'check-sources',
  ];
  return names.reduce((sum, name) => sum + (rig.kernel.table('ip')?.chains.get(name)?.rules.length ?? Infinity), 0);
}

t.test('affinity of other Services adds no rule to the connections of a Service without it', async (t) => {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([
    ...NODE_ROWS,
    service('plain', { clusterIPs: ['10.96.0.10'] }),
    slice('plain', [{ address: '10.0.1.1' }]),
  ]);
  await rig.sync();
  const [before, shared] = [ruleset(rig), sharedRules(rig)];
  const indices = Array.from({ length: usually(60, 300) }, (_, index) => index);
  rig.commit(indices.flatMap((index) => numbered(index, index + 1)));
  await rig.sync();
  t.equal(sharedRules(rig), shared, `${indices.length} timeouts`);
  t.ok(ruleset(rig).length > before.length);
  rig.commit([], indices.flatMap(gone));
  await rig.sync();
  rig.now += LINGER_MS;
  for (let { dueAt } = await rig.sync(); dueAt !== undefined; { dueAt } = await rig.sync());
  t.equal(ruleset(rig), before, 'and nothing of them is left');
});

t.test('Services of every kind come and go, and the nftables rules are the same as before', async (t) => {
  const rig = await started(sticky());
  const before = ruleset(rig);
  for (let round = 0; round < 6; round++) {
    const rows = [numbered(round, 60), numbered(100, 30 + round, round % 2 === 0), numbered(200 + round, null, true)];
    rig.commit(rows.flat());
    await rig.sync();
    t.same(await rig.difference(), []);
    rig.commit(numbered(round, 90, true));
    await rig.sync();
    rig.now += LINGER_MS;
    await rig.sync();
    t.same(await rig.difference(), []);
    rig.commit([], [round, 100, 200 + round].flatMap(gone));
    await rig.sync();
    rig.now += LINGER_MS;
    await rig.sync();
    t.equal(ruleset(rig), before, `round ${round}`);
  }
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart changes nothing');
});

t.test('a full client map of one Service takes no clients from another', async (t) => {
  const rig = await started(sticky());
  rig.commit([...numbered(1, 60)]);
  await rig.sync();
  const map = rig.kernel.table('ip')?.sets.get('clients-10.97.0.1-tcp-80');
  t.equal(map?.declaration.size, 65_535, 'the kernel bounds it');
  for (let index = 0; index < 65_535; index++) {
    const key = String.fromCharCode(11, index >> 16, (index >> 8) & 255, index & 255);
    map?.elements.set(key, { key, keyEnd: null, value: '\n\x01\x00\x01\x1f\x90\0\0', chain: null, comment: null });
  }
  rig.kernel.connect(
    {
      source: address('10.0.0.9'),
      destination: address('10.97.0.1'),
      port: 80,
      protocol: 'TCP',
      inputInterface: 'eth0',
    },
    [],
    '10.1.0.1:8080',
  );
  t.equal(map?.elements.size, 65_535, 'it is full');
  t.equal(rig.kernel.table('ip')?.sets.get('unremembered-clients')?.elements.size, 1, 'and that is counted');
  connect(rig, '10.0.0.9', '10.96.0.10:80', 2);
  t.same(answers(rig, '10.0.0.9', '10.96.0.10:80'), ['10.0.1.2:8080'], 'the other Service remembers the client');
});

/** A Service with so many ports, each with a frontend. */
function manyPorts(count: number): readonly Row[] {
  const ports = Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: 100 + index }));
  const of = ports.map(({ name }) => ({ name, port: 8080 }));
  return [
    service('many', { clusterIPs: ['10.96.0.20'], ports, affinitySeconds: 60 }),
    slice('many', [{ address: '10.0.1.1' }, { address: '10.0.1.2' }], { ports: of }),
  ];
}

t.test('ports of a Service with many frontends share the room for clients', async (t) => {
  const rig = await started();
  const sets = (): readonly string[] => [...(rig.kernel.table('ip')?.sets.keys() ?? [])];
  const rooms = (): readonly string[] => sets().filter((name) => name.startsWith('room-for-clients-'));
  const size = (name: string): number => rig.kernel.table('ip')?.sets.get(name)?.elements.size ?? NaN;
  rig.commit(manyPorts(16));
  await rig.sync();
  t.same(rooms(), [], 'sixteen frontends fill no more than sixteen maps');
  connect(rig, '10.0.0.9', '10.96.0.20:100', 2);
  rig.commit(manyPorts(40));
  await rig.sync();
  t.same(await rig.difference(), []);
  t.equal(rooms().length, 16);
  t.equal(sets().filter((name) => name.startsWith('clients-10.96.0.20')).length, 40);
  t.same(answers(rig, '10.0.0.9', '10.96.0.20:100'), ['10.0.1.2:8080'], 'a client from before keeps its endpoint');
  // The ports 103, 119 and 135 share the fourth room.
  connect(rig, '10.0.0.8', '10.96.0.20:119', 1);
  t.equal(size('room-for-clients-10.96.0.20-tcp-103'), 1);
  const [, room] = [...(rig.kernel.table('ip')?.sets ?? [])].find(([name]) => name === rooms()[3]) ?? [];
  t.equal(room?.declaration.size, 65_535, 'the kernel bounds it');
  for (let index = 1; index < 65_535; index++)
    room?.elements.set(`${index}`, { key: `${index}`, keyEnd: null, value: null, chain: null, comment: null });
  for (const port of [119, 135]) connect(rig, '10.0.0.7', `10.96.0.20:${port}`, 1);
  t.equal(size('clients-10.96.0.20-tcp-119'), 1, 'no client more');
  t.equal(size('clients-10.96.0.20-tcp-135'), 0, 'and none at another port of the room');
  t.equal(size('unremembered-clients'), 2, 'each is counted');
  t.same(answers(rig, '10.0.0.8', '10.96.0.20:119'), ['10.0.1.1:8080'], 'a client with a place keeps its endpoint');
  connect(rig, '10.0.0.7', '10.96.0.20:120', 2);
  t.same(answers(rig, '10.0.0.7', '10.96.0.20:120'), ['10.0.1.2:8080'], 'the next port has another room');
  rig.now += LINGER_MS;
  await rig.sync();
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart changes nothing');
  rig.commit(manyPorts(16));
  await rig.sync();
  rig.now += LINGER_MS;
  await rig.sync();
  t.same(rooms(), [], 'rooms go with the ports');
  t.same(answers(rig, '10.0.0.9', '10.96.0.20:100'), ['10.0.1.2:8080']);
});

t.test('IPv6 clients of one network are one client where that is configured, also live', async (t) => {
  const rig = new Rig(new FakeKernel(compiler), 'IPv6', { affinityIPv6Prefix: 64 });
  const ports = [{ port: 80 }];
  rig.commit([
    ...NODE_ROWS,
    service('web', { clusterIPs: ['fd00:96::10'], ports, affinitySeconds: 60 }),
    slice(
      'web',
      ['fd00:10::1', 'fd00:10::2', 'fd00:10::3'].map((each) => ({ address: each, node: 'other' })),
      { ports: [{ port: 8080 }] },
    ),
  ]);
  await rig.sync();
  const packet = (source: string) =>
    ({
      source: address(source),
      destination: address('fd00:96::10'),
      port: 80,
      protocol: 'TCP',
      inputInterface: 'eth0',
    }) as const;
  const choices = (source: string): number => {
    const verdict = rig.kernel.trace(packet(source), []);
    return verdict.type === 'forward' ? verdict.endpoints.length : 0;
  };
  rig.kernel.connect(packet('2001:db8:1:2::7'), [], '[fd00:10::2]:8080');
  t.equal(choices('2001:db8:1:2:ffff::1'), 1, 'the same network');
  t.equal(choices('2001:db8:1:3::7'), 3, 'another');
  t.same(await rig.difference(), []);
  rig.configure({ affinityIPv6Prefix: 128 });
  await rig.sync();
  t.equal(choices('2001:db8:1:2:ffff::1'), 3, 'each address by itself');
  t.same(await rig.difference(), []);
});
