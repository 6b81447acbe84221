import {
  familyOf,
  parseAddress,
  parsePrefix,
  prefixContains,
  prefixesOverlap,
  prefixLength,
  prefixWithin,
  type IPPrefix,
} from '../../../../src/base/ip.js';
import { PrefixIndex } from '../../../../src/base/prefix-index.js';
import { specialAddress } from '../../../../src/base/special-address.js';
import { KIND } from '../../../../src/config/document.js';
import type { NodeRow, ServiceRow } from '../../../../src/state/rows.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { pathOf } from '../objects.js';
import { argumentOf, findingAt, placeOf, printPlace, sectionsOf, type Place } from './place.js';

/** The addresses of pods, Services and cluster DNS, wherever a document sets them. */

/** A place that names ranges, at most one of each family but for API objects. */
interface Ranges extends Place {
  readonly prefixes: readonly IPPrefix[];
}

export function rangeFindings(documents: readonly Document[]): readonly Finding[] {
  const pods = podRanges(documents);
  const services = serviceRanges(documents);
  return [
    ...disagreements('pod-range', pods),
    ...disagreements('service-range', services),
    ...against(pods[0], services[0]),
    ...detection(documents, pods),
    ...nodes(documents, pods[0]),
    ...clusterDNS(documents, services),
    ...serviceAddresses(documents, services),
    ...domains(documents),
  ];
}

function ranges(place: Place): readonly Ranges[] {
  const prefixes = place.value.split(',').flatMap((entry) => parsePrefix(entry.trim()) ?? []);
  return prefixes.length === 0 ? [] : [{ ...place, prefixes }];
}

const MANAGERS = ['KubeControllerManagerConfiguration', 'CloudControllerManagerConfiguration'];

/** kubeadm's own first, as the others follow it. */
function podRanges(documents: readonly Document[]): readonly Ranges[] {
  const places = [
    ...sectionsOf(documents, 'ClusterConfiguration').flatMap(({ document, section }) => [
      ...placeOf(document, section.section('networking'), 'podSubnet'),
      ...argumentOf(document, section.section('controllerManager'), 'cluster-cidr'),
    ]),
    ...sectionsOf(documents, ...MANAGERS).flatMap(({ document, section }) =>
      placeOf(document, section.section('KubeCloudShared'), 'ClusterCIDR'),
    ),
    ...documents.flatMap((document): readonly Place[] => {
      const { proxy } = document;
      const isUsed = proxy !== null && proxy.detectLocalMode === 'ClusterCIDR' && proxy.clusterCIDR !== '';
      return isUsed ? [{ document, path: `${KIND}.clusterCIDR`, value: proxy.clusterCIDR }] : [];
    }),
  ];
  return places.flatMap(ranges);
}

function serviceRanges(documents: readonly Document[]): readonly Ranges[] {
  const places = [
    ...sectionsOf(documents, 'ClusterConfiguration').flatMap(({ document, section }) => [
      ...placeOf(document, section.section('networking'), 'serviceSubnet'),
      ...argumentOf(document, section.section('apiServer'), 'service-cluster-ip-range'),
    ]),
    ...sectionsOf(documents, 'KubeControllerManagerConfiguration').flatMap(({ document, section }) => {
      const ipam = section.section('NodeIPAMController');
      const [first] = placeOf(document, ipam, 'ServiceCIDR');
      const second = ipam?.text('SecondaryServiceCIDR') ?? '';
      return first === undefined ? [] : [{ ...first, value: second === '' ? first.value : `${first.value},${second}` }];
    }),
    // Others may be added to the one that the API server makes.
    ...documents.flatMap((document): readonly Place[] => {
      const { row } = document;
      if (row?.kind !== 'ServiceCIDR' || row.name !== 'kubernetes') return [];
      const path = `${pathOf('ServiceCIDR', { kind: 'ServiceCIDR', namespace: '', name: row.name })}.spec.cidrs`;
      return [{ document, path, value: row.cidrs.join(',') }];
    }),
  ];
  return places.flatMap(ranges);
}

/** All documents have to agree; where one only has more, it may be meant. */
function disagreements(rule: string, [first, ...others]: readonly Ranges[]): readonly Finding[] {
  if (first === undefined) return [];
  return others.flatMap((other) => {
    if (isWithin(first, other) && isWithin(other, first)) return [];
    const severity = isWithin(first, other) || isWithin(other, first) ? 'warning' : 'error';
    return [findingAt(severity, rule, other, `does not agree with ${printPlace(first)}`)];
  });
}

function isWithin(inner: Ranges, outer: Ranges): boolean {
  return inner.prefixes.every((prefix) => outer.prefixes.some((whole) => prefixWithin(prefix, whole)));
}

/** Pods and Services: apart, and of the same families. */
function against(pods: Ranges | undefined, services: Ranges | undefined): readonly Finding[] {
  if (pods === undefined || services === undefined) return [];
  const overlaps = pods.prefixes.some((pod) => services.prefixes.some((service) => prefixesOverlap(pod, service)));
  const families = pods.prefixes.map(familyOf);
  const missing = services.prefixes.map(familyOf).filter((family) => !families.includes(family));
  return [
    ...(overlaps ? [findingAt('error', 'range-overlap', pods, `overlaps the Services' ${printPlace(services)}`)] : []),
    ...missing.map((family) =>
      findingAt('error', 'range-family', pods, `has no ${family}, as Services have by ${printPlace(services)}`),
    ),
  ];
}

