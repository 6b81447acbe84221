// Who may read what on the metrics address: users by certificate and token, rules for paths, and an API server that answers, denies, stalls and lies.
import { appendFileSync, copyFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { verbOf } from '../src/authorization.js';
import type { SecuredAccessParts } from '../src/access-control.js';
import { connectBy } from '../../../test/sources/kubernetes/connect.js';
import { ApiServer } from '../../../test/support/api-server/server.js';
import { Authority, type Issued } from '../../../test/support/certificates.js';
import { folder, scene, type Scene } from './scene.js';

const authority = new Authority();
const other = new Authority('another authority');
t.teardown(() => {
  authority.remove();
  other.remove();
});
const served = authority.issue({ commonName: 'served', alternativeNames: ['DNS:localhost'] });
const TLS = [`--tls-cert-file=${served.certificateFile}`, `--tls-private-key-file=${served.keyFile}`];
const TRUSTED = ['--cacert', authority.own.certificateFile];
const CLIENTS = `--client-ca-file=${authority.own.certificateFile}`;
const BY_CERTIFICATE = [...TLS, CLIENTS, '--authorization-mode=Webhook'];
const REVIEWED = [...TLS, '--authentication-token-webhook', '--authorization-mode=Webhook', '--anonymous-auth=false'];

const bearer = (token: string): string[] => ['-H', `Authorization: Bearer ${token}`];
const by = ({ certificateFile, keyFile }: Issued): string[] => ['--cert', certificateFile, '--key', keyFile];

/** The status of an answer over a connection that is kept. */
function askOver(
  agent: Agent,
  port: number,
  headers: Readonly<Record<string, string>> = {},
  path = '/metrics',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: 'localhost', port, path, agent, headers }, (response) => {
      response.resume().once('end', () => {
        resolve(response.statusCode ?? 0);
      });
    });
    outgoing.on('error', reject).end();
  });
}

interface World extends Scene {
  readonly server: ApiServer;
  readonly status: (path: string, ...options: readonly string[]) => Promise<number>;
  readonly asked: (kind?: string) => readonly object[];
}

async function world(t: Test, flags: readonly string[], more: Partial<SecuredAccessParts> = {}): Promise<World> {
  const server = new ApiServer();
  await server.start();
  t.teardown(() => server.stop());
  const api = await connectBy(t, { master: server.url });
  const made = await scene(t, flags, { api: () => api, ...more });
  return {
    ...made,
    server,
    status: async (path, ...options) => (await made.ask(path, ...TRUSTED, ...options)).status,
    asked: (kind) => server.reviews.asked.flatMap((each) => (each.kind === (kind ?? each.kind) ? [each.spec] : [])),
  };
}

/** A server that knows `reader`, who may read metrics, and `admin`, who may do everything. */
async function readers(
  t: Test,
  flags: readonly string[] = REVIEWED,
  more: Partial<SecuredAccessParts> = {},
): Promise<World> {
  const made = await world(t, flags, more);
  const { users, rules } = made.server.reviews;
  users.set('reader', { username: 'prometheus', uid: 'u1', groups: ['scrapers'], extra: { 'example.org/a': ['b'] } });
  users.set('admin', { username: 'admin', groups: ['masters'] });
  rules.push(
    { who: 'scrapers', nonResourceURLs: ['/metrics', '/metrics/*'], verbs: ['get'] },
    { who: 'masters', nonResourceURLs: ['*'], verbs: ['get', 'update', 'delete'] },
  );
  return made;
}

