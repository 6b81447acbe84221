import { printValue } from '../../../../src/config/errors.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { rule } from '../../../../src/config/tables/rules.js';
import type { Rule } from '../../../../src/config/tables/types.js';

const KINDS = ['lockedOn', 'lockedOff', 'on', 'off'] as const;
type Kind = (typeof KINDS)[number];

/** Gates that a release adds to the one before, by their default; locked ones have no other value. */
interface ReleaseGates extends Readonly<Partial<Record<Kind, string>>> {
  readonly since: number;
  /** Whether these and the ones before are all that there are: a name that is not among them is no gate. */
  readonly isComplete: boolean;
  readonly removed?: string;
}

/** All gates that 1.36 registers. */
const FIRST: ReleaseGates = {
  since: 36,
  isComplete: true,
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
};

/**
 * Changes of 1.37 from its changelog, the pages of its gates, the table of all that have a page, and the sources of its API
 * server, scheduler and libraries of 2026-07-23. New gates of the kubelet and the controller manager without a page may be
 * missing.
 */
const RELEASES: readonly ReleaseGates[] = [
  FIRST,
  {
    since: 37,
    isComplete: false,
    removed: `APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
      AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache GangScheduling JobBackoffLimitPerIndex
      JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction
      PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences RelaxedDNSSearchValidation
      ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints SidecarContainers
      StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
      WorkloadAwarePreemption`,
    lockedOn: `DRAExtendedResource DRAPrioritizedList DRAResourceClaimDeviceStatus DisableCPUQuotaWithExclusiveCPUs
      HPAConfigurableTolerance HostnameOverride InPlacePodVerticalScalingInitContainers NodeDeclaredFeatures
      PLEGOnDemandRelist PodReadyToStartContainersCondition RelaxedServiceNameValidation
      WatchCacheInitializationPostStartHook`,
    lockedOff: 'DeclarativeValidationTakeover',
    on: `AllowUnsafeMalformedObjectDeletion ClusterTrustBundle ClusterTrustBundleProjection
      ConcurrentWatchObjectDecode DRADeviceTaintRules DRAFractionalCapacityRange EtcdRangeStream
      ExcludeAdmissionWebhookVirtualResources HPAScaleToZero HugepageAwareEviction KubeProxyIPVS
      KubeletInUserNamespace ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet MemoryQoS
      NFTablesNetlink NativeHistograms PersistentVolumeClaimUnusedSinceTime PodCertificateRequest PodsAPI
      SELinuxMount StorageCapacityScoring StorageVersionMigrator VolumeLimitScaling WatchListCompression
      WebhookRoundTripLoadBalancing`,
    off: `APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields CompositePodGroup
      ConsistentListFromCacheSkipTimeoutFallback DRADerivedAttributes DRADeviceCompatibilityGroups
      DRAOptionalNodeOperations DRAPartitionableDevicesType DefaultPodSysctls EmptyDirVolumeMode
      EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe InPlacePodVerticalScalingMemoryBackedVolumes
      InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
      KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint NodeLifecycleConditions
      PodGroupPreemptionPolicy SchedulerPreQueueingHints StatefulSetRecreateStrategy VolumeBindMountOptions`,
  },
];

/** The gates of a release; null: nothing is known of it. */
function gatesOf(release: number): ReadonlyMap<string, Kind> | null {
  const last = RELEASES.at(-1);
  if (last === undefined || release < FIRST.since || release > last.since) return null;
  const gates = new Map<string, Kind>();
  const each = (names: string | undefined, then: (name: string) => void): void => {
    for (const name of names?.split(/\s+/) ?? []) then(name);
  };
  for (const changes of RELEASES.filter(({ since }) => since <= release)) {
    each(changes.removed, (name) => gates.delete(name));
    for (const kind of KINDS) each(changes[kind], (name) => gates.set(name, kind));
  }
  return gates;
}

/** Which release removed a gate; null: none that is known. */
function removedIn(name: string, release: number): number | null {
  const found = RELEASES.find(
    ({ since, removed }) => since <= release && removed?.split(/\s+/).includes(name) === true,
  );
  return found?.since ?? null;
}

/** Set all gates of a stage. */
const STAGES = ['AllAlpha', 'AllBeta'];

