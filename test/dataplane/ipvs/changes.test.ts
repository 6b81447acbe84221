import t from 'tap';
import { inFull, usually } from '../../support/extent.js';
import type { IpvsConfig } from '../../../src/config/config.js';
import { renderTables } from '../../../src/dataplane/ipvs/render.js';
import { loadAddon } from '../../../src/native/load.js';
import type { Row } from '../../../src/state/rows.js';
import { printVerdict } from '../../support/plan-tracer.js';
import { address, service, slice } from '../../support/rows.js';
import { OBJECT_BYTES } from '../../support/fake-ipvs/faults.js';
import type { FakeService } from '../../support/fake-ipvs/virtual-servers.js';
import { NODE_ROWS, Rig } from './rig.js';

/** What a change sends and in which order, and what becomes of connections, restarts, damage, refusals and unsynced sources. */

function web(index: number, fields: Parameters<typeof service>[1] = {}): Row {
  return service(`web-${index}`, { clusterIPs: [`10.96.${index >> 8}.${index & 0xff}`], ...fields });
}

function endpoints(index: number, addresses: readonly string[]): Row {
  return slice(
    `web-${index}`,
    addresses.map((each) => ({ address: each, node: 'other' })),
  );
}

function several(index: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, number) => `10.${index & 0xff}.${number >> 8}.${(number & 0xff) + 1}`);
}

const REF = (index: number) => ({ kind: 'Service', namespace: 'default', name: `web-${index}` }) as const;

const SETTINGS: IpvsConfig = {
  scheduler: 'rr',
  excludeCIDRs: [],
  strictARP: false,
  tcpTimeout: 0,
  tcpFinTimeout: 0,
  udpTimeout: 0,
};

/** The virtual service of an address and port. */
function virtual(rig: Rig, text: string): FakeService | undefined {
  const found = [...rig.kernel.addon.ipvs.services.values()].filter(
    (each) => `${(each.service.address ?? []).join('.')}:${each.service.port}` === text,
  );
  return found[0];
}

function connections(rig: Rig, text: string, count: number): void {
  for (const destination of virtual(rig, text)?.destinations.values() ?? []) destination.connections = count;
}

function weights(rig: Rig, text: string): readonly number[] {
  return [...(virtual(rig, text)?.destinations.values() ?? [])].map(({ weight }) => weight);
}

