// What the process prints and how it ends: behaviour §1.1, §1.4, §1.5.
import '../support/namespace.js';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { formatted } from '../../src/serve/formatted.js';
import { goPlatform } from '../../src/base/platform.js';
import { needs } from '../support/needs.js';
import { PROGRAM } from '../support/program.js';

const folder = mkdtempSync(join(tmpdir(), 'command-line-'));
t.teardown(() => {
  rmSync(folder, { recursive: true });
});

function run(...argv: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(PROGRAM, argv, { encoding: 'utf8', cwd: folder });
}

t.test("CL-03: --version prints the version, short and as kube-proxy's structure", (t) => {
  const short = run('--version');
  t.match(short, { status: 0, stderr: '' });
  t.match(
    short.stdout,
    /^Kubernetes v1\.37\.2 \(pointsman \d+\.\d+\.\d+.*\)\n$/,
    'one line, whose second word is the Kubernetes release',
  );
  const { status, stdout } = run('--version=raw');
  t.equal(status, 0);
  t.match(stdout, /^version\.Info\{Major:"1", Minor:"37", .*GitVersion:"v1\.37\.2", .*\}\n$/);
  t.match(stdout, `Platform:"${goPlatform()}"`);
  t.end();
});

t.test('as a plugin of kubectl the program runs commands, never the proxy', (t) => {
  const own = t.testdir();
  const plugin = join(own, 'kubectl-pointsman');
  symlinkSync(PROGRAM, plugin);
  const runPlugin = (...argv: readonly string[]): unknown => spawnSync(plugin, argv, { encoding: 'utf8', cwd: own });
  t.match(runPlugin(), { status: 0, stdout: /^Usage: pointsman .*\n[^]*^Commands:\n/m, stderr: '' }, 'without a word');
  for (const flags of [['--write-config-to', join(own, 'plugin.yaml')], ['--cleanup']])
    t.match(runPlugin(...flags), { status: 2, stdout: '', stderr: /^kubectl pointsman runs commands, not the proxy/m });
  t.same(readdirSync(own), ['kubectl-pointsman'], 'nothing was written');
  t.match(runPlugin('nodez'), { status: 2, stderr: /Did you mean `pointsman nodes`\?/ });
  t.match(runPlugin('--version'), { status: 0, stdout: /^Kubernetes v1/ });
  t.end();
});

t.test('explain by manifests reports a Service that is not there in one line', (t) => {
  const { status, stdout, stderr } = run('explain', '--manifests', t.testdir({ 'none.yaml': '' }), 'web.shop');
  t.match({ status, stdout }, { status: 2, stdout: '' });
  t.match(stderr, /^destination "web\.shop": there is no Service shop\/web\n$/m);
  t.notMatch(stderr, /^ +at /m, 'without a stack');
  t.end();
});

t.test('explain by manifests of which some cannot be read answers nothing', (t) => {
  const missing = join(t.testdir(), 'none');
  const { status, stdout, stderr } = run('explain', '--manifests', missing, '10.96.0.1:80');
  t.match({ status, stdout }, { status: 2, stdout: '' });
  t.match(stderr, /none: cannot be read: does not exist/);
  t.end();
});

t.test('CL-02: a wrong command line exits with 1, the problem and the usage', (t) => {
  const wrong = run('--no-such-flag');
  t.match(wrong, { status: 1, stdout: '', stderr: /^unknown flag: --no-such-flag\n\nUsage: / });
  t.match(run('argument'), { status: 1, stderr: /does not take any arguments, got \["argument"\]/ });
  t.match(run('--help'), { status: 0, stdout: /--proxy-mode <mode>/, stderr: '' });
  t.end();
});

t.test('CL-50: --write-config-to takes any text as a path', (t) => {
  t.match(run('--proxy-mode=nftables', '--write-config-to=-'), { status: 0, stdout: '' });
  t.same(readdirSync(folder), ['-']);
  t.match(readFileSync(join(folder, '-'), 'utf8'), /^apiVersion: kubeproxy/);
  t.match(run('--config=-', '--write-config-to=gone/x'), { status: 1, stderr: /--write-config-to: ENOENT/ });
  t.end();
});

