// One proxy stops and the other starts, either way round, without a cleanup in between.
import t from 'tap';
import { endpoint, Lab, type TimedOutcome } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type FamilyView, type Row } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'remote-a'] as const;
const OBJECTS = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ name: 'p80', port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', {
    number: 42,
    affinitySeconds: 10800,
    ports: [{ name: 'p80', port: 80 }],
    endpoints: PODS,
  }),
  ...dualStack('empty', { number: 43, ports: [{ name: 'p80', port: 80 }], endpoints: [] }),
];

/** The table as kube-proxy 1.36 has it for {@link OBJECTS}: behaviour §5b. */
function peerTable(view: FamilyView): string {
  const [ip, type, v6] = view.family === 'IPv4' ? ['ip', 'ipv4_addr', false] : ['ip6', 'ipv6_addr', true];
  const to = (name: (typeof PODS)[number]): string => `${view.address(name)} . 80`;
  const clusterIP = (number: number): string => view.clusterIP(number);
  const named = (name: (typeof PODS)[number]): string =>
    `endpoint-${name === 'pod-a' ? 'AAAA' : 'BBBB'}2345-default/sticky/tcp/p80__${view.address(name).replaceAll(':', '.')}/80`;
  const affinity = (name: (typeof PODS)[number]): string => named(name).replace('endpoint-', 'affinity-');
  const cidr = v6 ? 'fd00:244::/32' : '10.244.0.0/16';
  const ranges = v6 ? '2001:db8:203::/65' : '203.0.113.0/25';
  return `
  table ${ip} kube-proxy {
    comment "rules for kube-proxy"
    set cluster-ips { type ${type}; comment "Active ClusterIPs"; elements = { ${[41, 42, 43].map(clusterIP).join()} } }
    set nodeport-ips { type ${type}; comment "IPs that accept NodePort traffic"; elements = { ${view.address('node')} } }
    set hairpin-connections { type ${type} . ${type} . inet_proto . inet_service; elements = { ${view.address('pod-a')} . ${view.address('pod-a')} . tcp . 80 } }
    map no-endpoint-services { type ${type} . inet_proto . inet_service : verdict; elements = { ${clusterIP(43)} . tcp . 80 comment "default/empty:p80" : goto reject-chain } }
    map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
    map firewall-ips { type ${type} . inet_proto . inet_service : verdict; elements = { ${view.loadBalancerIP(3)} . tcp . 80 comment "default/web:p80" : goto firewall-ULMVA6XW-default/web/tcp/p80 } }
    map service-ips { type ${type} . inet_proto . inet_service : verdict; elements = {
      ${clusterIP(41)} . tcp . 80 : goto service-ULMVA6XW-default/web/tcp/p80,
      ${clusterIP(42)} . tcp . 80 : goto service-42NFTM6N-default/sticky/tcp/p80,
      ${view.loadBalancerIP(3)} . tcp . 80 : goto external-ULMVA6XW-default/web/tcp/p80 } }
    map service-nodeports { type inet_proto . inet_service : verdict; elements = { tcp . 30001 : goto external-ULMVA6XW-default/web/tcp/p80 } }
    ${PODS.map((name) => `set ${affinity(name)} { type ${type}; flags dynamic,timeout; timeout 10800s; }`).join('\n')}
    ${PODS.map(
      (name) => `chain ${named(name)} {
        update @${affinity(name)} { ${ip} saddr }
        meta l4proto tcp dnat to ${endpoint(view.address(name), 80)}
      }`,
    ).join('\n')}
    chain reject-chain { reject; }
    chain service-ULMVA6XW-default/web/tcp/p80 {
      meta l4proto tcp dnat ${ip} to numgen random mod 2 map { 0 : ${to('pod-a')}, 1 : ${to('remote-a')} }
    }
    chain external-ULMVA6XW-default/web/tcp/p80 {
      meta mark set meta mark or 0x4000
      goto service-ULMVA6XW-default/web/tcp/p80
    }
    chain firewall-ULMVA6XW-default/web/tcp/p80 { ${ip} saddr != { ${ranges} } drop; }
    chain service-42NFTM6N-default/sticky/tcp/p80 {
      ${PODS.map((name) => `${ip} saddr @${affinity(name)} goto ${named(name)}`).join('\n')}
      numgen random mod 2 vmap { ${PODS.map((name, index) => `${index} : goto ${named(name)}`).join()} }
    }
    chain services {
      ${ip} daddr @cluster-ips ${ip} saddr != ${cidr} meta mark set meta mark or 0x4000
      ${ip} daddr . meta l4proto . th dport vmap @service-ips
      ${ip} daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
    }
    chain masquerading {
      meta mark and 0x4000 != 0 meta mark set meta mark xor 0x4000 masquerade fully-random
      ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
    }
    chain service-endpoints-check { ${ip} daddr . meta l4proto . th dport vmap @no-endpoint-services; }
    chain nodeport-endpoints-check { ${ip} daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports; }
    chain cluster-ips-check { ${ip} daddr @cluster-ips reject; }
    chain firewall-check { ${ip} daddr . meta l4proto . th dport vmap @firewall-ips; }
    chain filter-prerouting-pre-dnat { type filter hook prerouting priority -110; ct state new jump firewall-check; }
    chain filter-output-pre-dnat { type filter hook output priority -110; ct state new jump firewall-check; }
    chain filter-input { type filter hook input priority 0; ct state new jump nodeport-endpoints-check; ct state new jump service-endpoints-check; }
    chain filter-forward { type filter hook forward priority 0; ct state new jump service-endpoints-check; ct state new jump cluster-ips-check; }
    chain filter-output { type filter hook output priority 0; ct state new jump service-endpoints-check; ct state new jump cluster-ips-check; }
    chain nat-prerouting { type nat hook prerouting priority -100; jump services; }
    chain nat-output { type nat hook output priority -100; jump services; }
    chain nat-postrouting { type nat hook postrouting priority 100; jump masquerading; }
  }`;
}

