import t from 'tap';

import { flowScopes } from '../../src/dataplane/conntrack/flow-scope.js';
import { staleFlows } from '../../src/dataplane/conntrack/stale-flows.js';
import type { Family } from '../../src/base/ip.js';
import type { FrontendKey } from '../../src/plan/types.js';
import { listing, printRecords, table, type FlowText, type FrontendText } from './conntrack-records.js';

interface Case {
  readonly name: string;
  readonly family?: Family;
  readonly frontends: readonly FrontendText[];
  /** Null: a full pass. */
  readonly changed?: readonly FrontendKey[] | null;
  readonly gone?: readonly FrontendKey[];
  readonly nodeAddresses?: readonly string[];
  readonly flows: readonly FlowText[];
  /** Positions in `flows`, from 1. */
  readonly stale: readonly number[];
}

const DNS: FrontendText = { at: '10.96.0.10 53', to: ['10.244.1.10 53', '10.244.2.10 53'] };
const DNS6: FrontendText = { at: 'fd00:96::a 53', to: ['fd00:244:1::10 53'] };
const NODE_PORT: FrontendText = { at: 'nodeport 30053', to: ['10.244.1.10 53'] };

/** TCP and SCTP: a client has asked for a connection, and nothing was replied. */
const SYN = { protocol: 'TCP', state: 1, replied: false } as const;
const INIT = { protocol: 'SCTP', state: 2, replied: false } as const;

