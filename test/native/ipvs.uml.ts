// ip_vs as it is, compared with what ipvsadm says; and what else of ipvs mode's kernel not every machine has.
// needs: ip, ip_vs
import '../support/namespace.js';

import { createSocket } from 'node:dgram';
import { readdirSync } from 'node:fs';
import t from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { addressFromBytes } from '../../src/base/ip.js';
import { IPVS_FLAGS, type IpvsOperation, type IpvsService, type IpvsServiceState } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { HASH, ipsetRoundTrip, join } from '../support/ipset-cases.js';
import { run } from '../support/run.js';
import { endpoints, packed, printService, service } from '../support/virtual-services.js';

const { ipset, ipvs, route } = loadAddon();

function state(scheduler: string, prefixLength: number, changes: Partial<IpvsServiceState> = {}): IpvsServiceState {
  return { scheduler, flags: 0, timeoutSeconds: 0, prefixLength, ...changes };
}

const PERSISTENT = { flags: IPVS_FLAGS.persistent, timeoutSeconds: 10_800 };
const MARKED: IpvsService = { protocol: 0, family: 'IPv4', address: null, port: 0, mark: 7 };

/** Services, and how ipvsadm puts their destinations and them. */
const SERVICES: readonly {
  readonly service: IpvsService;
  readonly state: IpvsServiceState;
  readonly endpoints: Uint8Array;
  readonly saved: readonly string[];
}[] = [
  {
    service: service('10.96.0.1', 443),
    state: state('rr', 32),
    endpoints: endpoints(['10.0.0.1', 8443], ['10.0.0.2', 8443]),
    saved: [
      '-A -t 10.96.0.1:443 -s rr',
      '-a -t 10.96.0.1:443 -r 10.0.0.1:8443 -m -w 1',
      '-a -t 10.96.0.1:443 -r 10.0.0.2:8443 -m -w 1',
    ],
  },
  {
    service: service('10.96.0.10', 53, 'UDP'),
    state: state('sh', 32, PERSISTENT),
    endpoints: endpoints(['10.0.0.3', 53]),
    saved: ['-A -u 10.96.0.10:53 -s sh -p 10800', '-a -u 10.96.0.10:53 -r 10.0.0.3:53 -m -w 1'],
  },
  {
    service: service('10.96.0.11', 80),
    state: state('wlc', 24, PERSISTENT),
    endpoints: endpoints(),
    saved: ['-A -t 10.96.0.11:80 -s wlc -p 10800 -M 255.255.255.0'],
  },
  {
    service: service('10.96.0.2', 9, 'SCTP'),
    state: state('lc', 32),
    endpoints: endpoints(['10.0.0.4', 9]),
    saved: ['-A --sctp-service 10.96.0.2:9 -s lc', '-a --sctp-service 10.96.0.2:9 -r 10.0.0.4:9 -m -w 1'],
  },
  {
    service: service('fd00:10:96::a', 53, 'UDP'),
    state: state('rr', 128),
    endpoints: endpoints(['fd00::5', 53]),
    saved: ['-A -u [fd00:10:96::a]:53 -s rr', '-a -u [fd00:10:96::a]:53 -r [fd00::5]:53 -m -w 1'],
  },
  {
    service: service('fd00:10:96::b', 80),
    state: state('wrr', 64, PERSISTENT),
    endpoints: endpoints(['fd00::5', 8080]),
    saved: ['-A -t [fd00:10:96::b]:80 -s wrr -p 10800 -M 64', '-a -t [fd00:10:96::b]:80 -r [fd00::5]:8080 -m -w 1'],
  },
  {
    service: MARKED,
    state: state('rr', 32),
    endpoints: endpoints(['10.0.0.1', 0]),
    saved: ['-A -f 7 -s rr', '-a -f 7 -r 10.0.0.1:0 -m -w 1'],
  },
];

function saved(): readonly string[] {
  return run('ipvsadm -Sn')
    .split('\n')
    .filter((line) => line !== '')
    .sort();
}

