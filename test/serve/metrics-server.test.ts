import { once } from 'node:events';
import { request as httpRequest, type ClientRequest } from 'node:http';
import { connect } from 'node:net';
import { load } from 'js-yaml';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import type { Bind } from '../../src/serve/http-endpoint.js';
import { boundPort, listen, shut } from '../../src/serve/listener.js';
import { MetricsServer, type MetricsServerOptions } from '../../src/serve/metrics-server.js';
import { ClientShares } from '../../src/serve/client-shares.js';
import { systemClock } from '../../src/base/clock.js';
import { parseExposition, valueOf } from '../support/exposition.js';
import { FakeClock } from '../support/fake-clock.js';
import { decodeProfile, type DecodedProfile } from '../support/pprof.js';
import { RecordingLog } from '../support/recording-log.js';

const STARTED_AT = BigInt(Date.UTC(2025, 0, 2, 3, 4, 5)) * 1_000_000n;
const PLAIN = 'text/plain; charset=utf-8';

interface World {
  readonly options: MetricsServerOptions;
  readonly log: RecordingLog;
  readonly clock: FakeClock;
  readonly fatal: Error[];
  readonly verbosities: number[];
}

function bindTo(port: number, hardFail = false): Bind {
  return { address: parseAddress('127.0.0.1')!, port, hardFail };
}

function world(fields: Partial<MetricsServerOptions> = {}): World {
  const log = new RecordingLog();
  const clock = new FakeClock(0);
  const fatal: Error[] = [];
  const verbosities: number[] = [];
  const options: MetricsServerOptions = {
    bind: bindTo(0),
    shares: new ClientShares(systemClock, log),
    clock,
    log,
    onFatal: (error) => fatal.push(error),
    metrics: { scrape: (format) => Promise.resolve(`scraped as ${format}\n`) },
    mode: 'nftables',
    configuration: () => ({ kind: 'KubeProxyConfiguration', bindAddress: '0.0.0.0' }),
    flags: [
      { name: 'v', value: '2' },
      { name: 'config', value: '/etc/config.yaml' },
    ],
    status: {
      version: 'v1.37.2',
      startedAt: STARTED_AT,
      wallClock: () => STARTED_AT + (26n * 3600n + 3n * 60n + 4n) * 1_000_000_000n + 999n,
    },
    page: (_request, response) => {
      response.end('the page');
      return Promise.resolve();
    },
    setVerbosity: (verbosity) => verbosities.push(verbosity),
    ...fields,
  };
  return { options, log, clock, fatal, verbosities };
}

type Ask = (path: string, init?: RequestInit) => Promise<{ status: number; headers: Headers; body: string }>;

