import type { Family } from '../../base/ip.js';
import type { FrontendPlan, NodePlan } from '../../plan/types.js';
import {
  FORWARD_HOOKS,
  hooksTo,
  NAT_HOOKS,
  NEW_CONNECTIONS,
  PROXY_FIREWALL_HOOKS,
  type Hook,
} from '../xtables/hooks.js';
import { fixedChain, MASQUERADE, masqueradeChains, unmarkedMatch } from '../xtables/masquerade.js';
import { LOOPBACK, nodePortRules } from '../xtables/node-ports.js';
import { commentMatch, prefixText, protocolWord, sourceMatch, type Chain } from '../xtables/rules.js';
import { CHAIN, counterName, setName, type CounterRole, type SetRole } from './names.js';

/**
 * The rules around virtual services: they masquerade packets, and keep other packets from the virtual services. Sets show
 * which frontends there are, so rules change only with the node and with source ranges.
 */

/** The rules of built-in chains that lead to ours, in kube-proxy's spelling (behaviour IV-21). */
export const HOOKS: readonly Hook[] = [
  ...FORWARD_HOOKS,
  ...hooksTo(CHAIN.nodePort, 'filter', ['INPUT'], '', 'kubernetes health check rules'),
  ...PROXY_FIREWALL_HOOKS.ipvs,
  ...hooksTo(CHAIN.guard, 'filter', ['INPUT'], '', 'kubernetes ipvs access filter'),
  ...hooksTo(CHAIN.outGuard, 'filter', ['OUTPUT'], '', 'kubernetes ipvs access filter'),
  ...NAT_HOOKS,
];

/**
 * @param restricted load balancers with source ranges.
 * @param counts whether packets that are refused or dropped are counted by frontend.
 */
export function chains(node: NodePlan, restricted: Iterable<FrontendPlan>, counts: boolean): readonly Chain[] {
  const sets = new Sets(node.family);
  return [
    ...masqueradeChains(node, {
      forward: unallocated(node, sets),
      // Only what came by ip_vs: an address may talk to itself without.
      postrouting: [`${unmarkedMatch(node)} -m ipvs --ipvs ${sets.match('hairpin', 'dst,src')} -j ${MASQUERADE}`],
      marked: [],
    }),
    fixedChain('nat', CHAIN.services, [
      `-s ${LOOPBACK[node.family]} -j RETURN`,
      ...(counts ? [`${refusedByIpvs(sets)} -j ${CHAIN.noEndpoints}`] : []),
      `${sets.frontend('loadBalancer')} -j ${CHAIN.markMasquerade}`,
      `${sets.frontend('external')} -j ${CHAIN.markMasquerade}`,
      `${sets.frontend('loadBalancerLocal')} -j ${CHAIN.loadBalancer}`,
      `${sets.frontend('externalLocal')} -j ${CHAIN.loadBalancer}`,
      ...clusterMasquerade(node, sets),
      ...untranslated(sets),
      ...nodePortRules(node, CHAIN.nodePort, NODE_PORT_COMMENT),
    ]),
    fixedChain('nat', CHAIN.loadBalancer, sentByNode(node)),
    fixedChain('nat', CHAIN.nodePort, nodePortMasquerade(sets)),
    fixedChain('filter', CHAIN.nodePort, [
      `-p tcp ${commentMatch('health check node ports')} ${sets.match('healthChecks', 'dst')} -j ACCEPT`,
    ]),
    fixedChain('filter', CHAIN.proxyFirewall, [
      `${NEW_CONNECTIONS} ${sets.frontend('restricted')} -j ${CHAIN.sourceRanges}`,
    ]),
    fixedChain('filter', CHAIN.sourceRanges, [
      `${sets.match('admittedPrefixes', 'dst,dst,src')} -j RETURN`,
      `${sets.match('admittedAddresses', 'dst,dst,src')} -j RETURN`,
      ...(counts ? sets.counting('sourceRanges') : []),
      '-j DROP',
    ]),
    fixedChain('filter', CHAIN.guard, guard(node, sets, counts)),
    ...(counts ? countingChains(sets) : []),
    fixedChain('filter', CHAIN.outGuard, [...unallocated(node, sets), ...notAdmitted(restricted)]),
  ];
}

