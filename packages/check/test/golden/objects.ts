import type { Golden } from './golden.js';

export const OBJECTS: readonly Golden[] = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    right: [
      `metadata: {name: a, namespace: b}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80, nodePort: 30080}], type: NodePort}`,
    ],
    wrong: [
      [
        `metadata: {name: a, namespace: b}
spec: {clusterIP: 10.96.0.300, type: nodeport, ports: [{port: 0, port: 80000}, {port: 80}], externalIPs: [127.0.0.1, x], loadBalancerSourceRanges: [10.0.0.0/8, no]}`,
        'error: Service.spec.ports[0].port: is given twice',
        'error: Service[b/a].spec.type: "nodeport": must be one of ClusterIP, NodePort, LoadBalancer, ExternalName',
        'error: Service[b/a].spec.clusterIP: "10.96.0.300": must be an IP address or "None"',
        'error: Service[b/a].spec.ports[0].port: 80000: must be between 1 and 65535',
        'error: Service[b/a].spec.ports[0].name: is required when there are several ports',
        'error: Service[b/a].spec.ports[1].name: is required when there are several ports',
        'error: Service[b/a].spec.loadBalancerSourceRanges[1]: false: must be a string',
      ],
      [
        `metadata: {name: A}
spec: []`,
        'error: Service[default/A].metadata.name: "A": must be a DNS label: at most 63 of a-z, 0-9 and -',
        'error: Service[default/A].spec: a list: must be a mapping',
        'error: Service[default/A].spec.ports: is required',
      ],
      ['spec: {ports: [{port: 80}]}', 'error: Service.metadata.name: is required'],
    ],
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    right: [
      `metadata: {name: a, labels: {kubernetes.io/service-name: b}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.0.0.1]}]`,
    ],
    wrong: [
      [
        `metadata: {name: a, namespace: b}
addressType: IPv5
endpoints: [{addresses: [x]}]`,
        'error: EndpointSlice[b/a].addressType: "IPv5": must be one of IPv4, IPv6, FQDN',
      ],
    ],
  },
  {
    apiVersion: 'discovery.k8s.io/v1beta1',
    kind: 'EndpointSlice',
    right: [],
    wrong: [
      [
        'metadata: {name: a, namespace: b}',
        'error: EndpointSlice.apiVersion: "discovery.k8s.io/v1beta1": is a version that is not known: should be "discovery.k8s.io/v1"',
      ],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Node',
    right: [
      `metadata: {name: node-1}
spec: {podCIDRs: [10.0.0.0/24]}`,
    ],
    wrong: [
      [
        `metadata: {name: node-1}
spec: {podCIDRs: [10.0.0.0, 10.1.0.0/24]}
status: {addresses: [{type: InternalIP, address: here}]}`,
        'error: Node[node-1].spec.podCIDRs[0]: "10.0.0.0": must be a prefix such as "192.0.2.0/24"',
      ],
    ],
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    right: [
      `metadata: {name: kubernetes}
spec: {cidrs: [10.96.0.0/16]}`,
    ],
    wrong: [
      [
        `metadata: {name: kubernetes}
spec: {cidrs: [10.96.0.0/33]}`,
        'error: ServiceCIDR[kubernetes].spec.cidrs[0]: "10.96.0.0/33": must be a prefix such as "192.0.2.0/24"',
      ],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'ServiceList',
    right: ['items: []', 'items: [{metadata: {name: a, namespace: b}, spec: {clusterIP: None}}]'],
    wrong: [
      [
        'items: [1, {metadata: {name: a, namespace: b}, spec: {clusterIP: x, ports: [{port: 80}]}}]',
        'error: items[0]: is no mapping',
        'error: Service[b/a].spec.clusterIP: "x": must be an IP address or "None"',
      ],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'List',
    right: ['items: [{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}, spec: {clusterIP: None}}]'],
    wrong: [
      [
        'items: [{apiVersion: v1, kind: Node, metadata: {}}, {apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, port: -1}]',
        'error: Node.metadata.name: is required',
        'error: KubeletConfiguration.port: -1: is out of range: should be an integer from 1 to 65535',
      ],
    ],
  },
];
