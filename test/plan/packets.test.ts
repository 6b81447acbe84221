import t from 'tap';
import type { ForwardingTable } from '../../src/plan/forwarding-table.js';
import type { LocalDetector } from '../../src/plan/types.js';
import type { EndpointSliceRow, ServiceRow } from '../../src/state/rows.js';
import {
  address,
  nodePortAddresses,
  prefix,
  service,
  slice,
  type EndpointText,
  type ServiceText,
} from '../support/rows.js';
import { sourceKind } from '../support/plan-tracer.js';
import { PacketTracer, type PacketScene } from './packet-scene.js';

/**
 * Behaviour §10, row by row; rows of one mode only are left to that mode. A check is `id: senders > targets = verdict`, the verdict as
 * {@link printVerdict} prints it, with `names` standing for longer texts.
 */

function verify(title: string, scene: PacketScene, checks: string, names: Readonly<Record<string, string>> = {}): void {
  t.test(`packet verdicts: ${title}`, (t) => {
    const tracer = new PacketTracer(scene);
    const named = (text: string): string =>
      Object.entries(names).reduce((all, [name, value]) => all.replaceAll(name, value), text);
    for (const line of checks.trim().split('\n')) {
      const [, id = '', sender = '', target = '', verdict = ''] =
        /^(.*): +(\S+) > +(\S+) += (.*)$/.exec(line.trim()) ?? [];
      if (id === '') throw new Error(`not a check: ${line}`);
      for (const each of named(target).split(',')) {
        for (const from of sender.split(','))
          t.equal(tracer.verdict(from, each), named(verdict), `${id}: ${from} to ${each}`);
      }
    }
    t.end();
  });
}

const local = (host: string, state = 'rs'): EndpointText => ({ address: host, state, node: 'me' });
const remote = (host: string, state = 'rs'): EndpointText => ({ address: host, state, node: 'other' });
const C = '172.30.0.41';
const X = '192.168.99.11';
const L = '1.2.3.4';
const BALANCED: ServiceText = { clusterIPs: [C], externalIPs: [X], loadBalancer: [L], ports: [{ nodePort: 3001 }] };

verify(
  '10.1 no endpoints',
  { services: [service('svc', BALANCED)], slices: [] },
  `PF-001: pod > 172.30.0.41:80 = reject
   PF-002: ext > 192.168.99.11:80 = reject
   PF-003: pod > 192.168.0.2:3001 = reject
   PF-004: ext > 192.168.0.2:3001 = reject
   PF-005: pod > 1.2.3.4:80 = reject
   PF-006: ext > 1.2.3.4:80 = reject`,
);

const SVC2_PORTS = [
  { name: 'http', port: 80 },
  { name: 'https', port: 443 },
  { name: 'dns-udp', port: 53, protocol: 'UDP' as const },
  { name: 'dns-tcp', port: 53 },
  { name: 'dns-sctp', port: 53, protocol: 'SCTP' as const },
];

verify(
  '10.2 cluster IPs',
  {
    services: [
      service('svc1', { clusterIPs: [C] }),
      service('svc2', { clusterIPs: ['172.30.0.42'], ports: SVC2_PORTS }),
    ],
    slices: [
      slice('svc1', [local('10.180.0.1')]),
      slice('svc2', [local('10.180.0.1'), remote('10.180.2.1')], {
        ports: SVC2_PORTS.map((port) => ({ ...port, port: { https: 8443, 'dns-tcp': 5353 }[port.name] ?? port.port })),
      }),
    ],
  },
  `PF-010: 10.180.0.2 > 172.30.0.41:80 = 10.180.0.1:80 -
   PF-011: 10.180.0.1 > 172.30.0.41:80 = 10.180.0.1:80 m
   PF-012: 10.180.0.2 > 172.30.0.42:80 = 10.180.0.1:80 10.180.2.1:80 -
   PF-011 with a choice: 10.180.0.1 > 172.30.0.42:80 = 10.180.0.1:80(m) 10.180.2.1:80 -
   PF-011 elsewhere: 10.180.2.1 > 172.30.0.42:80 = 10.180.0.1:80 10.180.2.1:80 -
   PF-013: pod > 172.30.0.42:443 = 10.180.0.1:8443 10.180.2.1:8443 -
   PF-014: pod > 172.30.0.42:53 = 10.180.0.1:5353 10.180.2.1:5353 -
   PF-015: pod > 172.30.0.42:53/UDP = 10.180.0.1:53 10.180.2.1:53 -
   PF-016: pod > 172.30.0.42:53/SCTP = 10.180.0.1:53 10.180.2.1:53 -
   PF-017: pod > 172.30.0.42:80/UDP = reject
   PF-018: pod > 172.30.0.41:443 = reject
   PF-019: pod > 172.30.0.50:80 = drop
   outside of all: pod > 172.31.0.1:80,8.8.8.8:53/UDP,192.168.0.2:80 = none`,
);

