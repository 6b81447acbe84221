import { familyOf, parsePrefix, prefixLength } from '../../../../src/base/ip.js';
import { printValue } from '../../../../src/config/errors.js';
import { needs, rule } from '../../../../src/config/tables/rules.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  durationWithin,
  field,
  int,
  int32,
  intOrZero,
  list,
  oneOf,
  orZero,
  parsed,
  path,
  required,
  struct,
  text,
  type Field,
  type KindTable,
  type ScalarType,
  type StructType,
} from '../../../../src/config/tables/types.js';
import { CLIENT_CONNECTION, CONTENTION, DEBUGGING, LEADER_ELECTION } from './component.js';
import { KNOWN_CONTROLLERS } from './controllers.js';

/** The controller managers. Their types name fields in Go's way, with capital letters. */

/** Kubernetes parses whatever is written of a period, null, too. */
const period = parsed(scalar('duration, not negative'));
const count = intOrZero(1);

function periods(...names: readonly string[]): Readonly<Record<string, ScalarType>> {
  return Object.fromEntries(names.map((name) => [name, period]));
}

/** Controllers whose only field is how many things they do at once. */
function concurrent(name: string, initial?: number): StructType {
  const one: Field = field(count, initial === undefined ? {} : { default: initial });
  return struct({ [name]: one });
}

/** `*`, `name` or `-name`; the first entry for a name counts. */
const FIRST_COUNTS = rule('unique', (section) => {
  for (const name of ['Controllers', 'Webhooks'].filter((each) => section.has(each))) {
    const entries = section
      .texts(name)
      .map((entry) => entry.replace(/^-/, ''))
      .filter((entry) => entry !== '');
    const again = entries.find((entry, index) => entries.indexOf(entry) < index);
    if (again !== undefined) section.warn('unique', name, `names ${JSON.stringify(again)} twice, the first one counts`);
  }
});

/** An entry without a name switches nothing. */
const NAMED_ENTRIES = rule('value', (section) => {
  for (const name of ['Controllers', 'Webhooks'])
    for (const [index, entry] of section.texts(name).entries())
      if (/^-?$/.test(entry)) section.refuse('value', `${name}[${index}]`, 'has no name', '*, a name, or - and a name');
});

const MIGRATION = rule('no-effect', (section) => {
  if (
    section
      .section('LeaderMigration')
      ?.names()
      .some((name) => section.section('LeaderMigration')?.has(name)) === true &&
    !section.truth('LeaderMigrationEnabled')
  )
    section.warn('no-effect', 'LeaderMigration', 'has no effect without LeaderMigrationEnabled');
});

const LEADERS = {
  controllerLeaders: list(struct({ name: required(text), component: required(text) }), { unique: 'name' }),
};
const LOCK = oneOf('leases', 'endpoints');
/** Within the configuration of a controller manager. */
const LEADER_MIGRATION = struct({ leaderName: text, resourceLock: LOCK, ...LEADERS });

function leaderMigration(version: string, lock: StructType['fields']): KindTable {
  return {
    kind: 'LeaderMigrationConfiguration',
    group: 'controllermanager.config.k8s.io',
    versions: { [version]: {} },
    table: struct({ leaderName: required(text), ...lock, ...LEADERS }),
  };
}

const GENERIC = struct(
  {
    Port: int(0, 65_535),
    Address: scalar('ip'),
    MinResyncPeriod: period,
    ClientConnection: CLIENT_CONNECTION,
    ControllerStartInterval: period,
    LeaderElection: LEADER_ELECTION,
    Controllers: list(text),
    Debugging: struct(DEBUGGING, CONTENTION),
    LeaderMigrationEnabled: bool,
    LeaderMigration: LEADER_MIGRATION,
  },
  FIRST_COUNTS,
  NAMED_ENTRIES,
  MIGRATION,
);

const ALLOCATION = rule('requires', (section) => {
  if (section.truth('AllocateNodeCIDRs') && section.isGiven('ClusterCIDR') && !section.has('ClusterCIDR'))
    section.refuse('requires', 'ClusterCIDR', 'is empty, and AllocateNodeCIDRs needs it');
  if (
    section.truth('ConfigureCloudRoutes') &&
    section.isGiven('AllocateNodeCIDRs') &&
    !section.truth('AllocateNodeCIDRs')
  )
    section.warn('no-effect', 'ConfigureCloudRoutes', 'has no effect without AllocateNodeCIDRs');
});

