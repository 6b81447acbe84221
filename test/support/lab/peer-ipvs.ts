import { endpoint } from './lab.js';
import type { FamilyView } from './packet-table.js';
import { BITS, COMMENT, KUBELET, masquerading, NAT_JUMPS, table, type PeerService } from './peer-iptables.js';
import { PREFIXES } from './topology.js';

/** What kube-proxy's ipvs mode leads to (behaviour §5c), for takeovers. */

/** Names of sets, with their types, of those that most kernels have. */
const SETS: Readonly<Record<string, string>> = {
  'LOOP-BACK': 'hash:ip,port,ip',
  'CLUSTER-IP': 'hash:ip,port',
  'EXTERNAL-IP': 'hash:ip,port',
  'EXTERNAL-IP-LOCAL': 'hash:ip,port',
  'LOAD-BALANCER': 'hash:ip,port',
  'LOAD-BALANCER-LOCAL': 'hash:ip,port',
  'LOAD-BALANCER-FW': 'hash:ip,port',
  'LOAD-BALANCER-SOURCE-IP': 'hash:ip,port,ip',
  'NODE-PORT-SCTP-HASH': 'hash:ip,port',
  'NODE-PORT-LOCAL-SCTP-HASH': 'hash:ip,port',
  'IPVS-IPS': 'hash:ip',
};
/** Those of kernels with ip_vs. */
const MORE_SETS: Readonly<Record<string, string>> = {
  'LOAD-BALANCER-SOURCE-CIDR': 'hash:ip,port,net',
  'NODE-PORT-TCP': 'bitmap:port',
  'NODE-PORT-LOCAL-TCP': 'bitmap:port',
  'NODE-PORT-UDP': 'bitmap:port',
  'NODE-PORT-LOCAL-UDP': 'bitmap:port',
  'HEALTH-CHECK-NODE-PORT': 'bitmap:port',
};

function setName({ family }: FamilyView, name: string): string {
  return ((family === 'IPv4' ? 'KUBE-' : 'KUBE-6-') + name).slice(0, 31);
}

function creation(view: FamilyView, name: string, type: string): string {
  const size =
    type === 'bitmap:port'
      ? 'range 0-65535'
      : `family ${view.family === 'IPv4' ? 'inet' : 'inet6'} hashsize 1024 maxelem 65536`;
  return `create ${setName(view, name)} ${type} ${size}`;
}

/** Input of `ipset restore`: sets whose members show that they are somebody's. */
export function ipvsSets(view: FamilyView, services: readonly PeerService[]): string {
  const created = Object.entries(SETS).map(([name, type]) => creation(view, name, type));
  const members = services.map(
    ({ number, protocol, port }) => `add ${setName(view, 'CLUSTER-IP')} ${view.clusterIP(number)},${protocol}:${port}`,
  );
  return [...created, ...members, ''].join('\n');
}

/** Input of `ipset restore`: all sets, with all that is in them. */
export function allIpvsSets(view: FamilyView, services: readonly PeerService[]): string {
  const created = Object.entries({ ...SETS, ...MORE_SETS }).map(([name, type]) => creation(view, name, type));
  const add = (name: string, element: string): string => `add ${setName(view, name)} ${element}`;
  const members = services.flatMap(({ number, protocol, port, nodePort, loadBalancer, pods }) => {
    const key = (address: string): string => `${address},${protocol}:${port}`;
    const balancer = loadBalancer === undefined ? null : view.loadBalancerIP(loadBalancer);
    const local = pods.filter((pod) => pod.startsWith('pod'));
    return [
      add('CLUSTER-IP', key(view.clusterIP(number))),
      add('IPVS-IPS', view.clusterIP(number)),
      ...(nodePort === undefined ? [] : [add(`NODE-PORT-${protocol.toUpperCase()}`, String(nodePort))]),
      ...(balancer === null
        ? []
        : [
            ...['LOAD-BALANCER', 'LOAD-BALANCER-FW'].map((name) => add(name, key(balancer))),
            add('LOAD-BALANCER-SOURCE-CIDR', `${key(balancer)},${PREFIXES.admitted[view.family]}`),
            add('IPVS-IPS', balancer),
          ]),
      ...local.map((pod) => add('LOOP-BACK', `${key(view.address(pod))},${view.address(pod)}`)),
    ];
  });
  return [...created, ...new Set(members), ''].join('\n');
}

