import t from 'tap';
import { nftablesDataplane } from '../../../src/dataplane/nftables/driver.js';
import { Generation } from '../../../src/dataplane/generation.js';
import { printTransaction } from '../../../src/dataplane/nftables/print.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

const WEB = service('web', {
  clusterIPs: ['10.96.0.10'],
  type: 'LoadBalancer',
  ports: [{ port: 80, nodePort: 30080 }],
});
const endpoints = (...addresses: readonly string[]) =>
  slice(
    'web',
    addresses.map((address) => ({ address, node: 'me' })),
    { ports: [{ port: 8080 }] },
  );

t.test('diff prints a change of endpoints with one object a line, sorted', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, WEB, endpoints('10.1.0.1', '10.1.0.2')]);
  await rig.sync();
  rig.commit([endpoints('10.1.0.2', '10.1.0.3')]);
  const sent = await rig.during(() => rig.sync());
  t.same(sent.map(printTransaction), [
    [
      'delete element ip endpoints-0 0 . 10.96.0.10 . tcp . 80',
      'add element ip endpoints-0 0 . 10.96.0.10 . tcp . 80 : 10.1.0.3 . 8080',
      'delete element ip hairpin-pairs 10.1.0.1 . 10.1.0.1',
      'add element ip hairpin-pairs 10.1.0.3 . 10.1.0.3',
      'delete element ip nodeport-endpoints 0 . tcp . 30080',
      'add element ip nodeport-endpoints 0 . tcp . 30080 : 10.1.0.3 . 8080',
    ],
  ]);
});

t.test('diff prints verdicts with comments, ranges, a new table, and foreign sets', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, WEB, endpoints('10.1.0.1')]);
  const [first = []] = (await rig.during(() => rig.sync())).map(printTransaction);
  t.match(
    first.find((line) => line.startsWith('add element ip frontends ')),
    /^add element ip frontends 10\.96\.0\.10 \. tcp \. 80 : goto pick-\S+ "ClusterIP default\/web"$/,
  );
  t.ok(first.includes('add table ip kube-proxy {"comment":"rules of the Kubernetes service proxy"}'));
  t.ok(first.includes('add chain ip nat-prerouting {"type":"nat","hook":"prerouting","prio":-100,"policy":"accept"}'));
  const rules = first.filter((line) => line.startsWith('add rule ip nat-prerouting '));
  t.match(rules[0], /^add rule ip nat-prerouting 0000 \[\{.*\}\]$/);
  t.same(rules, [...rules].sort(), 'in order');
  const element = { type: 'elements', verb: 'add', count: 1, keyLength: 4, dataLength: 0 } as const;
  const none = { data: null, gotoChains: null, comments: null };
  const keys = Uint8Array.of(10, 0, 0, 1);
  t.same(
    printTransaction({
      family: 'ip',
      table: 'kube-proxy',
      operations: [
        { ...element, ...none, set: 'of-others', keys, keyEnds: null },
        { ...element, ...none, set: 'cluster-addresses', keys, keyEnds: Uint8Array.of(10, 0, 0, 9) },
      ],
    }),
    ['add element ip cluster-addresses 10.0.0.1 - 10.0.0.9', 'add element ip of-others 0x0a000001'],
  );
});

t.test('every transaction is printed before it is sent', async (t) => {
  const rig = new Rig();
  const reported: unknown[] = [];
  rig.dataplane = nftablesDataplane(rig.kernel, 'IPv4', new Generation(rig.kernel), (transaction) =>
    reported.push(transaction),
  );
  rig.commit([...NODE_ROWS, WEB, endpoints('10.1.0.1')]);
  const sent = await rig.during(() => rig.sync());
  t.same(reported, sent);
});
