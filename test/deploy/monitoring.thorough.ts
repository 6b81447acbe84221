// Rules and dashboards in Debian's Prometheus, which apt fetches where it is not installed.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { ALERTS, DASHBOARDS, dashboardQueries, ruleGroups, type Query } from '../support/monitoring.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, IPV4 } from '../support/lab/packet-table.js';
import { Prometheus, prometheusProgram, promtool } from '../support/lab/prometheus.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

/** Why there can be no Prometheus; false: there can. */
const withoutPrometheus = ((): string | false => {
  try {
    prometheusProgram();
    return false;
  } catch (error) {
    return `no Debian package prometheus: ${String(error)}`;
  }
})();

/** What dashboards and alerts of kubernetes-mixin ask of kube-proxy, go_goroutines apart (docs/inside.md). */
const MIXIN: readonly string[] = [
  'sum(up{job="kube-proxy"})',
  'absent(absent(up{job="kube-proxy"} == 1))',
  'sum(rate(kubeproxy_sync_proxy_rules_duration_seconds_count{job="kube-proxy"}[1m]))',
  'histogram_quantile(0.99, rate(kubeproxy_sync_proxy_rules_duration_seconds_bucket{job="kube-proxy"}[1m])) >= 0',
  'sum(rate(kubeproxy_network_programming_duration_seconds_count{job="kube-proxy"}[1m]))',
  'sum(rate(kubeproxy_network_programming_duration_seconds_bucket{job="kube-proxy"}[1m])) by (instance, le)',
  'sum(rate(rest_client_requests_total{job="kube-proxy", code=~"2.."}[1m]))',
  'sum(rate(rest_client_request_duration_seconds_bucket{job="kube-proxy", verb="GET"}[1m])) by (verb, le)',
  'process_resident_memory_bytes{job="kube-proxy"}',
  'rate(process_cpu_seconds_total{job="kube-proxy"}[1m])',
  'count by (git_version) (kubernetes_build_info{job="kube-proxy"})',
];

/** With the time of the change that the endpoints controller notes. */
function triggered(object: Manifest): Manifest {
  if (object.kind !== 'EndpointSlice') return object;
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
  return { ...object, metadata: { ...(object['metadata'] as object), annotations } };
}

t.test('promtool accepts the rules, and each alert fires when it should', { skip: withoutPrometheus }, (t) => {
  execFileSync(promtool(), ['check', 'rules', join(ALERTS, 'rules.yaml')]);
  execFileSync(promtool(), ['test', 'rules', join(ALERTS, 'rules.test.yaml')]);
  t.pass('promtool found nothing wrong');
  t.end();
});

t.test('every query of the dashboards has an answer', { skip: withoutPrometheus }, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const cluster = await ControlPlane.start(t, lab);
  const web = dualStack('web', { number: 41, ports: [{ name: 'http', port: 80 }], endpoints: ['pod-a'] });
  const empty = dualStack('empty', { number: 42, ports: [{ name: 'http', port: 80 }], endpoints: [] });
  const proxy = await Proxy.start(t, lab, {
    cluster,
    flags: ['--service-telemetry', '--service-telemetry-endpoints'],
    config: { metricsBindAddress: '0.0.0.0:10249' },
    objects: [...web, ...empty],
  });
  const job = {
    job_name: 'kube-proxy',
    static_configs: [{ targets: [`${ADDRESSES.node.IPv4}:10249`] }],
    honor_labels: true,
  };
  const prometheus = Prometheus.start(t, lab, 'remote-node', [job], [join(ALERTS, 'rules.yaml')]);
  await eventually('the proxy is scraped', async () => (await prometheus.query('up == 1'))[0] ?? null);
  const asked: readonly Query[] = [
    ...DASHBOARDS.flatMap(dashboardQueries),
    ...ruleGroups().flatMap(({ rules }) =>
      rules.flatMap(({ record }) => (record === undefined ? [] : { of: record, expr: record })),
    ),
    ...MIXIN.map((expr) => ({ of: 'kubernetes-mixin', expr })),
  ];
  // Rates need two scrapes of a series, and some series begin with the first packet or change.
  const missing = new Set(asked);
  let number = 0;
  await eventually(
    'answers to all queries',
    async () => {
      await lab.request({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80) });
      await lab.request({ from: 'pod-c', to: endpoint(IPV4.clusterIP(42), 80) });
      const changed = dualStack('changed', { number: 43, ports: [{ port: 80 + ++number }], endpoints: ['pod-a'] });
      await proxy.apply([...web, ...empty, ...changed.map(triggered)]);
      for (const query of missing) if ((await prometheus.query(query.expr)).length > 0) missing.delete(query);
      return missing.size === 0 ? true : null;
    },
    patience(60_000),
  ).catch(() => null);
  t.same(
    [...missing].map(({ of, expr }) => `${of}: ${expr}`),
    [],
    `of ${asked.length} queries`,
  );
  t.same(await prometheus.brokenAnnotations(), []);
});