/** Input of `ipvsadm -R`: node ports on every address of the node's. */
export function ipvsServers(view: FamilyView, services: readonly PeerService[]): string {
  const node = [view.address('node'), view.address('alternate')];
  const lines = services.flatMap(({ number, protocol, port, nodePort, loadBalancer, affinitySeconds, pods }) => {
    const frontends = [
      endpoint(view.clusterIP(number), port),
      ...(loadBalancer === undefined ? [] : [endpoint(view.loadBalancerIP(loadBalancer), port)]),
      ...(nodePort === undefined ? [] : node.map((address) => endpoint(address, nodePort))),
    ];
    const flag = protocol === 'tcp' ? '-t' : '-u';
    const persistence = affinitySeconds === undefined ? '' : ` -p ${affinitySeconds}`;
    return frontends.flatMap((frontend) => [
      `-A ${flag} ${frontend} -s rr${persistence}`,
      ...pods.map((pod) => `-a ${flag} ${frontend} -r ${endpoint(view.address(pod), port)} -m -w 1`),
    ]);
  });
  return [...lines, ''].join('\n');
}

/** Input of `ip -batch`: the link and what is on it. */
export function ipvsLink(views: readonly FamilyView[], services: readonly PeerService[]): string {
  const addresses = views.flatMap((view) =>
    services.flatMap(({ number, loadBalancer }) => [
      view.clusterIP(number),
      ...(loadBalancer === undefined ? [] : [view.loadBalancerIP(loadBalancer)]),
    ]),
  );
  return [
    'link add kube-ipvs0 type dummy',
    ...addresses.map((address) => `address add ${address}/${address.includes(':') ? '128 nodad' : 32} dev kube-ipvs0`),
    '',
  ].join('\n');
}

/** Input of `iptables-restore --noflush` with the chains. */
export function ipvsRules(view: FamilyView, admits = false): string {
  const set = (name: string, directions: string): string => `-m set --match-set ${setName(view, name)} ${directions}`;
  const mark = '-j KUBE-MARK-MASQ';
  const nat = [
    ...masquerading(),
    `KUBE-POSTROUTING ${COMMENT} "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose" ${set('LOOP-BACK', 'dst,dst,src')} -j MASQUERADE`,
    `KUBE-SERVICES -s ${view.family === 'IPv4' ? '127.0.0.0/8' : '::1/128'} -j RETURN`,
    `KUBE-SERVICES ${COMMENT} "Kubernetes service lb portal" ${set('LOAD-BALANCER', 'dst,dst')} -j KUBE-LOAD-BALANCER`,
    `KUBE-SERVICES ${COMMENT} "Kubernetes service cluster ip + port for masquerade purpose" ${set('CLUSTER-IP', 'dst,dst')} ! -s ${PREFIXES.pods[view.family]} ${mark}`,
    'KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODE-PORT',
    `KUBE-LOAD-BALANCER ${mark}`,
    ...(admits ? [`KUBE-NODE-PORT -p tcp ${set('NODE-PORT-TCP', 'dst')} ${mark}`] : []),
    ...['CLUSTER-IP', 'LOAD-BALANCER'].map((name) => `KUBE-SERVICES ${set(name, 'dst,dst')} -j ACCEPT`),
  ];
  const filter = [
    `KUBE-FORWARD ${COMMENT} "kubernetes forwarding rules" -m mark --mark ${BITS} -j ACCEPT`,
    `KUBE-FORWARD ${COMMENT} "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ...['LOAD-BALANCER', 'CLUSTER-IP', 'EXTERNAL-IP', 'EXTERNAL-IP-LOCAL'].map(
      (name) => `KUBE-IPVS-FILTER ${set(name, 'dst,dst')} -j RETURN`,
    ),
    `KUBE-IPVS-FILTER -m conntrack --ctstate NEW ${set('IPVS-IPS', 'dst')} -j REJECT`,
    `KUBE-PROXY-FIREWALL ${set('LOAD-BALANCER-FW', 'dst,dst')} -j KUBE-SOURCE-RANGES-FIREWALL`,
    ...(admits ? [`KUBE-SOURCE-RANGES-FIREWALL ${set('LOAD-BALANCER-SOURCE-CIDR', 'dst,dst,src')} -j RETURN`] : []),
    'KUBE-SOURCE-RANGES-FIREWALL -j DROP',
  ];
  const filterJumps = [
    `INPUT ${COMMENT} "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER`,
    `INPUT ${COMMENT} "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL`,
    `INPUT ${COMMENT} "kubernetes health check rules" -j KUBE-NODE-PORT`,
    `FORWARD ${COMMENT} "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL`,
    `FORWARD ${COMMENT} "kubernetes forwarding rules" -j KUBE-FORWARD`,
    `OUTPUT ${COMMENT} "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER`,
  ];
  return [
    ...KUBELET,
    ...table('filter', ['KUBE-NODE-PORT', 'KUBE-IPVS-OUT-FILTER'], filterJumps, filter),
    ...table('nat', ['KUBE-NODE-PORT'], NAT_JUMPS, nat),
    '',
  ].join('\n');
}
