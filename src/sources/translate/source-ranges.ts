import { FAMILIES, familyOf, parsePrefix, type Family, type IPPrefix } from '../../base/ip.js';
import type { Fields } from './fields.js';

/** An address that no packet has as its source: stands for "no client" where a Service asked for ranges and none of them can be read. */
const NO_CLIENT: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/32', IPv6: '::/128' };

/**
 * Reads spec.loadBalancerSourceRanges. An entry that cannot be parsed is left out with a warning, as kube-proxy does. There the list may become empty by that
 * and admit all clients. Here the family of such an entry is not guessed: each family without another entry admits no client.
 */
export function readSourceRanges(spec: Fields): readonly IPPrefix[] {
  if (spec.lacks('loadBalancerSourceRanges')) return NO_RANGES;
  const ranges = new Set<IPPrefix>();
  let unreadable = false;
  for (const { text, at } of spec.strings('loadBalancerSourceRanges')) {
    const range = parsePrefix(text.trim());
    if (range === null) {
      spec.warn(at, text, 'is not a prefix such as "192.0.2.0/24" and left out');
      unreadable = true;
    } else ranges.add(range);
  }
  if (!unreadable) return [...ranges];
  const readable = new Set([...ranges].map(familyOf));
  for (const family of FAMILIES) {
    const noClient = parsePrefix(NO_CLIENT[family]);
    if (!readable.has(family) && noClient !== null) ranges.add(noClient);
  }
  return [...ranges];
}

const NO_RANGES: readonly IPPrefix[] = [];
