import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { serviceObject, type ApiObject } from '../../support/api-objects.js';
import { encodeObject } from '../../support/api-server/protobuf.js';
import { ApiServer } from '../../support/api-server/server.js';
import { resourceOfKind } from '../../support/api-server/resources.js';
import { until } from './live-world.js';

interface Listed {
  readonly kind: string;
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

async function list(server: ApiServer, query: string): Promise<Listed> {
  const response = await fetch(`${server.url}/api/v1/services?${query}`);
  return (await response.json()) as Listed;
}

const names = ({ items }: Listed): readonly string[] => items.map(({ metadata }) => metadata.name);

async function started(
  t: Test,
  count: number,
  options: ConstructorParameters<typeof ApiServer>[0] = {},
): Promise<ApiServer> {
  const server = new ApiServer(options);
  await server.start();
  t.teardown(() => server.stop());
  for (let number = 0; number < count; number++) {
    const labels = { parity: number % 2 === 0 ? 'even' : 'odd', ...(number === 3 ? { special: '' } : {}) };
    const clusterIP = number === 1 ? 'None' : `10.96.0.${number + 1}`;
    server.put(
      serviceObject(`s${number}`, { clusterIP }, { metadata: { name: `s${number}`, namespace: 'default', labels } }),
    );
  }
  return server;
}

t.test('the fake API server applies selectors', async (t) => {
  const server = await started(t, 5);
  for (const [query, expected] of [
    ['', 's0 s1 s2 s3 s4'],
    ['labelSelector=!special', 's0 s1 s2 s4'],
    ['labelSelector=special', 's3'],
    ['labelSelector=parity%3Deven', 's0 s2 s4'],
    ['labelSelector=parity!%3Deven,special', 's3'],
    ['labelSelector=parity in (odd,x)', 's1 s3'],
    ['labelSelector=parity notin (odd)', 's0 s2 s4'],
    ['fieldSelector=spec.clusterIP!%3DNone', 's0 s2 s3 s4'],
    ['fieldSelector=metadata.name%3Ds2', 's2'],
  ] as const) {
    t.equal(names(await list(server, query)).join(' '), expected, query);
  }
  t.equal((await fetch(`${server.url}/api/v1/services?fieldSelector=spec.nonsense%3D1`)).status, 400);
});

t.test('the fake API server pages one version until it is compacted', async (t) => {
  const server = await started(t, 5);
  const first = await list(server, 'limit=2');
  t.same(names(first), ['s0', 's1']);
  server.store.delete(resourceOfKind('Service'), { namespace: 'default', name: 's3' });
  const second = await list(server, `limit=2&continue=${first.metadata.continue ?? ''}`);
  t.same(names(second), ['s2', 's3']);
  t.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
  server.store.compact();
  const gone = await fetch(`${server.url}/api/v1/services?limit=2&continue=${second.metadata.continue ?? ''}`);
  t.equal(gone.status, 410);
  t.equal((await fetch(`${server.url}/api/v1/services?continue=bogus`)).status, 400);
  t.same(names(await list(server, 'limit=2&resourceVersion=0')).length, 4, 'the watch cache gives all');
  const ahead = await fetch(`${server.url}/api/v1/services?resourceVersion=9999`);
  t.same([ahead.status, ahead.headers.get('retry-after')], [504, '1']);
});

/** Lines of a watch until there are so many. */
async function watch(server: ApiServer, query: string, count: number): Promise<readonly string[]> {
  const controller = new AbortController();
  const response = await fetch(`${server.url}/api/v1/services?watch=1&${query}`, { signal: controller.signal });
  if (response.status !== 200 || response.body === null) return [`status ${response.status}`];
  const lines: string[] = [];
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const whole = text.split('\n');
    text = whole.pop() ?? '';
    for (const line of whole) {
      const { type, object } = JSON.parse(line) as { type: string; object: ApiObject & { metadata: ApiObject } };
      lines.push(`${type} ${String(object.metadata['name'] ?? object['code'] ?? object.metadata['resourceVersion'])}`);
    }
    if (lines.length >= count) break;
  }
  controller.abort();
  return lines;
}

