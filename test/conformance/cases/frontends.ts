// Which addresses and ports of a Service answer, and by whom.
import { FAMILIES, type Family } from '../../../src/base/ip.js';
import { PREFIXES } from '../../support/lab/topology.js';
import type { Case, Flow, ServiceSpec } from '../case.js';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
const TCP_AND_UDP = [{ port: 80 }, { port: 80, protocol: 'UDP' }] as const satisfies ServiceSpec['ports'];
const FAMILY_LISTS: readonly (readonly Family[])[] = [['IPv4'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4'], ['IPv6']];

const SOME_PORTS = [
  { port: 80 },
  { port: 443, targetPort: 8443 },
  { port: 53, protocol: 'UDP' },
  { port: 53, targetPort: 5353 },
  { port: 53, protocol: 'SCTP' },
] as const satisfies ServiceSpec['ports'];

const UNUSED_PORT = { expect: 'refused', differs: { 'unused ports are left alone': 'unreachable' } } as const;

const UNUSED_ADDRESS = { expect: 'dropped', differs: { 'unused addresses are left alone': 'unreachable' } } as const;

/** With a connection open. */
const GIVEN_UP = { ...UNUSED_ADDRESS, differs: { ...UNUSED_ADDRESS.differs, 'connections drain': 'refused' } } as const;

/** A Service of every kind of frontend. */
const everywhere = (fields: Partial<ServiceSpec>): readonly ServiceSpec[] => [
  {
    service: 'web',
    type: 'LoadBalancer',
    externals: 1,
    balancers: 1,
    ports: [{ port: 80 }],
    endpoints: ['remote-a', 'pod-a'],
    ...fields,
  },
];
const atTheNode = (
  service: string,
  port: number,
  endpoints: ServiceSpec['endpoints'],
  fields: Partial<ServiceSpec> = {},
): ServiceSpec => ({ service, externalAt: ['alternate'], ports: [{ port, targetPort: 80 }], endpoints, ...fields });
const EXTERNAL = ['web external:80', 'web balancer:80', 'web node-port:80'] as const;
const CLUSTER_FLOWS = [
  { from: 'pod-b', to: 'web:80', expect: 'kept pod-a remote-a', shows: 'PF-060' },
  { from: ['pod-b', 'client', 'node'], to: EXTERNAL, expect: 'masqueraded pod-a remote-a', shows: 'PF-061, VD-06' },
] as const;
const LOCAL_FLOWS = [
  { from: 'pod-b', to: 'web:80', expect: 'kept pod-a remote-a', shows: 'PF-050' },
  {
    from: 'pod-b',
    to: EXTERNAL,
    expect: 'kept pod-a remote-a',
    differs: { 'policy Local prefers this node': 'kept pod-a' },
    shows: 'PF-051, PF-053, PF-055, VD-06',
  },
  { from: 'client', to: EXTERNAL, expect: 'kept pod-a', shows: 'PF-052, PF-054, PF-056' },
  {
    from: 'node',
    to: EXTERNAL,
    expect: 'masqueraded pod-a remote-a',
    differs: { 'policy Local prefers this node': 'masqueraded pod-a' },
    shows: 'VD-07',
  },
] as const;

export const FRONTEND_CASES: readonly Case[] = [
  {
    id: 'cluster-ips',
    title: 'cluster IPs are balanced, and other ports of them are refused',
    shows: ['VD-10'],
    steps: [
      {
        objects: [
          { service: 'one', ports: [{ port: 80 }], endpoints: ['pod-a'] },
          { service: 'two', ports: SOME_PORTS, endpoints: ['pod-a', 'remote-a'] },
        ],
        flows: [
          { shows: 'PF-010', from: 'pod-b', to: 'one:80', expect: 'kept pod-a' },
          { shows: 'PF-011 hairpin', from: 'pod-a', to: 'one:80', expect: 'masqueraded pod-a' },
          { shows: 'E-04 pod of another node', from: 'remote-b', to: 'one:80', expect: 'kept pod-a' },
          {
            shows: 'PF-012, PF-013, PF-014',
            from: 'pod-b',
            to: ['two:80', 'two:443', 'two:53'],
            expect: 'kept pod-a remote-a',
          },
          {
            shows: 'PF-015, PF-016',
            from: 'pod-b',
            to: 'two:53',
            protocol: ['UDP', 'SCTP'],
            expect: 'kept pod-a remote-a',
          },
          { shows: 'PF-017', from: 'pod-b', to: 'two:80', protocol: 'UDP', ...UNUSED_PORT },
          { shows: 'PF-018, VD-15', from: ['pod-b', 'node'], to: 'one:443', ...UNUSED_PORT },
          { shows: 'PF-019, VD-16', from: ['pod-b', 'node'], to: 'unused:80', ...UNUSED_ADDRESS },
          { shows: 'VD-10', from: 'client', to: 'one:80', expect: 'masqueraded pod-a' },
          { shows: 'VD-10', from: 'node', to: 'two:53', protocol: 'UDP', expect: 'masqueraded pod-a remote-a' },
          { shows: 'VD-10', from: 'client', to: 'two:53', protocol: 'SCTP', expect: 'masqueraded pod-a remote-a' },
        ],
      },
    ],
  },
  {
    id: 'external-policies',
    title: 'external traffic policies are obeyed and follow changes',
    shows: ['VD-06', 'VD-07'],
    steps: [
      { title: 'Local', objects: everywhere({ externalTrafficPolicy: 'Local' }), flows: LOCAL_FLOWS },
      { title: 'Cluster', objects: everywhere({}), flows: CLUSTER_FLOWS },
      { title: 'Local again', objects: everywhere({ externalTrafficPolicy: 'Local' }), flows: LOCAL_FLOWS },
    ],
  },
  {
    id: 'other-external-ports',
    title: 'other ports of external addresses are left alone',
    shows: ['VD-17'],
    steps: [
      {
        objects: everywhere({}),
        flows: [
          {
            from: ['pod-b', 'client'],
            to: ['web external:81', 'web balancer:81'],
            expect: 'unreachable',
            differs: { 'unused external ports are refused': 'refused' },
          },
        ],
      },
    ],
  },
  {
    id: 'service-cidrs',
    title: 'addresses of a ServiceCIDR are dropped as soon as it is there, and no longer once it is gone',
    shows: ['VD-16', 'E-81'],
    steps: [
      {
        title: 'without it',
        objects: [],
        flows: [{ from: 'pod-b', to: 'place second-cidr:80', expect: 'unreachable' }],
      },
      {
        title: 'with it',
        objects: [{ serviceCIDR: 'more', prefixes: [PREFIXES.moreServices.IPv4, PREFIXES.moreServices.IPv6] }],
        flows: [{ from: 'pod-b', to: 'place second-cidr:80', ...UNUSED_ADDRESS }],
      },
      { title: 'removed', objects: [], flows: [{ from: 'pod-b', to: 'place second-cidr:80', expect: 'unreachable' }] },
    ],
  },
  {
    id: 'only-itself',
    title: 'a pod reaches the Service that selects only itself over every kind of frontend',
    shows: ['VD-14'],
    steps: [undefined, 'Local' as const].map((policy) => ({
      title: `policy ${policy ?? 'Cluster'}`,
      objects: everywhere({
        endpoints: ['pod-a'],
        ...(policy === undefined ? {} : { externalTrafficPolicy: policy, internalTrafficPolicy: policy }),
        ports: PROTOCOLS.map((protocol) => ({ protocol, port: 80 })),
      }),
      flows: [{ from: 'pod-a', to: ['web:80', ...EXTERNAL], protocol: PROTOCOLS, expect: 'masqueraded pod-a' }],
    })),
  },
  {
    id: 'host-network',
    title: 'endpoints on the node itself answer, and see a client where policy Local keeps it',
    shows: ['E-22', 'E-64'],
    steps: [
      {
        objects: [
          ...everywhere({ service: 'local', endpoints: ['node'], externalTrafficPolicy: 'Local', ports: TCP_AND_UDP }),
          ...everywhere({ service: 'web', endpoints: ['node'], ports: TCP_AND_UDP }),
        ],
        // Masquerading is done in postrouting, which connections from outside to the node's own endpoints never pass.
        flows: [
          {
            from: ['client', 'pod-b'],
            to: ['local:80', 'local balancer:80', 'local node-port:80'],
            protocol: ['TCP', 'UDP'],
            expect: 'kept node',
            shows: 'E-22',
          },
          { from: 'pod-b', to: ['web:80', ...EXTERNAL], protocol: ['TCP', 'UDP'], expect: 'kept node', shows: 'E-64' },
          {
            from: 'node',
            to: ['local:80', 'local balancer:80', 'local node-port:80'],
            protocol: ['TCP', 'UDP'],
            expect: 'masqueraded node',
            shows: 'E-22',
          },
        ],
      },
    ],
  },
  {
    id: 'families',
    title: 'a Service is served in the families that it has, and follows a change of them',
    shows: ['E-80'],
    // A family that the Service lacks stays unanswered, and its node port is no node port.
    steps: FAMILY_LISTS.map((families, step) => ({
      title: families.join(' and '),
      objects: [
        { service: 'web', type: 'NodePort' as const, families, ports: [{ port: 80 }], endpoints: ['pod-a' as const] },
      ],
      flows: FAMILIES.flatMap((family): readonly Flow[] =>
        families.includes(family)
          ? [
              { from: 'pod-b', to: 'web:80', family, expect: 'kept pod-a', hold: true },
              { from: 'client', to: 'web node-port:80', family, expect: 'masqueraded pod-a' },
            ]
          : [
              { from: 'pod-b', to: 'web:80', family, ...(step === 0 ? UNUSED_ADDRESS : GIVEN_UP) },
              { from: 'client', to: 'web node-port:80', family, expect: 'refused' },
            ],
      ),
    })),
  },
  {
    id: 'hairpin-without-a-node',
    title: 'a pod reaches itself if its EndpointSlice names no node',
    shows: ['VD-14'],
    steps: [
      {
        objects: everywhere({ endpoints: [{ pod: 'pod-a', nodeless: true }] }),
        flows: [
          { from: 'pod-a', to: ['web:80', ...EXTERNAL], expect: 'masqueraded pod-a' },
          { from: 'pod-b', to: 'web:80', expect: 'kept pod-a' },
        ],
      },
    ],
  },
  {
    id: 'external-at-the-node',
    title: 'an external IP that is an address of the node is served, and only at the ports of its Services',
    shows: ['PF-120'],
    steps: [
      {
        objects: [
          atTheNode('plain', 8080, ['remote-a']),
          atTheNode('local', 8081, ['remote-a'], { externalTrafficPolicy: 'Local' }),
          atTheNode('empty', 8082, []),
          atTheNode('preserved', 8083, ['pod-a', 'remote-a'], { externalTrafficPolicy: 'Local' }),
        ],
        flows: [
          { from: ['node', 'client'], to: 'place alternate:8080', expect: 'masqueraded remote-a:80' },
          { from: 'client', to: 'place alternate:8081', expect: 'dropped' },
          { from: 'node', to: 'place alternate:8081', expect: 'masqueraded remote-a:80', shows: 'VD-07' },
          { from: ['client', 'node'], to: 'place alternate:8082', expect: 'refused', shows: 'VD-01' },
          { from: 'client', to: 'place alternate:8083', expect: 'kept pod-a:80', shows: 'VD-08' },
          { from: 'client', to: 'place alternate:9', expect: 'refused', shows: 'VD-17' },
        ],
      },
    ],
  },
];
