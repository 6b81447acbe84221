import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import { goPlatform } from '../../src/base/platform.js';
import type { SupportedMode } from '../../src/config/effective.js';
import { gateStates } from '../../src/config/gates.js';
import type { SyncReport } from '../../src/dataplane/contract.js';
import type { PacketCounts } from '../../src/dataplane/contract.js';
import { Progress } from '../../src/control/progress.js';
import { modeDefinition } from '../../src/dataplane/modes.js';
import { ProxyMetrics, type SourceState } from '../../src/observe/metrics.js';
import { refOf, type Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter } from '../../src/state/writer.js';
import { parseExposition, valueOf, type MetricFamily } from '../support/exposition.js';
import { FakeClock } from '../support/fake-clock.js';
import { node, service, slice } from '../support/rows.js';

const START_MS = Date.UTC(2026, 0, 2);
const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];

interface Scene {
  readonly clock: FakeClock;
  readonly metrics: ProxyMetrics;
  readonly progress: Progress;
  readonly sources: SourceState[];
  readonly counted: { packets: PacketCounts | null };
  readonly upsert: (...rows: readonly Row[]) => void;
  readonly remove: (...rows: readonly Row[]) => void;
  readonly writer: SourceWriter;
  scrape(): Promise<ReadonlyMap<string, MetricFamily>>;
}

/** Metrics of a state whose one source is complete, on a clock that begins at START_MS. */
function scene(families = FAMILIES, complete = true, mode: SupportedMode = 'nftables'): Scene {
  const clock = new FakeClock(0);
  const counted: Scene['counted'] = { packets: null };
  const sources: SourceState[] = [];
  const wallClock = (): bigint => BigInt(Math.round((START_MS + clock.now()) * 1000)) * 1000n;
  const progress = new Progress(families, clock, wallClock);
  const metrics = new ProxyMetrics({
    mode: { metrics: modeDefinition(mode).metrics, packetCounts: () => Promise.resolve(counted.packets) },
    progress,
    version: 'v1.36.2',
    features: gateStates({}),
    sources: () => sources,
    clock,
    wallClock,
  });
  const store = new Store();
  store.onChange((edits) => {
    progress.committed(edits, store.snapshot.ready);
    metrics.stateChanged(edits, store.snapshot.ready);
  });
  const writer = store.register('test');
  if (complete) writer.complete();
  return {
    clock,
    metrics,
    progress,
    sources,
    counted,
    writer,
    upsert: (...rows) => {
      writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    },
    remove: (...rows) => {
      writer.apply(rows.map((row) => ({ type: 'remove', ref: refOf(row) })));
    },
    scrape: async () => parseExposition(await metrics.scrape('text')),
  };
}

function report(family: Family, fields: Partial<SyncReport> = {}): SyncReport {
  const counts = { transactions: 1, elementOperations: 3, ruleOperations: 0, bytes: 400 };
  return {
    family,
    full: false,
    ...counts,
    repairs: [],
    problems: [],
    rules: null,
    setAside: [],
    flows: new Set(),
    ...fields,
  };
}

/** A run takes every change so far, with these frontends. */
function take({ progress }: Scene, ...frontends: readonly string[]): void {
  progress.planned();
  for (const family of progress.families) family.take(new Set(frontends));
}

function acknowledge({ metrics, progress }: Scene, report: SyncReport): void {
  const acknowledged = progress.of(report.family)?.acknowledge();
  if (acknowledged !== undefined) metrics.syncAcknowledged(report, acknowledged);
}

/** The end of a family's sync. */
function sync(world: Scene, family: Family, fields: Partial<SyncReport> = {}, seconds = 0.003): void {
  acknowledge(world, report(family, fields));
  world.metrics.syncFinished(family, fields.full ?? false, seconds, { type: 'success' });
}