const NODE_PORT_COMMENT = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';

/** Matches of one family's sets, as iptables-save spells them. */
class Sets {
  constructor(readonly family: Family) {}

  match(role: SetRole, direction: string): string {
    return `-m set --match-set ${setName(this.family, role)} ${direction}`;
  }

  /** Packets to the frontends of a set. */
  frontend(role: SetRole): string {
    return this.match(role, 'dst,dst');
  }

  others(role: SetRole, direction: string): string {
    return `-m set ! --match-set ${setName(this.family, role)} ${direction}`;
  }

  /**
   * Counts a packet for its frontend, and lets it go on. An element that is there counts it. Otherwise one is added and begins
   * with it, unless the set is full.
   */
  counting(role: CounterRole): readonly string[] {
    const name = counterName(this.family, role);
    const isNew = `-m set ! --match-set ${name} dst,dst ! --update-counters`;
    return [`-m set --match-set ${name} dst,dst`, `${isNew} -j SET --add-set ${name} dst,dst`];
  }
}

/**
 * Others' rules may translate packets to any local address, as those of pods' host ports do. They would take the packet from
 * ip_vs, which needs it untranslated. So no rule after these is met (behaviour IV-22).
 */
function untranslated(sets: Sets): readonly string[] {
  // An external address may be one of the node's own, which is not on the link.
  const external: readonly SetRole[] = ['loadBalancer', 'external', 'loadBalancerLocal', 'externalLocal'];
  return [sets.match('addresses', 'dst'), ...external.map((role) => sets.frontend(role))].map(
    (match) => `${match} -j ACCEPT`,
  );
}

/** Source NAT of what reaches a cluster IP from elsewhere than a pod. */
function clusterMasquerade({ masqueradeAll, localDetector }: NodePlan, sets: Sets): readonly string[] {
  const mark = `-j ${CHAIN.markMasquerade}`;
  if (masqueradeAll) return [`${sets.frontend('cluster')} ${mark}`];
  if (localDetector !== null) {
    const { before, after } = sourceMatch(localDetector, false);
    return [`${before}${after}${sets.frontend('cluster')} ${mark}`];
  }
  // The node sends to an address of its own from that address. No endpoint elsewhere could answer it.
  return [`${sets.match('cluster', 'src,dst')} ${mark}`];
}

/** With external policy Local only what the node itself sends is masqueraded. */
function sentByNode(node: NodePlan): readonly string[] {
  return [...podsReturn(node), `-m addrtype --src-type LOCAL -j ${CHAIN.markMasquerade}`];
}

function podsReturn({ localDetector }: NodePlan): readonly string[] {
  if (localDetector === null) return [];
  const { before, after } = sourceMatch(localDetector, true);
  return [`${before}${after}-j RETURN`];
}

function nodePortMasquerade(sets: Sets): readonly string[] {
  const rules = (word: string, role: SetRole, direction: string, target: string): string =>
    `-p ${word} ${sets.match(role, direction)} -g ${target}`;
  return [
    rules('tcp', 'tcpNodePorts', 'dst', CHAIN.markMasquerade),
    rules('tcp', 'tcpNodePortsLocal', 'dst', CHAIN.loadBalancer),
    rules('udp', 'udpNodePorts', 'dst', CHAIN.markMasquerade),
    rules('udp', 'udpNodePortsLocal', 'dst', CHAIN.loadBalancer),
    rules('sctp', 'sctpNodePorts', 'dst,dst', CHAIN.markMasquerade),
    rules('sctp', 'sctpNodePortsLocal', 'dst,dst', CHAIN.loadBalancer),
  ];
}

/** Addresses of Service CIDRs that no Service has: those that some has are on the link, and their packets come in. */
function unallocated({ serviceCIDRs }: NodePlan, sets: Sets): readonly string[] {
  return serviceCIDRs.map((cidr) => `-d ${cidr} ${sets.others('addresses', 'dst')} ${NEW_CONNECTIONS} -j DROP`);
}

