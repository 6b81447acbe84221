import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { node, prefix, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Rules of Services as texts, how many there are, and which chains a change writes. */

const HTTP = [{ name: 'http', port: 8080 }] as const;

function web(fields: Parameters<typeof service>[1] = {}): Row {
  return service('web', {
    clusterIPs: ['10.96.0.10'],
    externalIPs: ['198.51.100.1'],
    loadBalancer: ['192.0.2.1'],
    ports: [{ name: 'http', port: 80, nodePort: 30080 }],
    ...fields,
  });
}

function webEndpoints(count: number, ports = HTTP): Row {
  return slice(
    'web',
    Array.from({ length: count }, (_, index) => ({
      address: `10.0.${1 + (index >> 8)}.${index & 0xff}`,
      node: index === 0 ? 'me' : 'other',
    })),
    { ports },
  );
}

const HASH = 'CDGGSHYLG3RE2FKL';
const CLUSTER = `KUBE-SVC-${HASH}`;
const LOCAL = `KUBE-SVL-${HASH}`;
const EXTERNAL = `KUBE-EXT-${HASH}`;

function dnat(...endpoints: readonly string[]): readonly string[] {
  return endpoints.map((endpoint, index) => {
    const left = endpoints.length - index;
    const draw = left === 1 ? '' : `-m statistic --mode random --probability ${(1 / left).toFixed(11)} `;
    return `-p tcp ${draw}-j DNAT --to-destination ${endpoint}`;
  });
}

t.test('a Service with every kind of frontend gets its chains and rules', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(), webEndpoints(2)]);
  const report = await rig.sync();
  t.equal(report.transactions, 1);
  t.equal(report.full, true);
  t.same(await rig.difference(), []);
  t.same(rules(rig, 'filter'), {
    'KUBE-EXTERNAL-NP': [],
    'KUBE-EXTERNAL-SERVICES': [
      '-d 127.0.0.0/8 -m addrtype ! --src-type LOCAL -j RETURN',
      '-m comment --comment "kubernetes service nodeports without endpoints" -m addrtype --dst-type LOCAL -j KUBE-EXTERNAL-NP',
    ],
    'KUBE-FIREWALL': [
      '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
    ],
    'KUBE-FORWARD': [
      '-m conntrack --ctstate INVALID -j DROP',
      '-m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT',
      '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ],
    'KUBE-NODEPORTS': [],
    'KUBE-PROXY-CANARY': [],
    'KUBE-PROXY-FIREWALL': [],
    'KUBE-SERVICES': [],
  });
  t.same(rules(rig, 'nat'), {
    [EXTERNAL]: ['-j KUBE-MARK-MASQ', `-j ${CLUSTER}`],
    'KUBE-MARK-MASQ': ['-j MARK --set-xmark 0x4000/0x4000'],
    'KUBE-NODEPORTS': [`-p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j ${EXTERNAL}`],
    'KUBE-POSTROUTING': [
      '-m mark ! --mark 0x4000/0x4000 -m conntrack --ctstate DNAT -j KUBE-SVC-HAIRPIN',
      '-m mark ! --mark 0x4000/0x4000 -j RETURN',
      '-j MARK --set-xmark 0x4000/0x0',
      '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ],
    'KUBE-PROXY-CANARY': [],
    'KUBE-SERVICES': [
      `-d 10.96.0.10/32 -p tcp -m comment --comment "default/web:http cluster IP" -m tcp --dport 80 -j ${CLUSTER}`,
      `-d 192.0.2.1/32 -p tcp -m comment --comment "default/web:http loadbalancer IP" -m tcp --dport 80 -j ${EXTERNAL}`,
      `-d 198.51.100.1/32 -p tcp -m comment --comment "default/web:http external IP" -m tcp --dport 80 -j ${EXTERNAL}`,
      '-d 127.0.0.0/8 -m addrtype ! --src-type LOCAL -j RETURN',
      '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
    ],
    [CLUSTER]: [
      '! -s 10.0.0.0/8 -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ',
      ...dnat('10.0.1.0:8080', '10.0.1.1:8080'),
    ],
    'KUBE-SVC-HAIRPIN': ['-s 10.0.1.0/32 -d 10.0.1.0/32 -j MASQUERADE --random-fully'],
  });
  t.same(rules(rig, 'mangle'), { 'KUBE-PROXY-CANARY': [] });
});

