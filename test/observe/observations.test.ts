// What is observed of the node, from facts: those that a test cannot make in a namespace as well. test/kernel/faults makes the others.
import t from 'tap';
import { parseAddress, parsePrefix } from '../../src/base/ip.js';
import { networkFacts, routeInterface } from '../../src/host/linux/network-facts.js';
import type { Bridge } from '../../src/host/host.js';
import { observeBridges } from '../../src/observe/bridges.js';
import { observeNode, printObservation, type NodeFacts } from '../../src/observe/observations.js';

const prefix = (text: string) => parsePrefix(text)!;
const WELL: NodeFacts = {
  families: ['IPv4', 'IPv6'],
  network: {
    forwarding: { IPv4: true, IPv6: true },
    notForwarding: { IPv4: [], IPv6: [] },
    strictReversePath: [],
    routesLoopback: true,
    bridges: [],
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
  crowding: [],
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
    bridges: [],
    flowDrops: 17,
  });
  t.same(networkFacts((path) => (path.endsWith('eth0/rp_filter') ? '1' : read('none')), ['eth0']).strictReversePath, [
    'eth0',
  ]);
  t.same(printObservation({ kind: 'node', severity: 'note', text: 'a', remedy: 'b' }), ['note: a', '  remedy: b']);
  t.end();
});

t.test('a bridge that carries pods past netfilter is named, with the family and the remedy', (t) => {
  const bridge = (IPv4: boolean | null, IPv6: boolean | null): Bridge => ({
    name: 'cni0',
    prefixes: ['10.244.1.0/24', 'fd00:244:1::/64'].map(prefix),
    filters: { IPv4, IPv6 },
  });
  const texts = (bridges: readonly Bridge[], pods: string): readonly string[] =>
    observeBridges(bridges, ['IPv4', 'IPv6'], [prefix(pods)]).flatMap(printObservation);
  t.same(texts([bridge(true, true)], '10.244.1.0/24'), []);
  t.same(texts([bridge(false, false)], '10.99.1.0/24'), [], 'it carries no pods');
  t.match(texts([bridge(false, false)], '10.244.0.0/16'), [
    /^warning: net\.bridge\.bridge-nf-call-iptables is 0, and bridge cni0 carries pods/,
    /remedy: sysctl -w net\.bridge\.bridge-nf-call-iptables=1/,
  ]);
  t.match(texts([bridge(true, null)], 'fd00:244:1::/64'), [
    /net\.bridge\.bridge-nf-call-ip6tables is missing \(no module br_netfilter\)/,
    /remedy: modprobe br_netfilter, and sysctl -w net\.bridge\.bridge-nf-call-ip6tables=1/,
  ]);
  t.end();
});

t.test('bridges have ports, and their own switch beside that of the machine', (t) => {
  const files: Readonly<Record<string, string>> = {
    '/proc/sys/net/bridge/bridge-nf-call-iptables': '0',
    '/proc/sys/net/bridge/bridge-nf-call-ip6tables': '0',
    '/sys/class/net/cni0/bridge/nf_call_ip6tables': '1',
  };
  const read = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
  const list = (path: string): readonly string[] => {
    if (path === '/sys/class/net/cni0/brif') return ['veth1'];
    if (path === '/sys/class/net/empty/brif') return [];
    throw new Error('ENOENT');
  };
  t.match(networkFacts(read, ['eth0', 'empty', 'cni0'], list).bridges, [
    { name: 'cni0', filters: { IPv4: false, IPv6: true } },
  ]);
  t.match(networkFacts(() => read('none'), ['cni0'], list).bridges, [{ filters: { IPv4: null, IPv6: null } }]);
  t.end();
});

t.test('the route to an address is the one of the longest prefix, then of the smallest metric', (t) => {
  const row = (name: string, to: string, mask: string, metric: number, flags = '0001'): string =>
    [name, to, '00000000', flags, 0, 0, metric, mask, 0, 0, 0].join('\t');
  const table = [
    'Iface\tDestination\tGateway',
    row('eth0', '00000000', '00000000', 100),
    row('eth1', '0000F40A', '0000FFFF', 0),
    row('veth2', '0A01F40A', 'FFFFFFFF', 5),
    row('veth1', '0A01F40A', 'FFFFFFFF', 1),
    row('gone', '0B01F40A', 'FFFFFFFF', 1, '0000'),
    row('*', '0C01F40A', 'FFFFFFFF', 1, '0201'),
  ].join('\n');
  const via = (address: string): string | null => routeInterface(parseAddress(address)!, () => table);
  t.same(['8.8.8.8', '10.244.9.9', '10.244.1.10', '10.244.1.11', '10.244.1.12'].map(via), [
    'eth0',
    'eth1',
    'veth1',
    'eth1',
    null,
  ]);
  t.equal(
    routeInterface(parseAddress('10.0.0.1')!, () => 'Iface'),
    null,
  );
  t.end();
});
