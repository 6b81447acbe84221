import t from 'tap';
import { goPlatform } from '../../src/base/platform.js';
import { modeDefinition } from '../../src/dataplane/modes.js';
import { valueOf, type MetricFamily } from '../support/exposition.js';
import { service, slice } from '../support/rows.js';
import { START_MS, FAMILIES, type Scene, scene, report, take, acknowledge, failed, sync } from './metrics-scene.js';

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
    metrics.syncEnded(failed(family, false, 0.1, 'EBUSY'));
    metrics.flowsChecked({ family, deleted: 2, seconds: 0.01 });
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
  t.equal(valueOf(families, 'pointsman_conflicts', { ip_family: 'IPv6' }), 3);
});

t.test('When the API server was last heard of is shown during a connection only', async (t) => {
  const world = scene();
  const name = 'pointsman_apiserver_last_heard_timestamp_seconds';
  let heardMs: number | null = null;
  world.metrics.setHealth({ healthy: () => true, apiHeardMs: () => heardMs });
  t.notOk((await world.scrape()).has(name));
  heardMs = 2500;
  t.equal(valueOf(await world.scrape(), name, {}), START_MS / 1000 - 2.5);
  heardMs = null;
  t.notOk((await world.scrape()).has(name));
});

t.test('Health and conntrack table size are read when metrics are scraped', async (t) => {
  const world = scene();
  const shown = async (): Promise<readonly unknown[]> => {
    const families = await world.scrape();
    const names = ['pointsman_healthy', 'pointsman_conntrack_entries', 'pointsman_conntrack_entries_limit'];
    return names.map((name) => (families.has(name) ? valueOf(families, name, {}) : null));
  };
  let healthy = false;
  world.metrics.setHealth({ healthy: () => healthy, apiHeardMs: () => null });
  t.same(await shown(), [0, null, null], 'without a table nothing is shown of it');
  healthy = true;
  world.setFlows({ entries: 3, limit: 8 });
  t.same(await shown(), [1, 3, 8]);
  world.setFlows({ entries: 8, limit: 8 });
  t.same(await shown(), [1, 8, 8]);
});

t.test('metrics have the series of every Kubernetes component and process', async (t) => {
  const world = scene();
  useEverything(world);
  const families = await world.scrape();
  t.match(families.get('kubernetes_build_info')?.samples, [
    {
      labels: { major: '1', minor: '37', git_version: 'v1.37.2', go_version: process.version, platform: goPlatform() },
      value: 1,
    },
  ]);
  // docs/inside.md names what dashboards and alerts find in place of what only a program in Go has.
  t.same(
    [...families.keys()].filter((name) => name.startsWith('go_')),
    [],
  );
  t.type(valueOf(families, 'nodejs_active_resources_total', {}), 'number');
  world.metrics.delayed('GET', 'api:443', 3);
  const limited = await world.scrape();
  t.equal(valueOf(limited, 'rest_client_rate_limiter_duration_seconds_count', { verb: 'GET', host: 'api:443' }), 1);
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

t.test('labelled series appear with their first use, and none of other modes', async (t) => {
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

t.test('metrics sources are read at each scrape', async (t) => {
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
    help: 'Failures of a source by kind.',
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

t.test('two metrics registries share nothing', async (t) => {
  const one = scene();
  const other = scene();
  one.metrics.healthAnswered('/livez', 200);
  t.equal(valueOf(await one.scrape(), 'kubeproxy_proxy_livez_total', { code: '200' }), 1);
  t.notOk((await other.scrape()).has('kubeproxy_proxy_livez_total'));
});

t.test('refused chains fail the sync in its metrics, and are not counted as cleanup', async (t) => {
  const world = scene(['IPv4']);
  const counts = async (): Promise<readonly (number | null)[]> => {
    const found = await world.scrape();
    return ['sync', 'cleanup'].map((what) =>
      valueOf(found, `kubeproxy_sync_proxy_rules_nftables_${what}_failures_total`, { ip_family: 'IPv4' }),
    );
  };
  acknowledge(world, report('IPv4', { refusedChains: ['pick-8'] }));
  t.same((await counts()).map(Number), [1, 0]);
  acknowledge(world, report('IPv4', { problems: ['x'], refusedChains: [] }));
  t.same(await counts(), [1, 1]);
});

t.test('mode iptables: metrics of rules by table, and failures under its names', async (t) => {
  const world = scene(['IPv4'], true, 'iptables');
  const { metrics } = world;
  const labels = { ip_family: 'IPv4' };
  const rules = { written: { filter: 1, nat: 20 }, held: { filter: 30, nat: 400 } };
  acknowledge(world, report('IPv4', { rules, problems: ['x'] }));
  metrics.syncEnded(failed('IPv4', true, 0.1, null));
  metrics.syncEnded(failed('IPv4', false, 0.1, null));
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
  metrics.setMode({ metrics: other, modeCounts: () => Promise.resolve(null) });
  metrics.syncEnded(failed('IPv4', true, 0.1, null));
  const after = await world.scrape();
  t.notOk(
    [...after.keys()].some((name) => name.includes('iptables')),
    'with another mode its names are gone',
  );
  t.equal(valueOf(after, 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total', labels), 1);
});

t.test('mode ipvs: no durations of full and partial syncs, and failures under the name of mode iptables', async (t) => {
  const world = scene(['IPv4'], true, 'ipvs');
  const { metrics } = world;
  for (const full of [true, false]) metrics.syncEnded(failed('IPv4', full, 0.1, null));
  const found = await world.scrape();
  const names = [...found.keys()].filter(
    (name) => name.startsWith('kubeproxy_') && /iptables|nftables|duration/.test(name),
  );
  t.same(names.sort(), [
    'kubeproxy_sync_proxy_rules_duration_seconds',
    'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
  ]);
  const failures = 'kubeproxy_sync_proxy_rules_iptables_restore_failures_total';
  t.equal(valueOf(found, failures, { ip_family: 'IPv4' }), 2);
});

t.test('a metric that a mode counts by labels has a series for each count', async (t) => {
  const world = scene(FAMILIES, true, 'kernelspace');
  const name = 'sync_proxy_rules_winkernel_lb_create_failures_total';
  const labels = { ip_family: 'IPv4', lb_type: 'nodeport', error: 'other' };
  for (const count of [2, 5]) {
    world.counted.packets = { [name]: [{ labels, count }] };
    const found = await world.scrape();
    t.equal(valueOf(found, `kubeproxy_${name}`, labels), count);
    t.notOk(found.has(`kubeproxy_${name.replace('create', 'delete')}`));
  }
});

t.test("ME-16, ME-17: packet metrics exist if rules count packets, with the kernel's values", async (t) => {
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