async function serve(t: Test, { options }: World): Promise<Ask> {
  const server = new MetricsServer(options);
  await server.start();
  t.teardown(() => server.close());
  return async (path, init) => {
    const response = await fetch(`http://127.0.0.1:${server.port()}${path}`, init);
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
}

const accept = (value: string): RequestInit => ({ headers: { accept: value } });

t.test('the metrics address serves its plain pages', async (t) => {
  const ask = await serve(t, world());
  const pages: readonly (readonly [path: string, type: string, body: string])[] = [
    ['/metrics', 'text/plain; version=0.0.4; charset=utf-8', 'scraped as text\n'],
    ['/healthz', PLAIN, 'ok'],
    ['/healthz/ping', PLAIN, 'ok'],
    ['/proxyMode', PLAIN, 'nftables'],
    [
      '/configz',
      'application/json',
      '{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","bindAddress":"0.0.0.0"}}',
    ],
  ];
  for (const [path, type, body] of pages) {
    const answer = await ask(path);
    t.strictSame([answer.status, answer.headers.get('content-type'), answer.body], [200, type, body], path);
    if (path !== '/metrics') t.equal(answer.headers.get('x-content-type-options'), 'nosniff', path);
    t.equal((await ask(path, { method: 'POST' })).status, 200, `POST ${path}`);
  }
  for (const path of ['/healthz/', '/livez', '/healthz/other', '/metrics/', '/debug', '/proxymode'])
    t.match(await ask(path), { status: 404, body: '404 page not found\n' }, path);
  const root = await ask('/', { redirect: 'manual' });
  t.strictSame([root.status, root.headers.get('location')], [302, 'ui/'], 'the page, below any prefix');
  const open = await ask('/metrics', accept('application/openmetrics-text;version=1.0.0,*/*;q=0.1'));
  t.match(open.headers.get('content-type'), /^application\/openmetrics-text; version=1\.0\.0/);
  t.equal(open.body, 'scraped as openmetrics\n');
});

t.test('concurrent scrapes share one rendering', async (t) => {
  let scrapes = 0;
  const scrape = (): Promise<string> => Promise.resolve(`${++scrapes}\n`);
  const server = new MetricsServer(world({ metrics: { scrape } }).options);
  await server.start();
  t.teardown(() => server.close());
  const client = connect(server.port() ?? 0, '127.0.0.1');
  t.teardown(() => client.destroy());
  const read = async (answers: number): Promise<string[]> => {
    let text = '';
    while (text.split('HTTP/1.1 200').length <= answers) text += String((await once(client, 'data'))[0]);
    return text.match(/^\d+$/gm) ?? [];
  };
  const request = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';
  client.write(request.repeat(3));
  t.same(await read(3), ['1', '1', '1']);
  client.write(request);
  t.same(await read(1), ['2'], 'who comes later gets a later one');
});

t.test('/healthz of the metrics address has verbose and exclude', async (t) => {
  const ask = await serve(t, world());
  const body = async (query: string): Promise<string> => (await ask(`/healthz?${query}`)).body;
  t.equal(await body('verbose'), '[+]ping ok\nhealthz check passed\n');
  t.equal(await body('verbose&exclude=ping'), '[+]ping excluded: ok\nhealthz check passed\n');
  t.equal(
    await body('verbose&exclude=etcd&exclude=a%22'),
    '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "etcd","a\\""\nhealthz check passed\n',
  );
  t.match(await body('verbose&exclude=%C2%9B%E2%80%AE'), '"\\u009b\\u202e"', 'nothing that a terminal obeys');
  t.equal(await body('exclude=ping'), 'ok');
});

t.test('SLI metrics count the answers of /healthz, until a reset', async (t) => {
  const ask = await serve(t, world());
  const labels = { name: 'ping', type: 'healthz' };
  t.equal((await ask('/metrics/slis')).body, '', 'nothing was checked');
  await ask('/healthz');
  await ask('/healthz?verbose');
  await ask('/healthz?exclude=ping');
  const families = parseExposition((await ask('/metrics/slis')).body);
  t.equal(valueOf(families, 'kubernetes_healthcheck', labels), 1);
  t.equal(valueOf(families, 'kubernetes_healthchecks_total', { ...labels, status: 'success' }), 2);
  t.match(await ask('/metrics/slis', { method: 'DELETE' }), { status: 200, body: 'metrics reset\n' });
  t.equal((await ask('/metrics/slis')).body, '');
});

t.test('/flagz answers in text, JSON and YAML', async (t) => {
  const ask = await serve(t, world());
  const text = await ask('/flagz');
  t.equal(text.headers.get('content-type'), PLAIN);
  t.match(text.body, /^\nkube-proxy flagz\nWarning: .*\n\nconfig=\/etc\/config\.yaml\nv=2\n$/);
  const object = {
    kind: 'Flagz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'kube-proxy' },
    flags: { config: '/etc/config.yaml', v: '2' },
  };
  const json = await ask('/flagz', accept('application/json;v=v1beta1;g=config.k8s.io;as=Flagz, text/plain;q=0.5'));
  t.equal(json.headers.get('content-type'), 'application/json');
  t.equal(json.headers.get('warning'), null);
  t.strictSame(JSON.parse(json.body), object);
  const yaml = await ask('/flagz', accept('application/yaml;as=Flagz;v=v1alpha1;g=config.k8s.io'));
  t.equal(yaml.headers.get('content-type'), 'application/yaml');
  t.match(yaml.headers.get('warning'), /^299 - ".*v1alpha1 Flagz is deprecated/);
  t.strictSame(load(yaml.body), { ...object, apiVersion: 'config.k8s.io/v1alpha1' });
  for (const form of [
    'application/json',
    'application/json;v=v1;g=config.k8s.io;as=Flagz',
    'application/json;v=v1beta1;g=config.k8s.io;as=Statusz',
    'application/json;v=v1beta1;g=other.io;as=Flagz',
    'image/png',
    'text/plain;q=0',
  ])
    t.match(await ask('/flagz', accept(form)), { status: 406, body: /^only text\/plain/ }, form);
  t.match(await ask('/flagz', accept('application/json, */*;q=0.1')), { status: 200, body: /^\nkube-proxy flagz/ });
});

t.test('/statusz answers', async (t) => {
  const ask = await serve(t, world());
  const paths =
    '/configz /debug/flags /debug/flags/v /debug/pprof /debug/pprof/ /debug/pprof/allocs /debug/pprof/block /debug/pprof/cmdline /debug/pprof/goroutine /debug/pprof/heap /debug/pprof/mutex /debug/pprof/profile /debug/pprof/symbol /debug/pprof/threadcreate /debug/pprof/trace /flagz /healthz /healthz/ping /metrics /metrics/slis /proxyMode /statusz';
  t.equal(
    (await ask('/statusz')).body.replace(/^Warning: .*\n/m, ''),
    [
      '',
      'kube-proxy statusz',
      '',
      'Started: Thu Jan  2 03:04:05 UTC 2025',
      'Up: 26 hr 03 min 04 sec',
      `Go version: ${process.version}`,
      'Binary version: 1.37.2',
      'Emulation version: 1.37',
      `Paths: ${paths}`,
      '',
    ].join('\n'),
  );
  const json = await ask('/statusz', accept('application/json;v=v1beta1;g=config.k8s.io;as=Statusz'));
  t.strictSame(JSON.parse(json.body), {
    kind: 'Statusz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'kube-proxy' },
    startTime: '2025-01-02T03:04:05Z',
    uptimeSeconds: 26 * 3600 + 3 * 60 + 4,
    goVersion: process.version,
    binaryVersion: '1.37.2',
    emulationVersion: '1.37',
    paths: paths.split(' '),
  });
  for (const path of paths.split(' ').filter((path) => !/profile|heap|allocs/.test(path)))
    t.not((await ask(path)).status, 404, path);
});

t.test('pages that are switched off give 404', async (t) => {
  const ask = await serve(t, world({ flags: null, status: null, setVerbosity: null }));
  for (const path of [
    '/flagz',
    '/statusz',
    '/debug/pprof',
    '/debug/pprof/profile',
    '/debug/pprof/heap',
    '/debug/flags/v',
  ])
    t.equal((await ask(path)).status, 404, path);
  t.equal((await ask('/metrics')).status, 200);
});

/** Kept, so that it stays in use. */
const kept: object[] = [];

function keepMuchMemory(): void {
  for (let index = 0; index < 2000; index++) kept.push(new Array(100).fill(index));
}

function burnProcessorTime(): void {
  const end = performance.now() + 10;
  while (performance.now() < end);
}

// Before any other profile of this process: the first one takes longest to start.
t.test('a client that disconnects while the profiler starts ends its profile', async (t) => {
  const server = new MetricsServer(world().options);
  await server.start();
  t.teardown(() => server.close());
  const port = server.port()!;
  const client = connect(port, '127.0.0.1');
  await once(client, 'connect');
  client.write('GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: a\r\n\r\n');
  client.destroy();
  await profileOf(port, 200);
});

/** Waits until a short profile is answered with this status. */
async function profileOf(port: number, status: number): Promise<void> {
  const ask = async (): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}/debug/pprof/profile?seconds=0.01`)).status;
  while ((await ask()) !== status) await new Promise((resolve) => setTimeout(resolve, 5));
}

t.test('profiles have the format of pprof, one at a time, with names and no contents', async (t) => {
  const server = new MetricsServer(world().options);
  await server.start();
  t.teardown(() => server.close());
  const ask = async (path: string): Promise<{ status: number; type: string | null; body: Buffer }> => {
    const response = await fetch(`http://127.0.0.1:${server.port()}/debug/pprof/${path}`);
    const body = Buffer.from(await response.arrayBuffer());
    return { status: response.status, type: response.headers.get('content-disposition'), body };
  };
  const profile = async (path: string, work: () => void): Promise<DecodedProfile> => {
    const timer = setInterval(work, 20);
    try {
      const { status, type, body } = await ask(path);
      t.equal(status, 200, path);
      t.match(type, /\.pb\.gz"$/);
      return decodeProfile(body);
    } finally {
      clearInterval(timer);
    }
  };
  const total = ({ samples }: DecodedProfile, name: string): number =>
    samples.reduce((sum, { stack, value }) => sum + (stack.includes(name) ? value : 0), 0);
  const cpu = await profile('profile?seconds=0.5', burnProcessorTime);
  t.match(cpu, { sampleTypes: ['cpu/nanoseconds'], periodType: 'cpu/nanoseconds', period: 1_000_000 });
  t.ok(cpu.durationNanos >= 500_000_000, String(cpu.durationNanos));
  t.ok(total(cpu, 'burnProcessorTime') > 10_000_000, 'nanoseconds are nanoseconds');
  t.notOk(cpu.samples.some(({ stack }) => stack.includes('(idle)') || stack.includes('(root)')));
  t.ok(cpu.files.some((file) => file.startsWith('/') && file.endsWith('metrics-server.test.js')));
  for (const [path, type] of Object.entries({ heap: 'inuse_space', allocs: 'alloc_space' })) {
    const memory = await profile(`${path}?seconds=0.5&gc=1`, keepMuchMemory);
    t.match(memory, { sampleTypes: [`${type}/bytes`], period: 524_288 });
    t.ok(total(memory, 'keepMuchMemory') > 1e6, path);
  }

  const first = ask('heap?seconds=0.3');
  for (const path of ['heap', 'profile', 'allocs'])
    t.match(await ask(path), { status: 500, body: Buffer.from('a profile is being taken already\n') }, path);
  t.equal((await first).status, 200);
  for (const seconds of ['0', '-1', 'x', '601'])
    for (const path of ['profile', 'heap']) t.match(await ask(`${path}?seconds=${seconds}`), { status: 400 }, seconds);
});