t.test('the first sync sends each object once; a second sync and a restart send nothing', async (t) => {
  const rig = new Rig();
  const rows = Array.from({ length: 40 }, (_, index) => [web(index), endpoints(index, several(index, 50))]);
  rig.commit([...NODE_ROWS, ...rows.flat()]);
  const sent = (await rig.during(() => rig.sync())).filter((line) => !line.startsWith('rule '));
  const count = (start: string): number => sent.filter((line) => line.startsWith(start)).length;
  t.equal(new Set(sent).size, sent.length, 'nothing twice');
  t.equal(count('ipvsadm -A '), 40);
  t.equal(count('ipvsadm -a '), 40 * 50);
  t.equal(count('ipset add KUBE-CLUSTER-IP '), 40);
  t.equal(count('ip address add '), 40);
  t.same(await rig.difference(), []);
  t.same(await rig.during(() => rig.sync()), []);
  t.same(await rig.during(() => rig.sync(true)), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
});

t.test(
  '250,000 endpoints are sent once, a restart sends nothing, and a change one or two messages',
  inFull,
  async (t) => {
    const rig = new Rig();
    const rows = Array.from({ length: 5000 }, (_, index) => [web(index), endpoints(index, several(index, 50))]);
    rig.commit([...NODE_ROWS, ...rows.flat()]);
    const sent = (await rig.during(() => rig.sync())).filter((line) => !line.startsWith('rule '));
    t.equal(new Set(sent).size, sent.length, 'nothing twice');
    t.equal(sent.filter((line) => line.startsWith('ipvsadm -a ')).length, 250_000);
    const text = await renderTables(loadAddon(), [rig.table], SETTINGS, {
      iptablesFlavor: 'nft',
      serviceTelemetry: null,
    });
    t.equal(text.split('\nipvsadm -a ').length, 250_001, 'and all can be printed');
    rig.restart();
    t.same(await rig.during(() => rig.sync()), []);

    const { addon, programs } = rig.kernel;
    const { listings } = addon.ipvs;
    // Whatever is listed fails.
    addon.mishaps.failListings = Infinity;
    const { length } = programs.listed;
    rig.commit([endpoints(4999, [...several(4999, 49), '10.7.9.9'])]);
    t.same(await rig.during(() => rig.sync()), [
      'ipvsadm -a -t 10.96.19.135:80 -r 10.7.9.9:80 -m -w 1',
      'ipvsadm -e -t 10.96.19.135:80 -r 10.135.0.50:80 -m -w 0',
    ]);
    rig.commit([endpoints(8, several(8, 51))]);
    t.same(await rig.during(() => rig.sync()), ['ipvsadm -a -t 10.96.0.8:80 -r 10.8.0.51:80 -m -w 1']);
    rig.commit([endpoints(9, ['10.7.9.9', ...several(9, 49)])]);
    t.match(await rig.sync(), { elementOperations: 2, bytes: 2 * OBJECT_BYTES }, 'and so it is counted');
    t.same([addon.ipvs.listings, programs.listed.length], [listings, length], 'nothing is listed');
  },
);

t.test('refusing entries are added before destinations drain, and addresses come and go last', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  rig.commit([web(1), endpoints(1, ['10.1.0.1'])]);
  t.same(await rig.during(() => rig.sync()), [
    'ipset add KUBE-IPVS-IPS 10.96.0.1',
    'ipvsadm -A -t 10.96.0.1:80 -s rr',
    'ipset add KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
    'ipset add KUBE-SERVICE-NAMES 10.96.0.1,tcp:80 comment "default/web-1"',
    'ipvsadm -a -t 10.96.0.1:80 -r 10.1.0.1:80 -m -w 1',
    'ip address add 10.96.0.1/32 dev kube-ipvs0',
  ]);
  rig.commit([endpoints(1, [])]);
  t.same(await rig.during(() => rig.sync()), [
    'ipset add KUBE-NO-ENDPOINTS 10.96.0.1,tcp:80',
    'ipvsadm -e -t 10.96.0.1:80 -r 10.1.0.1:80 -m -w 0',
  ]);
  rig.commit([endpoints(1, ['10.1.0.1', '10.1.0.2'])]);
  t.same(
    await rig.during(() => rig.sync()),
    [
      'ipvsadm -a -t 10.96.0.1:80 -r 10.1.0.2:80 -m -w 1',
      'ipvsadm -e -t 10.96.0.1:80 -r 10.1.0.1:80 -m -w 1',
      'ipset del KUBE-NO-ENDPOINTS 10.96.0.1,tcp:80',
    ],
    'one that comes back takes new connections again',
  );
  rig.commit([], [REF(1)]);
  t.same(await rig.during(() => rig.sync()), [
    'ipset del KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
    'ipset del KUBE-SERVICE-NAMES 10.96.0.1,tcp:80',
    'ipvsadm -D -t 10.96.0.1:80',
    'ip address del 10.96.0.1/32 dev kube-ipvs0',
    'ipset del KUBE-IPVS-IPS 10.96.0.1',
  ]);
  t.same(await rig.difference(), []);
});

t.test('an endpoint is removed when its connections have ended, by a sync or a restart', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1', '10.0.0.2'])]);
  await rig.sync();
  connections(rig, '10.96.0.0:80', 3);
  rig.commit([endpoints(0, ['10.0.0.1'])]);
  const { dueAt } = await rig.sync();
  t.equal(dueAt, 1000, 'looked at again after a second');
  t.same([...weights(rig, '10.96.0.0:80')].sort(), [0, 1]);
  rig.now = 1000;
  t.same(await rig.during(() => rig.sync()), [], 'they go on');
  rig.restart();
  rig.now = 5000;
  t.same(await rig.during(() => rig.sync()), [], 'also after a restart');
  t.same(await rig.difference(), [], 'it is no difference');
  connections(rig, '10.96.0.0:80', 0);
  rig.now = 10_000;
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -d -t 10.96.0.0:80 -r 10.0.0.2:80']);
  t.equal((await rig.sync()).dueAt, undefined);

  connections(rig, '10.96.0.0:80', 1);
  rig.commit([endpoints(0, ['10.0.0.3'])]);
  await rig.sync();
  rig.now += 25 * 3_600_000;
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -d -t 10.96.0.0:80 -r 10.0.0.1:80'], 'not for ever');
});

