// Who sees whose address, by configuration.
import type { Act, Case, Flow, ServiceSpec, Step } from '../case.js';
import type { DifferenceName } from '../differences.js';
import type { Place } from '../places.js';

const SERVICES = ['plain', 'external-local', 'internal-local'] as const;
const OBJECTS = SERVICES.map((service): ServiceSpec => ({
  service,
  type: 'LoadBalancer',
  balancers: 1,
  externals: 1,
  ...(service === 'external-local' ? { externalTrafficPolicy: 'Local' } : {}),
  ...(service === 'internal-local' ? { internalTrafficPolicy: 'Local' } : {}),
  ports: [{ port: 80 }],
  endpoints: ['pod-a', 'remote-a'],
}));

const BOTH = 'kept pod-a remote-a';
const LOCAL = 'kept pod-a';
const HIDDEN = 'masqueraded pod-a remote-a';
const LOCAL_HIDDEN = 'masqueraded pod-a';
const PREFERRED: DifferenceName = 'policy Local prefers this node';

/** Expected of the three Services' cluster IPs, and of all their external addresses. */
interface Cells {
  readonly internal: readonly [string, string, string];
  readonly external: readonly [string, string, string];
  readonly differs?: Readonly<Partial<Record<DifferenceName, Omit<Cells, 'differs'>>>>;
}

const KEPT = [BOTH, BOTH, LOCAL] as const;
const ALL_HIDDEN = [HIDDEN, HIDDEN, LOCAL_HIDDEN] as const;
const OUTSIDE = [HIDDEN, LOCAL, HIDDEN] as const;

const OF_POD: Cells = {
  internal: KEPT,
  external: [HIDDEN, BOTH, HIDDEN],
  differs: { [PREFERRED]: { internal: KEPT, external: OUTSIDE } },
};
const OF_NODE: Cells = {
  internal: ALL_HIDDEN,
  external: [HIDDEN, HIDDEN, HIDDEN],
  differs: { [PREFERRED]: { internal: ALL_HIDDEN, external: [HIDDEN, LOCAL_HIDDEN, HIDDEN] } },
};
const NODE_UNDETECTED: Cells = {
  internal: KEPT,
  external: OF_NODE.external,
  differs: { 'the node is masqueraded': { internal: ALL_HIDDEN, external: [HIDDEN, LOCAL_HIDDEN, HIDDEN] } },
};

const cells = (from: Place, { internal, external, differs = {} }: Cells): readonly Flow[] =>
  SERVICES.flatMap((service, index): readonly Flow[] => {
    const differing = (kind: 'internal' | 'external'): NonNullable<Flow['differs']> =>
      Object.fromEntries(Object.entries(differs).map(([name, other]) => [name, other[kind][index] ?? '']));
    return [
      { from, to: `${service}:80`, expect: internal[index] ?? '', differs: differing('internal') },
      {
        from,
        to: [`${service} node-port:80`, `${service} balancer:80`, `${service} external:80`],
        expect: external[index] ?? '',
        differs: differing('external'),
      },
    ];
  });

const matrix = (
  id: string,
  title: string,
  shows: readonly string[],
  config: Readonly<Record<string, unknown>>,
  of: { readonly pod: Cells; readonly node: Cells; readonly client: Cells },
): Case => {
  return {
    id,
    title,
    shows,
    own: { config },
    steps: [
      {
        objects: OBJECTS,
        flows: [...cells('visitor', of.pod), ...cells('node', of.node), ...cells('client', of.client)],
      },
    ],
  };
};

const NO_DETECTOR = { clusterCIDR: '' };

const deleteTable = (name: string): Act => ({ run: ['nft', 'delete', 'table', 'inet', name], in: 'node' });

/** Drops what has the bit that masquerading sets unless it is configured. */
const DEFAULT_BIT = `table inet default-bit {
  chain forward { type filter hook forward priority 0; meta mark & 0x4000 != 0 drop; }
  chain output { type filter hook output priority 150; meta mark & 0x4000 != 0 drop; }
}`;

