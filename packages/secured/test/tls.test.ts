// TLS on the metrics address, with a real client: certificates that are given, made, followed and chosen by name; and who takes its time.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { parseAddress } from '../../../src/base/ip.js';
import { Authority } from '../../../test/support/certificates.js';
import { folder, open, scene } from './scene.js';

const DAY_MS = 86_400_000;
const authority = new Authority();
const other = new Authority('another authority');
t.teardown(() => {
  authority.remove();
  other.remove();
});
const served = authority.issue({ commonName: 'served', alternativeNames: ['DNS:localhost'] });
const TRUSTED = ['--cacert', authority.own.certificateFile];
const GIVEN = [`--tls-cert-file=${served.certificateFile}`, `--tls-private-key-file=${served.keyFile}`];

t.test('a self-signed certificate is made, kept in its folder, and renewed before it expires', async (t) => {
  const directory = join(folder(t), 'deep', 'pki');
  const flags = ['--metrics-tls', `--cert-dir=${directory}`];
  const file = join(directory, 'serving.pem');
  const { ask, time, look, log } = await scene(t, flags, {}, Date.now() - 300 * DAY_MS);
  t.match(await ask('/metrics', '--cacert', file), { status: 200, body: 'scraped\n' });
  t.equal(statSync(file).mode & 0o777, 0o600);
  const first = readFileSync(file, 'utf8');
  const certificate = new X509Certificate(first.slice(first.indexOf('-----BEGIN CERTIFICATE')));
  t.same(
    ['localhost', 'worker-1'].map((name) => certificate.checkHost(name)),
    ['localhost', 'worker-1'],
  );
  for (const address of ['127.0.0.1', '::1', '192.0.2.7']) t.equal(certificate.checkIP(address), address);

  await scene(t, flags, {}, Date.now() - 300 * DAY_MS);
  t.equal(readFileSync(file, 'utf8'), first, 'another start takes it');
  time.now += 280 * DAY_MS;
  await look();
  t.equal(readFileSync(file, 'utf8'), first, 'with enough of its life left');
  time.now += 20 * DAY_MS;
  await look();
  const second = readFileSync(file, 'utf8');
  t.not(second, first);
  t.ok(log.lines.includes('info 0 changed files are used from now on'));
  t.match(await ask('/metrics', '--cacert', file), { status: 200 }, 'and served');

  await scene(t, flags, { addresses: () => [parseAddress('192.0.2.9')!] });
  t.not(readFileSync(file, 'utf8'), second, 'the node has another address');
  writeFileSync(file, 'no certificate');
  const damaged = await scene(t, flags);
  t.match(await damaged.ask('/metrics', '--cacert', file), { status: 200 });
  writeFileSync(join(directory, 'file'), '');
  t.match(await open(['--metrics-tls', `--cert-dir=${join(directory, 'file')}`], {}), {
    problem: /^--cert-dir: ENOTDIR/,
  });
});

