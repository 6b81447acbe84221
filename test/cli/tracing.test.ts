// Traces as a collector gets them by OTLP over gRPC: of the process put together, on a kernel in memory, and of the program as it is shipped.
// needs: ip
import '../support/namespace.js';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openTracing, readTracingFile } from '../../src/cli/tracing.js';
import type { SyncReport } from '../../src/dataplane/contract.js';
import type { AcknowledgedSync } from '../../src/observe/cycle-observer.js';
import type { ProcessTracing } from '../../src/observe/tracing.js';
import type { RowEdit } from '../../src/state/store.js';
import { serviceObject } from '../support/api-objects.js';
import { eventually } from '../support/manifests.js';
import { IPTABLES_STORIES } from '../support/fake-iptables/world.js';
import { IPVS_STORIES } from '../support/fake-ipvs/world.js';
import { OtlpCollector } from '../support/otlp-collector.js';
import { PROGRAM } from '../support/program.js';
import { service, slice } from '../support/rows.js';
import { HEADER, World } from './tracing-world.js';

const ALL = 'samplingRatePerMillion: 1000000\n';
const REPORT: SyncReport = {
  family: 'IPv4',
  full: false,
  transactions: 1,
  elementOperations: 1,
  ruleOperations: 0,
  bytes: 1,
  repairs: [],
  problems: [],
  rules: null,
  quarantined: [],
  flows: new Set(),
};

spawnSync('ip', ['link', 'set', 'lo', 'up']);

/** A sync of one family that the kernel takes, or does not. */
async function sync(tracing: ProcessTracing, error: Error | null = null): Promise<void> {
  const [family, sync] = ['IPv4', { full: false, seconds: 0, counts: true }] as const;
  tracing.runBegan(false);
  tracing.planned();
  tracing.syncBegan(family, false);
  if (error === null) {
    const report = await tracing.during('apply', family, () => Promise.resolve(REPORT));
    tracing.acknowledged({ report } as AcknowledgedSync);
    await tracing.during('flows', family, () => Promise.resolve());
  }
  tracing.syncEnded({
    family,
    ...sync,
    result: error === null ? { type: 'success' } : { type: 'failure', error, errno: null },
  });
  tracing.runEnded(error);
}