t.test('profiles that Node.js lacks are refused with the reason', async (t) => {
  const ask = await serve(t, world());
  const page = (name: string): ReturnType<Ask> => ask(`/debug/pprof/${name}`);
  t.match(await page(''), { status: 200, body: /go tool pprof/ });
  t.match(await page('goroutine'), { status: 200, body: /no goroutines.*\n\d+ \w+/ });
  t.match(await page('symbol'), { status: 200, body: 'num_symbols: 0\n' });
  t.match(await page('cmdline'), { status: 200, body: 'pointsman' });
  for (const name of ['threadcreate', 'block', 'mutex', 'trace'])
    t.match(await page(name), { status: 501, body: /^Node\.js / }, name);
});

t.test('a client that disconnects ends its profile', async (t) => {
  const { options, log } = world();
  const server = new MetricsServer(options);
  await server.start();
  t.teardown(() => server.close());
  const port = server.port()!;
  // Whoever asks for the status takes profiles too: the long one is refused while such a one is taken, and asked for again.
  const long = (): ClientRequest =>
    httpRequest({ host: '127.0.0.1', port, path: '/debug/pprof/profile?seconds=600' })
      .on('error', () => undefined)
      .once('response', (refused) => {
        refused.resume();
        outgoing = long();
      })
      .end();
  let outgoing = long();
  await profileOf(port, 500);
  outgoing.destroy();
  await profileOf(port, 200);
  t.same(
    log.lines.filter((line) => line.startsWith('error')),
    [],
  );
});

