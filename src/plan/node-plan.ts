import {
  familyOf,
  hostPrefix,
  isLoopback,
  isPrefix,
  LOOPBACK,
  namesLoopback,
  prefixLength,
  touchesLoopback,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../base/ip.js';
import type { NodeRow, ServiceCIDRRow } from '../state/rows.js';
import { anyContains, nodeFacts, type PlanSettings } from './facts.js';
import type { LocalDetector, NodePlan } from './types.js';

const IPV4_BITS = 32;

/** The plan of the whole node in one family (behaviour ST-20, ST-21, ST-34, SV-31, SV-32). */
export function planNode(
  family: Family,
  settings: PlanSettings,
  node: NodeRow | undefined,
  serviceCIDRs: Iterable<ServiceCIDRRow>,
): NodePlan {
  const cidrs = new Set<IPPrefix>();
  for (const row of serviceCIDRs) {
    for (const cidr of row.cidrs) if (familyOf(cidr) === family) cidrs.add(cidr);
  }
  const prefixes = nodePortPrefixes(family, settings, node);
  const own = ownAddresses(family, settings, node);
  return {
    family,
    localDetector: localDetector(family, settings, node),
    masqueradeAll: settings.masqueradeAll,
    masqueradeMark: 2 ** settings.masqueradeBit,
    nodePortPrefixes: prefixes,
    // Node ports do not use other addresses of its links.
    nodePortAddresses: prefixes === null ? own : own.filter((address) => anyContains(prefixes, address)),
    ownAddresses: settings.traits.guardsServiceAddresses ? own : null,
    nodePortsOnLoopback: family === 'IPv4' && opensLoopback(settings),
    nodePortListener: nodePortListener(family, settings),
    clientPrefix: family === 'IPv4' ? IPV4_BITS : settings.affinityIPv6Prefix,
    sharesClusterIPs: settings.externalIPsInClusterRanges === true,
    serviceCIDRs: [...cidrs].sort(),
    retryTimes: settings.retryTimes,
    address: settings.traits.balancesOnly ? nodeFacts(settings, node).addresses[family] : null,
  };
}

/** Bytes: IFNAMSIZ less the NUL at the end. */
const LONGEST_INTERFACE_NAME = 15;

function localDetector(family: Family, settings: PlanSettings, node: NodeRow | undefined): LocalDetector | null {
  const detection = settings.localDetection;
  switch (detection.type) {
    case 'BridgeInterface':
      return { type: 'input-interface', name: detection.name };
    case 'InterfaceNamePrefix':
      // No name is longer, and with the wildcard after it iptables takes no prefix of this length.
      if (Buffer.byteLength(detection.prefix) === LONGEST_INTERFACE_NAME) {
        return { type: 'input-interface', name: detection.prefix };
      }
      return { type: 'input-interface-prefix', prefix: detection.prefix };
    case 'ClusterCIDR':
    case 'NodeCIDR': {
      const prefixes = detection.type === 'NodeCIDR' ? (node?.podCIDRs ?? []) : detection.prefixes;
      const prefix = prefixes.find((candidate) => familyOf(candidate) === family);
      return prefix === undefined ? null : { type: 'source-prefix', prefix };
    }
  }
}

/**
 * Whether node ports are to answer on IPv4's loopback, the only one that the kernel routes off (behaviour ST-44, SV-32,
 * SV-35). They do in a mode that supports it, unless the prefixes of the family leave it out. `primary` never means
 * loopback, not even on a node without an address for it to stand for.
 */
export function opensLoopback({
  traits,
  nodePortAddresses,
}: Pick<PlanSettings, 'traits' | 'nodePortAddresses'>): boolean {
  if (!traits.servesLocalhost) return false;
  const own = nodePortAddresses.filter(isPrefix).filter((prefix) => familyOf(prefix) === 'IPv4');
  return own.length === 0 ? !nodePortAddresses.includes('primary') : own.some(touchesLoopback);
}

/**
 * Where this process accepts connections to node ports on loopback, in a mode without rules for them (behaviour SV-36). A
 * prefix has to name loopback: one that has it among other addresses does not count.
 */
function nodePortListener(
  family: Family,
  { traits, nodePortAddresses }: Pick<PlanSettings, 'traits' | 'nodePortAddresses'>,
): IPAddress | null {
  const isNamed = nodePortAddresses
    .filter(isPrefix)
    .some((prefix) => familyOf(prefix) === family && namesLoopback(prefix));
  return traits.listensOnLocalhost && isNamed ? LOOPBACK[family] : null;
}

/** The node's addresses in the cluster. Sorted. */
function ownAddresses(family: Family, settings: PlanSettings, node: NodeRow | undefined): readonly IPAddress[] {
  const first = nodeFacts(settings, node).addresses[family];
  const own = (node?.addresses ?? []).filter((address) => familyOf(address) === family);
  const all = new Set(first === null ? own : [first, ...own]);
  return [...all].filter((address) => !isLoopback(address)).sort();
}

/** A family without a prefix of its own answers on every local address, as in kube-proxy (behaviour ST-21, SV-31). */
function nodePortPrefixes(
  family: Family,
  settings: PlanSettings,
  node: NodeRow | undefined,
): readonly IPPrefix[] | null {
  if (settings.traits.balancesOnly) return null;
  const address = nodeFacts(settings, node).addresses[family];
  const primary = address === null || isLoopback(address) ? [] : [hostPrefix(address)];
  const prefixes = settings.nodePortAddresses
    .flatMap((entry) => (entry === 'primary' ? primary : entry))
    .filter((prefix) => familyOf(prefix) === family);
  if (prefixes.length === 0 || prefixes.some((prefix) => prefixLength(prefix) === 0)) return null;
  return [...new Set(prefixes)].sort();
}
