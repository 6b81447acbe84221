// Client certificates that are asked for: the first one, whatever becomes of the request and wherever the process ends meanwhile, and those that follow.
import { X509Certificate } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ApiServerOptions } from '../../support/api-server/options.js';
import type { SigningPolicy } from '../../support/api-server/signing.js';
import { Authority, requestedSubject } from '../../support/certificates.js';
import { FakeClock } from '../../support/fake-clock.js';
import { CertificateWorld } from './certificate-world.js';
import { fetchText, kubeconfigText } from './connect.js';
import { until } from './live-world.js';

const authority = new Authority();
const stranger = new Authority('another authority');
t.teardown(() => {
  authority.remove();
  stranger.remove();
});

const HOUR_MS = 3_600_000;
const DAY_S = 86_400;

function start(t: Test, policy?: SigningPolicy, options?: Partial<ApiServerOptions>): Promise<CertificateWorld> {
  return CertificateWorld.start(t, authority, policy, options);
}

t.test('without a kubeconfig a certificate is requested, and API requests wait for it', async (t) => {
  const world = await start(t, 'wait');
  const connection = await world.connect();
  const asked = fetchText(connection);
  await world.waiting();
  const [request] = world.requests();
  const name = request?.metadata.name ?? '';
  t.equal(world.lacks, `request ${name} waits for its approval: kubectl certificate approve ${name}`);
  t.match(request?.spec, {
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'client auth'],
  });
  const pem = Buffer.from(request?.spec.request ?? '', 'base64').toString();
  t.match(requestedSubject(pem), /^CN ?= ?system:kube-proxy$/, 'openssl reads it, and its signature is good');
  t.equal(statSync(world.pending).mode & 0o777, 0o600);
  t.equal(statSync(join(world.directory, 'pki')).mode & 0o777, 0o700);
  world.answer('approve');
  await until(
    () => world.lacks?.includes('signer kubernetes.io/kube-apiserver-client to sign it') === true,
    'approved',
  );

  world.answer('sign');
  t.match(await asked, /^200 /);
  t.match(world.server.requests.at(-1), { user: 'system:kube-proxy' });
  t.match(world.server.requests.at(-1)?.headers, { authorization: undefined });
  t.same([world.lacks, world.received], [null, ['issued']]);
  t.equal(statSync(world.link).mode & 0o777, 0o600);
  t.match(readlinkSync(world.link), /^kube-proxy-client-\d{4}(-\d\d){5}\.pem$/);
  t.equal(statSync(world.kubeconfig).mode & 0o777, 0o600);
  t.match(JSON.parse(readFileSync(world.kubeconfig, 'utf8')), {
    clusters: [{ cluster: world.cluster }],
    users: [{ user: { 'client-certificate': world.link, 'client-key': world.link } }],
  });
  t.notOk(existsSync(world.pending));
  t.same(readdirSync(join(world.directory, 'pki')).length, 2, 'nothing else is left');
  t.equal(world.reported(/certificate is asked for/), 3, 'why, and twice what it waits for');

  const posts = world.posts();
  t.match(await fetchText(await world.connect()), /^200 /);
  t.equal(world.posts(), posts, 'another start has it');
});

t.test('a process that ends at any step of a certificate request is continued with its key', async (t) => {
  const world = await start(t, 'wait');
  (await world.connect()).close();
  const first = await world.connect();
  await world.waiting();
  const saved = join(world.directory, 'saved');
  copyFileSync(world.pending, saved);
  first.close();

  await t.test('a process ends after the request is made', async (t) => {
    world.lacks = null;
    const connection = await world.connect();
    await world.waiting();
    world.answer('sign');
    t.match(await fetchText(connection), /^200 /);
  });
  const certificate = readFileSync(world.link, 'utf8');
  const isSame = (): boolean => readFileSync(world.link, 'utf8') === certificate;
  await t.test('a process ends after key and certificate are written', async (t) => {
    world.without(world.link, world.kubeconfig);
    copyFileSync(saved, world.pending);
    t.match(await fetchText(await world.connect()), /^200 /);
    t.ok(isSame());
  });
  await t.test('a process ends after key and certificate are in place', async (t) => {
    world.without(world.kubeconfig);
    copyFileSync(saved, world.pending);
    const posts = world.posts();
    t.match(await fetchText(await world.connect()), /^200 /);
    t.ok(isSame());
    t.equal(world.posts(), posts, 'no request is sent');
    t.notOk(existsSync(world.pending));
  });
  await t.test('a process ends and the server forgets the request', async (t) => {
    world.without(world.link, world.kubeconfig);
    copyFileSync(saved, world.pending);
    world.forget();
    t.match(await fetchText(await world.connect()), /^200 /);
    t.notOk(isSame());
  });
  t.equal(world.requests().length, 1, 'all of it was the same request');
  await t.test('leftovers of an older request do not count', async (t) => {
    world.without(world.kubeconfig);
    t.match(await fetchText(await world.connect()), /^200 /);
    t.equal(world.requests().length, 2);
  });
});

