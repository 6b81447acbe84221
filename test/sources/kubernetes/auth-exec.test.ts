import { chmodSync, writeFileSync } from 'node:fs';
import { relative as pathBetween } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { AuthServer } from '../../support/auth-server.js';
import { Authority } from '../../support/certificates.js';
import { FakeClock } from '../../support/fake-clock.js';
import { RecordingObserver } from '../../support/recording-observer.js';
import { RecordingLog } from '../../support/recording-log.js';
import { clockOf, connect, fetchText, openWatch } from './connect.js';
import { V1, V1BETA1, Plugin, isRunning } from './exec-plugin.js';

const authority = new Authority();
const pair = authority.issue({ commonName: 'server', alternativeNames: ['IP:127.0.0.1'] });
const server = await AuthServer.start({
  cert: pair.certificate,
  key: pair.key,
  ca: authority.own.certificate,
  requestCert: true,
  rejectUnauthorized: false,
});
const cluster = { server: server.url(), 'certificate-authority': authority.own.certificateFile };

t.teardown(async () => {
  await server.stop();
  authority.remove();
});

t.test('exec plugin: token, arguments, environment and ExecCredential', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'given' });
  const connection = await plugin.connect(t, { args: ['get', 'a b'], env: [{ name: 'EXTRA', value: 'extra' }] });
  t.equal(plugin.runs, 0, 'only when it is needed');
  t.equal(await fetchText(connection), '200 ok');
  t.equal(server.last.headers.authorization, 'Bearer given');
  t.equal(plugin.read('said'), 'extra get a b\n');
  t.same(plugin.input, { kind: 'ExecCredential', apiVersion: V1, spec: { interactive: false } });
  await fetchText(connection);
  t.equal(plugin.runs, 1, 'kept for as long as it does not expire');
});

t.test('exec plugin: cluster information is passed', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'given' }, V1BETA1);
  const extensions = [
    { name: 'other', extension: { no: true } },
    { name: 'client.authentication.k8s.io/exec', extension: { audience: 'us', list: [1] } },
  ];
  const exec = { apiVersion: V1BETA1, command: plugin.command, provideClusterInfo: true };
  const reported = { ...cluster, 'tls-server-name': '127.0.0.1', 'disable-compression': true, extensions };
  await fetchText(await connect(t, { cluster: reported, user: { exec } }));
  t.same(plugin.input, {
    kind: 'ExecCredential',
    apiVersion: V1BETA1,
    spec: {
      cluster: {
        server: server.url(),
        'tls-server-name': '127.0.0.1',
        'certificate-authority-data': Buffer.from(authority.own.certificate).toString('base64'),
        'disable-compression': true,
        config: { audience: 'us', list: [1] },
      },
      interactive: false,
    },
  });
  const insecure = { server: server.url(), 'insecure-skip-tls-verify': true };
  await fetchText(await connect(t, { cluster: insecure, user: { exec } }));
  t.match(plugin.input, { spec: { cluster: { server: server.url(), 'insecure-skip-tls-verify': true } } });
});

t.test('exec plugin: many requests share one run', async (t) => {
  const plugin = new Plugin(t, cluster, 'sleep 0.1').answer({ token: 'given' });
  const connection = await plugin.connect(t);
  await Promise.all(Array.from({ length: 8 }, () => fetchText(connection)));
  t.equal(plugin.runs, 1);
});

