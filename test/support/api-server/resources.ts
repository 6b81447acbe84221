import type { ApiObject } from '../api-objects.js';

/** A collection the test API server serves. */
export interface ServedResource {
  readonly name: string;
  readonly kind: string;
  readonly apiVersion: string;
  readonly namespaced: boolean;
}

export const SERVED: readonly ServedResource[] = [
  { name: 'services', kind: 'Service', apiVersion: 'v1', namespaced: true },
  { name: 'endpointslices', kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', namespaced: true },
  { name: 'nodes', kind: 'Node', apiVersion: 'v1', namespaced: false },
  {
    name: 'certificatesigningrequests',
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    namespaced: false,
  },
  { name: 'configmaps', kind: 'ConfigMap', apiVersion: 'v1', namespaced: true },
  { name: 'servicecidrs', kind: 'ServiceCIDR', apiVersion: 'networking.k8s.io/v1', namespaced: false },
];

export interface Target {
  readonly resource: ServedResource;
  /** Null: all namespaces. */
  readonly namespace: string | null;
  /** Null: the whole collection. */
  readonly name: string | null;
}

/** What a path means; null when there is no such thing here. */
export function targetOf(path: string): Target | null {
  const match = /^\/(?:api|apis\/([^/]+))\/(v1)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (match === null) return null;
  const [, group, version = '', namespace, plural, name] = match;
  const apiVersion = group === undefined ? version : `${group}/${version}`;
  const resource = SERVED.find((served) => served.name === plural && served.apiVersion === apiVersion);
  if (resource === undefined || (namespace !== undefined && !resource.namespaced)) return null;
  return { resource, namespace: namespace ?? null, name: name === undefined ? null : decodeURIComponent(name) };
}

export function resourceOfKind(kind: unknown): ServedResource {
  const resource = SERVED.find((served) => served.kind === kind);
  if (resource === undefined) throw new TypeError(`not a kind served here: ${String(kind)}`);
  return resource;
}

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export function metadataOf(object: ApiObject): ApiObject {
  const metadata = object['metadata'];
  return typeof metadata === 'object' && metadata !== null ? (metadata as ApiObject) : {};
}

export function nameOf(object: ApiObject): ObjectName {
  const { name, namespace } = metadataOf(object);
  return { name: String(name), namespace: typeof namespace === 'string' ? namespace : '' };
}

export function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}