t.test('the fake API server sends initial events in several turns, and changes after them', async (t) => {
  const server = await started(t, 2);
  const long = 'x'.repeat(1000);
  for (let number = 0; number < 1000; number++) {
    const metadata = { name: `t${number}`, namespace: 'default', annotations: { long } };
    server.put(serviceObject(metadata.name, { clusterIP: '10.96.1.1' }, { metadata }));
  }
  const { version } = server.store;
  const { watches } = server;
  const add = watches.add.bind(watches);
  // The first turn is over by then, and another is to come.
  watches.add = (each) => {
    setImmediate(() => {
      server.put(serviceObject('s0', { clusterIP: '10.96.0.9' }), serviceObject('u', { clusterIP: '10.96.0.8' }));
    });
    return add(each);
  };
  const lines = await watch(server, 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan', 1005);
  t.equal(lines.filter((line) => line.startsWith('ADDED')).length, 1003);
  t.same(lines.slice(0, 2), ['ADDED s0', 'ADDED s1']);
  t.same(lines.slice(-3), [`BOOKMARK ${version}`, 'MODIFIED s0', 'ADDED u']);
});

t.test('the fake API server serves watches', async (t) => {
  const server = await started(t, 2);
  const start = server.store.version;
  const metadata = { name: 's0', namespace: 'default', labels: { special: '' } };
  server.put(serviceObject('s0', {}, { metadata }), serviceObject('new'));
  t.same(await watch(server, `resourceVersion=${start}`, 2), ['MODIFIED s0', 'ADDED new']);
  t.same(await watch(server, `resourceVersion=${start}&labelSelector=!special`, 2), ['DELETED s0', 'ADDED new']);
  t.same(await watch(server, '', 3), ['ADDED new', 'ADDED s0', 'ADDED s1'], 'no version: what there is');
  const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  t.same(await watch(server, `${initial}&labelSelector=special`, 2), ['ADDED s0', `BOOKMARK ${server.store.version}`]);
  t.same(await watch(server, 'sendInitialEvents=true', 1), ['status 422']);
  server.store.compact();
  t.same(await watch(server, `resourceVersion=${start}`, 1), ['ERROR 410']);
  t.same(await watch(server, `resourceVersion=${server.store.version}&timeoutSeconds=0.05`, 1), [], 'ends by itself');
  await until(() => server.watches.size === 0, 'all closed');
});

t.test('the fake API server waits for a version that is still to come', async (t) => {
  const server = await started(t, 2, { bookmarkMs: 5 });
  const ahead = server.store.version + 2;
  const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  t.same(
    await watch(server, `${initial}&resourceVersion=${ahead}`, 1),
    ['ERROR 504'],
    'initial events cannot be as new as that',
  );
  const lines = watch(server, `resourceVersion=${ahead}&allowWatchBookmarks=true`, 2);
  await until(() => server.watches.size === 1, 'watched');
  server.put(serviceObject('one'), serviceObject('two'));
  await until(() => server.store.version === ahead, 'there');
  server.put(serviceObject('three'));
  t.same(
    (await lines).filter((line) => !line.startsWith('BOOKMARK')),
    ['ADDED three'],
    'a watch is silent until then',
  );
});

t.test('the fake API server creates objects and events by request', async (t) => {
  const server = await started(t, 0, { tokens: ['secret'] });
  const headers = { authorization: 'Bearer secret' };
  const services = `${server.url}/api/v1/namespaces/default/services`;
  t.equal((await fetch(services)).status, 401);
  const body = JSON.stringify(serviceObject('made'));
  t.equal((await fetch(services, { method: 'POST', headers, body })).status, 201);
  t.equal((await fetch(`${services}/made`, { method: 'PUT', headers, body })).status, 200);
  t.equal((await fetch(`${services}/made`, { headers })).status, 200);
  t.equal((await fetch(`${services}/made`, { method: 'DELETE', headers })).status, 200);
  t.equal((await fetch(`${services}/made`, { headers })).status, 404);
  const events = `${server.url}/apis/events.k8s.io/v1/namespaces/default/events`;
  const good = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'node-1.1', namespace: 'default' },
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'kube-proxy',
    reportingInstance: 'kube-proxy-host',
    action: 'StartKubeProxy',
    reason: 'Starting',
    regarding: { kind: 'Node', name: 'node-1', apiVersion: 'v1' },
    type: 'Normal',
  };
  const post = async (changes: ApiObject, url = events): Promise<string> => {
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ ...good, ...changes }) });
    return `${answer.status} ${((await answer.json()) as { readonly message?: string }).message ?? ''}`;
  };
  t.match(await post({}), /^201 /);
  t.match(server.events, [{ reason: 'Starting' }]);
  t.match(await post({}), /^409 /);
  const metadata = { name: 'node-1.2', namespace: 'default' };
  for (const [changes, complaint] of [
    [{ eventTime: null }, 'eventTime'],
    [{ eventTime: '2026-01-01T00:00:00Z' }, 'eventTime'],
    [{ reportingController: '' }, 'reportingController'],
    [{ reportingInstance: 'x'.repeat(129) }, 'reportingInstance'],
    [{ action: '' }, 'action'],
    [{ reason: 'x'.repeat(129) }, 'reason'],
    [{ note: 'x'.repeat(1025) }, 'note'],
    [{ type: 'Error' }, 'type'],
    [{ regarding: { kind: 'Service', namespace: 'other', name: 'web' } }, 'regarding.namespace'],
    [{ regarding: { kind: 'Service', name: 'web' } }, 'regarding.namespace'],
    [{ metadata: { ...metadata, name: 'No_Name' } }, 'metadata.name'],
  ] as const) {
    t.match(await post({ metadata, ...changes }), new RegExp(`^422 .*${complaint}: `));
  }
  t.match(await post({ metadata: { ...metadata, namespace: 'other' } }), /^400 /);
  const core = { apiVersion: 'v1', metadata, involvedObject: good.regarding };
  t.match(await post(core, `${server.url}/api/v1/namespaces/default/events`), /^422 .*reportingComponent: Required/);
  t.match(await post({ ...core, eventTime: undefined }, `${server.url}/api/v1/namespaces/default/events`), /^201 /);
  t.equal((await fetch(`${server.url}/api/v1/pods`, { headers })).status, 404);
  // As kube-proxy posts them, to a server that has no discovery.
  const recorded = {
    ...core,
    metadata: { ...metadata, name: 'node-1.3' },
    kind: 'Event',
    reason: 'Starting',
    message: 'für\0',
    source: { component: 'kube-proxy' },
    count: 1,
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    type: 'Normal',
  };
  const modern = { ...good, metadata: { ...metadata, name: 'node-1.4', labels: { a: 'b' } }, note: 'x'.repeat(200) };
  const protobuf = { 'content-type': 'application/vnd.kubernetes.protobuf' };
  const postBytes = async (url: string, bytes: Buffer): Promise<number> =>
    (await fetch(url, { method: 'POST', headers: { ...headers, ...protobuf }, body: bytes })).status;
  t.equal(await postBytes(`${server.url}/api/v1/namespaces/default/events`, encodeObject(recorded)), 201);
  t.equal(await postBytes(events, encodeObject(modern)), 201);
  t.same(server.events.slice(-2), [recorded, modern], 'read as the same in JSON is');
  for (const cut of [0, 3, 4, 20, 100]) t.equal(await postBytes(events, encodeObject(modern).subarray(0, cut)), 400);
});