t.test('a denied or failed certificate request is followed by one with another key', async (t) => {
  for (const [policy, how, message] of [
    ['deny', 'denied', /was denied: TestSays: not this node/],
    ['fail', 'failed', /was failed: TestSays: not signed/],
    ['otherKey', 'failed', /what was issued cannot be used: its certificate: cannot be used with its key/],
  ] as const) {
    const world = await start(t, policy);
    const connection = await world.connect();
    await until(() => world.requests().length === 3, `asked again after ${policy}`);
    t.match(world.lacks, message);
    t.equal(world.reported(message), 1, 'reported once');
    world.server.signing.policy = 'sign';
    t.match(await fetchText(connection), /^200 /);
    t.same(world.received, [how, how, how, 'issued'].slice(-world.received.length));
    t.equal(world.lacks, null);
  }
});

t.test('an obstacle to a certificate request is reported once, and the request is retried', async (t) => {
  const posted = (world: CertificateWorld): number => world.posts();
  const token = await start(t, 'sign', { tokens: ['another'] });
  const connection = await token.connect();
  await until(() => posted(token) > 3, 'asked again');
  t.match(
    token.lacks,
    /^who wants to make a CertificateSigningRequest is not known to the API server, or not any more \(401\)/,
  );
  t.equal(token.reported(/\(401\)/), 1);
  writeFileSync(token.bootstrap, kubeconfigText({ cluster: token.cluster, user: { token: 'another' } }));
  t.match(await fetchText(connection), /^200 /, 'another token in the file counts');

  for (const [options, message] of [
    [{ rules: [] }, /does not let us make a CertificateSigningRequest \(403\): forbidden: no rule allows it/],
    [{ without: ['certificatesigningrequests'] }, /refuses to let us make a CertificateSigningRequest \(404\)/],
  ] as const) {
    const world = await start(t, 'sign', options);
    await world.connect();
    await until(() => posted(world) > 3, 'asked again');
    t.match(world.lacks, message);
    t.equal(world.reported(message), 1);
    t.ok(world.received.every((result) => result === 'error'));
  }
  const away = await start(t);
  await away.server.stop();
  const late = fetchText(await away.connect());
  await until(() => away.received.length > 2, 'tried again');
  await away.server.start();
  t.match(await late, /^200 /);
});

t.test('the watch of a certificate request survives ends, resets and forgotten versions', async (t) => {
  const world = await start(t, 'wait');
  const asked = fetchText(await world.connect());
  await world.waiting();
  await until(() => world.server.watches.size === 1, 'watching');
  for (const watch of [...world.server.watches]) watch.end();
  await until(() => world.server.watches.size === 1, 'watching again');
  for (const watch of [...world.server.watches]) watch.reset();
  await until(() => world.server.watches.size === 1, 'watching after a reset');
  world.answer('sign');
  t.match(await asked, /^200 /);
  t.equal(world.requests().length, 1);
});

t.test('a certificate is requested only if the kubeconfig has no valid one', async (t) => {
  const [good, dead, foreign] = [
    authority.issue({ commonName: 'me' }),
    authority.issue({ commonName: 'me', days: 1 }),
    authority.issue({ commonName: 'you' }),
  ];
  for (const [user, isAsked] of [
    [{ token: 'bootstrap-token' }, false],
    [{ 'client-certificate': good.certificateFile, 'client-key': good.keyFile }, false],
    [{ 'client-certificate': dead.certificateFile, 'client-key': dead.keyFile }, true],
    [{ 'client-certificate': good.certificateFile, 'client-key': foreign.keyFile }, true],
    [{ 'client-certificate': '/gone', 'client-key': '/gone' }, true],
  ] as const) {
    const world = await start(t);
    writeFileSync(world.kubeconfig, kubeconfigText({ cluster: world.cluster, user }));
    world.server.signing.seconds = 10 * DAY_S;
    const connection = await world.connect({ now: () => Date.now() + 2000 * DAY_S });
    t.match(await fetchText(connection), /^200 /);
    t.equal(world.requests().length, isAsked ? 1 : 0, JSON.stringify(user));
  }
  const world = await start(t);
  writeFileSync(world.kubeconfig, 'kind: [');
  await t.rejects(world.connect(), { code: 'KUBECONFIG_INVALID' }, 'which is not overwritten');
  world.without(world.kubeconfig, world.bootstrap);
  await t.rejects(world.connect(), { code: 'KUBECONFIG_INVALID', message: /bootstrap: cannot be read/ });
  await t.rejects(world.connect({}, { bootstrapKubeconfig: null, isRotated: true }), { code: 'KUBECONFIG_INVALID' });
});

