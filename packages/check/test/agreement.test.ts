// Files that are right each, and do not agree.
import t from 'tap';
import { check } from '../src/command.js';

const PROXY = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n';
const INIT = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n';
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const MANAGER = 'apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n';
const CIDR = 'apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\n';

function node(name: string, rest: string): string {
  return `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\n${rest}`;
}

function service(name: string, spec: string, more = ''): string {
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {${spec}}\n${more}`;
}

const ports = 'ports: [{port: 80}]';

const CASES: readonly (readonly [name: string, documents: readonly string[], ...findings: string[]])[] = [
  [
    'what kubeadm itself would make',
    [
      `${INIT}localAPIEndpoint: {bindPort: 6443}`,
      `${CLUSTER}networking: {podSubnet: "10.244.0.0/16,fd00::/56", serviceSubnet: "10.96.0.0/16,fd01::/112"}\ncontrollerManager: {extraArgs: [{name: cluster-cidr, value: "fd00::/56,10.244.0.0/16"}]}`,
      `${PROXY}clusterCIDR: 10.244.0.0/16,fd00::/56`,
      `${KUBELET}clusterDNS: [10.96.0.10, 169.254.20.10]\nclusterDomain: cluster.local`,
      `${MANAGER}KubeCloudShared: {ClusterCIDR: "10.244.0.0/16,fd00::/56", AllocateNodeCIDRs: true}\nNodeIPAMController: {ServiceCIDR: 10.96.0.0/16, SecondaryServiceCIDR: "fd01::/112"}`,
      node('a', 'spec: {podCIDRs: [10.244.0.0/24, "fd00::/64"]}'),
      node('b', 'spec: {podCIDRs: [10.244.1.0/24, "fd00:0:0:1::/64"]}'),
      `${CIDR}metadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/16, "fd01::/112"]}`,
      service('web', `clusterIP: 10.96.0.10, type: NodePort, ports: [{port: 80, nodePort: 30080}]`),
    ],
  ],
  [
    'ranges of pods',
    [
      `${CLUSTER}networking: {podSubnet: 10.244.0.0/16}\ncontrollerManager: {extraArgs: [{name: cluster-cidr, value: 10.1.0.0/16}, {name: cluster_cidr, value: 10.2.0.0/16}]}`,
      `${PROXY}clusterCIDR: 10.0.0.0/8`,
      `${MANAGER}KubeCloudShared: {ClusterCIDR: 10.245.0.0/16}`,
    ],
    'd1 error: ClusterConfiguration.controllerManager.extraArgs.cluster-cidr: "10.2.0.0/16": does not agree with "10.244.0.0/16" of ClusterConfiguration.networking.podSubnet (f)',
    'd2 warning: KubeProxyConfiguration.clusterCIDR: "10.0.0.0/8": does not agree with "10.244.0.0/16" of ClusterConfiguration.networking.podSubnet (f)',
    'd3 error: KubeControllerManagerConfiguration.KubeCloudShared.ClusterCIDR: "10.245.0.0/16": does not agree with "10.244.0.0/16" of ClusterConfiguration.networking.podSubnet (f)',
  ],
  [
    'ranges of Services, and of pods against them',
    [
      `${CLUSTER}networking: {podSubnet: 10.96.0.0/16, serviceSubnet: "10.96.0.0/12,fd00::/112"}\napiServer: {extraArgs: [{name: service-cluster-ip-range, value: 10.97.0.0/16}]}`,
      `${MANAGER}NodeIPAMController: {ServiceCIDR: 10.0.0.0/24}`,
      `${CIDR}metadata: {name: kubernetes}\nspec: {cidrs: [10.1.0.0/24]}`,
      `${CIDR}metadata: {name: more}\nspec: {cidrs: [10.200.0.0/24]}`,
      service('in', `clusterIP: 10.200.0.5, ${ports}`),
      service('out', `clusterIP: 192.0.2.5, ${ports}`),
      `${KUBELET}clusterDNS: [192.0.2.10]\nclusterDomain: example.com`,
    ],
    'd1 warning: ClusterConfiguration.apiServer.extraArgs.service-cluster-ip-range: "10.97.0.0/16": does not agree with "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd2 error: KubeControllerManagerConfiguration.NodeIPAMController.ServiceCIDR: "10.0.0.0/24": does not agree with "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd3 error: ServiceCIDR[kubernetes].spec.cidrs: "10.1.0.0/24": does not agree with "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd1 error: ClusterConfiguration.networking.podSubnet: "10.96.0.0/16": overlaps the Services\' "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd1 error: ClusterConfiguration.networking.podSubnet: "10.96.0.0/16": has no IPv6, as Services have by "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd6 warning: Service[default/out].spec.clusterIPs: "192.0.2.5": is not within any range of Services',
    'd7 warning: KubeletConfiguration.clusterDNS[0]: "192.0.2.10": is not within the Services\' "10.96.0.0/12,fd00::/112" of ClusterConfiguration.networking.serviceSubnet (f)',
    'd7 error: KubeletConfiguration.clusterDomain: "example.com": does not agree with "cluster.local" of ClusterConfiguration.networking.dnsDomain (f)',
  ],
  [
    'ranges of Nodes',
    [
      `${MANAGER}KubeCloudShared: {AllocateNodeCIDRs: false, ClusterCIDR: 10.244.0.0/16}`,
      `${PROXY}detectLocalMode: NodeCIDR`,
      node('a', 'spec: {podCIDRs: [10.244.0.0/24]}'),
      node('b', 'spec: {podCIDRs: [10.244.0.128/25]}'),
      node('c', 'spec: {podCIDRs: [10.245.0.0/24]}'),
    ],
    'd2 error: KubeProxyConfiguration.detectLocalMode: "NodeCIDR": needs ranges of Nodes, which AllocateNodeCIDRs false (f) leaves out',
    'd4 error: Node[b].spec.podCIDRs[0]: "10.244.0.128/25": overlaps "10.244.0.0/24" of Node[a].spec.podCIDRs[0] (f)',
    'd5 error: Node[c].spec.podCIDRs[0]: "10.245.0.0/24": is not within the pods\' "10.244.0.0/16" of KubeControllerManagerConfiguration.KubeCloudShared.ClusterCIDR (f)',
  ],
  [
    'the cluster domain of a flag',
    [CLUSTER, `${INIT}nodeRegistration: {kubeletExtraArgs: [{name: cluster-domain, value: example.com}]}`],
    'd2 error: InitConfiguration.nodeRegistration.kubeletExtraArgs.cluster-domain: "example.com": does not agree with "cluster.local" of ClusterConfiguration.networking.dnsDomain (f)',
    'd2 warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --cluster-domain: is deprecated: should be clusterDomain of KubeletConfiguration',
  ],
  [
    'the same cluster domain in a flag',
    [CLUSTER, `${INIT}nodeRegistration: {kubeletExtraArgs: [{name: cluster-domain, value: cluster.local}]}`],
    'd2 warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --cluster-domain: is deprecated: should be clusterDomain of KubeletConfiguration',
  ],
  [
    'ranges of Nodes that nothing assigns',
    [CLUSTER, `${PROXY}detectLocalMode: NodeCIDR`],
    'd2 warning: KubeProxyConfiguration.detectLocalMode: "NodeCIDR": needs ranges of Nodes, and no podSubnet is given',
  ],
  [
    'ports of a node',
    [
      `${PROXY}clusterCIDR: 10.0.0.0/8\nhealthzBindAddress: 192.0.2.1:10250\nmetricsBindAddress: 127.0.0.1:10248`,
      `${KUBELET}readOnlyPort: 30001`,
      `${INIT}localAPIEndpoint: {bindPort: 10250}`,
      `${KUBELET}port: 0\nhealthzPort: 0`,
    ],
    'd2 error: KubeletConfiguration.port: "10250": is taken by "192.0.2.1:10250" of KubeProxyConfiguration.healthzBindAddress (f) on a node with both',
    'd2 error: KubeletConfiguration.healthzPort: "10248": is taken by "127.0.0.1:10248" of KubeProxyConfiguration.metricsBindAddress (f) on a node with both',
    'd2 error: KubeletConfiguration.readOnlyPort: "30001": is one of the node ports 30000-32767, which a Service may get',
    'd3 error: InitConfiguration.localAPIEndpoint.bindPort: "10250": is taken by "192.0.2.1:10250" of KubeProxyConfiguration.healthzBindAddress (f) on a node with both',
    'd4 error: KubeletConfiguration: is given twice in this file',
    'd4 error: KubeletConfiguration.port: "10250": is taken by "192.0.2.1:10250" of KubeProxyConfiguration.healthzBindAddress (f) on a node with both',
  ],
  [
    'node ports',
    [
      `${CLUSTER}apiServer: {extraArgs: [{name: service-node-port-range, value: 32000-33000}]}`,
      service('low', `clusterIP: 10.96.0.1, type: NodePort, ports: [{port: 80, nodePort: 31999}]`),
    ],
    'd1 warning: ClusterConfiguration.apiServer.extraArgs.service-node-port-range: "32000-33000": overlaps the ports that Linux gives to clients, 32768-60999',
    'd2 error: Service[default/low].spec: "31999": is no node port, as they are 32000-33000',
  ],
  [
    'node ports, by the first and how many there are',
    [
      `${CLUSTER}apiServer: {extraArgs: [{name: service-node-port-range, value: 20000+1000}]}`,
      service('high', `clusterIP: 10.96.0.1, type: NodePort, ports: [{port: 80, nodePort: 21001}]`),
      service('last', `clusterIP: 10.96.0.2, type: NodePort, ports: [{port: 80, nodePort: 21000}]`),
    ],
    'd2 error: Service[default/high].spec: "21001": is no node port, as they are 20000-21000',
  ],
  [
    'feature gates',
    [
      `${CLUSTER}featureGates: {RootlessControlPlane: true}\nscheduler: {extraArgs: [{name: feature-gates, value: "kube:MemoryQoS=false,WatchList=1"}]}`,
      `${KUBELET}featureGates: {MemoryQoS: true, WatchList: true}`,
    ],
    'd2 warning: KubeletConfiguration.featureGates.MemoryQoS: "true": does not agree with "false" of ClusterConfiguration.scheduler.extraArgs.feature-gates.MemoryQoS (f)',
  ],
  [
    'kernels of Nodes, of which the oldest counts',
    [
      `${PROXY}clusterCIDR: 10.0.0.0/8\nmode: nftables`,
      node('new', 'status: {nodeInfo: {operatingSystem: linux, kernelVersion: 6.1.0-18-amd64}}'),
      node('old', 'status: {nodeInfo: {operatingSystem: linux, kernelVersion: 4.18.0-553.el8}}'),
      node('older-than-that', 'status: {nodeInfo: {operatingSystem: windows, kernelVersion: 3.10.20348}}'),
      node('silent', 'status: {nodeInfo: [1]}'),
    ],
    'd1 error: KubeProxyConfiguration.mode: "nftables": needs Linux 5.13 or later (Node old has 4.18)',
  ],
  [
    'components of the control plane',
    [
      `${CLUSTER}apiServer: {extraArgs: [{name: anonymous-auth, value: "false"}, {name: enable-garbage-collector, value: "T"}]}\ncontrollerManager: {extraArgs: [{name: node-monitor-grace-period, value: 10s}]}`,
      `${MANAGER}NodeLifecycleController: {NodeMonitorGracePeriod: 40s}\nGarbageCollectorController: {EnableGarbageCollector: false}`,
      `${KUBELET}nodeStatusUpdateFrequency: 0s`,
      `${KUBELET}nodeStatusUpdateFrequency: 9s`,
      'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}',
      'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []',
      `${MANAGER}GarbageCollectorController: {EnableGarbageCollector: true}`,
    ],
    'd2 warning: KubeControllerManagerConfiguration.NodeLifecycleController.NodeMonitorGracePeriod: "40s": is not above 45s, the sum of the timeouts of HTTP/2 for pings (15s) and reading (30s)',
    'd4 error: KubeletConfiguration: is given twice in this file',
    'd3 error: KubeletConfiguration.nodeStatusUpdateFrequency: "10s": is not more often than "10s" of ClusterConfiguration.controllerManager.extraArgs.node-monitor-grace-period (f)',
    'd1 error: ClusterConfiguration.apiServer.extraArgs.anonymous-auth: "false": must not be given beside AuthenticationConfiguration.anonymous (f)',
    'd2 error: KubeControllerManagerConfiguration.GarbageCollectorController.EnableGarbageCollector: "false": does not agree with "T" of ClusterConfiguration.apiServer.extraArgs.enable-garbage-collector (f)',
  ],
  [
    'Services with the same addresses or ports, or those of a Node',
    [
      service('a', `clusterIP: 10.96.0.1, type: NodePort, ports: [{port: 80, nodePort: 30080}]`),
      service('b', `clusterIP: 10.96.0.1, ${ports}`),
      service(
        'c',
        `clusterIP: 10.96.0.3, type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30080, externalIPs: [192.0.2.7, 10.96.5.5], ports: [{port: 81, nodePort: 30081}]`,
        'status: {loadBalancer: {ingress: [{ip: 192.0.2.7}]}}',
      ),
      node('n1', 'status: {addresses: [{type: InternalIP, address: 192.0.2.7}]}'),
      `${CIDR}metadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/16]}`,
      service('a', `clusterIP: None`),
      service('d', `clusterIP: 10.96.0.4, type: LoadBalancer, loadBalancerSourceRanges: [127.0.0.0/8], ${ports}`),
      service(
        'e',
        `clusterIP: 10.96.0.5, type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30080, ${ports}`,
      ),
    ],
    'd2 error: Service[default/b].spec.clusterIPs: "10.96.0.1:80/TCP": belongs to default/a, as old as the other and first by name',
    'd3 error: Service[default/c].spec.healthCheckNodePort: "30080": is a node port of default/a already',
    'd3 error: Service[default/c].status.loadBalancer.ingress: "192.0.2.7": is an address of Node n1',
    'd3 error: Service[default/c].spec.externalIPs: "10.96.5.5": is within the range of Services 10.96.0.0/16',
    'd6 error: Service[default/a]: "a": is also in f, document 1',
    'd7 error: Service[default/d].spec.loadBalancerSourceRanges: "127.0.0.0/8": admit no client over IPv4: no packet comes from there',
    'd8 error: Service[default/e].spec.healthCheckNodePort: "30080": is a node port of default/a already',
  ],
];

for (const [name, documents, ...expected] of CASES) {
  t.test(`check compares documents: ${name}`, async (t) => {
    const { stdout, stderr, status } = await check(['f'], () => documents.join('\n---\n'));
    const lines = stdout.split('\n').filter((line) => line !== '');
    t.same(lines.map((line) => line.replace(/^f:\d+: document /, 'd').replace(': ', ' ')).sort(), [...expected].sort());
    t.equal(stderr, '');
    t.equal(status, expected.some((line) => line.includes(' error: ')) ? 1 : 0);
  });
}

t.test('check finds contradictions between files', async (t) => {
  const files = new Map([
    ['cluster', `${CLUSTER}networking: {podSubnet: 10.244.0.0/16}`],
    ['proxy', `${PROXY}clusterCIDR: 10.1.0.0/16`],
  ]);
  const read = (path: string): string => files.get(path) ?? '';
  t.equal((await check(['cluster'], read)).status, 0);
  t.equal((await check(['proxy'], read)).status, 0);
  t.match(await check(['proxy', 'cluster'], read), { status: 1, stdout: /^proxy:3: .*\(cluster\)\n$/ });
});

t.test('check compares nodes and clusters', async (t) => {
  const files: Record<string, string> = {
    nft: `${PROXY}mode: nftables\nnftables: {minSyncPeriod: 2s}\niptables: {minSyncPeriod: 9s}\n`,
    ipvs: `${PROXY}mode: ipvs\n`,
    manager:
      'apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\nEndpointSliceController: {EndpointUpdatesBatchPeriod: 1.5s}\n',
    kubeadm:
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrollerManager: {extraArgs: [{name: endpointslice-updates-batch-period, value: 4s}]}\n',
  };
  const reported = async (...argv: readonly string[]): Promise<string> =>
    (await check(argv, (path) => files[path] ?? '')).stdout
      .split('\n')
      .filter((line) => /--slo|Linux/.test(line))
      .join('\n');
  t.match(
    await reported('--kernel', '5.10.0-30-amd64', 'nft'),
    /^nft:\d+: .* error: KubeProxyConfiguration.mode: "nftables": needs Linux 5.13 or later \(--kernel 5.10\)$/,
  );
  t.match(await reported('--kernel', '5.15', 'ipvs'), /warning: .*have it loaded at boot/);
  for (const kernel of ['5.16', '6.1', '5.100']) t.equal(await reported('--kernel', kernel, 'nft'), '');
  t.notMatch(await reported('--kernel', '5.16', 'ipvs'), 'boot');
  files['node'] = node('old', 'status: {nodeInfo: {kernelVersion: 4.18.0}}');
  t.equal(await reported('--kernel', '6.1', 'nft', 'node'), '', 'what is given counts');
  t.equal(await reported('--slo', '3500ms', 'nft', 'manager'), '');
  t.equal(
    await reported('--slo', '3s', 'nft', 'manager'),
    'nft:4: document 1: error: KubeProxyConfiguration.nftables.minSyncPeriod: "2s": adds up with "1.5s" of KubeControllerManagerConfiguration.EndpointSliceController.EndpointUpdatesBatchPeriod (manager) to 3.5s, more than the 3s of --slo',
  );
  t.match(
    await reported('--slo', '5s', 'kubeadm', 'nft', 'manager'),
    'adds up with "4s" of ClusterConfiguration.controllerManager.extraArgs',
  );
  t.match(await reported('--slo', '1s', 'manager'), 'EndpointUpdatesBatchPeriod: "1.5s": is more than the 1s of --slo');
  t.match(await reported('--slo', '1s', 'nft'), 'minSyncPeriod: "2s": is more than the 1s of --slo');
  for (const argv of [
    ['--kernel', 'new'],
    ['--slo', '5'],
  ])
    t.match(await check([...argv, 'nft']), { status: 2, stderr: /^--(?:kernel|slo): "\w+": must be / });
});
