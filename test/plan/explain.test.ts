import t from 'tap';
import { familyOf, type IPAddress } from '../../src/base/ip.js';
import { printExplanation } from '../../src/plan/explain-text.js';
import { explain, type Explanation } from '../../src/plan/explain.js';
import type { PlanSettings } from '../../src/plan/facts.js';
import { Planner } from '../../src/plan/planner.js';
import { parseQuestion } from '../../src/plan/question.js';
import type { NodeRow, Row, ServiceRow } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings, PLAIN_TRAITS } from '../support/plan-settings.js';
import { address, node, port, prefix, service, serviceCIDR, slice, type EndpointText } from '../support/rows.js';

/** Explanations on the node `me` in zone `a`, 192.168.0.2 and fd00::2, with pods in 10.0.0.0/8 and fd00:10::/64. */
class Scene {
  readonly store = new Store();
  private readonly planner: Planner;
  private readonly settings: PlanSettings;
  private readonly writer = this.store.register('scene');

  constructor(rows: readonly Row[], settings: Partial<PlanSettings> = {}, me: Partial<NodeRow> = {}) {
    this.settings = planSettings(settings);
    this.planner = new Planner(this.settings);
    const self = { ...node('me', ['192.168.0.2', 'fd00::2'], { zone: 'a' }), ...me };
    this.writer.apply([self, ...rows].map((row) => ({ type: 'upsert', row })));
    this.writer.complete();
    this.plan();
  }

  /** @param most entries of the plan. */
  plan(most = Infinity): void {
    const steps = this.planner.plan(this.store.snapshot, this.store.takeChanges(), most);
    while (steps.next().done !== true);
  }

  upsert(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  }

  remove(name: string): void {
    this.writer.apply([{ type: 'remove', ref: { kind: 'Service', namespace: 'default', name } }]);
  }

  unsynced(): void {
    this.writer.unsynced(true);
    this.plan();
  }

  ask(from: string, to: string): Explanation {
    const question = parseQuestion(from, to);
    const table = this.planner.tables[familyOf(question.destination)];
    return explain(this.store.snapshot, table, this.settings, LOCAL, question);
  }

  /** The lines of one subject as people read them. */
  say(from: string, to: string, subject: string): readonly string[] {
    const lines = printExplanation(this.ask(from, to));
    const start = lines.findIndex((line) => line.startsWith(subject));
    if (start < 0) return [];
    const rest = lines.slice(start + 1).findIndex((line) => !line.startsWith(' '));
    return lines.slice(start, rest < 0 ? undefined : start + 1 + rest).map((line) => line.slice(12));
  }

  head(from: string, to: string): string {
    return printExplanation(this.ask(from, to))[0] ?? '';
  }
}

const LOCAL: readonly IPAddress[] = ['127.0.0.1', '::1', '192.168.0.2', '192.168.0.3', 'fd00::2'].map(address);
const IP = '10.96.0.10';
const CLUSTER_IP = `${IP}:80/TCP`;

function web(endpoints: readonly EndpointText[], fields: Parameters<typeof service>[1] = {}): Row[] {
  return [service('web', { clusterIPs: [IP], ...fields }), slice('web', endpoints)];
}

/** Endpoint and why, as many as there are. */
function reasons({ endpoints }: Explanation): readonly string[] {
  return endpoints.map(({ endpoint, excluded }) => `${endpoint} ${excluded ?? 'used'}`);
}

