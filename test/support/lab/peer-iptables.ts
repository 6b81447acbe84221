import { createHash } from 'node:crypto';
import { endpoint } from './lab.js';
import type { FamilyView } from './packet-table.js';
import { PREFIXES, type ADDRESSES } from './topology.js';

/** Rules in the shape of kube-proxy's iptables mode (behaviour §5a), for takeovers. */

export interface PeerService {
  /** `default/web:p80`. */
  readonly name: string;
  readonly protocol: 'tcp' | 'udp';
  readonly number: number;
  readonly port: number;
  readonly nodePort?: number;
  /** Last part of a load-balancer address with source ranges. */
  readonly loadBalancer?: number;
  readonly affinitySeconds?: number;
  readonly pods: readonly (keyof typeof ADDRESSES)[];
}

export const BITS = '0x4000/0x4000';
export const COMMENT = '-m comment --comment';

/** IT-01: the first 16 characters of base32 of a SHA-256. */
function hash(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  let bits = '';
  for (const byte of digest) bits += byte.toString(2).padStart(8, '0');
  return Array.from({ length: 16 }, (_, at) => alphabet[parseInt(bits.slice(at * 5, at * 5 + 5), 2)] ?? '').join('');
}

/** Jumps as they are at the head of built-in chains, the last ensured first; a chain's own line order. */
const FILTER_JUMPS: readonly string[] = [
  `INPUT -m conntrack --ctstate NEW ${COMMENT} "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL`,
  `INPUT ${COMMENT} "kubernetes health check service ports" -j KUBE-NODEPORTS`,
  `INPUT -m conntrack --ctstate NEW ${COMMENT} "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES`,
  'INPUT -j KUBE-FIREWALL',
  `FORWARD -m conntrack --ctstate NEW ${COMMENT} "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL`,
  `FORWARD ${COMMENT} "kubernetes forwarding rules" -j KUBE-FORWARD`,
  `FORWARD -m conntrack --ctstate NEW ${COMMENT} "kubernetes service portals" -j KUBE-SERVICES`,
  `FORWARD -m conntrack --ctstate NEW ${COMMENT} "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES`,
  `OUTPUT -m conntrack --ctstate NEW ${COMMENT} "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL`,
  `OUTPUT -m conntrack --ctstate NEW ${COMMENT} "kubernetes service portals" -j KUBE-SERVICES`,
  'OUTPUT -j KUBE-FIREWALL',
];
export const NAT_JUMPS: readonly string[] = [
  `PREROUTING ${COMMENT} "kubernetes service portals" -j KUBE-SERVICES`,
  `OUTPUT ${COMMENT} "kubernetes service portals" -j KUBE-SERVICES`,
  `POSTROUTING ${COMMENT} "kubernetes postrouting rules" -j KUBE-POSTROUTING`,
];

/** What kubelet keeps, with or without a proxy. */
export const KUBELET = ['*mangle', ':KUBE-IPTABLES-HINT - [0:0]', ':KUBE-KUBELET-CANARY - [0:0]', 'COMMIT'];

/** Input of `iptables-restore --noflush` with all that kube-proxy's first sync in iptables mode leads to. */
export function iptablesRules(view: FamilyView, services: readonly PeerService[]): string {
  const filter: string[] = [
    `KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP`,
    `KUBE-FORWARD ${COMMENT} "kubernetes forwarding rules" -m mark --mark ${BITS} -j ACCEPT`,
    `KUBE-FORWARD ${COMMENT} "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
  ];
  const nat: string[] = masquerading();
  for (const service of services) addService(view, service, filter, nat);
  nat.push(
    `KUBE-SERVICES ${COMMENT} "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
  );
  const fixed = ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL'];
  return [
    ...KUBELET,
    ...table('mangle', ['KUBE-PROXY-CANARY'], [], []),
    ...table('filter', [...fixed, 'KUBE-PROXY-CANARY', 'KUBE-FIREWALL', 'KUBE-KUBELET-CANARY'], FILTER_JUMPS, filter),
    ...table('nat', ['KUBE-NODEPORTS', 'KUBE-PROXY-CANARY', 'KUBE-KUBELET-CANARY'], NAT_JUMPS, nat),
    '',
  ].join('\n');
}

export function masquerading(): string[] {
  return [
    'KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
    `KUBE-POSTROUTING -m mark ! --mark ${BITS} -j RETURN`,
    'KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0',
    `KUBE-POSTROUTING ${COMMENT} "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully`,
  ];
}

