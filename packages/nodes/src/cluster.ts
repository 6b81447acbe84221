import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import { VersionDigest } from '../../../src/base/version-digest.js';
import { HEALTHZ_PORT, METRICS_PORT } from '../../../src/config/host-port.js';
import { COMPARED_RESOURCES } from '../../page/src/node-answer.js';
import { ENDPOINT_SLICES, SERVICES } from '../../../src/sources/kubernetes/resources.js';
import type { ClusterApi } from './cluster-api.js';

/** Where the proxies' pods are. */
export interface PodPlace {
  readonly namespace: string;
  readonly selector: string;
}

/** The pods of `deploy`: of the DaemonSet, of the one for Windows, and of the overlay for single nodes. */
export const POD_PLACE: PodPlace = {
  namespace: 'kube-system',
  selector: 'k8s-app in (kube-proxy,kube-proxy-windows,pointsman)',
};

/** A pod that should be a node's proxy. */
export interface ProxyPod {
  readonly node: string;
  readonly namespace: string;
  readonly name: string;
  /** Of its metrics address, and of its health checks. */
  readonly metricsPort: number;
  readonly healthPort: number;
  /** Its flags ask for TLS. The content of a configuration file is not seen from here. */
  readonly saysTls: boolean;
  readonly isRunning: boolean;
}

/** The objects of a resource that proxies read, as the API server holds them. */
export interface ActualVersions {
  /** Versions by `namespace/name`. */
  readonly versions: ReadonlyMap<string, string>;
  readonly sums: readonly number[];
}

export type Compared = (typeof COMPARED_RESOURCES)[number];

const RESOURCES = { services: SERVICES, endpointslices: ENDPOINT_SLICES } as const;

/** Names of all Nodes, sorted. @throws ClusterError */
export async function readNodes(api: ClusterApi): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { metadata } of api.list('/api/v1/nodes', {}, true)) names.push(textOf(metadata, 'name'));
  return names.sort();
}

/**
 * The pod of each node; of several the one that runs.
 *
 * @param node of this node alone; null: of all.
 * @throws ClusterError
 */
export async function readPods(
  api: ClusterApi,
  { namespace, selector }: PodPlace,
  node: string | null,
): Promise<ReadonlyMap<string, ProxyPod>> {
  const query = { labelSelector: selector, ...(node === null ? {} : { fieldSelector: `spec.nodeName=${node}` }) };
  const pods = new Map<string, ProxyPod>();
  for await (const object of api.list(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`, query, false)) {
    const pod = podOf(object, namespace);
    const before = pods.get(pod.node);
    if (pod.node !== '' && (before === undefined || (pod.isRunning && !before.isRunning))) pods.set(pod.node, pod);
  }
  return pods;
}

/** @throws ClusterError */
export async function readVersions(api: ClusterApi): Promise<ReadonlyMap<Compared, ActualVersions>> {
  const read = COMPARED_RESOURCES.map(async (resource): Promise<[Compared, ActualVersions]> => {
    const { path, selectors } = RESOURCES[resource];
    const versions = new Map<string, string>();
    const digest = new VersionDigest();
    for await (const { metadata } of api.list(path, { ...selectors }, true)) {
      const key = `${textOf(metadata, 'namespace')}/${textOf(metadata, 'name')}`;
      const version = textOf(metadata, 'resourceVersion');
      versions.set(key, version);
      digest.add(key, version);
    }
    return [resource, { versions, sums: digest.sums }];
  });
  return new Map(await Promise.all(read));
}

function podOf({ metadata, spec, status }: Mapping, namespace: string): ProxyPod {
  const containers = listOf(spec, 'containers');
  const words = containers.flatMap((each) => [...listOf(each, 'command'), ...listOf(each, 'args')]).map(String);
  const ports = containers.flatMap((each) => listOf(each, 'ports'));
  const portOf = (name: string, otherwise: number): number => {
    const port = ports.find((each) => textOf(each, 'name') === name);
    const number = isMapping(port) ? port['containerPort'] : null;
    return typeof number === 'number' ? number : otherwise;
  };
  return {
    node: textOf(spec, 'nodeName'),
    namespace,
    name: textOf(metadata, 'name'),
    metricsPort: portOf('metrics', METRICS_PORT),
    healthPort: portOf('healthz', HEALTHZ_PORT),
    saysTls: words.some((word) => /^--(?:metrics-tls|tls-cert-file)(?:$|=(?!false$))/.test(word)),
    isRunning: textOf(status, 'phase') === 'Running' && textOf(metadata, 'deletionTimestamp') === '',
  };
}

function textOf(object: unknown, field: string): string {
  const value = isMapping(object) ? object[field] : null;
  return typeof value === 'string' ? value : '';
}

function listOf(object: unknown, field: string): readonly unknown[] {
  const value = isMapping(object) ? object[field] : null;
  return Array.isArray(value) ? value : [];
}
