// What the fields of a Service do to packets: behaviour §4.1, §4.2, §4.4, §4.7.
// needs: ip
import t from 'tap';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { endpointSlice, service, type Endpoint, type Manifest, type ServiceOptions } from '../support/lab/objects.js';
import { checkRows, FAMILY_VIEWS, IPV4, IPV6, slices, type Row } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b'] as const;
const WEB = [{ port: 80, nodePort: 30001 }];

t.test('a Service answers on all its addresses', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  const proxy = await Proxy.start(t, lab);
  const one = IPV4.masqueraded(['pod-a'], 80);
  const at = (address: string, port = 80): string => endpoint(address, port);
  const slice = endpointSlice('web', [{ address: ADDRESSES['pod-a'].IPv4, node: NODE_NAME }], [{ port: 80 }]);
  const toPodA = (address: string, expect = one, shows = ''): Row => ({
    from: 'client',
    to: at(address),
    expect,
    shows,
  });
  await proxy.apply([
    service('web', {
      clusterIPs: ['10.96.0.041'],
      ports: [{ port: 80 }],
      externalIPs: ['198.51.100.011', '198.51.100.12', 'not an address'],
      loadBalancerIPs: [
        '192.0.2.003',
        { ip: '192.0.2.4', ipMode: 'VIP' },
        { ip: '192.0.2.5', ipMode: 'Proxy' },
        { hostname: 'balancer.example' },
      ],
    }),
    slice,
  ]);
  await checkRows(t, lab, [
    { shows: 'PF-124', from: 'pod-b', to: at('10.96.0.41'), expect: IPV4.kept(['pod-a'], 80) },
    toPodA('198.51.100.11', one, 'PF-124'),
    toPodA('198.51.100.12', one, 'SV-04'),
    toPodA('192.0.2.3', one, 'PF-124'),
    toPodA('192.0.2.4', one, 'PF-122 VIP'),
    toPodA('192.0.2.5', 'dropped', 'PF-122 Proxy leaves the node'),
  ]);
  // A Service that goes refuses as long as connections to it last.
  const { refusesWhileDraining } = traitsOf(labMode());
  const gone = refusesWhileDraining ? 'refused' : 'dropped';
  // An external address that it gives up does not, whatever connections to it are open: it may be a load balancer's elsewhere.
  const removed = ['198.51.100.11', '192.0.2.4'];
  const clients = ['client', 'pod-b', 'node'];
  const held = await Promise.all(
    removed.flatMap((address) => clients.map((from) => lab.open({ from, to: at(address) }))),
  );
  await proxy.apply([
    service('web', {
      type: 'ClusterIP',
      clusterIPs: ['10.96.0.41'],
      ports: [{ port: 80 }],
      externalIPs: ['198.51.100.12'],
      loadBalancerIPs: [{ ip: '192.0.2.5', ipMode: 'VIP' }],
    }),
    slice,
  ]);
  await checkRows(t, lab, [
    ...removed.flatMap((address) =>
      clients.map((from) => ({ ...toPodA(address, 'dropped', 'given up, with connections open'), from })),
    ),
    toPodA('198.51.100.12'),
    toPodA('192.0.2.5', one, 'now VIP, whatever the type (SV-05)'),
  ]);
  for (const connection of held) await connection.close();

  // SV-01, E-13, E-18, E-19: what takes a Service away and brings it back.
  const base = { clusterIPs: ['10.96.0.41'], ports: [{ port: 80 }] };
  const plain = service('web', base);
  const changed = (fields: Readonly<Record<string, unknown>>): Manifest => ({
    ...plain,
    spec: { ...(plain['spec'] as object), ...fields },
  });
  const states: readonly [shows: string, objects: readonly Manifest[], expect: string][] = [
    ['E-01', [plain, slice], one],
    ['E-13 ExternalName', [changed({ type: 'ExternalName', externalName: 'example.org' }), slice], gone],
    ['E-13 and back', [plain, slice], one],
    ['SV-01 headless', [changed({ clusterIP: 'None', clusterIPs: ['None'] }), slice], gone],
    ['E-07 back', [plain, slice], one],
    [
      'E-18',
      [service('web', { ...base, labels: { 'service.kubernetes.io/service-proxy-name': 'other' } }), slice],
      gone,
    ],
    ['E-18 and back', [plain, slice], one],
    [
      'E-19',
      [
        plain,
        endpointSlice('web', [{ address: ADDRESSES['pod-a'].IPv4 }], [{ port: 80 }], {
          labels: { 'service.kubernetes.io/headless': '' },
        }),
      ],
      'refused',
    ],
    ['EP-08 endpoints alone', [slice], gone],
    ['EP-08 then the Service', [slice, plain], one],
  ];
  for (const [shows, objects, expect] of states) {
    await proxy.apply(objects);
    await checkRows(t, lab, [toPodA('10.96.0.41', expect, shows)]);
    // Those that just were would do for some seconds.
    if (refusesWhileDraining && shows === 'E-01') await lab.open({ from: 'client', to: '10.96.0.41:80' });
  }

  // E-82, E-30, EP-05, EP-06: slices are merged per port, each with target ports of its own.
  await lab.serve('pod-b', '10.244.1.11:8080');
  const multi = service('multi', {
    clusterIPs: ['10.96.0.42'],
    ports: [
      { name: 'http', port: 80 },
      { name: 'dns', protocol: 'UDP', port: 53 },
    ],
  });
  const pod = (name: 'pod-a' | 'pod-b' | 'remote-a', conditions: Partial<Endpoint> = {}): Endpoint => ({
    address: ADDRESSES[name].IPv4,
    ...conditions,
  });
  const http = (port: number) => [{ name: 'http', port }];
  await proxy.apply([
    multi,
    endpointSlice('multi', [pod('pod-a')], http(80), { name: 'multi-1' }),
    endpointSlice('multi', [pod('pod-b')], http(8080), { name: 'multi-2' }),
    endpointSlice('multi', [pod('remote-a')], [{ name: 'dns', protocol: 'UDP', port: 53 }], { name: 'multi-3' }),
    endpointSlice('multi', [pod('pod-a', { ready: false, serving: true, terminating: true })], http(80), {
      name: 'multi-4',
    }),
    endpointSlice('multi', [pod('remote-a')], [{ name: 'other', port: 80 }], { name: 'multi-5' }),
  ]);
  await checkRows(t, lab, [
    {
      shows: 'E-82, E-30',
      from: 'client',
      to: '10.96.0.42:80',
      expect: '10.244.1.10:80 masqueraded, 10.244.1.11:8080 masqueraded',
    },
    { shows: 'E-82', from: 'client', to: '10.96.0.42:53', protocol: 'UDP', expect: '10.244.2.10:53 masqueraded' },
  ]);

  // Of two Services on one address and port the oldest holds it (docs/differences.md), and the other takes over when it goes.
  const claim = (name: string, number: number, year: number): Manifest =>
    service(name, {
      clusterIPs: [`10.96.0.${number}`],
      ports: [{ port: 80 }],
      // The cluster IP of `young`, which the older one does not get by this.
      externalIPs: ['198.51.100.20', '10.96.0.51'],
      creationTimestamp: `${year}-01-01T00:00:00Z`,
    });
  const young = [claim('young', 51, 2025), endpointSlice('young', [pod('pod-b')], [{ port: 80 }])];
  const old = [claim('old', 52, 2020), endpointSlice('old', [pod('pod-a')], [{ port: 80 }])];
  await proxy.apply(young);
  await checkRows(t, lab, [toPodA('198.51.100.20', IPV4.masqueraded(['pod-b'], 80), 'conflict, alone')]);
  await proxy.apply([...young, ...old]);
  await checkRows(t, lab, [
    toPodA('198.51.100.20', one, 'conflict, the oldest holds'),
    { shows: 'a cluster IP stays', from: 'pod-a', to: '10.96.0.51:80', expect: IPV4.kept(['pod-b'], 80) },
  ]);
  // A conflict is told of once it has lasted.
  const isReported = (): boolean => /198\.51\.100\.20.*default\/(old|young)/.test(proxy.log);
  await eventually('the report of the conflict', () => Promise.resolve(isReported() || null));
  await proxy.apply(young);
  await checkRows(t, lab, [toPodA('198.51.100.20', IPV4.masqueraded(['pod-b'], 80), 'conflict, the loser takes over')]);
});

