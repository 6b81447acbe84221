// The way to the API server by an EgressSelectorConfiguration: the file, real proxies that it names, and what goes through them.
import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { systemFiles } from '../../src/config/files.js';
import { loadConfig } from '../../src/config/load.js';
import type { Config } from '../../src/config/config.js';
import { readEgress } from '../../src/control/egress.js';
import { lookUpNode } from '../../src/control/node-lookup.js';
import { connectKubernetes, Sources } from '../../src/control/sources.js';
import type { Egress } from '../../src/sources/kubernetes/auth/access.js';
import type { ApiConnection } from '../../src/sources/kubernetes/connection.js';
import { Store } from '../../src/state/store.js';
import { connect, fetchText, kubeconfigText, scratch } from '../sources/kubernetes/connect.js';
import { ApiServer } from '../support/api-server/server.js';
import { AuthServer } from '../support/auth-server.js';
import { Authority } from '../support/certificates.js';
import { startHttpProxy, type ForwardProxy } from '../support/forward-proxies.js';
import { PROGRAM } from '../support/program.js';
import { RecordingLog } from '../support/recording-log.js';

const authority = new Authority();
const served = authority.issue({ commonName: 'server', alternativeNames: ['IP:127.0.0.1', 'DNS:api.test'] });
const client = authority.issue({ commonName: 'egress-client' });
const tls = { cert: served.certificate, key: served.key };
const server = await AuthServer.start(tls);
const plain = await AuthServer.start(null);
const CA = authority.own.certificateFile;
const certificates = { 'certificate-authority': CA };

t.teardown(async () => {
  await Promise.all([server.stop(), plain.stop()]);
  authority.remove();
});

const DIRECT = '{proxyProtocol: Direct}';
const header = 'apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n';

function selections(...rows: readonly (readonly [name: string, connection: string])[]): string {
  return `${header}egressSelections:\n${rows.map(([name, way]) => `- {name: ${name}, connection: ${way}}\n`).join('')}`;
}

const overSocket = (path: string): string => `{proxyProtocol: HTTPConnect, transport: {uds: {udsName: ${path}}}}`;

function overTcp(url: string, files: object | null): string {
  const tlsConfig = files === null ? '' : `, tlsConfig: ${JSON.stringify(files)}`;
  return `{proxyProtocol: HTTPConnect, transport: {tcp: {url: "${url}"${tlsConfig}}}}`;
}

function write(t: Test, text: string): string {
  const file = join(scratch(t), 'egress.yaml');
  writeFileSync(file, text);
  return file;
}

/** What a file says, and what it was warned of. */
function read(t: Test, text: string): { readonly found: ReturnType<typeof readEgress>; readonly log: RecordingLog } {
  const log = new RecordingLog();
  return { found: readEgress(write(t, text), 'FILE', log), log };
}

function egressOf(t: Test, way: string): Egress | null {
  const { found } = read(t, selections(['controlplane', way]));
  if ('problem' in found) throw new Error(found.problem);
  return found.egress;
}

function stopWith(t: Test, proxy: ForwardProxy): ForwardProxy {
  t.teardown(() => proxy.stop());
  return proxy;
}

/** The server's name is known to the proxy alone. */
function through(t: Test, way: string, url = server.url('api.test'), options = {}): Promise<ApiConnection> {
  const cluster = { server: url, ...certificates, ...options };
  return connect(t, { cluster }, { egress: egressOf(t, way) });
}

async function post(connection: ApiConnection): Promise<number> {
  return (await connection.post('/version', '{}', { signal: new AbortController().signal })).status;
}

const files = { caBundle: CA, clientCert: client.certificateFile, clientKey: client.keyFile };

