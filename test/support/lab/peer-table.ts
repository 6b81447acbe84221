import { endpoint } from './lab.js';
import type { Manifest } from './objects.js';
import { dualStack, type FamilyView } from './packet-table.js';

/** Endpoints of every Service in {@link PEER_OBJECTS}. */
export const PEER_PODS = ['pod-a', 'remote-a'] as const;
/** Counters of packets that the peer rejects on node ports of loopback addresses. */
export const PEER_COUNTERS = ['localhost-nodeport-rejected-udp', 'localhost-nodeport-rejected-sctp'] as const;
/** What the peer's table was made of. */
export const PEER_OBJECTS: readonly Manifest[] = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ name: 'p80', port: 80, nodePort: 30001 }],
    endpoints: PEER_PODS,
  }),
  ...dualStack('sticky', {
    number: 42,
    affinitySeconds: 10800,
    ports: [{ name: 'p80', port: 80 }],
    endpoints: PEER_PODS,
  }),
  ...dualStack('single', {
    number: 46,
    type: 'NodePort',
    ports: [{ name: 'p53', protocol: 'UDP', port: 53, nodePort: 30053 }],
    endpoints: ['pod-a'],
  }),
  ...dualStack('empty', { number: 43, ports: [{ name: 'p80', port: 80 }], endpoints: [] }),
];

/**
 * The table as kube-proxy 1.37 has it for {@link PEER_OBJECTS}, with the gate KubeProxyNFTablesLocalhostNodePorts: behaviour
 * §5b and §12. It has all that 1.36 has. The counters have kube-proxy's names; names of the map and of the chains that lead
 * to them are ours.
 */
function peerTable(view: FamilyView): string {
  const [ip, type, v6] = view.family === 'IPv4' ? ['ip', 'ipv4_addr', false] : ['ip6', 'ipv6_addr', true];
  const to = (name: (typeof PEER_PODS)[number]): string => `${view.address(name)} . 80`;
  const clusterIP = (number: number): string => view.clusterIP(number);
  const named = (name: (typeof PEER_PODS)[number]): string =>
    `endpoint-${name === 'pod-a' ? 'AAAA' : 'BBBB'}2345-default/sticky/tcp/p80__${view.address(name).replaceAll(':', '.')}/80`;
  const affinity = (name: (typeof PEER_PODS)[number]): string => named(name).replace('endpoint-', 'affinity-');
  const cidr = v6 ? 'fd00:244::/32' : '10.244.0.0/16';
  const ranges = v6 ? '2001:db8:203::/65' : '203.0.113.0/25';
  return `
  table ${ip} kube-proxy {
    comment "rules for kube-proxy"
    ${PEER_COUNTERS.map((name) => `counter ${name} { comment "rejected packets to node ports on loopback"; }`).join('\n')}
    set cluster-ips { type ${type}; comment "Active ClusterIPs"; elements = { ${[41, 42, 43, 46].map(clusterIP).join()} } }
    set nodeport-ips { type ${type}; comment "IPs that accept NodePort traffic"; elements = { ${view.address('node')} } }
    set hairpin-connections { type ${type} . ${type} . inet_proto . inet_service; elements = { ${view.address('pod-a')} . ${view.address('pod-a')} . tcp . 80 } }
    map no-endpoint-services { type ${type} . inet_proto . inet_service : verdict; elements = { ${clusterIP(43)} . tcp . 80 comment "default/empty:p80" : goto reject-chain } }
    map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }
    map firewall-ips { type ${type} . inet_proto . inet_service : verdict; elements = { ${view.loadBalancerIP(3)} . tcp . 80 comment "default/web:p80" : goto firewall-ULMVA6XW-default/web/tcp/p80 } }
    map service-ips { type ${type} . inet_proto . inet_service : verdict; elements = {
      ${clusterIP(41)} . tcp . 80 : goto service-ULMVA6XW-default/web/tcp/p80,
      ${clusterIP(42)} . tcp . 80 : goto service-42NFTM6N-default/sticky/tcp/p80,
      ${clusterIP(46)} . udp . 53 : goto service-7XKQ2PLD-default/single/udp/p53,
      ${view.loadBalancerIP(3)} . tcp . 80 : goto external-ULMVA6XW-default/web/tcp/p80 } }
    map service-nodeports { type inet_proto . inet_service : verdict; elements = {
      tcp . 30001 : goto external-ULMVA6XW-default/web/tcp/p80,
      udp . 30053 : goto external-7XKQ2PLD-default/single/udp/p53 } }
    map localhost-nodeports { type inet_proto . inet_service : verdict; elements = { udp . 30053 : goto localhost-nodeports-reject-udp } }
    ${PEER_PODS.map((name) => `set ${affinity(name)} { type ${type}; flags dynamic,timeout; timeout 10800s; }`).join('\n')}
    ${PEER_PODS.map(
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
      ${PEER_PODS.map((name) => `${ip} saddr @${affinity(name)} goto ${named(name)}`).join('\n')}
      numgen random mod 2 vmap { ${PEER_PODS.map((name, index) => `${index} : goto ${named(name)}`).join()} }
    }
    chain service-7XKQ2PLD-default/single/udp/p53 { meta l4proto udp dnat to ${endpoint(view.address('pod-a'), 53)}; }
    chain external-7XKQ2PLD-default/single/udp/p53 {
      meta mark set meta mark or 0x4000
      goto service-7XKQ2PLD-default/single/udp/p53
    }
    chain localhost-nodeports-reject-udp { counter name "localhost-nodeport-rejected-udp" reject; }
    chain localhost-nodeports-reject-sctp { counter name "localhost-nodeport-rejected-sctp" reject; }
    chain localhost-nodeports-check { ${ip} daddr ${v6 ? '::1' : '127.0.0.0/8'} meta l4proto . th dport vmap @localhost-nodeports; }
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
    chain filter-output { type filter hook output priority 0; ct state new jump localhost-nodeports-check; ct state new jump service-endpoints-check; ct state new jump cluster-ips-check; }
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
export function peerStart(view: FamilyView): string {
  const table = `${view.family === 'IPv4' ? 'ip' : 'ip6'} kube-proxy`;
  const anew = BASE_CHAINS.flatMap((chain) => [
    `add chain ${table} ${chain}`,
    `delete chain ${table} ${chain.split(' ')[0] ?? ''}`,
  ]);
  return [`add table ${table}`, ...anew, peerTable(view)].join('\n');
}
