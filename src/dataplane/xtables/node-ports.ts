import { isLoopback, prefixAddress, prefixLength, touchesLoopback, type Family } from '../../base/ip.js';
import type { NodePlan } from '../../plan/types.js';
import { commentMatch } from './rules.js';

/**
 * Rules that send packets to a node port address on to a chain: the kernel decides what is local, within the configured
 * prefixes. They are the last of their chain: a rule that ends it may be among them.
 *
 * Loopback is for the node itself. With `route_localnet` the kernel routes packets from links and pods to 127.0.0.0/8. The
 * filter's guard, KUBE-FIREWALL, does not see packets that are translated before it, so these do not come to the node ports.
 */
export function nodePortRules(node: NodePlan, chain: string, comment: string): readonly string[] {
  const local = `${commentMatch(comment)} -m addrtype --dst-type LOCAL -j ${chain}`;
  const { nodePortPrefixes, nodePortsOnLoopback: withLoopback } = node;
  const loopback = LOOPBACK[node.family];
  // A source of the node's own that comes by a link is a martian to the kernel (fib_validate_source).
  const others = `-d ${loopback} -m addrtype ! --src-type LOCAL -j RETURN`;
  if (nodePortPrefixes === null) return withLoopback ? [others, local] : [`! -d ${loopback} ${local}`];
  const prefixes = withLoopback
    ? nodePortPrefixes
    : nodePortPrefixes.filter((each) => !isLoopback(prefixAddress(each)));
  const all = `-d ${loopback} -j RETURN`;
  const guard = prefixes.some(touchesLoopback) ? [withLoopback ? others : all] : [];
  return [...guard, ...prefixes.map((prefix) => `${prefixLength(prefix) === 0 ? '' : `-d ${prefix} `}${local}`)];
}

export const LOOPBACK: Readonly<Record<Family, string>> = { IPv4: '127.0.0.0/8', IPv6: '::1/128' };
