import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A generated cluster: plain ClusterIP Services, each with one EndpointSlice. */
export interface Cluster {
  readonly services: number;
  readonly endpoints: number;
}

const NODES = 100;
const SERVICES_PER_FILE = 50;

/** The Service whose endpoints a benchmark changes; it has a file of its own. */
export const CHANGED_SERVICE = 0;

/** Writes the cluster's manifests as JSON files into a directory. */
export function writeCluster(directory: string, cluster: Cluster): void {
  mkdirSync(directory, { recursive: true });
  writeChanged(directory, cluster, null);
  for (let first = 1; first < cluster.services; first += SERVICES_PER_FILE) {
    const count = Math.min(SERVICES_PER_FILE, cluster.services - first);
    const items = Array.from({ length: count }, (_, index) => first + index).flatMap((number) => [
      service(number),
      endpointSlice(number, cluster.endpoints, null),
    ]);
    writeFileSync(join(directory, `services-${first}.json`), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }
}

/** Replaces the changed Service's file at once; one of its endpoints may be not ready. */
export function writeChanged(directory: string, cluster: Cluster, notReady: number | null): void {
  const items = [service(CHANGED_SERVICE), endpointSlice(CHANGED_SERVICE, cluster.endpoints, notReady)];
  const path = join(directory, 'changed.json');
  const hidden = join(directory, '.changed.json');
  writeFileSync(hidden, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  renameSync(hidden, path);
}

function service(number: number): object {
  const clusterIP = `10.${96 + (number >> 16)}.${(number >> 8) & 0xff}.${number & 0xff}`;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'bench', name: `service-${number}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
    },
  };
}

function endpointSlice(number: number, endpoints: number, notReady: number | null): object {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace: 'bench',
      name: `service-${number}-slice`,
      labels: { 'kubernetes.io/service-name': `service-${number}` },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, index) =>
      endpoint(number * endpoints + index, index !== notReady),
    ),
  };
}

function endpoint(pod: number, ready: boolean): object {
  return {
    addresses: [`10.${128 + (pod >> 16)}.${(pod >> 8) & 0xff}.${pod & 0xff}`],
    conditions: { ready, serving: ready, terminating: false },
    nodeName: `node-${pod % NODES}`,
  };
}
