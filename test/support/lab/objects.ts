import type { Family } from '../../../src/base/ip.js';
import type { Protocol } from '../../../src/base/protocol.js';
import { serviceObject } from '../api-objects.js';

/** A Kubernetes object as it stands in a manifest. */
export type Manifest = Readonly<Record<string, unknown>> & { readonly kind: string };

export interface ServicePort {
  readonly name?: string;
  readonly protocol?: Protocol;
  readonly port: number;
  readonly targetPort?: number;
  readonly nodePort?: number;
}

export interface ServiceOptions {
  readonly namespace?: string;
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  /** The first one is also spec.clusterIP. */
  readonly clusterIPs: readonly string[];
  readonly ports: readonly ServicePort[];
  readonly externalIPs?: readonly string[];
  /** Addresses, or whole ingress entries. */
  readonly loadBalancerIPs?: readonly (string | Readonly<Record<string, unknown>>)[];
  readonly sourceRanges?: readonly string[];
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  readonly affinitySeconds?: number;
  readonly healthCheckNodePort?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
}

/** {@link serviceObject} as an API server gives it: with what it fills in. */
export function service(name: string, options: ServiceOptions): Manifest {
  const ingress = options.loadBalancerIPs?.map((entry) => (typeof entry === 'string' ? { ip: entry } : entry));
  const spec = {
    type: options.type ?? (ingress === undefined ? 'ClusterIP' : 'LoadBalancer'),
    clusterIP: options.clusterIPs[0],
    clusterIPs: options.clusterIPs,
    ipFamilies: options.clusterIPs.map(family),
    ipFamilyPolicy: options.clusterIPs.length > 1 ? 'RequireDualStack' : 'SingleStack',
    ports: options.ports.map((port) => ({ protocol: 'TCP', ...port })),
    ...(options.externalIPs === undefined ? {} : { externalIPs: options.externalIPs }),
    ...(options.sourceRanges === undefined ? {} : { loadBalancerSourceRanges: options.sourceRanges }),
    ...(options.externalTrafficPolicy === undefined ? {} : { externalTrafficPolicy: options.externalTrafficPolicy }),
    internalTrafficPolicy: options.internalTrafficPolicy ?? 'Cluster',
    ...(options.healthCheckNodePort === undefined ? {} : { healthCheckNodePort: options.healthCheckNodePort }),
    ...(options.affinitySeconds === undefined
      ? { sessionAffinity: 'None' }
      : {
          sessionAffinity: 'ClientIP',
          sessionAffinityConfig: { clientIP: { timeoutSeconds: options.affinitySeconds } },
        }),
  };
  const { namespace = 'default', labels, annotations, creationTimestamp = '2024-01-01T00:00:00Z' } = options;
  return {
    ...serviceObject(name, spec),
    kind: 'Service',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      creationTimestamp,
    },
    status: { loadBalancer: ingress === undefined ? {} : { ingress } },
  };
}

export interface Endpoint {
  readonly address: string;
  /** `node-1` is the node under test. */
  readonly node?: string;
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  readonly zone?: string;
  readonly zoneHints?: readonly string[];
  /** What it is; nothing is said of it when not given. */
  readonly targetKind?: 'Pod' | 'VirtualMachine';
}

export interface SliceOptions {
  readonly namespace?: string;
  /** Name of the slice; made from the Service's name and the family when not given. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** One EndpointSlice; its family is that of the first endpoint. */
export function endpointSlice(
  serviceName: string,
  endpoints: readonly Endpoint[],
  ports: readonly Omit<ServicePort, 'nodePort' | 'targetPort'>[],
  options: SliceOptions = {},
): Manifest {
  const addressType = family(endpoints[0]?.address ?? '');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: options.name ?? `${serviceName}-${addressType.toLowerCase()}`,
      namespace: options.namespace ?? 'default',
      labels: { 'kubernetes.io/service-name': serviceName, ...options.labels },
      ...(options.annotations === undefined ? {} : { annotations: options.annotations }),
    },
    addressType,
    endpoints: endpoints.map(
      ({ address, node, ready = true, serving = ready, terminating = false, zone, zoneHints, targetKind }) => ({
        addresses: [address],
        conditions: { ready, serving, terminating },
        ...(node === undefined ? {} : { nodeName: node }),
        ...(zone === undefined ? {} : { zone }),
        ...(zoneHints === undefined ? {} : { hints: { forZones: zoneHints.map((name) => ({ name })) } }),
        ...(targetKind === undefined ? {} : { targetRef: { kind: targetKind, name: 'target', namespace: 'default' } }),
      }),
    ),
    ports: ports.map((port) => ({ name: '', protocol: 'TCP', ...port })),
  };
}

export interface NodeOptions {
  readonly addresses: readonly string[];
  readonly zone?: string;
  readonly podCIDRs?: readonly string[];
}

export function node(name: string, options: NodeOptions): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: options.zone === undefined ? {} : { 'topology.kubernetes.io/zone': options.zone } },
    spec: options.podCIDRs === undefined ? {} : { podCIDR: options.podCIDRs[0], podCIDRs: options.podCIDRs },
    status: { addresses: options.addresses.map((address) => ({ type: 'InternalIP', address })) },
  };
}

export function serviceCIDR(name: string, cidrs: readonly string[]): Manifest {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name }, spec: { cidrs } };
}

function family(address: string): Family {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}
