import { CIPHER_SUITE } from '../../src/tables/kubelet.js';
import type { Golden } from './golden.js';

/** Every field with a value of its own. */
const WHOLE = `enableServer: true
address: 0.0.0.0
port: 10250
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
healthzPort: 0
enableDebuggingHandlers: true
enableContentionProfiling: false
enableProfilingHandler: true
enableDebugFlagsHandler: true
enableSystemLogHandler: true
enableSystemLogQuery: true
streamingConnectionIdleTimeout: 4h
tlsCertFile: /pki/kubelet.crt
tlsPrivateKeyFile: /pki/kubelet.key
tlsCipherSuites: [TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA]
tlsCurvePreferences: [23, 29, 4588]
tlsMinVersion: VersionTLS12
rotateCertificates: true
serverTLSBootstrap: true
authentication: {x509: {clientCAFile: /ca.crt}, webhook: {enabled: true, cacheTTL: 2m}, anonymous: {enabled: false}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m, cacheUnauthorizedTTL: 30s}}
staticPodPath: /etc/kubernetes/manifests
staticPodURL: https://pods.example
staticPodURLHeader: {Authorization: [S3cr3t]}
syncFrequency: 1m
fileCheckFrequency: 20s
httpCheckFrequency: 20s
runOnce: false
registerNode: true
registerWithTaints:
- {key: example.com/dedicated, value: gpu, effect: NoSchedule}
- {key: Spot, effect: NoExecute}
providerID: cloud://1
nodeStatusUpdateFrequency: 10s
nodeStatusReportFrequency: 5m
nodeLeaseDurationSeconds: 40
nodeStatusMaxImages: -1
contentType: application/vnd.kubernetes.protobuf
kubeAPIQPS: 50
kubeAPIBurst: 100
eventRecordQPS: 0
eventBurst: 100
configMapAndSecretChangeDetectionStrategy: Watch
showHiddenMetricsForVersion: "1.35"
logging:
  format: text
  flushFrequency: 5000000000
  verbosity: 2
  vmodule: [{filePattern: "kubelet*", verbosity: 4}]
  options: {text: {splitStream: true, infoBufferSize: 64Ki}, json: {splitStream: false, infoBufferSize: 0}}
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 100}
featureGates: {LoggingAlphaOptions: true, QOSReserved: true, MemoryQoS: true, CPUManagerPolicyAlphaOptions: true, WinDSR: true}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
imageServiceEndpoint: ""
runtimeRequestTimeout: 2m
registryPullQPS: 0
registryBurst: 10
serializeImagePulls: false
maxParallelImagePulls: 5
imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages
preloadedImagesVerificationAllowlist: [registry.k8s.io/pause, "registry:5000/team/*", alpine]
imageMinimumGCAge: 2m
imageMaximumGCAge: 24h
imageGCHighThresholdPercent: 85
imageGCLowThresholdPercent: 80
podLogsDir: /var/log/pods
containerLogMaxSize: 10Mi
containerLogMaxFiles: 5
containerLogMaxWorkers: 1
containerLogMonitorInterval: 10s
crashLoopBackOff: {maxContainerRestartPeriod: 5m}
seccompDefault: true
maxPods: 110
podsPerCore: 0
podPidsLimit: -1
maxOpenFiles: 9223372036854775807
oomScoreAdj: -999
protectKernelDefaults: true
allowedUnsafeSysctls: ["net.*", "kernel.msg*", kernel.sem, fs.mqueue.msg_max, net/ipv4/tcp_rmem]
volumePluginDir: /plugins
volumeStatsAggPeriod: -1s
enableControllerAttachDetach: true
localStorageCapacityIsolation: true
userNamespaces: {idsPerPod: 131072}
cgroupDriver: systemd
cgroupRoot: /
cgroupsPerQOS: true
kubeletCgroups: /kubelet
systemCgroups: /system
systemReserved: {cpu: 500m, memory: 1Gi, pid: "1000"}
systemReservedCgroup: /system
kubeReserved: {ephemeral-storage: 1Gi}
kubeReservedCgroup: /kube
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 104857600}}]
enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]
qosReserved: {memory: 50%}
cpuCFSQuota: true
cpuCFSQuotaPeriod: 50ms
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", align-by-socket: "false"}
cpuManagerReconcilePeriod: 10s
singleProcessOOMKill: false
memoryManagerPolicy: Static
memoryThrottlingFactor: 0.9
memoryReservationPolicy: TieredReservation
memorySwap: {swapBehavior: LimitedSwap}
failSwapOn: false
failCgroupV1: true
kernelMemcgNotification: true
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true", max-allowable-numa-nodes: "10"}
evictionHard: {memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%, imagefs.available: "0%"}
evictionSoft: {memory.available: 300Mi, pid.available: 100%}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMinimumReclaim: {nodefs.available: 500Mi, memory.available: "0"}
evictionMaxPodGracePeriod: -1
evictionPressureTransitionPeriod: 5m
mergeDefaultEvictionSettings: true
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
clusterDNS: [10.96.0.10, "fd00::a"]
clusterDomain: cluster.local
podCIDR: 10.244.0.0/24
resolvConf: ""
hairpinMode: hairpin-veth
makeIPTablesUtilChains: true`;

