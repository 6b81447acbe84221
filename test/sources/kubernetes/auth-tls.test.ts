import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { TlsTrust } from '../../../src/sources/kubernetes/auth/tls-trust.js';
import { AuthServer } from '../../support/auth-server.js';
import { Authority, type LeafOptions } from '../../support/certificates.js';
import { FakeClock } from '../../support/fake-clock.js';
import { RecordingLog } from '../../support/recording-log.js';
import { clockOf, connect, connectBy, fetchText, openWatch, kubeconfigText, scratch } from './connect.js';

const authority = new Authority();
const stranger = new Authority('another authority');
const serverPair = authority.issue({ commonName: 'server', alternativeNames: ['IP:127.0.0.1', 'DNS:api.test'] });
const tls = {
  cert: serverPair.certificate,
  key: serverPair.key,
  ca: authority.own.certificate,
  requestCert: true,
  rejectUnauthorized: false,
};
const server = await AuthServer.start(tls);
const caFile = authority.own.certificateFile;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

t.teardown(async () => {
  await server.stop();
  authority.remove();
  stranger.remove();
});

t.test('token, basic and anonymous credentials are sent', async (t) => {
  const cluster = { server: server.url(), 'certificate-authority': caFile };
  t.equal(await fetchText(await connect(t, { cluster, user: { token: 'secret' } })), '200 ok');
  t.equal(server.last.headers.authorization, 'Bearer secret');
  t.notOk('accept-encoding' in server.last.headers, 'no compression is asked for');
  t.equal(server.last.headers.accept, 'application/json');
  t.equal(server.last.headers['user-agent'], 'test');
  t.equal(server.last.headers.host, `127.0.0.1:${server.port}`);

  await fetchText(await connect(t, { cluster, user: { username: 'jürgen', password: 'pä:ss' } }));
  t.equal(server.last.headers.authorization, `Basic ${base64('jürgen:pä:ss')}`);

  t.equal(await fetchText(await connect(t, { cluster })), '200 ok', 'a context without a user keeps the authority');
  t.notOk('authorization' in server.last.headers);
});

t.test('client certificate and authority are read from files, relative paths and data', async (t) => {
  const pair = authority.issue({ commonName: 'node-proxy' });
  const directory = scratch(t);
  copyFileSync(caFile, join(directory, 'ca.crt'));
  copyFileSync(pair.certificateFile, join(directory, 'me.crt'));
  copyFileSync(pair.keyFile, join(directory, 'me.key'));
  const kubeconfig = join(directory, 'kubeconfig');
  const cluster = { server: server.url(), 'certificate-authority': 'ca.crt' };
  writeFileSync(
    kubeconfig,
    kubeconfigText({ cluster, user: { 'client-certificate': 'me.crt', 'client-key': './me.key' } }),
  );
  await fetchText(await connectBy(t, { kubeconfig }));
  t.equal(server.last.client, 'node-proxy');

  const user = { 'client-certificate-data': base64(pair.certificate), 'client-key-data': base64(pair.key) };
  const data = { server: server.url(), 'certificate-authority-data': base64(authority.own.certificate) };
  await fetchText(await connect(t, { cluster: data, user }));
  t.equal(server.last.client, 'node-proxy');
});

t.test('a certificate and key in one file, replaced at any moment, always match', async (t) => {
  const directory = scratch(t);
  const file = join(directory, 'pair.pem');
  const pairs = ['one', 'other'].map((commonName) => authority.issue({ commonName }));
  const put = (turn: number): void => {
    const { key, certificate } = pairs[turn % 2]!;
    writeFileSync(`${file}.new`, key + certificate);
    renameSync(`${file}.new`, file);
  };
  put(0);
  const log = new RecordingLog();
  const source = { type: 'file', path: file, field: 'pair' } as const;
  const access = {
    serverName: 'x',
    authority: { ...source, path: caFile },
    insecure: true,
    pair: { certificate: source, key: source },
  };
  const trust = new TlsTrust(access, {}, log);
  for (let turn = 1; turn < 60; turn++) {
    const asked = trust.current(null);
    for (let tick = turn % 12; tick > 0; tick--) await new Promise((resolve) => setImmediate(resolve));
    put(turn);
    await asked;
    await trust.current(null);
  }
  t.same(log.lines, []);
});