t.test('the egress selector file: connections and errors', (t) => {
  t.same(egressOf(t, DIRECT), { type: 'direct' });
  t.match(egressOf(t, overSocket('/run/proxy.sock')), { name: 'egress /run/proxy.sock', tls: null });
  t.match(egressOf(t, overTcp('http://[::1]:8131', null)), {
    name: 'egress http://[::1]:8131',
    to: { host: '::1', port: 8131 },
    tls: null,
  });
  t.match(egressOf(t, overTcp('https://proxy.test', files)), {
    to: { host: 'proxy.test', port: 443 },
    tls: { serverName: 'proxy.test', insecure: false, authority: { path: CA } },
  });
  const old = read(t, selections(['master', DIRECT]));
  t.same(old.found, { egress: { type: 'direct' } });
  t.match(old.log.lines.join(), /FILE: .*egressSelections\[0\]\.name: "master": is deprecated: should be controlplane/);
  const grpc = '{proxyProtocol: GRPC, transport: {uds: {udsName: /s}}}';
  const others = read(t, selections(['cluster', grpc], ['etcd', DIRECT], ['controlplane', DIRECT]));
  t.same(others.found, { egress: { type: 'direct' } });
  t.same(
    others.log.lines,
    ['[0].name: "cluster"', '[1].name: "etcd"'].map(
      (at) =>
        `warn FILE: EgressSelectorConfiguration.egressSelections${at}: has no effect here: should be controlplane`,
    ),
  );
  const none = read(t, selections(['etcd', DIRECT]));
  t.same(none.found, { egress: null });
  t.match(none.log.lines.at(-1), /egressSelections: has no controlplane, so the file has no effect/);
  t.end();
});

t.test('wrong egress selector files are refused with the path of the field', (t) => {
  const at = String.raw`^\[?EgressSelectorConfiguration\.egressSelections\[0\]\.connection\.`;
  for (const [way, problem] of [
    [
      '{proxyProtocol: GRPC, transport: {uds: {udsName: /s}}}',
      'proxyProtocol: "GRPC": is not supported: should be HTTPConnect or Direct$',
    ],
    ['{proxyProtocol: Socks}', 'proxyProtocol: "Socks": '],
    ['{proxyProtocol: HTTPConnect}', 'transport: is missing, HTTPConnect needs it'],
    [overSocket('unix:///s'), String.raw`transport\.uds\.udsName: .*has a scheme`],
    [
      overSocket(`/${'s'.repeat(107)}`),
      String.raw`transport\.uds\.udsName: .*is too long: should be at most 107 bytes`,
    ],
    [overTcp('http://a', files), String.raw`transport\.tcp\.tlsConfig\.caBundle: .*must not be given`],
    [overTcp('https://a', null), String.raw`transport\.tcp\.tlsConfig: needs clientKey`],
    [overTcp('https://a', {}), String.raw`transport\.tcp\.tlsConfig: needs clientKey`],
    [overTcp('socks5://a', null), String.raw`transport\.tcp\.url: `],
    [overTcp('http://%ff@a', null), String.raw`transport\.tcp\.url: .*not percent-encoded`],
  ] as const) {
    const { found } = read(t, selections(['controlplane', way]));
    t.match(found, { problem: new RegExp(at + problem) }, way);
  }
  t.match(readEgress('/nowhere/file', 'FILE', new RecordingLog()), { problem: /ENOENT/ });
  t.end();
});

t.test('egress through a Unix socket works, to a server with TLS and without', async (t) => {
  const path = join(scratch(t), 's');
  const proxy = stopWith(t, await startHttpProxy(null, { path }));
  t.equal(await fetchText(await through(t, overSocket(path))), '200 ok');
  t.equal(await fetchText(await through(t, overSocket(path), plain.url('api.test'))), '200 ok');
  t.same(proxy.asked, [`CONNECT api.test:${server.port}`, `CONNECT api.test:${plain.port}`], 'it reads neither');
  await proxy.stop();
  await t.rejects(fetchText(await through(t, overSocket(path))), {
    code: 'connect',
    message: new RegExp(`cannot connect to api\\.test:\\d+: egress ${path}: .*(ENOENT|ECONNREFUSED)`),
  });
  const refusing = stopWith(t, await startHttpProxy(null, { path, refuse: '403 Forbidden' }));
  await t.rejects(fetchText(await through(t, overSocket(path))), { message: /egress \S+: answered 403 Forbidden/ });
  t.equal(refusing.asked.length, 1);
});