const DOUBLING = Array.from({ length: 15 }, (_, power) => 0.001 * 2 ** power);
const PROGRAMMING = [
  0.25,
  0.5,
  ...Array.from({ length: 59 }, (_, index) => 1 + index),
  ...Array.from({ length: 12 }, (_, index) => 60 + 5 * index),
  ...Array.from({ length: 7 }, (_, index) => 120 + 30 * index),
];

/** kube-proxy's metrics in nftables mode: behaviour §7, ME-01 to ME-11 and ME-18 to ME-20. */
const KUBE_PROXY: readonly (readonly [name: string, type: string, labels: string, buckets?: readonly number[]])[] = [
  ['sync_proxy_rules_duration_seconds', 'histogram', 'ip_family', DOUBLING],
  ['sync_full_proxy_rules_duration_seconds', 'histogram', 'ip_family', DOUBLING],
  ['sync_partial_proxy_rules_duration_seconds', 'histogram', 'ip_family', DOUBLING],
  ['sync_proxy_rules_last_timestamp_seconds', 'gauge', 'ip_family'],
  ['sync_proxy_rules_last_queued_timestamp_seconds', 'gauge', 'ip_family'],
  ['network_programming_duration_seconds', 'histogram', 'ip_family', PROGRAMMING],
  ['sync_proxy_rules_endpoint_changes_pending', 'gauge', ''],
  ['sync_proxy_rules_endpoint_changes_total', 'counter', ''],
  ['sync_proxy_rules_service_changes_pending', 'gauge', ''],
  ['sync_proxy_rules_service_changes_total', 'counter', ''],
  ['sync_proxy_rules_no_local_endpoints_total', 'gauge', 'ip_family traffic_policy'],
  ['proxy_healthz_total', 'counter', 'code'],
  ['proxy_livez_total', 'counter', 'code'],
  ['sync_proxy_rules_nftables_sync_failures_total', 'counter', 'ip_family'],
  ['sync_proxy_rules_nftables_cleanup_failures_total', 'counter', 'ip_family'],
  ['conntrack_reconciler_sync_duration_seconds', 'histogram', 'ip_family', DOUBLING],
  ['conntrack_reconciler_deleted_entries_total', 'counter', 'ip_family'],
];

/** Everything there is to record, once. */
function useEverything(world: Scene): void {
  const { metrics, clock } = world;
  world.sources.push({ source: 'test', synced: true, sinceLastEventMs: 1500, failures: { silent: 2, expired: 0 } });
  world.upsert(service('web'), slice('web', [{ address: '10.0.0.1' }], { triggerTime: START_MS + clock.now() + 1 }));
  take(world);
  for (const family of FAMILIES) {
    sync(world, family, { full: true, repairs: ['r'], problems: ['p'] });
    sync(world, family);
    metrics.syncFinished(family, false, 0.1, { type: 'failure', errno: 'EBUSY' });
    metrics.flowsReconciled(family, 2, 0.01);
    metrics.tableCounted(family, { internal: 1, external: 2 }, 3);
  }
  for (const status of [200, 503]) {
    metrics.healthAnswered('/healthz', status);
    metrics.healthAnswered('/livez', status);
  }
  metrics.answered('GET', '10.96.0.1:443', 200, 12);
  metrics.delayed('GET', '10.96.0.1:443', 3);
  metrics.configChanged('refused');
}

function labelsOf(family: MetricFamily): string {
  const names = new Set(family.samples.flatMap(({ labels }) => Object.keys(labels)));
  names.delete('le');
  return [...names].sort().join(' ');
}