/** All services with their destinations, as text. */
async function listed(): Promise<readonly string[]> {
  const services = [...(await ipvs.ipvsServices('IPv4')), ...(await ipvs.ipvsServices('IPv6'))];
  const destinations = await ipvs.ipvsDestinations(services);
  return services
    .map((each, index) => {
      const { endpoints = new Uint8Array(), weights, methods } = destinations[index] ?? {};
      const list = new EndpointList(each.family, endpoints).toStrings();
      const text = list.map((endpoint, at) => `${endpoint} ${weights?.[at]} ${methods?.[at]}`).sort();
      return `${printService(each)} ${each.scheduler} ${each.flags} ${each.timeoutSeconds} ${each.prefixLength}: ${text.join(', ')}`;
    })
    .sort();
}

const NEW: readonly IpvsOperation[] = SERVICES.flatMap(({ service, state, endpoints }): IpvsOperation[] => [
  { type: 'service', verb: 'new', service, state },
  { type: 'destinations', verb: 'new', service, endpoints, weight: 1 },
]);

// Without any address the kernel takes none for a destination's.
run('ip link set lo up');

t.afterEach(() => run('ipvsadm -C'));

t.test('ipvsadm lists the created services, and its own are listed alike', async (t) => {
  t.same((await ipvs.ipvsApply(NEW)).refused, []);
  const expected = SERVICES.flatMap((each) => each.saved).sort();
  t.same(saved(), expected);
  const ours = await listed();
  t.equal(ours.length, SERVICES.length);
  run('ipvsadm -C');
  t.same(await listed(), []);
  run('ipvsadm -R', `${expected.join('\n')}\n`);
  t.same(await listed(), ours);
  t.same(
    (await ipvs.ipvsApply(SERVICES.map(({ service }) => ({ type: 'service', verb: 'delete', service, state: null }))))
      .refused,
    [],
  );
  t.same(saved(), []);
});

t.test('virtual services and destinations are changed in place', async (t) => {
  await ipvs.ipvsApply(NEW);
  const web = service('10.96.0.1', 443);
  const one = endpoints(['10.0.0.1', 8443]);
  const changes: readonly IpvsOperation[] = [
    { type: 'service', verb: 'set', service: web, state: state('mh', 32, { ...PERSISTENT, flags: 0x11 }) },
    { type: 'destinations', verb: 'set', service: web, endpoints: one, weight: 0 },
    { type: 'destinations', verb: 'delete', service: web, endpoints: endpoints(['10.0.0.2', 8443]), weight: 0 },
    {
      type: 'destinations',
      verb: 'new',
      service: web,
      endpoints: endpoints(['10.0.0.3', 443], ['10.0.0.4', 2]),
      weight: 100,
    },
  ];
  t.same((await ipvs.ipvsApply(changes)).refused, []);
  t.same(
    saved().filter((line) => line.includes('10.96.0.1:443')),
    [
      '-A -t 10.96.0.1:443 -s mh -p 10800 -b mh-port',
      '-a -t 10.96.0.1:443 -r 10.0.0.1:8443 -m -w 0',
      '-a -t 10.96.0.1:443 -r 10.0.0.3:443 -m -w 100',
      '-a -t 10.96.0.1:443 -r 10.0.0.4:2 -m -w 100',
    ],
  );
  run('ipvsadm -e -t 10.96.0.1:443 -r 10.0.0.3:443 -g -w 5');
  const [now] = await ipvs.ipvsDestinations([web]);
  t.same(
    [...(now?.weights ?? [])].sort((one, other) => one - other),
    [0, 5, 100],
  );
  t.same([...(now?.methods ?? [])].sort(), [0, 0, 3], 'a method that is not ours shows');
  await ipvs.ipvsApply([
    { type: 'destinations', verb: 'set', service: web, endpoints: endpoints(['10.0.0.3', 443]), weight: 1 },
  ]);
  t.ok(saved().includes('-a -t 10.96.0.1:443 -r 10.0.0.3:443 -m -w 1'), 'and is set right');
});

