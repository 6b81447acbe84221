import { TRACING } from '../../../../src/config/kinds/egress.js';
import { alone, atMost, needs, rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  durationWithin,
  field,
  int,
  int32,
  int64,
  intOrZero,
  list,
  map,
  oneOf,
  orZero,
  parsed,
  path,
  required,
  struct,
  text,
  type KindTable,
  type ScalarType,
  type Field,
  type StructType,
  type Type,
} from '../../../../src/config/tables/types.js';
import { LOGGING } from './component.js';
import { gated, KNOWN_GATES } from './feature-gates.js';
import {
  CLASSES,
  MEMORY_KINDS,
  MEMORY_SUM,
  NUMA_NODES,
  RESERVED,
  RESERVED_CGROUPS,
  RESERVED_CPUS,
} from './kubelet-reserved.js';

/** The node agent's documents. What it only finds out when it starts counts as much as what it looks for in the file. */

export const period = parsed(scalar('duration'));
const port = int(0, 65_535);
const texts = list(text);

function since(release: number, type: Type): Field {
  return field(type, { since: release });
}

const COMPRESSIBLE = RESERVED.map((level) => `${level}-compressible`);

/** Zero, which is no port, does not count. */
const OWN_PORTS = rule('ports', (section) => {
  const [own, readOnly] = [section.number('port'), section.number('readOnlyPort')];
  if (own !== null && own === readOnly) section.refuse('ports', 'readOnlyPort', 'is the same as port');
});

const RUN_ONCE = rule('removed', (section) => {
  if (section.truth('runOnce')) section.refuse('removed', 'runOnce', 'is a mode that there is no more');
});

const IMAGE_AGES = rule('order', (section) => {
  const [least, most] = [section.milliseconds('imageMinimumGCAge'), section.milliseconds('imageMaximumGCAge')];
  if (least !== null && most !== null && most > 0 && most <= least)
    section.refuse('order', 'imageMaximumGCAge', 'must be above imageMinimumGCAge');
});

const PULLS = rule('exclusive', (section) => {
  if (section.truth('serializeImagePulls') && (section.number('maxParallelImagePulls') ?? 0) > 1)
    section.refuse('exclusive', 'maxParallelImagePulls', 'must not be above 1 with serializeImagePulls');
});

const PULL_ALLOWLIST = rule('requires', (section) => {
  const policy = section.text('imagePullCredentialsVerificationPolicy');
  if (section.has('preloadedImagesVerificationAllowlist') && policy !== 'NeverVerifyAllowlistedImages')
    section.refuse(
      'requires',
      'preloadedImagesVerificationAllowlist',
      'needs imagePullCredentialsVerificationPolicy NeverVerifyAllowlistedImages',
    );
});

const SHUTDOWN = rule('exclusive', (section) => {
  const other = ['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'].find(
    (name) => (section.milliseconds(name) ?? 0) > 0,
  );
  if (section.has('shutdownGracePeriodByPodPriority') && other !== undefined)
    section.refuse('exclusive', 'shutdownGracePeriodByPodPriority', `must not be given beside ${other}`);
});

/** Left out is 0s. */
const CRITICAL_PODS = rule('order', (section) => {
  const [all, critical] = ['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'].map(
    (name) => section.milliseconds(name) ?? 0,
  );
  if ((critical ?? 0) > (all ?? 0))
    section.refuse('order', 'shutdownGracePeriodCriticalPods', 'must not be above shutdownGracePeriod');
});

const LOG_QUERY = rule('requires', (section) => {
  if (section.truth('enableSystemLogQuery') && !section.truth('enableSystemLogHandler'))
    section.refuse('requires', 'enableSystemLogQuery', 'needs enableSystemLogHandler');
});

/** Metrics that were hidden by the release before, and none else. */
const HIDDEN_METRICS = rule('version', (section) => {
  const [version, wanted] = [section.text('showHiddenMetricsForVersion'), `1.${section.release - 1}`];
  if (version !== '' && version !== wanted)
    section.refuse('version', 'showHiddenMetricsForVersion', 'is not the release before', `"${wanted}"`);
});

