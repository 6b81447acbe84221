import type { ApiObject } from '../api-objects.js';

/** Objects of a cluster as its controllers write them, managed fields and all, so that sizes are those of real ones. */

export const ENDPOINTS_PER_SLICE = 100;
/** Where the addresses of endpoints that took others' places begin. */
const REPLACED = 64 << 16;

export interface ClusterSize {
  readonly services: number;
  /** Per Service; slices hold 100 at most. */
  readonly endpoints: number;
  readonly nodes: number;
  readonly kinds?: ServiceKinds;
}

/** Cluster IPs alone; all of them with session affinity; or a mix as in real clusters, see {@link mixed}. */
export type ServiceKinds = 'plain' | 'affinity' | 'mix';

export function parseKinds(text: string): ServiceKinds {
  if (text !== 'plain' && text !== 'affinity' && text !== 'mix') throw new TypeError(`no kinds of Services: ${text}`);
  return text;
}

export function* clusterObjects(size: ClusterSize): Iterable<ApiObject> {
  for (let number = 0; number < size.services; number++) {
    yield clusterService(number, size.kinds);
    for (let first = 0; first < size.endpoints; first += ENDPOINTS_PER_SLICE) {
      yield clusterSlice(number, first, Math.min(ENDPOINTS_PER_SLICE, size.endpoints - first), size.nodes, 0);
    }
  }
}

export function clusterService(number: number, kinds: ServiceKinds = 'plain'): ApiObject {
  const clusterIP = `10.${96 + (number >> 16)}.${(number >> 8) & 0xff}.${number & 0xff}`;
  const app = `app-${number}`;
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: {
      name: `service-${number}`,
      namespace: `team-${number % 50}`,
      labels: { app },
      managedFields: managed('v1', {
        'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
        'f:spec': {
          'f:internalTrafficPolicy': {},
          'f:ports': {
            '.': {},
            'k:{"port":80,"protocol":"TCP"}': {
              '.': {},
              'f:name': {},
              'f:port': {},
              'f:protocol': {},
              'f:targetPort': {},
            },
          },
          'f:selector': {},
          'f:sessionAffinity': {},
          'f:type': {},
        },
      }),
    },
    spec: {
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
      selector: { app },
      clusterIP,
      clusterIPs: [clusterIP],
      type: 'ClusterIP',
      sessionAffinity: 'None',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      ...(kinds === 'affinity' ? AFFINITY : {}),
      ...(kinds === 'mix' ? mixed(number) : {}),
    },
    status: { loadBalancer: kinds === 'mix' && isBalanced(number) ? { ingress: [{ ip: outside(number, 51) }] } : {} },
  };
}

const AFFINITY = {
  sessionAffinity: 'ClientIP',
  sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
};

/**
 * Of ten Services one has a node port, one is a load balancer with policy Local, one has affinity, one is a load balancer with affinity and source ranges,
 * and one has an external IP.
 */
function mixed(number: number): ApiObject {
  const ports = [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30_000 + (number % 2700) }];
  const external = { ports, externalTrafficPolicy: 'Cluster' };
  switch (number % 10) {
    case 1:
      return { ...external, type: 'NodePort' };
    case 3:
      return {
        ...external,
        type: 'LoadBalancer',
        externalTrafficPolicy: 'Local',
        // The node port that the next Service does not have.
        healthCheckNodePort: 30_000 + ((number + 1) % 2700),
      };
    case 5:
      return AFFINITY;
    case 7:
      return {
        ...external,
        ...AFFINITY,
        type: 'LoadBalancer',
        loadBalancerSourceRanges: ['203.0.113.0/24', '198.18.0.0/15'],
      };
    case 9:
      return { externalIPs: [outside(number, 52)] };
    default:
      return {};
  }
}

function isBalanced(number: number): boolean {
  return number % 10 === 3 || number % 10 === 7;
}

function outside(number: number, net: number): string {
  return `198.${net}.${number >> 8}.${number & 0xff}`;
}

/**
 * @param notReady how many of the first endpoints are not ready: what distinguishes one version from another.
 * @param replaced how many of the first endpoints are others than at the start.
 */
export function clusterSlice(
  number: number,
  first: number,
  count: number,
  nodes: number,
  notReady: number,
  replaced = 0,
): ApiObject {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: `service-${number}-${first.toString(36).padStart(5, 'x')}`,
      generateName: `service-${number}-`,
      namespace: `team-${number % 50}`,
      generation: 1 + notReady + replaced,
      labels: {
        app: `app-${number}`,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': `service-${number}`,
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-11-20T08:00:00Z' },
      managedFields: managed('discovery.k8s.io/v1', {
        'f:addressType': {},
        'f:endpoints': {},
        'f:metadata': {
          'f:annotations': { '.': {}, 'f:endpoints.kubernetes.io/last-change-trigger-time': {} },
          'f:generateName': {},
          'f:labels': { '.': {}, 'f:endpointslice.kubernetes.io/managed-by': {}, 'f:kubernetes.io/service-name': {} },
        },
        'f:ports': {},
      }),
    },
    addressType: 'IPv4',
    endpoints: Array.from({ length: count }, (_, index) =>
      endpoint(number, first + index, nodes, index >= notReady, index < replaced),
    ),
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  };
}

function endpoint(service: number, index: number, nodes: number, ready: boolean, replaced: boolean): ApiObject {
  const flow = service * 61 + index + (replaced ? REPLACED : 0);
  return {
    addresses: [`10.${128 + ((flow >> 16) & 0x7f)}.${(flow >> 8) & 0xff}.${flow & 0xff}`],
    conditions: { ready, serving: ready, terminating: false },
    targetRef: {
      kind: 'Pod',
      namespace: `team-${service % 50}`,
      name: `app-${service}-7d4b9c6f5-${index.toString(36).padStart(5, 'z')}`,
      uid: '11111111-2222-3333-4444-555555555555',
    },
    nodeName: `node-${flow % nodes}`,
    zone: `zone-${flow % 3}`,
  };
}

function managed(apiVersion: string, fieldsV1: ApiObject): readonly ApiObject[] {
  return [
    {
      manager: 'kube-controller-manager',
      operation: 'Update',
      apiVersion,
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1,
    },
  ];
}