function kubelet(
  right: readonly string[],
  wrong: Golden['wrong'],
  kind = 'KubeletConfiguration',
  release?: number,
): Golden {
  const apiVersion = 'kubelet.config.k8s.io/v1beta1';
  return { apiVersion, kind, right, wrong, ...(release === undefined ? {} : { release }) };
}

/** Several lines that are each an error at the field's path. */
function errors(...lines: readonly string[]): readonly string[] {
  return lines.map((line) => `error: KubeletConfiguration.${line}`);
}

const SERVING = kubelet(
  [
    WHOLE,
    'port: 0\nreadOnlyPort: 0\ncontainerLogMaxSize: ""\nshutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 30}]',
    'cgroupsPerQOS: false\nenforceNodeAllocatable: []\nmaxParallelImagePulls: 2\nreservedSystemCPUs: 0-3,8',
    'cgroupsPerQOS: false\nenforceNodeAllocatable: [none]\nlogging: {format: json}',
  ],
  [
    [
      `port: -1
readOnlyPort: 65536
healthzBindAddress: x
clusterDNS: [10.96.0.10, dns, 10.96.0.10]
PodCIDR: 10.0.0.0/8
imageGCLowThresholdPercent: 85
oomScoreAdj: -1001
containerLogMaxFiles: 1
featureGates: {WinDSR: yes, WinOverlay: "on"}
clusterDomain: a..b
hairpinMode: veth
clusterdns: []`,
      ...errors(
        'port: -1: is out of range: should be an integer from 1 to 65535',
        'readOnlyPort: 65536: is out of range: should be an integer from 0 to 65535',
        'healthzBindAddress: "x": cannot be read: should be an IP address',
        'clusterDNS[1]: "dns": cannot be read: should be an IP address',
        'clusterDNS[2]: "10.96.0.10": is given twice',
        'clusterDomain: "a..b": cannot be read: should be a DNS name: labels of a-z, 0-9 and "-" with dots between',
        'hairpinMode: "veth": is not known: should be "promiscuous-bridge" or "hairpin-veth" or "none"',
        'featureGates.WinOverlay: "on": has the wrong type: should be true or false',
        'oomScoreAdj: -1001: is out of range: should be an integer from -1000 to 1000',
        'containerLogMaxFiles: 1: is out of range: should be an integer of at least 2',
        'PodCIDR: has the wrong case: should be podCIDR',
        'clusterdns: has the wrong case: should be clusterDNS',
        'imageGCLowThresholdPercent: 85: must be below imageGCHighThresholdPercent',
      ),
    ],
    [
      `port: 10255
readOnlyPort: 10255
enforceNodeAllocatable: [none, pods, kube-reserved]
kubeAPIQPS: -1
KubeAPIBurst: 1
syncFrequency: 60
staticPodURLHeader: {Authorization: S3cr3t}
containerLogMaxSize: ten`,
      ...errors(
        'syncFrequency: 60: has the wrong type: should be a duration such as "30s", "1h5m" or "500ms"',
        'staticPodURLHeader.Authorization: has the wrong type, text: should be a list',
        'kubeAPIQPS: -1: is out of range: should be an integer of at least 0',
        'containerLogMaxSize: "ten": cannot be read: should be a quantity such as "64Ki"',
        'KubeAPIBurst: has the wrong case: should be kubeAPIBurst',
        'enforceNodeAllocatable: has none beside others',
        'enforceNodeAllocatable: has kube-reserved, which needs kubeReservedCgroup',
        'readOnlyPort: 10255: is the same as port',
      ),
    ],
    ['port: 0\nreadOnlyPort: 10250', ...errors('readOnlyPort: 10250: is the same as port')],
    [
      'maxPodz: 10\nfailSwapOn: "no"\nregisterWithTaints: nonsense\nsyncFrequency: null\nmaxPods: "110"',
      ...errors(
        'maxPodz: is an unknown field',
        'failSwapOn: "no": has the wrong type: should be true or false',
        'registerWithTaints: "nonsense": has the wrong type: should be a list',
        'syncFrequency: null: has the wrong type: should be a duration such as "30s", "1h5m" or "500ms"',
        'maxPods: "110": has the wrong type: should be an integer of at least 0',
      ),
    ],
    [
      'tlsCertFile: /a\ntlsCipherSuites: [TLS_NOTHING]\ntlsCurvePreferences: [23, 23, 26]\nrunOnce: true\nenableSystemLogQuery: true\nenableSystemLogHandler: false',
      ...errors(
        `tlsCipherSuites[0]: "TLS_NOTHING": is not known: should be ${CIPHER_SUITE.values.map((name) => JSON.stringify(name)).join(' or ')}`,
        'tlsCertFile: "/a": needs tlsPrivateKeyFile beside it',
        'tlsCurvePreferences[1]: is given twice',
        'tlsCurvePreferences[2]: is no key exchange that is known: should be 23 or 24 or 25 or 29 or 4587 or 4588 or 4589',
        'runOnce: true: is a mode that there is no more',
        'enableSystemLogQuery: true: needs enableSystemLogHandler',
      ),
    ],
    ['tlsPrivateKeyFile: /a', ...errors('tlsPrivateKeyFile: "/a": needs tlsCertFile beside it')],
    [
      'showHiddenMetricsForVersion: "1.34"\nlogging: {format: json, vmodule: [{filePattern: "a,b", verbosity: 1}]}',
      ...errors(
        'logging.vmodule[0].filePattern: "a,b": cannot be read: should be a name of a file without = and comma',
        'logging.vmodule: must not be given with format json',
        'showHiddenMetricsForVersion: "1.34": is not the release before: should be "1.35"',
      ),
    ],
    [
      'registerWithTaints: [{key: "a b", effect: Never}, {key: a, value: "-", timeAdded: "2030-01-01T00:00:00Z"}]',
      ...errors(
        'registerWithTaints[0].key: "a b": cannot be read: should be a name of a label, such as "example.com/role"',
        'registerWithTaints[0].effect: "Never": is not known: should be "NoSchedule" or "PreferNoSchedule" or "NoExecute"',
        'registerWithTaints[1].value: "-": cannot be read: should be a value of a label: at most 63 of A-Z, a-z, 0-9, "-", "_" and "."',
        'registerWithTaints[1].effect: is missing: should be "NoSchedule" or "PreferNoSchedule" or "NoExecute"',
        'registerWithTaints[1].timeAdded: "2030-01-01T00:00:00Z": must not be given',
      ),
    ],
  ],
);

