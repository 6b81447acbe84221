// All nodes at once: proxies that are in step, behind, different, behind access control, dead and missing, through an API server that reaches their pods.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ClusterApi } from '../src/cluster-api.js';
import { POD_PLACE } from '../src/cluster.js';
import { bugreportOf, explainOn, nodes } from '../src/command.js';
import { AT_ONCE, lookAtNodes } from '../src/look.js';
import { printReport } from '../src/print.js';
import { printTable } from '../../../src/plan/text.js';
import { ProxyAsker, TIMEOUT_MS } from '../src/proxy-asker.js';
import { REVIEW_TIMEOUT_MS } from '../../secured/src/reviews.js';
import type { NodeRow, NodesReport } from '../src/api.js';
import type { NodeAnswer } from '../../page/src/node-answer.js';
import { serveNodesPage } from '../src/ui.js';
import { documents, items } from '../../../test/support/deploy/kustomize.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import { address as ip, service, slice } from '../../../test/support/rows.js';
import { pageScene, type PageScene } from '../../page/test/ui-scene.js';
import { behindAccessControl, clusterFront, type Backend, type ClusterFront } from './cluster-front.js';

const SERVICES = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`default/web-${n}`, String(1000 + n)]));
const SLICES = { 'default/web-0-abc': '2000', 'default/web-1-abc': '2001' };

/** A proxy that holds these versions, and has one Service. */
async function proxy(
  t: Test,
  services = SERVICES,
  slices: Readonly<Record<string, string>> = SLICES,
): Promise<PageScene> {
  const scene = await pageScene(t);
  hold(scene, services, slices);
  scene.say([service('web'), slice('web', [{ address: '10.1.0.1' }])]);
  scene.sync();
  return scene;
}

function hold(
  scene: PageScene,
  services: Readonly<Record<string, string>>,
  slices: Readonly<Record<string, string>> = SLICES,
): void {
  scene.held.set('services', new Map(Object.entries(services)));
  scene.held.set('endpointslices', new Map(Object.entries(slices)));
}

function pages(scene: PageScene): Exclude<Backend, string | null> {
  return (request, response) => scene.server.answer(request, response, false);
}

/** On the port of the metrics address. */
function plain(scene: PageScene): Readonly<Record<string, Backend>> {
  return { 'http:10249': pages(scene) };
}

async function cluster(
  t: Test,
  backends: Readonly<Record<string, Readonly<Record<string, Backend>>>>,
): Promise<ClusterFront> {
  const front = await clusterFront(t);
  front.nodes = Object.keys(backends);
  front.pods = Object.entries(backends).map(([node, each]) => ({ name: `proxy-${node}`, node, backends: each }));
  front.services = SERVICES;
  front.slices = SLICES;
  return front;
}

async function look(front: ClusterFront, nodeMs = 60_000): Promise<NodesReport> {
  const api = await ClusterApi.open(front.kubeconfig);
  return lookAtNodes({ api, asker: new ProxyAsker(api), place: POD_PLACE, patienceMs: 1, nodeMs });
}

function rowOf({ nodes }: NodesReport, node: string): NodeRow {
  const row = nodes.find((each) => each.node === node);
  if (row === undefined) throw new Error(`no row for ${node}`);
  return row;
}

/** Runs the command; what it prints. */
async function run(...argv: readonly string[]): Promise<{ status: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const write = (text: string): Promise<void> => {
    out += text;
    return Promise.resolve();
  };
  const status = await nodes(argv, { write, complain: (text) => (err += text), isTerminal: false });
  return { status, out, err };
}