const BASE_CHAINS = [
  'filter-prerouting-pre-dnat { type filter hook prerouting priority -110; }',
  'filter-output-pre-dnat { type filter hook output priority -110; }',
  'filter-input { type filter hook input priority 0; }',
  'filter-forward { type filter hook forward priority 0; }',
  'filter-output { type filter hook output priority 0; }',
  'nat-prerouting { type nat hook prerouting priority -100; }',
  'nat-output { type nat hook output priority -100; }',
  'nat-postrouting { type nat hook postrouting priority 100; }',
];

/** kube-proxy's first transaction (NF-41): its base chains are made anew, everything else of its names is added. */
function peerStart(view: FamilyView): string {
  const table = `${view.family === 'IPv4' ? 'ip' : 'ip6'} kube-proxy`;
  const anew = BASE_CHAINS.flatMap((chain) => [
    `add chain ${table} ${chain}`,
    `delete chain ${table} ${chain.split(' ')[0] ?? ''}`,
  ]);
  return [`add table ${table}`, ...anew, peerTable(view)].join('\n');
}

const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-a', to: endpoint(view.clusterIP(42), 81), expect: 'refused' },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'node', to: endpoint(view.clusterIP(41), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);

t.test('from kube-proxy to pointsman and back, under traffic', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const nft = (script: string): Promise<string> => lab.output('node', ['nft', '-f', '-'], script);
  for (const view of FAMILY_VIEWS) await nft(peerStart(view));
  await checkRows(t, lab, ROWS, 'kube-proxy alone');

  const targets = FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-b', to: endpoint(view.clusterIP(41), 80) },
    { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
    { from: 'client', to: view.nodePort(30001) },
    { from: 'node', to: endpoint(view.clusterIP(42), 80) },
  ]);
  const connections = await Promise.all(targets.map((target) => lab.open(target)));
  const watches = await Promise.all(targets.map((target) => lab.watch({ ...target, timeoutMs: 3000 }, 1, 1)));

  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await checkRows(t, lab, ROWS, 'after the takeover');
  await proxy.consistent();
  const taken = await names(lab);
  t.same(
    taken.filter((name) => name.includes('/') || PEER_NAMES.includes(name)),
    [],
    'nothing of its is left',
  );

  await proxy.stop('SIGTERM');
  for (const view of FAMILY_VIEWS) await nft(peerStart(view));
  await checkRows(t, lab, ROWS, 'kube-proxy started on our table');

  proxy.launch();
  await proxy.ready();
  await checkRows(t, lab, ROWS, 'and we on its');
  await proxy.consistent();
  t.same(await names(lab), taken, 'the same objects as after the first takeover');

  const outcomes: readonly TimedOutcome[] = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  t.ok(outcomes.length > 0);
  t.same(
    outcomes.filter((outcome) => 'error' in outcome),
    [],
    'no request is lost',
  );
  for (const connection of connections) t.hasProp(await connection.exchange(), 'name', 'no connection is lost');

  // On a clean node the table has just these objects too.
  await proxy.stop('SIGTERM');
  await proxy.run(null, ['--cleanup']);
  proxy.launch();
  await proxy.ready();
  t.same(await names(lab), taken, 'and as on a clean node');
});

t.test('a table of the same name that has nothing to do with either', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  for (const ip of ['ip', 'ip6']) {
    await lab.output(
      'node',
      ['nft', '-f', '-'],
      `table ${ip} kube-proxy {
        flags dormant
        set frontends { type inet_service; flags interval; elements = { 1-5 }; }
        map endpoints-0 { type mark : verdict; elements = { 7 : drop }; }
        set cluster-addresses { type ${ip === 'ip' ? 'ipv4_addr' : 'ipv6_addr'}; }
        chain dispatch { type filter hook prerouting priority -300; policy drop; tcp dport { 1, 2 } accept; }
        chain nat-prerouting { type filter hook input priority 5; }
        chain pick-2 { counter drop; }
        chain stranger { type filter hook forward priority 7; policy drop; }
      }`,
    );
  }
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await checkRows(t, lab, ROWS);
  await proxy.consistent();
  t.notMatch(await lab.ruleset(), /stranger|dormant|priority 5;|priority raw/);
});

const PEER_NAMES = [
  'services',
  'masquerading',
  'reject-chain',
  'service-endpoints-check',
  'nodeport-endpoints-check',
  'cluster-ips-check',
  'firewall-check',
  'cluster-ips',
  'nodeport-ips',
  'service-ips',
  'service-nodeports',
  'no-endpoint-services',
  'no-endpoint-nodeports',
  'firewall-ips',
  'hairpin-connections',
];

/** Chains, sets and maps of both tables. */
async function names(lab: Lab): Promise<readonly string[]> {
  const ruleset = await lab.ruleset();
  return [...ruleset.matchAll(/^\t(?:chain|set|map) (\S+) \{$/gm)].map((match) => match[1] ?? '').sort();
}
