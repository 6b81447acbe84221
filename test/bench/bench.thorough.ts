// needs: nft, ip, conntrack, namespaces
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { medianResult } from '../../bench/median.js';
import type { Result } from '../../bench/measures.js';

/** `npm run bench` with a cluster so small that it only shows that the benchmark works. */
const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));

/** Programs that take the place of etcd and kube-apiserver: nothing, and the test API server. */
function standIns(directory: string): string {
  const server = fileURLToPath(new URL('../support/api-server/main.js', import.meta.url));
  const tls = '--tls-cert-file "$cert" --tls-key-file "$key"';
  const flags =
    '--secure-port=*) port=$value;; --tls-cert-file=*) cert=$value;; --tls-private-key-file=*) key=$value;;';
  const read = `for flag; do value=\${flag#*=}; case $flag in ${flags} esac; done`;
  writeFileSync(
    join(directory, 'kube-apiserver'),
    `#!/bin/sh\n${read}\nexec ${process.execPath} ${server} --port "$port" ${tls} --token bench\n`,
  );
  writeFileSync(join(directory, 'etcd'), '#!/bin/sh\nexec sleep 600\n');
  for (const name of ['etcd', 'kube-apiserver']) chmodSync(join(directory, name), 0o755);
  return directory;
}

t.test('bench reports the median of several runs for each number', (t) => {
  const result = (value: number): Result =>
    ({ cluster: '4 × 3', proxy: 'peer', outside: { a: value, spread: { p50: -value } }, inside: null }) as never;
  t.same(medianResult([3, 1, 2].map(result)), [result(2)]);
  t.same(medianResult([]), []);
  t.end();
});

t.test('bench measures a small cluster, with pointsman in the place of kube-proxy', async (t) => {
  const directory = t.testdir();
  const json = join(directory, 'bench.json');
  const plot = join(directory, 'bench.svg');
  const quick = [
    '--flat',
    '60',
    '--changes',
    '4',
    '--churn-seconds',
    '1',
    '--connections',
    '100',
    '--settle-ms',
    '100',
    ...['--runs', '1', '--idle-seconds', '0.2', '--api-server', standIns(directory)],
  ];
  const peer = ['--peer', 'dist/main.js --config {config} --hostname-override node-0'];
  const child = spawn(process.execPath, [MAIN, ...quick, ...peer, '--json', json, '--plot', plot, '4x3'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [status] = (await once(child, 'close')) as [number];
  t.equal(status, 0, errors);
  const { results } = JSON.parse(readFileSync(json, 'utf8')) as { readonly results: readonly Result[] };
  t.same(
    results.map(({ proxy, cluster }) => [proxy, cluster]),
    [
      ['pointsman', '4 × 3'],
      ['peer', '4 × 3'],
    ],
  );
  for (const { proxy, outside, inside } of results) {
    t.equal(outside.changeSeenMs.count, 4, proxy);
    t.ok(outside.coldHealthyMs > 0 && outside.coldCpuSeconds > 0 && outside.residentMb > 0, proxy);
    t.ok(outside.coldSyncedMs > 0 && outside.restartSyncedMs > 0 && outside.anonymousMb > 0, proxy);
    t.ok(outside.connectionsPerSecond > 0 && outside.churnCpuPercent > 0, proxy);
    // Both are ours. A third of the attempts goes to the silent endpoint first, and an address counts as gone after a second.
    const { connectedPercent, idleLearnMs } = outside.dying;
    t.ok(connectedPercent.within10s >= 95 && connectedPercent.within1s < 95, JSON.stringify(connectedPercent));
    t.ok(idleLearnMs >= 1000, String(idleLearnMs));
    t.equal(inside === null, proxy === 'peer');
  }
  const own = results[0]?.inside;
  t.equal(own?.changeMs.count, 4);
  t.ok((own?.changeOperations ?? 0) > 0 && (own?.changeOperations ?? 99) < 10, 'an endpoint is a few elements');
  t.ok((own?.coldOperations ?? 0) >= 4 * 3, 'at first there is one for each endpoint at least');
  t.equal(own?.restartOperations, 0, 'the table is what a fresh process wants: no change was lost');
  t.match(output, /^\| one change, watch to first connection .* ×\) \|$/m);
  t.match(readFileSync(plot, 'utf8'), /<svg [^]*<polyline [^]*<\/svg>/);
});

/** One quick comparison, by its name. */
function compared(t: Test, name: string): Promise<string> {
  return benched(t, ['--compare', name, '--changes', '2', '--connections', '50']);
}

async function benched(t: Test, options: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...options, '--runs', '1', '--settle-ms', '100', '4x3'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [status] = (await once(child, 'close')) as [number];
  t.equal(status, 0, errors);
  return output;
}

t.test('connections are compared with those beside hostile Services', async (t) => {
  const output = await compared(t, 'hostile');
  t.match(output, /^CPU time of one: \S+ µs, beside hostile Services \S+ µs, \S+ % \(\S+ to \S+ %\)$/m);
});

t.test('the cost of commands is that of the main thread of the process', async (t) => {
  const output = await benched(t, ['--commands']);
  for (const command of ['status', 'services -o wide --limit 0', 'explain 10.96.0.0:80', 'bugreport'])
    t.match(output, new RegExp(`^${command}: [\\d.]+ ms of the main thread \\([\\d.]+ to [\\d.]+\\)$`, 'm'), command);
});

t.test('the cost of slot tables is compared with random picks', async (t) => {
  const output = await compared(t, 'tables');
  t.match(output, /^CPU time of one: \S+ µs, by tables \S+ µs, \S+ % \(\S+ to \S+ %\)$/m);
  t.match(output, /^kernel memory of a Service port: \S+ KB, by tables \S+ KB, /m);
});
