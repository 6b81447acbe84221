// Which sources reach load balancer addresses. `client` is .2 and ::2, `blocked` .130 and ::8000:0:0:2 of one network (support/lab/topology.ts).
import { PREFIXES } from '../../support/lab/topology.js';
import type { Case, ServiceSpec, Step } from '../case.js';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

const restricted = (sourceRanges: readonly string[], fields: Partial<ServiceSpec> = {}): readonly ServiceSpec[] => [
  {
    service: 'web',
    balancers: 2,
    externals: 1,
    sourceRanges,
    ports: PROTOCOLS.map((protocol) => ({ protocol, port: 80 })),
    endpoints: ['pod-a'],
    ...fields,
  },
];

const BALANCERS = ['web balancer:80', 'web balancer 2:80'] as const;
const verdict = (isAdmitted: boolean): string => (isAdmitted ? 'masqueraded pod-a' : 'dropped');

/** Each list after the one before it, live: whether client and blocked get through. */
const LISTS: readonly (readonly [ranges: readonly string[], client: boolean, blocked: boolean])[] = [
  [['203.0.113.0/24', '203.0.113.0/25', '203.0.113.2/32', '2001:db8:203::/64', '2001:db8:203::/65'], true, true],
  [['203.0.113.0/25', '203.0.113.2/32', '2001:db8:203::/65', '2001:db8:203::2/128'], true, false],
  [['203.0.113.2/32', '2001:db8:203::2/128'], true, false],
  [['203.0.113.128/25', '203.0.113.0/25', '2001:db8:203::/65', '2001:db8:203:0:8000::/65'], true, true],
  [['203.0.113.130/32', '203.0.113.128/25', '2001:db8:203:0:8000::/65'], false, true],
  [['203.0.113.128/25', '203.0.113.130/31', '2001:db8:203:0:8000::2/128'], false, true],
  [['203.0.112.0/23', '203.0.113.130/32', '2001:db8::/32', '2001:db8:203:0:8000::2/128'], true, true],
  [['198.18.0.0/15', '2001:db8:1::/48'], false, false],
  [['198.18.0.0/15', '0.0.0.0/0', '::/0'], true, true],
  [['203.0.113.000/025', '2001:db8:203::/65'], true, false],
  [['::ffff:203.0.113.0/121', '2001:db8:203::/65'], true, false],
  [['::ffff:203.0.113.128/121', '2001:db8:203:0:8000::/65'], false, true],
  [['::ffff:203.0.113.0/95'], false, false],
  [['everyone'], false, false],
  [[], true, true],
];

export const SOURCE_RANGE_CASES: readonly Case[] = [
  {
    id: 'source-ranges',
    title: 'source ranges restrict clients of load balancers, and nobody else',
    shows: ['VD-11'],
    steps: [
      {
        objects: restricted([
          PREFIXES.nodes.IPv4,
          ` ${PREFIXES.admitted.IPv4}`,
          PREFIXES.nodes.IPv6,
          ` ${PREFIXES.admitted.IPv6}`,
        ]),
        flows: [
          { shows: 'PF-020', from: 'pod-b', to: 'web:80', protocol: PROTOCOLS, expect: 'kept pod-a' },
          {
            shows: 'PF-021, PF-022',
            from: ['client', 'blocked'],
            to: 'web node-port:80',
            protocol: PROTOCOLS,
            expect: 'masqueraded pod-a',
          },
          { shows: 'VD-12', from: 'blocked', to: 'web external:80', protocol: PROTOCOLS, expect: 'masqueraded pod-a' },
          { shows: 'PF-023', from: 'client', to: BALANCERS, protocol: PROTOCOLS, expect: 'masqueraded pod-a' },
          {
            shows: 'PF-024, PF-025',
            from: ['blocked', 'pod-b'],
            to: BALANCERS,
            protocol: PROTOCOLS,
            expect: 'dropped',
          },
          { shows: 'PF-026', from: 'node', to: BALANCERS, protocol: PROTOCOLS, expect: 'masqueraded pod-a' },
        ],
      },
      ...LISTS.map(([ranges, client, blocked]): Step => ({
        title: `ranges ${ranges.join()}`,
        objects: restricted(ranges),
        flows: [
          { from: 'client', to: 'web balancer:80', protocol: ['TCP', 'UDP'], expect: verdict(client) },
          { from: 'blocked', to: 'web balancer:80', expect: verdict(blocked) },
        ],
      })),
      {
        title: 'ranges of one family leave the other open',
        objects: restricted(['198.18.0.0/15']),
        flows: [
          { shows: 'SV-06', from: 'client', to: 'web balancer:80', family: 'IPv4', expect: 'dropped' },
          { shows: 'SV-06', from: 'client', to: 'web balancer:80', family: 'IPv6', expect: 'masqueraded pod-a' },
        ],
      },
      {
        title: 'without endpoints those who are not admitted are dropped, too',
        objects: restricted([PREFIXES.admitted.IPv4], { endpoints: [] }),
        flows: [
          { shows: 'VD-11', from: 'blocked', to: 'web balancer:80', family: 'IPv4', expect: 'dropped' },
          { shows: 'VD-01', from: 'client', to: 'web balancer:80', family: 'IPv4', expect: 'refused' },
        ],
      },
    ],
  },
  {
    id: 'source-of-a-balancer',
    title: 'the node reaches a restricted load balancer address that it has itself',
    shows: ['PF-027'],
    own: { after: [{ address: { balancersOf: 'web' }, to: 'node', link: 'lo', add: false }] },
    steps: [
      {
        objects: restricted([PREFIXES.nodes.IPv4, PREFIXES.nodes.IPv6]),
        acts: [{ address: { balancersOf: 'web' }, to: 'node', link: 'lo', add: true }],
        flows: BALANCERS.map((to) => ({
          from: 'node',
          to,
          source: to.replace(':80', ''),
          expect: 'masqueraded pod-a',
        })),
      },
    ],
  },
];
