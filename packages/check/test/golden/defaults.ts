/** Documents with all the fields that kubeadm writes of its own accord, and what kind and others add: of none is anything to be said. */

const TIMEOUTS =
  'timeouts: {controlPlaneComponentHealthCheck: 4m0s, discovery: 5m0s, etcdAPICall: 2m0s, kubeletHealthCheck: 4m0s, kubernetesAPICall: 1m0s, tlsBootstrap: 5m0s, upgradeManifests: 5m0s}';
const NODE = `nodeRegistration:
  criSocket: unix:///var/run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  name: node
  taints: null`;

export const INIT = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- groups: [system:bootstrappers:kubeadm:default-node-token]
  token: abcdef.0123456789abcdef
  ttl: 24h0m0s
  usages: [signing, authentication]
localAPIEndpoint:
  advertiseAddress: 192.0.2.1
  bindPort: 6443
${NODE}
  imagePullSerial: true
${TIMEOUTS}
`;

export const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
apiServer: {}
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kubernetesVersion: 1.36.0
networking:
  dnsDomain: cluster.local
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler: {}
`;

/** As a node agent's own types write it: what is unset is zero. */
export const KUBELET = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
`;

/** As a proxy's own types write it. */
export const PROXY = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: ""
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
  tcpBeLiberal: false
  tcpCloseWaitTimeout: null
  tcpEstablishedTimeout: null
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal: {bridgeInterface: "", interfaceNamePrefix: ""}
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}
  verbosity: 0
metricsBindAddress: ""
mode: ""
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: "", rootHnsEndpointName: "", sourceVip: ""}
`;

export const JOIN = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
caCertPath: /etc/kubernetes/pki/ca.crt
discovery:
  bootstrapToken:
    apiServerEndpoint: kube-apiserver:6443
    token: abcdef.0123456789abcdef
    unsafeSkipCAVerification: true
  tlsBootstrapToken: abcdef.0123456789abcdef
${NODE}
  imagePullSerial: true
${TIMEOUTS}
`;

export const RESET = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ResetConfiguration
certificatesDir: /etc/kubernetes/pki
criSocket: unix:///var/run/containerd/containerd.sock
${TIMEOUTS}
`;

export const UPGRADE = `apiVersion: kubeadm.k8s.io/v1beta4
kind: UpgradeConfiguration
apply: {certificateRenewal: true, etcdUpgrade: true, imagePullPolicy: IfNotPresent, imagePullSerial: true}
diff: {}
node: {certificateRenewal: true, etcdUpgrade: true, imagePullPolicy: IfNotPresent, imagePullSerial: true}
plan: {etcdUpgrade: true}
${TIMEOUTS}
`;

/** What kubeadm keeps in the cluster, by ConfigMap and key. */
export const CONFIG_MAPS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'kubeadm-config': {
    ClusterConfiguration: CLUSTER.replace('networking:\n', 'networking:\n  podSubnet: 10.244.0.0/16\n'),
  },
  'kube-proxy': {
    'config.conf': PROXY.replace('clusterCIDR: ""', 'clusterCIDR: 10.244.0.0/16'),
    'kubeconfig.conf': `apiVersion: v1
kind: Config
clusters:
- name: default
  cluster: {certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt, server: "https://192.0.2.1:6443"}
contexts:
- name: default
  context: {cluster: default, namespace: default, user: default}
current-context: default
users:
- name: default
  user: {tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}`,
  },
  'kubelet-config': { kubelet: KUBELET },
};

/** Of before v1beta4. */
export const OLD = `apiVersion: kubeadm.k8s.io/v1beta3
kind: InitConfiguration
bootstrapTokens: [{groups: [system:bootstrappers:kubeadm:default-node-token], token: abcdef.0123456789abcdef, ttl: 24h0m0s, usages: [signing, authentication]}]
localAPIEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6443}
${NODE}
---
apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
apiServer: {extraArgs: {authorization-mode: "Node,RBAC"}, timeoutForControlPlane: 4m0s}
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controllerManager: {}
dns: {}
etcd: {local: {dataDir: /var/lib/etcd}}
imageRepository: registry.k8s.io
kubernetesVersion: v1.30.0
networking: {dnsDomain: cluster.local, podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}
scheduler: {}
`;