t.test('a user that may read metrics may read nothing else', async (t) => {
  const { status, ask, asked, received } = await readers(t);
  const paths = ['/metrics', '/configz', '/debug/pprof/', '/flagz', '/healthz', '/nowhere'];
  const statuses = async (token: string): Promise<readonly number[]> =>
    Promise.all(paths.map((path) => status(path, ...bearer(token))));
  t.same(await statuses('reader'), [200, 403, 403, 403, 403, 403]);
  t.same(await statuses('admin'), [200, 200, 200, 200, 200, 404]);
  t.same(await statuses('unknown'), [401, 401, 401, 401, 401, 401]);
  t.equal(await status('/metrics'), 401);
  t.same(asked('TokenReview'), [{ token: 'reader' }, { token: 'admin' }, { token: 'unknown' }], 'each once');
  const aboutMetrics = { nonResourceAttributes: { path: '/metrics', verb: 'get' }, user: 'prometheus' };
  const key = '"/metrics","verb":"get"},"user":"prometheus"';
  t.same(
    asked('SubjectAccessReview').find((spec) => JSON.stringify(spec).includes(key)),
    { ...aboutMetrics, groups: ['scrapers', 'system:authenticated'], uid: 'u1', extra: { 'example.org/a': ['b'] } },
  );
  t.equal(await status('/metrics/slis', ...bearer('reader')), 200);
  t.equal(await status('/metrics/slis', '-X', 'DELETE', ...bearer('reader')), 403, 'another verb');
  t.equal(await status('/metrics/slis', '-X', 'DELETE', ...bearer('admin')), 200);
  t.match(asked('SubjectAccessReview').at(-1), { nonResourceAttributes: { path: '/metrics/slis', verb: 'delete' } });
  t.match(await ask('/configz', ...TRUSTED, ...bearer('reader')), {
    body: 'Forbidden (user="prometheus", verb=get, path="/configz")\n',
  });
  t.match((await ask('/metrics', ...TRUSTED, '-i')).body, /^WWW-Authenticate: Bearer/m);
  t.ok(received.includes('authorized denied') && received.includes('authenticated failure'));
});

t.test('access to the files of the page is one decision, access to its API another', async (t) => {
  const { server, status, asked } = await readers(t);
  server.reviews.rules.push({ who: 'scrapers', nonResourceURLs: ['/ui/'], verbs: ['get'] });
  const files = Array.from({ length: 30 }, (_, index) => `/ui/file-${index}.js`);
  for (const path of ['/ui/', ...files]) t.equal(await status(path, ...bearer('reader')), 200, path);
  for (const path of ['/ui/api/overview', '/ui/api/services?q=/ui/'])
    t.equal(await status(path, ...bearer('reader')), 403, path);
  t.equal(await status('/ui/api/services', ...bearer('admin')), 200);
  t.same(
    asked('SubjectAccessReview').map((spec) => JSON.stringify(spec).match(/"path":"([^"]*)"/)?.[1]),
    ['/ui/', '/ui/api/', '/ui/api/'],
  );
});

t.test('X-Pointsman-Authorization counts only in requests without an Authorization header', async (t) => {
  const { status } = await readers(t);
  const passed = (token: string): string[] => ['-H', `X-Pointsman-Authorization: Bearer ${token}`];
  t.equal(await status('/metrics', ...passed('reader')), 200);
  t.equal(await status('/configz', ...passed('reader')), 403);
  t.equal(await status('/metrics', ...passed('unknown')), 401);
  t.equal(await status('/configz', ...bearer('admin'), ...passed('reader')), 200);
  t.equal(await status('/configz', ...bearer('reader'), ...passed('admin')), 403);
});

t.test('ambiguous paths are refused without a question to the API server', async (t) => {
  const { status, asked } = await readers(t);
  const tricks = [
    '/metrics/../debug/pprof/',
    '/metrics/..%2fconfigz',
    '/metrics/%2e%2e/configz',
    '//configz',
    '/metrics/./x',
    '/metrics/..',
    '/metrics/..;/configz',
    '/metrics\\..\\configz',
    '/%6detrics',
    `/metrics/${'a'.repeat(1024)}`,
  ];
  for (const path of tricks) t.equal(await status(path, ...bearer('reader')), 403, path);
  t.same(asked('SubjectAccessReview'), [], 'and the API server is not asked');
  for (const target of ['https://localhost/configz', '/metrics/#/configz', '*'])
    t.equal(await status('/metrics', ...bearer('reader'), '--request-target', target), 403, target);
  t.equal(await status('/metrics?x=/../debug', ...bearer('reader')), 200, 'a query is no path');
});