t.test('a given certificate is reloaded when it changes; an invalid one is ignored', async (t) => {
  const directory = folder(t);
  const [certificate, key] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  const write = (from: typeof served): void => {
    copyFileSync(from.certificateFile, certificate);
    copyFileSync(from.keyFile, key);
  };
  write(served);
  const { ask, look, log, received, port } = await scene(t, [
    `--tls-cert-file=${certificate}`,
    `--tls-private-key-file=${key}`,
  ]);
  const byOther = other.issue({ commonName: 'served', alternativeNames: ['DNS:localhost'] });
  const other_ = ['--cacert', other.own.certificateFile];
  t.match([await ask('/metrics', ...TRUSTED), await ask('/metrics', ...other_)], [{ status: 200 }, { exit: 60 }]);
  const plain = connect(port, '127.0.0.1');
  plain.end('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
  let answer = '';
  plain.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')));
  plain.on('error', () => undefined);
  await once(plain, 'close');
  t.notMatch(answer, 'scraped');

  writeFileSync(key, byOther.key);
  await look();
  await look();
  t.match(
    log.lines.filter((line) => line.startsWith('error')),
    [/^error changed files cannot be used, the last ones stay in use: /],
  );
  const reloads = (): readonly string[] => received.filter((line) => line.startsWith('--'));
  t.same(reloads(), ['--tls-cert-file, --tls-private-key-file refused']);
  t.match(await ask('/metrics', ...TRUSTED), { status: 200 }, 'half of a change');
  write(byOther);
  await look();
  t.match([await ask('/metrics', ...TRUSTED), await ask('/metrics', ...other_)], [{ exit: 60 }, { status: 200 }]);
  t.equal(reloads().at(-1), '--tls-cert-file, --tls-private-key-file applied');

  t.match(await open([GIVEN[0] ?? '', `--tls-private-key-file=${byOther.keyFile}`], {}), {
    problem: /^--tls-cert-file, --tls-private-key-file: .*key values mismatch/,
  });
});

t.test('a certificate is selected by the server name (SNI)', async (t) => {
  const issue = (name: string): string => {
    const { certificateFile, keyFile } = authority.issue({ commonName: name, alternativeNames: [`DNS:${name}`] });
    return `${certificateFile},${keyFile}`;
  };
  const flags = [
    ...GIVEN,
    `--tls-sni-cert-key=${issue('metrics.example')}`,
    `--tls-sni-cert-key=${issue('*.nodes.example')}`,
    `--tls-sni-cert-key=${issue('given.example')}:also.example,given.example`,
  ];
  const { port, ask } = await scene(t, flags);
  const exits = async (name: string): Promise<number> => {
    const { exit, reported } = await ask(
      '/metrics',
      ...TRUSTED,
      '--connect-to',
      `::127.0.0.1:${port}`,
      '--url',
      `https://${name}:${port}/metrics`,
    );
    return reported.includes('no alternative certificate subject name') ? 60 : exit;
  };
  for (const name of ['metrics.example', 'METRICS.example', 'a.nodes.example', 'given.example', 'localhost'])
    t.equal(await exits(name), 0, name);
  t.equal(await exits('also.example'), 60, 'chosen, but for another name');
  t.equal(await exits('b.a.nodes.example'), 60, 'a wildcard is one label');
});

t.test('TLS versions and cipher suites follow the flags', async (t) => {
  const newest = await scene(t, [...GIVEN, '--tls-min-version=VersionTLS13']);
  t.match(await newest.ask('/metrics', ...TRUSTED, '--tls-max', '1.2'), { exit: 35 });
  t.match(await newest.ask('/metrics', ...TRUSTED), { status: 200 });
  const usual = await scene(t, [...GIVEN, '--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384']);
  const with12 = (cipher: string): Promise<unknown> =>
    usual.ask('/metrics', ...TRUSTED, '--tls-max', '1.2', '--ciphers', cipher);
  t.match(await with12('ECDHE-ECDSA-AES128-GCM-SHA256'), { exit: 35 });
  t.match(await with12('ECDHE-ECDSA-AES256-GCM-SHA384'), { status: 200 });
  t.match(await usual.ask('/metrics', ...TRUSTED, '--tlsv1.3'), { status: 200 }, 'those of 1.3 stay');
  t.match(await usual.ask('/metrics', ...TRUSTED, '--tls-max', '1.1', '--tlsv1.1', '--ciphers', 'ALL:@SECLEVEL=0'), {
    exit: 35,
  });
  const old = await scene(t, [...GIVEN, '--tls-min-version=VersionTLS11']);
  t.match(await old.ask('/metrics', ...TRUSTED, '--tls-max', '1.1', '--tlsv1.1', '--ciphers', 'ALL:@SECLEVEL=0'), {
    status: 200,
  });
});

t.test('TLS sessions are not resumed', async (t) => {
  const { port } = await scene(t, GIVEN);
  const options = { port, host: '127.0.0.1', servername: 'localhost', ca: authority.own.certificate };
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const sessions: Buffer[] = [];
    for (const isReused of [false, false]) {
      const [session] = sessions;
      const socket = connectTls({ ...options, minVersion: version, maxVersion: version, ...(session && { session }) });
      socket.on('session', (offered: Buffer) => sessions.push(offered));
      await once(socket, 'secureConnect');
      t.equal(socket.isSessionReused(), isReused, version);
      socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      t.match((await socket.toArray()).join(''), /^HTTP\/1\.1 200 /);
    }
    t.ok(sessions.length > 0, 'one was offered');
  }
});