t.test('a changed client certificate is used by the next request, a broken one is not', async (t) => {
  const directory = scratch(t);
  const certificate = join(directory, 'me.crt');
  const key = join(directory, 'me.key');
  const put = (name: string): void => {
    const pair = authority.issue({ commonName: name });
    for (const [from, to] of [
      [pair.certificateFile, certificate],
      [pair.keyFile, key],
    ] as const) {
      copyFileSync(from, `${to}.new`);
      renameSync(`${to}.new`, to);
    }
  };
  put('first');
  const log = new RecordingLog();
  const cluster = { server: server.url(), 'certificate-authority': caFile };
  const user = { 'client-certificate': certificate, 'client-key': key };
  const connection = await connect(t, { cluster, user }, { log });
  await fetchText(connection);
  const first = server.last;
  await fetchText(connection);
  t.equal(server.last.connection, first.connection, 'nothing changed: the connection is used again');
  put('second');
  await fetchText(connection);
  t.same([first.client, server.last.client], ['first', 'second']);
  t.not(server.last.connection, first.connection);

  copyFileSync(authority.issue({ commonName: 'third' }).certificateFile, certificate);
  await fetchText(connection);
  await fetchText(connection);
  rmSync(key);
  await fetchText(connection);
  t.equal(server.last.client, 'second', 'half a change leaves the last pair');
  const errors = log.lines.filter((line) => line.startsWith('error'));
  t.equal(errors.length, 2, 'each problem is said once');
  t.match(errors[0], /users\[0\]\.user\.client-certificate: cannot be used with its key/);
  t.match(errors[1], /users\[0\]\.user\.client-key: cannot be read/);
  put('fourth');
  await fetchText(connection);
  t.equal(server.last.client, 'fourth');
  t.match(log.lines.at(-1), /can be used again/);

  let finish = (): void => undefined;
  server.handler = (_, response) => {
    response.write('begun');
    finish = () => response.end();
  };
  const { body } = await connection.get('/', {}, { accept: '*/*', signal: new AbortController().signal });
  server.handler = (_, response) => response.end('ok');
  put('fifth');
  await fetchText(connection);
  finish();
  t.equal((await body.toArray()).map(String).join(''), 'begun', 'a watch under way goes on to its end');
  await fetchText(connection);
  t.equal(server.last.client, 'fifth', 'but its connection is not used again');
});

t.test('watches end when the certificate or authority they use is replaced', async (t) => {
  const directory = scratch(t);
  const files = {
    ca: join(directory, 'ca.crt'),
    certificate: join(directory, 'me.crt'),
    key: join(directory, 'me.key'),
  };
  const put = (name: string): void => {
    const pair = authority.issue({ commonName: name });
    copyFileSync(pair.certificateFile, files.certificate);
    copyFileSync(pair.keyFile, files.key);
  };
  copyFileSync(caFile, files.ca);
  put('first');
  const clock = new FakeClock();
  const cluster = { server: server.url(), 'certificate-authority': files.ca };
  const user = { 'client-certificate': files.certificate, 'client-key': files.key };
  const connection = await connect(t, { cluster, user }, { dependencies: { clock } });
  const first = await openWatch(t, server, connection);
  await clock.advance(60_000);
  put('second');
  t.equal(await first.endAfter(clock), 'begun', 'as if the server had ended it');
  const second = await openWatch(t, server, connection);
  t.equal(server.last.client, 'second');
  writeFileSync(files.ca, `${authority.own.certificate}${stranger.own.certificate}`);
  t.equal(await second.endAfter(clock), 'begun');
  const third = await openWatch(t, server, connection);
  put('third');
  await fetchText(connection);
  t.equal(await third.text, 'begun', 'at once where a request sees the change first');
});

t.test('a changed authority is used', async (t) => {
  const file = join(scratch(t), 'ca.crt');
  copyFileSync(stranger.own.certificateFile, file);
  const connection = await connect(t, { cluster: { server: server.url(), 'certificate-authority': file } });
  await t.rejects(fetchText(connection), { code: 'tls' });
  copyFileSync(caFile, file);
  t.equal(await fetchText(connection), '200 ok');
});

t.test("the server's certificate is verified", async (t) => {
  const stranded = { server: server.url(), 'certificate-authority': stranger.own.certificateFile };
  await t.rejects(fetchText(await connect(t, { cluster: stranded })), { code: 'tls', message: /TLS: .*certificate/ });
  await t.rejects(
    fetchText(await connect(t, { cluster: { server: server.url() } })),
    { code: 'tls' },
    "no authority: the system's",
  );
  const localhost = { server: server.url('localhost'), 'certificate-authority': caFile };
  await t.rejects(fetchText(await connect(t, { cluster: localhost })), { code: 'tls', message: /localhost/ });
  t.equal(await fetchText(await connect(t, { cluster: { ...localhost, 'tls-server-name': 'api.test' } })), '200 ok');
  t.equal(server.last.serverName, 'api.test');
  t.equal(await fetchText(await connect(t, { cluster: { ...localhost, 'tls-server-name': '127.0.0.1' } })), '200 ok');
  t.equal(server.last.serverName, '', 'an address is not sent as a server name');
  const wrongName = { server: server.url(), 'certificate-authority': caFile, 'tls-server-name': 'other.test' };
  await t.rejects(fetchText(await connect(t, { cluster: wrongName })), { code: 'tls', message: /other\.test/ });
  t.equal(
    await fetchText(await connect(t, { cluster: wrongName }, { master: server.url() })),
    '200 ok',
    'the name is not that of the server --master names',
  );
  const insecure = { server: server.url('localhost'), 'insecure-skip-tls-verify': true };
  t.equal(await fetchText(await connect(t, { cluster: insecure, user: { token: 'a' } })), '200 ok');
});