t.test('explain says why an endpoint is not used', (t) => {
  const rows: readonly (readonly [string, readonly EndpointText[], readonly string[], string?])[] = [
    [
      'not ready, and terminating, while others are ready',
      [
        { address: '10.0.0.4', state: '' },
        { address: '10.0.0.3', state: 'st' },
        { address: '10.0.0.2', state: 's' },
        { address: '10.0.0.1', node: 'other' },
      ],
      [
        '10.0.0.1:80  other  used',
        '10.0.0.2:80  -      not used: not ready',
        '10.0.0.3:80  -      not used: terminating, and others are ready',
        '10.0.0.4:80  -      not used: not ready',
      ],
    ],
    [
      'the last resort',
      [
        { address: '10.0.0.1', state: 'st' },
        { address: '10.0.0.2', state: 't' },
        { address: '10.0.0.3', state: 's' },
      ],
      [
        '10.0.0.1:80  -  used: terminating, and none is ready',
        '10.0.0.2:80  -  not used: not ready, and does not serve',
        '10.0.0.3:80  -  not used: not ready',
      ],
    ],
    [
      'hints for other zones',
      [
        { address: '10.0.0.1', zones: ['a'] },
        { address: '10.0.0.2', zones: ['b', 'c'] },
      ],
      ['10.0.0.1:80  -  used', '10.0.0.2:80  -  not used: hints name other zones: b, c'],
    ],
    [
      'hints for other nodes, which go before those for zones',
      [
        { address: '10.0.0.1', zones: ['b'], nodes: ['me'] },
        { address: '10.0.0.2', zones: ['a'], nodes: ['other'] },
      ],
      ['10.0.0.1:80  -  used', '10.0.0.2:80  -  not used: hints name other nodes: other'],
    ],
    [
      'hints that do not cover every endpoint count for nothing',
      [{ address: '10.0.0.1', zones: ['b'] }, { address: '10.0.0.2' }],
      ['10.0.0.1:80  -  used', '10.0.0.2:80  -  used'],
    ],
    [
      'the same endpoint again: the later counts',
      [
        { address: '10.0.0.1', node: 'other' },
        { address: '10.0.0.1', node: 'me' },
      ],
      ['10.0.0.1:80  me     used', '10.0.0.1:80  other  not used: the same address and port are given again'],
    ],
    [
      'the same endpoint again on its way out: the earlier counts',
      [
        { address: '10.0.0.1', node: 'me' },
        { address: '10.0.0.1', node: 'other', state: 'st' },
      ],
      ['10.0.0.1:80  me     used', '10.0.0.1:80  other  not used: the same address and port are given again'],
    ],
    ['nothing', [], ['none']],
  ];
  for (const [name, endpoints, lines] of rows)
    t.same(new Scene(web(endpoints)).say('external', CLUSTER_IP, 'endpoints'), lines, name);
  const local = web(
    [{ address: '10.0.0.1', node: 'me' }, { address: '10.0.0.2', node: 'other' }, { address: '10.0.0.3' }],
    {
      internalTrafficPolicy: 'Local',
    },
  );
  t.same(reasons(new Scene(local).ask('external', CLUSTER_IP)), [
    '10.0.0.1:80 used',
    '10.0.0.2:80 other-node',
    '10.0.0.3:80 other-node',
  ]);
  const slices = [
    ...web([{ address: '10.0.0.1' }]),
    slice('web', [{ address: 'fd00:10::1' }, { address: 'fd00:10::2' }], { name: 'web-v6' }),
    slice('web', [{ address: '10.0.0.9' }], { name: 'web-admin', ports: [{ name: 'admin' }] }),
    slice('web', [{ address: '10.0.0.9' }], { name: 'web-udp', ports: [{ protocol: 'UDP' }] }),
  ];
  t.same(new Scene(slices).say('external', CLUSTER_IP, 'endpoints'), [
    '10.0.0.1:80  -  used',
    'not used: 1 of slice web-admin: it has no port of this name and protocol',
    'not used: 1 of slice web-udp: it has no port of this name and protocol',
    'not used: 2 of slice web-v6: IPv6',
  ]);
  t.end();
});

const TWO: readonly EndpointText[] = [
  { address: '10.0.0.1', node: 'me' },
  { address: '10.0.0.2', node: 'other' },
];

function balanced(fields: Parameters<typeof service>[1] = {}, endpoints = TWO): Row[] {
  return web(endpoints, {
    loadBalancer: ['192.0.2.1'],
    externalIPs: ['198.51.100.1'],
    ports: [{ nodePort: 30080 }],
    ...fields,
  });
}