t.test('nodes reports each node as in step, behind or different from the API server', async (t) => {
  const well = await proxy(t);
  const behind = await proxy(t, { ...SERVICES, 'default/web-7': '900' });
  const { 'default/web-3': gone, ...fewer } = SERVICES;
  const differs = await proxy(t, { ...fewer, 'default/old': '17', 'default/web-9': '901' });
  const moving = await proxy(t, { ...SERVICES, 'default/web-8': '900' });
  const backends = { well: plain(well), behind: plain(behind), differs: plain(differs), moving: plain(moving) };
  const front = await cluster(t, backends);
  let lists = 0;
  // It catches up before it is looked at again.
  front.onList = () => {
    if (++lists === 1) return;
    hold(behind, SERVICES);
    // It has moved, though not far enough.
    hold(moving, { ...SERVICES, 'default/web-8': '901' });
  };
  const report = await look(front);
  t.same(
    report.nodes.map(({ node, state }) => [node, state]),
    [
      ['differs', 'differs'],
      ['behind', 'lags'],
      ['moving', 'lags'],
      ['well', 'in-step'],
    ],
  );
  t.same(
    rowOf(report, 'differs').differences,
    [
      { resource: 'services', object: 'default/old', held: '17', actual: null },
      { resource: 'services', object: 'default/web-3', held: null, actual: gone },
      { resource: 'services', object: 'default/web-9', held: '901', actual: '1009' },
    ].sort((one, other) => order(rowOf(report, 'differs'), one.object) - order(rowOf(report, 'differs'), other.object)),
  );
  t.match(rowOf(report, 'behind').differences, [{ object: 'default/web-7', held: '900', actual: '1007' }]);
  t.match(rowOf(report, 'well'), { proxy: { release: '0.1.0', mode: 'nftables', services: 1 }, why: [] });
  t.equal(
    front.asked.filter((each) => each.endsWith('proxy-well:10249/proxy/ui/api/node')).length,
    1,
    'once is enough',
  );
  const text = printReport(report, { all: false, isWide: false }).join('\n');
  t.match(text, /^NODE +STATE +MODE/);
  t.match(text, 'services default/web-9 is there in version 901; the API server has 1009');
  t.match(text, 'services default/old is still there in version 17; the API server no longer has it');
  t.match(text, /4 nodes: 1 in step, 2 lags, 1 DIFFERS$/);
  t.notMatch(text, /^well/m, 'what is well is counted');
  t.match(printReport(report, { all: true, isWide: false }).join('\n'), /^well +in step/m);
});

function order({ differences }: NodeRow, object: string): number {
  return differences.findIndex((each) => each.object === object);
}

t.test('nodes counts a change that waits for the kernel as lag, not as a difference', async (t) => {
  const scene = await proxy(t);
  scene.progress.changed(null);
  await scene.clock.advance(3000);
  const report = await look(await cluster(t, { late: plain(scene) }));
  t.match(rowOf(report, 'late'), { state: 'lags', why: ['a change waits for the kernel for 3.0 s'] });
});

t.test('nodes lists a node that does not answer, with the reason', async (t) => {
  const scene = await proxy(t);
  const health: Backend = (_request, response) => response.end('{"healthy":false}');
  const whole = await scene.read<NodeAnswer>('node');
  const answering =
    (change: (answer: NodeAnswer) => unknown): Backend =>
    (_request, response) =>
      response.end(JSON.stringify(change(whole)));
  const front = await cluster(t, {
    loopback: { 'http:10256': health },
    gone: { 'http:10249': 'dial tcp 10.0.0.9:10249: i/o timeout', 'https:10249': 'dial tcp: i/o timeout' },
    open: { 'http:10249': (_request, response) => response.writeHead(403).end('the page is served where\n') },
    other: { 'http:10249': (_request, response) => response.writeHead(404).end('404 page not found\n') },
    later: { 'http:10249': (_request, response) => response.end('{"overview":1}') },
    odd: { 'http:10249': answering((answer) => ({ ...answer, overview: {} })) },
    stranger: { 'http:10249': answering((answer) => ({ ...answer, problems: [null] })) },
    partial: { 'http:10249': answering((answer) => ({ ...answer, held: [{ resource: 'services' }] })) },
    large: { 'http:10249': (_request, response) => response.end(`"${'x'.repeat(5 << 20)}"`) },
    well: plain(scene),
  });
  front.nodes = [...front.nodes, 'bare'];
  const report = await look(front);
  const why = (node: string): string => rowOf(report, node).why.join();
  t.match(rowOf(report, 'loopback'), { state: 'no-answer', healthCheck: false });
  t.match(why('loopback'), /nothing listens on port 10249 .* docs\/nodes\.md/);
  t.match(why('gone'), 'the API server cannot reach it: error trying to reach service: dial tcp 10.0.0.9:10249');
  t.match(why('open'), /403 by the proxy: the page is served where; see docs\/nodes\.md/);
  t.match(why('other'), '404: it has no such page');
  for (const node of ['later', 'odd', 'stranger', 'partial']) t.match(why(node), 'does not understand', node);
  t.match(why('large'), 'an answer of more than 4194304 bytes');
  t.match(rowOf(report, 'bare'), { state: 'no-proxy', pod: null, why: [/^no pod of k8s-app/] });
  t.equal(rowOf(report, 'well').state, 'in-step', 'and delays no other node');
  t.equal(report.counts['no-answer'], 9);
});