const RESOURCES = kubelet(
  [],
  [
    [
      'systemCgroups: /a\nreservedSystemCPUs: 3-1\nenforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s\ncgroupsPerQOS: false',
      ...errors(
        'reservedSystemCPUs: "3-1": cannot be read: should be CPUs such as "0-3,8"',
        'reservedSystemCPUs: "3-1": must not be given beside systemReservedCgroup',
        'systemCgroups: "/a": needs cgroupRoot beside it',
        'enforceNodeAllocatable: has system-reserved beside system-reserved-compressible',
        'cgroupsPerQOS: false: is false, and enforceNodeAllocatable needs it: should be true, or nothing enforced',
      ),
    ],
    [
      'reservedSystemCPUs: "0"\nkubeReservedCgroup: /k\nkubeReserved: {cpu: 1, gpu: "1", memory: -1Gi}\nmemoryThrottlingFactor: 0',
      ...errors(
        'kubeReserved.cpu: 1: has the wrong type: should be a quantity such as "64Ki", not negative',
        'kubeReserved.memory: "-1Gi": cannot be read: should be a quantity such as "64Ki", not negative',
        'kubeReserved.gpu: is an unknown field',
        'memoryThrottlingFactor: 0: cannot be read: should be a number above 0, at most 1',
        'reservedSystemCPUs: "0": must not be given beside kubeReservedCgroup',
      ),
    ],
    [
      'imageMinimumGCAge: 1h\nimageMaximumGCAge: 1h\nserializeImagePulls: true\nmaxParallelImagePulls: 2\npreloadedImagesVerificationAllowlist: ["a:1", "*"]',
      ...errors(
        'preloadedImagesVerificationAllowlist[0]: "a:1": cannot be read: should be an image without tag and digest, or the first part of some with /* at its end',
        'preloadedImagesVerificationAllowlist[1]: "*": cannot be read: should be an image without tag and digest, or the first part of some with /* at its end',
        'imageMaximumGCAge: "1h": must be above imageMinimumGCAge',
        'maxParallelImagePulls: 2: must not be above 1 with serializeImagePulls',
      ),
    ],
    [
      'preloadedImagesVerificationAllowlist: [a]\nimageMaximumGCAge: 1m',
      ...errors(
        'imageMaximumGCAge: "1m": must be above imageMinimumGCAge',
        'preloadedImagesVerificationAllowlist: needs imagePullCredentialsVerificationPolicy NeverVerifyAllowlistedImages',
      ),
    ],
    [
      'shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s\nshutdownGracePeriodByPodPriority: [{priority: 1}]\ncontainerLogMonitorInterval: 2s\ncpuCFSQuotaPeriod: 2s\ncrashLoopBackOff: {maxContainerRestartPeriod: 6m}',
      ...errors(
        'containerLogMonitorInterval: "2s": is out of range: should be a duration of at least 3s',
        'crashLoopBackOff.maxContainerRestartPeriod: "6m": is out of range: should be a duration from 1s to 5m',
        'cpuCFSQuotaPeriod: "2s": is out of range: should be a duration from 1ms to 1s',
        'shutdownGracePeriodByPodPriority: must not be given beside shutdownGracePeriod',
        'shutdownGracePeriodCriticalPods: "2s": must not be above shutdownGracePeriod',
      ),
    ],
    [
      'shutdownGracePeriodCriticalPods: 2s',
      ...errors('shutdownGracePeriodCriticalPods: "2s": must not be above shutdownGracePeriod'),
    ],
    [
      'evictionHard: {memory.available: "0", nodefs.free: 1Gi}\nevictionSoft: {nodefs.available: 101%, imagefs.available: 10%}\nevictionMinimumReclaim: {memory.available: 0%}\nevictionSoftGracePeriod: {nodefs.available: -1s}',
      ...errors(
        'evictionHard.memory.available: "0": cannot be read: should be a quantity above 0, or from 0% to 100%',
        'evictionHard.nodefs.free: is an unknown field',
        'evictionSoft.nodefs.available: "101%": cannot be read: should be a quantity above 0, or from 0% to 100%',
        'evictionMinimumReclaim.memory.available: "0%": cannot be read: should be a quantity, not negative, or a percentage above 0%',
        'evictionSoftGracePeriod.nodefs.available: "-1s": cannot be read: should be a duration of at least 0s',
        'evictionSoft: has imagefs.available, which needs a time in evictionSoftGracePeriod',
      ),
    ],
    [
      'kubeReserved: {memory: 924Mi}\nreservedMemory: [{limits: {memory: 1Gi, cpu: 1}}, {numaNode: 0, limits: {memory: 0}}]\nuserNamespaces: {idsPerPod: 65537}\npodLogsDir: /var/../log\nallowedUnsafeSysctls: [vm.swappiness]',
      ...errors(
        'podLogsDir: "/var/../log": cannot be read: should be an absolute path without "." and ".." in it, in ASCII',
        'allowedUnsafeSysctls[0]: "vm.swappiness": cannot be read: should be a sysctl of a namespace, or the first part of some with * at its end',
        'userNamespaces.idsPerPod: 65537: is no multiple of 65536',
        'reservedMemory[0].limits.cpu: 1: is not known: should be "memory" or hugepages- and a size',
        'reservedMemory[1].limits.memory: 0: is zero',
        'reservedMemory[1].limits.memory: is given twice for this NUMA node',
      ),
    ],
    [
      'maxOpenFiles: 9223372036854775808\nshutdownGracePeriodByPodPriority: [{shutdownGracePeriodSeconds: -9223372036854778000}, {shutdownGracePeriodSeconds: -9223372036854775808}]',
      ...errors(
        'maxOpenFiles: 9223372036854776000: is out of range: should be an integer of at least 0',
        'shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds: -9223372036854778000: is out of range: should be an integer of 64 bits',
      ),
    ],
    [
      'reservedMemory: [{numaNode: -1, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 1Mi, hugepages-1Gi: 1Gi}}]\nevictionHard: {nodefs.available: 10%}\nsystemReserved: {memory: 1Gi}',
      ...errors(
        'reservedMemory[0].numaNode: -1: is out of range: should be an integer of at least 0',
        'reservedMemory: has 1025Mi of memory, but kubeReserved, systemReserved and evictionHard have 1024Mi',
      ),
      'warning: KubeletConfiguration.reservedMemory: has huge pages, which neither kubeReserved nor systemReserved has: memoryManagerPolicy Static refuses them',
    ],
    [
      'reservedMemory: [{limits: {memory: 101Mi}}]\nevictionHard: {nodefs.available: 10%}\nmergeDefaultEvictionSettings: true',
      ...errors('reservedMemory: has 101Mi of memory, but kubeReserved, systemReserved and evictionHard have 100Mi'),
    ],
    [
      'kubeletCgroups: a\nsystemCgroups: b\ncgroupRoot: c\nsystemReservedCgroup: d\nkubeReservedCgroup: e.slice\ncontainerRuntimeEndpoint: http://x\nimageServiceEndpoint: run/x.sock\npodPidsLimit: -2\nstreamingConnectionIdleTimeout: -1s',
      ...errors(
        'kubeletCgroups: "a": cannot be read: should be an absolute path',
        'systemCgroups: "b": cannot be read: should be an absolute path',
        'systemReservedCgroup: "d": cannot be read: should be an absolute path',
        'kubeReservedCgroup: "e.slice": cannot be read: should be an absolute path',
        'containerRuntimeEndpoint: "http://x/": cannot be read: should be a socket such as unix:///run/x.sock',
        'imageServiceEndpoint: "run/x.sock": cannot be read: should be a socket such as unix:///run/x.sock',
        'podPidsLimit: -2: is out of range: should be an integer of at least -1',
        'streamingConnectionIdleTimeout: "-1s": cannot be read: should be a duration of at least 0s',
      ),
    ],
    [
      'registerNode: false\nregisterWithTaints: [{key: a, effect: NoSchedule}]\npodPidsLimit: 0\nstreamingConnectionIdleTimeout: 5h',
      'warning: KubeletConfiguration.registerWithTaints: has no effect as registerNode is false',
      'warning: KubeletConfiguration.podPidsLimit: 0: is no limit: should be -1 for none',
      'warning: KubeletConfiguration.streamingConnectionIdleTimeout: "5h": has no effect: connections end after 4h',
    ],
    [
      'registerWithTaints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: a, value: b, effect: NoSchedule}]\nstaticPodURLHeader: {"S3cr3t:": [a]}',
      ...errors(
        'registerWithTaints[2].effect: "NoSchedule": is given twice for this key',
        'staticPodURLHeader: has a header whose name is no name of a header',
      ),
    ],
    [
      'staticPodURLHeader: {Authorization: ["S3cr3t\\nb"]}',
      ...errors('staticPodURLHeader: has a header with control characters'),
    ],
    [
      'iptablesDropBit: 15\niptablesMasqueradeBit: 32',
      'warning: KubeletConfiguration.iptablesDropBit: is deprecated: should be nothing: it has had no effect since Kubernetes 1.28',
      'warning: KubeletConfiguration.iptablesMasqueradeBit: is deprecated: should be nothing: it has had no effect since Kubernetes 1.28',
      ...errors('iptablesMasqueradeBit: 32: is out of range: should be an integer from 0 to 31'),
    ],
  ],
);