/**
 * The verdict on new connections that come in: refused or dropped, or on to the virtual service. The node itself must not be
 * reachable by a Service's address, except for its answers to an echo request (behaviour VD-18).
 */
function guard(node: NodePlan, sets: Sets, counts: boolean): readonly string[] {
  const serving: readonly SetRole[] = ['cluster', 'loadBalancer', 'loadBalancerLocal', 'external', 'externalLocal'];
  return [
    '-m conntrack ! --ctstate NEW -j RETURN',
    `${sets.frontend('dropping')} -j ${counts ? CHAIN.noLocal : 'DROP'}`,
    othersDropped(node, sets, counts),
    ...(counts
      ? [`${sets.frontend('refusing')} -j ${CHAIN.noEndpoints}`]
      : rejections(sets, sets.frontend('refusing'))),
    ...serving.map((role) => `${sets.frontend(role)} -j RETURN`),
    `${sets.match('healthChecks', 'dst')} -j RETURN`,
    `-p ${node.family === 'IPv4' ? 'icmp' : 'ipv6-icmp'} -j RETURN`,
    ...rejections(sets, sets.match('addresses', 'dst')),
  ];
}

/** The node's own packets to a virtual service without a destination, which no rule behind ip_vs will see. */
function refusedByIpvs(sets: Sets): string {
  return `${sets.frontend('refusing')} ${sets.others('restricted', 'dst,dst')} -m addrtype --src-type LOCAL`;
}

/** Only what is refused or dropped comes here, so nothing else pays for the count. */
function countingChains(sets: Sets): readonly Chain[] {
  return [
    fixedChain('nat', CHAIN.noEndpoints, sets.counting('noEndpoints')),
    fixedChain('filter', CHAIN.noLocal, [...sets.counting('noLocal'), '-j DROP']),
    fixedChain('filter', CHAIN.noEndpoints, [...sets.counting('noEndpoints'), ...rejections(sets, null)]),
  ];
}

/** Connections of pods find endpoints elsewhere; those of the node itself do not come in. */
function othersDropped({ localDetector }: NodePlan, sets: Sets, counts: boolean): string {
  const rule = `${sets.frontend('droppingOthers')} -j ${counts ? CHAIN.noLocal : 'DROP'}`;
  if (localDetector === null) return rule;
  const { before, after } = sourceMatch(localDetector, false);
  return `${before}${after}${rule}`;
}

/** A TCP reset is not rate limited as ICMP errors are (net.ipv4.icmp_ratelimit), so every client learns at once. */
function rejections({ family }: Sets, match: string | null): readonly string[] {
  const unreachable = `${family === 'IPv4' ? 'icmp' : 'icmp6'}-port-unreachable`;
  const matching = match === null ? '' : `${match} `;
  return [`-p tcp ${matching}-j REJECT --reject-with tcp-reset`, `${matching}-j REJECT --reject-with ${unreachable}`];
}

/**
 * Packets of the node itself that source ranges do not admit (behaviour IV-24). ip_vs has translated them by now, so
 * conntrack is asked for their original destination.
 */
function notAdmitted(restricted: Iterable<FrontendPlan>): readonly string[] {
  const rules = [...restricted].flatMap(({ key, address, port, protocol, sourceRanges, servicePort }) => {
    if (address === null || sourceRanges === null) return [];
    const to = `-p ${protocolWord(protocol)} -m conntrack --ctstate NEW --ctorigdst ${address} --ctorigdstport ${port}`;
    const comment = commentMatch(`${servicePort} traffic not accepted`);
    const lines = [
      ...sourceRanges.map((range) => `-s ${prefixText(range)} ${to} -j RETURN`),
      `${to} ${comment} -j DROP`,
    ];
    return [{ key, lines }];
  });
  rules.sort((one, other) => (one.key < other.key ? -1 : 1));
  return rules.flatMap(({ lines }) => lines);
}