t.test('explain names policies, and the clients that they apply to', (t) => {
  const cluster = new Scene(balanced());
  t.same(cluster.say('external', CLUSTER_IP, 'policy'), ['internalTrafficPolicy Cluster: endpoints on every node']);
  t.same(cluster.say('external', '192.0.2.1:80', 'policy'), ['externalTrafficPolicy Cluster: endpoints on every node']);
  const local = new Scene(balanced({ externalTrafficPolicy: 'Local' }));
  for (const to of ['192.0.2.1:80', '198.51.100.1:80', '192.168.0.2:30080']) {
    t.same(local.say('external', to, 'policy'), ['externalTrafficPolicy Local: endpoints on this node only'], to);
    t.equal(local.head('external', to), `TCP from outside to ${to} is forwarded to 10.0.0.1:80, keeping its source`);
    for (const from of ['10.9.9.9', 'node']) {
      t.same(local.say(from, to, 'policy'), [
        'externalTrafficPolicy Local, which pods and the node itself are not subject to: endpoints on every node',
      ]);
      t.match(local.ask(from, to), {
        policy: { value: 'Local', applied: 'Cluster' },
        verdict: { endpoints: { length: 2 } },
      });
    }
  }
  t.same(local.say('external', CLUSTER_IP, 'policy'), ['internalTrafficPolicy Cluster: endpoints on every node']);
  const away = new Scene(balanced({ externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' }, TWO.slice(1)));
  for (const to of ['192.0.2.1:80', CLUSTER_IP])
    t.match(away.head('external', to), /is dropped: policy Local, and there is no endpoint on this node$/);
  t.end();
});

t.test('explain says whether a packet is masqueraded', (t) => {
  const masquerade = (scene: Scene, from: string, to: string): readonly string[] => scene.say(from, to, 'masquerade');
  const plain = new Scene(balanced());
  t.same(masquerade(plain, 'external', CLUSTER_IP), ['yes: the source is not a pod by the local detector']);
  t.same(masquerade(plain, 'node', CLUSTER_IP), ['yes: the source is not a pod by the local detector']);
  t.same(masquerade(plain, '10.9.9.9', CLUSTER_IP), ['no: the source is a pod']);
  t.same(masquerade(plain, '10.9.9.9', '192.0.2.1:80'), ['yes: externalTrafficPolicy is Cluster']);
  t.same(masquerade(plain, '10.0.0.1', CLUSTER_IP), [
    'no: the source is a pod',
    'yes if it goes to 10.0.0.1:80, the sender itself',
  ]);
  const local = new Scene(balanced({ externalTrafficPolicy: 'Local' }));
  t.same(masquerade(local, 'external', '192.0.2.1:80'), ['no: policy Local keeps the source']);
  t.same(masquerade(local, '10.9.9.9', '192.0.2.1:80'), ['no: the source is a pod']);
  t.same(masquerade(local, 'node', '192.0.2.1:80'), ['yes: the node itself sends it']);
  t.same(masquerade(new Scene(balanced(), { masqueradeAll: true }), '10.9.9.9', CLUSTER_IP), ['yes: masqueradeAll']);
  const blind = new Scene(balanced(), { localDetection: { type: 'ClusterCIDR', prefixes: [] } });
  t.same(masquerade(blind, 'external', CLUSTER_IP), ['no: there is no local detector, every source counts as a pod']);
  const host = new Scene(balanced({}, [...TWO, { address: '192.168.0.2', node: 'me' }]));
  t.same(masquerade(host, 'external', '192.0.2.1:80'), [
    'yes: externalTrafficPolicy is Cluster',
    'no if it goes to 192.168.0.2:80, on this node itself: what does not leave keeps its source',
  ]);
  t.match(host.head('external', '192.0.2.1:80'), /to one of 3 endpoints, masqueraded or not as the endpoint may be$/);
  t.match(host.head('node', '192.0.2.1:80'), /, masqueraded$/, 'what the node sends itself leaves first');
  t.match(host.head('external', '8.8.8.8:80'), /left alone/);
  t.same(masquerade(plain, 'external', '192.0.2.1:81'), [], 'nothing where nothing is forwarded');
  t.end();
});

t.test('explain says why a packet is not forwarded', (t) => {
  const rows = [
    ...balanced({ sourceRanges: ['203.0.113.0/24', '10.0.0.0/8'] }),
    serviceCIDR('kubernetes', ['10.96.0.0/16']),
  ];
  const scene = new Scene(rows);
  const heads: readonly (readonly [string, string, string])[] = [
    ['external', '10.96.0.10:81', 'rejected: no Service has this port of the address'],
    ['external', '10.96.0.99:80', 'dropped: the address is in a service CIDR and no Service has it'],
    ['external', '8.8.8.8:53/UDP', 'left alone: it is not for a Service'],
    ['203.0.114.1', '192.0.2.1:80', 'dropped: the source is in none of loadBalancerSourceRanges'],
    ['external', '192.0.2.1:80', 'dropped: the source is in none of loadBalancerSourceRanges'],
    ['203.0.113.1', '192.0.2.1:80', 'forwarded to one of 2 endpoints, masqueraded'],
  ];
  for (const [from, to, end] of heads) t.ok(scene.head(from, to).endsWith(` is ${end}`), scene.head(from, to));
  t.same(scene.say('203.0.113.1', '192.0.2.1:80', 'ranges'), ['10.0.0.0/8, 203.0.113.0/24: the source is admitted']);
  t.same(scene.say('203.0.114.1', '192.0.2.1:80', 'ranges'), [
    '10.0.0.0/8, 203.0.113.0/24: the source is not admitted',
  ]);
  t.same(scene.say('external', '192.0.2.1:80', 'ranges'), [
    '10.0.0.0/8, 203.0.113.0/24: others are dropped; ask with an address to see one admitted',
  ]);
  t.same(scene.say('external', '198.51.100.1:80', 'ranges'), [], 'ranges are for balancer addresses');
  t.same(scene.say('external', '10.96.0.10:81', 'note'), ['the address has 80/TCP of default/web']);
  t.same(scene.say('external', '10.96.0.10:81', 'service'), ['none has this address and port']);
  const empty = new Scene(web([{ address: '10.0.0.1', state: '' }]));
  t.match(empty.head('node', CLUSTER_IP), /^TCP from 192.168.0.2 to .* is rejected: the Service has no endpoint that/);
  t.end();
});

t.test('explain names addresses that are not served, with the reason', (t) => {
  const rows = balanced({ loadBalancer: ['192.0.2.1', { address: address('192.0.2.9'), ipMode: 'Proxy' }] });
  const scene = new Scene(rows, { allowExternalIPs: false });
  const note = (to: string): readonly string[] => scene.say('external', to, 'note');
  t.same(note('192.0.2.9:80'), [
    'it is a load balancer address of default/web with ipMode Proxy: left to the load balancer',
  ]);
  t.same(note('198.51.100.1:80'), ['it is an external IP of default/web, and external IPs are switched off']);
  t.same(note('127.0.0.1:30080'), ['30080/TCP is a node port of default/web; node ports do not answer on loopback']);
  t.same(note('192.168.0.9:30080'), ['30080/TCP is a node port of default/web; this is no address of the node']);
  t.same(note('192.168.0.3:30080'), [
    '30080/TCP is a node port of default/web; nodePortAddresses leave this address out',
  ]);
  t.same(scene.say('external', '192.168.0.2:30080', 'service'), ['default/web, node port nodeport:30080/TCP']);
  t.end();
});

t.test("explain says that an external IP is within the cluster's own ranges", (t) => {
  const scene = new Scene([...balanced({ externalIPs: ['10.96.9.9'] }), serviceCIDR('kubernetes', ['10.96.0.0/16'])]);
  t.same(scene.say('external', '10.96.9.9:80', 'note'), [
    'default/web: external IP 10.96.9.9 is not served: it is within the range of Services 10.96.0.0/16',
  ]);
  t.end();
});

t.test('explain names conflicts, affinity, unsynced sources and deleted Services', (t) => {
  const older: ServiceRow = service('older', {
    clusterIPs: ['10.96.0.11'],
    externalIPs: ['198.51.100.1'],
    creationTime: -1,
  });
  const scene = new Scene([...balanced({ affinitySeconds: 30 }), older]);
  t.same(scene.say('external', '198.51.100.1:80', 'conflict'), [
    'conflict: IPv4 198.51.100.1:80/TCP belongs to default/older, the older Service; default/web does not get it',
  ]);
  t.same(scene.say('external', CLUSTER_IP, 'affinity'), ['by client address, for 30 s']);
  t.same(scene.say('external', '198.51.100.1:80', 'affinity'), []);
  scene.unsynced();
  t.match(scene.say('external', CLUSTER_IP, 'note'), [/could not read everything/]);
  scene.remove('web');
  t.match(scene.ask('external', CLUSTER_IP), { frontend: { servicePort: 'default/web' }, policy: null, endpoints: [] });
  t.match(scene.say('external', CLUSTER_IP, 'note'), [
    /could not read everything/,
    /default\/web is gone; the next sync/,
  ]);
  t.end();
});

t.test('explain says what the sender of a packet is', (t) => {
  const endpoints = web([{ address: '10.0.0.1' }]);
  const bridge = new Scene(
    endpoints,
    { localDetection: { type: 'BridgeInterface', name: 'cbr0' } },
    {
      podCIDRs: [prefix('10.0.0.0/24')],
    },
  );
  const kind = (scene: Scene, from: string): string => scene.ask(from, CLUSTER_IP).source.kind;
  t.equal(kind(bridge, 'cbr0'), 'pod');
  t.equal(kind(bridge, 'eth0'), 'other');
  t.equal(kind(bridge, '10.0.0.7%cbr0'), 'pod');
  t.equal(kind(bridge, '10.0.0.7%eth0'), 'other');
  t.equal(kind(bridge, '10.0.0.7'), 'pod', 'by the pod CIDR');
  t.equal(kind(bridge, '10.0.1.7'), 'other', 'by the pod CIDR');
  t.match(bridge.say('10.0.0.7', CLUSTER_IP, 'note'), [/counts as one, being in the Node's podCIDRs/]);
  t.match(bridge.say('10.0.1.7', CLUSTER_IP, 'note'), [/counts as none, not being in the Node's podCIDRs/]);
  t.equal(kind(bridge, 'node'), 'node');
  t.equal(kind(bridge, '192.168.0.3'), 'node', 'any of its addresses');
  const names = new Scene(endpoints, { localDetection: { type: 'InterfaceNamePrefix', prefix: 'veth' } });
  t.equal(kind(names, 'veth7'), 'pod');
  const prefixes = new Scene(endpoints);
  t.equal(kind(prefixes, 'cbr0'), 'other');
  t.match(prefixes.say('cbr0', CLUSTER_IP, 'note'), [/pods are recognised by their address/]);
  t.same(prefixes.say('10.0.0.7%cbr0', CLUSTER_IP, 'source'), ['10.0.0.7 through cbr0: a pod by the local detector']);
  t.same(prefixes.say('cbr0', CLUSTER_IP, 'source'), [
    'any client through cbr0: neither a pod by the local detector nor the node',
  ]);
  t.equal(kind(new Scene(endpoints, {}, { addresses: [address('10.3.3.3')] }), 'node'), 'pod', 'NF-36');
  const anonymous = new Scene(endpoints, {}, { addresses: [] });
  t.same(anonymous.say('node', CLUSTER_IP, 'source'), ['node: the node itself']);
  t.end();
});

t.test('explain answers for both families', (t) => {
  const rows: Row[] = [
    service('dual', { clusterIPs: [IP, 'fd00:96::1'], ports: [port({ name: 'http' })] }),
    slice('dual', [{ address: 'fd00:10::1' }], { ports: [{ name: 'http', port: 8080 }] }),
  ];
  const scene = new Scene(rows);
  t.equal(
    scene.head('fd00:10::9', '[fd00:96::1]:80'),
    'TCP from fd00:10::9 to [fd00:96::1]:80 is forwarded to [fd00:10::1]:8080, keeping its source',
  );
  t.same(scene.say('external', '[fd00:96::1]:80', 'service'), ['default/dual:http, cluster IP [fd00:96::1]:80/TCP']);
  t.same(JSON.parse(JSON.stringify(scene.ask('node', CLUSTER_IP))), scene.ask('node', CLUSTER_IP), 'is JSON');
  t.end();
});

t.test('explain reports a Service that cannot be planned', (t) => {
  const [web, late] = [service('web', { clusterIPs: ['10.96.0.1'] }), service('late', { clusterIPs: ['10.96.0.2'] })];
  const scene = new Scene([web, slice('web', [{ address: '10.0.0.1' }])]);
  let isBroken = false;
  const ports = new Proxy(web.ports, {
    get: (target, name) => {
      if (isBroken) throw new Error('out of order');
      return Reflect.get(target, name) as unknown;
    },
  });
  scene.upsert({ ...web, ports, affinitySeconds: 30 }, { ...late, ports });
  isBroken = true;
  scene.plan();
  const reported = (name: string): readonly string[] => [
    `Service default/${name} cannot be planned, so it is as it was, which is tried again: out of order`,
  ];
  t.match(scene.head('external', '10.96.0.1:80/TCP'), /is forwarded to 10\.0\.0\.1/);
  t.same(scene.say('external', '10.96.0.1:80/TCP', 'note'), reported('web'));
  t.same(scene.say('external', '10.96.0.2:80/TCP', 'note'), reported('late'));
  t.same(scene.say('external', '10.96.0.3:80/TCP', 'note'), []);
  t.end();
});

t.test('explain reports a Service whose change is left to a later sync', (t) => {
  const scene = new Scene([service('web', { clusterIPs: ['10.96.0.1'] }), slice('web', [{ address: '10.0.0.1' }])]);
  scene.upsert(
    service('web', { clusterIPs: ['10.96.0.1'], affinitySeconds: 30 }),
    service('late', { clusterIPs: ['10.96.0.2'] }),
  );
  scene.plan(1);
  t.same(scene.say('external', '10.96.0.2:80/TCP', 'note'), [], 'the first is planned');
  t.same(scene.say('external', '10.96.0.1:80/TCP', 'note'), [
    'Service default/web has changed, and a sync that follows soon takes that: it is as it was',
  ]);
  t.same(scene.say('external', '10.96.0.1:80/TCP', 'affinity'), []);
  scene.plan(1);
  t.same(scene.say('external', '10.96.0.1:80/TCP', 'affinity'), ['by client address, for 30 s']);
  t.same(scene.say('external', '10.96.0.1:80/TCP', 'note'), []);
  t.end();
});

t.test('explain shows shares of endpoints, how one is picked, and limitations', (t) => {
  const slices = [
    slice('web', [{ address: '10.0.0.1' }], { name: 'a' }),
    slice('web', [{ address: '10.0.0.2' }], { name: 'b' }),
  ];
  const rows = (balance: ServiceRow['balance']): Row[] => [
    service('web', { clusterIPs: [IP], ...(balance === undefined ? {} : { balance }) }),
    ...slices.map((row, index) => ({ ...row, weight: index === 0 ? 1 : 3 })),
    slice('web', [{ address: '10.0.0.3' }], { name: 'c' }),
  ];
  const [, , , third] = rows(undefined);
  const scene = new Scene([...rows(undefined).slice(0, 3), { ...(third as (typeof slices)[0]), weight: 0 }]);
  t.same(scene.say('external', `${IP}:80`, 'endpoints'), [
    '10.0.0.1:80  -  used, 25.1 %',
    '10.0.0.2:80  -  used, 74.9 %',
    '10.0.0.3:80  -  not used: weight 0: no new connections',
  ]);
  t.same(scene.say('external', `${IP}:80`, 'balance'), ['by chance, in unequal shares; a table of 251 slots']);
  const hashed = new Scene(rows({ by: 'address', unreadable: ['annotation x is "y"'] }));
  t.same(hashed.say('external', `${IP}:80`, 'balance'), [
    'hash=address: the same client gets the same endpoint; a table of 251 slots',
  ]);
  t.same(hashed.say('external', `${IP}:80`, 'note'), ['annotation x is "y"']);
  const elsewhere = new Scene(rows({ by: 'address', unreadable: [] }), { traits: PLAIN_TRAITS });
  t.same(elsewhere.say('external', `${IP}:80`, 'balance'), []);
  t.match(elsewhere.say('external', `${IP}:80`, 'note'), [/without effect: this mode has no tables of slots/]);
  t.end();
});

t.test('explain: an endpoint excluded by zone shares stays unused, though external clients have a local list', (t) => {
  const balance = {
    by: null,
    spill: {
      clients: [
        { zone: 'a', share: 70 },
        { zone: 'b', share: 30 },
      ],
    },
    unreadable: [],
  };
  const endpoints = slice('web', [
    { address: '10.1.0.2', node: 'other' },
    { address: '10.1.0.4', node: 'me' },
  ]);
  const rows = [
    service('web', { loadBalancer: ['192.0.2.1'], externalTrafficPolicy: 'Local', balance }),
    { ...endpoints, zoneNames: ['a', 'b'], zones: '\u0002\u0001' },
  ];
  const scene = new Scene(rows, {}, { zone: 'b' });
  const used = (from: string): readonly string[] =>
    scene
      .ask(from, '192.0.2.1:80')
      .endpoints.flatMap(({ endpoint, excluded }) => (excluded === null ? [endpoint] : []));
  t.same(used('10.0.0.9'), ['10.1.0.2:80'], 'a pod');
  t.same(used('external'), ['10.1.0.4:80'], 'a client outside');
  t.end();
});