t.test('exec plugin: a credential is renewed before it expires', async (t) => {
  const start = Date.parse('2030-01-01T00:00:00Z');
  let now = start;
  const plugin = new Plugin(t, cluster).answer({ token: 'one', expirationTimestamp: '2030-01-01T01:00:00Z' });
  const log = new RecordingLog();
  const connection = await plugin.connect(t, {}, { wallClock: () => now, log });
  const used = async (): Promise<string> => {
    await fetchText(connection);
    return server.last.headers.authorization ?? '';
  };
  t.equal(await used(), 'Bearer one');
  plugin.answer({ token: 'two', expirationTimestamp: '2030-01-01T04:00:00+02:00' });
  now = start + 58 * 60_000;
  t.equal(await used(), 'Bearer one');
  now = start + 59 * 60_000 + 1;
  t.equal(await used(), 'Bearer two', 'a minute early');

  plugin.says('nothing useful');
  now = start + 2 * 3_600_000 - 30_000;
  t.equal(await used(), 'Bearer two', 'not renewed early: the old one goes on');
  t.match(log.lines, [/The credential plugin fails, its last credentials are used until they expire/]);
  now = start + 2 * 3_600_000;
  await t.rejects(used(), { code: 'credentials' }, 'but not beyond its end');
});

t.test('exec plugin: a 401 runs it again, once', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'stale' });
  const connection = await plugin.connect(t);
  await fetchText(connection);
  plugin.answer({ token: 'fresh' });
  server.handler = (request, response) => {
    response.statusCode = request.headers.authorization === 'Bearer fresh' ? 200 : 401;
    response.end('answer');
  };
  t.teardown(() => (server.handler = (_, response) => response.end('ok')));
  t.same(
    await Promise.all([fetchText(connection), fetchText(connection), fetchText(connection)]),
    Array(3).fill('200 answer'),
  );
  t.equal(plugin.runs, 2, 'once for all that were refused');

  plugin.answer({ token: 'later' });
  let refusals = 0;
  server.handler = (request, response) => {
    const accepted = request.headers.authorization === 'Bearer later';
    response.statusCode = accepted ? 200 : 401;
    if (accepted || refusals++ === 0) response.end('answer');
    else setTimeout(() => response.end('answer'), 200);
  };
  t.same(await Promise.all([fetchText(connection), fetchText(connection)]), Array(2).fill('200 answer'));
  t.equal(plugin.runs, 3, 'a refusal of what has been replaced meanwhile runs nothing');

  plugin.answer({ token: 'worse' });
  server.handler = (_, response) => {
    response.statusCode = 401;
    response.end('never');
  };
  const before = server.seen.length;
  t.equal(await fetchText(connection), '401 never');
  t.same([plugin.runs, server.seen.length - before], [4, 2]);
  t.equal(await fetchText(connection), '401 never');
  t.equal(plugin.runs, 4, 'not again at once, as nothing it gave since was taken');
  plugin.says('broken');
  t.equal(await fetchText(connection), '401 never', "no other credentials: the answer is the caller's");
});