t.test('a client certificate’s common name is the user, its organizations are the groups', async (t) => {
  const { status, asked, server, time } = await world(t, [...BY_CERTIFICATE, '--anonymous-auth=false']);
  server.reviews.rules.push({ who: 'scrapers', nonResourceURLs: ['/metrics'], verbs: ['get'] });
  const issue = (from: Authority, subject: string, days = 1): Issued =>
    from.issue({ commonName: subject, use: 'client', days });
  t.equal(await status('/metrics', ...by(issue(authority, 'prometheus/O=scrapers/O=more'))), 200);
  t.match(asked(), [{ user: 'prometheus', groups: ['scrapers', 'more', 'system:authenticated'] }]);
  t.equal(await status('/metrics', ...by(issue(authority, 'prometheus/O=others'))), 403);
  t.equal(await status('/metrics', ...by(issue(other, 'prometheus/O=scrapers'))), 401, 'of another authority');
  time.now += 2 * 86_400_000;
  t.equal(await status('/metrics', ...by(issue(authority, 'prometheus/O=scrapers'))), 401, 'expired');
  const forServers = authority.issue({ commonName: 'prometheus/O=scrapers', use: 'server' });
  t.equal(await status('/metrics', ...by(forServers)), 401, 'of a server');
  t.equal(await status('/metrics'), 401, 'none');
  t.equal(asked().length, 2);
});

t.test('an open connection loses access when its certificate expires or its authority is removed', async (t) => {
  const file = join(folder(t), 'ca.crt');
  copyFileSync(authority.own.certificateFile, file);
  const { status, look, log, port, time } = await world(t, [
    ...TLS,
    `--client-ca-file=${file}`,
    '--anonymous-auth=false',
  ]);
  const client = authority.issue({ commonName: 'reader', use: 'client', days: 10 });
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: authority.own.certificate,
    cert: client.certificate,
    key: client.key,
  });
  t.teardown(() => {
    agent.destroy();
  });
  const once = (): Promise<number> => askOver(agent, port);
  // A connection may be closed just when it is used again.
  const kept = (): Promise<number> => once().catch(once);
  t.equal(await kept(), 200);
  time.now += 11 * 86_400_000;
  t.equal(await kept(), 401, 'the same connection, when its certificate has ended');
  time.now -= 11 * 86_400_000;
  t.equal(await kept(), 200);
  writeFileSync(file, 'none');
  await look();
  t.match(log.lines.at(-1), /^error changed files cannot be used, the last ones stay in use: .*holds no certificate/);
  t.equal(await kept(), 200);
  writeFileSync(file, other.own.certificate);
  await look();
  t.equal(await kept(), 401, 'its authority does not count any more');
  appendFileSync(file, authority.own.certificate);
  await look();
  t.equal(await kept(), 200);
  t.equal(await status('/metrics', ...by(other.issue({ commonName: 'a', use: 'client' }))), 200);
});

t.test('anonymous requests are admitted unless switched off, and never with bad credentials', async (t) => {
  const { status, server, asked } = await world(t, [...BY_CERTIFICATE, '--authentication-token-webhook']);
  server.reviews.rules.push({ who: 'system:unauthenticated', nonResourceURLs: ['/healthz'], verbs: ['get'] });
  t.same([await status('/healthz'), await status('/metrics')], [200, 403]);
  t.match(asked()[0], { user: 'system:anonymous', groups: ['system:unauthenticated'] });
  t.equal(await status('/healthz', ...bearer('wrong')), 401);
  t.equal(await status('/healthz', ...by(other.issue({ commonName: 'a', use: 'client' }))), 401);
  t.equal(await status('/healthz', '-H', 'Authorization: Basic YTpi'), 200, 'no bearer token');
  server.reviews.users.set('good', { username: 'good' });
  t.equal(
    await status('/metrics', ...bearer('good'), ...by(other.issue({ commonName: 'a', use: 'client' }))),
    403,
    'the token is good',
  );
  const open = await world(t, TLS);
  t.same(
    [await open.status('/metrics'), await open.status('/metrics', ...bearer('x'))],
    [200, 200],
    'as node agents have it',
  );
  t.same(open.asked(), []);
});