const TIMES: Readonly<Record<'review' | 'page', number>> = { review: REVIEW_TIMEOUT_MS, page: TIMEOUT_MS };

t.test('nodes reports a node that is cut off from the API server, and asks its health check', async (t) => {
  const why =
    'no TokenReview from the API server (connect): cut off from the API server since 2026-01-02T03:04:05.000Z';
  const healthy: Backend = (_request, response) => response.end('{"healthy":true}');
  const front = await cluster(t, {
    cut: {
      'http:10249': 'EOF',
      'https:10249': (_request, response) => response.writeHead(503).end(`Service Unavailable: ${why}\n`),
      'http:10256': healthy,
    },
    hung: { 'http:10249': null, 'http:10256': healthy },
  });
  const report = await look(front, 2000);
  t.match(rowOf(report, 'cut'), { healthCheck: true, why: [`503 by the proxy: Service Unavailable: ${why}`] });
  t.match(rowOf(report, 'hung'), { healthCheck: true, why: ['its answers take more than 2 s'] });
  t.ok(TIMES.review < TIMES.page, 'a proxy answers before the command gives up');
});

t.test('nodes reports hostile nodes by name, and all others as usual', async (t) => {
  const scene = await proxy(t);
  const whole = await scene.read<NodeAnswer>('node');
  const wrong = { ...whole, held: whole.held.map((each) => ({ ...each, sums: [1, ...each.sums.slice(1)] })) };
  const answer = (node: object, versions: object = {}): Backend => {
    const pages = new Map([[true, JSON.stringify(node)] as const, [false, JSON.stringify(versions)] as const]);
    return (request, response) => response.end(pages.get((request.url ?? '').startsWith('/ui/api/node')));
  };
  const overview = (more: object): object => ({ ...whole, overview: { ...whole.overview, ...more } });
  const health = (reason: unknown): object => overview({ health: { healthy: true, reasons: [reason] } });
  const odd = { toString: 1, valueOf: 1 };
  const hostile: Readonly<Record<string, Backend>> = {
    'a-version-without-text': answer(wrong, { versions: { 'default/web-0': odd } }),
    'versions-of-nothing': answer(wrong, { versions: null }),
    'a-reason-without-text': answer(health({ kind: 'late', family: null, text: odd, since: null })),
    'a-family-of-objects': answer(health({ kind: 'late', family: odd, text: '', since: null })),
    'a-time-of-objects': answer(health({ kind: 'late', family: null, text: '', since: odd })),
    'no-health': answer(overview({ health: { healthy: 'yes', reasons: [] } })),
    'services-of-text': answer(overview({ services: '1' })),
    'a-wait-of-no-number': answer({ ...whole, pendingMs: '3000' }),
    'problems-of-numbers': answer({ ...whole, problems: [{ service: 1, problem: 'conflict', text: 'x' }] }),
    'sums-of-no-list': answer({ ...whole, held: [{ resource: 'services', sums: { length: 1e9 } }] }),
    'no-json': (_request, response) => response.end('['.repeat(100_000)),
  };
  // These are told, cut to what a report can hold.
  const reported: Readonly<Record<string, Backend>> = {
    'long-words': answer(overview({ release: 'x'.repeat(3 << 20), mode: '\u001b[2J' })),
    'many-problems': answer({
      ...whole,
      problems: Array.from({ length: 2000 }, (_, n) => ({ service: `a/b${n}`, problem: 'conflict', text: 'x' })),
    }),
    'other-problems': answer({ ...whole, problems: [{ service: 'a/b', problem: 'of a later release', text: 'x' }] }),
    'many-objects': answer(wrong, {
      versions: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`n/${n}`, '1'])),
    }),
    'the-same-resource-again': answer(
      { ...wrong, held: Array.from({ length: 500 }, () => wrong.held[0]) },
      { versions: {} },
    ),
  };
  const front = await cluster(t, {
    ...Object.fromEntries(
      Object.entries({ ...hostile, ...reported }).map(([name, each]) => [name, { 'http:10249': each }]),
    ),
    well: plain(scene),
  });
  const report = await look(front);
  for (const name of Object.keys(hostile)) t.match(rowOf(report, name), { state: 'no-answer', why: [/./] }, name);
  t.match(rowOf(report, 'services-of-text').why, [/does not understand/]);
  for (const name of Object.keys(reported)) t.not(rowOf(report, name).state, 'no-answer', name);
  t.equal(rowOf(report, 'well').state, 'in-step');
  const asked = (name: string): number => front.asked.filter((each) => each.includes(`:proxy-${name}:`)).length;
  t.ok(asked('the-same-resource-again') <= 12, `${asked('the-same-resource-again')} requests`);
  t.equal(rowOf(report, 'many-problems').proxy?.problems, 200);
  t.ok(rowOf(report, 'many-objects').differences.length <= 1000);
  const text = printReport(report, { all: true, isWide: false }).join('\n');
  t.ok(text.length < 1 << 20, `${text.length} characters`);
  t.notMatch(text, '\u001b');
});

