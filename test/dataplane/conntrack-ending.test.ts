import t from 'tap';
import { endingFlows } from '../../src/dataplane/conntrack/ending-flows.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { address, listing, table, type FlowText } from './conntrack-records.js';

const ESTABLISHED = { protocol: 'TCP', state: 3 } as const;
const FRONTENDS = [
  { protocol: 'TCP', at: '10.96.0.10 80', to: ['10.244.1.1 80'] },
  { protocol: 'TCP', at: 'nodeport 30080', to: ['10.244.1.1 80'] },
] as const;
const NODE = address('192.168.0.1');
const VIEW = { table: table('IPv4', FRONTENDS), isNodePortAddress: (each: string) => each === NODE };
const FLOWS: readonly FlowText[] = [
  { ...ESTABLISHED, to: '10.96.0.10 80', by: '10.244.1.1 80' },
  { ...ESTABLISHED, to: '192.168.0.1 30080', by: '10.244.1.1 80' },
  { ...ESTABLISHED, to: '192.168.0.2 30080', by: '10.244.1.1 80' },
  { ...ESTABLISHED, to: '10.96.0.10 80', by: '10.244.1.2 80' },
  { ...ESTABLISHED, state: 7, to: '10.96.0.10 80', by: '10.244.1.1 80' },
  { ...ESTABLISHED, to: '10.96.0.10 81', by: '10.244.1.1 80' },
  { ...ESTABLISHED, to: '10.96.0.10 80', by: '10.244.1.1 80' },
];

t.test('connections are grouped by frontend and endpoint', async (t) => {
  const { count, records } = listing('IPv4', FLOWS);
  const flows = await endingFlows({ count, records }, VIEW, { now: () => 0 });
  const size = records.length / count;
  t.same(
    flows.map(({ frontend, address: by, starts }) => [frontend, by.charCodeAt(3), starts.map((start) => start / size)]),
    [
      ['10.96.0.10:80/TCP', 1, [0, 6]],
      ['10.96.0.10:80/TCP', 2, [3]],
      [frontendKey(null, 30_080, 'TCP'), 1, [1]],
    ],
  );
  t.end();
});

t.test('reading a long conntrack listing yields to the event loop', async (t) => {
  const many = listing('IPv4', new Array<readonly FlowText[]>(1000).fill(FLOWS).flat());
  let [time, turns, isOver] = [0, 0, false];
  const count = (): void => {
    if (isOver) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  const found = await endingFlows(many, VIEW, { now: () => (time += 10) });
  isOver = true;
  t.ok(turns >= 10, `${turns} turns`);
  t.equal(
    found.reduce((sum, { starts }) => sum + starts.length, 0),
    4000,
  );
  t.end();
});