const OFF = 'needs a feature gate that is off: should be with featureGates';

const GATES = kubelet(
  [
    'featureGates: {GracefulNodeShutdown: false, AllBeta: false}',
    'featureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, WindowsGracefulNodeShutdown: false}',
    'featureGates: {GangScheduling: true, GenericWorkload: true, WorkloadAwarePreemption: true}',
  ],
  [
    [
      'featureGates: {ClusterTrustBundleProjection: true, WorkloadAwarePreemption: true, GenericWorkload: true, APIServerIdentity: false, NodeDeclaredFeatures: false, InPlacePodLevelResourcesVerticalScaling: true, PodLevelResources: false, RestartAllContainersOnContainerExits: false}',
      ...errors(
        'featureGates.APIServerIdentity: false: is needed by UnknownVersionInteroperabilityProxy, which is on by default',
        'featureGates.ClusterTrustBundleProjection: true: needs ClusterTrustBundle, which is off',
        'featureGates.InPlacePodLevelResourcesVerticalScaling: true: needs NodeDeclaredFeatures, which is off',
        'featureGates.InPlacePodLevelResourcesVerticalScaling: true: needs PodLevelResources, which is off',
        'featureGates.WorkloadAwarePreemption: true: needs GangScheduling, which is off',
      ),
    ],
    [
      'featureGates: {GracefulNodeShutdown: false, WindowsGracefulNodeShutdown: false}',
      ...errors(
        'featureGates.GracefulNodeShutdown: false: is needed by GracefulNodeShutdownBasedOnPodPriority, which is on by default',
      ),
    ],
    [
      'featureGates: {WinDSR: false, Nonsense: true, GitRepoVolumeDriver: true}',
      ...errors(
        'featureGates.WinDSR: false: cannot be set: it is always true',
        'featureGates.Nonsense: true: is no feature gate of Kubernetes 1.36',
        'featureGates.GitRepoVolumeDriver: true: cannot be set: it is always false',
      ),
    ],
    [
      `featureGates: {RotateKubeletServerCertificate: false, KubeletCrashLoopBackOffMax: false, CustomCPUCFSQuotaPeriod: false, KubeletEnsureSecretPulledImages: false, GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, WindowsGracefulNodeShutdown: false}
serverTLSBootstrap: true
crashLoopBackOff: {maxContainerRestartPeriod: 5m}
cpuCFSQuotaPeriod: 50ms
shutdownGracePeriod: 1s
imagePullCredentialsVerificationPolicy: NeverVerify`,
      ...errors(
        `serverTLSBootstrap: true: ${OFF}.RotateKubeletServerCertificate true`,
        `crashLoopBackOff.maxContainerRestartPeriod: ${OFF}.KubeletCrashLoopBackOffMax true`,
        `imagePullCredentialsVerificationPolicy: "NeverVerify": ${OFF}.KubeletEnsureSecretPulledImages true`,
        `cpuCFSQuotaPeriod: "50ms": ${OFF}.CustomCPUCFSQuotaPeriod true`,
        `shutdownGracePeriod: "1s": ${OFF}.GracefulNodeShutdown true`,
      ),
    ],
    [
      `featureGates: {GracefulNodeShutdownBasedOnPodPriority: false}
shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]
memoryReservationPolicy: TieredReservation
qosReserved: {memory: 10%}
cpuManagerPolicyOptions: {distribute-cpus-across-cores: "true"}
logging: {options: {json: {infoBufferSize: 1Ki}}}`,
      ...errors(
        `shutdownGracePeriodByPodPriority: ${OFF}.GracefulNodeShutdownBasedOnPodPriority true`,
        `memoryReservationPolicy: "TieredReservation": ${OFF}.MemoryQoS true`,
        `qosReserved: ${OFF}.QOSReserved true`,
        `cpuManagerPolicyOptions: ${OFF}.CPUManagerPolicyAlphaOptions true`,
        `logging.options: ${OFF}.LoggingAlphaOptions true`,
      ),
    ],
  ],
);