t.test('egress with TLS certificates on both sides works, and changed files are reloaded', async (t) => {
  const folder = scratch(t);
  const [clientCert, clientKey] = [join(folder, 'crt'), join(folder, 'key')];
  const use = ({ certificateFile, keyFile }: typeof client): void => {
    copyFileSync(certificateFile, clientCert);
    copyFileSync(keyFile, clientKey);
  };
  use(client);
  const proxy = stopWith(t, await startHttpProxy(served, { clientCa: authority.own.certificate }));
  const url = `https://127.0.0.1:${proxy.port}`;
  const connection = await through(t, overTcp(url, { caBundle: CA, clientCert, clientKey }));
  t.equal(await post(connection), 200);
  t.equal(server.last.client, '', 'the certificate is for the proxy');
  use(authority.issue({ commonName: 'the-next' }));
  t.equal(await post(connection), 200);
  const asked = `CONNECT api.test:${server.port}`;
  t.same(proxy.asked, [`egress-client: ${asked}`, `the-next: ${asked}`]);

  const stranger = new Authority('another');
  t.teardown(() => {
    stranger.remove();
  });
  const { certificateFile, keyFile } = stranger.issue({ commonName: 'egress-client' });
  const unknown = await through(t, overTcp(url, { caBundle: CA, clientCert: certificateFile, clientKey: keyFile }));
  await t.rejects(fetchText(unknown), { message: /egress https:\/\/127\.0\.0\.1:\d+: / });
  const untrusting = await through(t, overTcp(url, { ...files, caBundle: stranger.own.certificateFile }));
  await t.rejects(fetchText(untrusting), { code: 'tls', message: /egress https:\/\/127\.0\.0\.1:\d+: TLS: / });
  t.equal(proxy.asked.length, 2);
  await t.rejects(through(t, overTcp(url, { ...files, clientKey: join(folder, 'none') })), {
    name: 'KubeconfigError',
    message:
      /^FILE: EgressSelectorConfiguration\.egressSelections\[0\]\.connection\.transport\.tcp\.tlsConfig\.clientKey: .*ENOENT/,
  });
});

t.test('an egress selection counts before proxies of the kubeconfig and the environment', async (t) => {
  const other = stopWith(t, await startHttpProxy(null));
  const ours = stopWith(t, await startHttpProxy(null));
  const proxyUrl = `http://127.0.0.1:${other.port}`;
  const dependencies = { env: { HTTPS_PROXY: proxyUrl } };
  const log = new RecordingLog();
  for (const [way, host] of [
    [overTcp(`http://a:b@127.0.0.1:${ours.port}`, null), 'api.test'],
    [DIRECT, '127.0.0.1'],
  ] as const)
    for (const added of [{}, { 'proxy-url': proxyUrl }]) {
      const cluster = { server: server.url(host), ...certificates, ...added };
      t.equal(
        await fetchText(await connect(t, { cluster }, { egress: egressOf(t, way), dependencies, log })),
        '200 ok',
      );
    }
  t.same(other.asked, []);
  t.same(ours.asked, Array(2).fill(`CONNECT api.test:${server.port} a:b`));
  t.equal(log.lines.filter((line) => line.includes('proxy-url: not used, as --egress-selector')).length, 2);
});

function config(...flags: readonly string[]): Config {
  const loaded = loadConfig(['--proxy-mode=nftables', '--hostname-override=me', ...flags], systemFiles);
  if (loaded.command !== 'run') throw new Error(loaded.command);
  return loaded.config;
}