verify(
  '10.3 load balancer with source ranges',
  {
    services: [
      service('svc', {
        clusterIPs: [C],
        loadBalancer: [L, '5.6.7.8'],
        sourceRanges: ['192.168.0.0/24', '203.0.113.0/25'],
        externalIPs: ['9.9.9.9'],
        ports: [{ nodePort: 3001 }],
      }),
    ],
    slices: [slice('svc', [local('10.180.0.1')])],
  },
  `PF-020: pod > 172.30.0.41:80 = 10.180.0.1:80 -
   PF-021: ext > 192.168.0.2:3001 = 10.180.0.1:80 m
   PF-022: blk > 192.168.0.2:3001 = 10.180.0.1:80 m
   PF-023: ext > 1.2.3.4:80,5.6.7.8:80 = 10.180.0.1:80 m
   PF-024: blk > 1.2.3.4:80,5.6.7.8:80 = drop
   PF-025: pod > 1.2.3.4:80,5.6.7.8:80 = drop
   PF-026: node > 1.2.3.4:80,5.6.7.8:80 = 10.180.0.1:80 m
   PF-027: 1.2.3.4 > 1.2.3.4:80 = 10.180.0.1:80 m
   PF-027: 5.6.7.8 > 5.6.7.8:80 = 10.180.0.1:80 m
   VD-12: blk,pod > 9.9.9.9:80 = 10.180.0.1:80 m
   VD-17: ext,blk > 1.2.3.4:443 = none`,
);

verify(
  'source ranges come before the lack of endpoints',
  {
    services: [service('svc', { clusterIPs: [C], loadBalancer: [L], sourceRanges: ['203.0.113.0/25'] })],
    slices: [],
  },
  `NF-34: ext > 1.2.3.4:80 = reject
   NF-34: blk,node,1.2.3.4 > 1.2.3.4:80 = drop`,
);

const NODE_PORT = service('svc', {
  clusterIPs: [C, 'fd00:10:96::41'],
  ports: [{ nodePort: 3001 }],
});
const NODE_PORT_SLICES = [
  slice('svc', [local('10.180.0.1'), remote('10.180.2.1')]),
  slice('svc', [local('fd00:10::1:1'), remote('fd00:10::2:1')]),
];
const NODE_PORT_VARIANTS: readonly (readonly [string, readonly string[], string])[] = [
  ['PF-030: ext > 192.168.1.2:3001', ['primary'], 'none'],
  ['PF-031: ext > 192.168.1.2:3001', ['192.168.0.0/24', '192.168.1.0/24', '2001:db8::/64'], 'FOUR m'],
  ['PF-032: ext6 > [2001:db8:1::2]:3001', ['primary'], 'none'],
  ['PF-033: ext6 > [2001:db8:1::2]:3001', ['192.168.0.0/24', '2001:db8::/64', '2001:db8:1::2/128'], 'SIX m'],
  ['SV-31: ext6 > [2001:db8:1::2]:3001', ['192.168.0.0/24'], 'SIX m'],
  ['SV-32: ext > 127.0.0.1:3001', [], 'none'],
  ['SV-32: ext > 192.168.1.2:3001', [], 'FOUR m'],
  ['SV-32: ext > 127.0.0.1:3001', ['127.0.0.0/8', '192.168.0.0/16'], 'none'],
  ['SV-32: ext6 > [::1]:3001', [], 'none'],
  ['another node: ext > 192.168.0.3:3001', ['192.168.0.0/24'], 'none'],
];

for (const [check, configured, verdict] of NODE_PORT_VARIANTS) {
  verify(
    `10.4 node ports on ${configured.join() || 'all'}, ${check}`,
    { settings: { nodePortAddresses: nodePortAddresses(configured) }, services: [NODE_PORT], slices: NODE_PORT_SLICES },
    `${check} = ${verdict}
     PF-041: pod > 172.30.0.41:80 = FOUR -
     PF-041: ext,node > 192.168.0.2:3001 = FOUR m
     PF-041: pod6 > [fd00:10:96::41]:80 = SIX -
     PF-041: ext6,node6 > [2001:db8::1]:3001 = SIX m`,
    { FOUR: '10.180.0.1:80 10.180.2.1:80', SIX: '[fd00:10::1:1]:80 [fd00:10::2:1]:80' },
  );
}