/** Every soft threshold has a time for which it has to be met. */
const GRACE_PERIODS = rule('requires', (section) => {
  const [soft, periods] = [section.section('evictionSoft'), section.section('evictionSoftGracePeriod')];
  for (const signal of SIGNALS)
    if (soft?.has(signal) === true && !/^(?:0|100)%$/.test(soft.text(signal)) && periods?.has(signal) !== true)
      section.refuse('requires', 'evictionSoft', `has ${signal}, which needs a time in evictionSoftGracePeriod`);
});

/** A node's taints have different keys or effects, or the API server refuses the node. */
const TAINTS = rule('unique', (section) => {
  const seen = new Set<string>();
  for (const taint of section.sections('registerWithTaints'))
    if (seen.size === seen.add(`${taint.text('key')}:${taint.text('effect')}`).size)
      taint.refuse('unique', 'effect', 'is given twice for this key');
});

const UNUSED_TAINTS = rule('no-effect', (section) => {
  if (section.has('registerWithTaints') && section.isTruth('registerNode') && !section.truth('registerNode'))
    section.warn('no-effect', 'registerWithTaints', 'has no effect as registerNode is false');
});

/** Headers are shown nowhere, as a credential may be at the place of a name. */
const HEADERS = rule('value', (section) => {
  const headers = section.section('staticPodURLHeader');
  for (const name of headers?.names() ?? [])
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
      section.refuse('value', 'staticPodURLHeader', 'has a header whose name is no name of a header');
    else if (headers?.texts(name).some((value) => /[^\t\x20-\x7e\x80-\uffff]/.test(value)) === true)
      section.refuse('value', 'staticPodURLHeader', 'has a header with control characters');
});

const HOURS = 3_600_000;
const STREAMS = rule('no-effect', (section) => {
  if ((section.milliseconds('streamingConnectionIdleTimeout') ?? 0) > 4 * HOURS)
    section.warn('no-effect', 'streamingConnectionIdleTimeout', 'has no effect: connections end after 4h');
});

const PIDS = rule('no-effect', (section) => {
  if (section.number('podPidsLimit') === 0) section.warn('no-effect', 'podPidsLimit', 'is no limit', '-1 for none');
});

const PAGES = 65_536;
const ID_BLOCKS = rule('range', (section) => {
  const ids = section.number('idsPerPod');
  if (ids !== null && ids % PAGES !== 0) section.refuse('range', 'idsPerPod', `is no multiple of ${PAGES}`);
});

const CURVES = [23, 24, 25, 29, 4587, 4588, 4589];
const KNOWN_CURVES = rule('value', (section) => {
  const numbers = section.numbers('tlsCurvePreferences');
  for (const [index, id] of numbers.entries()) {
    if (numbers.indexOf(id) < index) section.refuse('unique', `tlsCurvePreferences[${index}]`, 'is given twice');
    else if (!CURVES.includes(id))
      section.refuse('value', `tlsCurvePreferences[${index}]`, 'is no key exchange that is known', CURVES.join(' or '));
  }
});

const CIPHER_SUITES = `
  TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_ECDSA_WITH_RC4_128_SHA
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_RSA_WITH_RC4_128_SHA
  TLS_RSA_WITH_3DES_EDE_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA256
  TLS_RSA_WITH_AES_128_GCM_SHA256 TLS_RSA_WITH_AES_256_CBC_SHA TLS_RSA_WITH_AES_256_GCM_SHA384 TLS_RSA_WITH_RC4_128_SHA`;

export const CIPHER_SUITE = oneOf(...CIPHER_SUITES.trim().split(/\s+/));
const TLS_VERSION = oneOf('VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13');

const SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
  'allocatableMemory.available',
];

/** One value for each of some names, all of one type. */
function each(names: readonly string[], type: ScalarType): StructType {
  return struct(Object.fromEntries(names.map((name) => [name, type])));
}

const AMOUNTS = each(['cpu', 'memory', 'ephemeral-storage', 'pid'], scalar('amount'));

