/** API objects as a parser gives them: plain, and partly filled in. Later fields replace earlier ones. */

export type ApiObject = Record<string, unknown>;

export function serviceObject(name: string, spec: ApiObject = {}, rest: ApiObject = {}): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { clusterIP: '10.96.0.10', ports: [{ port: 80 }], ...spec },
    ...rest,
  };
}

export function sliceObject(
  name: string,
  service: string,
  addresses: readonly string[],
  rest: ApiObject = {},
): ApiObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...rest,
  };
}

export function nodeObject(name: string, rest: ApiObject = {}): ApiObject {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, ...rest };
}

export function serviceCIDRObject(name: string, cidrs: readonly string[]): ApiObject {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
}
