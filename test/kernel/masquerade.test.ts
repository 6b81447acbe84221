// Who sees whose address: behaviour §10.10, and the ways to tell pods from others (ST-35).
// needs: conntrack
import t from 'tap';
import { underEmulation, usually } from '../support/extent.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { node } from '../support/lab/objects.js';
import { addVisitor, checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const TWO = ['pod-a', 'remote-a'] as const;
const SOURCES = ['pod', 'node', 'client'] as const;
const SERVICES = ['plain', 'external-local', 'internal-local'] as const;
const OBJECTS = SERVICES.flatMap((name, index) =>
  dualStack(name, {
    type: 'LoadBalancer',
    number: 41 + index,
    loadBalancers: [3 + index],
    externals: [11 + index],
    ...(name === 'external-local' ? { externalTrafficPolicy: 'Local' } : {}),
    ...(name === 'internal-local' ? { internalTrafficPolicy: 'Local' } : {}),
    ports: [{ port: 80, nodePort: 30001 + index }],
    endpoints: TWO,
  }),
);

/** Masqueraded or not, to both endpoints or only the local one. */
type Cell = 'both m' | 'both -' | 'local m' | 'local -';

interface Matrix {
  readonly id: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** By source: to the cluster IPs of the three Services, and to all their external addresses. */
  readonly cells: Readonly<
    Record<
      (typeof SOURCES)[number],
      readonly [internal: readonly [Cell, Cell, Cell], external: readonly [Cell, Cell, Cell]]
    >
  >;
}

const TRAITS = traitsOf(labMode());
const NO_DETECTOR = { clusterCIDR: '' };
const WITH_DETECTOR: Matrix['cells'] = {
  pod: [
    ['both -', 'both -', 'local -'],
    ['both m', TRAITS.prefersLocal ? 'local -' : 'both -', 'both m'],
  ],
  node: [
    ['both m', 'both m', 'local m'],
    ['both m', TRAITS.prefersLocal ? 'local m' : 'both m', 'both m'],
  ],
  client: [
    ['both m', 'both m', 'local m'],
    ['both m', 'local -', 'both m'],
  ],
};
const WITHOUT_DETECTOR: Matrix['cells'] = {
  pod: [WITH_DETECTOR.pod[0], ['both m', 'local -', 'both m']],
  node: [TRAITS.masqueradesNode ? WITH_DETECTOR.node[0] : WITH_DETECTOR.pod[0], WITH_DETECTOR.node[1]],
  client: [WITH_DETECTOR.pod[0], WITH_DETECTOR.client[1]],
};
const ALL: readonly [Cell, Cell, Cell] = ['both m', 'both m', 'local m'];
const MATRICES: readonly [Matrix, ...Matrix[]] = [
  { id: 'PF-100 to PF-108', config: {}, cells: WITH_DETECTOR },
  { id: 'PF-110 no detector', config: NO_DETECTOR, cells: WITHOUT_DETECTOR },
  {
    id: 'PF-111 masqueradeAll',
    config: { nftables: { masqueradeAll: true } },
    cells: { ...WITH_DETECTOR, pod: [ALL, WITH_DETECTOR.pod[1]] },
  },
  {
    id: 'PF-112 masqueradeAll, no detector',
    config: { ...NO_DETECTOR, nftables: { masqueradeAll: true } },
    cells: {
      pod: [ALL, WITHOUT_DETECTOR.pod[1]],
      node: [ALL, WITHOUT_DETECTOR.node[1]],
      client: [ALL, WITHOUT_DETECTOR.client[1]],
    },
  },
];

/** Each of the two settings by itself is a story of test/scenarios, in every mode. */
const FIRST_AND_LAST = [MATRICES[0], ...MATRICES.slice(-1)];

t.test('masquerade of internal and external traffic, with and without a local detector', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(TWO, [[80, 'TCP']]);
  await addVisitor(lab);
  // Answers to clients whose address is kept have to come back through the node, which translated the question.
  await lab.addRoute('remote-node', '203.0.113.0/24', ADDRESSES.node.IPv4);
  await lab.addRoute('remote-node', '2001:db8:203::/64', ADDRESSES.node.IPv6);
  for (const { id, config, cells } of underEmulation(MATRICES.slice(0, 2), usually(FIRST_AND_LAST, MATRICES))) {
    await t.test(id, async (t) => {
      const proxy = await Proxy.start(t, lab, { config, objects: OBJECTS });
      await proxy.consistent();
      // A connection of the node's own must not find its port taken by one that was masqueraded: the kernel would give it another.
      await lab.output('node', ['conntrack', '-F']);
      const rows = matrixRows(cells);
      const hidden = (row: Row): boolean => row.expect.includes('masqueraded');
      await checkRows(
        t,
        lab,
        rows.filter((row) => !hidden(row)),
      );
      await checkRows(t, lab, rows.filter(hidden));
    });
  }
});