t.test('the start and each change are one trace, from the watch to conntrack', async (t) => {
  const world = new World(t);
  const { server, collector, kernel, counts } = world;
  await world.start(ALL);
  await eventually(() => server.watches.size >= 3 && server.events.length > 0, 'watches and an event');
  const before = kernel.committed.length;
  server.put(serviceObject('dns', { clusterIP: '10.96.0.53', ports: [{ port: 53, protocol: 'UDP' }] }));
  await world.committed(before + 1);
  await world.stop();

  const [change] = collector.named('change Service');
  if (change === undefined) throw new Error(collector.spans.map(({ name }) => name).join());
  t.same(collector.tree(change), [
    'change Service',
    '  state',
    '  sync',
    '    plan',
    '    sync IPv4',
    '      diff',
    '      transaction',
    '      acknowledge',
    '      stale flows',
    '        read',
  ]);
  const { traceId } = change;
  const whole = collector.spans.filter((span) => span.traceId === traceId);
  t.equal(whole.length, 10);
  for (const { name, start, end } of whole) {
    // The run of both families ends after the last of them.
    const isWithin = start >= change.start && (end <= change.end || name === 'sync');
    t.ok(isWithin && start <= end, name);
  }
  t.match(change.attributes, {
    'k8s.object.kind': 'Service',
    'k8s.namespace.name': 'default',
    'k8s.object.name': 'dns',
    'k8s.object.resource_version': /^\d+$/,
    'k8s.watch.event': 'ADDED',
    'pointsman.change': 'ADDED',
  });
  t.match(whole.find(({ name }) => name === 'sync')?.attributes, { 'pointsman.changes': 1, 'pointsman.full': false });
  const bytes = kernel.committed.length > 0 ? whole.find(({ name }) => name === 'transaction')?.attributes : undefined;
  t.match(bytes, { 'pointsman.call': 'nftTransact', 'pointsman.bytes': Number });
  t.match(whole.find(({ name }) => name === 'sync IPv4')?.attributes, {
    'pointsman.family': 'IPv4',
    'pointsman.mode': 'nftables',
    'pointsman.transactions': 1,
    'pointsman.element_operations': 3,
    'pointsman.bytes': bytes?.['pointsman.bytes'],
  });
  t.match(change.resource, {
    'service.name': 'pointsman',
    'service.version': '0.1.0',
    'k8s.node.name': 'worker-1.example',
  });

  const [start] = collector.named('start');
  const below = start === undefined ? [] : collector.tree(start);
  t.equal(below.filter((line) => line === '  list').length, 3, below.join());
  t.ok(below.includes('      transaction'));
  const lists = collector.named('list').map(({ attributes }) => attributes['k8s.resource']);
  t.same([...lists].sort(), ['endpointslices', 'nodes', 'services']);
  t.same(counts, { exported: collector.spans.length, dropped: 0 });

  const requests = collector.spans.filter(({ name, kind }) => name.startsWith('HTTP ') && kind === 3);
  t.ok(
    requests.some(({ name }) => name === 'HTTP POST'),
    'events',
  );
  // Those too that the end of the process cut off.
  const known = new Set(requests.map((span) => `00-${span.traceId}-${span.spanId}-01`));
  t.same(
    server.requests.filter(({ headers }) => !known.has(String(headers['traceparent']))),
    [],
  );
  const statuses = requests.flatMap(({ attributes }) => attributes['http.response.status_code'] ?? []);
  t.ok(statuses.length >= 5 && statuses.every((status) => status === 200 || status === 201), statuses.join());
});

for (const stories of [IPTABLES_STORIES, IPVS_STORIES])
  t.test(`in mode ${stories.definition.name}, a change is one trace`, async (t) => {
    const world = new World(t, stories);
    const { server, collector } = world;
    await world.start(ALL);
    await eventually(() => server.watches.size >= 3 && server.events.length > 0, 'watches and an event');
    const before = world.transactions;
    server.put(serviceObject('dns', { clusterIP: '10.96.0.53', ports: [{ port: 53, protocol: 'UDP' }] }));
    await world.committed(before + 1);
    await eventually(() => collector.named('change Service').length > 0, 'the trace');
    await world.stop();
    const [change] = collector.named('change Service');
    const tree = change === undefined ? [] : collector.tree(change);
    for (const line of ['  state', '    plan', '    sync IPv4', '      transaction', '      acknowledge'])
      t.ok(tree.includes(line), `${line} of ${tree.join()}`);
    t.match(change?.attributes, { 'k8s.object.name': 'dns' });
    const ofChange = collector.spans.filter(({ traceId }) => traceId === change?.traceId);
    t.match(ofChange.find(({ name }) => name === 'sync IPv4')?.attributes, {
      'pointsman.mode': stories.definition.name,
      'pointsman.transactions': Number,
    });
    const calls = ofChange.flatMap(({ name, attributes }) =>
      name === 'transaction' ? [attributes['pointsman.call']] : [],
    );
    t.ok(calls.length > 0 && calls.every((call) => typeof call === 'string' && call !== 'nftTransact'), calls.join());
  });

t.test('an audit is a trace, whatever its result', async (t) => {
  const world = new World(t);
  const tracing = await world.open(ALL);
  t.equal(await tracing.during('audit', 'IPv4', () => Promise.resolve(true)), true);
  t.equal(await tracing.during('audit', 'IPv6', () => Promise.resolve(false)), false);
  await t.rejects(
    tracing.during('audit', 'IPv4', () => Promise.reject(new Error('no answer'))),
    { message: 'no answer' },
  );
  await world.stop();
  const found = world.collector.spans.filter(({ name }) => name.startsWith('audit '));
  t.same(
    found.map(({ name, attributes }) => [name, attributes['pointsman.different']]),
    [
      ['audit IPv4', true],
      ['audit IPv6', false],
      ['audit IPv4', undefined],
    ],
  );
  t.ok(found.every(({ parentId, attributes }) => parentId === '' && attributes['pointsman.mode'] === 'nftables'));
});