const EXTERNAL_SLICES = [slice('svc', [remote('10.180.0.1'), local('10.180.2.1')])];
const EPS = { BOTH: '10.180.0.1:80 10.180.2.1:80', EP2: '10.180.2.1:80' };

verify(
  '10.5 external policy Local',
  {
    services: [service('svc', { ...BALANCED, externalTrafficPolicy: 'Local', healthCheckNodePort: 30000 })],
    slices: EXTERNAL_SLICES,
  },
  `PF-050: pod > 172.30.0.41:80 = BOTH -
   PF-051: pod > 192.168.99.11:80 = BOTH -
   PF-052: ext > 192.168.99.11:80 = EP2 -
   PF-053: pod > 1.2.3.4:80 = BOTH -
   PF-054: ext > 1.2.3.4:80 = EP2 -
   PF-055: pod > 192.168.0.2:3001 = BOTH -
   PF-056: ext > 192.168.0.2:3001 = EP2 -
   VD-07: node > 192.168.99.11:80,1.2.3.4:80,192.168.0.2:3001 = BOTH m`,
  EPS,
);

verify(
  '10.6 external policy Cluster',
  { services: [service('svc', BALANCED)], slices: EXTERNAL_SLICES },
  `PF-060: pod > 172.30.0.41:80 = BOTH -
   PF-061: pod,ext > 192.168.99.11:80,1.2.3.4:80,192.168.0.2:3001 = BOTH m`,
  EPS,
);

const INTERNAL_ENDPOINTS = ['10.0.1.1', '10.0.1.2', '10.0.1.3'];
const INTERNAL: readonly (readonly [string, 'Cluster' | 'Local', number, string])[] = [
  ['PF-070', 'Cluster', 0, '10.0.1.1:80 10.0.1.2:80 10.0.1.3:80 -'],
  ['PF-071', 'Local', 1, '10.0.1.1:80 -'],
  ['PF-072', 'Local', 2, '10.0.1.1:80 10.0.1.2:80 -'],
  ['PF-073', 'Local', 0, 'drop'],
];
for (const [id, internalTrafficPolicy, count, verdict] of INTERNAL) {
  const services = [service('svc', { clusterIPs: ['172.30.1.1'], internalTrafficPolicy })];
  const endpoints = INTERNAL_ENDPOINTS.map((host, index) => (index < count ? local(host) : remote(host)));
  verify(`10.7 ${id}`, { services, slices: [slice('svc', endpoints)] }, `${id}: pod > 172.30.1.1:80 = ${verdict}`);
  verify(`10.7 PF-074 after ${id}`, { services, slices: [] }, 'PF-074: pod > 172.30.1.1:80 = reject');
}

const TERMINATING: readonly (readonly [string, readonly EndpointText[], string, string])[] = [
  [
    '0',
    [local('10.0.1.1'), local('10.0.1.2'), local('10.0.1.3', 'st'), local('10.0.1.4', 't'), remote('10.0.1.5')],
    '10.0.1.1:80 10.0.1.2:80 10.0.1.5:80',
    '10.0.1.1:80 10.0.1.2:80 -',
  ],
  [
    '1 with a ready one elsewhere',
    [local('10.0.1.2', 'st'), local('10.0.1.3', 'st'), local('10.0.1.4', 't'), remote('10.0.1.5')],
    '10.0.1.5:80',
    '10.0.1.2:80 10.0.1.3:80 -',
  ],
  [
    '1 without any ready',
    [local('10.0.1.2', 'st'), local('10.0.1.3', 'st'), local('10.0.1.4', 't'), remote('10.0.1.5', 'st')],
    '10.0.1.2:80 10.0.1.3:80 10.0.1.5:80',
    '10.0.1.2:80 10.0.1.3:80 -',
  ],
  ['2', [remote('10.0.1.5', 'st')], '10.0.1.5:80', 'drop'],
  ['3', [local('10.0.1.4', 't'), remote('10.0.1.5', 't')], '', ''],
  ['4', [], '', ''],
];
for (const [row, endpoints, cluster, fromOutside] of TERMINATING) {
  const text: ServiceText = { clusterIPs: ['172.30.1.1'], loadBalancer: [L], healthCheckNodePort: 30000 };
  const slices = endpoints.length === 0 ? [] : [slice('svc', endpoints)];
  const inside = cluster === '' ? 'reject' : `${cluster} -`;
  verify(
    `10.8 terminating endpoints, policy Local, ${row}`,
    { services: [service('svc', { ...text, externalTrafficPolicy: 'Local' })], slices },
    `PF-08${row}: pod > 172.30.1.1:80 = ${inside}
     PF-08${row}: ext > 1.2.3.4:80 = ${fromOutside || 'reject'}`,
  );
  verify(
    `10.9 terminating endpoints, policy Cluster, ${row}`,
    { services: [service('svc', text)], slices },
    `PF-09${row}: pod > 172.30.1.1:80 = ${inside}
     PF-09${row}: ext > 1.2.3.4:80 = ${cluster === '' ? 'reject' : `${cluster} m`}`,
  );
}