t.test('hairpin traffic and host network endpoints work', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(
    [...PODS, 'node'],
    [
      [80, 'TCP'],
      [80, 'UDP'],
    ],
  );
  const proxy = await Proxy.start(t, lab);
  const loadBalancer = (
    externalTrafficPolicy: 'Cluster' | 'Local',
    endpoints: readonly Endpoint[],
    number: number,
  ): Manifest[] => [
    service(`web-${number}`, {
      clusterIPs: [IPV4.clusterIP(number)],
      ports: [
        { name: 'tcp', port: 80, nodePort: 30000 + number },
        { name: 'udp', protocol: 'UDP', port: 80, nodePort: 30000 + number },
      ],
      loadBalancerIPs: [IPV4.loadBalancerIP(number)],
      externalTrafficPolicy,
    }),
    endpointSlice(`web-${number}`, endpoints, [
      { name: 'tcp', port: 80 },
      { name: 'udp', protocol: 'UDP', port: 80 },
    ]),
  ];
  const address = (name: keyof typeof ADDRESSES): string => ADDRESSES[name].IPv4;
  await proxy.apply([
    ...loadBalancer('Local', [{ address: address('pod-a'), node: NODE_NAME }], 41),
    ...loadBalancer('Cluster', [{ address: address('pod-a') }], 42),
    ...loadBalancer('Local', [{ address: address('node'), node: NODE_NAME }], 43),
    ...loadBalancer('Cluster', [{ address: address('node'), node: NODE_NAME }], 44),
  ]);
  const rows = (from: string, number: number, internal: string, external: string): Row[] => [
    { from, to: endpoint(IPV4.clusterIP(number), 80), expect: internal },
    { from, to: endpoint(IPV4.loadBalancerIP(number), 80), expect: external },
    { from, to: IPV4.nodePort(30000 + number), expect: external },
  ];
  const [podA, hidden] = [IPV4.kept(['pod-a'], 80), IPV4.masqueraded(['pod-a'], 80)];
  const [host, hostHidden] = [IPV4.kept(['node'], 80), IPV4.masqueraded(['node'], 80)];
  const table = [
    ...rows('pod-a', 41, hidden, hidden).map((row) => ({ ...row, shows: 'VD-14' })),
    ...rows('pod-a', 42, hidden, hidden).map((row) => ({ ...row, shows: 'VD-14, endpoint without a node' })),
    ...rows('pod-b', 41, podA, podA),
    ...rows('client', 43, hostHidden, host).map((row) => ({ ...row, shows: 'E-22, eTP Local keeps the client' })),
    ...rows('pod-b', 43, host, host).map((row) => ({ ...row, shows: 'E-22' })),
    ...rows('pod-b', 44, host, hostHidden).map((row) => ({ ...row, shows: 'E-64' })),
    ...rows('node', 43, hostHidden, hostHidden).map((row) => ({ ...row, shows: 'the node to itself' })),
  ];
  // Masquerading is postrouting's work, which connections to the node's own endpoints from outside never see.
  const expected = table.map((row) =>
    row.from !== 'node' && row.expect === hostHidden ? { ...row, expect: host } : row,
  );
  await checkRows(t, lab, [...expected, ...expected.map((row) => ({ ...row, protocol: 'UDP' as const }))]);
});

