import { familyOf, parsePrefix, prefixesOverlap, type Family, type IPPrefix } from '../base/ip.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { printValue } from './errors.js';
import type { Report } from './tables/report.js';
import { refused, remarked } from './tables/settings.js';
import { Mapping } from './yaml.js';

/** What of kubeadm's ClusterConfiguration concerns a proxy; empty text: not set. */
export interface ClusterConfiguration {
  readonly podSubnet: string;
  readonly serviceSubnet: string;
  readonly proxyDisabled: boolean;
}

const CLUSTER_KIND = 'ClusterConfiguration';
const DISABLED_SINCE = 'kubeadm.k8s.io/v1beta4';
const VERSIONS: readonly unknown[] = ['kubeadm.k8s.io/v1beta3', DISABLED_SINCE];

/** Takes the fields that are as they should be and passes over all else: the document is another program's. Null for any other document. */
export function readCluster(document: unknown): ClusterConfiguration | null {
  if (!(document instanceof Mapping)) return null;
  const version = document.entries.get('apiVersion');
  if (document.entries.get('kind') !== CLUSTER_KIND || !VERSIONS.includes(version)) return null;
  return {
    podSubnet: textAt(document, ['networking', 'podSubnet']),
    serviceSubnet: textAt(document, ['networking', 'serviceSubnet']),
    proxyDisabled: version === DISABLED_SINCE && document.at(['proxy', 'disabled']) === true,
  };
}

/** The configuration with the pods' subnet in place of a clusterCIDR that is missing where it counts, as kubeadm does it. */
export function fillClusterCIDR(configuration: Mapping, { podSubnet }: ClusterConfiguration): Mapping {
  const says = (field: string): unknown => configuration.entries.get(field) ?? '';
  const counts = says('detectLocalMode') === '' || says('detectLocalMode') === 'ClusterCIDR';
  const subnets = parseSubnets(podSubnet) ?? [];
  if (!counts || says('clusterCIDR') !== '' || subnets.length === 0) return configuration;
  return configuration.merge(new Mapping([['clusterCIDR', podSubnet]]));
}

/**
 * What of the two documents does not go together, as far as they alone can tell.
 *
 * @param isFilled whether clusterCIDR was taken from the cluster.
 */
export function describeCluster(
  cluster: ClusterConfiguration,
  { detectLocalMode, clusterCIDR }: KubeProxyConfiguration,
  isFilled: boolean,
): readonly Report[] {
  const { podSubnet, serviceSubnet, proxyDisabled } = cluster;
  const [pods, services] = [parseSubnets(podSubnet), parseSubnets(serviceSubnet)];
  const isByCluster = detectLocalMode === '' || detectLocalMode === 'ClusterCIDR';
  const isOther = isByCluster && pods !== null && pods.length > 0 && !sameSubnets(pods, parseSubnets(clusterCIDR));
  return [
    ...(proxyDisabled
      ? [about(`${CLUSTER_KIND}.proxy.disabled`, 'is true, which does not keep this program from running')]
      : []),
    ...(pods === null
      ? [{ ...refused(POD_SUBNET, 'value', printValue(podSubnet), NO_SUBNETS), severity: 'warning' as const }]
      : []),
    ...(services === null
      ? [{ ...refused(SERVICE_SUBNET, 'value', printValue(serviceSubnet), NO_SUBNETS), severity: 'warning' as const }]
      : []),
    ...(isFilled ? [about(`${KIND}.clusterCIDR`, `is not set, using ${podSubnet} of ${POD_SUBNET}`)] : []),
    ...(isOther ? [about(`${KIND}.clusterCIDR`, `${clusterCIDR} counts, and not ${podSubnet} of ${POD_SUBNET}`)] : []),
    ...(detectLocalMode === 'NodeCIDR' && podSubnet === ''
      ? [about(POD_SUBNET, 'is not set, so Nodes may have no podCIDRs, which detectLocalMode NodeCIDR needs')]
      : []),
    ...describeSubnets(pods ?? [], services ?? []),
  ];
}

const POD_SUBNET = `${CLUSTER_KIND}.networking.podSubnet`;
const SERVICE_SUBNET = `${CLUSTER_KIND}.networking.serviceSubnet`;
const NO_SUBNETS = 'is ignored, it must be a CIDR, or one of each IP family with a comma between';

function about(path: string, problem: string): Report {
  return remarked(path, 'cluster', problem);
}

/** Pods' against Services' subnets. */
function describeSubnets(pods: readonly IPPrefix[], services: readonly IPPrefix[]): Report[] {
  if (pods.length === 0 || services.length === 0) return [];
  const [podFamilies, serviceFamilies] = [pods.map(familyOf), services.map(familyOf)];
  const missing: readonly Family[] = serviceFamilies.filter((family) => !podFamilies.includes(family));
  const isReversed = missing.length === 0 && podFamilies.length === 2 && podFamilies[0] !== serviceFamilies[0];
  const overlapping = pods.filter((pod) => services.some((service) => prefixesOverlap(pod, service)));
  return [
    ...missing.map((family) =>
      about(POD_SUBNET, `has no ${family}, as ${SERVICE_SUBNET} has: such Services get no endpoints`),
    ),
    ...(isReversed
      ? [about(POD_SUBNET, `its first IP family is not the first of ${SERVICE_SUBNET}, the primary one`)]
      : []),
    ...overlapping.map((pod) => about(POD_SUBNET, `${pod} overlaps ${SERVICE_SUBNET}`)),
  ];
}

/** At most one prefix of each family; none for empty text, null for anything else. */
function parseSubnets(text: string): readonly IPPrefix[] | null {
  if (text === '') return [];
  const prefixes = text.split(',').flatMap((entry) => parsePrefix(entry) ?? []);
  const isWhole = prefixes.length === text.split(',').length;
  return isWhole && new Set(prefixes.map(familyOf)).size === prefixes.length ? prefixes : null;
}

function sameSubnets(one: readonly IPPrefix[], other: readonly IPPrefix[] | null): boolean {
  return other !== null && [...one].sort().join() === [...other].sort().join();
}

function textAt(document: Mapping, path: readonly string[]): string {
  const value = document.at(path);
  return typeof value === 'string' ? value : '';
}