t.test('the signer kube-apiserver-client-kubelet gets the subject of a node', async (t) => {
  const world = await start(t);
  const connection = await world.connect({}, { signerName: 'kubernetes.io/kube-apiserver-client-kubelet' });
  t.match(await fetchText(connection), /^200 /);
  const { subject } = new X509Certificate(certificateIn(world.link));
  t.same(subject.split('\n').sort(), ['CN=system:node:worker-1', 'O=system:nodes']);
});

t.test('a client certificate is renewed before it expires, and then used', async (t) => {
  const world = await start(t);
  const clock = new FakeClock();
  let later = 0;
  const now = (): number => Date.now() + later;
  const connection = await world.connect({ clock, now }, { isRotated: true });
  await fetchText(connection);
  const first = new X509Certificate(certificateIn(world.link)).serialNumber;
  const { signal } = new AbortController();
  const watch = await connection.get('/api/v1/services', { watch: '1' }, { accept: 'application/json', signal });
  const ended = watch.body.resume().toArray();

  const wait = async (ms: number): Promise<void> => {
    later += ms;
    while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600_000);
  };
  await wait(0.69 * HOUR_MS);
  t.equal(world.requests().length, 1, 'not before 70 %');
  await wait(0.21 * HOUR_MS);
  await until(() => world.received.length === 2, 'renewed');
  t.equal(world.requests().length, 2, 'with a key of its own');
  await ended;
  t.match(await fetchText(connection), /^200 /);
  const second = new X509Certificate(certificateIn(world.link)).serialNumber;
  t.not(second, first);
  t.match(world.server.requests.at(-1), { serial: second });
  t.match(
    world.server.requests.filter(({ method }) => method === 'POST').map(({ serial }) => serial),
    ['', first],
    'the former certificate asks for it',
  );
  t.notOk(existsSync(world.pending));

  world.server.signing.policy = 'deny';
  await wait(2 * HOUR_MS);
  await until(() => world.received.includes('denied'), 'denied');
  t.match(world.lacks, /was denied/);
  t.equal(
    world.server.requests.filter(({ method }) => method === 'POST').at(-1)?.serial,
    '',
    'one that has ended is not used to ask',
  );
  t.equal(new X509Certificate(certificateIn(world.link)).serialNumber, second, 'and stays until there is another');
  t.match(await fetchText(connection), /^200 /);
});

t.test('a renewed certificate that the API server rejects is dropped, and the former stays in use', async (t) => {
  const world = await start(t, 'sign', { signer: stranger.own });
  const { signing } = world.server;
  const files = (): readonly string[] => readdirSync(join(world.directory, 'pki')).sort();
  const refused = /^the API server does not accept the issued certificate \(401\)$/;
  const clock = new FakeClock();
  let later = 0;
  const now = (): number => Date.now() + later;
  const connection = await world.connect({ clock, now }, { isRotated: true });
  const asked = fetchText(connection);
  await until(() => refused.test(world.lacks ?? ''), 'the first is refused');
  t.notOk(existsSync(world.kubeconfig), 'what is of no use is not written down for the next start');
  t.same(files(), ['kube-proxy-client.key.tmp'], 'with its key it is tried again');
  signing.authority = authority.own;
  world.forget();
  const pass = async (): Promise<void> => {
    while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600_000);
  };
  await pass();
  t.match(await asked, /^200 /);
  const first = certificateIn(world.link);
  const held = files();

  signing.authority = stranger.own;
  later += 0.95 * HOUR_MS;
  await pass();
  await until(() => refused.test(world.lacks ?? ''), 'the next is refused');
  t.equal(certificateIn(world.link), first);
  t.same(files(), [...held, 'kube-proxy-client.key.tmp'].sort());
  t.match(await fetchText(connection), /^200 /);
  t.equal(world.reported(/does not accept the issued certificate/), 2, 'each time once');
  const posts = world.posts();
  await pass();
  await until(() => world.posts() > posts, 'asked again');
  t.equal(world.requests().length, 2, 'the same request');
  signing.authority = authority.own;
  world.forget();
  await pass();
  await until(() => world.lacks === null, 'one that is taken');
  t.not(certificateIn(world.link), first);
  t.match(await fetchText(connection), /^200 /);
});

t.test('a certificate that the kubeconfig names is not renewed', async (t) => {
  const world = await start(t);
  const { certificateFile, keyFile } = authority.issue({ commonName: 'me' });
  const user = { 'client-certificate': certificateFile, 'client-key': keyFile };
  writeFileSync(world.kubeconfig, kubeconfigText({ cluster: world.cluster, user }));
  await world.connect({}, { isRotated: true });
  t.equal(world.reported(/^warn --rotate-certificates: has no effect/), 1);
});

function certificateIn(path: string): string {
  const text = readFileSync(path, 'utf8');
  return text.slice(text.indexOf('-----BEGIN CERTIFICATE'));
}