/** The problem of a gate that is set; null: there is none. */
function gateProblem(name: string, value: boolean, release: number): Omit<GateProblem, 'name'> | null {
  const gates = gatesOf(release);
  if (gates === null || STAGES.includes(name)) return null;
  const kind = gates.get(name);
  if (kind === undefined) return unknownGate(name, release);
  if (!kind.startsWith('locked') || value === (kind === 'lockedOn')) return null;
  return { severity: 'error', problem: `cannot be set: it is always ${String(kind === 'lockedOn')}` };
}

/** A gate of which a release is known not to have it, or may have it. */
function unknownGate(name: string, release: number): Omit<GateProblem, 'name'> {
  const removed = removedIn(name, release);
  if (removed !== null) return { severity: 'error', problem: `is gone since Kubernetes 1.${removed}` };
  const isComplete = RELEASES.every((each) => each.since > release || each.isComplete);
  return isComplete
    ? { severity: 'error', problem: `is no feature gate of Kubernetes 1.${release}` }
    : { severity: 'warning', problem: `is not known here as a feature gate of Kubernetes 1.${release}` };
}

/**
 * What a gate needs that is not always on: a program does not start where one is on and what it needs is off, by
 * default too. From the dependencies that this release registers.
 */
const NEEDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    ClusterTrustBundleProjection: 'ClusterTrustBundle',
    CompositePodGroup: 'GenericWorkload TopologyAwareWorkloadScheduling',
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

/** A gate that is set, and what is wrong with it: no program starts with an error. */
interface GateProblem {
  readonly severity: 'error' | 'warning';
  readonly name: string;
  readonly problem: string;
}

/** Everything that is wrong with gates that are set together. What a stage sets is not known gate by gate. */
export function gateProblems(set: ReadonlyMap<string, boolean>, release: number): readonly GateProblem[] {
  const own = [...set].flatMap(([name, value]): readonly GateProblem[] => {
    const problem = gateProblem(name, value, release);
    return problem === null ? [] : [{ name, ...problem }];
  });
  const gates = gatesOf(release);
  if (gates === null || STAGES.some((stage) => set.has(stage))) return own;
  return [...own, ...[...NEEDS].flatMap(([name, needs]) => (gates.has(name) ? unmet(name, needs, set, gates) : []))];
}

/** At the gate that is set: the one that needs another, or the other one, without which it is on by default. */
function unmet(
  name: string,
  needs: readonly string[],
  set: ReadonlyMap<string, boolean>,
  gates: ReadonlyMap<string, Kind>,
): readonly GateProblem[] {
  const isOn = (each: string): boolean => set.get(each) ?? gates.get(each)?.toLowerCase().endsWith('on') === true;
  if (!isOn(name)) return [];
  const off = needs.filter((each) => !isOn(each));
  const severity = 'error';
  if (set.has(name)) return off.map((each) => ({ severity, name, problem: `needs ${each}, which is off` }));
  return off.map((each) => ({ severity, name: each, problem: `is needed by ${name}, which is on by default` }));
}

/** The gates of a document, a map of names. */
export const KNOWN_GATES: Rule = rule('feature-gate', (section) => {
  const gates = section.section('featureGates');
  if (gates === null) return;
  const set = gates.names().filter((name) => gates.isTruth(name));
  const values = new Map(set.map((name) => [name, gates.truth(name)]));
  for (const { severity, name, problem } of gateProblems(values, section.release))
    if (severity === 'error') gates.refuse('feature-gate', name, problem);
    else gates.warn('feature-gate', name, problem);
});

/** Whether a gate is on by what a document sets, or else by default; null where that is not known. */
function isGateOn(section: Section, name: string): boolean | null {
  const gates = section.section('featureGates');
  if (gates?.isTruth(name) === true) return gates.truth(name);
  const kind = gatesOf(section.release)?.get(name);
  return kind === undefined ? null : kind === 'on' || kind === 'lockedOn';
}

/** Warns of a field that only counts where a gate is on that no document has, but a flag. */
export function gatedByFlag(gate: string, path: string, isUsed: (section: Section) => boolean): Rule {
  return rule('feature-gate', (section) => {
    if (isUsed(section) && isGateOn(section, gate) !== true)
      section.warn('feature-gate', path, `needs --feature-gates=${gate}=true`);
  });
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