t.test('repairs, and audits that find nothing, are traces of their own', async (t) => {
  const world = new World(t);
  const { server, collector, kernel } = world;
  await world.start(ALL);
  await eventually(() => server.watches.size >= 3, 'watches');
  const before = kernel.committed.length;
  const commands = [{ add: { chain: { family: 'ip' as const, table: 'kube-proxy', name: 'unexpected' } } }];
  kernel.foreign({ family: 'ip', table: 'kube-proxy', operations: [{ type: 'commands', commands }] });
  await eventually(
    () => collector.spans.some(({ attributes }) => attributes['pointsman.suspected'] === true),
    'a check',
  );
  t.ok(kernel.committed.length > before);
  await world.stop();
  const [repair] = collector.spans.filter(({ attributes }) => attributes['pointsman.suspected'] === true);
  t.match(repair, { name: 'sync IPv4', attributes: { 'pointsman.full': true } });
  const run = collector.spans.find(({ spanId }) => spanId === repair?.parentId);
  t.match(run, { name: 'sync', parentId: '', attributes: { 'pointsman.changes': 0 } });
});

t.test('changes in one sync are linked with it, and their traces end when it succeeds', async (t) => {
  const world = new World(t);
  const { collector } = world;
  const tracing = await world.open(ALL);
  await sync(tracing);
  const committed = (...edits: readonly RowEdit[]): void => {
    tracing.committed({ edits, receivedAt: null, ready: true, families: ['IPv4'] });
  };
  const commit = (name: string, version: string): void => {
    const row = service(name, {});
    const received = [
      { type: 'MODIFIED', kind: 'Service', namespace: 'default', name, resourceVersion: version },
    ] as const;
    tracing.committing(received, () => {
      committed({ before: row, after: row });
    });
  };
  commit('a', '11');
  commit('b', '12');
  committed({ before: null, after: slice('a', [{ address: 'fd00::1' }]) });
  await sync(tracing, new Error('refused'));
  t.equal(collector.named('change Service').length, 0);
  commit('c', '13');
  await sync(tracing);
  await world.stop();

  const changes = collector.named('change Service');
  t.same(
    changes.map(({ attributes }) => attributes['k8s.object.resource_version']),
    ['11', '12', '13'],
  );
  const [, failed, good] = collector.named('sync');
  const [a, b, c] = changes.map(({ spanId }) => spanId);
  t.match(failed, { parentId: a, links: [b], status: 2, attributes: { 'pointsman.changes': 3 } });
  t.match(good, { parentId: a, links: [b, c], status: 0, attributes: { 'pointsman.changes': 1 } });
  t.same(
    changes.map(({ links }) => links),
    [[], [failed?.spanId, good?.spanId], [good?.spanId]],
    'and back',
  );
  t.equal(new Set(changes.map(({ traceId }) => traceId)).size, 3);
});

t.test('the trace of an unfinished start is sent when the process ends', async (t) => {
  const world = new World(t);
  const tracing = await world.open(ALL);
  tracing.request('GET', 'server', '/api/v1/services').answered(null);
  await sync(tracing, new Error('refused'));
  await world.stop();
  const [start] = world.collector.named('start');
  if (start === undefined) throw new Error('no start');
  t.equal(start.status, 2);
  t.same(world.collector.tree(start), ['start', '  HTTP GET', '  sync', '    plan', '    sync IPv4']);
  t.same(
    world.collector.childrenOf(start).map(({ status }) => status),
    [2, 2],
  );
});