t.test('kube-proxy’s metrics: each name, type, label and bucket, and no other of its prefix', async (t) => {
  const world = scene();
  useEverything(world);
  const families = await world.scrape();
  const ours = [...families.values()].filter(({ name }) => name.startsWith('kubeproxy_'));
  t.strictSame(
    ours.map((family) => [family.name, family.type, labelsOf(family)]),
    KUBE_PROXY.map(([name, type, labels]) => [`kubeproxy_${name}`, type, labels]).sort(([one = ''], [other = '']) =>
      one < other ? -1 : 1,
    ),
  );
  for (const [name, type, , buckets] of KUBE_PROXY) {
    if (type !== 'histogram') continue;
    const samples = families.get(`kubeproxy_${name}`)?.samples ?? [];
    const bounds = samples
      .filter((sample) => sample.name.endsWith('_bucket') && sample.labels['ip_family'] === 'IPv4')
      .map((sample) => Number(sample.labels['le']?.replace('+Inf', 'Infinity')));
    t.same(bounds, [...(buckets ?? []), Infinity], name);
  }
  t.ok([...families.values()].every(({ help }) => help.length > 10));
});

t.test('what any component and any process shows', async (t) => {
  const world = scene();
  useEverything(world);
  const families = await world.scrape();
  t.match(families.get('kubernetes_build_info')?.samples, [
    {
      labels: { major: '1', minor: '36', git_version: 'v1.36.2', go_version: process.version, platform: goPlatform() },
      value: 1,
    },
  ]);
  t.equal(valueOf(families, 'kubernetes_feature_enabled', { name: 'NFTablesProxyMode', stage: '' }), 1);
  t.equal(valueOf(families, 'kubernetes_feature_enabled', { name: 'ClientsPreferCBOR', stage: 'ALPHA' }), 0);
  t.equal(valueOf(families, 'kubernetes_feature_enabled', { name: 'WatchListClient', stage: 'BETA' }), 1);
  world.metrics.answered('GET', '10.96.0.1:443', null, 5);
  const after = await world.scrape();
  for (const code of ['200', '<error>'])
    t.equal(valueOf(after, 'rest_client_requests_total', { code, host: '10.96.0.1:443', method: 'GET' }), 1, code);
  t.equal(valueOf(after, 'rest_client_request_duration_seconds_count', { verb: 'GET', host: '10.96.0.1:443' }), 2);
  t.equal(valueOf(after, 'rest_client_exec_plugin_ttl_seconds', {}), Infinity, 'no plugin');
  world.metrics.requestSized('POST', 'api:443', 300);
  world.metrics.responseSized('POST', 'api:443', 5000);
  world.metrics.transportCreated();
  world.metrics.pluginCalled('plugin_execution_error', 3);
  world.metrics.certificateRotated(Date.now() + 1e9, 3_700_000);
  const client = await world.scrape();
  const post = { verb: 'POST', host: 'api:443' };
  t.equal(valueOf(client, 'rest_client_request_size_bytes_bucket', { ...post, le: '256' }), 0);
  t.equal(valueOf(client, 'rest_client_request_size_bytes_bucket', { ...post, le: '512' }), 1);
  t.equal(valueOf(client, 'rest_client_response_size_bytes_sum', post), 5000);
  t.equal(client.get('rest_client_response_size_bytes')?.type, 'histogram');
  t.equal(valueOf(client, 'rest_client_transport_cache_entries', {}), 1);
  t.equal(valueOf(client, 'rest_client_transport_create_calls_total', { result: 'miss' }), 1);
  const failed = { code: '3', call_status: 'plugin_execution_error' };
  t.equal(valueOf(client, 'rest_client_exec_plugin_call_total', failed), 1);
  t.ok(Number.isFinite(valueOf(client, 'rest_client_exec_plugin_ttl_seconds', {})));
  t.equal(valueOf(client, 'rest_client_exec_plugin_certificate_rotation_age_bucket', { le: '3600' }), 0);
  t.equal(valueOf(client, 'rest_client_exec_plugin_certificate_rotation_age_bucket', { le: '14400' }), 1);
  for (const [name, type, least] of [
    ['cpu_seconds_total', 'counter', 0.01],
    ['resident_memory_bytes', 'gauge', 1e7],
    ['virtual_memory_bytes', 'gauge', 1e8],
    ['virtual_memory_max_bytes', 'gauge', -1],
    ['start_time_seconds', 'gauge', Date.now() / 1000 - 600],
    ['open_fds', 'gauge', 3],
    ['max_fds', 'gauge', 100],
  ] as const) {
    t.equal(after.get(`process_${name}`)?.type, type);
    t.ok((valueOf(after, `process_${name}`) ?? -2) >= least, name);
  }
  for (const name of ['network_receive_bytes_total', 'network_transmit_bytes_total'])
    t.equal(after.get(`process_${name}`)?.type, 'counter');
  const [major = ''] = process.versions.node.split('.');
  t.match(after.get('nodejs_version_info')?.samples, [{ labels: { version: process.version, major }, value: 1 }]);
  for (const name of ['heap_size_total_bytes', 'heap_size_used_bytes', 'external_memory_bytes'])
    t.ok((valueOf(after, `nodejs_${name}`) ?? 0) > 1e5, name);
  t.equal(after.get('nodejs_active_resources_total')?.type, 'gauge');
  t.notOk([...after.keys()].some((name) => name.startsWith('go_')));
  const [alpha] = after.get('registered_metrics_total')?.samples ?? [];
  t.match(alpha?.labels, { stability_level: 'ALPHA', deprecated_version: '' });
  const shown = [...after.values()].filter(({ help }) => help.startsWith('[ALPHA]'));
  t.ok((alpha?.value ?? 0) >= shown.length, 'those without a value yet as well');
  for (const name of ['hidden', 'disabled']) t.equal(valueOf(after, `${name}_metrics_total`), 0);
});

