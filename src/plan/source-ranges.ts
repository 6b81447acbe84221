import {
  addressBytes,
  familyOf,
  hostPrefix,
  prefixAddress,
  prefixContains,
  prefixLength,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../base/ip.js';
import { anyContains, type NodeFacts } from './facts.js';

/**
 * Sources that may reach a Service's load balancer addresses, disjoint and sorted; null when all may. A range of length 0
 * admits all sources, and so does a list that only has the other family's ranges (behaviour SV-06). If this node is inside
 * a range, connections from the load balancer's own addresses are admitted too. They are the node's hairpin through a
 * locally assigned address (VD-13).
 */
export function admittedSources(
  family: Family,
  ranges: readonly IPPrefix[],
  loadBalancerAddresses: readonly IPAddress[],
  node: NodeFacts,
): readonly IPPrefix[] | null {
  const own = ranges.filter((range) => familyOf(range) === family);
  if (own.length === 0 || own.some((range) => prefixLength(range) === 0)) return null;
  const nodeAddress = node.addresses[family];
  const isInside = nodeAddress !== null && anyContains(own, nodeAddress);
  return disjoint(isInside ? [...own, ...loadBalancerAddresses.map(hostPrefix)] : own);
}

/**
 * Prefixes nest or are disjoint, so dropping the nested ones leaves a disjoint list. They are sorted by first addresses,
 * wide before narrow. So everything inside a prefix follows it at once: a list of n takes n log n.
 */
function disjoint(prefixes: readonly IPPrefix[]): readonly IPPrefix[] {
  const ordered = prefixes
    .map((prefix) => ({
      prefix,
      first: Buffer.from(addressBytes(prefixAddress(prefix))),
      length: prefixLength(prefix),
    }))
    .sort((one, other) => one.first.compare(other.first) || one.length - other.length);
  const kept: IPPrefix[] = [];
  for (const { prefix } of ordered) {
    const last = kept.at(-1);
    if (last === undefined || !prefixContains(last, prefixAddress(prefix))) kept.push(prefix);
  }
  return kept.sort();
}