t.test('authentication and authorization answers are cached for their TTL', async (t) => {
  const { status, asked, clock, server, time } = await readers(t);
  const count = (kind: string): number => asked(kind).length;
  const good = async (): Promise<number> => status('/metrics', ...bearer('reader'));
  t.same([await good(), await good(), count('TokenReview'), count('SubjectAccessReview')], [200, 200, 1, 1]);
  await clock.advance(119_000);
  t.same([await good(), count('TokenReview')], [200, 1]);
  await clock.advance(2_000);
  t.same([await good(), count('TokenReview'), count('SubjectAccessReview')], [200, 2, 1], 'a token for two minutes');
  await clock.advance(180_000);
  t.same([await good(), count('SubjectAccessReview')], [200, 2], 'that a user may, for five');
  t.equal(await status('/configz', ...bearer('reader')), 403);
  server.reviews.rules.push({ who: 'scrapers', nonResourceURLs: ['/configz'], verbs: ['get'] });
  t.equal(await status('/configz', ...bearer('reader')), 403);
  await clock.advance(30_000);
  t.equal(await status('/configz', ...bearer('reader')), 200, 'that it may not for 30 s');

  const exp = Math.floor(time.now / 1000) + 10;
  const claims = Buffer.from(JSON.stringify({ exp })).toString('base64url');
  const token = `e30.${claims}.x`;
  server.reviews.users.set(token, { username: 'short', groups: ['scrapers'] });
  t.equal(await status('/metrics', ...bearer(token)), 200);
  server.reviews.users.delete(token);
  await clock.advance(11_000);
  t.equal(await status('/metrics', ...bearer(token)), 401, 'no token is remembered beyond its end');
});

t.test('without the API server, cached decisions are used until they expire; then 503 with a reason', async (t) => {
  const receivedAt = (): number => Date.parse('2026-01-02T03:04:05Z');
  const { status, ask, clock, server, log } = await readers(t, REVIEWED, { receivedAt });
  const good = async (): Promise<number> => status('/metrics', ...bearer('reader'));
  t.equal(await good(), 200);
  await server.stop();
  t.equal(await good(), 200);
  t.equal(await status('/configz', ...bearer('reader')), 503, 'was not asked before');
  await clock.advance(121_000);
  t.match(await ask('/metrics', ...TRUSTED, ...bearer('reader')), {
    status: 503,
    body: 'Service Unavailable: no TokenReview from the API server (connect): cut off from the API server since 2026-01-02T03:04:05.000Z\n',
  });
  t.equal(log.lines.filter((line) => line.startsWith('error the API server gives no review')).length, 1, 'said once');
  await server.start();
  t.equal(await good(), 200, 'failures are not remembered');
  t.ok(log.lines.includes('info 0 the API server reviews again'));
  await clock.advance(301_000);
  server.faults.add({ fault: { type: 'reset' }, resource: 'tokenreviews', times: 1 });
  t.equal(await good(), 503, 'reset');
  server.faults.add({ fault: { type: 'status', code: 500 }, resource: 'subjectaccessreviews', times: 1 });
  t.equal(await good(), 503);
  const { reviews } = server;
  const lies: readonly ApiServer['reviews']['lie'][] = [
    '{',
    '{}',
    '{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}',
    '{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"authenticated":true,"allowed":true,"user":{"username":"a"}}}',
    '{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"admin"}}}',
    '{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","status":{"authenticated":true,"user":{"username":"admin"}}}',
    () => ({ authenticated: 'true', user: { username: 'admin' } }),
    () => ({ authenticated: true, user: { username: '' } }),
    () => ({ authenticated: true, user: { username: 'a', groups: 'masters' } }),
  ];
  for (const [index, lie] of lies.entries()) {
    reviews.lie = lie;
    await clock.advance(1000);
    const { body } = await ask('/metrics', ...TRUSTED, ...bearer(`lie-${index}`));
    t.equal(body, 'Service Unavailable: no TokenReview from the API server\n', String(lie));
  }
  for (const lie of [() => ({ allowed: 'true' }), () => ({}), '[]'] as const) {
    reviews.lie = null;
    await clock.advance(121_000);
    await status('/configz', ...bearer('reader'));
    reviews.lie = lie;
    const { body } = await ask('/flagz', ...TRUSTED, ...bearer('reader'));
    t.equal(body, 'Service Unavailable: no SubjectAccessReview from the API server\n', String(lie));
  }
  reviews.lie = () => ({ allowed: true, denied: true });
  t.equal(await status('/flagz', ...bearer('reader')), 403, 'denied is denied');
});