const MATRIX: Omit<PacketScene, 'settings'> = {
  services: [
    service('svc1', { clusterIPs: ['172.30.0.41'], loadBalancer: ['1.2.3.4'], ports: [{ nodePort: 3001 }] }),
    service('svc2', {
      clusterIPs: ['172.30.0.42'],
      loadBalancer: ['5.6.7.8'],
      ports: [{ nodePort: 3002 }],
      externalTrafficPolicy: 'Local',
    }),
    service('svc3', {
      clusterIPs: ['172.30.0.43'],
      loadBalancer: ['9.10.11.12'],
      ports: [{ nodePort: 3003 }],
      internalTrafficPolicy: 'Local',
    }),
  ],
  slices: [1, 2, 3].map((number) => slice(`svc${number}`, [local(`10.180.0.${number}`), remote(`10.180.1.${number}`)])),
};

/** Sender, kind of target, then the verdicts of svc1, svc2 and svc3. */
const CELLS: readonly (readonly [string, string, 'C' | 'N' | 'L', string, string, string])[] = [
  ['PF-100', 'pod', 'C', 'both -', 'both -', 'local -'],
  ['PF-101', 'pod', 'N', 'both m', 'both -', 'both m'],
  ['PF-102', 'pod', 'L', 'both m', 'both -', 'both m'],
  ['PF-103', 'node', 'C', 'both m', 'both m', 'local m'],
  ['PF-104', 'node', 'N', 'both m', 'both m', 'both m'],
  ['PF-105', 'node', 'L', 'both m', 'both m', 'both m'],
  ['PF-106', 'ext', 'C', 'both m', 'both m', 'local m'],
  ['PF-107', 'ext', 'N', 'both m', 'local -', 'both m'],
  ['PF-108', 'ext', 'L', 'both m', 'local -', 'both m'],
];
/** What a variant changes, by `sender kind`. */
const NO_DETECTOR: Readonly<Record<string, readonly [string, string, string]>> = {
  'node C': ['both -', 'both -', 'local -'],
  'ext C': ['both -', 'both -', 'local -'],
  'pod N': ['both m', 'local -', 'both m'],
  'pod L': ['both m', 'local -', 'both m'],
};
const ALL_MASQUERADED = { 'pod C': ['both m', 'both m', 'local m'] } as const;
const TO_CLUSTER = { 'node C': CELLS[3]!.slice(3), 'ext C': CELLS[6]!.slice(3) };
const undetected: PacketScene['settings'] = { localDetection: { type: 'ClusterCIDR', prefixes: [] } };
const MATRIX_VARIANTS: readonly (readonly [
  string,
  PacketScene['settings'],
  Readonly<Record<string, readonly string[]>>,
])[] = [
  ['', {}, {}],
  ['PF-110 no detector', undetected, NO_DETECTOR],
  ['PF-111 masquerade all', { masqueradeAll: true }, ALL_MASQUERADED],
  [
    'PF-112 masquerade all, no detector',
    { ...undetected, masqueradeAll: true },
    { ...NO_DETECTOR, ...ALL_MASQUERADED, ...TO_CLUSTER },
  ],
];
const TARGETS = {
  C: ['172.30.0.41:80', '172.30.0.42:80', '172.30.0.43:80'],
  N: ['192.168.0.2:3001', '192.168.0.2:3002', '192.168.0.2:3003'],
  L: ['1.2.3.4:80', '5.6.7.8:80', '9.10.11.12:80'],
};
for (const [name, settings, changed] of MATRIX_VARIANTS) {
  const checks = CELLS.flatMap(([id, sender, kind, ...verdicts]) =>
    (changed[`${sender} ${kind}`] ?? verdicts).map((verdict, index) => {
      const endpoints = [`10.180.0.${index + 1}:80`, `10.180.1.${index + 1}:80`];
      const expected = verdict.replace('both', endpoints.join(' ')).replace('local', endpoints[0] ?? '');
      return `${id} svc${index + 1}: ${sender} > ${TARGETS[kind][index] ?? ''} = ${expected}`;
    }),
  );
  verify(`10.10 masquerade matrix ${name}`, { ...MATRIX, settings: settings ?? {} }, checks.join('\n'));
}