t.test('traces of changes follow samplingRatePerMillion', async (t) => {
  for (const [more, least, most] of [
    ['', 0, 0],
    ['samplingRatePerMillion: 0\n', 0, 0],
    ['samplingRatePerMillion: 500000\n', 100, 300],
  ] as const) {
    const world = new World(t);
    const { collector, counts, log } = world;
    const tracing = await world.open(more);
    await sync(tracing);
    for (let index = 0; index < 400; index++) {
      const edits = [{ before: null, after: service(`s${index}`, {}) }];
      tracing.committed({ edits, receivedAt: null, ready: true, families: ['IPv4'] });
      await sync(tracing);
    }
    const { headers } = tracing.request('GET', 'server', '/version');
    await world.stop();
    const changes = collector.named('change Service').length;
    t.ok(changes >= least && changes <= most, `${changes} of 400 with ${more}`);
    t.equal(collector.named('sync IPv4').length, changes + collector.named('start').length, 'and all of each');
    if (most === 0) t.same([collector.spans.length, counts], [0, { exported: 0, dropped: 0 }]);
    t.equal(
      log.lines.some((line) => line.includes('so no trace is sent')),
      most === 0,
    );
    t.match(
      headers['traceparent'],
      most === 0 ? /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/ : /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/,
    );
  }
});

t.test('an absent or slow trace collector costs counted spans, and at most a second at the end', async (t) => {
  const world = new World(t);
  const { collector, counts, log } = world;
  await collector.start();
  collector.stop();
  // As the product has it.
  const tracing = await world.open(ALL, { exportTimeoutMs: 900 });
  for (let index = 0; index < 3; index++) tracing.request('GET', 'server', '/version').answered(200);
  await eventually(() => counts.dropped === 3, 'dropped');
  t.equal(log.lines.filter((line) => line.includes('traces cannot be sent')).length, 1, log.lines.join());

  await collector.start();
  let back = 0;
  await eventually(() => {
    back++;
    tracing.request('GET', 'server', '/back').answered(404);
    return collector.spans.length > 0;
  }, 'sent again');
  t.match(collector.named('HTTP GET')[0], { status: 2, attributes: { 'url.path': '/back' } });
  await eventually(() => log.lines.some((line) => line.includes('traces are sent again')), 'said');

  collector.held = new Promise(() => undefined);
  const before = { ...counts };
  for (let index = 0; index < 10_000; index++) tracing.request('GET', 'server', '/version').answered(200);
  t.ok(counts.dropped - before.dropped >= 10_000 - 4096, `${counts.dropped} of a full queue`);
  const startedAt = performance.now();
  await world.stop();
  const took = performance.now() - startedAt;
  // An export would otherwise have ten seconds.
  t.ok(took < 5000, `${took} ms`);
  t.ok(counts.exported <= back, `${counts.exported} of ${back}: none of those`);
});