t.test('exec plugin: after a failure it is not run for a while, and its output is logged once', async (t) => {
  const plugin = new Plugin(t, cluster, "printf '%2000s\\nno \\033[31mlogin\\n' x >&2; echo secret; exit 3");
  const clock = new FakeClock();
  const log = new RecordingLog();
  const connection = await plugin.connect(t, {}, { clock, random: () => 0, log });
  const ask = (): Promise<string> => fetchText(connection).catch((error: unknown) => String(error));
  const answers = await Promise.all(Array.from({ length: 8 }, ask));
  t.match(answers[0], /exec\.command ".*plugin": failed with exit code 3: …/);
  t.equal(new Set([...answers, await ask()]).size, 1);
  t.equal(plugin.runs, 1);
  for (const [wait, runs] of [
    [1999, 1],
    [1, 2],
    [3999, 2],
    [1, 3],
    [7999, 3],
  ] as const) {
    await clock.advance(wait);
    await ask();
    t.equal(plugin.runs, runs);
  }
  const reported = log.lines.filter((line) => line.startsWith('error'));
  t.equal(reported.length, 1);
  t.match(
    reported[0],
    /The credential plugin fails.*exec\.command ".*": failed with exit code 3: …\s+x\\u000ano \\u001b\[31mlogin$/,
  );
  t.notMatch(`${answers.join('')}${log.lines.join('')}`, /secret/, 'never what it printed');
  writeFileSync(plugin.command, '#!/bin/sh\ncat "$0.answer"\n');
  plugin.answer({ token: 'given' });
  await clock.advance(1);
  t.equal(await ask(), '200 ok');
  t.match(log.lines.at(-1), /works again/);
});

t.test('exec plugin: an expired credential is used, and the plugin is not run again for a while', async (t) => {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const plugin = new Plugin(t, cluster).answer({ token: 'old', expirationTimestamp: '2020-01-01T00:00:00Z' });
  const connection = await plugin.connect(t, {}, { clock, log });
  for (let request = 0; request < 4; request++) t.equal(await fetchText(connection), '200 ok');
  t.equal(plugin.runs, 1);
  t.match(log.lines, [/expired credentials/]);
  await clock.advance(2000);
  await fetchText(connection);
  t.equal(plugin.runs, 2);
});

t.test('exec plugin: a client certificate ends at its expiry, and its watches with it', async (t) => {
  const clock = new FakeClock();
  const start = Date.now() - clock.now();
  const wallClock = (): number => start + clock.now();
  const issue = (commonName: string, days: number): object => {
    const { certificate, key } = authority.issue({ commonName, days });
    return { clientCertificateData: certificate, clientKeyData: key };
  };
  const inMs = (ms: number): string => new Date(wallClock() + ms).toISOString();
  const plugin = new Plugin(t, cluster).answer(issue('one', 1));
  const connection = await plugin.connect(t, {}, { clock, wallClock, random: () => 0 });
  await fetchText(connection);
  await clock.advance(86_000_000);
  await fetchText(connection);
  t.equal(plugin.runs, 1);
  plugin.answer({ ...issue('two', 3), expirationTimestamp: inMs(600_000) });
  await clock.advance(400_000);
  const first = await openWatch(t, server, connection);
  t.same([server.last.client, plugin.runs], ['two', 2], "the certificate's own end counts where nothing is said");
  plugin.answer(issue('three', 2));
  t.equal(await first.endAfter(clock), 'begun', 'renewed before its expiry, without a request');
  t.equal(plugin.runs, 3);

  const second = await openWatch(t, server, connection);
  t.equal(server.last.client, 'three');
  plugin.says('nothing useful');
  await clock.advance(86_000_000);
  t.equal(await second.endAfter(clock), 'begun');
  // While files are read, the clock of this test may leap over the time to renew it; then the request is the first to ask for others.
  await t.rejects(fetchText(connection), { code: 'credentials' });
  t.ok(plugin.runs > 3, 'it was asked for others');
});

t.test('exec plugin: its background processes are not waited for', async (t) => {
  const plugin = new Plugin(t, cluster, 'sleep 300 & echo $! >"$0.said"').answer({ token: 'given' });
  t.equal(await fetchText(await plugin.connect(t)), '200 ok');
  const left = plugin.read('said');
  t.ok(isRunning(left));
  process.kill(Number(left));
});

t.test('exec plugin: it is not searched for in the current directory', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'given' });
  const exec = { command: 'plugin' };
  const relative = await plugin.connect(t, exec, {
    env: { PATH: `::.:${pathBetween(process.cwd(), plugin.directory)}:/bin` },
  });
  await t.rejects(fetchText(relative), { message: /ENOENT/ });
  const absolute = await plugin.connect(t, exec, { env: { PATH: `.:${plugin.directory}:/bin` } });
  t.equal(await fetchText(absolute), '200 ok');
});