const CASES: readonly Case[] = [
  {
    name: 'a flow stays while its endpoint does, and goes with it',
    frontends: [DNS],
    flows: [
      { to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { to: '10.96.0.10 53', by: '10.244.3.10 53' },
      { to: '10.96.0.10 53', by: '10.244.1.10 54' },
    ],
    stale: [3, 4],
  },
  {
    name: 'a flow from before the rules replies from the frontend itself',
    frontends: [DNS],
    flows: [{ to: '10.96.0.10 53', by: '10.96.0.10 53' }],
    stale: [1],
  },
  {
    name: 'without endpoints every flow of the frontend goes',
    frontends: [{ at: '10.96.0.10 53', to: [] }],
    flows: [
      { to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { to: '10.96.0.10 53', by: '10.96.0.10 53' },
    ],
    stale: [1, 2],
  },
  {
    name: 'flows to other addresses, ports or protocols than the frontends stay',
    frontends: [DNS],
    flows: [
      { to: '10.96.0.11 53', by: '10.244.9.9 53' },
      { to: '10.96.0.10 54', by: '10.244.9.9 53' },
      { protocol: 'SCTP', to: '10.96.0.10 53', by: '10.244.9.9 53' },
      { to: '8.8.8.8 53', by: '8.8.8.8 53' },
    ],
    stale: [],
  },
  {
    name: 'of TCP only attempts that nothing was replied to go, and only those to endpoints that take no new connections',
    frontends: [{ protocol: 'TCP', at: '10.96.0.10 53', to: ['10.244.1.10 53'] }],
    flows: [
      { ...SYN, to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { ...SYN, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { ...SYN, to: '10.96.0.10 53', by: '10.244.1.10 54' },
      { ...SYN, to: '10.96.0.10 53', by: '10.96.0.10 53' },
      { ...SYN, to: '10.96.0.11 53', by: '10.244.2.10 53' },
      { ...SYN, replied: true, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { ...SYN, state: 2, replied: true, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { protocol: 'TCP', state: 3, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      // Met in the middle, as after the table of connections was lost.
      { protocol: 'TCP', state: 3, replied: false, to: '10.96.0.10 53', by: '10.244.2.10 53' },
    ],
    stale: [2, 3, 4],
  },
  {
    name: 'an attempt may go to an endpoint of either list of a frontend with two',
    frontends: [{ protocol: 'TCP', at: 'nodeport 30053', to: ['10.244.1.10 53'], local: ['10.244.2.10 53'] }],
    nodeAddresses: ['192.168.0.1'],
    flows: [
      { ...SYN, to: '192.168.0.1 30053', by: '10.244.1.10 53' },
      { ...SYN, to: '192.168.0.1 30053', by: '10.244.2.10 53' },
      { ...SYN, to: '192.168.0.1 30053', by: '10.244.3.10 53' },
    ],
    stale: [3],
  },
  {
    name: 'attempts to a frontend that is gone go, established connections stay',
    frontends: [],
    changed: ['10.96.0.10:53/TCP'],
    flows: [
      { ...SYN, to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { protocol: 'TCP', state: 3, to: '10.96.0.10 53', by: '10.244.1.10 53' },
    ],
    stale: [1],
  },
  {
    name: 'an SCTP association keeps an endpoint that serves, an INIT that nothing was replied to only one that takes new ones',
    frontends: [
      { protocol: 'SCTP', at: '10.96.0.10 53', to: ['10.244.1.10 53'], kept: ['10.244.1.10 53', '10.244.2.10 53'] },
    ],
    flows: [
      { ...INIT, to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { ...INIT, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { ...INIT, replied: true, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { protocol: 'SCTP', state: 4, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { protocol: 'SCTP', state: 8, replied: false, to: '10.96.0.10 53', by: '10.244.2.10 53' },
      { protocol: 'SCTP', state: 4, to: '10.96.0.10 53', by: '10.244.3.10 53' },
    ],
    stale: [2, 6],
  },
  {
    name: 'flows of SCTP and UDP, each by its own frontends',
    frontends: [DNS, { protocol: 'SCTP', at: '10.96.0.10 53', to: ['10.244.7.7 53'] }],
    flows: [
      { protocol: 'SCTP', to: '10.96.0.10 53', by: '10.244.7.7 53' },
      { protocol: 'SCTP', to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { to: '10.96.0.10 53', by: '10.244.7.7 53' },
      { to: '10.96.0.10 53', by: '10.244.1.10 53' },
    ],
    stale: [2, 3],
  },
  {
    name: 'a node port counts on the node’s own addresses only',
    frontends: [NODE_PORT],
    nodeAddresses: ['192.168.0.1', '192.168.1.1'],
    flows: [
      { to: '192.168.0.1 30053', by: '10.244.1.10 53' },
      { to: '192.168.0.1 30053', by: '10.244.9.9 53' },
      { to: '192.168.1.1 30053', by: '192.168.1.1 30053' },
      { to: '10.244.5.5 30053', by: '10.244.5.5 30053' },
      { to: '192.168.0.1 30054', by: '10.244.9.9 53' },
    ],
    stale: [2, 3],
  },
  {
    name: 'a frontend of its own comes before the node port',
    frontends: [NODE_PORT, { at: '192.168.0.1 30053', to: ['10.244.6.6 53'] }],
    nodeAddresses: ['192.168.0.1'],
    flows: [
      { to: '192.168.0.1 30053', by: '10.244.6.6 53' },
      { to: '192.168.0.1 30053', by: '10.244.1.10 53' },
    ],
    stale: [2],
  },
  {
    name: 'a frontend of its own comes before the node port, also when only the latter changed',
    frontends: [NODE_PORT, { at: '192.168.0.1 30053', to: ['10.244.6.6 53'] }],
    changed: ['nodeport:30053/UDP'],
    nodeAddresses: ['192.168.0.1', '192.168.0.2'],
    flows: [
      { to: '192.168.0.1 30053', by: '10.244.6.6 53' },
      { to: '192.168.0.2 30053', by: '10.244.6.6 53' },
    ],
    stale: [2],
  },
  {
    name: 'a pass over changes looks at these only',
    frontends: [DNS, { at: '10.96.0.11 53', to: [] }],
    changed: ['10.96.0.10:53/UDP'],
    flows: [
      { to: '10.96.0.10 53', by: '10.244.9.9 53' },
      { to: '10.96.0.11 53', by: '10.244.9.9 53' },
    ],
    stale: [1],
  },
  {
    name: 'a removed frontend leaves no flow',
    frontends: [DNS],
    changed: ['10.96.0.66:53/UDP', 'nodeport:30066/UDP', '10.96.0.77:53/TCP'],
    nodeAddresses: ['192.168.0.1'],
    flows: [
      { to: '10.96.0.66 53', by: '10.244.1.10 53' },
      { to: '192.168.0.1 30066', by: '10.244.1.10 53' },
      { to: '10.244.5.5 30066', by: '10.244.5.5 30066' },
      { to: '10.96.0.10 53', by: '10.244.9.9 53' },
      { protocol: 'TCP', to: '10.96.0.77 53', by: '10.244.1.10 53' },
    ],
    stale: [1, 2],
  },
  {
    name: 'a removed frontend in a full pass',
    frontends: [DNS],
    changed: null,
    gone: ['10.96.0.66:53/UDP'],
    flows: [
      { to: '10.96.0.66 53', by: '10.244.1.10 53' },
      { to: '10.96.0.10 53', by: '10.244.1.10 53' },
      { to: '10.96.0.10 53', by: '10.244.9.9 53' },
    ],
    stale: [1, 3],
  },
  {
    name: 'a removed external IP uncovers a node port on the same address',
    frontends: [NODE_PORT],
    changed: ['192.168.0.1:30053/UDP'],
    nodeAddresses: ['192.168.0.1'],
    flows: [
      { to: '192.168.0.1 30053', by: '10.244.1.10 53' },
      { to: '192.168.0.1 30053', by: '10.244.6.6 53' },
    ],
    stale: [2],
  },
  {
    name: 'an endpoint that is the frontend itself',
    frontends: [{ at: '192.168.0.1 53', to: ['192.168.0.1 53'] }],
    nodeAddresses: ['192.168.0.1'],
    flows: [{ to: '192.168.0.1 53', by: '192.168.0.1 53' }],
    stale: [],
  },
  {
    name: 'zones do not matter to the decision',
    frontends: [DNS],
    flows: [
      { to: '10.96.0.10 53', by: '10.244.9.9 53', zone: 7 },
      { to: '10.96.0.10 53', by: '10.244.1.10 53', zone: 7 },
    ],
    stale: [1],
  },
  {
    name: 'IPv6',
    family: 'IPv6',
    frontends: [DNS6, { at: 'nodeport 30053', to: ['fd00:244:1::10 53'] }],
    changed: ['[fd00:96::a]:53/UDP', 'nodeport:30053/UDP', '[fd00:96::b]:53/SCTP'],
    nodeAddresses: ['fd00::1'],
    flows: [
      { to: 'fd00:96::a 53', by: 'fd00:244:1::10 53' },
      { to: 'fd00:96::a 53', by: 'fd00:244:1::11 53' },
      { to: 'fd00::1 30053', by: 'fd00:244:1::11 53' },
      { to: 'fd00::2 30053', by: 'fd00:244:1::11 53' },
      { to: 'fd00:96::b 53', by: 'fd00:96::b 53' },
      { protocol: 'SCTP', to: 'fd00:96::b 53', by: 'fd00:96::b 53' },
    ],
    stale: [2, 3, 6],
  },
];

/** Lists nothing in the kernel's place: every scope sees all flows, as from a kernel that ignores filters. */
function decide(testCase: Case): string[] {
  const family = testCase.family ?? 'IPv4';
  const changed = testCase.changed ?? [];
  const nodeAddresses = new Set<string>(testCase.nodeAddresses ?? []);
  const scopes = flowScopes({
    table: table(family, testCase.frontends),
    isNodePortAddress: (own) => nodeAddresses.has(own),
    full: testCase.changed === undefined || testCase.changed === null,
    changed: new Set([...changed, ...(testCase.gone ?? [])]),
  });
  return scopes.flatMap((scope) => printRecords(family, staleFlows(listing(family, testCase.flows), scope)));
}

for (const testCase of CASES) {
  t.test(`stale flows: ${testCase.name}`, (t) => {
    const family = testCase.family ?? 'IPv4';
    const all = printRecords(family, listing(family, testCase.flows).records);
    const expected = testCase.stale.map((position) => all[position - 1]);
    t.same(decide(testCase).sort(), expected.sort());
    t.end();
  });
}

t.test('a conntrack listing that claims more records than it has is refused', (t) => {
  const [scope] = flowScopes({
    table: table('IPv4', [DNS]),
    isNodePortAddress: () => false,
    full: true,
    changed: new Set(),
  });
  const { records } = listing('IPv4', [{ to: '10.96.0.10 53', by: '10.244.9.9 53' }]);
  t.ok(scope);
  t.equal(staleFlows({ count: 3, records: records.subarray(0, 30) }, scope!).length, 0);
  t.equal(staleFlows({ count: 3, records }, scope!).length, records.length);
  t.end();
});

t.test('stale flows are found among thousands of frontends and endpoints', (t) => {
  const frontends = Array.from({ length: 5000 }, (_, index) => ({
    at: `10.96.${index >> 8}.${index & 255} 53`,
    to: [`10.244.${index >> 8}.${index & 255} 53`, `10.245.${index >> 8}.${index & 255} 53`],
  }));
  const flows = frontends.flatMap((own, index): FlowText[] => {
    const other = frontends[(index + 1) % frontends.length]!;
    return [
      { to: own.at, by: own.to[index % 2]! },
      { to: own.at, by: other.to[index % 2]! },
    ];
  });
  const stale = decide({ name: '', frontends, flows, stale: [] });
  t.equal(stale.length, 5000);
  t.equal(stale[0], 'UDP 10.244.0.9 40000 > 10.96.0.0 53 < 10.244.0.1 53 #2');
  t.end();
});
