// Packets that are refused or dropped, counted where that is asked for: what the rules count, and that nothing else changes.
import t from 'tap';
import { BUILT_IN_TIMEOUTS } from '../../../src/base/conntrack-timeouts.js';
import type { KernelPacket } from '../../support/fake-kernel/packet.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { address, service, slice } from '../../support/rows.js';
import { clients, connect } from './clients-scene.js';
import { commandsOf, compiler, NODE_ROWS, Rig } from './rig.js';
import { renderTable } from '../../../src/dataplane/nftables/render.js';

const LOCAL = [address('192.168.0.2')];
const ROWS = [
  ...NODE_ROWS,
  service('web', { clusterIPs: ['10.96.0.10'], ports: [{ port: 80 }], affinitySeconds: 60 }),
  slice('web', [{ address: '10.0.1.1', node: 'me' }], { ports: [{ port: 8080 }] }),
  service('empty', {
    clusterIPs: ['10.96.0.11'],
    ports: [
      { name: 'http', port: 80, nodePort: 30081 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  }),
  service('away', {
    clusterIPs: ['10.96.0.12'],
    ports: [{ port: 80, nodePort: 30082 }],
    loadBalancer: ['192.0.2.12'],
    externalTrafficPolicy: 'Local',
  }),
  slice('away', [{ address: '10.0.3.1', node: 'other' }]),
  service('ranges', { clusterIPs: ['10.96.0.13'], loadBalancer: ['192.0.2.13'], sourceRanges: ['203.0.113.0/24'] }),
  slice('ranges', [{ address: '10.0.4.1', node: 'other' }]),
];

function packetTo(destination: string, port: number, protocol: KernelPacket['protocol'] = 'TCP'): KernelPacket {
  const to = { destination: address(destination), port, protocol };
  return { source: address('198.51.100.7'), ...to, inputInterface: 'eth0' };
}

async function started(counts = true): Promise<Rig> {
  const rig = new Rig(new FakeKernel(compiler));
  rig.countsRefused = counts;
  rig.restart();
  rig.commit(ROWS);
  await rig.sync();
  return rig;
}

/** `frontend verdict reason packets` of all that is counted. */
async function counted(rig: Rig): Promise<readonly string[]> {
  const rows = await rig.dataplane.refused();
  return rows.map(({ frontend, verdict, reason, packets }) => `${frontend} ${verdict} ${reason} ${packets}`).sort();
}

function refuse(rig: Rig, packet: KernelPacket, times = 1): void {
  for (let time = 0; time < times; time++) rig.kernel.refuse(packet, LOCAL);
}

t.test('refused packets are counted by frontend, verdict and reason', async (t) => {
  const rig = await started();
  t.same(await counted(rig), []);
  refuse(rig, packetTo('10.96.0.11', 80), 3);
  refuse(rig, packetTo('10.96.0.11', 53, 'UDP'));
  refuse(rig, packetTo('192.168.0.2', 30081), 2);
  refuse(rig, packetTo('192.0.2.12', 80), 4);
  refuse(rig, packetTo('192.168.0.2', 30082), 5);
  refuse(rig, packetTo('192.0.2.13', 80), 6);
  // To no frontend: a port that nobody uses.
  refuse(rig, packetTo('10.96.0.10', 81));
  t.same(await counted(rig), [
    '10.96.0.11:53/UDP refused no-endpoints 1',
    '10.96.0.11:80/TCP refused no-endpoints 3',
    '192.0.2.12:80/TCP dropped no-local-endpoints 4',
    '192.0.2.13:80/TCP dropped source-range 6',
    'nodeport:30081/TCP refused no-endpoints 2',
    'nodeport:30082/TCP dropped no-local-endpoints 5',
  ]);
  t.same(await rig.difference(), []);
});

t.test('changed counters of refused packets are no external change, and are kept', async (t) => {
  const rig = await started();
  refuse(rig, packetTo('10.96.0.11', 80), 3);
  rig.kernel.touch();
  t.equal(await rig.dataplane.audit(), false);
  const listed = rig.kernel.listed.flatMap(({ elements }) => elements ?? ['all']);
  t.same(
    listed.filter((name) => name === 'all' || name.startsWith('counted-')),
    [],
  );
  t.same(await rig.during(() => rig.sync(true)), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'nor does a process after this one change anything');
  refuse(rig, packetTo('10.96.0.11', 80));
  t.same(await counted(rig), ['10.96.0.11:80/TCP refused no-endpoints 4']);
});

t.test('counting refused packets changes no message for a Service', async (t) => {
  const changes = [true, false].map(async (counts) => {
    const rig = await started(counts);
    return rig.during(async () => {
      rig.commit([slice('empty', [{ address: '10.0.2.1' }], { ports: [{ name: 'http', port: 8080 }] })]);
      await rig.sync();
      rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'ranges' }]);
      await rig.sync();
    });
  });
  const [one = [], other] = await Promise.all(changes);
  t.ok(one.length > 1);
  t.same(one, other);
});

t.test('refused packets of frontends beyond the limit have the same verdict', async (t) => {
  const rig = await started();
  const set = rig.kernel.table('ip')?.sets.get('counted-dropped-frontends');
  const elements = set?.elements;
  for (let index = 0; index < (set?.declaration.size ?? 0); index++) {
    const key = `${index}`.padEnd(12);
    elements?.set(key, { key, keyEnd: null, value: null, chain: null, comment: null });
  }
  const before = elements?.size;
  t.equal(before, 4096);
  refuse(rig, packetTo('192.0.2.12', 80));
  t.equal(elements?.size, before);
  t.equal(rig.kernel.trace(packetTo('192.0.2.12', 80), LOCAL).type, 'drop');
});

t.test('switching the count of refused packets changes its objects only', async (t) => {
  const rig = await started(false);
  const plain = names(rig);
  t.notOk(plain.some((name) => name.startsWith('count')));
  t.same(await counted(rig), []);
  connect(rig, '198.51.100.7', '10.96.0.10:80', 1);
  t.equal(clients(rig).length, 1);
  for (const counts of [true, false]) {
    rig.countsRefused = counts;
    rig.restart();
    const sent = await rig.during(() => rig.sync());
    const objects = commandsOf(sent).filter((command) => !command.startsWith('add rule '));
    const own = objects.filter((command) => !/ count(?:ed)?-/.test(command));
    t.same(own, ['flush chain admit-sources', 'flush chain check-frontends', 'flush chain check-nodeports']);
    t.ok(sent.every(({ operations }) => operations.every(({ type }) => type === 'commands')));
    t.equal(clients(rig).length, 1, 'who is remembered stays');
    t.same(await rig.difference(), []);
    t.same(await rig.during(() => rig.sync(true)), []);
    refuse(rig, packetTo('10.96.0.11', 80));
  }
  t.same(names(rig), plain);
});

t.test('dump prints the same with and without the count of refused packets', async (t) => {
  const rig = await started();
  rig.countsRefused = false;
  rig.restart();
  t.same(await rig.difference(), []);
});

t.test('render shows the count of refused packets if the flag is given', async (t) => {
  const rig = await started();
  t.ok(JSON.stringify(renderTable(compiler, rig.table, true, BUILT_IN_TIMEOUTS)).includes('"stmt":[{"counter":null}]'));
  t.notOk(/count(?:ed)?-/.test(JSON.stringify(renderTable(compiler, rig.table, false, BUILT_IN_TIMEOUTS))));
});

/** Of chains and sets. */
function names(rig: Rig): readonly string[] {
  const table = rig.kernel.table('ip');
  return [...(table?.chains.keys() ?? []), ...(table?.sets.keys() ?? [])].sort();
}
