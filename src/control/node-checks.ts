import { FAMILIES, familyOf, isPrefix, isUnspecified, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import type { Config } from '../config/config.js';
import type { NodeRow } from '../state/rows.js';

/** What of the configuration has to fit to the Node. */
export type NodeSettings = Pick<
  Config,
  'nodeName' | 'bindAddress' | 'localDetection' | 'nodePortAddresses' | 'kubernetes' | 'healthz' | 'metrics'
>;

/** What does not fit together: of the configuration, the machine and the Node. */
interface NodeFindings {
  /** Probably not as intended. */
  readonly warnings: readonly string[];
  /** Cannot work. */
  readonly errors: readonly string[];
}

/**
 * Compares configuration, machine and Node (behaviour ST-31 to ST-33).
 *
 * @param families those that this machine has.
 * @param node as far as it is known.
 */
export function checkNode(config: NodeSettings, families: readonly Family[], node: NodeRow | undefined): NodeFindings {
  const { bindAddress, localDetection } = config;
  const first = isUnspecified(bindAddress) ? node?.addresses[0] : bindAddress;
  const primary = first === undefined ? 'IPv4' : familyOf(first);
  const only = families.length === 1;
  const cluster = `${primary}${only ? '-only' : '-primary'}`;
  const warnings: string[] = nodePortWarnings(config, primary, node);
  const errors: string[] = [];
  if (!families.includes(primary))
    errors.push(`this machine has no ${primary}, the family of the node's first address`);
  const clusterCIDRs = localDetection.type === 'ClusterCIDR' ? localDetection.prefixes : [];
  if (isOther(clusterCIDRs, primary))
    (only ? errors : warnings).push(`clusterCIDR has nothing of ${primary}, but this node is ${cluster}`);
  const podCIDRs = localDetection.type === 'NodeCIDR' ? (node?.podCIDRs ?? []) : [];
  if (isOther(podCIDRs, primary))
    errors.push(`the Node's podCIDRs have nothing of ${primary}, but this node is ${cluster}`);
  if (only && families.includes(primary)) warnings.push(...listenWarnings(config, primary));
  return { warnings, errors };
}

function nodePortWarnings(config: NodeSettings, primary: Family, node: NodeRow | undefined): string[] {
  const { nodePortAddresses: configured, localDetection } = config;
  const named = configured.filter(isPrefix);
  if (named.length < configured.length) {
    const isKnown = node === undefined ? config.kubernetes === null : node.addresses.length > 0;
    const where =
      named.length === 0 ? 'node ports answer on every local address but loopback' : 'its other entries count';
    return isKnown ? [] : [`nodePortAddresses has primary but the Node's addresses are not known: ${where}`];
  }
  if (configured.length === 0)
    return ['nodePortAddresses is not set: node ports answer on every local address, "primary" would limit them'];
  const other = FAMILIES.find((family) => family !== primary) ?? primary;
  const has = (prefixes: readonly IPPrefix[], family: Family): boolean =>
    prefixes.some((prefix) => familyOf(prefix) === family);
  const isDual = [
    named,
    localDetection.type === 'ClusterCIDR' ? localDetection.prefixes : [],
    localDetection.type === 'NodeCIDR' ? (node?.podCIDRs ?? []) : [],
  ].some((prefixes) => FAMILIES.every((family) => has(prefixes, family)));
  const missing = !has(named, primary) ? primary : isDual && !has(named, other) ? other : null;
  return missing === null
    ? []
    : [`nodePortAddresses has nothing of ${missing}: node ports answer on every local ${missing} address`];
}

function listenWarnings({ healthz, metrics }: NodeSettings, primary: Family): readonly string[] {
  const wrong = (field: string, address: IPAddress | undefined): readonly string[] =>
    address === undefined || isUnspecified(address) || familyOf(address) === primary
      ? []
      : [`${field} is ${familyOf(address)}, but this node is ${primary}-only`];
  return [...wrong('healthzBindAddress', healthz?.address), ...wrong('metricsBindAddress', metrics.address)];
}

/** Whether there are some, and none is of the family. */
function isOther(prefixes: readonly IPPrefix[], family: Family): boolean {
  return prefixes.length > 0 && prefixes.every((prefix) => familyOf(prefix) !== family);
}