/** Of a release whose gates are not known here. */
const EARLIER = kubelet(
  ['featureGates: {Nonsense: true}\nqosReserved: {memory: 10%}'],
  [
    [
      'tlsCurvePreferences: [23]\nimageMaximumGCAge: 1h',
      ...errors(
        'tlsCurvePreferences: exists since Kubernetes 1.36 only',
        'imageMaximumGCAge: exists since Kubernetes 1.29 only',
      ),
    ],
  ],
  'KubeletConfiguration',
  28,
);

const SOURCE = kubelet(
  [
    'source: {configMap: {namespace: kube-system, name: kubelet, uid: u, resourceVersion: "1", kubeletConfigKey: kubelet}}',
    'source: {}',
  ],
  [
    [
      'source: {configMap: {namespace: Kube, name: kubelet, key: a}}\nextra: 1',
      'error: SerializedNodeConfigSource.source.configMap.namespace: "Kube": cannot be read: should be a DNS label: at most 63 of a-z, 0-9 and "-"',
      'error: SerializedNodeConfigSource.source.configMap.kubeletConfigKey: is missing: should be text',
      'error: SerializedNodeConfigSource.source.configMap.key: is an unknown field',
      'error: SerializedNodeConfigSource.extra: is an unknown field',
    ],
  ],
  'SerializedNodeConfigSource',
);

export const KUBELET: readonly Golden[] = [SERVING, RESOURCES, GATES, EARLIER, SOURCE];