t.test('traffic policies Local send pods and the node to the cluster chain', async (t) => {
  const rig = new Rig();
  const policies = { externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' } as const;
  rig.commit([...NODE_ROWS, web(policies), webEndpoints(2)]);
  await rig.sync();
  t.same(rig.kernel.rules('nat', EXTERNAL), [
    `-s 10.0.0.0/8 -j ${CLUSTER}`,
    '-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
    `-m addrtype --src-type LOCAL -j ${CLUSTER}`,
    `-j ${LOCAL}`,
  ]);
  t.same(rig.kernel.rules('nat', CLUSTER), dnat('10.0.1.0:8080', '10.0.1.1:8080'));
  t.same(rig.kernel.rules('nat', LOCAL), [
    '! -s 10.0.0.0/8 -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ',
    ...dnat('10.0.1.0:8080'),
  ]);
  t.match(rig.kernel.rules('nat', 'KUBE-SERVICES')?.[0], /^-d 10\.96\.0\.10\/32 .* -j KUBE-SVL-/);
  t.same(await rig.difference(), []);
});

t.test('without a local endpoint, pods and the node use all endpoints, and others are dropped', async (t) => {
  const rig = new Rig();
  const remote = slice('web', [{ address: '10.0.9.1', node: 'other' }], { ports: HTTP });
  rig.commit([...NODE_ROWS, web({ externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' }), remote]);
  await rig.sync();
  t.same(rig.kernel.rules('filter', 'KUBE-SERVICES'), [
    '-d 10.96.0.10/32 -p tcp -m comment --comment "default/web:http cluster IP has no local endpoints" -m tcp --dport 80 -j DROP',
  ]);
  t.equal(rig.kernel.rules('filter', 'KUBE-EXTERNAL-SERVICES')?.filter((rule) => rule.endsWith('-j DROP')).length, 2);
  t.same(rig.kernel.rules('filter', 'KUBE-EXTERNAL-NP'), [
    '-p tcp -m comment --comment "default/web:http has no local endpoints" -m tcp --dport 30080 -j DROP',
  ]);
  t.equal(rig.kernel.rules('nat', EXTERNAL)?.length, 3);
  t.equal(rig.kernel.rules('nat', LOCAL), undefined);
  t.same(await rig.difference(), []);
});

t.test('without endpoints TCP is reset and UDP gets an ICMP error', async (t) => {
  const rig = new Rig();
  const dns = service('dns', { clusterIPs: ['10.96.0.53'], ports: [{ port: 53, protocol: 'UDP' }] });
  rig.commit([...NODE_ROWS, web(), dns]);
  await rig.sync();
  t.same(rig.kernel.rules('filter', 'KUBE-SERVICES'), [
    '-d 10.96.0.10/32 -p tcp -m comment --comment "default/web:http cluster IP has no endpoints" -m tcp --dport 80 -j REJECT --reject-with tcp-reset',
    '-d 10.96.0.53/32 -p udp -m comment --comment "default/dns cluster IP has no endpoints" -m udp --dport 53 -j REJECT --reject-with icmp-port-unreachable',
  ]);
  t.notOk(rig.kernel.chains('nat').some((name) => name.startsWith('KUBE-EXT-')));
  t.same(await rig.difference(), []);
});

t.test('source ranges become filter rules', async (t) => {
  const rig = new Rig();
  const ranges = { sourceRanges: ['203.0.113.0/25', '198.18.0.0/15'] };
  rig.commit([...NODE_ROWS, web(ranges), webEndpoints(1)]);
  await rig.sync();
  t.same(rig.kernel.rules('nat', `KUBE-FW-${HASH}`), [
    `-s 198.18.0.0/15 -j ${EXTERNAL}`,
    `-s 203.0.113.0/25 -j ${EXTERNAL}`,
  ]);
  const refused = `-d 192.0.2.1/32 -p tcp -m comment --comment "default/web:http traffic not accepted by KUBE-FW-${HASH}" -m tcp --dport 80 -j DROP`;
  t.same(rig.kernel.rules('filter', 'KUBE-PROXY-FIREWALL'), [refused]);
  t.same(await rig.difference(), []);
  rig.commit([webEndpoints(0)]);
  await rig.sync();
  const rejected =
    '-d 192.0.2.1/32 -p tcp -m comment --comment "default/web:http loadbalancer IP has no endpoints" -m tcp --dport 80 -j REJECT --reject-with tcp-reset';
  t.same(
    rig.kernel.rules('filter', 'KUBE-PROXY-FIREWALL'),
    [`-s 198.18.0.0/15 ${rejected}`, `-s 203.0.113.0/25 ${rejected}`, refused],
    'who is not admitted does not learn that there is no endpoint',
  );
  t.equal(rig.kernel.rules('nat', `KUBE-FW-${HASH}`), undefined);
  t.same(await rig.difference(), []);
});

t.test('affinity remembers clients per endpoint, in the lists kube-proxy keeps', async (t) => {
  const rig = new Rig();
  const ports = [{ name: 'p80', port: 80 }];
  rig.commit([
    ...NODE_ROWS,
    service('svc4', { namespace: 'ns4', clusterIPs: ['172.30.0.44'], ports, affinitySeconds: 10800 }),
    slice('svc4', [{ address: '10.180.0.4' }, { address: '10.180.0.5' }], { namespace: 'ns4', ports }),
  ]);
  await rig.sync();
  const rules = rig.kernel.rules('nat', 'KUBE-SVC-4SW47YFZTEDKD3PK') ?? [];
  const list = (index: number): string => / --name (\S+)/.exec(rules[index] ?? '')?.[1] ?? '';
  t.equal(rules.length, 5, 'masquerade, two that remember, two that pick');
  t.same([list(1), list(2)], ['KUBE-SEP-UKSFD7AGPMPPLUHC', 'KUBE-SEP-C6EBXVWJJZMIWKLZ']);
  t.match(rules[1], /--update --seconds 10800 --reap .* -j DNAT --to-destination 10\.180\.0\.4:80$/);
  t.equal(list(3), list(1));
  t.equal(list(4), list(2));
  t.same(await rig.difference(), []);
});

t.test('jumps to node port chains follow the node port addresses', async (t) => {
  const jumps = async (
    settings: ConstructorParameters<typeof Rig>[2],
    servesLocalhost: boolean,
    rows: readonly Row[] = NODE_ROWS,
  ): Promise<readonly string[]> => {
    const traits = {
      guardsClusterAddresses: false,
      guardsServiceAddresses: false,
      prefersLocal: false,
      retriesAttempts: 'without-affinity' as const,
      servesLocalhost,
      listensOnLocalhost: false,
      balancesOnly: false,
    };
    const rig = new Rig(undefined, 'IPv4', { ...settings, traits });
    rig.commit(rows);
    await rig.sync();
    t.equal(
      rig.kernel.rules('filter', 'KUBE-FIREWALL') !== undefined,
      servesLocalhost && settings?.nodePortAddresses?.includes('primary') !== true,
    );
    return (rig.kernel.rules('nat', 'KUBE-SERVICES') ?? []).map((rule) =>
      rule.replace(/-m comment --comment "[^"]*" /, ''),
    );
  };
  const jump = '-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS';
  const guard = '-d 127.0.0.0/8 -m addrtype ! --src-type LOCAL -j RETURN';
  t.same(await jumps({}, true), [guard, jump]);
  t.same(await jumps({ nodePortAddresses: [prefix('127.0.0.0/8'), prefix('10.0.0.0/8')] }, true), [
    guard,
    `-d 10.0.0.0/8 ${jump}`,
    `-d 127.0.0.0/8 ${jump}`,
  ]);
  t.same(await jumps({}, false), [`! -d 127.0.0.0/8 ${jump}`]);
  t.same(await jumps({ nodePortAddresses: ['primary'] }, true), [`-d 192.168.0.2/32 ${jump}`]);
  const withoutIPv4 = [node('me', ['2001:db8::1'])];
  t.same(await jumps({ nodePortAddresses: ['primary'] }, true, withoutIPv4), [`! -d 127.0.0.0/8 ${jump}`]);
});

t.test('the local detector by interface matches the interface', async (t) => {
  const rig = new Rig(undefined, 'IPv4', { localDetection: { type: 'InterfaceNamePrefix', prefix: 'veth' } });
  rig.commit([...NODE_ROWS, web({ externalTrafficPolicy: 'Local' }), webEndpoints(1)]);
  await rig.sync();
  t.equal(rig.kernel.rules('nat', EXTERNAL)?.[0], `-i veth+ -j ${CLUSTER}`);
  t.ok(
    rig.kernel.rules('nat', CLUSTER)?.some((rule) => rule.startsWith('-d 10.96.0.10/32 ! -i veth+ -p tcp')) ?? false,
  );
  rig.configure({ masqueradeAll: true, masqueradeBit: 3 });
  await rig.sync();
  t.same(rig.kernel.rules('nat', 'KUBE-MARK-MASQ'), ['-j MARK --set-xmark 0x8/0x8']);
  t.ok(rig.kernel.rules('nat', CLUSTER)?.[0]?.startsWith('-d 10.96.0.10/32 -p tcp'));
  t.same(await rig.difference(), []);
});

t.test('health check node ports are accepted, whatever else the host filters', async (t) => {
  const rig = new Rig();
  const checked = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32000 } as const;
  rig.commit([...NODE_ROWS, web(checked), webEndpoints(1)]);
  await rig.sync();
  t.same(rig.kernel.rules('filter', 'KUBE-NODEPORTS'), [
    '-p tcp -m comment --comment "default/web health check node port" -m tcp --dport 32000 -j ACCEPT',
  ]);
  t.same(await rig.difference(), []);
  rig.commit([web({ ...checked, healthCheckNodePort: 32001 })]);
  t.same(await rig.during(() => rig.sync()), ['chain filter KUBE-NODEPORTS']);
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'web' }]);
  await rig.sync();
  t.same(rig.kernel.rules('filter', 'KUBE-NODEPORTS'), []);
});

t.test('IPv6 rules are written to ip6tables', async (t) => {
  const rig = new Rig(undefined, 'IPv6');
  const row = service('web', { clusterIPs: ['fd00:96::10'], ports: [{ port: 80, nodePort: 30080 }] });
  rig.commit([...NODE_ROWS, row, slice('web', [{ address: 'fd00:10::1', node: 'me' }])]);
  await rig.sync();
  const services = rig.kernel.rules('nat', 'KUBE-SERVICES', 'IPv6') ?? [];
  t.match(services[0], /^-d fd00:96::10\/128 -p tcp /);
  t.match(services[1], /^! -d ::1\/128 -m comment /);
  t.equal(rig.kernel.rules('filter', 'KUBE-FIREWALL', 'IPv6'), undefined);
  t.same(await rig.difference(), []);
});

t.test("built-in chains jump to pointsman's chains", async (t) => {
  const rig = new Rig();
  const other = '-m comment --comment "somebody else" -j ACCEPT';
  rig.kernel.tamper('filter', (chains) => chains.get('INPUT')?.push(other));
  rig.commit([node('me', ['192.168.0.2'])]);
  await rig.sync();
  const targets = (table: 'filter' | 'nat', chain: string): readonly string[] =>
    (rig.kernel.rules(table, chain) ?? []).map((rule) => rule.split(' ').at(-1) ?? '');
  t.same(targets('filter', 'INPUT'), [
    'KUBE-FIREWALL',
    'KUBE-PROXY-FIREWALL',
    'KUBE-NODEPORTS',
    'KUBE-EXTERNAL-SERVICES',
    'ACCEPT',
  ]);
  t.same(targets('filter', 'FORWARD'), [
    'KUBE-PROXY-FIREWALL',
    'KUBE-FORWARD',
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
  ]);
  t.same(targets('filter', 'OUTPUT'), [
    'KUBE-FIREWALL',
    'KUBE-PROXY-FIREWALL',
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
  ]);
  t.same(
    [targets('nat', 'PREROUTING'), targets('nat', 'OUTPUT'), targets('nat', 'POSTROUTING')],
    [['KUBE-SERVICES'], ['KUBE-SERVICES'], ['KUBE-POSTROUTING']],
  );
});

/** Rules of all chains of a table that are not built in. */
function rules(rig: Rig, table: 'filter' | 'nat' | 'mangle'): Record<string, readonly string[]> {
  return Object.fromEntries([...rig.kernel.chains(table)].map((name) => [name, rig.kernel.rules(table, name) ?? []]));
}