t.test('the fake API server runs as a process, controlled over its port', async (t) => {
  const script = fileURLToPath(new URL('../../support/api-server/main.js', import.meta.url));
  const child = spawn(process.execPath, [script, '--cluster', '3,2,2', '--without', 'servicecidrs'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill());
  const line = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  const { url, control } = JSON.parse(String(line.value)) as { url: string; control: string };
  const ask = async (command: string, value: unknown): Promise<unknown> =>
    (await fetch(`${control}/${command}`, { method: 'POST', body: JSON.stringify(value) })).json();
  t.equal(((await (await fetch(`${url}/api/v1/services`)).json()) as Listed).items.length, 3);
  await ask('put', [serviceObject('another')]);
  t.equal(((await (await fetch(`${url}/api/v1/services`)).json()) as Listed).items.length, 4);
  await ask('fault', { fault: { type: 'status', code: 403 }, resource: 'services', times: 1 });
  t.equal((await fetch(`${url}/api/v1/services`)).status, 403);
  t.equal((await fetch(`${url}/api/v1/services`)).status, 200);
  t.equal((await fetch(`${url}/apis/networking.k8s.io/v1/servicecidrs`)).status, 404);
  t.match(await ask('state', null), { requests: { 'list services': 4 } });
  child.stdin.end();
  t.equal(await new Promise((resolve) => child.on('exit', resolve)), 0, 'ends with its input');
});

t.test('the fake API server allows only what a rule grants', async (t) => {
  const rules = [
    { apiGroups: [''], resources: ['services'], verbs: ['list'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
  ];
  const server = await started(t, 1, { rules });
  const status = async (path: string, method = 'GET'): Promise<number> => {
    const response = await fetch(`${server.url}${path}`, { method, body: method === 'POST' ? '{}' : null });
    await response.body?.cancel();
    return response.status;
  };
  t.equal(await status('/api/v1/services'), 200);
  t.equal(await status('/api/v1/namespaces/default/services?limit=5'), 200);
  t.equal(await status('/apis/events.k8s.io/v1/namespaces/default/events', 'POST'), 400, 'allowed, but no event');
  t.equal(await status('/version'), 200);
  for (const [path, method] of [
    ['/api/v1/services?watch=1', 'GET'],
    ['/api/v1/namespaces/default/services/s0', 'GET'],
    ['/api/v1/namespaces/default/services/s0', 'DELETE'],
    ['/api/v1/namespaces/default/events', 'POST'],
    ['/api/v1/nodes', 'GET'],
  ] as const) {
    t.equal(await status(path, method), 403, `${method} ${path}`);
  }
  t.same(server.forbidden, ['watch /services', 'get /services', 'delete /services', 'create /events', 'list /nodes']);
});