t.test('nodes gives up a node whose answer does not end, and names it', async (t) => {
  const endless: Backend = (_request, response) => void response.write('{');
  const healthy: Backend = (_request, response) => response.end('{"healthy":true}');
  const front = await cluster(t, { slow: { 'http:10249': endless, 'http:10256': healthy } });
  const row = rowOf(await look(front, 500), 'slow');
  t.match(row, { state: 'no-answer', why: ['its answers take more than 0.5 s'], healthCheck: true });
});

t.test('nodes asks a proxy behind access control by TLS, with a token of the API server', async (t) => {
  const scene = await proxy(t);
  const front = await cluster(t, {
    secured: { 'http:10249': 'EOF', 'https:10249': behindAccessControl('of the account', pages(scene)) },
    go: {
      'http:10249': (_request, response) =>
        response.writeHead(400).end('Client sent an HTTP request to an HTTPS server.\n'),
      'https:10249': behindAccessControl('of the account', pages(scene)),
    },
    plain: { 'http:10249': pages(scene) },
    bare: { 'http:10249': (_request, response) => response.writeHead(401).end('who asks?\n') },
  });
  const refused = await look(front);
  t.match(rowOf(refused, 'secured').why.join(), /401 by the proxy: .*no token could be obtained.*docs\/nodes\.md/);
  front.token = 'of the account';
  front.asked.length = 0;
  t.equal((await look(front)).counts['in-step'], 3);
  t.equal(front.asked.filter((each) => each.startsWith('POST')).length, 1, 'one token for all');
  t.same(
    [...front.reported].sort(),
    ['https:proxy-go:10249', 'https:proxy-secured:10249'],
    'the token goes to the proxy only, and only by TLS',
  );
  front.token = 'of another';
  t.match(rowOf(await look(front), 'secured').why.join(), '403 by the proxy: Forbidden (user="x"); see docs/nodes.md');
  front.pods = front.pods.map((pod) => ({ ...pod, command: ['/kube-proxy', '--metrics-tls'] }));
  front.asked.length = 0;
  await look(front);
  t.notOk(
    front.asked.some((each) => each.includes('/http:proxy-secured:10249/')),
    'what its flags say is tried first',
  );
});