/** A proxy that detects pods by their Node's range needs a controller that assigns the range. */
function detection(documents: readonly Document[], pods: readonly Ranges[]): readonly Finding[] {
  const detecting = documents.filter(({ proxy }) => proxy?.detectLocalMode === 'NodeCIDR');
  const off = sectionsOf(documents, ...MANAGERS).filter(({ section }) => {
    const shared = section.section('KubeCloudShared');
    return shared?.isGiven('AllocateNodeCIDRs') === true && !shared.truth('AllocateNodeCIDRs');
  });
  const isCluster = sectionsOf(documents, 'ClusterConfiguration').length > 0;
  return detecting.flatMap((document) => {
    const place = { document, path: `${KIND}.detectLocalMode`, value: 'NodeCIDR' };
    const allocations = off.map(({ document: { file } }) =>
      findingAt(
        'error',
        'node-range',
        place,
        `needs ranges of Nodes, which AllocateNodeCIDRs false (${file}) leaves out`,
      ),
    );
    if (allocations.length > 0 || !isCluster || pods.length > 0) return allocations;
    return [findingAt('warning', 'node-range', place, 'needs ranges of Nodes, and no podSubnet is given')];
  });
}

/** Nodes' ranges: within the pods', and apart from one another. */
function nodes(documents: readonly Document[], pods: Ranges | undefined): readonly Finding[] {
  const found = documents.flatMap((document) =>
    document.row?.kind === 'Node' ? nodeRanges(document, document.row) : [],
  );
  const outside =
    pods === undefined ? [] : found.filter(({ prefix }) => !pods.prefixes.some((whole) => prefixWithin(prefix, whole)));
  return [
    ...outside.map((place) =>
      findingAt('error', 'node-range', place, `is not within the pods' ${pods === undefined ? '' : printPlace(pods)}`),
    ),
    ...overlapping(found),
  ];
}

interface NodeRange extends Place {
  readonly prefix: IPPrefix;
}

function nodeRanges(document: Document, row: NodeRow): readonly NodeRange[] {
  const path = `${pathOf('Node', { kind: 'Node', namespace: '', name: row.name })}.spec.podCIDRs`;
  return row.podCIDRs.map((prefix, index) => ({
    document,
    path: `${path}[${index}]`,
    value: prefix,
    prefix,
  }));
}

/** The wide before the narrow, so that whatever overlaps is within one that was there before. */
function overlapping(found: readonly NodeRange[]): readonly Finding[] {
  const index = new PrefixIndex<Place>();
  return [...found]
    .sort((one, other) => prefixLength(one.prefix) - prefixLength(other.prefix))
    .flatMap((place) => {
      const holder = index.around(place.prefix);
      if (holder === undefined) index.add(place.prefix, place);
      return holder === undefined ? [] : [findingAt('error', 'node-range', place, `overlaps ${printPlace(holder)}`)];
    });
}

/** A cache on the node has a link-local address. */
function clusterDNS(documents: readonly Document[], services: readonly Ranges[]): readonly Finding[] {
  const [range] = services;
  if (range === undefined) return [];
  return sectionsOf(documents, 'KubeletConfiguration').flatMap(({ document, section }) =>
    section.texts('clusterDNS').flatMap((value, index) => {
      const address = parseAddress(value);
      if (address === null || specialAddress(address) === 'a link-local address') return [];
      if (range.prefixes.some((prefix) => prefixContains(prefix, address))) return [];
      const place = { document, path: section.pathOf(`clusterDNS[${index}]`), value };
      return [findingAt('warning', 'cluster-dns', place, `is not within the Services' ${printPlace(range)}`)];
    }),
  );
}

function serviceAddresses(documents: readonly Document[], services: readonly Ranges[]): readonly Finding[] {
  const [range] = services;
  const added = documents.flatMap(({ row }) => (row?.kind === 'ServiceCIDR' ? row.cidrs : []));
  if (range === undefined && added.length === 0) return [];
  const all = new PrefixIndex([...(range?.prefixes ?? []), ...added].map((prefix) => [prefix, prefix]));
  const outside = (row: ServiceRow): readonly string[] =>
    row.clusterIPs.filter((address) => all.holding(address) === undefined);
  return documents.flatMap((document) => {
    const { row } = document;
    if (row?.kind !== 'Service') return [];
    const path = `${pathOf('Service', row)}.spec.clusterIPs`;
    return outside(row).map((value) =>
      findingAt('warning', 'service-range', { document, path, value }, 'is not within any range of Services'),
    );
  });
}

/** What pods search is what cluster DNS answers for. */
function domains(documents: readonly Document[]): readonly Finding[] {
  const [cluster] = sectionsOf(documents, 'ClusterConfiguration').flatMap(({ document, section }) =>
    placeOf(document, section.section('networking'), 'dnsDomain'),
  );
  if (cluster === undefined) return [];
  const flags = sectionsOf(documents, 'InitConfiguration', 'JoinConfiguration').flatMap(({ document, section }) =>
    argumentOf(document, section.section('nodeRegistration'), 'cluster-domain', 'kubeletExtraArgs'),
  );
  return [
    ...sectionsOf(documents, 'KubeletConfiguration').flatMap(({ document, section }) =>
      placeOf(document, section, 'clusterDomain'),
    ),
    ...flags,
  ]
    .filter(({ value }) => value !== cluster.value)
    .map((place) => findingAt('error', 'cluster-domain', place, `does not agree with ${printPlace(cluster)}`));
}
