import { FAMILIES, familyOf, parsePrefix, type Family, type IPPrefix } from '../../base/ip.js';
import type { Fields } from './fields.js';

/** What no packet's source is: stands for "nobody" where a Service asked for ranges and none of them can be read. */
const NOBODY: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/32', IPv6: '::/128' };

/**
 * Reads spec.loadBalancerSourceRanges. An entry that cannot be parsed is left out with a warning, as kube-proxy does. There the list may
 * become empty by that and admit everybody. Here nobody guesses which family such an entry was meant for: each that no other entry speaks of
 * admits nobody.
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
    const nobody = parsePrefix(NOBODY[family]);
    if (!readable.has(family) && nobody !== null) ranges.add(nobody);
  }
  return [...ranges];
}

const NO_RANGES: readonly IPPrefix[] = [];
