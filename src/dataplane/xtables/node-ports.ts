import { isLoopback, prefixAddress, prefixLength, touchesLoopback, type Family } from '../../base/ip.js';
import type { NodePlan } from '../../plan/types.js';
import { commentMatch } from './rules.js';

/**
 * Rules that send what is addressed to a node port address on to a chain: the kernel's own idea of local addresses, within the configured
 * prefixes, without loopback. They are the last of their chain: a rule that ends it may be among them.
 */
export function nodePortRules(node: NodePlan, chain: string, comment: string): readonly string[] {
  const local = `${commentMatch(comment)} -m addrtype --dst-type LOCAL -j ${chain}`;
  const { nodePortPrefixes, nodePortsOnLoopback: withLoopback } = node;
  const loopback = LOOPBACK[node.family];
  if (nodePortPrefixes === null) return [withLoopback ? local : `! -d ${loopback} ${local}`];
  const prefixes = withLoopback
    ? nodePortPrefixes
    : nodePortPrefixes.filter((each) => !isLoopback(prefixAddress(each)));
  const guard = !withLoopback && prefixes.some(touchesLoopback) ? [`-d ${loopback} -j RETURN`] : [];
  return [...guard, ...prefixes.map((prefix) => `${prefixLength(prefix) === 0 ? '' : `-d ${prefix} `}${local}`)];
}

export const LOOPBACK: Readonly<Record<Family, string>> = { IPv4: '127.0.0.0/8', IPv6: '::1/128' };