function matrixRows(cells: Matrix['cells']): readonly Row[] {
  return FAMILY_VIEWS.flatMap((view) =>
    SOURCES.flatMap((from) =>
      SERVICES.flatMap((_, index): readonly Row[] => {
        const [internal, external] = cells[from];
        const sender = from === 'pod' ? { from: 'pod-c', source: view.visitor } : { from };
        const verdict = (cell: Cell | undefined): string => {
          const pods = cell?.startsWith('local') === true ? (['pod-a'] as const) : TWO;
          return cell?.endsWith('m') === true ? view.masqueraded(pods, 80) : view.kept(pods, 80);
        };
        const externals = [
          view.nodePort(30001 + index),
          endpoint(view.loadBalancerIP(3 + index), 80),
          endpoint(view.externalIP(11 + index), 80),
        ];
        return [
          { ...sender, to: endpoint(view.clusterIP(41 + index), 80), expect: verdict(internal[index]) },
          ...externals.map((to) => ({ ...sender, to, expect: verdict(external[index]) })),
        ];
      }),
    ),
  );
}

/** What each way of telling pods from others says of connections to a cluster IP. */
const DETECTORS = [
  {
    name: 'NodeCIDR',
    config: { detectLocalMode: 'NodeCIDR', clusterCIDR: '' },
    pods: ['pod-a', 'pod-b', 'pod-c'],
    others: ['remote-a', 'node', 'client'],
  },
  {
    name: 'BridgeInterface',
    config: { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'cbr0' } },
    pods: ['pod-c'],
    others: ['pod-a', 'pod-b', 'remote-a', 'node', 'client'],
  },
  {
    name: 'InterfaceNamePrefix',
    config: { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: 'veth-' } },
    pods: ['pod-a', 'pod-b'],
    others: ['pod-c', 'remote-a', 'node', 'client'],
  },
] as const;

t.test('masquerade by each local detector, and with another mark', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-b'], [[80, 'TCP']]);
  const objects = dualStack('web', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80 }],
    endpoints: ['remote-b'],
  });
  const own = node(NODE_NAME, {
    addresses: Object.values(ADDRESSES.node),
    podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
  });
  for (const { name, config, pods, others } of DETECTORS) {
    await t.test(name, async (t) => {
      const proxy = await Proxy.start(t, lab, {
        config: { ...config, nftables: { masqueradeBit: 15 } },
        objects,
        node: own,
      });
      await proxy.consistent();
      const ruleset = await proxy.rules();
      t.match(ruleset, /mark (& )?0x0*8000\b/, 'masqueradeBit 15');
      // Only marks: keys of source ranges have the same bit after a prefix of 17 bits.
      t.notMatch(ruleset, /mark [^\n]*0x0*4000\b/, 'nor the bit of the default');
      await checkRows(
        t,
        lab,
        FAMILY_VIEWS.flatMap((view) => {
          const internal = endpoint(view.clusterIP(41), 80);
          const external = endpoint(view.loadBalancerIP(3), 80);
          const [kept, masqueraded] = [view.kept(['remote-b'], 80), view.masqueraded(['remote-b'], 80)];
          return [
            ...pods.flatMap((from): Row[] => [
              { from, to: internal, expect: kept },
              { from, to: external, expect: kept, shows: 'VD-06' },
            ]),
            ...others.flatMap((from): Row[] => [
              { from, to: internal, expect: masqueraded },
              { from, to: external, expect: from === 'node' ? masqueraded : 'dropped', shows: 'VD-07, VD-09' },
            ]),
          ];
        }),
      );
    });
  }
});

t.test('masquerade does not touch other traffic, nor other bits of the mark', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll([...TWO, 'client'], [[80, 'TCP']]);
  // Somebody marks everything with bits of their own, and drops what has lost them or got others.
  const marks = `table inet marks {
    chain prerouting { type filter hook prerouting priority -150; meta mark set meta mark or 0x10003; }
    chain output { type route hook output priority -150; meta mark set meta mark or 0x10003; }
    chain postrouting { type filter hook postrouting priority 150; meta l4proto tcp meta mark != 0x10003 drop; }
  }`;
  await lab.output('node', ['nft', '-f', '-'], marks);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await proxy.consistent();
  await checkRows(
    t,
    lab,
    FAMILY_VIEWS.flatMap((view): Row[] => {
      const direct = (from: string, to: 'pod-a' | 'remote-a' | 'client'): Row => ({
        shows: 'E-84 no Service, no masquerading',
        from,
        to: endpoint(view.address(to), 80),
        expect: endpoint(view.address(to), 80),
      });
      const shows = 'SV-20 only our bit is touched';
      return [
        direct('pod-b', 'pod-a'),
        direct('pod-b', 'remote-a'),
        direct('remote-b', 'pod-a'),
        direct('client', 'pod-a'),
        direct('pod-b', 'client'),
        direct('node', 'pod-a'),
        { shows, from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(TWO, 80) },
        { shows, from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(TWO, 80) },
        { shows, from: 'node', to: endpoint(view.clusterIP(41), 80), expect: view.masqueraded(TWO, 80) },
      ];
    }),
  );
});
