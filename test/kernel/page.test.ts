// The page as its user has it: the real process on a node, `pointsman ui` beside it, and curl in place of a browser.
// needs: curl
import { readFileSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import t from 'tap';
import type { Overview, ServicesPage } from '../../packages/page/src/api.js';
import { eventually, Lab, type CommandResult } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy, type ProxyScope } from '../support/lab/proxy.js';
import { RunningProcess } from '../support/lab/running.js';
import { PROGRAM } from '../support/program.js';

const ON_METRICS_ADDRESS = 'http://127.0.0.1:10249/ui/';
const [WEB, LATE] = ['web', 'late'].map((name, index) =>
  dualStack(name, { number: 41 + index, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-a'] }),
) as [ReturnType<typeof dualStack>, ReturnType<typeof dualStack>];

/** Starts a program that goes on until the test ends. What it has printed is what is returned. */
function started(t: ProxyScope, lab: Lab, command: readonly string[]): () => string {
  let output = '';
  const running = new RunningProcess(lab.spawn('node', command), (text) => (output += text));
  t.teardown(async () => {
    if (running.end === null) await running.stop('SIGTERM');
  });
  return () => output;
}

/** What every process with manifests has in mode nftables. */
const PLAIN = ['manifests.js', 'nftables-table.js', 'nftables.js', 'pointsman.js', 'reconciler.js'];

/** Loaded with the first question for the status, which is asked meanwhile. */
const STATUS = ['foreign.js', 'status.js'];

/** Files of dist/ whose code a process has in its memory, by a snapshot of that. */
async function loadedBy(
  run: (...words: readonly string[]) => Promise<CommandResult>,
  proxy: Proxy,
): Promise<readonly string[]> {
  const path = `${proxy.statusSocket}.heap`;
  const { status, stderr } = await run('status', '--heap-snapshot', path);
  if (status !== 0) throw new Error(stderr);
  const { strings } = JSON.parse(readFileSync(path, 'utf8')) as { readonly strings: readonly string[] };
  rmSync(path);
  // Code that V8 compiled when the program was built names a folder that is the same everywhere (bundle/README.md).
  const folders = [dirname(PROGRAM), '/pointsman/dist'];
  const loaded = strings
    .filter((text) => text.endsWith('.js') && folders.includes(dirname(text)))
    .map((text) => basename(text));
  return [...new Set(loaded)].filter((name) => name !== 'main.js').sort();
}

t.test('the page and its API are served on a node', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { objects: WEB });
  const socket = ['--status-socket', proxy.statusSocket];
  const run = (...words: readonly string[]): Promise<CommandResult> => lab.run('node', [PROGRAM, ...words, ...socket]);
  const get = async (url: string, ...options: readonly string[]): Promise<{ status: number; body: string }> => {
    const { stdout } = await lab.run('node', ['curl', '-s', '-m', '60', '-w', '\n%{http_code}', ...options, url]);
    const end = stdout.lastIndexOf('\n');
    return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) };
  };
  const printed = started(t, lab, [PROGRAM, 'ui', ...socket]);
  const watched = started(t, lab, [PROGRAM, 'status', '--watch', ...socket]);
  // As a terminal has it: script(1) is one.
  const watch = [PROGRAM, 'status', '--watch', ...socket].join(' ');
  const drawn = started(t, lab, ['script', '-qfec', watch, '/dev/null']);
  const plain = await loadedBy(run, proxy);
  t.same(
    plain.filter((name) => !STATUS.includes(name)),
    PLAIN,
    'a process without clients loads neither the page nor traces',
  );
  const forwarded = await eventually('an address', () =>
    Promise.resolve(/^http:\S+\/ui\/(?=\n)/.exec(printed())?.[0] ?? null),
  );

  const streams: (() => string)[] = [];
  for (const base of [ON_METRICS_ADDRESS, forwarded]) {
    const page = await get(base);
    t.match(page, { status: 200, body: /^<!doctype html>/i }, base);
    const script = /src="\.?\/?([^"]+\.js)"/.exec(page.body)?.[1] ?? '';
    t.match(await get(base + script), { status: 200, body: /./ }, script);
    t.match(JSON.parse((await get(`${base}api/overview`)).body) as Overview, {
      node: NODE_NAME,
      mode: 'nftables',
      services: 2,
      health: { healthy: true },
    });
    const found = JSON.parse((await get(`${base}api/services?q=web`)).body) as ServicesPage;
    t.match(found.rows, [{ key: 'default/web', endpointsUsed: 2, problems: [] }]);
    t.equal((await get(base, '-H', 'Host: evil.example')).status, 421);
    t.equal((await get(`${base}api/overview`, '-X', 'POST')).status, 405);
    const stream = started(t, lab, ['curl', '-sN', `${base}api/events`]);
    await eventually('what there is', () => Promise.resolve(stream().includes('event: snapshot') || null));
    streams.push(stream);
  }
  t.equal((await get(new URL('/ui/', forwarded).href)).status, 404, 'only those who know the address');

  await proxy.apply([...WEB, ...LATE]);
  for (const stream of streams) {
    const seen = /^event: services\ndata: .*"default\/late"/m;
    await eventually('the change as an event', () => Promise.resolve(seen.test(stream()) || null));
  }
  const twice = /^pointsman 0[^]*^pointsman 0/m;
  await eventually('the status again', () => Promise.resolve(twice.test(watched()) || null));

  const redrawn = /\u001b\[H\u001b\[J\u001b\[Hpointsman 0[^]*\u001b\[K\r?\n[^]*\u001b\[J\u001b\[Hpointsman 0/;
  await eventually('the status drawn again', () => Promise.resolve(redrawn.test(drawn()) || null));
  t.same(await loadedBy(run, proxy), [...PLAIN, ...STATUS, 'ui.js'].sort(), 'until a client comes');

  t.match(await run('ui', '--listen', '0.0.0.0:0'), { status: 2, stdout: '', stderr: /^--listen: .*loopback.*\n$/i });
  // What it keeps for a minute for whoever looks does not keep it.
  const asked = performance.now();
  t.equal(await proxy.stop(), 0);
  t.ok(performance.now() - asked < 30_000, 'sooner than a pod is killed');
  const noProcess = `no answer on --status-socket ${proxy.statusSocket}: no pointsman runs there\n`;
  t.same(await run('ui'), { status: 2, stdout: '', stderr: noProcess });
});