t.test('nodes reports problems of Services, and the nodes that have them', async (t) => {
  const scenes = await Promise.all([proxy(t), proxy(t)]);
  for (const [index, scene] of scenes.entries()) {
    scene.say([service('twin', { clusterIPs: ['10.96.0.1'] }), service('other', { clusterIPs: ['10.96.0.1'] })]);
    const reason = 'no room';
    const quarantined = [{ frontend: '10.96.0.1:80/TCP', reason, since: 0, retryAt: 0 }];
    scene.sync(index === 0 ? {} : { quarantined });
  }
  const [one, two] = scenes;
  const report = await look(await cluster(t, { one: plain(one), two: plain(two) }));
  t.match(report.services[0], { problem: 'conflict', nodes: ['one', 'two'] });
  const quarantined = report.services.find(({ problem }) => problem === 'quarantined');
  t.match(quarantined, { nodes: ['two'], text: '10.96.0.1:80/TCP: no room' });
  const text = printReport(report, { all: false, isWide: false }).join('\n');
  t.match(text, / in conflict on all 2 nodes: IPv4 10\.96\.0\.1:80\/TCP belongs to /);
  t.match(text, / quarantined, because the kernel refuses it on two: /);
});

t.test('nodes asks 500 nodes with limited concurrency, and takes answers in any order', async (t) => {
  const scene = await proxy(t);
  const waiting: (() => void)[] = [];
  let came = 0;
  // Nobody is answered before so many have asked as may ask at a time.
  const slow: Backend = (request, response) => {
    waiting.push(() => void pages(scene)(request, response));
    if (++came === 499 || waiting.length === AT_ONCE) for (const answer of waiting.splice(0)) answer();
  };
  const names = Array.from({ length: 500 }, (_, n) => `node-${String(n).padStart(3, '0')}`);
  const front = await cluster(t, Object.fromEntries(names.map((name) => [name, { 'http:10249': slow }])));
  front.pods = front.pods.map((pod) => (pod.node === 'node-250' ? { ...pod, backends: {} } : pod));
  const report = await look(front);
  t.match(report.counts, { 'in-step': 499, 'no-answer': 1 });
  t.same(
    report.nodes.slice(1).map(({ node }) => node),
    names.filter((name) => name !== 'node-250'),
  );
  t.equal(front.peak, AT_ONCE);
});

t.test('nodes command: output and exit status', async (t) => {
  const scene = await proxy(t);
  const front = await cluster(t, { one: plain(scene) });
  const kubeconfig = `--kubeconfig=${front.kubeconfig}`;
  t.same(await run(kubeconfig), { status: 0, out: '1 node: 1 in step\n', err: '' });
  t.match(await run(kubeconfig, '-a'), {
    status: 0,
    out: /^NODE[^]*\none +in step +nftables +0\.1\.0 +1 +0 +proxy-one\n/,
  });
  const { out } = await run(kubeconfig, '-o', 'json');
  t.match(JSON.parse(out), { counts: { 'in-step': 1 }, nodes: [{ node: 'one', state: 'in-step' }], services: [] });
  front.nodes = ['one', 'two'];
  t.match(await run(kubeconfig), { status: 1, out: /^two +NO PROXY/m });
  front.forbidden = '/api/v1/nodes';
  t.match(await run(kubeconfig), { status: 2, out: '', err: /\/api\/v1\/nodes: 403: forbidden: no rule/ });
  front.forbidden = '/api/v1/namespaces/kube-system/pods/';
  t.match(await run(kubeconfig), { status: 1, out: /403 by the API server: forbidden: no rule/ });
  const { KUBECONFIG = '', HOME = '' } = process.env;
  Object.assign(process.env, { KUBECONFIG: '', HOME: '/nowhere' });
  await t.rejects(ClusterApi.open(''), { message: 'there is no kubeconfig: give one with --kubeconfig or KUBECONFIG' });
  Object.assign(process.env, { KUBECONFIG, HOME });
  t.match(await run('--kubeconfig=/nowhere'), { status: 2, err: /^--kubeconfig: \/nowhere: cannot be read: ENOENT/ });
  t.match(await run('-o', 'xml'), { status: 2, err: /^--output: "xml": must be table, wide, json or yaml/ });
  t.match(await run('--nodes'), { status: 2, err: /Usage: pointsman nodes/ });
  t.match(await run('--help'), { status: 0, out: /^Usage: pointsman nodes/ });
});