t.test('verbosity is set by PUT of a number', async (t) => {
  const scene = world();
  const ask = await serve(t, scene);
  const put = (body: string): ReturnType<Ask> => ask('/debug/flags/v', { method: 'PUT', body });
  t.match(await put('5'), { status: 200, body: 'successfully set klog.logging.verbosity to 5' });
  t.match(await put(' 0\n'), { status: 200 });
  for (const body of ['', 'x', '-1', '1.5', '2147483648', '9'.repeat(100)])
    t.match(await put(body), { status: 400, body: /^failed to set klog\.logging\.verbosity/ }, body);
  for (const method of ['GET', 'POST', 'DELETE'])
    t.equal((await ask('/debug/flags/v', { method })).status, 406, method);
  t.same(scene.verbosities, [5, 0]);
});

t.test('a page that throws gives 500, and the next request is served', async (t) => {
  let broken = true;
  const scrape = (): Promise<string> =>
    broken ? Promise.reject(new Error('no metrics today')) : Promise.resolve('m\n');
  const scene = world({ metrics: { scrape } });
  const ask = await serve(t, scene);
  t.match(await ask('/metrics'), { status: 500, body: 'internal error\n' });
  t.match(scene.log.lines.at(-1), /cannot answer: no metrics today/);
  broken = false;
  t.match(await ask('/metrics'), { status: 200, body: 'm\n' });
});