t.test('a removed Service refuses new connections, and goes when its last connection has ended', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1', '10.0.0.2'])]);
  await rig.sync();
  const destination = virtual(rig, '10.96.0.0:80')?.destinations.get('\x0a\0\0\x02\0\x50');
  if (destination !== undefined) destination.connections = 1;
  rig.commit([], [REF(0)]);
  t.same(await rig.during(() => rig.sync()), [
    'ipset del KUBE-CLUSTER-IP 10.96.0.0,tcp:80',
    'ipvsadm -d -t 10.96.0.0:80 -r 10.0.0.1:80',
    'ipvsadm -e -t 10.96.0.0:80 -r 10.0.0.2:80 -m -w 0',
    'ipset del KUBE-SERVICE-NAMES 10.96.0.0,tcp:80',
  ]);
  const packet = { source: address('10.0.0.9'), destination: address('10.96.0.0'), port: 80, protocol: 'TCP' } as const;
  t.equal(rig.kernel.verdict({ ...packet, inputInterface: 'eth0' }).type, 'reject');
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
  connections(rig, '10.96.0.0:80', 0);
  rig.now = 10_000;
  t.same(await rig.during(() => rig.sync()), [
    'ipvsadm -D -t 10.96.0.0:80',
    'ip address del 10.96.0.0/32 dev kube-ipvs0',
    'ipset del KUBE-IPVS-IPS 10.96.0.0',
  ]);
});

/** What becomes of a new connection from elsewhere, and of one that the node itself makes. */
function asked(rig: Rig, destination: string, port = 80): readonly string[] {
  return ['eth0', null].map((inputInterface) => {
    const source = address(inputInterface === null ? '192.168.0.2' : '203.0.113.2');
    const to = { source, destination: address(destination), port, protocol: 'TCP' } as const;
    return rig.kernel.verdict({ ...to, inputInterface }).type;
  });
}

t.test('an address that a Service gives up is removed at once, with open connections or without', async (t) => {
  const external = { externalIPs: ['192.0.2.9', '192.168.1.2'], loadBalancer: ['192.0.2.8'] };
  const ports = [{ port: 80, nodePort: 30_080 }];
  const gives: readonly (readonly [what: string, fields: Parameters<typeof service>[1], given: readonly string[]])[] = [
    ['back to ClusterIP', {}, ['192.0.2.9', '192.168.1.2', '192.0.2.8']],
    ['external IPs removed', { loadBalancer: ['192.0.2.8'], ports }, ['192.0.2.9', '192.168.1.2']],
    ['another load balancer address', { ...external, loadBalancer: ['192.0.2.7'], ports }, ['192.0.2.8']],
    [
      'policy Local with another address',
      { loadBalancer: ['192.0.2.7'], externalTrafficPolicy: 'Local' },
      ['192.0.2.8'],
    ],
  ];
  for (const [what, fields, given] of gives) {
    for (const restarts of [false, true]) {
      const rig = new Rig();
      rig.commit([...NODE_ROWS, web(0, { ...external, ports }), endpoints(0, ['10.0.0.1'])]);
      await rig.sync();
      for (const each of ['10.96.0.0', ...given]) {
        t.same(asked(rig, each), ['forward', 'forward'], `${each} is served`);
        connections(rig, `${each}:80`, 1);
      }
      rig.commit([web(0, fields)]);
      if (restarts) rig.restart();
      const report = await rig.sync();
      for (const each of given) {
        const about = `${what}${restarts ? ' while no process ran' : ''}: ${each}`;
        t.same(asked(rig, each), ['none', 'none'], about);
        t.notOk(virtual(rig, `${each}:80`), about);
        t.notOk(rig.kernel.addon.route.links.get('kube-ipvs0')?.has(address(each)), about);
      }
      t.same(asked(rig, '10.96.0.0'), ['forward', 'forward'], 'its other addresses serve');
      t.equal(report.dueAt, undefined, 'nothing waits');
      t.same(await rig.difference(), []);
    }
  }
});

t.test('an address with old connections to a removed port is removed with its other ports', async (t) => {
  const rig = new Rig();
  const loadBalancer = ['192.0.2.8'];
  const two = [80, 443].map((port) => ({ name: `p${port}`, port }));
  const backends = slice('web-0', [{ address: '10.0.0.1', node: 'other' }], { ports: two });
  rig.commit([...NODE_ROWS, web(0, { loadBalancer, ports: two }), backends]);
  await rig.sync();
  t.equal(virtual(rig, '192.0.2.8:443')?.destinations.size, 1);
  connections(rig, '192.0.2.8:443', 1);
  rig.commit([web(0, { loadBalancer, ports: two.slice(0, 1) })]);
  await rig.sync();
  t.same(weights(rig, '192.0.2.8:443'), [0], 'the connection to the removed port goes on');
  t.same(asked(rig, '192.0.2.8', 443), ['reject', 'reject'], 'as to any other port');
  rig.commit([web(0, { ports: two.slice(0, 1) })]);
  await rig.sync();
  t.same(asked(rig, '192.0.2.8', 443), ['none', 'none']);
  t.notOk(virtual(rig, '192.0.2.8:443'));
  t.same(await rig.difference(), []);
});

