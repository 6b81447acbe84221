import type { Registry } from 'prom-client';
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import type { ModeCounts } from '../dataplane/contract.js';
import type { FlowTableSize } from '../host/host.js';
import type { ModeMetric, ModeMetrics } from '../dataplane/mode.js';

/** 1 ms to 16.384 s, doubling. */
const DOUBLING_FROM_1MS = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power);

/** Quarter and half a second, every second of a minute, every five of the next, every thirty of the next three. */
const PROGRAMMING_SECONDS = [0.25, 0.5, ...steps(1, 59, 1), ...steps(60, 115, 5), ...steps(120, 300, 30)];

/** Fine where a change should be, up to where a node is broken. */
const COMMIT_SECONDS = [
  0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15,
  60,
];

const OPERATIONS = [1, 2, 5, 10, 20, 50, 100, 1_000, 10_000, 100_000, 1_000_000];
const BYTES = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

/** Those of Kubernetes' own clients. */
const REQUEST_BYTES = [64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];
/** Ten minutes, half an hour, one hour, four, a day, a week, one month, three, six, twelve, four years. */
const CERTIFICATE_AGE_SECONDS = [
  600, 1800, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000,
];
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

function steps(first: number, last: number, step: number): number[] {
  return Array.from({ length: (last - first) / step + 1 }, (_, index) => first + index * step);
}

/** Registers metrics of one prefix, each in one line. */
export abstract class Definitions {
  private readonly names: string[] = [];

  constructor(
    private readonly registry: Registry,
    private readonly prefix: string,
    private readonly stability: string,
  ) {}

  /** None of them is shown any more. */
  remove(): void {
    for (const name of this.names) this.registry.removeSingleMetric(name);
  }

  protected counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return new Counter({ ...this.common(name, help), labelNames: [...labelNames] });
  }

  protected gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    return new Gauge({ ...this.common(name, help), labelNames: [...labelNames] });
  }

  protected histogram(
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[],
  ): Histogram {
    return new Histogram({ ...this.common(name, help), labelNames: [...labelNames], buckets: [...buckets] });
  }

  private common(name: string, help: string): { name: string; help: string; registers: Registry[] } {
    this.names.push(`${this.prefix}${name}`);
    return { name: `${this.prefix}${name}`, help: `${this.stability}${help}`, registers: [this.registry] };
  }
}

const FAMILY = ['ip_family'];

/** kube-proxy's metrics of every mode (behaviour §7), under its names, types, labels and buckets. */
export class ProxyInstruments extends Definitions {
  readonly syncDuration = this.histogram(
    'sync_proxy_rules_duration_seconds',
    'Length of a sync, whether or not it succeeded.',
    FAMILY,
    DOUBLING_FROM_1MS,
  );
  readonly fullSyncDuration = this.histogram(
    'sync_full_proxy_rules_duration_seconds',
    'Length of a sync that compared everything with the kernel.',
    FAMILY,
    DOUBLING_FROM_1MS,
  );
  readonly partialSyncDuration = this.histogram(
    'sync_partial_proxy_rules_duration_seconds',
    'Length of a sync that sent only what had changed.',
    FAMILY,
    DOUBLING_FROM_1MS,
  );
  readonly lastSync = this.gauge('sync_proxy_rules_last_timestamp_seconds', 'End of the last successful sync.', FAMILY);
  readonly lastQueued = this.gauge(
    'sync_proxy_rules_last_queued_timestamp_seconds',
    'When a sync was last asked for.',
    FAMILY,
  );
  readonly networkProgramming = this.histogram(
    'network_programming_duration_seconds',
    'Time from a change of an EndpointSlice in the cluster to its rules.',
    FAMILY,
    PROGRAMMING_SECONDS,
  );
  readonly endpointChangesPending = this.gauge(
    'sync_proxy_rules_endpoint_changes_pending',
    'EndpointSlice changes that no sync has taken.',
  );
  readonly endpointChanges = this.counter('sync_proxy_rules_endpoint_changes_total', 'EndpointSlice changes.');
  readonly serviceChangesPending = this.gauge(
    'sync_proxy_rules_service_changes_pending',
    'Services with changes that no sync has taken.',
  );
  readonly serviceChanges = this.counter(
    'sync_proxy_rules_service_changes_total',
    'Service changes, counted once per IP family.',
  );
  readonly noLocalEndpoints = this.gauge(
    'sync_proxy_rules_no_local_endpoints_total',
    'Service ports with a Local traffic policy that have endpoints, but none on this node.',
    ['traffic_policy', ...FAMILY],
  );
  readonly healthz = this.counter('proxy_healthz_total', 'Answers to /healthz by status.', ['code']);
  readonly livez = this.counter('proxy_livez_total', 'Answers to /livez by status.', ['code']);
  readonly reconcileDuration = this.histogram(
    'conntrack_reconciler_sync_duration_seconds',
    'Length of a search for stale conntrack entries.',
    FAMILY,
    DOUBLING_FROM_1MS,
  );
  readonly deletedFlows = this.counter(
    'conntrack_reconciler_deleted_entries_total',
    'Stale conntrack entries removed.',
    FAMILY,
  );