t.test('--config from a pipe: a signal ends the process while it waits, and the content is used', async (t) => {
  const pipe = join(folder, 'pipe');
  spawnSync('mkfifo', [pipe]);
  const waiting = spawn(PROGRAM, ['--config', pipe, '--write-config-to=pipe.yaml'], { stdio: 'ignore', cwd: folder });
  t.teardown(() => waiting.kill('SIGKILL'));
  const isOpen = (pid: number | undefined): boolean =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkOf(`/proc/${pid}/fd/${fd}`) === pipe);
  while (!isOpen(waiting.pid)) await setTimeout(5);
  waiting.kill('SIGTERM');
  const [status] = (await once(waiting, 'exit')) as readonly unknown[];
  t.equal(status, 143);
  const reading = spawn(PROGRAM, [`--config=${pipe}`, '--write-config-to=pipe.yaml'], { stdio: 'ignore', cwd: folder });
  t.teardown(() => reading.kill('SIGKILL'));
  while (!isOpen(reading.pid)) await setTimeout(5);
  const header = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
  writeFileSync(pipe, `${header}mode: nftables\nhostnameOverride: from-a-pipe\n`);
  t.same(await once(reading, 'exit'), [0, null]);
  t.match(readFileSync(join(folder, 'pipe.yaml'), 'utf8'), /hostnameOverride: from-a-pipe/);
});

t.test('--config from a pipe is read once, although the configuration is watched', async (t) => {
  const pipe = join(folder, 'followed');
  spawnSync('mkfifo', [pipe]);
  const argv = [`--config=${pipe}`, '--manifests', mkdtempSync(join(folder, 'manifests-')), '--status-socket='];
  const running = spawn(PROGRAM, argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => running.kill('SIGKILL'));
  let log = '';
  running.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const header = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
  writeFileSync(pipe, `${header}mode: nftables\n`);
  while (!log.includes('Manifests loaded')) {
    if (running.exitCode !== null) throw new Error(`it has ended: ${log}`);
    await setTimeout(20);
  }
  // An event for whoever follows the directory, after which the file is read again.
  utimesSync(pipe, 1, 1);
  await setTimeout(1000);
  running.kill('SIGTERM');
  t.same(await once(running, 'exit'), [0, null], log);
  t.notMatch(log, /could not read configuration|configuration refused/);
});

function readlinkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

t.test('CL-41: warnings about a changed configuration file are logged once, like those at the start', async (t) => {
  const config = join(folder, 'config.yaml');
  const write = (body: string): void => {
    const header = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
    writeFileSync(config, `${header}${body}`);
  };
  write('first: 1\n');
  const manifests = mkdtempSync(join(folder, 'manifests-'));
  const argv = ['--config', config, '--manifests', manifests, '--status-socket='];
  const running = spawn(PROGRAM, argv, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => running.kill('SIGKILL'));
  let log = '';
  running.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const reported = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(log)) {
      if (running.exitCode !== null) throw new Error(`it has ended: ${log}`);
      await setTimeout(20);
    }
  };
  await reported(/strict decoding failed: .*\.first: unknown field/);
  await reported(/Manifests loaded/);
  write('first: 1\n# the same\n');
  await setTimeout(1000);
  write('first: 1\noomScoreAdj: 5\n');
  await reported(/"configuration changed"/);
  t.equal(log.match(/unknown field/g)?.length, 1, 'what was said before is not said again');
  write('second: 1\noomScoreAdj: 5\n');
  await reported(/strict decoding failed: .*\.second: unknown field/);
  write(
    'second: 1\noomScoreAdj: 5\nlogging: {format: json, flushFrequency: 1s}\niptables: {localhostNodePorts: false}\n',
  );
  await reported(/"msg":"configuration changed".*/);
  t.equal(running.exitCode, null, 'what means nothing in this mode ends nothing');
});

t.test('CL-60: --cleanup wins over --init-only, and exits with 1 if it failed', needs('nft'), (t) => {
  spawnSync('nft', ['add', 'table', 'ip', 'kube-proxy']);
  t.match(run('--cleanup', '--init-only'), { status: 0, stdout: '' });
  t.equal(spawnSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }).stdout, '');
  const bounded = ['--bounding-set=-net_admin', PROGRAM, '--cleanup'];
  t.match(spawnSync('setpriv', bounded, { encoding: 'utf8' }), {
    status: 1,
    stderr: /encountered an error while tearing down rules: .*EPERM/,
  });
  t.end();
});