t.test('addresses of a removed Service wait for their connections', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0, { externalIPs: ['192.0.2.9'] }), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  connections(rig, '192.0.2.9:80', 1);
  rig.commit([], [REF(0)]);
  await rig.sync();
  t.same(weights(rig, '192.0.2.9:80'), [0]);
  rig.commit([web(1), endpoints(1, ['10.0.0.2'])]);
  await rig.sync();
  t.same(weights(rig, '192.0.2.9:80'), [0], 'another Service does not matter');
});

t.test('schedulers and affinity are set and changed', async (t) => {
  const rig = new Rig();
  rig.scheduler = 'mh';
  rig.restart();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  t.same(virtual(rig, '10.96.0.0:80')?.state, { scheduler: 'mh', flags: 0x10, timeoutSeconds: 0, prefixLength: 32 });
  rig.commit([web(0, { affinitySeconds: 100 })]);
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -E -t 10.96.0.0:80 -s mh -p 100 -b mh-port'], 'in place');
  t.equal(virtual(rig, '10.96.0.0:80')?.state.flags, 0x11);
});

t.test('node ports are on every address of the node, and follow their changes', async (t) => {
  const rig = new Rig();
  const ports = [{ port: 80, nodePort: 30080 }];
  rig.commit([...NODE_ROWS, web(0, { ports }), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  t.ok(virtual(rig, '192.168.0.2:30080'));
  t.ok(virtual(rig, '192.168.1.2:30080'));
  rig.kernel.addon.route.links.set('eth1', new Set([address('192.168.9.9')]));
  rig.kernel.addon.route.links.get('eth0')?.delete(address('192.168.1.2'));
  await rig.sync(true);
  t.ok(virtual(rig, '192.168.9.9:30080'));
  t.notOk(virtual(rig, '192.168.1.2:30080'));
  t.same(await rig.difference(), []);
});

t.test('an external address of the node itself is not put on the link, and keeps its other ports', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0, { externalIPs: ['192.168.1.2', '192.0.2.9'] }), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  t.same([...(rig.kernel.addon.route.links.get('kube-ipvs0') ?? [])].sort(), ['10.96.0.0', '192.0.2.9']);
  const ask = (destination: string, port: number): string => {
    const verdict = rig.kernel.verdict({
      source: address('203.0.113.2'),
      destination: address(destination),
      port,
      protocol: 'TCP',
      inputInterface: 'eth0',
    });
    return verdict.type === 'forward' ? printVerdict(verdict) : verdict.type;
  };
  t.equal(ask('192.168.1.2', 80), '10.0.0.1:80 m');
  t.equal(ask('192.168.1.2', 22), 'none');
  t.equal(ask('192.0.2.9', 80), '10.0.0.1:80 m');
  t.equal(ask('192.0.2.9', 22), 'reject', 'what listens on the node is not to be found there');
});

t.test("foreign virtual services stay, a predecessor's go, and damage is repaired and reported", async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1'])]);
  const { ipvs, ipset, route } = rig.kernel.addon;
  const state = { scheduler: 'rr', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  const make = (text: string, port: number): Promise<unknown> =>
    ipvs.ipvsApply([
      {
        type: 'service',
        verb: 'new',
        state,
        service: { family: 'IPv4', protocol: 6, address: Buffer.from(text.split('.').map(Number)), port, mark: 0 },
      },
    ]);
  await make('198.18.0.1', 80);
  await make('203.0.113.1', 80);
  await make('10.96.0.9', 80);
  await make('10.96.0.0', 80);
  route.links.set('kube-ipvs0', new Set(['203.0.113.1', '10.96.0.9', '10.96.0.0'].map(address)));
  await rig.sync();
  t.ok(virtual(rig, '198.18.0.1:80'), 'a foreign one');
  t.ok(virtual(rig, '203.0.113.1:80'), 'one that is excluded');
  t.notOk(virtual(rig, '10.96.0.9:80'), 'one of a predecessor');
  t.ok(virtual(rig, '10.96.0.0:80'), 'one that is taken over');
  t.same(await rig.difference(), []);

  const damage: readonly (readonly [() => void, RegExp])[] = [
    [
      () => {
        virtual(rig, '10.96.0.0:80')?.destinations.clear();
      },
      /^destinations of 10\.96\.0\.0:80\/TCP was another$/,
    ],
    [
      () => {
        ipvs.services.clear();
      },
      /^virtual service 10\.96\.0\.0:80\/TCP was missing$/,
    ],
    [
      () => ipset.sets.get('KUBE-CLUSTER-IP')?.elements.clear(),
      /^element 10\.96\.0\.0,tcp:80 of KUBE-CLUSTER-IP was missing$/,
    ],
    [() => route.links.get('kube-ipvs0')?.delete(address('10.96.0.0')), /^address 10\.96\.0\.0 was missing$/],
    [() => route.links.delete('kube-ipvs0'), /^link kube-ipvs0 was missing$/],
    [
      () => {
        rig.kernel.programs.tamper('filter', (chains) => chains.get('KUBE-IPVS-FILTER')?.pop());
      },
      /^chain filter KUBE-IPVS-FILTER had other rules$/,
    ],
  ];
  for (const [harm, reported] of damage) {
    harm();
    const { repairs } = await rig.sync(true);
    t.ok(
      repairs.some((line) => reported.test(line)),
      `${String(reported)}: ${repairs.join('; ')}`,
    );
    t.same(await rig.difference(), []);
  }
});