t.test('series with labels appear with their first use only, and none for other modes', async (t) => {
  const world = scene(['IPv4']);
  const families = await world.scrape();
  t.strictSame(
    [...families.keys()].filter((name) => name.startsWith('kubeproxy_')),
    [
      'kubeproxy_sync_proxy_rules_endpoint_changes_pending',
      'kubeproxy_sync_proxy_rules_endpoint_changes_total',
      'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds',
      'kubeproxy_sync_proxy_rules_service_changes_pending',
      'kubeproxy_sync_proxy_rules_service_changes_total',
    ],
  );
  sync(world, 'IPv4');
  const after = await world.scrape();
  const samples = after.get('kubeproxy_sync_proxy_rules_last_timestamp_seconds')?.samples;
  t.same(samples, [
    {
      name: 'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
      labels: { ip_family: 'IPv4' },
      value: START_MS / 1000,
    },
  ]);
  for (const name of ['sync_proxy_rules_nftables_sync_failures_total', 'conntrack_reconciler_deleted_entries_total'])
    t.notOk(after.has(`kubeproxy_${name}`), name);
  t.notOk([...after.keys()].some((name) => /iptables|ipvs|winkernel/.test(name)));
});

t.test('changes are counted as kube-proxy counts them, and pending until taken', async (t) => {
  const world = scene();
  const web = service('web');
  world.upsert(web, slice('web', [{ address: '10.0.0.1' }]), slice('web', [{ address: 'fd00::1' }]));
  world.upsert(node('n'));
  world.upsert(web);
  const count = async (name: string): Promise<number | null> =>
    valueOf(await world.scrape(), `kubeproxy_sync_proxy_rules_${name}`);
  t.equal(await count('service_changes_total'), 2, 'each family’s share');
  t.equal(await count('service_changes_pending'), 1);
  t.equal(await count('endpoint_changes_total'), 2);
  t.equal(await count('endpoint_changes_pending'), 2);
  take(world);
  world.remove(web);
  t.equal(await count('service_changes_total'), 4);
  t.equal(await count('service_changes_pending'), 1);
  world.upsert(web);
  t.equal(await count('service_changes_pending'), 1, 'a Service, however often it changes');
  t.equal(await count('endpoint_changes_total'), 2);
  t.equal(await count('endpoint_changes_pending'), 0);
});

