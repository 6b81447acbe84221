import type { Golden } from './golden.js';

const JWT =
  'jwt: [{issuer: {url: "https://i", audiences: [a], egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ""}}}]';
const WEBHOOK =
  'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, cacheAuthorizedRequests: true, cacheUnauthorizedRequests: true, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}}]';

function tooNew(apiVersion: string, kind: string, since: number, body = ''): Golden {
  const reported = `error: ${kind}.apiVersion: "${apiVersion}": exists since Kubernetes 1.${since} only`;
  return { apiVersion, kind, release: since - 1, right: [], wrong: [[body, reported]] };
}

/** Changes of 1.37. */
const CHANGED: readonly Golden[] = [
  {
    apiVersion: 'kubeadm.k8s.io/v1beta3',
    kind: 'JoinConfiguration',
    release: 37,
    right: [],
    wrong: [
      [
        "discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: 'cp.example:6443', unsafeSkipCAVerification: true}}",
        'error: JoinConfiguration.apiVersion: "kubeadm.k8s.io/v1beta3": is gone since Kubernetes 1.37',
        'warning: JoinConfiguration.discovery.bootstrapToken.unsafeSkipCAVerification: true: lets any server answer in place of the control plane',
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'ClusterConfiguration',
    release: 37,
    right: ['featureGates: {RootlessControlPlane: true}'],
    wrong: [
      [
        'featureGates: {PublicKeysECDSA: true, NodeLocalCRISocket: true, None: true}\ncontrollerManager: {extraArgs: [{name: concurrent-service-syncs, value: "2"}, {name: feature-gates, value: "HostnameOverride=false,SidecarContainers=true"}]}',
        'error: ClusterConfiguration.featureGates.PublicKeysECDSA: true: is gone since Kubernetes 1.37',
        'error: ClusterConfiguration.featureGates.NodeLocalCRISocket: true: is gone since Kubernetes 1.37',
        'error: ClusterConfiguration.featureGates.None: true: is no feature gate of kubeadm',
        'error: ClusterConfiguration.controllerManager.extraArgs[0].value: --concurrent-service-syncs: "2" is gone since Kubernetes 1.37',
        'error: ClusterConfiguration.controllerManager.extraArgs[1].value: --feature-gates: "HostnameOverride" cannot be set: it is always true',
        'error: ClusterConfiguration.controllerManager.extraArgs[1].value: --feature-gates: "SidecarContainers" is gone since Kubernetes 1.37',
      ],
    ],
  },
  {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'InitConfiguration',
    release: 37,
    right: [],
    wrong: [
      [
        'nodeRegistration: {kubeletExtraArgs: [{name: containerd, value: /run/containerd/containerd.sock}]}',
        'error: InitConfiguration.nodeRegistration.kubeletExtraArgs[0].value: --containerd: is gone since Kubernetes 1.37',
      ],
    ],
  },
  {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    release: 37,
    right: [
      'featureGates: {DefaultPodSysctls: true}\ndefaultPodSysctls: {net.core.somaxconn: "1024"}\neventRecordQPS: 50',
      'featureGates: {HugepageAwareEviction: false, WatchListCompression: false, SchedulerPreQueueingHints: true}',
      'featureGates: {AtomicWriteVolumeUserFields: true, EmptyDirVolumeMode: true, NodeLifecycleConditions: true, StatefulSetRecreateStrategy: true}',
      'featureGates: {ClusterTrustBundleProjection: true, HPAScaleToZero: false, KubeletInUserNamespace: false, PodCertificateRequest: false}',
      'memoryReservationPolicy: TieredReservation',
    ],
    wrong: [
      [
        'featureGates: {CompositePodGroup: true, GenericWorkload: true}',
        'error: KubeletConfiguration.featureGates.CompositePodGroup: true: needs TopologyAwareWorkloadScheduling, which is off',
      ],
      [
        'featureGates: {SidecarContainers: true, NodeDeclaredFeatures: false, SomethingNew: true}\ndefaultPodSysctls: {net.core.somaxconn: "1024"}\neventRecordQPS: 0',
        'error: KubeletConfiguration.featureGates.SidecarContainers: true: is gone since Kubernetes 1.37',
        'error: KubeletConfiguration.featureGates.NodeDeclaredFeatures: false: cannot be set: it is always true',
        'warning: KubeletConfiguration.featureGates.SomethingNew: true: is not known here as a feature gate of Kubernetes 1.37',
        'error: KubeletConfiguration.featureGates.NodeDeclaredFeatures: false: is needed by InPlacePodLevelResourcesVerticalScaling, which is on by default',
        'error: KubeletConfiguration.featureGates.NodeDeclaredFeatures: false: is needed by RestartAllContainersOnContainerExits, which is on by default',
        'warning: KubeletConfiguration.eventRecordQPS: 0: means no limit since Kubernetes 1.37: should be 50, which is the default',
        'error: KubeletConfiguration.defaultPodSysctls: needs a feature gate that is off: should be with featureGates.DefaultPodSysctls true',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'VolumeBindingArgs',
    release: 37,
    right: ['shape: [{utilization: 100, score: 1}]'],
    wrong: [],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyConfiguration',
    release: 37,
    right: ['staticManifestsDir: /etc/policies.d'],
    wrong: [],
  },
  {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    release: 36,
    right: ['eventRecordQPS: 0'],
    wrong: [
      ['defaultPodSysctls: {a: b}', 'error: KubeletConfiguration.defaultPodSysctls: exists since Kubernetes 1.37 only'],
      [
        'featureGates: {HugepageAwareEviction: false}',
        'error: KubeletConfiguration.featureGates.HugepageAwareEviction: false: is no feature gate of Kubernetes 1.36',
      ],
    ],
  },
  {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    release: 38,
    right: ['featureGates: {SomethingNew: true}'],
    wrong: [],
  },
];

/** What releases before have not yet, or have no more of. */
export const RELEASES: readonly Golden[] = [
  ...CHANGED,
  tooNew('kubeadm.k8s.io/v1beta4', 'InitConfiguration', 31),
  tooNew('kubeadm.k8s.io/v1beta4', 'ResetConfiguration', 31),
  tooNew('kubeadm.k8s.io/v1beta3', 'ClusterConfiguration', 22),
  tooNew('apiserver.config.k8s.io/v1', 'TracingConfiguration', 34),
  tooNew('kubescheduler.config.k8s.io/v1', 'KubeSchedulerConfiguration', 25),
  tooNew('client.authentication.k8s.io/v1', 'ExecCredential', 22, 'spec: {interactive: true}\nstatus: {token: S3cr3t}'),
  {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'UpgradeConfiguration',
    release: 32,
    right: ['plan: {dryRun: true}'],
    wrong: [
      ['plan: {etcdUpgrade: true}', 'error: UpgradeConfiguration.plan.etcdUpgrade: exists since Kubernetes 1.33 only'],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1beta1',
    kind: 'AuthenticationConfiguration',
    release: 33,
    right: [JWT.replace(', egressSelectorType: cluster', '')],
    wrong: [
      [JWT, 'error: AuthenticationConfiguration.jwt[0].issuer.egressSelectorType: exists since Kubernetes 1.34 only'],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    release: 33,
    right: [],
    wrong: [
      [
        WEBHOOK,
        'error: AuthorizationConfiguration.authorizers[0].webhook.cacheAuthorizedRequests: exists since Kubernetes 1.34 only',
        'error: AuthorizationConfiguration.authorizers[0].webhook.cacheUnauthorizedRequests: exists since Kubernetes 1.34 only',
      ],
    ],
  },
  {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    release: 22,
    right: ['rules: [{level: None}]'],
    wrong: [
      [
        'omitManagedFields: true\nrules: [{level: None}]',
        'error: Policy.omitManagedFields: exists since Kubernetes 1.23 only',
      ],
    ],
  },
];