  constructor(registry: Registry) {
    super(registry, 'kubeproxy_', '[ALPHA] ');
  }
}

/** kube-proxy's metrics of the mode in force alone. */
export class ModeInstruments extends Definitions {
  readonly tellsFullSyncs: boolean;
  readonly syncFailures: Counter;
  readonly partialSyncFailures: Counter | null;
  readonly cleanupFailures: Counter | null;
  readonly rulesHeld: Gauge | null;
  readonly rulesWritten: Gauge | null;
  /** By name; made at the first count: what is never counted has no metric. */
  private readonly counted = new Map<string, Counter>();

  constructor(
    registry: Registry,
    private readonly metrics: ModeMetrics,
  ) {
    super(registry, 'kubeproxy_', '[ALPHA] ');
    const { tellsFullSyncs, syncFailures, partialSyncFailures, cleanupFailures, rules } = metrics;
    const perFamily = ({ name, help }: ModeMetric): Counter => this.counter(name, help, FAMILY);
    const perTable = ({ name, help }: ModeMetric): Gauge => this.gauge(name, help, ['table', ...FAMILY]);
    this.tellsFullSyncs = tellsFullSyncs;
    this.syncFailures = perFamily(syncFailures);
    this.partialSyncFailures = partialSyncFailures && perFamily(partialSyncFailures);
    this.cleanupFailures = cleanupFailures && perFamily(cleanupFailures);
    this.rulesHeld = rules && perTable(rules.held);
    this.rulesWritten = rules && perTable(rules.written);
  }

  /** Takes over what the mode has counted; whether there are metrics that were not there before. */
  setCounts(counts: ModeCounts): boolean {
    const before = this.counted.size;
    for (const { name, help, labels = [] } of this.metrics.counted) {
      const counter = this.counted.get(name) ?? this.counter(name, help, labels);
      this.counted.set(name, counter);
      counter.reset();
      const found = counts[name] ?? (labels.length > 0 ? [] : 0);
      if (typeof found === 'number') counter.inc(found);
      else for (const each of found) counter.inc({ ...each.labels }, each.count);
    }
    return this.counted.size > before;
  }
}

/** What every Kubernetes component says of itself and of its requests. */
export class ComponentInstruments extends Definitions {
  readonly build = this.gauge('kubernetes_build_info', 'Always 1; the labels are the version.', [
    'major',
    'minor',
    'git_version',
    'git_commit',
    'git_tree_state',
    'build_date',
    'go_version',
    'compiler',
    'platform',
  ]);
  readonly features = this.gauge('kubernetes_feature_enabled', '1 where the feature gate is on.', ['name', 'stage']);
  readonly registered = this.counter('registered_metrics_total', 'Metrics by stability level.', [
    'stability_level',
    'deprecated_version',
  ]);
  readonly hidden = this.counter('hidden_metrics_total', 'Metrics hidden since they were deprecated: none.');
  readonly disabled = this.counter('disabled_metrics_total', 'Metrics that were disabled: none.');
  readonly requests = this.counter('rest_client_requests_total', 'Requests to the API server by outcome.', [
    'code',
    'host',
    'method',
  ]);
  readonly requestDuration = this.histogram(
    'rest_client_request_duration_seconds',
    'Time from a request to the head of its answer.',
    ['verb', 'host'],
    REQUEST_SECONDS,
  );
  readonly requestSize = this.histogram(
    'rest_client_request_size_bytes',
    'Length of what was sent.',
    ['verb', 'host'],
    REQUEST_BYTES,
  );
  readonly responseSize = this.histogram(
    'rest_client_response_size_bytes',
    'Length of a complete answer; watches are not counted.',
    ['verb', 'host'],
    REQUEST_BYTES,
  );
  readonly transports = this.gauge('rest_client_transport_cache_entries', 'Transports to servers that are kept.');
  readonly transportCalls = this.counter(
    'rest_client_transport_create_calls_total',
    'Transports to servers requested.',
    ['result'],
  );
  readonly pluginCalls = this.counter(
    'rest_client_exec_plugin_call_total',
    'Runs of the credential plugin by result and exit code.',
    ['code', 'call_status'],
  );
  readonly pluginTtl = this.gauge(
    'rest_client_exec_plugin_ttl_seconds',
    'Time until the first certificate of a credential plugin expires; +Inf without one.',
  );
  readonly pluginRotationAge = this.histogram(
    'rest_client_exec_plugin_certificate_rotation_age',
    'Age of a certificate of a credential plugin when it was replaced.',
    [],
    CERTIFICATE_AGE_SECONDS,
  );
  readonly rateLimiterDuration = this.histogram(
    'rest_client_rate_limiter_duration_seconds',
    'Time a request was held back by the rate limit.',
    ['verb', 'host'],
    REQUEST_SECONDS,
  );

