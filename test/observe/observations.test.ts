// What is observed of the node, from facts: those that a test cannot make in a namespace as well. test/kernel/faults makes the others.
import t from 'tap';
import { parseAddress, parsePrefix } from '../../src/base/ip.js';
import { networkFacts } from '../../src/host/linux/network-facts.js';
import { observeNode, printObservation, type NodeFacts } from '../../src/observe/observations.js';

const prefix = (text: string) => parsePrefix(text)!;
const WELL: NodeFacts = {
  families: ['IPv4', 'IPv6'],
  network: {
    forwarding: { IPv4: true, IPv6: true },
    notForwarding: { IPv4: [], IPv6: [] },
    strictReversePath: [],
    routesLoopback: true,
    flowDrops: 0,
  },
  flows: { entries: 10, limit: 100 },
  nodeName: 'me',
  ready: true,
  podCIDRs: [prefix('10.244.1.0/24')],
  clusterCIDRs: [prefix('10.244.0.0/16')],
  nodePorts: [{ family: 'IPv4', prefixes: null }],
  localAddresses: [parseAddress('192.168.0.2')!],
  listeners: [],
  logs: [],
  sourceErrors: [],
};

t.test('a healthy node, and one without information, have no observations', (t) => {
  t.same(observeNode(WELL), []);
  t.same(observeNode({ ...WELL, network: null, flows: null, clusterCIDRs: null }), []);
  const unknown = { ...WELL.network!, forwarding: { IPv4: null, IPv6: null }, flowDrops: null };
  t.same(observeNode({ ...WELL, network: unknown }), [], 'what cannot be read is not guessed');
  t.end();
});

t.test('unused manifests are observed once by file, at most ten', (t) => {
  t.match(observeNode({ ...WELL, sourceErrors: ['a.yaml: is no YAML'] }), [
    {
      kind: 'source',
      severity: 'warning',
      text: /^a manifest is not used, .*: a\.yaml: is no YAML$/,
      remedy: /correct the file/,
    },
  ]);
  const many = observeNode({
    ...WELL,
    sourceErrors: Array.from({ length: 12 }, (_, file) => `${file}.yaml: is empty`),
  });
  t.equal(many.length, 11);
  t.match(many.at(-1), { text: /: 2 more files have such errors$/ });
  t.end();
});

t.test('a nearly full conntrack table is a warning, past drops are a note', (t) => {
  const full = { entries: 90, limit: 100 };
  t.match(observeNode({ ...WELL, flows: full, network: { ...WELL.network!, flowDrops: 7 } }), [
    { kind: 'conntrack', severity: 'warning', text: /90 of 100 entries/, remedy: /nf_conntrack_max/ },
    { kind: 'conntrack', severity: 'note', text: /^7 packets were dropped/ },
  ]);
  t.same(observeNode({ ...WELL, flows: { entries: 89, limit: 100 } }), []);
  t.end();
});

t.test('a missing Node of this name is observed once all sources are read', (t) => {
  t.match(observeNode({ ...WELL, podCIDRs: null }), [
    { kind: 'node', text: /^there is no Node "me"/, remedy: /--hostname-override/ },
  ]);
  t.same(observeNode({ ...WELL, podCIDRs: null, ready: false }), []);
  t.end();
});

t.test('cluster CIDRs of one family say nothing about the other', (t) => {
  t.same(observeNode({ ...WELL, podCIDRs: [prefix('fd00:244:1::/64')] }), []);
  t.match(
    observeNode({ ...WELL, podCIDRs: [prefix('10.244.0.0/15')] }),
    [{ kind: 'cluster-cidr' }],
    'a larger range is not within',
  );
  t.match(observeNode({ ...WELL, nodePorts: [{ family: 'IPv4', prefixes: [] }] }), [{ text: /answer on no address/ }]);
  t.end();
});

t.test('facts are read from /proc, and missing ones are unknown', (t) => {
  const files: Readonly<Record<string, string>> = {
    '/proc/sys/net/ipv4/conf/all/forwarding': '1\n',
    '/proc/sys/net/ipv4/conf/eth0/forwarding': '0\n',
    '/proc/sys/net/ipv4/conf/all/rp_filter': '2\n',
    '/proc/sys/net/ipv4/conf/eth0/rp_filter': '1\n',
    '/proc/sys/net/ipv4/conf/eth1/rp_filter': 'odd\n',
    '/proc/net/stat/nf_conntrack':
      'entries  insert_failed drop\n0000000a 00000000 00000010\n0000000a 00000000 00000001\n',
  };
  const read = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
  t.same(networkFacts(read, ['lo', 'eth0', 'eth1']), {
    forwarding: { IPv4: true, IPv6: null },
    notForwarding: { IPv4: ['eth0'], IPv6: [] },
    strictReversePath: [],
    routesLoopback: false,
    flowDrops: 17,
  });
  t.same(networkFacts((path) => (path.endsWith('eth0/rp_filter') ? '1' : read('none')), ['eth0']).strictReversePath, [
    'eth0',
  ]);
  t.same(printObservation({ kind: 'node', severity: 'note', text: 'a', remedy: 'b' }), ['note: a', '  remedy: b']);
  t.end();
});
