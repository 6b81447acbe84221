import {
  address,
  atLeastZero,
  CONTENT_TYPES,
  contentType,
  contentTypes,
  countable,
  fileVerbosities,
  healthzAddress,
  hnsNetwork,
  hnsSource,
  hostPort,
  lockedGates,
  nodePortAddresses,
  notNegative,
  positive,
  prefixes,
  schedulerName,
  verbosity,
  within,
} from './checks.js';
import { API_GROUP, API_VERSION, KIND } from './kind.js';
import {
  bool,
  duration,
  entries,
  field,
  int,
  int32,
  list,
  map,
  scalar,
  struct,
  text,
  type ValueOf,
} from './tables/types.js';

export { API_GROUP, API_VERSION, KIND };

/** Requests to the API server per second, and how many may come at once, when nothing is said. */
export const DEFAULT_QPS = 5;
export const DEFAULT_BURST = 10;

const LINUX = ['iptables', 'ipvs', 'nftables'];
/** ipvs mode masquerades as the section iptables says. */
const IPTABLES_AND_IPVS = ['iptables', 'ipvs'];
/** Kernelspace mode takes its periods from another's section (behaviour FL-24, FL-25). */
const IPTABLES_AND_WINDOWS = ['iptables', 'kernelspace'];
const ANYWAY = { overridesFile: true } as const;
const WINDOWS = { platform: 'win32', remark: 'has no effect on Linux' } as const;

// Flags of iptables mode that nftables mode has none of its own for (behaviour FL-60).
const MASQUERADE_ALL = { name: 'masquerade-all', help: 'masquerade all traffic to cluster IPs' };
const SYNC_PERIOD = { name: 'iptables-sync-period', help: 'how often everything is checked, in every mode but ipvs' };
const MIN_SYNC_PERIOD = {
  name: 'iptables-min-sync-period',
  help: 'minimum time between two syncs, in every mode but ipvs; 0 paces them by what they cost',
};

function masqueradeBit(modes: readonly string[]) {
  return { default: 14, modes, checks: [within(0, 31)] };
}

function syncPeriod(modes: readonly string[]) {
  return {
    default: '30s',
    modes,
    checks: [positive],
    isCleared: true,
    unsetAsZero: 'where something is unset',
  } as const;
}

/** A minimum of zero: syncs are paced by what they cost. */
function minSyncPeriod(modes: readonly string[]) {
  return { modes, checks: [notNegative], isCleared: true } as const;
}

/** Of conntrack, whose settings mean nothing where the platform balances by itself. */
function timeout(name: string, help: string, initial = '0s') {
  const flag = { name: `conntrack-${name}`, help: `timeout of ${help}; 0 keeps it` };
  return field(duration, { default: initial, modes: LINUX, checks: [notNegative], isAlwaysChecked: true, flag });
}

function ipvsTimeout(name: string, help: string) {
  const flag = { name: `ipvs-${name}-timeout`, help: `timeout of ${help}, in mode ipvs; 0 keeps it` };
  return field(duration, { modes: ['ipvs'], checks: [notNegative, countable], flag });
}

function stream(format: 'text' | 'json') {
  const needs = 'needs feature gate LoggingAlphaOptions; also with --config';
  return struct({
    splitStream: field(bool, {
      isOptional: true,
      flag: {
        name: `log-${format}-split-stream`,
        help: `in ${format} format, write messages to standard output and errors to standard error; ${needs}`,
        ...ANYWAY,
      },
    }),
    infoBufferSize: field(scalar('quantity'), {
      flag: {
        name: `log-${format}-info-buffer-size`,
        help: `in ${format} format with split streams, bytes of messages to buffer; ${needs}`,
        ...ANYWAY,
      },
    }),
  });
}

/**
 * KubeProxyConfiguration v1alpha1: a row for each field, from which its decoding, its default, its flag, its validation and what it means in a mode follow.
 * Flags are laid over a document in this order: the mode comes first, as what others mean goes by it. What several fields have to be beside one another is
 * in `validate.ts`.
 */