/** Of clusters in containers, with a proxy that leaves the host's own limits alone. */
export const IN_CONTAINERS = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.0
clusterName: kind
controlPlaneEndpoint: kind-control-plane:6443
apiServer: {certSANs: [localhost, 127.0.0.1], extraArgs: [{name: runtime-config, value: ""}]}
controllerManager: {extraArgs: [{name: enable-hostpath-provisioner, value: "true"}]}
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
localAPIEndpoint: {advertiseAddress: 172.18.0.2, bindPort: 6443}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock", kubeletExtraArgs: [{name: node-ip, value: 172.18.0.2}, {name: node-labels, value: ""}]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
cgroupRoot: /kubelet
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
iptables: {minSyncPeriod: 1s}
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`;

/** With arguments for everything, and a cluster of stacked and of external stores. */
export const WITH_ARGUMENTS = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: cluster.local
encryptionAlgorithm: RSA-2048
etcd: {external: {endpoints: ["https://192.0.2.2:2379"], caFile: /etc/ssl/etcd/ssl/ca.pem, certFile: /etc/ssl/etcd/ssl/node-a.pem, keyFile: /etc/ssl/etcd/ssl/node-a-key.pem}}
dns: {imageRepository: registry.k8s.io/coredns, imageTag: v1.12.0}
networking: {dnsDomain: cluster.local, serviceSubnet: 10.233.0.0/18, podSubnet: 10.233.64.0/18}
kubernetesVersion: v1.36.0
controlPlaneEndpoint: 192.0.2.1:6443
certificatesDir: /etc/kubernetes/ssl
imageRepository: registry.k8s.io
apiServer:
  extraArgs: [{name: authorization-mode, value: "Node,RBAC"}, {name: service-node-port-range, value: 30000-32767}, {name: service-cluster-ip-range, value: 10.233.0.0/18}]
  certSANs: [kubernetes, kubernetes.default.svc.cluster.local, 10.233.0.1, 127.0.0.1, "::1"]
controllerManager:
  extraArgs: [{name: node-monitor-grace-period, value: 40s}, {name: cluster-cidr, value: 10.233.64.0/18}, {name: service-cluster-ip-range, value: 10.233.0.0/18}, {name: node-cidr-mask-size-ipv4, value: "24"}]
scheduler: {extraVolumes: [{name: kubescheduler-config, hostPath: /etc/kubernetes/kubescheduler-config.yaml, mountPath: /etc/kubernetes/kubescheduler-config.yaml, readOnly: true}]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
clusterDNS: [169.254.25.10]
clusterDomain: cluster.local
enforceNodeAllocatable: [pods]
nodeStatusUpdateFrequency: 10s
readOnlyPort: 0
resolvConf: /run/systemd/resolve/resolv.conf
tlsMinVersion: VersionTLS12
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
clientConnection: {acceptContentTypes: null, burst: 10, contentType: application/vnd.kubernetes.protobuf, kubeconfig: null, qps: 5}
clusterCIDR: 10.233.64.0/18
configSyncPeriod: 15m0s
conntrack: {maxPerCore: 32768, min: 131072, tcpCloseWaitTimeout: 1h0m0s, tcpEstablishedTimeout: 24h0m0s}
enableProfiling: false
healthzBindAddress: 0.0.0.0:10256
hostnameOverride: node-a
iptables: {masqueradeAll: false, masqueradeBit: 14, minSyncPeriod: 0s, syncPeriod: 30s}
ipvs: {excludeCIDRs: [], minSyncPeriod: 0s, scheduler: rr, strictARP: true, syncPeriod: 30s, tcpTimeout: 0s, tcpFinTimeout: 0s, udpTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
mode: ipvs
nodePortAddresses: []
oomScoreAdj: -999
portRange: ""
`;