t.test('server certificates are verified by their alternative names only', async (t) => {
  const shown = async (leaf: LeafOptions, serverName: string, issuer = authority): Promise<string> => {
    const { certificate, key } = issuer.issue({ use: 'server', ...leaf });
    const other = await AuthServer.start({ cert: certificate, key });
    t.teardown(() => other.stop());
    const cluster = { server: other.url(), 'certificate-authority': issuer.own.certificateFile };
    const connection = await connect(t, { cluster: { ...cluster, 'tls-server-name': serverName } });
    return fetchText(connection).catch((error: unknown) => (error instanceof Error ? error.message : ''));
  };
  const named = { commonName: 'api.test', alternativeNames: ['DNS:*.apps.test', 'DNS:Api.Test', 'IP:::1'] };
  t.match(
    await shown({ commonName: 'api.test' }, 'api.test'),
    /TLS: the certificate has no subject alternative name of type DNS name, so it is not for api\.test; a common name does/,
  );
  t.match(await shown({ commonName: '127.0.0.1' }, '127.0.0.1'), /has no subject alternative name of type IP address/);
  t.equal(await shown(named, 'api.test.'), '200 ok');
  t.equal(await shown(named, 'a.apps.test'), '200 ok');
  t.equal(await shown(named, '[::1]'), '200 ok');
  t.match(await shown(named, 'a.b.apps.test'), /is for \*\.apps\.test, Api\.Test, not for a\.b\.apps\.test/);
  t.match(await shown({ ...named, use: 'client' }, 'api.test'), /purpose/, 'a client is no server');
  const past = new Authority('past', true);
  t.teardown(() => {
    past.remove();
  });
  t.match(await shown(named, 'api.test', past), /expired/, 'an expired authority is not trusted');
});

t.test('SSL_CERT_FILE replaces the authorities of the system', async (t) => {
  const dependencies = { env: { SSL_CERT_FILE: caFile } };
  t.equal(await fetchText(await connect(t, { cluster: { server: server.url() } }, { dependencies })), '200 ok');
  t.equal(await fetchText(await connectBy(t, { master: server.url(), dependencies })), '200 ok', 'a bare --master');
});

t.test('a client certificate is sent to a server that requires one', async (t) => {
  const strict = await AuthServer.start({ ...tls, rejectUnauthorized: true });
  t.teardown(() => strict.stop());
  const cluster = { server: strict.url(), 'certificate-authority': caFile };
  await t.rejects(fetchText(await connect(t, { cluster })), { code: 'tls' });
});

t.test('tokenFile is read every 60 seconds and after a 401, and the last token is kept', async (t) => {
  const file = join(scratch(t), 'token');
  writeFileSync(file, 'one\n');
  let now = 0;
  const log = new RecordingLog();
  const dependencies = { clock: clockOf(() => now) };
  const cluster = { server: server.url(), 'certificate-authority': caFile };
  const connection = await connect(t, { cluster, user: { tokenFile: file } }, { log, dependencies });
  const used = async (): Promise<string> => {
    await fetchText(connection);
    return server.last.headers.authorization ?? '';
  };
  t.equal(await used(), 'Bearer one');
  writeFileSync(file, 'two');
  now = 59_999;
  t.equal(await used(), 'Bearer one');
  now = 60_000;
  t.equal(await used(), 'Bearer two');

  rmSync(file);
  now = 120_000;
  t.equal(await used(), 'Bearer two');
  now = 180_000;
  t.equal(await used(), 'Bearer two');
  t.equal(log.lines.filter((line) => line.startsWith('error')).length, 1);
  writeFileSync(file, '');
  now = 240_000;
  t.equal(await used(), 'Bearer two', 'an empty file is no token');

  writeFileSync(file, 'three');
  server.handler = (request, response) => {
    response.statusCode = request.headers.authorization === 'Bearer three' ? 200 : 401;
    response.end('answer');
  };
  t.teardown(() => (server.handler = (_, response) => response.end('ok')));
  t.equal(await fetchText(connection), '200 answer', 'read again at once after a 401');
  writeFileSync(file, 'four');
  now = 300_000;
  const before = server.seen.length;
  t.equal(await fetchText(connection), '401 answer', "no other token: the answer is the caller's");
  t.equal(server.seen.length, before + 1);
});