  constructor(registry: Registry) {
    super(registry, '', '[ALPHA] ');
  }
}

/** What only this program can say. */
export class OwnInstruments extends Definitions {
  readonly commitDuration = this.histogram(
    'change_commit_duration_seconds',
    'Time from a change reaching this process to the kernel acknowledging it.',
    FAMILY,
    COMMIT_SECONDS,
  );
  readonly changeAge = this.gauge(
    'oldest_pending_change_seconds',
    'Age of the oldest change that the kernel has not acknowledged; 0 when there is none.',
    FAMILY,
  );
  readonly pendingFrontends = this.gauge(
    'pending_frontends',
    'Frontends with a change that was sent or failed, and is not acknowledged.',
    FAMILY,
  );
  readonly operations = this.histogram(
    'sync_operations',
    'Operations of a sync that changed something: elements, and rules with the objects that hold them.',
    ['kind', ...FAMILY],
    OPERATIONS,
  );
  readonly bytes = this.histogram('sync_bytes', 'Netlink bytes of a sync that changed something.', FAMILY, BYTES);
  readonly repairs = this.counter('repairs_total', 'External changes to the rules that were repaired.', FAMILY);
  readonly resetConnections = this.counter(
    'reset_connections_total',
    'TCP connections through Services that were reset because their endpoint is gone.',
    FAMILY,
  );
  readonly foreignChanges = this.counter(
    'foreign_changes_total',
    'External changes to our table; those during one comparison count once.',
    FAMILY,
  );
  readonly driftDuration = this.histogram(
    'drift_duration_seconds',
    'Time from the detection of an external change to its repair.',
    FAMILY,
    COMMIT_SECONDS,
  );
  readonly audits = this.counter(
    'audits_total',
    'Comparisons of the kernel with the plan outside of syncs by result.',
    ['result', ...FAMILY],
  );
  readonly sysctlRepairs = this.counter(
    'sysctl_repairs_total',
    'Kernel values that were changed externally and repaired.',
  );
  readonly conflicts = this.gauge(
    'conflicts',
    'Service ports without a frontend because another Service port has it.',
    FAMILY,
  );
  readonly quarantined = this.gauge(
    'quarantined_frontends',
    'Frontends that the kernel rejects; others are served.',
    FAMILY,
  );
  readonly unlisted = this.gauge('unlisted_tables', "Tables that other programs' rules keep us from listing.", FAMILY);
  readonly unremembered = this.counter(
    'affinity_unremembered_connections_total',
    'Connections without session affinity because its table was full.',
    FAMILY,
  );
  readonly nativeFailures = this.counter('native_failures_total', 'Syncs that the kernel refused, by errno.', [
    'errno',
    ...FAMILY,
  ]);
  readonly configChanges = this.counter('config_changes_total', 'Changes of the configuration files by result.', [
    'result',
  ]);
  readonly sourceSynced = this.gauge('source_synced', '1 when the initial objects of a source have been read.', [
    'source',
  ]);
  readonly sourceLastEvent = this.gauge('source_last_event_timestamp_seconds', 'When a source last sent an event.', [
    'source',
  ]);
  readonly apiServerReceived = this.gauge(
    'apiserver_last_heard_timestamp_seconds',
    'When a packet last came from the API server, on any connection.',
  );
  readonly sourceFailures = this.counter('source_failures_total', 'Failures of a source by kind.', ['source', 'kind']);

  readonly healthy = this.gauge('healthy', '1 while /healthz answers 200, apart from the eligibility of the Node.');
  /** Made when there is such a table. */
  private flowTable: { readonly entries: Gauge; readonly limit: Gauge } | null = null;

  constructor(registry: Registry) {
    super(registry, 'pointsman_', '');
  }

  /** @param size null: there is no table, and nothing is shown of it. */
  setFlowTable(size: FlowTableSize | null): void {
    if (size === null) return;
    this.flowTable ??= {
      entries: this.gauge('conntrack_entries', 'Connections in the kernel, of this network namespace.'),
      limit: this.gauge('conntrack_entries_limit', 'Connections at which the kernel drops new ones.'),
    };
    this.flowTable.entries.set(size.entries);
    this.flowTable.limit.set(size.limit);
  }
}