t.test('an invalid tracing configuration is reported', async (t) => {
  const folder = t.testdir();
  const file = join(folder, 'tracing.yaml');
  const world = new World(t);
  const config = { nodeName: 'n', mode: 'nftables' } as const;
  const { kernel: addon, log } = world;
  const problem = (text: string): unknown => {
    writeFileSync(file, text);
    return openTracing({ file, config, version: '0.1.0', addon, log });
  };
  for (const [text, problems] of [
    ['', /tracing\.yaml: must hold one document, a mapping, not 0$/],
    ['[]', /tracing\.yaml: must hold one document/],
    ['a: {', /tracing\.yaml: /],
    ['kind: Tracing', /tracing\.yaml: TracingConfiguration\.kind: "Tracing": is not known/],
    [
      'apiVersion: v1\nkind: TracingConfiguration',
      /tracing\.yaml: TracingConfiguration\.apiVersion: "v1": is not known: should be "apiserver\.config/,
    ],
    [`${HEADER}Endpoint: a`, /tracing\.yaml: TracingConfiguration\.Endpoint: has the wrong case: should be endpoint$/],
    [`${HEADER}endpoint: unix-abstract://a`, /endpoint: "unix-abstract:\/\/a": is a socket without a path/],
    [`${HEADER}endpoint: https://a`, /TracingConfiguration\.endpoint: "https:\/\/a\/": has a scheme that is not known/],
    [`${HEADER}samplingRatePerMillion: 1000001`, /samplingRatePerMillion: 1000001: is out of range/],
    [
      `${HEADER}samplingRatePerMillion: -1\nother: 1`,
      /samplingRatePerMillion: -1: is out of range.*other: is an unknown field/,
    ],
  ] as const)
    t.match(problem(text), { problem: problems }, text);
  for (const version of ['v1', 'v1beta1', 'v1alpha1'])
    t.match(problem(`apiVersion: apiserver.config.k8s.io/${version}\nkind: TracingConfiguration`), { tracing: Object });
  t.same(
    readTracingFile(HEADER, () => undefined),
    { endpoint: 'localhost:4317', samplingRatePerMillion: null },
  );
  t.match(spawnSync(PROGRAM, [`--tracing-config-file=${folder}/none`, '--manifests=/dev/null'], { encoding: 'utf8' }), {
    status: 1,
    stderr: /^--tracing-config-file: .*\/none: ENOENT/m,
  });
  await world.stop();
});

/** The program as it is shipped, with a Service that changes: what the collector has of it when it has ended, its metrics, and what else it said. */
async function shipped(t: Test): Promise<{ collector: OtlpCollector; metrics: string; log: string; status: unknown }> {
  const collector = new OtlpCollector();
  await collector.start();
  t.teardown(() => {
    collector.stop();
  });
  const folder = t.testdir({
    tracing: `${HEADER}endpoint: dns:///${collector.endpoint}\n${ALL}`,
    'web.json': JSON.stringify(serviceObject('web')),
  });
  const argv = [
    ...['--proxy-mode=nftables', '--conntrack-max-per-core=0', '--status-socket=', '--hostname-override=me'],
    ...[`--manifests=${join(folder, 'web.json')}`, `--tracing-config-file=${join(folder, 'tracing')}`],
  ];
  const running = spawn(PROGRAM, argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => running.kill('SIGKILL'));
  let log = '';
  running.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const has = (name: string): Promise<void> =>
    eventually(
      () => collector.named(name).length === 1 || running.exitCode !== null || log.includes(LATE),
      () => log,
    );
  await has('start');
  writeFileSync(join(folder, 'web.json'), JSON.stringify(serviceObject('web', { ports: [{ port: 81 }] })));
  await has('change Service');
  const scrape = async (): Promise<string> => (await fetch('http://127.0.0.1:10249/metrics')).text();
  // The collector has a batch before the process hears so.
  let metrics = await scrape();
  while (metrics.includes('spans_total{result="exported"} 0')) metrics = await scrape();
  running.kill('SIGTERM');
  await eventually(() => running.exitCode !== null, 'ended');
  return { collector, metrics, log, status: running.exitCode };
}

/** A batch took longer than the 900 ms that the program gives it, as it may where every core is busy with something else. */
const LATE = 'traces cannot be sent and are dropped';

t.test('the bundled program sends traces of a change on a real kernel', async (t) => {
  let seen = await shipped(t);
  while (seen.log.includes(LATE)) seen = await shipped(t);
  const { collector, metrics, log, status } = seen;
  t.match(metrics, /^pointsman_trace_spans_total\{result="exported"\} [1-9]/m);
  t.match(metrics, /^pointsman_trace_spans_total\{result="dropped"\} 0$/m);
  t.equal(status, 0, log);
  const [change] = collector.named('change Service');
  const tree = change === undefined ? [] : collector.tree(change);
  t.ok(tree.includes('      transaction'), tree.join());
});
