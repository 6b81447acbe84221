// What a rehearsal (rehearse.mjs) has beside the cluster that the API server makes up: Services of other kinds, and the changes that it sees.
const NAMESPACE = 'default';

function service(name, spec) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      ipFamilies: ['IPv4'],
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      clusterIPs: [spec.clusterIP],
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: spec.nodePort }],
      ...spec,
      nodePort: undefined,
    },
  };
}

function slice(name, endpoints) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: endpoints.map(([address, conditions], index) => ({
      addresses: [address],
      nodeName: `node-${index}`,
      conditions: { ready: true, serving: true, terminating: false, ...conditions },
    })),
  };
}

const LEAVING = { ready: false, terminating: true };
const ALL = [['10.244.0.10'], ['10.244.1.10'], ['10.244.2.10']];

/**
 * Endpoints as they are one after the other: one less, one that is about to end, another one, and none. None is as one before, so that two that are taken as
 * one change are one.
 */
function course(number) {
  const first = `10.244.0.${10 + number}`;
  const others = [[`10.244.1.${10 + number}`], ['10.244.2.10']];
  return [others, [[first, LEAVING], ...others], [[first], ...others], []];
}

export const OBJECTS = [
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-0' },
    spec: { podCIDRs: ['10.244.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.10' }] },
  },
  service('plain', { type: 'ClusterIP', clusterIP: '10.97.0.1' }),
  service('node-port', { type: 'NodePort', clusterIP: '10.97.0.2', nodePort: 30080, externalTrafficPolicy: 'Cluster' }),
  service('local', { type: 'NodePort', clusterIP: '10.97.0.3', nodePort: 30081, externalTrafficPolicy: 'Local' }),
  service('sticky', { type: 'ClusterIP', clusterIP: '10.97.0.4', sessionAffinity: 'ClientIP' }),
  service('headless', { type: 'ClusterIP', clusterIP: 'None' }),
  service('empty', { type: 'ClusterIP', clusterIP: '10.97.0.5' }),
  ...['plain', 'node-port', 'local', 'sticky', 'headless'].map((name) => slice(name, ALL)),
];

/** One after the other. */
export const CHANGES = ['plain', 'node-port', 'sticky'].flatMap((name) =>
  [1, 2].flatMap((number) => course(number).map((endpoints) => slice(name, endpoints))),
);