t.test('exec plugin: it may give a client certificate', async (t) => {
  const issue = (name: string): object => {
    const { certificate, key } = authority.issue({ commonName: name });
    return { clientCertificateData: certificate, clientKeyData: key };
  };
  let now = Date.now();
  const expiring = (status: object): object => ({
    ...status,
    expirationTimestamp: new Date(now + 600_000).toISOString(),
  });
  const plugin = new Plugin(t, cluster).answer(expiring(issue('exec-one')));
  const connection = await plugin.connect(t, {}, { wallClock: () => now });
  await fetchText(connection);
  const first = server.last;
  t.equal(first.client, 'exec-one');
  t.notOk('authorization' in first.headers);
  now += 700_000;
  plugin.answer(expiring({ ...issue('exec-two'), token: 'both' }));
  await fetchText(connection);
  t.equal(server.last.client, 'exec-two');
  t.equal(server.last.headers.authorization, 'Bearer both');
  t.not(server.last.connection, first.connection);
});

t.test('exec plugin: a token in the kubeconfig wins over it', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'given' });
  const exec = { apiVersion: V1, interactiveMode: 'Never', command: plugin.command };
  await fetchText(await connect(t, { cluster, user: { token: 'fixed', exec } }));
  t.equal(server.last.headers.authorization, 'Bearer fixed');
});

t.test('exec plugin: interactiveMode is obeyed', async (t) => {
  const plugin = new Plugin(t, cluster).answer({ token: 'given' });
  const reported = async (interactiveMode: string, terminal: boolean): Promise<unknown> => {
    const connection = await plugin.connect(t, { interactiveMode }, { isTerminal: () => terminal });
    await fetchText(connection);
    return plugin.input;
  };
  t.match(await reported('Never', true), { spec: { interactive: false } });
  t.match(await reported('IfAvailable', true), { spec: { interactive: true } });
  t.match(await reported('IfAvailable', false), { spec: { interactive: false } });
  t.match(await reported('Always', true), { spec: { interactive: true } });
  await t.rejects(reported('Always', false), {
    code: 'credentials',
    message: /interactiveMode is Always, but standard input is no terminal/,
  });
});

t.test('exec plugin: failures are reported without secrets', async (t) => {
  const failure = async (plugin: Plugin, exec: object = {}, timeout = 100_000): Promise<string> => {
    try {
      await fetchText(await plugin.connect(t, exec, { execTimeoutMs: timeout }));
    } catch (error) {
      return error instanceof Error ? `${'code' in error ? String(error.code) : ''} ${error.message}` : '';
    }
    return 'no failure';
  };
  const fine = new Plugin(t, cluster).answer({ token: 'secret' });
  const missing = await failure(fine, { command: 'no-such-plugin', installHint: 'Get it from example.org.\n' });
  t.match(
    missing,
    /^credentials .*users\[0\]\.user\.exec\.command "no-such-plugin": cannot be run: .*ENOENT; Get it from example\.org\.$/,
  );
  const failing = await failure(new Plugin(t, cluster, 'echo no login >&2; exit 3'), { installHint: 'Get it.' });
  t.match(failing, /failed with exit code 3: no login$/);
  t.match(await failure(new Plugin(t, cluster, 'kill -9 $$')), /was ended by SIGKILL/);
  t.match(
    await failure(new Plugin(t, cluster, 'head -c 2000000 /dev/zero').answer({})),
    /printed more than 1048576 bytes/,
  );

  const reported = async (text: string): Promise<string> => failure(new Plugin(t, cluster).says(text));
  t.match(await reported('secret token'), /printed no ExecCredential: must be a mapping$/);
  t.match(await reported('{"token": "secret'), /printed no ExecCredential: is no YAML/);
  t.notMatch(await reported('{"token": "secret'), /secret/);
  const version = '"apiVersion": "client.authentication.k8s.io/v1"';
  for (const status of ['"secret"', '{ "expirationTimestamp": "secret" }']) {
    const failure = await reported(`{ ${version}, "status": ${status} }`);
    t.match(failure, /printed no usable ExecCredential: status/);
    t.notMatch(failure, /secret/);
  }
  for (const text of ['a: *secret', 'a: !secret^ b', 'a: !secret!b c', 'a: !<secret> b']) {
    const failure = await reported(text);
    t.match(failure, /printed no ExecCredential: is no YAML/);
    t.notMatch(failure, /secret/);
  }
  t.match(await reported(''), /printed no ExecCredential/);
  const credential = async (status: unknown, apiVersion = V1, kind = 'ExecCredential'): Promise<string> =>
    reported(JSON.stringify({ kind, apiVersion, status }));
  t.match(
    await credential({ token: 'a' }, V1BETA1),
    /apiVersion: ".*v1beta1": must be client\.authentication\.k8s\.io\/v1, as configured/,
  );
  t.match(await credential({ token: 'a' }, V1, 'Token'), /kind: "Token": must be one of ExecCredential/);
  t.match(await credential(null), /status: is required/);
  t.match(await credential({}), /status\.token: or clientCertificateData and clientKeyData are required/);
  t.match(await credential({ token: 'two\nlines' }), /status\.token: must be printable ASCII/);
  t.match(await credential({ clientKeyData: 'k' }), /status\.clientCertificateData: is required beside the other one/);
  t.match(await credential({ token: 'a', expirationTimestamp: 'soon' }), /status\.expirationTimestamp: must be a time/);
  t.match(await credential({ clientCertificateData: 'c', clientKeyData: 'k' }), /holds no certificate/);
});