t.test('external addresses of the node itself are served', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab);
  const own = ADDRESSES.alternate.IPv4;
  const at = (port: number): string => endpoint(own, port);
  const external = (
    name: string,
    number: number,
    port: number,
    endpoints: readonly Endpoint[],
    more: Partial<ServiceOptions> = {},
  ): Manifest[] => [
    service(name, { clusterIPs: [IPV4.clusterIP(number)], ports: [{ port }], externalIPs: [own], ...more }),
    ...(endpoints.length === 0 ? [] : [endpointSlice(name, endpoints, [{ port: 80 }])]),
  ];
  const podA: Endpoint = { address: ADDRESSES['pod-a'].IPv4, node: NODE_NAME };
  const remote: Endpoint = { address: ADDRESSES['remote-a'].IPv4, node: 'node-2' };
  await proxy.apply([
    ...external('plain', 41, 8080, [remote]),
    ...external('local', 42, 8081, [remote], { externalTrafficPolicy: 'Local' }),
    ...external('empty', 43, 8082, []),
    ...external('preserved', 44, 8083, [podA, remote], { externalTrafficPolicy: 'Local' }),
    // On one address and port an external address comes before a node port.
    ...external('before', 45, 30001, [podA]),
    service('node-port', {
      type: 'NodePort',
      clusterIPs: [IPV4.clusterIP(46)],
      ports: [{ port: 80, nodePort: 30001 }],
    }),
    endpointSlice('node-port', [remote], [{ port: 80 }]),
  ]);
  const hidden = IPV4.masqueraded(['remote-a'], 80);
  await checkRows(t, lab, [
    { shows: 'PF-120', from: 'node', to: at(8080), expect: hidden },
    { shows: 'PF-120', from: 'client', to: at(8080), expect: hidden },
    { shows: 'PF-120 eTP Local, none local', from: 'client', to: at(8081), expect: 'dropped' },
    { shows: 'VD-07', from: 'node', to: at(8081), expect: hidden },
    { shows: 'VD-01', from: 'client', to: at(8082), expect: 'refused' },
    { shows: 'VD-01', from: 'node', to: at(8082), expect: 'refused' },
    { shows: 'VD-08', from: 'client', to: at(8083), expect: IPV4.kept(['pod-a'], 80) },
    { from: 'client', to: at(30001), expect: IPV4.masqueraded(['pod-a'], 80) },
    { from: 'client', to: IPV4.nodePort(30001), expect: hidden },
    { shows: 'VD-17 another port is left alone', from: 'client', to: at(9), expect: 'refused' },
  ]);
});