export const KUBE_PROXY = struct({
  mode: field(text, {
    flag: {
      name: 'proxy-mode',
      value: 'mode',
      help: 'as --mode; without effect beside --config',
    },
  }),
  featureGates: field(map(bool), {
    isOptional: true,
    checks: [lockedGates],
    flag: { name: 'feature-gates', help: 'feature gates to enable or disable' },
  }),
  clientConnection: struct({
    kubeconfig: field(text, {
      flag: {
        name: 'kubeconfig',
        value: 'file',
        help: 'kubeconfig of the API server; without it and --master: in-cluster',
      },
    }),
    acceptContentTypes: field(text, { checks: [contentTypes] }),
    contentType: field(text, {
      default: CONTENT_TYPES[0],
      checks: [contentType],
      flag: { name: 'kube-api-content-type', value: 'type', help: 'content type of requests to the API server' },
    }),
    qps: field(scalar('float32'), {
      default: DEFAULT_QPS,
      unsetAsZero: 'in a whole document',
      flag: { name: 'kube-api-qps', help: 'requests per second to the API server; negative: unlimited' },
    }),
    burst: field(int32, {
      default: DEFAULT_BURST,
      checks: [(burst) => (burst >= 0 ? null : 'must be non-negative')],
      unsetAsZero: 'in a whole document',
      flag: { name: 'kube-api-burst', help: 'burst of requests to the API server' },
    }),
  }),
  configSyncPeriod: field(duration, {
    default: '15m0s',
    checks: [positive],
    unsetAsZero: 'where something is unset',
    flag: {
      name: 'config-sync-period',
      help: 'when ServiceCIDRs and failed reads are due again, at the end of a watch',
    },
  }),
  hostnameOverride: field(text, {
    flag: {
      name: 'hostname-override',
      value: 'name',
      help: 'node name instead of the hostname; also with --config',
      ignoresEmpty: true,
      spell: (name) => name.trim().toLowerCase(),
      ...ANYWAY,
    },
  }),
  bindAddress: field(text, {
    default: '0.0.0.0',
    checks: [address],
    flag: {
      name: 'bind-address',
      type: 'address',
      help: "overrides the node's primary address and family; nothing is bound to it",
      ignoresEmpty: true,
    },
  }),
  healthzBindAddress: field(text, {
    checks: [healthzAddress],
    flag: {
      name: 'healthz-bind-address',
      type: 'address-port',
      initial: '0.0.0.0:10256',
      help: 'where /healthz and /livez are served',
      ignoresEmpty: true,
    },
  }),
  metricsBindAddress: field(text, {
    checks: [hostPort],
    flag: {
      name: 'metrics-bind-address',
      type: 'address-port',
      initial: '127.0.0.1:10249',
      help: 'where metrics are served',
      ignoresEmpty: true,
    },
  }),
  bindAddressHardFail: field(bool, {
    flag: { name: 'bind-address-hard-fail', help: 'whether a bind failure ends the process' },
  }),
  enableProfiling: field(bool, { flag: { name: 'profiling', help: 'serve /debug/pprof beside the metrics' } }),
  showHiddenMetricsForVersion: field(text, {
    flag: {
      name: 'show-hidden-metrics-for-version',
      value: 'version',
      help: 'previous minor version, to show its metrics that are hidden now',
    },
  }),
  detectLocalMode: field(text, {
    modes: LINUX,
    flag: {
      name: 'detect-local-mode',
      value: 'mode',
      help: 'how pod traffic is recognised: ClusterCIDR (the default), NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    },
  }),
  clusterCIDR: field(text, {
    modes: LINUX,
    flag: {
      name: 'cluster-cidr',
      value: 'CIDRs',
      help: 'CIDR of the pods, or one per IP family: other sources are masqueraded',
    },
  }),
  detectLocal: struct({
    bridgeInterface: field(text, {
      modes: LINUX,
      flag: {
        name: 'pod-bridge-interface',
        value: 'name',
        help: "the pods' bridge, for detect-local-mode BridgeInterface",
      },
    }),
    interfaceNamePrefix: field(text, {
      modes: LINUX,
      flag: {
        name: 'pod-interface-name-prefix',
        value: 'prefix',
        help: "prefix of the pods' interfaces, for detect-local-mode InterfaceNamePrefix",
      },
    }),
  }),
  conntrack: struct({
    maxPerCore: field(int32, {
      default: 32768,
      modes: LINUX,
      checks: [atLeastZero],
      isAlwaysChecked: true,
      flag: {
        name: 'conntrack-max-per-core',
        help: 'size of the conntrack table per CPU core; 0 keeps it and ignores --conntrack-min',
      },
    }),
    min: field(int32, {
      default: 131072,
      modes: LINUX,
      checks: [atLeastZero],
      isAlwaysChecked: true,
      flag: { name: 'conntrack-min', help: 'minimum size of the conntrack table' },
    }),
    tcpEstablishedTimeout: timeout('tcp-timeout-established', 'idle TCP connections', '24h0m0s'),
    tcpCloseWaitTimeout: timeout('tcp-timeout-close-wait', 'TCP connections in CLOSE_WAIT', '1h0m0s'),
    tcpBeLiberal: field(bool, {
      modes: LINUX,
      flag: {
        name: 'conntrack-tcp-be-liberal',
        help: 'whether conntrack accepts TCP packets outside of the window',
      },
    }),
    udpTimeout: timeout('udp-timeout', 'UDP flows without an answer'),
    udpStreamTimeout: timeout('udp-timeout-stream', 'answered UDP flows'),
  }),
  oomScoreAdj: field(int32, {
    default: -999,
    checks: [within(-1000, 1000)],
    flag: { name: 'oom-score-adj', help: "this process's oom_score_adj, -1000 to 1000" },
  }),
  nodePortAddresses: field(list(text), {
    modes: LINUX,
    checks: [nodePortAddresses],
    isAlwaysChecked: true,
    flag: {
      name: 'nodeport-addresses',
      help: "where node ports answer: CIDRs and the words 'primary', 'localhost' and 'all'",
    },
  }),
  portRange: text,
  windowsRunAsService: field(bool, {
    isOptional: true,
    flag: { name: 'windows-service', help: 'run as a service of Windows' },
  }),
  logging: struct({
    format: field(text, {
      default: 'text',
      flag: {
        name: 'logging-format',
        value: 'text|json',
        help: 'format of log lines; also with --config',
        ...ANYWAY,
      },
    }),
    flushFrequency: field(scalar('duration or integer'), {
      default: '5s',
      checks: [positive],
      unsetAsZero: 'where something is unset',
      flag: {
        name: 'log-flush-frequency',
        help: 'maximum time a buffered log line waits; also with --config',
        ...ANYWAY,
      },
    }),
    verbosity: field(int(0, 2 ** 32 - 1), {
      checks: [verbosity],
      flag: { name: 'v', short: 'v', value: 'level', help: 'log verbosity; also with --config', ...ANYWAY },
    }),
    vmodule: field(entries(struct({ filePattern: text, verbosity: int(0, 2 ** 32 - 1) })), {
      isOptional: true,
      checks: [fileVerbosities],
      flag: {
        name: 'vmodule',
        help: "log verbosity of some source files, before the file's; text format only; also with --config",
        ...ANYWAY,
      },
    }),
    options: struct({ json: stream('json'), text: stream('text') }),
  }),
  iptables: struct({
    masqueradeBit: field(int32, {
      ...masqueradeBit(IPTABLES_AND_IPVS),
      isAlwaysChecked: true,
      flag: {
        name: 'iptables-masquerade-bit',
        help: 'bit of the packet mark that asks for masquerading, in modes iptables and ipvs',
      },
    }),
    masqueradeAll: field(bool, { modes: IPTABLES_AND_IPVS, isCleared: true, flag: MASQUERADE_ALL }),
    localhostNodePorts: field(bool, {
      default: true,
      modes: ['iptables'],
      flag: {
        name: 'iptables-localhost-nodeports',
        help: 'whether node ports answer on loopback, in mode iptables',
      },
    }),
    syncPeriod: field(duration, { ...syncPeriod(IPTABLES_AND_WINDOWS), flag: SYNC_PERIOD }),
    minSyncPeriod: field(duration, { ...minSyncPeriod(IPTABLES_AND_WINDOWS), flag: MIN_SYNC_PERIOD }),
  }),
  ipvs: struct({
    tcpTimeout: ipvsTimeout('tcp', 'idle TCP connections'),
    tcpFinTimeout: ipvsTimeout('tcpfin', 'TCP connections after a FIN'),
    udpTimeout: ipvsTimeout('udp', 'UDP flows'),
    scheduler: field(text, {
      modes: ['ipvs'],
      checks: [schedulerName],
      flag: { name: 'ipvs-scheduler', value: 'name', help: 'scheduler of virtual servers, in mode ipvs' },
    }),
    excludeCIDRs: field(list(text), {
      modes: ['ipvs'],
      checks: [prefixes],
      flag: { name: 'ipvs-exclude-cidrs', help: 'CIDRs whose virtual servers are left alone, in mode ipvs' },
    }),
    strictARP: field(bool, {
      modes: ['ipvs'],
      flag: { name: 'ipvs-strict-arp', help: 'set arp_ignore to 1 and arp_announce to 2, in mode ipvs' },
    }),
    syncPeriod: field(duration, {
      ...syncPeriod(['ipvs']),
      flag: { name: 'ipvs-sync-period', help: 'how often everything is checked, in mode ipvs' },
    }),
    minSyncPeriod: field(duration, {
      ...minSyncPeriod(['ipvs']),
      flag: {
        name: 'ipvs-min-sync-period',
        help: 'minimum time between two syncs, in mode ipvs; 0 paces them by what they cost',
      },
    }),
  }),
  nftables: struct({
    masqueradeBit: field(int32, masqueradeBit(['nftables'])),
    masqueradeAll: field(bool, { modes: ['nftables'], isCleared: true, flag: MASQUERADE_ALL }),
    syncPeriod: field(duration, { ...syncPeriod(['nftables']), flag: SYNC_PERIOD }),
    minSyncPeriod: field(duration, { ...minSyncPeriod(['nftables']), flag: MIN_SYNC_PERIOD }),
  }),
  winkernel: struct({
    networkName: field(text, {
      modes: ['kernelspace'],
      checks: [hnsNetwork],
      flag: {
        name: 'network-name',
        help: 'Windows only: name of the HNS network, its beginning as "vpcbr*", or a type as "type=Overlay"; empty: that in the environment variable KUBE_NETWORK',
        ...WINDOWS,
      },
    }),
    sourceVip: field(text, {
      modes: ['kernelspace'],
      checks: [hnsSource],
      flag: {
        name: 'source-vip',
        help: 'Windows only: source address of load-balanced traffic on overlay networks, or the name of the HNS endpoint that has it',
        ...WINDOWS,
      },
    }),
    enableDSR: field(bool, {
      modes: ['kernelspace'],
      flag: {
        name: 'enable-dsr',
        help: 'Windows only: answers of cluster IPs go straight to the client',
        ...WINDOWS,
      },
    }),
    rootHnsEndpointName: field(text, {
      modes: ['kernelspace'],
      flag: {
        name: 'root-hnsendpoint-name',
        initial: 'cbr0',
        help: 'Windows only: name of the HNS endpoint of the node itself',
        ...WINDOWS,
      },
    }),
    forwardHealthCheckVip: field(bool, {
      modes: ['kernelspace'],
      flag: {
        name: 'forward-healthcheck-vip',
        help: 'Windows only: health checks sent to a load balancer are passed on to the node',
        ...WINDOWS,
      },
    }),
  }),
});

/** KubeProxyConfiguration v1alpha1 with every default filled in, field for field as a user writes it. Lists are null when they are not set. */
export interface KubeProxyConfiguration extends ValueOf<typeof KUBE_PROXY> {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof KIND;
}

export type Logging = KubeProxyConfiguration['logging'];
export type IpvsSection = KubeProxyConfiguration['ipvs'];
