import { printValue } from '../../../../src/config/errors.js';
import { CHECKED_MINOR } from '../../../../src/config/version.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { rule } from '../../../../src/config/tables/rules.js';
import type { Rule } from '../../../../src/config/tables/types.js';

/**
 * Feature gates of components of Kubernetes 1.36, by what they are where nothing is set. Those that are locked can be
 * set to nothing else. From the gates that this release registers.
 */
const NAMES = {
  lockedOn: `APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
    CSIServiceAccountTokenSecrets ConsistentListFromCache DRAAdminAccess DeclarativeValidation
    DisableAllocatorDualWrite DisableNodeKubeProxyVersion DynamicResourceAllocation ExecProbeTimeout
    ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
    JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
    KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
    MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery
    NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
    PodObservedGenerationTracking PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType
    RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization SELinuxChangePolicy
    SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
    TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay`,
  lockedOff: `AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver`,
  on: `APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs
    AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions
    CRDObservedGenerationTracking CRDValidationRatcheting ClearingNominatedNodeNameAfterBinding
    ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContextualLogging CustomCPUCFSQuotaPeriod
    CustomResourceFieldSelectors DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints
    DRAExtendedResource DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus
    DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HostnameOverride InOrderInformersBatchProcess
    InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers InformerResourceVersion
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletPodResourcesListUseActivePods
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
    LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist
    PodDeletionCost PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission
    PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RetryGenerateName RotateKubeletServerCertificate
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
    ServiceCIDRStatusFieldWiping SidecarContainers SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageNamespaceIndex
    StorageVersionHash StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook
    WatchList WatchListClient WindowsGracefulNodeShutdown`,
  off: `APIServingWithRoutine AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming
    CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ClusterTrustBundle
    ClusterTrustBundleProjection ConcurrentWatchObjectDecode ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection CrossNamespaceVolumeDataSource
    DRADeviceTaintRules DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims DeclarativeValidationTakeover EventedPLEG GangScheduling GenericWorkload
    HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory KMSv1 KubeletInUserNamespace KubeletRegistrationGetOnExistsOnly
    LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions ManifestBasedAdmissionControlConfig
    MaxUnavailableStatefulSet MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodCertificateRequest
    PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls SeparateCacheWatchRPC ShardedListAndWatch
    StorageCapacityScoring StorageVersionAPI StorageVersionMigrator TaintTolerationComparisonOperators
    TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
    VolumeLimitScaling WindowsCPUAndMemoryAffinity WindowsHostNetwork WorkloadAwarePreemption WorkloadWithJob`,
} as const;

type Kind = keyof typeof NAMES;

const KINDS: ReadonlyMap<string, Kind> = new Map(
  (['lockedOn', 'lockedOff', 'on', 'off'] as const).flatMap((kind) =>
    NAMES[kind].split(/\s+/).map((name): [string, Kind] => [name, kind]),
  ),
);

/** Set all gates of a stage. */
const STAGES = ['AllAlpha', 'AllBeta'];

/** What is wrong with a gate that is set; null: nothing. Other releases have other gates, which nothing is known of here. */
function gateProblem(name: string, value: boolean, release: number): string | null {
  if (release !== CHECKED_MINOR || STAGES.includes(name)) return null;
  const kind = KINDS.get(name);
  if (kind === undefined) return `is no feature gate of Kubernetes 1.${release}`;
  if (!kind.startsWith('locked') || value === (kind === 'lockedOn')) return null;
  return `cannot be set: it is always ${String(kind === 'lockedOn')}`;
}

/**
 * What a gate needs that is not always on: a program does not start where one is on and what it needs is off, by
 * default too. From the dependencies that this release registers.
 */
const NEEDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    ClusterTrustBundleProjection: 'ClusterTrustBundle',
    DRADeviceBindingConditions: 'DRAResourceClaimDeviceStatus',
    DRADeviceTaintRules: 'DRADeviceTaints',
    GangScheduling: 'GenericWorkload',
    GracefulNodeShutdownBasedOnPodPriority: 'GracefulNodeShutdown',
    InPlacePodLevelResourcesVerticalScaling: 'NodeDeclaredFeatures PodLevelResources',
    MatchLabelKeysInPodTopologySpreadSelectorMerge: 'MatchLabelKeysInPodTopologySpread',
    ResourceHealthStatusMessage: 'ResourceHealthStatus',
    RestartAllContainersOnContainerExits: 'ContainerRestartRules NodeDeclaredFeatures',
    StaleControllerConsistencyDaemonSet: 'AtomicFIFO',
    StaleControllerConsistencyJob: 'AtomicFIFO',
    StaleControllerConsistencyReplicaSet: 'AtomicFIFO',
    StaleControllerConsistencyStatefulSet: 'AtomicFIFO',
    StorageVersionAPI: 'APIServerIdentity',
    TopologyAwareWorkloadScheduling: 'GenericWorkload',
    UnknownVersionInteroperabilityProxy: 'APIServerIdentity',
    WindowsGracefulNodeShutdown: 'GracefulNodeShutdown',
    WorkloadAwarePreemption: 'GangScheduling',
    WorkloadWithJob: 'GenericWorkload',
  }).map(([name, needs]): [string, readonly string[]] => [name, needs.split(' ')]),
);

/** A gate that is set, and why no program starts with it. */
interface GateProblem {
  readonly name: string;
  readonly problem: string;
}

/** Everything that is wrong with gates that are set together. What a stage sets is not known gate by gate. */
export function gateProblems(gates: ReadonlyMap<string, boolean>, release: number): readonly GateProblem[] {
  const own = [...gates].flatMap(([name, value]): readonly GateProblem[] => {
    const problem = gateProblem(name, value, release);
    return problem === null ? [] : [{ name, problem }];
  });
  const isKnown = release === CHECKED_MINOR && !STAGES.some((stage) => gates.has(stage));
  return isKnown ? [...own, ...[...NEEDS].flatMap(([name, needs]) => unmet(name, needs, gates))] : own;
}

/** At the gate that is set: the one that needs another, or the other one, without which it is on by default. */
function unmet(name: string, needs: readonly string[], gates: ReadonlyMap<string, boolean>): readonly GateProblem[] {
  if (!isOn(name, gates)) return [];
  const off = needs.filter((each) => !isOn(each, gates));
  if (gates.has(name)) return off.map((each) => ({ name, problem: `needs ${each}, which is off` }));
  return off.map((each) => ({ name: each, problem: `is needed by ${name}, which is on by default` }));
}

function isOn(name: string, gates: ReadonlyMap<string, boolean>): boolean {
  const kind = KINDS.get(name);
  return gates.get(name) ?? (kind === 'on' || kind === 'lockedOn');
}

/** The gates of a document, a map of names. */
export const KNOWN_GATES: Rule = rule('feature-gate', (section) => {
  const gates = section.section('featureGates');
  if (gates === null) return;
  const set = gates.names().filter((name) => gates.isTruth(name));
  const values = new Map(set.map((name) => [name, gates.truth(name)]));
  for (const { name, problem } of gateProblems(values, section.release)) gates.refuse('feature-gate', name, problem);
});

/** Whether a gate is on by what a document sets, or else by default; null where that is not known. */
function isGateOn(section: Section, name: string): boolean | null {
  const gates = section.section('featureGates');
  if (gates?.isTruth(name) === true) return gates.truth(name);
  if (section.release !== CHECKED_MINOR) return null;
  const kind = KINDS.get(name);
  return kind === undefined ? null : kind === 'on' || kind === 'lockedOn';
}

/** Refuses a field that only counts where a gate is on. */
export function gated(gate: string, path: string, isUsed: (section: Section) => boolean): Rule {
  return rule('feature-gate', (section) => {
    if (isUsed(section) && isGateOn(section, gate) === false)
      section.refuse(
        'feature-gate',
        path,
        'needs a feature gate that is off',
        `with featureGates.${gate} ${printValue(true)}`,
      );
  });
}