t.test('exec plugin: one that hangs is killed with its children', async (t) => {
  const plugin = new Plugin(t, cluster, 'sleep 300 & echo $! >"$0.said"; wait');
  const started = performance.now();
  const connection = await plugin.connect(t, {}, { execTimeoutMs: 200 });
  await t.rejects(fetchText(connection), { message: /did not end within 0\.2 s/ });
  await plugin.ended();
  t.ok(performance.now() - started < 200_000, 'not after its 300 s');
});

t.test('exec plugin: an aborted request does not wait for it, and close() kills it', async (t) => {
  const plugin = new Plugin(t, cluster, 'sleep 300 & echo $! >"$0.said"; wait');
  const connection = await plugin.connect(t);
  const controller = new AbortController();
  const request = connection.get('/', {}, { accept: '*/*', signal: controller.signal });
  while (!plugin.runsMore()) await sleep(5);
  controller.abort(new Error('enough'));
  await t.rejects(request, { message: 'enough' });
  const closedAt = performance.now();
  connection.close();
  await plugin.ended();
  t.ok(performance.now() - closedAt < 200_000, 'not after its 300 s');
});

t.test('the observer is notified of each run of the command', async (t) => {
  const observer = new RecordingObserver();
  const plugin = new Plugin(t, cluster);
  const exec = { apiVersion: V1, interactiveMode: 'Never', command: plugin.command };
  let now = 0;
  const clock = clockOf(() => now);
  const connection = await connect(t, { cluster, user: { exec } }, { observer, dependencies: { clock } });
  const received = async (): Promise<readonly string[]> => {
    observer.received.length = 0;
    now += 120_000;
    await fetchText(connection).catch(() => undefined);
    return observer.received.filter((line) => /^(plugin|certificate)/.test(line));
  };
  // Expired at once, so that the command runs for every request that comes late enough.
  const answer = (commonName: string): void => {
    const { certificate, key } = authority.issue({ commonName });
    const expirationTimestamp = new Date(Date.now() - 1000).toISOString();
    plugin.answer({ clientCertificateData: certificate, clientKeyData: key, expirationTimestamp });
  };
  answer('one');
  t.same(await received(), ['plugin no_error 0', 'certificate ahead true age first']);
  answer('two');
  t.same(await received(), ['plugin no_error 0', 'certificate ahead true age true']);
  t.same(await received(), ['plugin no_error 0'], 'the same certificate again');
  plugin.says('nonsense');
  t.same(await received(), ['plugin client_internal_error 1']);
  writeFileSync(plugin.command, '#!/bin/sh\nexit 3\n');
  t.same(await received(), ['plugin plugin_execution_error 3']);
  chmodSync(plugin.command, 0o644);
  t.same(await received(), ['plugin plugin_not_found_error 1']);
});