/** A taint that a node is registered with. */
export const NODE_TAINT = struct(
  {
    key: required(scalar('label key')),
    value: scalar('label value'),
    effect: required(oneOf('NoSchedule', 'PreferNoSchedule', 'NoExecute')),
    timeAdded: scalar('timestamp'),
  },
  rule('exclusive', (section) => {
    if (section.has('timeAdded')) section.refuse('exclusive', 'timeAdded', 'must not be given');
  }),
);

const AUTHENTICATION = struct({
  x509: struct({ clientCAFile: path }),
  webhook: struct({ enabled: bool, cacheTTL: period }),
  anonymous: struct({ enabled: bool }),
});

export const AUTHORIZATION = struct({
  mode: oneOf('AlwaysAllow', 'Webhook'),
  webhook: struct({ cacheAuthorizedTTL: period, cacheUnauthorizedTTL: period }),
});

const ALPHA_CPU_OPTIONS = ['align-by-socket', 'distribute-cpus-across-cores'];
const CPU_OPTIONS = each(
  [
    ...ALPHA_CPU_OPTIONS,
    'distribute-cpus-across-numa',
    'full-pcpus-only',
    'strict-cpu-reservation',
    'prefer-align-cpus-by-uncorecache',
  ],
  scalar('truth'),
);

/** A grace period: none, or enough to be one. */
const GRACE = orZero(parsed(durationWithin('1s')));
const NO_MORE = 'nothing: it has had no effect since Kubernetes 1.28';

/** Where it listens, who may ask, and where it looks for pods. */
const SERVING: StructType['fields'] = {
  enableServer: bool,
  address: field(scalar('ip'), { default: '0.0.0.0' }),
  port: field(intOrZero(1, 65_535), { default: 10_250 }),
  readOnlyPort: field(port, { default: 0 }),
  healthzBindAddress: field(scalar('ip'), { default: '127.0.0.1' }),
  healthzPort: field(port, { default: 10_248 }),
  enableDebuggingHandlers: bool,
  enableContentionProfiling: bool,
  enableProfilingHandler: bool,
  enableDebugFlagsHandler: bool,
  enableSystemLogHandler: field(bool, { default: true }),
  enableSystemLogQuery: since(27, bool),
  streamingConnectionIdleTimeout: parsed(scalar('duration, not negative')),
  tlsCertFile: path,
  tlsPrivateKeyFile: path,
  tlsCipherSuites: list(CIPHER_SUITE),
  tlsCurvePreferences: since(36, list(int(1, 65_535))),
  tlsMinVersion: TLS_VERSION,
  rotateCertificates: bool,
  serverTLSBootstrap: bool,
  authentication: AUTHENTICATION,
  authorization: AUTHORIZATION,
  staticPodPath: path,
  staticPodURL: text,
  staticPodURLHeader: field(map(texts), { secret: true }),
  syncFrequency: period,
  fileCheckFrequency: period,
  httpCheckFrequency: period,
  runOnce: bool,
};

/** What it reports of its node, and how often. */
const REGISTRATION: StructType['fields'] = {
  registerNode: bool,
  registerWithTaints: list(NODE_TAINT),
  providerID: text,
  nodeStatusUpdateFrequency: parsed(scalar('duration, not negative')),
  nodeStatusReportFrequency: period,
  nodeLeaseDurationSeconds: intOrZero(1),
  nodeStatusMaxImages: int(-1),
  contentType: text,
  kubeAPIQPS: int(0),
  kubeAPIBurst: int(0),
  eventRecordQPS: int(0),
  eventBurst: int(0),
  configMapAndSecretChangeDetectionStrategy: oneOf('Get', 'Cache', 'Watch'),
  showHiddenMetricsForVersion: scalar('minor version'),
  logging: LOGGING,
  tracing: since(25, TRACING),
  featureGates: map(bool),
};

