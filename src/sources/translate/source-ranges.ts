import { FAMILIES, familyOf, parsePrefix, type Family, type IPPrefix } from '../../net/ip.js';
import type { Fields } from './fields.js';

/** What no packet's source is: stands for "nobody" where a Service asked for ranges and none of them can be read. */
const NOBODY: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/32', IPv6: '::/128' };

/**
 * Reads spec.loadBalancerSourceRanges. An entry that cannot be parsed is left out with a warning, as kube-proxy does. There the list may
 * become empty by that and admit everybody; here a family all of whose entries are unreadable admits nobody. An entry whose family cannot be
 * told counts for both.
 */
export function readSourceRanges(spec: Fields): readonly IPPrefix[] {
  if (spec.lacks('loadBalancerSourceRanges')) return NO_RANGES;
  const ranges = new Set<IPPrefix>();
  const unreadable = new Set<Family>();
  for (const { text, at } of spec.strings('loadBalancerSourceRanges')) {
    const range = parsePrefix(text.trim());
    if (range !== null) {
      ranges.add(range);
      continue;
    }
    spec.warn(at, text, 'is not a prefix such as "192.0.2.0/24" and left out');
    for (const family of familiesMeant(text)) unreadable.add(family);
  }
  if (unreadable.size === 0) return [...ranges];
  const readable = new Set([...ranges].map(familyOf));
  for (const family of FAMILIES) {
    const nobody = parsePrefix(NOBODY[family]);
    if (unreadable.has(family) && !readable.has(family) && nobody !== null) ranges.add(nobody);
  }
  return [...ranges];
}

const NO_RANGES: readonly IPPrefix[] = [];

function familiesMeant(text: string): readonly Family[] {
  if (text.includes(':')) return ['IPv6'];
  return /^[\d./\s]*\d+\.\d+[\d./\s]*$/.test(text) ? ['IPv4'] : FAMILIES;
}