function addService(view: FamilyView, service: PeerService, filter: string[], nat: string[]): void {
  const { name, protocol, number, port, nodePort, loadBalancer, pods } = service;
  const id = hash(name + protocol);
  const match = (address: string): string => `-m ${protocol} -p ${protocol} -d ${address} --dport ${port}`;
  const clusterIP = match(view.clusterIP(number));
  if (pods.length === 0) {
    filter.push(`KUBE-SERVICES ${COMMENT} "${name} has no endpoints" ${clusterIP} -j REJECT`);
    return;
  }
  nat.push(`KUBE-SERVICES ${COMMENT} "${name} cluster IP" ${clusterIP} -j KUBE-SVC-${id}`);
  if (loadBalancer !== undefined) {
    const address = match(view.loadBalancerIP(loadBalancer));
    filter.push(`KUBE-PROXY-FIREWALL ${COMMENT} "${name} traffic not accepted by KUBE-FW-${id}" ${address} -j DROP`);
    nat.push(
      `KUBE-SERVICES ${COMMENT} "${name} loadbalancer IP" ${address} -j KUBE-FW-${id}`,
      `KUBE-FW-${id} ${COMMENT} "${name} loadbalancer IP" -s ${PREFIXES.admitted[view.family]} -j KUBE-EXT-${id}`,
      `KUBE-FW-${id} ${COMMENT} "other traffic to ${name} will be dropped by KUBE-PROXY-FIREWALL"`,
    );
  }
  if (nodePort !== undefined)
    nat.push(`KUBE-NODEPORTS ${COMMENT} ${name} -m ${protocol} -p ${protocol} --dport ${nodePort} -j KUBE-EXT-${id}`);
  nat.push(
    `KUBE-EXT-${id} ${COMMENT} "masquerade traffic for ${name} external destinations" -j KUBE-MARK-MASQ`,
    `KUBE-EXT-${id} -j KUBE-SVC-${id}`,
    `KUBE-SVC-${id} ${COMMENT} "${name} cluster IP" ${clusterIP} ! -s ${PREFIXES.pods[view.family]} -j KUBE-MARK-MASQ`,
    ...endpointRules(view, service, id),
  );
}

function endpointRules(view: FamilyView, service: PeerService, id: string): string[] {
  const { name, protocol, port, affinitySeconds, pods } = service;
  const endpoints = pods.map((pod) => {
    const to = endpoint(view.address(pod), port);
    return { address: view.address(pod), to, chain: `KUBE-SEP-${hash(name + protocol + to)}` };
  });
  const recent = (chain: string): string => (affinitySeconds === undefined ? '' : `-m recent --name ${chain} --set `);
  const remembered = endpoints.flatMap(({ to, chain }) =>
    affinitySeconds === undefined
      ? []
      : `KUBE-SVC-${id} ${COMMENT} "${name} -> ${to}" -m recent --name ${chain} --rcheck --seconds ${affinitySeconds} --reap -j ${chain}`,
  );
  const picks = endpoints.map(({ to, chain }, index) => {
    const rest = endpoints.length - index;
    const chance = rest === 1 ? '' : `-m statistic --mode random --probability ${(1 / rest).toFixed(10)} `;
    return `KUBE-SVC-${id} ${COMMENT} "${name} -> ${to}" ${chance}-j ${chain}`;
  });
  const destinations = endpoints.flatMap(({ address, to, chain }) => [
    `${chain} ${COMMENT} ${name} -s ${address} -j KUBE-MARK-MASQ`,
    `${chain} ${COMMENT} ${name} ${recent(chain)}-m ${protocol} -p ${protocol} -j DNAT --to-destination ${to}`,
  ]);
  return [...remembered, ...picks, ...destinations];
}

/** A table's section: its chains are those named and those that have rules. Jumps go to the head of their chains. */
export function table(
  name: string,
  chains: readonly string[],
  jumps: readonly string[],
  rules: readonly string[],
): readonly string[] {
  const declared = new Set([...chains, ...rules.map((rule) => rule.split(' ')[0] ?? '')]);
  return [
    `*${name}`,
    ...[...declared].map((chain) => `:${chain} - [0:0]`),
    ...rules.map((rule) => `-A ${rule}`),
    ...jumps.toReversed().map((jump) => `-I ${jump}`),
    'COMMIT',
  ];
}
