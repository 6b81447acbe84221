// What the fields of a Service do to packets: behaviour §4.1, §4.2, §4.4, §4.7.
// needs: ip
import t from 'tap';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { endpointSlice, service, type Endpoint, type Manifest } from '../support/lab/objects.js';
import { checkRows, IPV4, type Row } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'pod-c', 'remote-a', 'remote-b'] as const;

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

t.test('an external address comes before a node port on one address and port', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'remote-a'], [[80, 'TCP']]);
  const own = ADDRESSES.alternate.IPv4;
  await Proxy.start(t, lab, {
    objects: [
      service('external', { clusterIPs: [IPV4.clusterIP(45)], ports: [{ port: 30001 }], externalIPs: [own] }),
      endpointSlice('external', [{ address: ADDRESSES['pod-a'].IPv4, node: NODE_NAME }], [{ port: 80 }]),
      service('node-port', {
        type: 'NodePort',
        clusterIPs: [IPV4.clusterIP(46)],
        ports: [{ port: 80, nodePort: 30001 }],
      }),
      endpointSlice('node-port', [{ address: ADDRESSES['remote-a'].IPv4, node: 'node-2' }], [{ port: 80 }]),
    ],
  });
  await checkRows(t, lab, [
    { from: 'client', to: endpoint(own, 30001), expect: IPV4.masqueraded(['pod-a'], 80) },
    { from: 'client', to: IPV4.nodePort(30001), expect: IPV4.masqueraded(['remote-a'], 80) },
  ]);
});