t.test('each ipvs message has its own answer', async (t) => {
  const web = service('10.96.0.1', 443);
  const missing = service('10.96.0.9', 80);
  const two = endpoints(['10.0.0.1', 1], ['10.0.0.2', 2]);
  const three = endpoints(['10.0.0.1', 1], ['10.0.0.3', 3], ['10.0.0.2', 2]);
  const refusals = (
    await ipvs.ipvsApply([
      { type: 'service', verb: 'new', service: web, state: state('rr', 32) },
      { type: 'service', verb: 'new', service: web, state: state('rr', 32) },
      { type: 'destinations', verb: 'new', service: web, endpoints: two, weight: 1 },
      { type: 'destinations', verb: 'new', service: web, endpoints: three, weight: 1 },
      { type: 'destinations', verb: 'set', service: web, endpoints: endpoints(['10.0.0.9', 9]), weight: 1 },
      {
        type: 'destinations',
        verb: 'delete',
        service: web,
        endpoints: endpoints(['10.0.0.9', 9], ['10.0.0.3', 3]),
        weight: 0,
      },
      { type: 'destinations', verb: 'new', service: missing, endpoints: two, weight: 1 },
      { type: 'service', verb: 'set', service: missing, state: state('rr', 32) },
      { type: 'service', verb: 'delete', service: missing, state: null },
      { type: 'service', verb: 'new', service: missing, state: state('nonsense', 32) },
    ])
  ).refused;
  t.same(
    refusals.map(({ index, element, errno, object }) => [index, element, errno, object]),
    [
      [1, null, 'EEXIST', 'new virtual service tcp 10.96.0.1:443 scheduler rr'],
      [3, 0, 'EEXIST', 'new destination 10.0.0.1:1 of tcp 10.96.0.1:443'],
      [3, 2, 'EEXIST', 'new destination 10.0.0.2:2 of tcp 10.96.0.1:443'],
      [4, 0, 'ENOENT', 'set destination 10.0.0.9:9 of tcp 10.96.0.1:443'],
      [5, 0, 'ENOENT', 'delete destination 10.0.0.9:9 of tcp 10.96.0.1:443'],
      [6, 0, 'ESRCH', 'new destination 10.0.0.1:1 of tcp 10.96.0.9:80'],
      [6, 1, 'ESRCH', 'new destination 10.0.0.2:2 of tcp 10.96.0.9:80'],
      [7, null, 'ESRCH', 'set virtual service tcp 10.96.0.9:80 scheduler rr'],
      [8, null, 'ESRCH', 'delete virtual service tcp 10.96.0.9:80'],
      [9, null, 'ENOENT', 'new virtual service tcp 10.96.0.9:80 scheduler nonsense'],
    ],
  );
  t.equal(saved().length, 3);
});

t.test('ipvs digests ignore order and connections, and differ after every other change', async (t) => {
  const [web, other] = [service('10.96.0.1', 443), service('10.96.0.2', 443)];
  const digests = async (): Promise<readonly number[]> => [
    await ipvs.ipvsServicesDigest('IPv4'),
    ...(await ipvs.ipvsDestinationsDigests([web, other])),
  ];
  const none = await digests();
  t.same(none.slice(1), [0, 0], 'nothing has no digest');
  const made = ['-A -t 10.96.0.1:443 -s rr', '-A -t 10.96.0.2:443 -s rr'];
  const filled = ['10.0.0.1', '10.0.0.2'].map((each) => `-a -t 10.96.0.1:443 -r ${each}:443 -m -w 1`);
  run('ipvsadm -R', [...made, ...filled, ''].join('\n'));
  const full = await digests();
  t.same(
    full.map((each, index) => each === none[index]),
    [false, false, true],
  );
  run('ipvsadm -C');
  run('ipvsadm -R', [...made.reverse(), ...filled.reverse(), ''].join('\n'));
  t.same(await digests(), full, 'in another order');
  t.equal(await ipvs.ipvsServicesDigest('IPv6'), await ipvs.ipvsServicesDigest('IPv6'));
  const changes: readonly (readonly [command: string, place: number])[] = [
    ['ipvsadm -E -t 10.96.0.2:443 -s lc', 0],
    ['ipvsadm -E -t 10.96.0.2:443 -s rr -p 100', 0],
    ['ipvsadm -E -t 10.96.0.2:443 -s rr -p 100 -M 255.255.255.0', 0],
    ['ipvsadm -A -u 10.96.0.2:443 -s rr', 0],
    ['ipvsadm -e -t 10.96.0.1:443 -r 10.0.0.1:443 -m -w 0', 1],
    ['ipvsadm -e -t 10.96.0.1:443 -r 10.0.0.1:443 -g -w 1', 1],
    ['ipvsadm -e -t 10.96.0.1:443 -r 10.0.0.1:443 -m -w 1 -x 9', 1],
    ['ipvsadm -d -t 10.96.0.1:443 -r 10.0.0.2:443', 1],
    ['ipvsadm -a -t 10.96.0.2:443 -r 10.0.0.2:443 -m', 2],
  ];
  let before = await digests();
  for (const [command, place] of changes) {
    run(command);
    const after = await digests();
    t.same(
      after.flatMap((each, index) => (each === before[index] ? [] : [index])),
      [place],
      command,
    );
    before = after;
  }
  const [destinations] = await ipvs.ipvsDestinations([web]);
  t.same([...(destinations?.bounded ?? [])], [1]);
});