const CLOUD_SHARED = struct(
  {
    CloudProvider: struct({ Name: text, CloudConfigFile: path }),
    ExternalCloudVolumePlugin: text,
    UseServiceAccountCredentials: bool,
    AllowUntaggedCloud: bool,
    ...periods('RouteReconciliationPeriod', 'NodeMonitorPeriod', 'NodeSyncPeriod'),
    ClusterName: text,
    ClusterCIDR: field(scalar('cidrs'), { mayBeEmpty: true }),
    AllocateNodeCIDRs: bool,
    CIDRAllocatorType: oneOf('RangeAllocator', 'CloudAllocator', 'IPAMFromCluster', 'IPAMFromCloud'),
    ConfigureCloudRoutes: bool,
  },
  ALLOCATION,
  rule('no-effect', (section) => {
    if (section.has('ExternalCloudVolumePlugin') && section.within('CloudProvider')?.text('Name') !== 'external')
      section.warn('no-effect', 'ExternalCloudVolumePlugin', 'has no effect unless CloudProvider.Name is "external"');
  }),
);

const SIGNER = struct({ CertFile: path, KeyFile: path }, needs('CertFile', 'KeyFile'), needs('KeyFile', 'CertFile'));

const SIGNERS = [
  'KubeletServingSignerConfiguration',
  'KubeletClientSignerConfiguration',
  'KubeAPIServerClientSignerConfiguration',
  'LegacyUnknownSignerConfiguration',
];

/** Files for all signers, or some for each. */
const SIGNER_FILES = rule('exclusive', (section) => {
  if (!section.has('ClusterSigningCertFile') && !section.has('ClusterSigningKeyFile')) return;
  for (const name of SIGNERS)
    if (section.section(name)?.has('CertFile') === true || section.section(name)?.has('KeyFile') === true)
      section.refuse('exclusive', name, 'must not have files beside ClusterSigningCertFile and ClusterSigningKeyFile');
});

const SIGNING = struct(
  {
    ClusterSigningCertFile: path,
    ClusterSigningKeyFile: path,
    ...Object.fromEntries(SIGNERS.map((name) => [name, SIGNER])),
    ClusterSigningDuration: orZero(parsed(scalar('duration above 0'))),
  },
  needs('ClusterSigningCertFile', 'ClusterSigningKeyFile'),
  needs('ClusterSigningKeyFile', 'ClusterSigningCertFile'),
  SIGNER_FILES,
);

const SERVICE_FAMILIES = rule('families', (section) => {
  const [one, two] = ['ServiceCIDR', 'SecondaryServiceCIDR'].map((name) => parsePrefix(section.text(name)));
  if (section.has('SecondaryServiceCIDR') && !section.has('ServiceCIDR'))
    section.refuse('families', 'SecondaryServiceCIDR', 'needs ServiceCIDR beside it');
  if (one && two && familyOf(one) === familyOf(two))
    section.refuse('families', 'SecondaryServiceCIDR', 'has the IP family of ServiceCIDR', 'of the other one');
});

const NODE_IPAM = struct(
  {
    ServiceCIDR: scalar('cidr'),
    SecondaryServiceCIDR: scalar('cidr'),
    NodeCIDRMaskSize: int(0, 128),
    NodeCIDRMaskSizeIPv4: int(0, 32),
    NodeCIDRMaskSizeIPv6: int(0, 128),
  },
  SERVICE_FAMILIES,
);