t.test('a metrics port in use is retried every five seconds, or fatal', async (t) => {
  const squatter = await listen(
    { address: parseAddress('127.0.0.1')!, port: 0, dualStack: false },
    () => undefined,
    (error) => t.error(error),
  );
  const port = boundPort(squatter)!;
  const fatal = world({ bind: bindTo(port, true) });
  const refused = new MetricsServer(fatal.options);
  await refused.start();
  t.match(fatal.fatal, [{ message: /^cannot serve metrics on 127\.0\.0\.1 port \d+: listen EADDRINUSE/ }]);
  t.equal(fatal.clock.waiting, 0);
  await refused.close();

  const patient = world({ bind: bindTo(port) });
  const server = new MetricsServer(patient.options);
  await server.start();
  t.match(patient.log.lines, [/^error cannot serve metrics on 127\.0\.0\.1 port \d+: listen EADDRINUSE/]);
  await shut(squatter);
  await patient.clock.advance(4999);
  t.equal(server.port(), null);
  await patient.clock.advance(1);
  while (server.port() === null) await new Promise((resolve) => setImmediate(resolve));
  t.same(patient.fatal, []);
  await server.close();
});

t.test('on loopback the Host of a request must be an address or localhost', async (t) => {
  const server = new MetricsServer({ ...world().options, checksHost: () => true });
  await server.start();
  t.teardown(() => server.close());
  const statusFor = (host: string, path = '/metrics'): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const asked = httpRequest({ host: '127.0.0.1', port: server.port() ?? 0, path, headers: { host } });
      asked.once('response', (response) => {
        resolve(response.resume().statusCode);
      });
      asked.once('error', reject).end();
    });
  for (const host of ['localhost', 'LOCALHOST:10249', '127.0.0.1:10249', '[::1]:80', '10.0.0.1'])
    t.equal(await statusFor(host), 200, host);
  for (const host of ['attacker.example', 'localhost.attacker.example:10249', '127.0.0.1.attacker.example'])
    t.equal(await statusFor(host), 421, host);
  t.equal(await statusFor('attacker.example', 'http://127.0.0.1:10249/metrics'), 200, 'the host of the target counts');
  t.equal(await statusFor('127.0.0.1', 'http://attacker.example/metrics'), 421);
});