t.test('a request waits for an unresponsive API server no longer than the timeout', async (t) => {
  const { status, server } = await readers(t, REVIEWED, { reviewTimeoutMs: 200 });
  server.faults.add({ fault: { type: 'hang' }, resource: 'tokenreviews', times: 1 });
  t.equal(await status('/metrics', ...bearer('reader')), 503);
});

t.test('requests with invalid tokens reach the API server no more often than the limits allow', async (t) => {
  const { port, asked, clock, status } = await readers(t);
  t.equal(await status('/metrics', ...bearer('reader')), 200);
  const agent = new Agent({ keepAlive: true, maxSockets: 20, ca: authority.own.certificate });
  t.teardown(() => {
    agent.destroy();
  });
  const ask = (token: string): Promise<number> => askOver(agent, port, { authorization: `Bearer ${token}` });
  const flood = await Promise.all(Array.from({ length: 300 }, (_, index) => ask(`unknown-${index}`)));
  const counts = (status: number): number => flood.filter((each) => each === status).length;
  t.equal(asked('TokenReview').length, 10, 'of one address');
  t.same([counts(401), counts(429)], [9, 291]);
  t.equal(await ask('reader'), 200, 'who is known is not kept out');
  await clock.advance(60_000);
  const same = await Promise.all(Array.from({ length: 100 }, () => ask('one')));
  t.ok(same.every((each) => each === 401));
  t.equal(asked('TokenReview').length, 11, 'asked once');
});

t.test('rate limits hold for requests from many addresses and for many paths', async (t) => {
  const { port, asked, ask, clock, server } = await readers(t);
  const agents = ['127.0.0.1', '127.0.0.2', '127.0.0.3'].map(
    (localAddress) => new Agent({ keepAlive: true, maxSockets: 8, ca: authority.own.certificate, localAddress }),
  );
  t.teardown(() => {
    for (const agent of agents) agent.destroy();
  });
  const [agent = new Agent()] = agents;
  const statuses = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      askOver(agents[index % 3] ?? agent, port, { authorization: `Bearer unknown-${index}` }),
    ),
  );
  t.equal(asked('TokenReview').length, 20, 'all together');
  t.equal(statuses.filter((each) => each === 429).length, 10);
  await clock.advance(60_000);

  const reader = { authorization: 'Bearer reader' };
  const paths: number[] = [];
  for (let index = 0; index < 25; index++) paths.push(await askOver(agent, port, reader, `/made-up-${index}`));
  t.same(paths, [...Array<number>(20).fill(403), ...Array<number>(5).fill(429)], 'of one user');
  t.match(await ask('/made-up', ...TRUSTED, ...bearer('reader'), '-i'), { body: /^Retry-After: 1\r$/m, status: 429 });
  t.equal(await askOver(agent, port, { authorization: 'Bearer admin' }, '/metrics'), 200, 'others are not kept out');

  await clock.advance(60_000);
  server.faults.add({ fault: { type: 'hang' }, resource: 'subjectaccessreviews' });
  const before = server.requests.length;
  const waiting = Array.from({ length: 16 }, (_, index) =>
    askOver(agents[index % 3] ?? agent, port, reader, `/hangs-${index}`),
  );
  while (server.requests.length < before + 16) await new Promise((resolve) => setImmediate(resolve));
  t.match(await ask('/one-more', ...TRUSTED, ...bearer('reader')), {
    status: 503,
    body: 'Service Unavailable: too many reviews are under way\n',
  });
  await server.stop();
  t.same(await Promise.all(waiting), Array<number>(16).fill(503));
});

t.test('a cached decision is never used for another user or path', async (t) => {
  const { server, status, asked } = await readers(t);
  const { users } = server.reviews;
  const same = { username: 'prometheus', groups: ['scrapers'] };
  users.set('plain', same);
  users.set('numbered', { ...same, uid: 'u2' });
  users.set('tagged', { ...same, extra: { 'example.org/a': ['c'] } });
  for (const token of ['reader', 'plain', 'numbered', 'tagged']) await status('/metrics', ...bearer(token));
  t.equal(asked('SubjectAccessReview').length, 4);
  t.same(
    ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) => verbOf(method)),
    ['get', 'get', 'create', 'update', 'patch', 'delete', 'options'],
  );
});