t.test('silent connections are closed, and the number of connections is limited', async (t) => {
  const { port, clock, ask } = await scene(t, GIVEN, { handshakeTimeoutMs: 50 });
  const dial = (): Socket =>
    connect(port, '127.0.0.1')
      .on('error', () => undefined)
      .resume();
  await once(dial(), 'close');
  t.pass('a handshake that does not end is ended');
  const waiting = await scene(t, GIVEN);
  const crowd = Array.from({ length: 500 }, () =>
    connect(waiting.port, '127.0.0.1')
      .on('error', () => undefined)
      .resume(),
  );
  t.teardown(() => {
    for (const socket of crowd) socket.destroy();
  });
  // As many as may begin at once stay, and no more.
  const gone = crowd.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
  let ended = 0;
  for (const each of gone) void each.then(() => ended++);
  while (ended < 300) await new Promise((resolve) => setImmediate(resolve));
  t.equal(ended, 300);
  t.match(await waiting.ask('/metrics', ...TRUSTED), { exit: 35 }, 'no connection is accepted now');
  await waiting.clock.advance(1000);
  t.match(await waiting.ask('/metrics', ...TRUSTED), { status: 200, body: 'scraped\n' });
  // So short a time may be too short for a handshake that does end; the one after it has the same.
  while ((await ask('/metrics', ...TRUSTED)).status !== 200) await clock.advance(1000);
  t.pass('the next one is answered');
});

t.test('refused clients take no connection slots of admitted ones', async (t) => {
  const { port, clock } = await scene(t, GIVEN);
  const early = connectTls({ port, host: '127.0.0.1', servername: 'localhost', ca: authority.own.certificate });
  await once(early, 'secureConnect');
  let ended = 0;
  const refused = async (count: number, before: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      t.teardown(() => socket.destroy());
      socket.resume().once('close', () => ended++);
    }
    while (ended < before) await new Promise((resolve) => setImmediate(resolve));
  };
  await refused(500, 301);
  // As many more as may be open in all.
  await clock.advance((1000 * 56) / 50);
  await refused(100, 345);
  early.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  t.match((await early.toArray()).join(''), /^HTTP\/1\.1 200 /);
});

t.test('a connection serves many requests; idle connections are closed first when there are too many', async (t) => {
  const { ask, clock, port } = await scene(t, GIVEN);
  t.match(await ask('/metrics', ...TRUSTED, `https://localhost:${port}/metrics`), { body: /^scraped\n\n200scraped/ });
  let ended = 0;
  for (let round = 0; round < 3; round++) {
    for (let index = 0; index < 100; index++) {
      // Of ten addresses: each may open so many in a while.
      const place = { port, host: '127.0.0.1', localAddress: `127.0.0.${10 + (index % 10)}` };
      const socket = connect(place).on('error', () => undefined);
      t.teardown(() => socket.destroy());
      socket.resume().once('close', () => ended++);
    }
    // Those that came before this one have been taken by then.
    t.match(await ask('/metrics', ...TRUSTED), { status: 200 });
    await clock.advance(60_000);
  }
  while (ended < 44) await new Promise((resolve) => setImmediate(resolve));
  t.ok(ended <= 47, `${ended} of 300 had to go`);
});

t.test('endless connections of one address do not exclude other clients', async (t) => {
  const { ask, port } = await scene(t, GIVEN);
  let ended = 0;
  for (let index = 0; index < 300; index++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.99' }).on('error', () => undefined);
    t.teardown(() => socket.destroy());
    socket.resume().once('close', () => ended++);
  }
  t.match(await ask('/metrics', ...TRUSTED), { status: 200 });
  while (ended < 250) await new Promise((resolve) => setImmediate(resolve));
  t.equal(ended, 250, 'all but those of its own share');
});

t.test(
  'a self-signed certificate that cannot be read at a start is replaced for as long as the process runs',
  async (t) => {
    const directory = folder(t);
    // Reading it fails, even for root.
    mkdirSync(join(directory, 'serving.pem'));
    const { ask, log, look } = await scene(t, ['--metrics-tls', `--cert-dir=${directory}`]);
    await look();
    t.match(await ask('/metrics', '--insecure'), { status: 200 });
    t.equal(log.lines.filter((line) => line.includes('a self-signed certificate was made')).length, 1);
  },
);

t.test('a self-signed certificate that cannot be saved is served nevertheless', async (t) => {
  // Nobody can make a folder there; on a disk that is full no file.
  const { ask, log, look } = await scene(t, ['--metrics-tls', '--cert-dir=/sys/pki']);
  t.match(await ask('/metrics', '--insecure'), { status: 200, body: 'scraped\n' });
  await look();
  t.match(await ask('/metrics', '--insecure'), { status: 200 });
  const made = log.lines.filter((line) => line.includes('a self-signed certificate was made'));
  t.equal(made.length, 1, 'not another one at each look');
  t.ok(log.lines.some((line) => line.startsWith('warn the self-signed certificate cannot be saved')));
});