t.test('deploy/components/nodes grants exactly the permissions that the command nodes uses', async (t) => {
  const front = await cluster(t, {
    one: { 'https:10249': behindAccessControl('of the account', pages(await proxy(t))), 'http:10249': 'EOF' },
  });
  front.token = 'of the account';
  t.equal((await look(front)).counts['in-step'], 1);
  t.equal((await report(t, front, {})).status, 0);
  const granted = documents(projectFile('deploy/components/nodes/rbac.yaml')).flatMap((object) =>
    object['kind'] === 'ClusterRole' || object['kind'] === 'Role' ? items(object['rules']) : [],
  );
  const words = (value: unknown): readonly string[] => value as readonly string[];
  const rights = granted.flatMap(({ verbs, resources = [], resourceNames = [''] }) =>
    words(resources).flatMap((resource) =>
      words(verbs).flatMap((verb) => words(resourceNames).map((name) => `${verb} ${resource} ${name}`.trim())),
    ),
  );
  t.same([...new Set(front.asked.map(rightOf))].sort(), rights.sort());
  t.match(granted, [{ nonResourceURLs: ['/ui/api/'], verbs: ['get'] }, {}, {}, {}, {}, {}]);
});

/** What a request takes, in the terms of a rule. */
function rightOf(asked: string): string {
  const [method = '', path = ''] = asked.split(' ');
  const [, resource = '', name = '', sub = ''] =
    /^\/(?:api|apis\/[^/]+)\/v1\/(?:namespaces\/kube-system\/)?([a-z]+)(?:\/([^/]+)\/([a-z]+).*)?$/.exec(path) ?? [];
  const verb = method === 'POST' ? 'create' : sub === '' ? 'list' : 'get';
  return `${verb} ${resource}${sub === '' ? '' : `/${sub}`} ${resource === 'serviceaccounts' ? name : ''}`.trim();
}

/** What `pointsman bugreport --node` or `--all` says, and what the archive has by name. */
async function report(
  t: Test,
  front: ClusterFront,
  asked: Partial<Parameters<typeof bugreportOf>[0]>,
): Promise<{ readonly status: number; readonly out: string; readonly files: ReadonlyMap<string, string> }> {
  const file = join(t.testdir(), 'report.tar.gz');
  const usual = { kubeconfig: front.kubeconfig, context: '', node: '', namespace: '', selector: '', file };
  let out = '';
  const complain = (text: string): void => {
    out += text;
  };
  const write = (text: string): Promise<void> => {
    complain(text);
    return Promise.resolve();
  };
  const status = await bugreportOf({ ...usual, ...asked }, { complain, write });
  if (status === 2) return { status, out, files: new Map() };
  t.equal(statSync(file).mode & 0o777, 0o600);
  const tar = (...words: readonly string[]): string =>
    execFileSync('tar', [...words], { encoding: 'utf8', maxBuffer: 1 << 26 });
  const names = tar('-tzf', file)
    .split('\n')
    .filter((name) => name !== '');
  return { status, out, files: new Map(names.map((name) => [name, tar('-xzOf', file, name)])) };
}