/** Containers and their images, logs and processes. */
const RUNTIME: StructType['fields'] = {
  containerRuntimeEndpoint: since(27, scalar('runtime socket')),
  imageServiceEndpoint: since(27, scalar('runtime socket')),
  runtimeRequestTimeout: period,
  registryPullQPS: int(0),
  registryBurst: int(0),
  serializeImagePulls: bool,
  maxParallelImagePulls: since(27, int(1)),
  imagePullCredentialsVerificationPolicy: since(
    33,
    oneOf('NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
  ),
  preloadedImagesVerificationAllowlist: since(33, list(scalar('image pattern'))),
  imageMinimumGCAge: field(orZero(parsed(scalar('duration, not negative'))), { default: '2m' }),
  imageMaximumGCAge: since(29, parsed(scalar('duration, not negative'))),
  imageGCHighThresholdPercent: field(int(0, 100), { default: 85 }),
  imageGCLowThresholdPercent: field(int(0, 100), { default: 80 }),
  podLogsDir: since(30, scalar('ascii path')),
  containerLogMaxSize: field(scalar('quantity text'), { mayBeEmpty: true }),
  containerLogMaxFiles: int(2),
  containerLogMaxWorkers: since(30, int(1)),
  containerLogMonitorInterval: since(30, durationWithin('3s')),
  crashLoopBackOff: since(32, struct({ maxContainerRestartPeriod: durationWithin('1s', '5m') })),
  seccompDefault: bool,
  maxPods: int(0),
  podsPerCore: int(0),
  podPidsLimit: { ...int64, min: -1 },
  maxOpenFiles: { ...int64, min: 0 },
  oomScoreAdj: int(-1000, 1000),
  protectKernelDefaults: bool,
  allowedUnsafeSysctls: list(scalar('sysctl')),
  defaultPodSysctls: since(37, map(text)),
  volumePluginDir: path,
  volumeStatsAggPeriod: period,
  enableControllerAttachDetach: bool,
  localStorageCapacityIsolation: since(25, bool),
  userNamespaces: since(33, struct({ idsPerPod: { ...int64, min: PAGES, max: 2 ** 32 - 1 } }, ID_BLOCKS)),
};

/** What pods may have of the node, and when they have to leave it. */
const RESOURCES: StructType['fields'] = {
  cgroupDriver: oneOf('cgroupfs', 'systemd'),
  cgroupRoot: path,
  cgroupsPerQOS: bool,
  kubeletCgroups: scalar('absolute path'),
  systemCgroups: scalar('absolute path'),
  systemReserved: AMOUNTS,
  systemReservedCgroup: scalar('absolute path'),
  kubeReserved: AMOUNTS,
  kubeReservedCgroup: scalar('absolute path'),
  reservedSystemCPUs: scalar('cpu list'),
  reservedMemory: list(struct({ numaNode: int(0), limits: map(scalar('quantity')) }, MEMORY_KINDS)),
  enforceNodeAllocatable: list(oneOf('none', 'pods', ...RESERVED, ...COMPRESSIBLE), { unique: '' }),
  qosReserved: struct({ memory: scalar('percentage') }),
  cpuCFSQuota: bool,
  cpuCFSQuotaPeriod: durationWithin('1ms', '1s'),
  cpuManagerPolicy: oneOf('none', 'static'),
  cpuManagerPolicyOptions: CPU_OPTIONS,
  cpuManagerReconcilePeriod: period,
  singleProcessOOMKill: since(32, bool),
  memoryManagerPolicy: oneOf('None', 'Static'),
  memoryThrottlingFactor: scalar('fraction'),
  memoryReservationPolicy: since(36, oneOf('None', 'TieredReservation')),
  memorySwap: struct({ swapBehavior: oneOf('NoSwap', 'LimitedSwap') }),
  failSwapOn: bool,
  failCgroupV1: since(31, bool),
  kernelMemcgNotification: bool,
  topologyManagerPolicy: oneOf('none', 'best-effort', 'restricted', 'single-numa-node'),
  topologyManagerScope: oneOf('container', 'pod'),
  topologyManagerPolicyOptions: since(
    26,
    struct({ 'prefer-closest-numa-nodes': scalar('truth'), 'max-allowable-numa-nodes': scalar('eight or more') }),
  ),
  evictionHard: each(SIGNALS, scalar('eviction threshold')),
  evictionSoft: each(SIGNALS, scalar('eviction threshold')),
  evictionSoftGracePeriod: each(SIGNALS, scalar('duration, not negative')),
  evictionMinimumReclaim: each(SIGNALS, scalar('eviction reclaim')),
  evictionMaxPodGracePeriod: int32,
  evictionPressureTransitionPeriod: period,
  mergeDefaultEvictionSettings: since(33, bool),
  shutdownGracePeriod: GRACE,
  shutdownGracePeriodCriticalPods: GRACE,
  shutdownGracePeriodByPodPriority: list(struct({ priority: int32, shutdownGracePeriodSeconds: int64 })),
};

const NETWORKING: StructType['fields'] = {
  clusterDNS: list(scalar('ip'), { unique: '' }),
  clusterDomain: scalar('dns name'),
  podCIDR: scalar('cidrs'),
  resolvConf: field(path, { mayBeEmpty: true }),
  hairpinMode: oneOf('promiscuous-bridge', 'hairpin-veth', 'none'),
  makeIPTablesUtilChains: field(bool, { default: true }),
  iptablesMasqueradeBit: field(int(0, 31), { deprecated: NO_MORE }),
  iptablesDropBit: field(int(0, 31), { deprecated: NO_MORE }),
};

function hasAlphaOption(section: Section): boolean {
  return ALPHA_CPU_OPTIONS.some((name) => section.section('cpuManagerPolicyOptions')?.has(name) === true);
}

/** Alpha options are refused where their gate is off, whatever they are set to. */
function hasLogOption(section: Section): boolean {
  const options = ['text', 'json'].map((name) => section.within(`logging.options.${name}`));
  return options.some(
    (each) => each?.truth('splitStream') === true || /[1-9]/.test(each?.amount('infoBufferSize') ?? ''),
  );
}

/** Releases before took 0 for unset in one place and limited events to 5 a second in another. */
const UNLIMITED_EVENTS = rule('value', (section) => {
  if (section.release >= 37 && section.number('eventRecordQPS') === 0)
    section.warn('value', 'eventRecordQPS', 'means no limit since Kubernetes 1.37', '50, which is the default');
});

const GATED = [
  gated('RotateKubeletServerCertificate', 'serverTLSBootstrap', (section) => section.truth('serverTLSBootstrap')),
  gated(
    'KubeletCrashLoopBackOffMax',
    'crashLoopBackOff.maxContainerRestartPeriod',
    (section) => section.section('crashLoopBackOff')?.has('maxContainerRestartPeriod') === true,
  ),
  gated('KubeletEnsureSecretPulledImages', 'imagePullCredentialsVerificationPolicy', (section) =>
    section.has('imagePullCredentialsVerificationPolicy'),
  ),
  gated(
    'CustomCPUCFSQuotaPeriod',
    'cpuCFSQuotaPeriod',
    (section) => section.has('cpuCFSQuotaPeriod') && section.milliseconds('cpuCFSQuotaPeriod') !== 100,
  ),
  gated(
    'GracefulNodeShutdown',
    'shutdownGracePeriod',
    (section) => section.has('shutdownGracePeriod') || section.has('shutdownGracePeriodCriticalPods'),
  ),
  gated('GracefulNodeShutdownBasedOnPodPriority', 'shutdownGracePeriodByPodPriority', (section) =>
    section.has('shutdownGracePeriodByPodPriority'),
  ),
  gated(
    'MemoryQoS',
    'memoryReservationPolicy',
    (section) => section.text('memoryReservationPolicy') === 'TieredReservation',
  ),
  gated('QOSReserved', 'qosReserved', (section) => section.section('qosReserved')?.has('memory') === true),
  gated('CPUManagerPolicyAlphaOptions', 'cpuManagerPolicyOptions', hasAlphaOption),
  gated('DefaultPodSysctls', 'defaultPodSysctls', (section) => section.has('defaultPodSysctls')),
  gated('LoggingAlphaOptions', 'logging.options', hasLogOption),
];

export const KUBELET_CONFIGURATION = struct(
  { ...SERVING, ...REGISTRATION, ...RUNTIME, ...RESOURCES, ...NETWORKING },
  atMost('imageGCLowThresholdPercent', 'imageGCHighThresholdPercent', 'strictly'),
  alone('enforceNodeAllocatable', 'none'),
  needs('tlsCertFile', 'tlsPrivateKeyFile'),
  needs('tlsPrivateKeyFile', 'tlsCertFile'),
  needs('systemCgroups', 'cgroupRoot'),
  RESERVED_CGROUPS,
  CLASSES,
  RESERVED_CPUS,
  OWN_PORTS,
  RUN_ONCE,
  IMAGE_AGES,
  PULLS,
  PULL_ALLOWLIST,
  SHUTDOWN,
  CRITICAL_PODS,
  LOG_QUERY,
  HIDDEN_METRICS,
  GRACE_PERIODS,
  NUMA_NODES,
  MEMORY_SUM,
  UNUSED_TAINTS,
  TAINTS,
  HEADERS,
  STREAMS,
  PIDS,
  KNOWN_CURVES,
  KNOWN_GATES,
  UNLIMITED_EVENTS,
  ...GATED,
);

const SOURCE = struct({
  configMap: struct({
    namespace: required(scalar('dns label')),
    name: required(scalar('dns name')),
    uid: text,
    resourceVersion: text,
    kubeletConfigKey: required(text),
  }),
});

/** Keys of annotations, which may have capital letters. */
const ANNOTATIONS = list(scalar('annotation key'), { unique: '' });

const TOKEN_ATTRIBUTES = struct(
  {
    serviceAccountTokenAudience: required(text),
    cacheType: required(oneOf('ServiceAccount', 'Token')),
    requireServiceAccount: required(bool),
    requiredServiceAccountAnnotationKeys: ANNOTATIONS,
    optionalServiceAccountAnnotationKeys: ANNOTATIONS,
  },
  rule('exclusive', (section) => {
    const keys = section.texts('requiredServiceAccountAnnotationKeys');
    if (keys.length > 0 && section.isGiven('requireServiceAccount') && !section.truth('requireServiceAccount'))
      section.refuse('exclusive', 'requiredServiceAccountAnnotationKeys', 'needs requireServiceAccount true');
    for (const [index, key] of section.texts('optionalServiceAccountAnnotationKeys').entries())
      if (keys.includes(key))
        section.refuse(
          'exclusive',
          `optionalServiceAccountAnnotationKeys[${index}]`,
          'is among the required ones, too',
        );
  }),
);

const PROVIDER_GROUP = 'credentialprovider.kubelet.k8s.io';

const PROVIDER = struct(
  {
    name: required(scalar('program name')),
    matchImages: required(list(scalar('image match'), { min: 1 })),
    defaultCacheDuration: required(scalar('duration, not negative')),
    apiVersion: required(oneOf(...['v1', 'v1beta1', 'v1alpha1'].map((version) => `${PROVIDER_GROUP}/${version}`))),
    args: field(texts, { secret: true }),
    env: list(struct({ name: required(text), value: field(text, { secret: true }) })),
    tokenAttributes: field(TOKEN_ATTRIBUTES, { since: 33, versions: ['v1'] }),
  },
  rule('requires', (section) => {
    if (section.isGiven('tokenAttributes') && section.has('apiVersion') && !section.text('apiVersion').endsWith('/v1'))
      section.refuse('requires', 'tokenAttributes', `needs apiVersion ${PROVIDER_GROUP}/v1`);
  }),
);

const PROVIDERS = struct({ providers: required(list(PROVIDER, { min: 1, unique: 'name' })) });

const GROUP = 'kubelet.config.k8s.io';

export const KUBELET: readonly KindTable[] = [
  { kind: 'KubeletConfiguration', group: GROUP, versions: { v1beta1: {} }, table: KUBELET_CONFIGURATION },
  {
    kind: 'CredentialProviderConfig',
    group: GROUP,
    versions: { v1: { since: 26 }, v1beta1: {}, v1alpha1: {} },
    table: PROVIDERS,
  },
  { kind: 'SerializedNodeConfigSource', group: GROUP, versions: { v1beta1: {} }, table: struct({ source: SOURCE }) },
];
