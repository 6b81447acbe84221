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
import { commentMatch, protocolWord, sourceMatch, type Chain } from '../xtables/rules.js';
import { CHAIN, setName, type SetRole } from './names.js';

/**
 * The rules around virtual services: what masquerades their packets and what keeps others from them. Sets say which frontends there are, so rules change with
 * the node alone, and with source ranges.
 */

/** The rules of built-in chains that lead to ours, in kube-proxy's words (behaviour IV-21). */
export const HOOKS: readonly Hook[] = [
  ...FORWARD_HOOKS,
  ...hooksTo(CHAIN.nodePort, 'filter', ['INPUT'], '', 'kubernetes health check rules'),
  ...PROXY_FIREWALL_HOOKS.ipvs,
  ...hooksTo(CHAIN.guard, 'filter', ['INPUT'], '', 'kubernetes ipvs access filter'),
  ...hooksTo(CHAIN.outGuard, 'filter', ['OUTPUT'], '', 'kubernetes ipvs access filter'),
  ...NAT_HOOKS,
];

/** @param restricted load balancers with source ranges. */
export function chains(node: NodePlan, restricted: Iterable<FrontendPlan>): readonly Chain[] {
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
      `${sets.frontend('balancer')} -g ${CHAIN.markMasquerade}`,
      `${sets.frontend('external')} -g ${CHAIN.markMasquerade}`,
      `${sets.frontend('balancerLocal')} -g ${CHAIN.balancer}`,
      `${sets.frontend('externalLocal')} -g ${CHAIN.balancer}`,
      ...clusterMasquerade(node, sets),
      `${sets.match('addresses', 'dst')} -j RETURN`,
      ...nodePortRules(node, CHAIN.nodePort, NODE_PORT_COMMENT),
    ]),
    fixedChain('nat', CHAIN.balancer, sentByNode(node)),
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
      '-j DROP',
    ]),
    fixedChain('filter', CHAIN.guard, guard(node, sets)),
    fixedChain('filter', CHAIN.outGuard, [...unallocated(node, sets), ...notAdmitted(restricted)]),
  ];
}

const NODE_PORT_COMMENT = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';

/** Matches of one family's sets, as iptables-save spells them. */
class Sets {
  constructor(private readonly family: Family) {}

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
}

/** Source NAT of what reaches a cluster IP from elsewhere than a pod. */
function clusterMasquerade({ masqueradeAll, localDetector }: NodePlan, sets: Sets): readonly string[] {
  const mark = `-j ${CHAIN.markMasquerade}`;
  if (masqueradeAll) return [`${sets.frontend('cluster')} ${mark}`];
  if (localDetector !== null) {
    const { before, after } = sourceMatch(localDetector, false);
    return [`${before}${after}${sets.frontend('cluster')} ${mark}`];
  }
  // What the node sends to an address that it has itself comes from that address, which no endpoint elsewhere could answer.
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
    rules('tcp', 'tcpNodePortsLocal', 'dst', CHAIN.balancer),
    rules('udp', 'udpNodePorts', 'dst', CHAIN.markMasquerade),
    rules('udp', 'udpNodePortsLocal', 'dst', CHAIN.balancer),
    rules('sctp', 'sctpNodePorts', 'dst,dst', CHAIN.markMasquerade),
    rules('sctp', 'sctpNodePortsLocal', 'dst,dst', CHAIN.balancer),
  ];
}

/** Addresses of Service CIDRs that no Service has: those that some has are on the link, and their packets come in. */
function unallocated({ serviceCIDRs }: NodePlan, sets: Sets): readonly string[] {
  return serviceCIDRs.map((cidr) => `-d ${cidr} ${sets.others('addresses', 'dst')} ${NEW_CONNECTIONS} -j DROP`);
}

/** What becomes of new connections that come in: refused or dropped, or on to the virtual service. The node itself is not to be reached by a Service's address. */
function guard(node: NodePlan, sets: Sets): readonly string[] {
  const serving: readonly SetRole[] = ['cluster', 'balancer', 'balancerLocal', 'external', 'externalLocal'];
  return [
    '-m conntrack ! --ctstate NEW -j RETURN',
    `${sets.frontend('dropping')} -j DROP`,
    ...othersDropped(node, sets),
    ...rejections(node.family, sets.frontend('refusing')),
    ...serving.map((role) => `${sets.frontend(role)} -j RETURN`),
    `${sets.match('healthChecks', 'dst')} -j RETURN`,
    ...rejections(node.family, sets.match('addresses', 'dst')),
  ];
}

/** Connections of pods find endpoints elsewhere; those of the node itself do not come in. */
function othersDropped({ localDetector }: NodePlan, sets: Sets): readonly string[] {
  if (localDetector === null) return [`${sets.frontend('droppingOthers')} -j DROP`];
  const { before, after } = sourceMatch(localDetector, false);
  return [`${before}${after}${sets.frontend('droppingOthers')} -j DROP`];
}

/** A TCP reset is not rate limited as ICMP errors are (net.ipv4.icmp_ratelimit), so every client learns at once. */
function rejections(family: Family, match: string): readonly string[] {
  const unreachable = `${family === 'IPv4' ? 'icmp' : 'icmp6'}-port-unreachable`;
  return [`-p tcp ${match} -j REJECT --reject-with tcp-reset`, `${match} -j REJECT --reject-with ${unreachable}`];
}

/**
 * What the node itself sends and source ranges do not admit (behaviour IV-24). ip_vs has translated it by now, so conntrack is asked for what it was sent to.
 */
function notAdmitted(restricted: Iterable<FrontendPlan>): readonly string[] {
  const rules = [...restricted].flatMap(({ key, address, port, protocol, sourceRanges, servicePort }) => {
    if (address === null || sourceRanges === null) return [];
    const to = `-p ${protocolWord(protocol)} -m conntrack --ctstate NEW --ctorigdst ${address} --ctorigdstport ${port}`;
    const comment = commentMatch(`${servicePort} traffic not accepted`);
    const lines = [...sourceRanges.map((range) => `-s ${range} ${to} -j RETURN`), `${to} ${comment} -j DROP`];
    return [{ key, lines }];
  });
  rules.sort((one, other) => (one.key < other.key ? -1 : 1));
  return rules.flatMap(({ lines }) => lines);
}