t.test('an object that the kernel refuses is quarantined with its frontend, and others proceed', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1'])]);
  await rig.sync();
  rig.commit([web(1), endpoints(1, ['10.1.0.1']), web(2), endpoints(2, ['10.2.0.1'])]);
  rig.kernel.addon.mishaps.planned.push(null, { errno: 'EINVAL', object: 0 });
  const { quarantined } = await rig.sync();
  t.same(
    quarantined.map(({ frontend }) => frontend),
    ['10.96.0.1:80/TCP'],
  );
  t.ok(virtual(rig, '10.96.0.2:80'));
  t.notOk(rig.kernel.addon.ipset.sets.get('KUBE-CLUSTER-IP')?.elements.has('\x0a\x60\0\x01\0\x50\x06'));
  rig.now = 1000;
  t.same((await rig.sync()).quarantined, []);
  t.same(await rig.difference(), []);
});

t.test('after any call fails, or the process ends at it, the next sync completes the state', async (t) => {
  const ports = [{ port: 80, nodePort: 3001 }];
  const before = [...NODE_ROWS, web(0, { ports }), endpoints(0, ['10.0.0.1']), web(1), endpoints(1, ['10.1.0.1'])];
  const after = [
    web(0, { ports, externalIPs: ['192.0.2.9'] }),
    endpoints(0, ['10.0.0.2']),
    web(2, { loadBalancer: ['192.0.2.8'], sourceRanges: ['198.18.0.0/15'] }),
    endpoints(2, ['10.2.0.1']),
  ];
  let calls = 0;
  for (const fault of usually(['refuse-one'] as const, ['refuse', 'lose-ack', 'refuse-one'] as const)) {
    for (const restarts of [false, true]) {
      for (let place = 0; ; place++) {
        const rig = new Rig();
        rig.commit(before);
        await rig.sync();
        rig.commit(after, [REF(1)]);
        rig.kernel.addon.mishaps.planned.push(...Array.from({ length: place }, () => null), fault);
        const failed = await rig.sync().then(
          () => false,
          () => true,
        );
        const met = rig.kernel.addon.mishaps.planned.length === 0;
        rig.kernel.addon.mishaps.planned.length = 0;
        if (!met) break;
        t.ok(failed, `${fault} at call ${place} is told`);
        if (restarts) rig.restart();
        const { repairs } = await rig.sync();
        rig.now += 60_000;
        await rig.sync(true);
        const reported = `${fault} at call ${place}${restarts ? ', then a restart' : ''}`;
        t.same(repairs, [], `${reported}: its own failure is no loss`);
        t.same(await rig.difference(), [], reported);
        t.notOk(virtual(rig, '10.96.0.1:80'), reported);
        t.same(rig.kernel.leftovers(), [], reported);
        calls++;
      }
    }
  }
  t.ok(calls > usually(20, 60), `${calls} calls failed`);
});

t.test('while sources are unsynced, rules that the plan lacks stay', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.1']), web(1), endpoints(1, ['10.1.0.1'])]);
  await rig.sync();
  const successor = new Rig(rig.kernel);
  successor.unsynced(true);
  successor.commit([...NODE_ROWS, web(0), endpoints(0, ['10.0.0.9'])]);
  t.same(await successor.during(() => successor.sync()), [
    'ipvsadm -a -t 10.96.0.0:80 -r 10.0.0.9:80 -m -w 1',
    'ipvsadm -e -t 10.96.0.0:80 -r 10.0.0.1:80 -m -w 0',
  ]);
  t.ok(virtual(rig, '10.96.0.1:80'));
  successor.unsynced(false);
  await successor.sync();
  t.notOk(virtual(rig, '10.96.0.1:80'));
  t.same(await successor.difference(), []);
});