t.test('dual-stack Services are served in both families', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab);
  const [v4, v6] = [IPV4.clusterIP(41), IPV6.clusterIP(41)];
  const web = (clusterIPs: readonly string[]): Manifest[] => [
    service('web', { type: 'NodePort', clusterIPs, ports: WEB }),
    ...slices(
      'web',
      ['pod-a'],
      WEB.map(({ port }) => ({ port })),
    ),
  ];
  const { refusesWhileDraining } = traitsOf(labMode());
  const opened = new Set<string>();
  // E-80; what a family does not have stays unanswered, and its node port is no node port.
  for (const clusterIPs of [[v4], [v4, v6], [v6, v4], [v6]]) {
    await proxy.apply(web(clusterIPs));
    await checkRows(
      t,
      lab,
      FAMILY_VIEWS.flatMap((view) => {
        const to = endpoint(view.clusterIP(41), 80);
        const has = clusterIPs.includes(view.clusterIP(41));
        const gone = opened.has(to) ? 'refused' : 'dropped';
        return [
          { from: 'pod-b', to, expect: has ? view.kept(['pod-a'], 80) : gone },
          { from: 'client', to: view.nodePort(30001), expect: has ? view.masqueraded(['pod-a'], 80) : 'refused' },
        ];
      }),
      clusterIPs.join(),
    );
    if (!refusesWhileDraining) continue;
    // Those that just were would do for some seconds.
    for (const to of clusterIPs.map((address) => endpoint(address, 80))) {
      if (!opened.has(to)) await lab.open({ from: 'pod-b', to });
      opened.add(to);
    }
  }
});