t.test('tokenFile wins over token', async (t) => {
  const cluster = { server: server.url(), 'certificate-authority': caFile };
  const file = join(scratch(t), 'token');
  const log = new RecordingLog();
  let now = 0;
  const connection = await connect(
    t,
    { cluster, user: { token: 'fixed', tokenFile: file } },
    { log, dependencies: { clock: clockOf(() => now) } },
  );
  await fetchText(connection);
  t.equal(server.last.headers.authorization, 'Bearer fixed', 'not readable yet');
  writeFileSync(file, 'read');
  now = 60_000;
  await fetchText(connection);
  t.equal(server.last.headers.authorization, 'Bearer read');
});

t.test('impersonation headers are sent', async (t) => {
  const cluster = { server: server.url(), 'certificate-authority': caFile };
  const user = {
    token: 'admin',
    as: 'system:node-proxy',
    'as-uid': '42',
    'as-groups': ['one', 'zwölf'],
    'as-user-extra': { 'example.org/scope%': ['a', 'b'], reason: ['test'], none: [] },
  };
  await fetchText(await connect(t, { cluster, user }));
  const sent = new Map<string, string[]>();
  for (let at = 0; at < server.last.rawHeaders.length; at += 2) {
    const name = server.last.rawHeaders[at] ?? '';
    const value = Buffer.from(server.last.rawHeaders[at + 1] ?? '', 'latin1').toString('utf8');
    if (name.startsWith('Impersonate')) sent.set(name, [...(sent.get(name) ?? []), value]);
  }
  t.same(Object.fromEntries(sent), {
    'Impersonate-User': ['system:node-proxy'],
    'Impersonate-Uid': ['42'],
    'Impersonate-Group': ['one', 'zwölf'],
    'Impersonate-Extra-example.org%2Fscope%25': ['a', 'b'],
    'Impersonate-Extra-reason': ['test'],
  });
});

t.test('in-cluster credentials are read', async (t) => {
  const serviceAccountDirectory = scratch(t);
  writeFileSync(join(serviceAccountDirectory, 'token'), 'pod');
  copyFileSync(caFile, join(serviceAccountDirectory, 'ca.crt'));
  const env = {
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String(server.port),
    KUBECONFIG: '/nowhere',
  };
  const connection = await connectBy(t, { serviceAccountDirectory, dependencies: { env } });
  t.equal(await fetchText(connection), '200 ok');
  t.equal(server.last.headers.authorization, 'Bearer pod');
  const emptyDirectory = scratch(t);
  await t.rejects(connectBy(t, { serviceAccountDirectory: emptyDirectory, dependencies: { env } }), {
    code: 'KUBECONFIG_INVALID',
    message: /^in-cluster: token file .*token: ENOENT/,
  });
  await t.rejects(connectBy(t, { dependencies: { env: {} } }), {
    message:
      /^nothing to read Services from: there are no --manifests, no kubeconfig .*--kubeconfig.*no --master.*KUBERNETES_SERVICE_HOST/,
  });
});

t.test('no credentials are sent over plain HTTP', async (t) => {
  const plain = await AuthServer.start(null);
  t.teardown(() => plain.stop());
  const log = new RecordingLog();
  const connection = await connect(
    t,
    { cluster: { server: plain.url() }, user: { token: 'secret', as: 'x' } },
    { log },
  );
  t.equal(await fetchText(connection), '200 ok');
  t.notOk('authorization' in plain.last.headers);
  t.notOk('impersonate-user' in plain.last.headers);
  t.match(log.lines[0], /users\[0\]\.user: not used/);
});

t.test('unreadable credential files are errors at the start', async (t) => {
  const cluster = { server: server.url(), 'certificate-authority': '/nonexistent/ca.crt' };
  await t.rejects(connect(t, { cluster }), {
    message: /clusters\[0\]\.cluster\.certificate-authority: cannot be read: ENOENT/,
  });
  const garbage = { server: server.url(), 'certificate-authority-data': base64('garbage') };
  await t.rejects(connect(t, { cluster: garbage }), { message: /certificate-authority-data: holds no certificate/ });
  const damaged = authority.own.certificate.replace(/\n.{8}/, '\nAAAAAAAA');
  await t.rejects(connect(t, { cluster: { server: server.url(), 'certificate-authority-data': base64(damaged) } }), {
    message: /certificate 1 of 1 is damaged/,
  });
});