t.test('bugreport collects one node, or all nodes', async (t) => {
  const scene = await proxy(t);
  const front = await cluster(t, { one: plain(scene), two: {} });
  const one = await report(t, front, { node: 'one' });
  t.equal(one.status, 0);
  const parts = ['overview.json', 'triage.json', 'configuration.json', 'history.json', 'problems.json', 'metrics.txt'];
  t.same(
    [...one.files.keys()],
    [...[...parts, 'plan.txt', 'log.txt'].map((name) => `pointsman/one/${name}`), 'pointsman/README'],
  );
  for (const name of [...parts, 'plan.txt', 'log.txt'])
    t.match(one.files.get('pointsman/README'), new RegExp(`^one/${name}: `, 'm'), name);
  t.match(
    one.files.get('pointsman/README'),
    /^Not included .*: dump\.txt and diff\.txt [^]* in the pod of the node\.$/m,
  );
  t.match(JSON.parse(one.files.get('pointsman/one/overview.json') ?? ''), { mode: 'nftables', services: 1 });
  t.match(one.files.get('pointsman/one/metrics.txt'), /^# HELP /);
  const plan = (one.files.get('pointsman/one/plan.txt') ?? '').trimEnd().split('\n');
  t.same(plan, scene.running.families.flatMap(({ table }) => printTable(table)).sort());
  t.equal(one.files.get('pointsman/one/log.txt'), 'log of proxy-one\n');
  const all = await report(t, front, {});
  t.equal(all.status, 1, 'one gives no answer');
  t.match(all.out, /^ {2}two\/overview\.json: .*; could not be read: nothing listens on port 10249/m);
  t.notOk(all.files.has('pointsman/one/plan.txt'), 'which is long');
  t.match(all.files.get('pointsman/two/log.txt'), 'log of proxy-two');
  t.match(await report(t, front, { node: 'three' }), { status: 2, out: /^--node: three: no pod of / });
  t.match(await report(t, front, { node: 'one', file: '/nowhere/x' }), { status: 2, out: /^\/nowhere\/x: ENOENT/ });
  front.forbidden = '/api/v1/namespaces/kube-system/pods/proxy-one/log';
  t.match(await report(t, front, { node: 'one' }), { status: 1, out: /one\/log\.txt: .*403 by the API server/ });
});

t.test('a bug report keeps nodes of long names apart, and takes 8 MiB of each', async (t) => {
  const MIB = 1 << 20;
  /** Three MiB of control characters are 18 when they are printed. */
  const loud: Backend = (_, response) => response.end('\u0001'.repeat(3 * MIB));
  const plainText: Backend = (_, response) => response.end('a'.repeat(3 * MIB));
  const long = 'a'.repeat(60);
  const front = await cluster(t, {
    loud: { 'http:10249': loud },
    [`${long}-1`]: { 'http:10249': plainText },
    [`${long}-2`]: { 'http:10249': plainText },
  });
  const { status, files } = await report(t, front, {});
  t.equal(status, 1, 'parts of each are left out');
  t.match(files.get('pointsman/loud/overview.json'), /^could not be read: more than the 8388608 bytes/);
  const folders = new Set([...files.keys()].map((name) => name.split('/').at(1)));
  t.equal([...folders].filter((name) => name?.startsWith('aaaa')).length, 2, 'two nodes, two folders');
  for (const folder of folders) {
    const own = [...files].filter(([name]) => name.startsWith(`pointsman/${String(folder)}/`));
    const bytes = own.reduce((sum, [, text]) => sum + Buffer.byteLength(text), 0);
    t.ok(bytes <= 8 * MIB + 10_000, `${String(folder)}: ${bytes} bytes`);
  }
});

t.test('explain about a node is answered by the proxy of that node', async (t) => {
  const scene = await proxy(t);
  const front = await cluster(t, { one: plain(scene), two: {} });
  const question = { kubeconfig: front.kubeconfig, context: '', namespace: '', selector: '', from: '10.1.0.1' };
  const ask = (node: string, to: string, output: 'text' | 'json' = 'text'): ReturnType<typeof explainOn> =>
    explainOn({ ...question, node, to, output });
  const address = scene.running.snapshot.service('default/web')?.clusterIPs[0] ?? '';
  t.match(await ask('one', `${address}:80/TCP`), {
    text: /^TCP from 10\.1\.0\.1 to .* is forwarded[^]*\nkernel /,
    errors: [],
  });
  t.match(JSON.parse((await ask('one', `${address}:80/TCP`, 'json')).text), { verdict: { type: 'forward' } });
  t.match(await ask('one', 'nonsense'), { text: '', errors: [/^--node: one: 400 by the proxy: /] });
  t.match(await ask('two', `${address}:80/TCP`), { errors: [/^--node: two: nothing listens on port 10249/] });
  t.match(await ask('three', `${address}:80/TCP`), { errors: [/^--node: three: no pod of /] });
  const other = { ...question, node: 'one', to: `${address}:80/TCP`, output: 'text' } as const;
  t.match(await explainOn({ ...other, context: 'test' }), { text: /is forwarded/, errors: [] });
  t.match(await explainOn({ ...other, context: 'gone' }), { text: '', errors: [/"gone"/] });
  front.namespace = 'net';
  front.selector = 'app=proxy';
  const elsewhere = { ...question, namespace: 'net', node: 'one', to: `${address}:80/TCP`, output: 'text' } as const;
  t.match(await explainOn({ ...elsewhere, selector: 'app=proxy' }), { text: /is forwarded/, errors: [] });
  t.match(await explainOn({ ...elsewhere, selector: 'app=x' }), {
    errors: ['--node: one: no pod of app=x in net is on it'],
  });
});

t.test('nodes serves its page on loopback only, below a random path', async (t) => {
  const front = await cluster(t, { one: plain(await proxy(t)) });
  front.nodes = ['one', 'two'];
  const folder = t.testdir({ 'index.html': '<!doctype html>', 'nodes-0a1B2c3D.js': 'go()' });
  let looks = 0;
  const page = await serveNodesPage(
    { look: () => (looks++, look(front)), folder },
    { address: ip('127.0.0.1'), port: 0 },
  );
  t.teardown(() => page.close());
  const get = (url: string, init: RequestInit = {}): Promise<Response> => fetch(url, init);
  t.match(await (await get(page.address)).text(), '<!doctype html>');
  t.equal(
    (await get(`${page.address}nodes-0a1B2c3D.js`)).headers.get('cache-control'),
    'public, max-age=31536000, immutable',
  );
  t.match((await get(page.address)).headers.get('content-security-policy'), "default-src 'none'");
  t.equal(looks, 0, 'no node is asked before the page asks');
  const [answer, again] = await Promise.all([get(`${page.address}api/nodes`), get(`${page.address}api/nodes`)]);
  t.match(await answer.json(), { counts: { 'in-step': 1, 'no-proxy': 1 }, nodes: [{ node: 'two' }, { node: 'one' }] });
  t.same([again.status, looks], [200, 1], 'once for all windows');
  const posted = await get(`${page.address}api/nodes`, { method: 'POST' });
  t.same([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD']);
  t.equal((await get(`${page.address}api/nodes`, { headers: { 'Sec-Fetch-Site': 'cross-site' } })).status, 403);
  t.equal((await get(new URL('/ui/api/nodes', page.address).href)).status, 404, 'only those who know the address');
  t.match(await run('--ui', '--listen=0.0.0.0:0'), { status: 2, err: /^--listen: "0\.0\.0\.0:0": .*loopback/ });
  t.match(await run('--ui', '--kubeconfig=/nowhere'), { status: 2, out: '' });
});