/** Each way of telling pods from others, by connections to a cluster IP. */
const detector = (
  name: string,
  config: Readonly<Record<string, unknown>>,
  pods: readonly Place[],
  others: readonly Place[],
): Case => ({
  id: `masquerade-by-${name.toLowerCase()}`,
  title: `masquerade by the local detector ${name}, with another mark`,
  shows: ['VD-06', 'VD-07', 'VD-09'],
  own: {
    config: { detectLocalMode: name, ...config, nftables: { masqueradeBit: 15 } },
    podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
    after: [deleteTable('default-bit')],
  },
  steps: [
    {
      acts: [{ run: ['nft', '-f', '-'], input: DEFAULT_BIT, in: 'node' }],
      objects: [
        {
          service: 'web',
          balancers: 1,
          externalTrafficPolicy: 'Local',
          ports: [{ port: 80 }],
          endpoints: ['remote-b'],
        },
      ],
      flows: [
        { from: pods, to: ['web:80', 'web balancer:80'], expect: 'kept remote-b', shows: 'VD-06' },
        { from: [...others, 'node'], to: 'web:80', expect: 'masqueraded remote-b' },
        { from: 'node', to: 'web balancer:80', expect: 'masqueraded remote-b', shows: 'VD-07' },
        { from: others, to: 'web balancer:80', expect: 'dropped', shows: 'VD-09' },
      ],
    },
  ],
});

/** Some program marks everything with bits of its own, and drops what has lost them or got others. */
const MARKS = `table inet marks {
  chain prerouting { type filter hook prerouting priority -150; meta mark set meta mark or 0x10003; }
  chain output { type route hook output priority -150; meta mark set meta mark or 0x10003; }
  chain postrouting { type filter hook postrouting priority 150; meta l4proto tcp meta mark != 0x10003 drop; }
}`;
const MARKED: Step = {
  acts: [{ run: ['nft', '-f', '-'], input: MARKS, in: 'node' }],
  objects: OBJECTS,
  flows: [
    { shows: 'E-84', from: ['pod-b', 'client', 'node', 'remote-b'], to: 'place pod-a:80', expect: 'kept pod-a' },
    { shows: 'E-84', from: 'pod-b', to: 'place remote-a:80', expect: 'kept remote-a' },
    { shows: 'E-84', from: 'pod-b', to: 'place client:80', expect: 'kept client' },
    { shows: 'SV-20', from: 'pod-b', to: 'plain:80', expect: BOTH },
    { shows: 'SV-20', from: 'client', to: 'plain balancer:80', expect: HIDDEN },
    { shows: 'SV-20', from: 'node', to: 'plain:80', expect: HIDDEN },
  ],
};

export const MASQUERADE_CASES: readonly Case[] = [
  matrix(
    'masquerade',
    'masquerade of what does not come from pods',
    ['PF-100', 'PF-108'],
    {},
    {
      pod: OF_POD,
      node: OF_NODE,
      client: { internal: ALL_HIDDEN, external: OUTSIDE },
    },
  ),
  matrix('masquerade-undetected', 'masquerade without a local detector', ['PF-110'], NO_DETECTOR, {
    pod: { internal: KEPT, external: OUTSIDE },
    node: NODE_UNDETECTED,
    client: { internal: KEPT, external: OUTSIDE },
  }),
  matrix(
    'masquerade-all',
    'masqueradeAll',
    ['PF-111'],
    { nftables: { masqueradeAll: true } },
    {
      pod: { ...OF_POD, internal: ALL_HIDDEN, differs: { [PREFERRED]: { internal: ALL_HIDDEN, external: OUTSIDE } } },
      node: OF_NODE,
      client: { internal: ALL_HIDDEN, external: OUTSIDE },
    },
  ),
  matrix(
    'masquerade-all-undetected',
    'masqueradeAll without a local detector',
    ['PF-112'],
    { ...NO_DETECTOR, nftables: { masqueradeAll: true } },
    {
      pod: { internal: ALL_HIDDEN, external: OUTSIDE },
      node: OF_NODE,
      client: { internal: ALL_HIDDEN, external: OUTSIDE },
    },
  ),
  detector('NodeCIDR', { clusterCIDR: '' }, ['pod-a', 'pod-b', 'pod-c'], ['remote-a', 'client']),
  detector(
    'BridgeInterface',
    { detectLocal: { bridgeInterface: 'cbr0' } },
    ['pod-c'],
    ['pod-a', 'pod-b', 'remote-a', 'client'],
  ),
  detector(
    'InterfaceNamePrefix',
    { detectLocal: { interfaceNamePrefix: 'veth-' } },
    ['pod-a', 'pod-b'],
    ['pod-c', 'remote-a', 'client'],
  ),
  {
    id: 'marks-of-others',
    title: 'masquerading touches no other traffic, and no other bit of the mark',
    shows: ['SV-20', 'E-84'],
    own: { after: [deleteTable('marks')] },
    steps: [MARKED],
  },
];
