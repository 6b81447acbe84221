import type { RowKind } from '../../state/rows.js';
import type { ApiQuery } from './connection.js';

/** A collection of the API, and which of its objects we ask for. */
export interface Resource {
  /** Its plural, as in the path. */
  readonly name: string;
  readonly kind: RowKind;
  readonly apiVersion: string;
  readonly path: string;
  readonly namespaced: boolean;
  readonly selectors: ApiQuery;
}

/** Behaviour WA-02. */
export const SERVICES: Resource = {
  name: 'services',
  kind: 'Service',
  apiVersion: 'v1',
  path: '/api/v1/services',
  namespaced: true,
  selectors: {
    labelSelector: '!service.kubernetes.io/service-proxy-name',
    fieldSelector: 'spec.clusterIP!=None',
  },
};

/** Behaviour WA-03. */
export const ENDPOINT_SLICES: Resource = {
  name: 'endpointslices',
  kind: 'EndpointSlice',
  apiVersion: 'discovery.k8s.io/v1',
  path: '/apis/discovery.k8s.io/v1/endpointslices',
  namespaced: true,
  selectors: { labelSelector: '!service.kubernetes.io/headless' },
};

/** Behaviour WA-04. */
export const SERVICE_CIDRS: Resource = {
  name: 'servicecidrs',
  kind: 'ServiceCIDR',
  apiVersion: 'networking.k8s.io/v1',
  path: '/apis/networking.k8s.io/v1/servicecidrs',
  namespaced: false,
  selectors: {},
};

/** The one Node we run on, behaviour WA-01. */
export function nodeResource(nodeName: string): Resource {
  // In a selector's value a backslash, a comma and an equals sign are escaped.
  const value = nodeName.replace(/[\\,=]/g, '\\$&');
  return {
    name: 'nodes',
    kind: 'Node',
    apiVersion: 'v1',
    path: '/api/v1/nodes',
    namespaced: false,
    selectors: { fieldSelector: `metadata.name=${value}` },
  };
}