t.test(
  'no credential shows in the log or on any HTTP path; a heap snapshot goes through the socket alone',
  needs('ip'),
  async (t) => {
    spawnSync('ip', ['link', 'set', 'lo', 'up']);
    const kubeconfig = join(folder, 'kubeconfig');
    const cluster = { server: 'https://127.0.0.1:1', 'proxy-url': 'http://proxy:s3cret-proxy@127.0.0.1:1' };
    const apiVersion = 'client.authentication.k8s.io/v1';
    const credential = { apiVersion, kind: 'ExecCredential', status: { token: 's3cret-token' } };
    const exec = {
      apiVersion,
      command: 'sh',
      args: ['-c', 'echo "$CREDENTIAL"', 's3cret-argument'],
      env: [{ name: 'CREDENTIAL', value: JSON.stringify(credential) }],
      interactiveMode: 'Never',
    };
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster }],
        users: [{ name: 'u', user: { exec } }],
      }),
    );
    const socket = `--status-socket=${join(folder, 's')}`;
    const argv = [
      ...['--proxy-mode=nftables', '--conntrack-max-per-core=0', '--profiling', '--v=9', socket],
      ...['--metrics-bind-address=127.0.0.1:10249', '--healthz-bind-address=127.0.0.1:10256'],
      ...[
        `--kubeconfig=${kubeconfig}`,
        '--manifests=http://user:s3cret-password@127.0.0.1:1/x?token=s3cret-query#s3cret',
      ],
      '--manifests-header=X-Token: s3cret-header',
    ];
    const running = spawn(PROGRAM, argv, { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder });
    t.teardown(() => running.kill('SIGKILL'));
    let log = '';
    running.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    const deadline = performance.now() + 60_000;
    while (!/Bad manifest/.test(log) || !/serving metrics/.test(log)) {
      if (performance.now() > deadline || running.exitCode !== null) throw new Error(`not asked: ${log}`);
      await setTimeout(20);
    }
    const get = async (path: string): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${path}`);
      const body = Buffer.from(await response.arrayBuffer());
      return (body[0] === 0x1f ? gunzipSync(body) : body).toString('utf8');
    };
    const paths = /^Paths: (.*)$/m.exec(await get('10249/statusz'))?.[1]?.split(' ') ?? [];
    t.ok(paths.includes('/debug/pprof/heap'), paths.join());
    const pages = await Promise.all(
      ['10249/heap-snapshot', '10256/healthz?verbose', ...paths.map((path) => `10249${path}`)]
        .filter((path) => !/profile|heap$|allocs/.test(path))
        .map(get),
    );
    for (const path of paths.filter((path) => /profile|heap$|allocs/.test(path)))
      pages.push(await get(`10249${path}?seconds=0.2`));
    const status = run('status', socket);
    t.match(status.stdout, '  http://127.0.0.1:1/x?…: not read yet\n');
    const asked = run('explain', '10.96.0.1:80/TCP', socket);
    t.match(asked, {
      status: 2,
      stderr: /^the process is still reading http:\/\/127\.0\.0\.1:1\/x\?…, kubernetes services/,
    });
    const shown = [...pages, log, status.stdout, asked.stderr].join('\n');
    t.match(shown, 'pointsman_source_synced{source="http://127.0.0.1:1/x?…"} 0');
    const encoded = [btoa('user:s3cret-password'), btoa('proxy:s3cret-proxy')];
    for (const secret of ['s3cret', ...encoded]) t.notOk(shown.includes(secret), secret);

    const snapshot = join(folder, 'heap');
    t.match(run('status', socket, '--heap-snapshot', snapshot), { status: 0, stdout: /with every credential/ });
    t.equal(statSync(snapshot).mode & 0o777, 0o600);
    t.match(readFileSync(snapshot, 'utf8'), 'user:s3cret-password', 'which is why');
    t.match(run('status', socket, '--heap-snapshot', snapshot), { status: 2, stderr: /heap: EEXIST/ });
  },
);

t.test('control characters in the log do not reach the terminal', (t) => {
  const hostile = '\u001b[31mred\u009b';
  const { status, stderr } = run(`--config=${hostile}`);
  t.match([status, stderr], [1, /\\u001b\[31mred\\u009b/]);
  t.notMatch(stderr, /[\u001b\u009b]/);
  const conflict = { lines: [`a${hostile}\nb`] };
  t.equal(
    formatted(conflict, 'text', ({ lines }) => lines),
    'a\\u001b[31mred\\u009b\\u000ab\n',
  );
  const json = formatted(conflict, 'json', () => []);
  t.notMatch(json, /[\u001b\u009b]/);
  t.same(JSON.parse(json), conflict);
  t.end();
});
