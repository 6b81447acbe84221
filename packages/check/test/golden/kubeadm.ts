import { SECRET, type Golden } from './golden.js';

const apiVersion = 'kubeadm.k8s.io/v1beta4';
const TOKEN = 'abcdef.0123456789abcdef';
const HASH = `sha256:${'0a'.repeat(32)}`;
const DISCOVERY = `discovery: {bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: 'cp.example:6443', caCertHashes: ['${HASH}']}}`;

const INIT = 'InitConfiguration';
const CLUSTER = 'ClusterConfiguration';
const JOIN = 'JoinConfiguration';
const RESET = 'ResetConfiguration';
const UPGRADE = 'UpgradeConfiguration';

export const KUBEADM: readonly Golden[] = [
  {
    apiVersion,
    kind: CLUSTER,
    right: [
      'etcd: {external: {endpoints: ["https://e:2379"], httpEndpoints: ["http://e:2378"], caFile: /c, certFile: /a, keyFile: /b}}\nnetworking: {serviceSubnet: 10.96.0.0/12, podSubnet: "10.244.0.0/16,fd00::/48"}\nfeatureGates: {NodeLocalCRISocket: true}\nkubernetesVersion: stable-1.36\napiServer: {certSANs: ["*.example.com", 192.0.2.1]}\nimageRepository: registry:5000/team',
      'networking: {podSubnet: 12.0.0.0/6}\ncontrollerManager: {extraArgs: [{name: allocate-node-cidrs, value: "false"}]}',
      'networking: {podSubnet: 12.0.0.0/6}\ncontrollerManager: {extraArgs: [{name: node-cidr-mask-size-ipv4, value: "22"}]}',
    ],
    wrong: [
      [
        'controlPlaneEndpoint: CP.example:6443',
        'error: ClusterConfiguration.controlPlaneEndpoint: "CP.example:6443": cannot be read: should be a host name or an IP address, maybe with a port',
      ],
      [
        'networking: {serviceSubnet: 10.0.0.0/8, podSubnet: 10.0.0.0/7}\nkubernetesVersion: abc\nfeatureGates: {IPv6DualStack: true}\ncertificateValidityPeriod: 2h\ncaCertificateValidityPeriod: 1h',
        'error: ClusterConfiguration.kubernetesVersion: "abc": cannot be read: should be a version such as v1.31.0, or a label such as stable-1',
        'error: ClusterConfiguration.networking.serviceSubnet: "10.0.0.0/8": is too large: should be a prefix of at least 12',
        'error: ClusterConfiguration.networking.podSubnet: "10.0.0.0/7": is too large: should be a prefix of at least 8 for nodes\' 24',
        'error: ClusterConfiguration.featureGates.IPv6DualStack: true: is no feature gate of kubeadm',
        'warning: ClusterConfiguration.certificateValidityPeriod: "2h": is above caCertificateValidityPeriod',
        'error: ClusterConfiguration.networking.podSubnet: "10.0.0.0/7": overlaps the Services\' "10.0.0.0/8" of ClusterConfiguration.networking.serviceSubnet (f.yaml)',
      ],
      [
        'networking: {serviceSubnet: 10.96.0.0/30, podSubnet: 10.244.0.0/30}\nimageRepository: "a b"\napiServer: {certSANs: ["a b"]}',
        'error: ClusterConfiguration.apiServer.certSANs[0]: "a b": cannot be read: should be a DNS name, which may begin with *., or an IP address',
        'error: ClusterConfiguration.imageRepository: "a b": cannot be read: should be a repository of images, such as registry.example/team',
        'error: ClusterConfiguration.networking.serviceSubnet: "10.96.0.0/30": is too small: should be at least 16 addresses',
        'error: ClusterConfiguration.networking.podSubnet: "10.244.0.0/30": has no room for a node, whose prefix is 24',
      ],
      [
        'etcd: {external: {endpoints: ["https://a:2379", "http://b:2379"], certFile: /a, keyFile: /b}}',
        'error: ClusterConfiguration.etcd.external.certFile: "/a": needs caFile beside it',
        'error: ClusterConfiguration.etcd.external.endpoints[1]: must begin with https:// beside certificates',
      ],
    ],
  },
  {
    apiVersion,
    kind: INIT,
    right: [
      'nodeRegistration: {name: Node-A}',
      'nodeRegistration: {kubeletExtraArgs: [{name: node-ip, value: "192.0.2.1,2001:db8::1"}, {name: v, value: "4"}, {name: node-labels, value: "a=b,c="}, {name: feature-gates, value: "WatchList=true"}, {name: cloud-provider, value: external}]}',
    ],
    wrong: [
      [
        'nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: many}, {name: node-ip, value: here}, {name: maxpods, value: "1"}, {name: eviction-hard, value: "memory.available<0"}, {name: feature-gates, value: "A"}, {name: fail-cgroupv1, value: "no"}, {name: oom-score-adj, value: "-1001"}]}',
        'warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --max-pods: is deprecated: should be maxPods of KubeletConfiguration',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --max-pods: "many" has the wrong type: should be an integer of at least 0',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[1].value: --node-ip: "here" cannot be read: should be an IP address that other machines reach, or one of each family with a comma between',
        'warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[2].value: "maxpods" is a flag that is not known here',
        'warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[3].value: --eviction-hard: is deprecated: should be evictionHard of KubeletConfiguration',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[3].value: --eviction-hard: "memory.available<0" cannot be read: should be a quantity above 0, or from 0% to 100%',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[4].value: --feature-gates: "A" has the wrong type: should be a mapping',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[5].value: --fail-cgroupv1: "no" has the wrong type: should be true or false',
        'warning: InitConfiguration.nodeRegistration.kubeletExtraArgs[6].value: --oom-score-adj: is deprecated: should be oomScoreAdj of KubeletConfiguration',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[6].value: --oom-score-adj: "-1001" is out of range: should be an integer from -1000 to 1000',
      ],
      [
        'bootstrapTokens: [{token: abcdef.0123456789abcdef, usages: [signing], groups: ["system:bootstrappers:a"]}]',
        'error: InitConfiguration.bootstrapTokens[0].groups: needs authentication among usages',
      ],
    ],
  },
  {
    apiVersion,
    kind: JOIN,
    right: [
      'discovery: {file: {kubeConfigPath: "https://a/b"}}',
      DISCOVERY.replace('cp.example:6443', 'CP.example:6443'),
    ],
    wrong: [
      [
        'discovery: {file: {kubeConfigPath: "http://a/b"}}',
        'error: JoinConfiguration.discovery.file.kubeConfigPath: "http://a/b": cannot be read: should be a path, or a URL that begins with https://',
      ],
    ],
  },
  {
    apiVersion,
    kind: JOIN,
    right: [],
    wrong: [
      [
        `discovery: {file: {kubeConfigPath: /a}, tlsBootstrapToken: ${SECRET}}`,
        'error: JoinConfiguration.discovery.tlsBootstrapToken: cannot be read: should be 6 characters of a-z and 0-9, a dot, and 16 more',
      ],
    ],
  },
  {
    apiVersion,
    kind: INIT,
    right: [],
    wrong: [
      [
        `bootstrapTokens: [{token: ${TOKEN}, usages: [signing]}]`,
        'error: InitConfiguration.bootstrapTokens[0].usages: needs authentication, as kubeadm gives tokens a group',
      ],
      [
        'nodeRegistration: {kubeletExtraArgs: [{name: feature-gates, value: "WatchList=true,kube:NoSuch=true,AnyVolumeDataSource=false"}]}',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --feature-gates: "NoSuch" is no feature gate of Kubernetes 1.36',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --feature-gates: "AnyVolumeDataSource" cannot be set: it is always true',
      ],
    ],
  },
  {
    apiVersion,
    kind: CLUSTER,
    right: [
      'apiServer: {extraArgs: [{name: authorization-mode, value: "Node,RBAC"}, {name: service-node-port-range, value: 30000-32767}, {name: goaway-chance, value: "1e-3"}, {name: event-ttl, value: 1h0m0s}, {name: etcd-servers, value: "https://127.0.0.1:2379"}, {name: feature-gates, value: "kube:WatchList=true"}, {name: service-cluster-ip-range, value: 10.96.0.0/12}, {name: max-requests-inflight, value: "0x190"}]}\ncontrollerManager: {extraArgs: [{name: concurrent_rc_syncs, value: "5"}, {name: node-eviction-rate, value: ".1"}, {name: leader-elect, value: "T"}]}\nscheduler: {extraArgs: [{name: leader-elect-lease-duration, value: 30s}, {name: v, value: "+2"}, {name: config, value: /etc/scheduler.yaml}]}',
    ],
    wrong: [
      [
        'apiServer: {extraArgs: [{name: authorization-mode, value: "Node,rbac"}, {name: service-node-port-range, value: 32767-30000}, {name: goaway-chance, value: "0.5"}, {name: anonymous-auth, value: maybe}, {name: event-ttl, value: "60"}, {name: advertise-address, value: here}, {name: kubelet-port, value: "10250"}, {name: request-timeut, value: 1m}, {name: secure-port, value: "0"}, {name: service-cluster-ip-range, value: 10.96.0.0}, {name: max-requests-inflight, value: "1e3"}, {name: max-connection-bytes-per-sec, value: "9223372036854775808"}, {name: oidc-required-claim, value: a}, {name: audit-log-batch-throttle-qps, value: "0x10"}]}',
        'error: ClusterConfiguration.apiServer.extraArgs[0].value: --authorization-mode: "Node,rbac" has the wrong case: should be "RBAC"',
        'error: ClusterConfiguration.apiServer.extraArgs: has authorization-mode "Node,rbac" without RBAC',
        'error: ClusterConfiguration.apiServer.extraArgs[1].value: --service-node-port-range: "32767-30000" cannot be read: should be ports such as "30000-32767", or one and how many more',
        'error: ClusterConfiguration.apiServer.extraArgs[2].value: --goaway-chance: "0.5" is out of range: should be a number from 0 to 0.02',
        'error: ClusterConfiguration.apiServer.extraArgs[3].value: --anonymous-auth: "maybe" has the wrong type: should be true or false',
        'error: ClusterConfiguration.apiServer.extraArgs[4].value: --event-ttl: "60" cannot be read: should be a duration such as "30s", "1h5m" or "500ms"',
        'error: ClusterConfiguration.apiServer.extraArgs[5].value: --advertise-address: "here" cannot be read: should be an IP address',
        'warning: ClusterConfiguration.apiServer.extraArgs[6].value: --kubelet-port: is deprecated',
        'warning: ClusterConfiguration.apiServer.extraArgs[7].value: "request-timeut" is a flag that is not known here',
        'error: ClusterConfiguration.apiServer.extraArgs[8].value: --secure-port: "0" is out of range: should be an integer from 1 to 65535',
        'error: ClusterConfiguration.apiServer.extraArgs[10].value: --max-requests-inflight: "1e3" has the wrong type: should be an integer',
        'error: ClusterConfiguration.apiServer.extraArgs[11].value: --max-connection-bytes-per-sec: "9223372036854775808" has the wrong type: should be an integer of 64 bits',
        'error: ClusterConfiguration.apiServer.extraArgs[12].value: --oidc-required-claim: "a" has the wrong type: should be a mapping',
        'error: ClusterConfiguration.apiServer.extraArgs[13].value: --audit-log-batch-throttle-qps: "0x10" has the wrong type: should be a number',
        'error: ClusterConfiguration.apiServer.extraArgs[9].value: --service-cluster-ip-range: "10.96.0.0" cannot be read: should be a CIDR, or one of each IP family with a comma between',
      ],
      [
        'controllerManager: {extraArgs: [{name: concurrent-gc-syncs, value: "0"}, {name: max-endpoints-per-slice, value: "1001"}, {name: node-monitor-grace-period, value: soon}, {name: cluster-cidr, value: pods}, {name: node-sync-period, value: 1s}, {name: allocate-node-cidrs, value: "yes"}, {name: cidr-allocator-type, value: CloudAllocator}]}\nscheduler: {extraArgs: [{name: leader-elect-lease-duration, value: 0s}, {name: kube-api-qps, value: fast}, {name: feature-gates, value: "NoSuch=true,GangScheduling=true"}]}',
        'error: ClusterConfiguration.controllerManager.extraArgs[0].value: --concurrent-gc-syncs: "0" is out of range: should be an integer of at least 1',
        'error: ClusterConfiguration.controllerManager.extraArgs[1].value: --max-endpoints-per-slice: "1001" is out of range: should be an integer from 1 to 1000',
        'error: ClusterConfiguration.controllerManager.extraArgs[2].value: --node-monitor-grace-period: "soon" cannot be read: should be a duration of at least 0s',
        'error: ClusterConfiguration.controllerManager.extraArgs[3].value: --cluster-cidr: "pods" cannot be read: should be a CIDR, or one of each IP family with a comma between',
        'warning: ClusterConfiguration.controllerManager.extraArgs[4].value: --node-sync-period: is deprecated: should be nothing: it has no effect',
        'error: ClusterConfiguration.controllerManager.extraArgs[5].value: --allocate-node-cidrs: "yes" has the wrong type: should be true or false',
        'error: ClusterConfiguration.controllerManager.extraArgs[6].value: --cidr-allocator-type: "CloudAllocator" is not known: should be "RangeAllocator"',
        'error: ClusterConfiguration.scheduler.extraArgs[0].value: --leader-elect-lease-duration: "0s" cannot be read: should be a duration above 0s',
        'error: ClusterConfiguration.scheduler.extraArgs[1].value: --kube-api-qps: "fast" has the wrong type: should be a number',
        'error: ClusterConfiguration.scheduler.extraArgs[2].value: --feature-gates: "NoSuch" is no feature gate of Kubernetes 1.36',
        'error: ClusterConfiguration.scheduler.extraArgs[2].value: --feature-gates: "GangScheduling" needs GenericWorkload, which is off',
      ],
      [
        'apiServer: {extraEnvs: [{name: A, valueFrom: {x: 1}}, {name: B, valueFrom: {secretKeyRef: {name: a}}}]}',
        'error: ClusterConfiguration.apiServer.extraEnvs[0].valueFrom.x: is an unknown field',
        'error: ClusterConfiguration.apiServer.extraEnvs[1].valueFrom.secretKeyRef.key: is missing: should be text',
      ],
    ],
  },
  {
    apiVersion,
    kind: UPGRADE,
    right: [],
    wrong: [
      [
        'node: {patches: {}}',
        'error: UpgradeConfiguration.node.patches.directory: is missing: should be an absolute path',
      ],
      [
        'apply: {patches: {directory: patches}}',
        'error: UpgradeConfiguration.apply.patches.directory: "patches": cannot be read: should be an absolute path',
      ],
    ],
  },
  {
    apiVersion,
    kind: INIT,
    right: [
      '',
      `bootstrapTokens: [{token: ${TOKEN}, ttl: 24h0m0s, usages: [signing, authentication], groups: ['system:bootstrappers:kubeadm:default-node-token'], description: x}]
dryRun: true
nodeRegistration: {name: node-1, criSocket: 'unix:///run/containerd/containerd.sock', taints: [], kubeletExtraArgs: [{name: v, value: "5"}], ignorePreflightErrors: [Swap], imagePullPolicy: Always, imagePullSerial: true}
localAPIEndpoint: {advertiseAddress: 192.0.2.1, bindPort: 6443}
certificateKey: ${'0f'.repeat(32)}
skipPhases: [addon/kube-proxy]
patches: {directory: /etc/patches}
timeouts: {controlPlaneComponentHealthCheck: 4m0s, kubeletHealthCheck: 4m, kubernetesAPICall: 1m, etcdAPICall: 2m, tlsBootstrap: 5m, discovery: 5m, upgradeManifests: 5m}`,
      'localAPIEndpoint: {bindPort: 0}',
    ],
    wrong: [
      [
        `bootstrapTokens: [{token: ${SECRET}}, {token: ${TOKEN}, ttl: 1h, expires: "2030-01-01T00:00:00Z", usages: [sign], groups: [masters]}, ${SECRET}]\ncertificateKey: ${SECRET}`,
        `error: ${INIT}.bootstrapTokens[0].token: cannot be read: should be 6 characters of a-z and 0-9, a dot, and 16 more`,
        `error: ${INIT}.bootstrapTokens[1].usages[0]: "sign": is not known: should be "signing" or "authentication"`,
        `error: ${INIT}.bootstrapTokens[1].groups[0]: "masters": cannot be read: should be a group that begins with system:bootstrappers:`,
        `error: ${INIT}.bootstrapTokens[1].expires: "2030-01-01T00:00:00Z": must not be given beside ttl`,
        `error: ${INIT}.bootstrapTokens[2]: has the wrong type, text: should be a mapping`,
        `error: ${INIT}.certificateKey: cannot be read: should be 32 bytes in hexadecimal digits`,
      ],
      [
        'nodeRegistration: {name: Node_1, criSocket: run/x.sock, taints: [{key: a, effect: noschedule}, {}], kubeletExtraArgs: {v: "5"}, ignorePreflightErrors: [all, Swap], imagePullPolicy: ifnotpresent}\nlocalAPIEndpoint: {advertiseAddress: localhost, bindPort: 65536}\ntimeouts: {discovery: -5m, Discovery: 5m}',
        `error: ${INIT}.nodeRegistration.taints[1].effect: is missing: should be "NoSchedule" or "PreferNoSchedule" or "NoExecute"`,
        `error: ${INIT}.nodeRegistration.name: "Node_1": cannot be read: should be a DNS name`,
        `error: ${INIT}.nodeRegistration.criSocket: "run/x.sock": cannot be read: should be a socket such as unix:///run/x.sock`,
        `error: ${INIT}.nodeRegistration.taints[0].effect: "noschedule": has the wrong case: should be "NoSchedule"`,
        `error: ${INIT}.nodeRegistration.taints[1].key: is missing: should be a name of a label, such as "example.com/role"`,
        `error: ${INIT}.nodeRegistration.kubeletExtraArgs: has the wrong type, a mapping: should be a list`,
        `error: ${INIT}.nodeRegistration.ignorePreflightErrors: has all beside others`,
        `error: ${INIT}.nodeRegistration.imagePullPolicy: "ifnotpresent": has the wrong case: should be "IfNotPresent"`,
        `error: ${INIT}.localAPIEndpoint.advertiseAddress: "localhost": cannot be read: should be an IP address`,
        `error: ${INIT}.localAPIEndpoint.bindPort: 65536: is out of range: should be an integer from 1 to 65535`,
        `error: ${INIT}.timeouts.discovery: "-5m": cannot be read: should be a duration of at least 0s`,
        `error: ${INIT}.timeouts.Discovery: has the wrong case: should be discovery`,
      ],
      [
        'nodeRegistration: {criSocket: /run/x.sock, taints: "", ignorePreflightErrors: ""}\nlocalAPIEndpoint: {bindPort: ""}\ntimeouts: {discovery: ""}\ndryRun: ""',
        `warning: ${INIT}.nodeRegistration.criSocket: "/run/x.sock": has no scheme: kubeadm adds it, and warns: should be "unix:///run/x.sock"`,
        `error: ${INIT}.nodeRegistration.taints: "": has the wrong type: should be a list`,
        `error: ${INIT}.nodeRegistration.ignorePreflightErrors: "": has the wrong type: should be a list`,
        `error: ${INIT}.localAPIEndpoint.bindPort: "": has the wrong type: should be an integer from 1 to 65535`,
        `error: ${INIT}.timeouts.discovery: "": cannot be read: should be a duration of at least 0s`,
        `error: ${INIT}.dryRun: "": has the wrong type: should be true or false`,
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    kind: INIT,
    right: [],
    wrong: [
      [
        'dryRun: true\nnodeRegistration: {imagePullSerial: true, kubeletExtraArgs: {v: 5}}\ntimeouts: {}',
        `warning: ${INIT}.apiVersion: "kubeadm.k8s.io/v1beta3": is deprecated since Kubernetes 1.31`,
        `error: ${INIT}.dryRun: is no field of v1beta3: should be used in v1beta4`,
        `error: ${INIT}.nodeRegistration.imagePullSerial: is no field of v1beta3: should be used in v1beta4`,
        `error: ${INIT}.nodeRegistration.kubeletExtraArgs.v: 5: has the wrong type: should be text`,
        `error: ${INIT}.timeouts: is no field of v1beta3: should be used in v1beta4`,
      ],
    ],
  },
  {
    apiVersion,
    kind: CLUSTER,
    right: [
      `kubernetesVersion: v1.36.0
clusterName: kubernetes
controlPlaneEndpoint: cp.example:6443
networking: {serviceSubnet: '10.96.0.0/16,fd00:1::/112', podSubnet: '10.244.0.0/16,fd00:2::/56', dnsDomain: cluster.local}
etcd: {local: {dataDir: /var/lib/etcd, imageTag: 3.5.0, extraArgs: [{name: a, value: b}], extraEnvs: [{name: A, value: b}], serverCertSANs: [etcd.example], peerCertSANs: [192.0.2.1]}}
apiServer: {certSANs: [cp.example], extraVolumes: [{name: a, hostPath: /a, mountPath: /a, readOnly: true, pathType: File}]}
controllerManager: {extraEnvs: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: B, valueFrom: {secretKeyRef: {name: a, key: b, optional: true}}}, {name: C, valueFrom: {configMapKeyRef: {name: a, key: b}}}, {name: D, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}, {name: E, valueFrom: {fileKeyRef: {volumeName: a, path: b, key: c}}}]}
scheduler: {}
dns: {disabled: true}
proxy: {disabled: false}
certificatesDir: /etc/kubernetes/pki
imageRepository: registry.k8s.io
featureGates: {RootlessControlPlane: true}
encryptionAlgorithm: ECDSA-P256
certificateValidityPeriod: 8760h
caCertificateValidityPeriod: 87600h`,
    ],
    wrong: [
      [
        'networking: {serviceSubnet: "10.96.0.0/16,10.97.0.0/16", podSubnet: 10.244.0.0, dnsDomain: Cluster_Local}\netcd: {local: {dataDir: data}, external: {endpoints: [], certFile: /x, caFile: /c}}\nfeatureGates: {PublicKeysECDSA: "true"}\nkubernetesVersion: 1',
        `error: ${CLUSTER}.networking.serviceSubnet: "10.96.0.0/16,10.97.0.0/16": cannot be read: should be a CIDR, or one of each IP family with a comma between`,
        `error: ${CLUSTER}.networking.podSubnet: "10.244.0.0": cannot be read: should be a CIDR, or one of each IP family with a comma between`,
        `error: ${CLUSTER}.networking.dnsDomain: "Cluster_Local": cannot be read: should be a DNS name: labels of a-z, 0-9 and "-" with dots between`,
        `error: ${CLUSTER}.etcd.local.dataDir: "data": cannot be read: should be an absolute path`,
        `error: ${CLUSTER}.etcd.external.endpoints: is empty: should be a list of at least 1`,
        `error: ${CLUSTER}.etcd.external.certFile: "/x": needs keyFile beside it`,
        `error: ${CLUSTER}.etcd.external: must not be given beside local`,
        `error: ${CLUSTER}.featureGates.PublicKeysECDSA: "true": has the wrong type: should be true or false`,
        `error: ${CLUSTER}.kubernetesVersion: 1: has the wrong type: should be a version such as v1.31.0, or a label such as stable-1`,
      ],
      [
        `scheduler: {extraEnvs: [{name: A, value: ${SECRET}, valueFrom: {}}]}`,
        `error: ${CLUSTER}.scheduler.extraEnvs[0].valueFrom: must not be given beside value`,
      ],
      [
        `etcd: {external: {endpoints: [etcd], keyFile: /x}}\napiServer: {timeoutForControlPlane: 4m, extraEnvs: [{name: A, value: [${SECRET}]}, {value: ${SECRET}}], extraVolumes: [{pathType: file}]}\nencryptionAlgorithm: RSA-1024\ncertificateValidityPeriod: 0s\ncontrolPlaneEndpoint: a b`,
        `error: ${CLUSTER}.etcd.external.endpoints[0]: "etcd": cannot be read: should be a URL that begins with http:// or https://`,
        `error: ${CLUSTER}.etcd.external.keyFile: "/x": needs certFile beside it`,
        `error: ${CLUSTER}.apiServer.timeoutForControlPlane: is no field of v1beta4: should be timeouts.controlPlaneComponentHealthCheck of v1beta4`,
        `error: ${CLUSTER}.apiServer.extraEnvs[0].value: has the wrong type, a list: should be text`,
        `error: ${CLUSTER}.apiServer.extraEnvs[1].name: is missing: should be text`,
        `error: ${CLUSTER}.apiServer.extraVolumes[0].name: is missing: should be text`,
        `error: ${CLUSTER}.apiServer.extraVolumes[0].hostPath: is missing: should be text`,
        `error: ${CLUSTER}.apiServer.extraVolumes[0].mountPath: is missing: should be text`,
        `error: ${CLUSTER}.apiServer.extraVolumes[0].pathType: "file": has the wrong case: should be "File"`,
        `error: ${CLUSTER}.encryptionAlgorithm: "RSA-1024": is not known: should be "RSA-2048" or "RSA-3072" or "RSA-4096" or "ECDSA-P256" or "ECDSA-P384"`,
        `error: ${CLUSTER}.certificateValidityPeriod: "0s": cannot be read: should be a duration above 0s`,
        `error: ${CLUSTER}.controlPlaneEndpoint: "a b": cannot be read: should be a host name or an IP address, maybe with a port`,
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    kind: CLUSTER,
    release: 30,
    right: [
      'apiServer: {extraArgs: {authorization-mode: "Node,RBAC"}, timeoutForControlPlane: 4m0s}\netcd: {external: {endpoints: ["https://e:2379"], caFile: /c, certFile: /a, keyFile: /b}}',
    ],
    wrong: [
      [
        'apiServer: {extraArgs: {anonymous-auth: maybe}}\ncontrollerManager: {extraArgs: {cluster-cidr: pods}}\nscheduler: {extraArgs: {leader-elect: "2"}}',
        'error: ClusterConfiguration.apiServer.extraArgs.anonymous-auth: --anonymous-auth: "maybe" has the wrong type: should be true or false',
        'error: ClusterConfiguration.controllerManager.extraArgs.cluster-cidr: --cluster-cidr: "pods" cannot be read: should be a CIDR, or one of each IP family with a comma between',
        'error: ClusterConfiguration.scheduler.extraArgs.leader-elect: --leader-elect: "2" has the wrong type: should be true or false',
      ],
      [
        'etcd: {local: {dataDir: /a}, external: {endpoints: ["https://e:2379"], certFile: /a}}',
        `error: ${CLUSTER}.etcd.external.certFile: "/a": needs caFile beside it`,
        `error: ${CLUSTER}.etcd.external.certFile: "/a": needs keyFile beside it`,
        `error: ${CLUSTER}.etcd.external: must not be given beside local`,
      ],
      [
        'etcd: {external: {endpoints: ["https://e:2379"], keyFile: /a}}\nproxy: {disabled: true}',
        `error: ${CLUSTER}.etcd.external.keyFile: "/a": needs certFile beside it`,
        `error: ${CLUSTER}.proxy: is no field of v1beta3: should be used in v1beta4`,
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    kind: INIT,
    release: 30,
    right: ['nodeRegistration: {kubeletExtraArgs: {v: "5"}}'],
    wrong: [
      [
        'nodeRegistration: {kubeletExtraArgs: {"": "5"}}',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs.: has no name',
      ],
      [
        'nodeRegistration: {ignorePreflightErrors: [a, all]}',
        `error: ${INIT}.nodeRegistration.ignorePreflightErrors: has all beside others`,
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    kind: JOIN,
    release: 30,
    right: [DISCOVERY.replace('discovery: {', 'discovery: {timeout: 5m, ')],
    wrong: [
      [
        `${DISCOVERY}\nnodeRegistration: {ignorePreflightErrors: [a, all]}`,
        `error: ${JOIN}.nodeRegistration.ignorePreflightErrors: has all beside others`,
      ],
    ],
  },
  {
    apiVersion,
    kind: JOIN,
    right: [
      DISCOVERY,
      'discovery: {file: {kubeConfigPath: /etc/kubeconfig}, tlsBootstrapToken: abcdef.0123456789abcdef}\ncontrolPlane: {localAPIEndpoint: {bindPort: 6444}}\ncaCertPath: /etc/ca.crt\ndryRun: false',
    ],
    wrong: [
      [
        `${DISCOVERY}\nnodeRegistration: {ignorePreflightErrors: [a, all]}`,
        `error: ${JOIN}.nodeRegistration.ignorePreflightErrors: has all beside others`,
      ],
      [
        'caCertPath: x',
        `error: ${JOIN}.discovery: is missing: should be a mapping`,
        `error: ${JOIN}.caCertPath: "x": cannot be read: should be an absolute path that ends with .crt`,
      ],
      [
        'discovery: {timeout: 5m}',
        `error: ${JOIN}.discovery: needs bootstrapToken or file`,
        `error: ${JOIN}.discovery.timeout: is no field of v1beta4: should be timeouts.discovery of v1beta4`,
      ],
      [
        `discovery: {bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: cp}, file: {}}`,
        `error: ${JOIN}.discovery.bootstrapToken.apiServerEndpoint: "cp": cannot be read: should be host:port or IP:port`,
        `error: ${JOIN}.discovery.bootstrapToken.caCertHashes: is missing: should be given, or unsafeSkipCAVerification true`,
        `error: ${JOIN}.discovery.file.kubeConfigPath: is missing: should be a path, or a URL that begins with https://`,
        `error: ${JOIN}.discovery.file: must not be given beside bootstrapToken`,
      ],
      [
        `discovery: {bootstrapToken: {token: ${TOKEN}, apiServerEndpoint: 'cp:1', unsafeSkipCAVerification: true, caCertHashes: [sha1]}}`,
        `error: ${JOIN}.discovery.bootstrapToken.caCertHashes[0]: "sha1": cannot be read: should be sha256: and 64 hexadecimal digits`,
        `warning: ${JOIN}.discovery.bootstrapToken.unsafeSkipCAVerification: true: lets any server answer in place of the control plane`,
      ],
      [
        `discovery: ${SECRET}\ncontrolPlane: ${SECRET}`,
        `error: ${JOIN}.discovery: has the wrong type, text: should be a mapping`,
        `error: ${JOIN}.controlPlane: has the wrong type, text: should be a mapping`,
      ],
    ],
  },
  {
    apiVersion,
    kind: RESET,
    right: [
      'certificatesDir: /etc/kubernetes/pki\ncleanupTmpDir: true\ncriSocket: unix:///x\ndryRun: true\nforce: true\nignorePreflightErrors: [all]\nskipPhases: [x]\nunmountFlags: [MNT_FORCE]\ntimeouts: {etcdAPICall: 1m}',
    ],
    wrong: [
      [
        'unmountFlags: [MNT_X]\nignorePreflightErrors: [a, all]',
        `error: ${RESET}.unmountFlags[0]: "MNT_X": is not known: should be "MNT_FORCE" or "MNT_DETACH" or "MNT_EXPIRE" or "UMOUNT_NOFOLLOW"`,
        `error: ${RESET}.ignorePreflightErrors: has all beside others`,
      ],
      [
        'criSocket: /run/x.sock',
        `warning: ${RESET}.criSocket: "/run/x.sock": has no scheme: kubeadm adds it, and warns: should be "unix:///run/x.sock"`,
      ],
      [
        'criSocket: tcp://127.0.0.1:1',
        `warning: ${RESET}.criSocket: "tcp://127.0.0.1:1": is a scheme that kubeadm takes on Windows only`,
      ],
    ],
  },
  {
    apiVersion,
    kind: UPGRADE,
    right: [
      'apply: {kubernetesVersion: v1.36.1, allowRCUpgrades: true, forceUpgrade: true, printConfig: true, certificateRenewal: true, etcdUpgrade: true, imagePullPolicy: Never}\ndiff: {contextLines: 3}\nnode: {dryRun: true}\nplan: {etcdUpgrade: true, allowExperimentalUpgrades: true}\ntimeouts: {}',
    ],
    wrong: [
      [
        'apply: {ignorePreflightErrors: [all, b]}\nplan: {ignorePreflightErrors: [all, b]}',
        `error: ${UPGRADE}.apply.ignorePreflightErrors: has all beside others`,
        `error: ${UPGRADE}.plan.ignorePreflightErrors: has all beside others`,
      ],
      [
        'diff: {contextLines: -1}\nnode: {ignorePreflightErrors: [all, b]}\nplan: {forceUpgrade: true}',
        `error: ${UPGRADE}.diff.contextLines: -1: is out of range: should be an integer of at least 0`,
        `error: ${UPGRADE}.node.ignorePreflightErrors: has all beside others`,
        `error: ${UPGRADE}.plan.forceUpgrade: is an unknown field`,
      ],
    ],
  },
];