/** A node's range is a part of the cluster's, which holds no more than 65,536 of them. */
const MASKS = rule('mask', (section) => {
  const ipam = section.section('NodeIPAMController');
  const ranges = (section.section('KubeCloudShared')?.text('ClusterCIDR') ?? '')
    .split(',')
    .flatMap((each) => parsePrefix(each) ?? []);
  for (const range of ranges) {
    const name =
      ranges.length === 1 && ipam?.has('NodeCIDRMaskSize') === true
        ? 'NodeCIDRMaskSize'
        : `NodeCIDRMaskSize${familyOf(range)}`;
    const mask = ipam?.number(name) ?? 0;
    if (mask === 0) continue;
    if (mask < prefixLength(range)) ipam?.refuse('mask', name, `is smaller than the length of ClusterCIDR ${range}`);
    else if (mask - prefixLength(range) > 16)
      ipam?.refuse('mask', name, `is more than 16 bits longer than ClusterCIDR ${range}`);
  }
});

const rate = scalar('number', 0, 1_000_000);

/** The fewest nodes that the reference means by a threshold. The controller takes it for a share of the nodes. */
const FEWEST_NODES = 3;

const ZONE_THRESHOLD = rule('fraction', (section) => {
  const name = 'UnhealthyZoneThreshold';
  const threshold = section.number(name) ?? 0;
  const expected = 'a number from 0 to 1';
  if (threshold >= FEWEST_NODES)
    section.warn('fraction', name, 'is a number of nodes only by the reference: no zone counts as unhealthy', expected);
  else if (threshold > 1) section.refuse('fraction', name, 'is neither a share nor a number of nodes', expected);
});

/** A connection of HTTP/2 to a node agent's API server is given up after so long: 15 s for a ping, 30 s without reading. */
const CONNECTION_LOST_MS = 45_000;

const GRACE = rule('order', (section) => {
  const grace = section.milliseconds('NodeMonitorGracePeriod') ?? 0;
  if (grace > 0 && grace <= CONNECTION_LOST_MS)
    section.warn(
      'order',
      'NodeMonitorGracePeriod',
      'is not above 45s, the sum of the timeouts of HTTP/2 for pings (15s) and reading (30s)',
    );
});

const LIFECYCLE = struct(
  {
    NodeEvictionRate: rate,
    SecondaryNodeEvictionRate: rate,
    ...periods('NodeStartupGracePeriod', 'NodeMonitorGracePeriod', 'PodEvictionTimeout'),
    LargeClusterSizeThreshold: int(0),
    UnhealthyZoneThreshold: scalar('number', 0),
  },
  ZONE_THRESHOLD,
  GRACE,
);

const AUTOSCALER = struct({
  ConcurrentHorizontalPodAutoscalerSyncs: count,
  ...periods(
    'HorizontalPodAutoscalerSyncPeriod',
    'HorizontalPodAutoscalerDownscaleStabilizationWindow',
    'HorizontalPodAutoscalerCPUInitializationPeriod',
    'HorizontalPodAutoscalerInitialReadinessDelay',
  ),
  HorizontalPodAutoscalerTolerance: scalar('number', 0, 1_000_000),
});

const RECYCLER = struct({
  MaximumRetry: int(0),
  MinimumTimeoutNFS: int(0),
  PodTemplateFilePathNFS: path,
  IncrementTimeoutNFS: int(0),
  PodTemplateFilePathHostPath: path,
  MinimumTimeoutHostPath: int(0),
  IncrementTimeoutHostPath: int(0),
});

const SERVICES = concurrent('ConcurrentServiceSyncs');