t.test('PF-122: an address that its load balancer keeps is not served', (t) => {
  for (const [ipMode, verdict] of [
    ['Proxy', 'none'],
    ['VIP', '10.180.0.1:80 m'],
  ] as const) {
    const row: ServiceRow = service('svc', { clusterIPs: [C], loadBalancer: [{ address: address(L), ipMode }] });
    t.equal(
      new PacketTracer({ services: [row], slices: [slice('svc', [local('10.180.0.1')])] }).verdict('ext', `${L}:80`),
      verdict,
    );
  }
  t.end();
});

verify(
  'PF-124 sloppy addresses',
  {
    services: [
      service('svc', {
        clusterIPs: ['172.30.0.041'],
        loadBalancer: ['1.2.3.004'],
        externalIPs: ['192.168.099.022'],
        sourceRanges: ['203.0.113.000/025'],
      }),
    ],
    slices: [slice('svc', [local('10.180.00.001')])],
  },
  `PF-124: pod > 172.30.0.41:80 = 10.180.0.1:80 -
   PF-124: ext > 1.2.3.4:80,192.168.99.22:80 = 10.180.0.1:80 m
   PF-124: blk > 1.2.3.4:80 = drop`,
);

t.test('PF-125: Services without local endpoints are counted as such', (t) => {
  const table = (text: ServiceText, slices: readonly EndpointSliceRow[]): ForwardingTable =>
    new PacketTracer({ services: [service('svc', { ...BALANCED, ...text })], slices }).tables.IPv4;
  const dropping = (text: ServiceText, slices: readonly EndpointSliceRow[]): readonly string[] =>
    [...table(text, slices).frontends()]
      .filter(
        ({ endpoints, localEndpoints, whenEmpty }) => (localEndpoints ?? endpoints).count === 0 && whenEmpty === 'drop',
      )
      .map(({ kind }) => kind);
  const elsewhere = [slice('svc', [remote('10.180.0.1')])];
  const here = [slice('svc', [remote('10.180.0.1'), local('10.180.2.1')])];
  t.same(dropping({ internalTrafficPolicy: 'Local' }, elsewhere), ['ClusterIP']);
  t.same(dropping({ externalTrafficPolicy: 'Local' }, elsewhere), ['LoadBalancer', 'ExternalIP', 'NodePort']);
  for (const policy of [{ internalTrafficPolicy: 'Local' }, { externalTrafficPolicy: 'Local' }] as const) {
    t.same(dropping(policy, here), []);
    t.same(dropping(policy, []), [], 'no endpoints at all');
  }
  t.end();
});

t.test('ST-35: each local detector recognises its pods', (t) => {
  const { node } = new PacketTracer({ services: [], slices: [] }).tables.IPv4;
  const own = [address('192.168.0.2'), address('10.0.0.1')];
  const kinds = (localDetector: LocalDetector | null, input: string | null): readonly string[] =>
    ['10.0.0.1', '10.0.0.2', '192.168.0.2', '203.0.113.2'].map((source) =>
      sourceKind({ ...node, localDetector }, address(source), input, own),
    );
  const others = ['node', 'other', 'node', 'other'];
  t.same(kinds({ type: 'source-prefix', prefix: prefix('10.0.0.0/8') }, null), ['pod', 'pod', 'node', 'other']);
  t.same(kinds({ type: 'input-interface', name: 'cni0' }, 'cni0'), ['pod', 'pod', 'pod', 'pod']);
  t.same(kinds({ type: 'input-interface', name: 'cni0' }, 'cni01'), others);
  t.same(kinds({ type: 'input-interface', name: 'cni0' }, null), others, 'sent from here');
  t.same(kinds({ type: 'input-interface-prefix', prefix: 'veth' }, 'veth7'), ['pod', 'pod', 'pod', 'pod']);
  t.same(kinds({ type: 'input-interface-prefix', prefix: 'veth' }, 'eth0'), others);
  t.same(kinds(null, 'cni0'), others);
  t.end();
});