t.test('slices of a family that is not served count for nothing', async (t) => {
  const world = scene(['IPv4']);
  world.upsert(slice('web', [{ address: 'fd00::1' }]));
  t.equal(valueOf(await world.scrape(), 'kubeproxy_sync_proxy_rules_endpoint_changes_total'), 0);
  t.equal(valueOf(await world.scrape(), 'pointsman_oldest_pending_change_seconds', { ip_family: 'IPv6' }), null);
});

t.test('network programming: from the trigger to the acknowledgement, whatever failed in between', async (t) => {
  const world = scene();
  const { clock, metrics } = world;
  const programmed = async (family: Family): Promise<readonly (number | null)[]> => {
    const families = await world.scrape();
    const name = 'kubeproxy_network_programming_duration_seconds';
    return [`${name}_count`, `${name}_sum`].map((sample) => valueOf(families, sample, { ip_family: family }));
  };
  await clock.advance(10_000);
  world.upsert(slice('web', [{ address: '10.0.0.1' }], { triggerTime: START_MS + 9_000 }));
  world.upsert(slice('old', [{ address: '10.0.0.2' }], { triggerTime: START_MS - 1 }));
  world.upsert(slice('six', [{ address: 'fd00::2' }], { triggerTime: START_MS + 9_500 }));
  world.upsert(slice('gone', [{ address: '10.0.0.3' }], { triggerTime: START_MS + 9_500 }));
  take(world);
  metrics.syncFinished('IPv4', false, 0.1, { type: 'failure', errno: null });
  t.same(await programmed('IPv4'), [null, null], 'nothing was acknowledged');
  world.remove(slice('gone', [{ address: '10.0.0.3' }]));
  await clock.advance(1000);
  world.upsert(slice('late', [{ address: '10.0.0.4' }], { triggerTime: START_MS + 10_500 }));
  take(world);
  world.upsert(slice('later', [{ address: '10.0.0.5' }], { triggerTime: START_MS + 10_600 }));
  sync(world, 'IPv4');
  t.same(await programmed('IPv4'), [2, 2.5], 'web after 2 s, late after 0.5 s; old, gone and later not');
  t.same(await programmed('IPv6'), [null, null]);
  sync(world, 'IPv6');
  t.same(await programmed('IPv6'), [1, 1.5]);
  sync(world, 'IPv4');
  t.same(await programmed('IPv4'), [2, 2.5], 'once each');
});

t.test('event to commit: one observation per change and family, from its own event', async (t) => {
  const world = scene();
  const { clock } = world;
  const observed = async (family: Family): Promise<readonly (number | null)[]> => {
    const families = await world.scrape();
    const name = 'pointsman_change_commit_duration_seconds';
    return [
      ...[`${name}_count`, `${name}_sum`].map((sample) => valueOf(families, sample, { ip_family: family })),
      valueOf(families, 'pointsman_oldest_pending_change_seconds', { ip_family: family }),
    ];
  };
  world.upsert(service('web'));
  await clock.advance(1);
  world.upsert(slice('web', [{ address: '10.0.0.1' }]));
  await clock.advance(2);
  t.same(await observed('IPv4'), [null, null, 0.003]);
  take(world);
  world.upsert(slice('web', [{ address: '10.0.0.2' }]));
  sync(world, 'IPv4');
  const [count, sum, age] = await observed('IPv4');
  t.equal(count, 2);
  t.ok(Math.abs((sum ?? 0) - 0.005) < 1e-9, '3 ms and 2 ms');
  t.equal(age, 0, 'the third is new');
  await clock.advance(4);
  t.same((await observed('IPv4'))[2], 0.004);
  sync(world, 'IPv6');
  t.same(await observed('IPv6'), [1, 0.007, 0], 'the slice is not its concern');
});

t.test('what comes before all sources are complete waits for them and is not measured', async (t) => {
  const world = scene(FAMILIES, false);
  world.upsert(service('web'));
  await world.clock.advance(5000);
  world.writer.complete();
  take(world);
  sync(world, 'IPv4');
  const families = await world.scrape();
  t.notOk(families.has('pointsman_change_commit_duration_seconds'));
  const queued = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds';
  t.equal(valueOf(families, queued, { ip_family: 'IPv4' }), START_MS / 1000 + 5);
  t.equal(valueOf(families, 'kubeproxy_sync_proxy_rules_service_changes_total'), 2);
});