t.test('every scheduler in the kernel can be used', async (t) => {
  const modules = readdirSync(`/lib/modules/${run('uname -r').trim()}/kernel/net/netfilter/ipvs`);
  const schedulers = modules.flatMap((name) => /^ip_vs_(?!ftp|pe_)(\w+)\.ko/.exec(name)?.[1] ?? []);
  t.ok(schedulers.includes('rr') && schedulers.length >= 10, schedulers.join(' '));
  const web = service('10.96.0.1', 80);
  t.same((await ipvs.ipvsApply([{ type: 'service', verb: 'new', service: web, state: state('rr', 32) }])).refused, []);
  for (const scheduler of schedulers) {
    t.same(
      (await ipvs.ipvsApply([{ type: 'service', verb: 'set', service: web, state: state(scheduler, 32) }])).refused,
      [],
      scheduler,
    );
    t.equal((await ipvs.ipvsServices('IPv4'))[0]?.scheduler, scheduler);
  }
});

t.test('ipvs connections are counted', async (t) => {
  const web = service('127.0.0.1', 80, 'UDP');
  await ipvs.ipvsApply([
    { type: 'service', verb: 'new', service: web, state: state('rr', 32) },
    { type: 'destinations', verb: 'new', service: web, endpoints: endpoints(['127.0.0.1', 8080]), weight: 1 },
  ]);
  for (let sent = 0; sent < 3; sent++) {
    const socket = createSocket('udp4');
    await new Promise((resolve) => {
      socket.send('x', 80, '127.0.0.1', resolve);
    });
    socket.close();
  }
  const [destinations] = await ipvs.ipvsDestinations([web]);
  t.same([...(destinations?.connections ?? [])], [3]);
});

t.test('the endpoint of a persistent client is shown while the kernel remembers it', async (t) => {
  for (const [family, address] of [
    ['udp4', '127.0.0.1'],
    ['udp6', '::1'],
  ] as const) {
    const web = service(address, 80, 'UDP');
    // Others than above: a destination that comes again has its connections still.
    const [one, other] = [endpoints([address, 9080]), endpoints([address, 9081])];
    await ipvs.ipvsApply([
      { type: 'service', verb: 'new', service: web, state: state('rr', family === 'udp4' ? 32 : 128, PERSISTENT) },
      { type: 'destinations', verb: 'new', service: web, endpoints: join(one, other), weight: 1 },
    ]);
    t.equal(await ipvs.ipvsRemembered(web, packed(address)), null, 'before the first request');
    for (let sent = 0; sent < 3; sent++) {
      const socket = createSocket(family);
      await new Promise((resolve) => {
        socket.send('x', 80, address, resolve);
      });
      socket.close();
    }
    const [destinations] = await ipvs.ipvsDestinations([web]);
    const counts = [...(destinations?.connections ?? [])];
    t.same(
      counts.filter((count) => count > 0),
      [3],
      'all go to one',
    );
    const at = counts.indexOf(3) * one.length;
    const asked = destinations?.endpoints.subarray(at, at + one.length);
    t.same(await ipvs.ipvsRemembered(web, packed(address)), asked, 'to which it is sent again');
    const [stranger, elsewhere] = family === 'udp4' ? (['127.0.0.2', '127.0.0.3'] as const) : (['::2', '::3'] as const);
    t.equal(await ipvs.ipvsRemembered(web, packed(stranger)), null, 'another client');
    t.equal(await ipvs.ipvsRemembered(service(elsewhere, 80, 'UDP'), packed(address)), null, 'another service');
    t.equal(await ipvs.ipvsRemembered(service(address, 80), packed(address)), null, 'another protocol');
  }
});