const CONTROLLERS: StructType['fields'] = {
  AttachDetachController: struct({
    DisableAttachDetachReconcilerSync: bool,
    ReconcilerSyncLoopPeriod: field(orZero(parsed(durationWithin('1s'))), { default: '60s' }),
    disableForceDetachOnTimeout: bool,
  }),
  CSRSigningController: SIGNING,
  DaemonSetController: concurrent('ConcurrentDaemonSetSyncs'),
  DeploymentController: concurrent('ConcurrentDeploymentSyncs'),
  StatefulSetController: concurrent('ConcurrentStatefulSetSyncs'),
  DeprecatedController: struct({}),
  EndpointController: struct({ ConcurrentEndpointSyncs: count, EndpointUpdatesBatchPeriod: period }),
  EndpointSliceController: struct({
    ConcurrentServiceEndpointSyncs: intOrZero(1, 50),
    MaxEndpointsPerSlice: intOrZero(1, 1000),
    EndpointUpdatesBatchPeriod: period,
  }),
  EndpointSliceMirroringController: struct({
    MirroringConcurrentServiceEndpointSyncs: intOrZero(1, 50),
    MirroringMaxEndpointsPerSubset: intOrZero(1, 1000),
    MirroringEndpointUpdatesBatchPeriod: period,
  }),
  EphemeralVolumeController: concurrent('ConcurrentEphemeralVolumeSyncs'),
  GarbageCollectorController: struct({
    EnableGarbageCollector: bool,
    ConcurrentGCSyncs: count,
    GCIgnoredResources: list(struct({ Group: text, Resource: required(text) })),
  }),
  HPAController: AUTOSCALER,
  JobController: concurrent('ConcurrentJobSyncs'),
  CronJobController: concurrent('ConcurrentCronJobSyncs'),
  LegacySATokenCleaner: struct({ CleanUpPeriod: period }),
  NamespaceController: struct({ NamespaceSyncPeriod: period, ConcurrentNamespaceSyncs: count }),
  NodeIPAMController: NODE_IPAM,
  NodeLifecycleController: LIFECYCLE,
  PersistentVolumeBinderController: struct({
    PVClaimBinderSyncPeriod: period,
    VolumeConfiguration: struct({
      EnableHostPathProvisioning: bool,
      EnableDynamicProvisioning: field(bool, { default: true }),
      PersistentVolumeRecyclerConfiguration: RECYCLER,
      FlexVolumePluginDir: path,
    }),
  }),
  PodGCController: struct({ TerminatedPodGCThreshold: int32 }),
  ReplicaSetController: concurrent('ConcurrentRSSyncs'),
  ReplicationController: concurrent('ConcurrentRCSyncs'),
  ResourceQuotaController: struct({ ResourceQuotaSyncPeriod: period, ConcurrentResourceQuotaSyncs: count }),
  SAController: struct({ ServiceAccountKeyFile: path, ConcurrentSATokenSyncs: count, RootCAFile: path }),
  ServiceController: SERVICES,
  TTLAfterFinishedController: concurrent('ConcurrentTTLSyncs'),
  ValidatingAdmissionPolicyStatusController: concurrent('ConcurrentPolicySyncs', 5),
  DeviceTaintEvictionController: field(concurrent('ConcurrentSyncs', 8), { since: 35 }),
  ResourceClaimController: field(concurrent('ConcurrentSyncs', 50), { since: 36 }),
};

/** Clouds are no longer a part of it: others give nodes their ranges there. */
const NO_CLOUD = rule('removed', (section) => {
  const shared = section.section('KubeCloudShared');
  const allocator = shared?.text('CIDRAllocatorType') ?? '';
  if (section.release >= 31 && allocator !== '' && allocator !== 'RangeAllocator')
    shared?.refuse('removed', 'CIDRAllocatorType', 'is gone since Kubernetes 1.31', printValue('RangeAllocator'));
});

export const CONTROLLER_MANAGERS: readonly KindTable[] = [
  {
    kind: 'KubeControllerManagerConfiguration',
    group: 'kubecontrollermanager.config.k8s.io',
    versions: { v1alpha1: {} },
    table: struct(
      { Generic: GENERIC, KubeCloudShared: CLOUD_SHARED, ...CONTROLLERS },
      MASKS,
      KNOWN_CONTROLLERS,
      NO_CLOUD,
    ),
  },
  {
    kind: 'CloudControllerManagerConfiguration',
    group: 'cloudcontrollermanager.config.k8s.io',
    versions: { v1alpha1: {} },
    table: struct({
      Generic: GENERIC,
      KubeCloudShared: CLOUD_SHARED,
      NodeController: struct({ ConcurrentNodeSyncs: count, ConcurrentNodeStatusUpdates: field(int(0), { since: 36 }) }),
      ServiceController: SERVICES,
      NodeStatusUpdateFrequency: orZero(parsed(scalar('duration above 0'))),
      Webhook: struct({ Webhooks: list(text) }, FIRST_COUNTS, NAMED_ENTRIES),
    }),
  },
  leaderMigration('v1', {}),
  ...['v1beta1', 'v1alpha1'].map((version) => leaderMigration(version, { resourceLock: required(LOCK) })),
];