t.test('syncs: lengths by kind, failures by errno, debt until acknowledged', async (t) => {
  const world = scene(['IPv4']);
  const { metrics } = world;
  const labels = { ip_family: 'IPv4' };
  take(world, 'a', 'b');
  metrics.syncFinished('IPv4', true, 0.5, { type: 'failure', errno: 'ENOBUFS' });
  take(world, 'b', 'c');
  const during = await world.scrape();
  t.equal(valueOf(during, 'pointsman_pending_frontends', labels), 3);
  t.equal(valueOf(during, 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total', labels), 1);
  t.equal(valueOf(during, 'pointsman_native_failures_total', { errno: 'ENOBUFS', ...labels }), 1);
  t.notOk(during.has('kubeproxy_sync_proxy_rules_last_timestamp_seconds'));
  acknowledge(world, report('IPv4', { ruleOperations: 7, repairs: ['x', 'y'] }));
  metrics.syncFinished('IPv4', false, 0.002, { type: 'success' });
  acknowledge(world, report('IPv4', { transactions: 0, elementOperations: 0, bytes: 0 }));
  metrics.syncFinished('IPv4', false, 0.002, { type: 'failure', errno: null });
  const after = await world.scrape();
  t.equal(valueOf(after, 'pointsman_pending_frontends', labels), 0);
  t.equal(valueOf(after, 'pointsman_repairs_total', labels), 2);
  t.equal(valueOf(after, 'pointsman_set_aside_frontends', labels), 0);
  const setAside = [{ frontend: '10.0.0.1:80/SCTP', reason: 'ENOENT', since: 0, retryAt: 1 }];
  acknowledge(world, report('IPv4', { setAside }));
  t.equal(valueOf(await world.scrape(), 'pointsman_set_aside_frontends', labels), 1);
  t.equal(valueOf(after, 'pointsman_sync_operations_sum', { kind: 'element', ...labels }), 3);
  t.equal(valueOf(after, 'pointsman_sync_operations_sum', { kind: 'rule', ...labels }), 7);
  t.equal(valueOf(after, 'pointsman_sync_bytes_count', labels), 1, 'a sync with nothing to send is not one');
  t.equal(valueOf(after, 'kubeproxy_sync_proxy_rules_duration_seconds_count', labels), 3);
  t.equal(valueOf(after, 'kubeproxy_sync_full_proxy_rules_duration_seconds_sum', labels), 0.5);
  t.equal(valueOf(after, 'kubeproxy_sync_partial_proxy_rules_duration_seconds_count', labels), 2);
  const bucket = 'kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket';
  t.same(
    ['0.001', '0.002'].map((le) => valueOf(after, bucket, { le, ...labels })),
    [0, 2],
  );
  take(world, 'd');
  t.equal(valueOf(await world.scrape(), 'pointsman_pending_frontends', labels), 1, 'nothing of before');
  t.equal(after.get('pointsman_native_failures_total')?.samples.length, 1, 'a failure that is not the kernel’s');
});

t.test('sources are asked at each scrape', async (t) => {
  const world = scene();
  await world.clock.advance(60_000);
  world.sources.push({
    source: 'services',
    synced: false,
    sinceLastEventMs: null,
    failures: { silent: 2, expired: 0 },
  });
  const before = await world.scrape();
  t.equal(valueOf(before, 'pointsman_source_synced', { source: 'services' }), 0);
  t.notOk(before.has('pointsman_source_last_event_timestamp_seconds'));
  t.same(before.get('pointsman_source_failures_total'), {
    name: 'pointsman_source_failures_total',
    help: 'Failures of a source so far by kind.',
    type: 'counter',
    samples: [{ name: 'pointsman_source_failures_total', labels: { source: 'services', kind: 'silent' }, value: 2 }],
  });
  world.sources.splice(0, 1, { source: 'services', synced: true, sinceLastEventMs: 1500, failures: { silent: 3 } });
  const after = await world.scrape();
  t.equal(valueOf(after, 'pointsman_source_synced', { source: 'services' }), 1);
  t.equal(
    valueOf(after, 'pointsman_source_last_event_timestamp_seconds', { source: 'services' }),
    START_MS / 1000 + 58.5,
  );
  t.equal(valueOf(after, 'pointsman_source_failures_total', { source: 'services', kind: 'silent' }), 3);
});

t.test('two instances share nothing', async (t) => {
  const one = scene();
  const other = scene();
  one.metrics.healthAnswered('/livez', 200);
  t.equal(valueOf(await one.scrape(), 'kubeproxy_proxy_livez_total', { code: '200' }), 1);
  t.notOk((await other.scrape()).has('kubeproxy_proxy_livez_total'));
});

t.test('mode iptables: rules by table, and failures under its names', async (t) => {
  const world = scene(['IPv4'], true, 'iptables');
  const { metrics } = world;
  const labels = { ip_family: 'IPv4' };
  const rules = { written: { filter: 1, nat: 20 }, held: { filter: 30, nat: 400 } };
  acknowledge(world, report('IPv4', { rules, problems: ['x'] }));
  metrics.syncFinished('IPv4', true, 0.1, { type: 'failure', errno: null });
  metrics.syncFinished('IPv4', false, 0.1, { type: 'failure', errno: null });
  const found = await world.scrape();
  const value = (name: string, more: Readonly<Record<string, string>> = {}): number | null =>
    valueOf(found, `kubeproxy_sync_proxy_rules_${name}`, { ...labels, ...more });
  t.equal(value('iptables_total', { table: 'filter' }), 30);
  t.equal(value('iptables_total', { table: 'nat' }), 400);
  t.equal(value('iptables_last', { table: 'filter' }), 1);
  t.equal(value('iptables_last', { table: 'nat' }), 20);
  t.equal(value('iptables_restore_failures_total'), 2);
  t.equal(value('iptables_partial_restore_failures_total'), 1);
  t.notOk([...found.keys()].some((name) => name.includes('nftables')));
  const { metrics: other } = modeDefinition('nftables');
  metrics.setMode({ metrics: other, packetCounts: () => Promise.resolve(null) });
  metrics.syncFinished('IPv4', true, 0.1, { type: 'failure', errno: null });
  const after = await world.scrape();
  t.notOk(
    [...after.keys()].some((name) => name.includes('iptables')),
    'with another mode its names are gone',
  );
  t.equal(valueOf(after, 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total', labels), 1);
});

t.test('packets have metrics where rules count them (ME-16, ME-17), and show what the kernel says', async (t) => {
  const world = scene(FAMILIES, true, 'iptables');
  const dropped = 'kubeproxy_iptables_ct_state_invalid_dropped_packets_total';
  const accepted = 'kubeproxy_iptables_localhost_nodeports_accepted_packets_total';
  const before = await world.scrape();
  t.notOk(before.has(dropped) || before.has(accepted));
  const alpha = { stability_level: 'ALPHA', deprecated_version: '' };
  const registered = valueOf(before, 'registered_metrics_total', alpha) ?? 0;
  for (const [invalidDropped, localhostAccepted] of [
    [0, 0],
    [5, 2],
    [9, 2],
  ] as const) {
    world.counted.packets = {
      iptables_ct_state_invalid_dropped_packets_total: invalidDropped,
      iptables_localhost_nodeports_accepted_packets_total: localhostAccepted,
    };
    const found = await world.scrape();
    t.equal(found.get(dropped)?.type, 'counter');
    t.equal(valueOf(found, dropped), invalidDropped);
    t.equal(valueOf(found, accepted), localhostAccepted);
    t.equal(valueOf(found, 'registered_metrics_total', alpha), registered + 2);
  }
});