t.test('ipvs timeouts are read, and set unless 0', async (t) => {
  await ipvs.ipvsSetTimeouts({ tcp: 901, tcpFin: 121, udp: 301 });
  t.same(await ipvs.ipvsTimeouts(), { tcp: 901, tcpFin: 121, udp: 301 });
  await ipvs.ipvsSetTimeouts({ tcp: 0, tcpFin: 60, udp: 0 });
  t.same(await ipvs.ipvsTimeouts(), { tcp: 901, tcpFin: 60, udp: 301 });
  t.match(run('ipvsadm -L --timeout'), /901 60 301/);
});

t.test('thousands of ipvs destinations are listed', async (t) => {
  const web = service('10.96.0.1', 80);
  const count = 3000;
  const many = new Uint8Array(count * 6);
  for (let at = 0; at < count; at++) many.set([10, 1, at >> 8, at & 0xff, 0x1f, 0x90], at * 6);
  await ipvs.ipvsApply([{ type: 'service', verb: 'new', service: web, state: state('rr', 32) }]);
  const started = performance.now();
  const added = { type: 'destinations', verb: 'new', service: web, endpoints: many, weight: 1 } as const;
  t.same(await ipvs.ipvsApply([added]), { refused: [], bytes: count * 140 }, 'a message each');
  t.comment(`${Math.round((count * 1000) / (performance.now() - started))} destinations a second`);
  const [destinations] = await ipvs.ipvsDestinations([web]);
  t.equal(destinations?.endpoints.length, many.length);
  t.equal(saved().length, count + 1);
  t.equal((await ipvs.ipvsApply([added])).refused.length, count);
});

t.test('the dummy link is made once, stays down, and its addresses are local at once', async (t) => {
  t.equal(await route.linkEnsureDummy('kube-ipvs0'), true);
  t.equal(await route.linkEnsureDummy('kube-ipvs0'), false);
  t.match(run('ip -d link show kube-ipvs0'), /kube-ipvs0: <BROADCAST,NOARP> .*state DOWN.*\n.*\n.*dummy/);
  const v4 = { type: 'add', family: 'IPv4', addresses: packed('10.96.0.1', '10.96.0.10') } as const;
  const v6 = { type: 'add', family: 'IPv6', addresses: packed('fd00:10:96::1') } as const;
  t.same((await route.addressApply('kube-ipvs0', [v4, v6])).refused, []);
  t.same((await route.linkAddresses('kube-ipvs0'))?.map(addressFromBytes).sort(), [
    '10.96.0.1',
    '10.96.0.10',
    'fd00:10:96::1',
  ]);
  t.match(run('ip route get 10.96.0.1'), /^local 10\.96\.0\.1/);
  t.notMatch(run('ip -6 address show dev kube-ipvs0'), /tentative/);
  t.equal(await route.linkDelete('kube-ipvs0'), true);
});

t.test('sets of address pairs match in ipvs mode', async (t) => {
  const pair = join(packed('10.0.0.1', '10.0.0.1'), [32, 32]);
  const set = { name: 'KUBE-LOOP-BACK', type: 'hash:net,net', family: 'IPv4', ...HASH } as const;
  await ipsetRoundTrip(t, ipset, {
    set,
    elements: [{ bytes: pair, text: '10.0.0.1,10.0.0.1', comment: 'default/web:http' }],
  });
});