t.test('all requests to the API server use the egress selection', async (t) => {
  const folder = scratch(t);
  const path = join(folder, 's');
  const proxy = stopWith(t, await startHttpProxy(null, { path }));
  const flag = `--egress-selector-config-file=${write(t, selections(['controlplane', overSocket(path)]))}`;
  const log = new RecordingLog();
  const api = new ApiServer();
  await api.start();
  t.teardown(() => api.stop());
  const times = { nodeMs: 200, podCIDRsMs: 0 };
  const looked = await lookUpNode(config(flag, `--master=http://api.test:${api.port}`), 'v1', log, times);
  t.match(looked, { warnings: ['there is no Node me'], errors: [] });
  t.equal(proxy.asked[0], `CONNECT api.test:${api.port}`);

  const signing = new ApiServer({
    tls: { key: served.key, cert: served.certificate, clientCa: authority.own.certificate },
    tokens: ['bootstrap-token'],
    signer: authority.own,
  });
  signing.signing.policy = 'sign';
  await signing.start();
  t.teardown(() => signing.stop());
  const cluster = { server: `https://api.test:${signing.port}`, ...certificates };
  const bootstrap = join(folder, 'bootstrap');
  writeFileSync(bootstrap, kubeconfigText({ cluster, user: { token: 'bootstrap-token' } }));
  const flags = [`--bootstrap-kubeconfig=${bootstrap}`, `--cert-dir=${folder}`, `--kubeconfig=${join(folder, 'made')}`];
  const none = { certificateLacks: () => null, certificateRequested: () => null, certificateEnds: () => null };
  const asked = config(flag, ...flags);
  const { connection } = await connectKubernetes(asked, 'v1', log, {
    observer: null,
    tracing: null,
    certificates: none,
    limitSilence: null,
  });
  t.teardown(() => {
    connection.close();
  });
  t.match(await fetchText(connection), /^200 /);
  t.ok(signing.requests.some(({ method }) => method === 'POST'));
  t.ok(proxy.asked.filter((line) => line === `CONNECT api.test:${signing.port}`).length > 1);
});

t.test('webhooks use the egress selection, too', async (t) => {
  const path = join(scratch(t), 's');
  const proxy = stopWith(t, await startHttpProxy(null, { path }));
  const kubeconfig = join(scratch(t), 'webhook');
  writeFileSync(
    kubeconfig,
    kubeconfigText({ cluster: { server: `${server.url('api.test')}/judge`, ...certificates } }),
  );
  const log = new RecordingLog();
  const sources = new Sources({
    version: 'v1',
    store: new Store(),
    log,
    onNodeRead: () => undefined,
    observer: null,
    tracing: null,
    events: null,
    certificates: null,
    limitSilence: null,
  });
  const file = (...rows: readonly (readonly [name: string, connection: string])[]): string =>
    `--egress-selector-config-file=${write(t, selections(...rows))}`;
  const connected = async (...flags: readonly string[]): Promise<ApiConnection> => {
    const connection = await sources.connectWebhook(kubeconfig, config('--master=127.0.0.1:1', ...flags));
    t.teardown(() => {
      connection.close();
    });
    return connection;
  };
  t.equal(await post(await connected(file(['controlplane', overSocket(path)], ['cluster', DIRECT]))), 200);
  t.same(proxy.asked, [`CONNECT api.test:${server.port}`], 'the name is known to the proxy alone');
  t.notOk(
    log.lines.some((line) => line.startsWith('warn')),
    'who reads the API server says what is odd about the file',
  );
  for (const flags of [[], [file(['cluster', overSocket(path)])], [file(['controlplane', DIRECT])]])
    await t.rejects(post(await connected(...flags)), { message: /api\.test/ });
  await t.rejects(connected('--egress-selector-config-file=/nowhere'), { code: 'KUBECONFIG_INVALID' });
  t.equal(proxy.asked.length, 1);
});

t.test('an invalid egress selector file ends the start with one line', (t) => {
  const file = write(t, selections(['controlplane', '{proxyProtocol: GRPC, transport: {uds: {udsName: /s}}}']));
  // What is first of all is to read what there should be.
  const argv = ['diff', '--proxy-mode=nftables', '--master=127.0.0.1:1', `--egress-selector-config-file=${file}`];
  const { status, stderr } = spawnSync(PROGRAM, argv, { encoding: 'utf8' });
  t.equal(status, 2, 'the state is unknown');
  t.match(
    stderr,
    /^--egress-selector-config-file: \S+egress\.yaml: EgressSelectorConfiguration\.egressSelections\[0\]\.connection\.proxyProtocol: "GRPC": is not supported: should be HTTPConnect or Direct\n$/m,
  );
  t.end();
});
