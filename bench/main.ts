import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeChanged, writeCluster, type Cluster } from './cluster.js';
import { Proxy, type Sync } from './proxy.js';

/** Measures the process as a user runs it, on manifests, in a network namespace of its own. Usage: `npm run bench -- [services×endpoints …]`. */

const CHANGES = 200;
const WARM_UP = 20;
const SETTLE_MS = 3000;

interface Result {
  readonly cluster: Cluster;
  readonly coldStartMs: number;
  readonly coldSyncMs: number;
  readonly coldBytes: number;
  readonly adoptMs: number;
  readonly adoptOperations: number;
  readonly adoptStartMs: number;
  readonly changeMs: readonly number[];
  readonly fileToAckMs: readonly number[];
  readonly changeOperations: number;
  readonly changeBytes: number;
  readonly residentMb: number;
  readonly peakMb: number;
}

const MAIN = resolve('dist/main.js');

const CONFIG = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.128.0.0/9
conntrack: { maxPerCore: 0 }
nftables: { minSyncPeriod: 0s, syncPeriod: 1h }
`;

async function measure(cluster: Cluster, directory: string): Promise<Result> {
  const manifests = join(directory, 'manifests');
  const config = join(directory, 'config.yaml');
  writeFileSync(config, CONFIG);
  writeCluster(manifests, cluster);
  const start = (): Proxy =>
    Proxy.start(MAIN, ['--config', config, '--manifests', manifests, '--hostname-override', 'node-0', '-v', '4']);

  const first = start();
  const cold = await first.sync(isIPv4);
  await sleep(SETTLE_MS);
  const changes = await change(first, manifests, cluster);
  const { resident, peak } = first.memory();
  await first.stop();

  const second = start();
  const adoption = await second.sync(isIPv4);
  await second.stop();
  // Rules outlive the process; the next cluster starts with none.
  spawnSync(MAIN, ['--cleanup', '--config', config]);
  return {
    cluster,
    coldStartMs: cold.seenAt - first.startedAt,
    coldSyncMs: cold.syncMs,
    coldBytes: cold.bytes,
    adoptMs: adoption.syncMs,
    adoptOperations: adoption.elementOperations,
    adoptStartMs: adoption.seenAt - second.startedAt,
    changeMs: changes.map(({ sync }) => sync.sinceChangeMs),
    fileToAckMs: changes.map(({ fileMs }) => fileMs),
    changeOperations: Math.max(...changes.map(({ sync }) => sync.elementOperations)),
    changeBytes: Math.max(...changes.map(({ sync }) => sync.bytes)),
    residentMb: resident,
    peakMb: peak,
  };
}

/** Takes one endpoint away and puts it back, again and again. */
async function change(
  proxy: Proxy,
  manifests: string,
  cluster: Cluster,
): Promise<readonly { sync: Sync; fileMs: number }[]> {
  const results: { sync: Sync; fileMs: number }[] = [];
  for (let round = 0; round < CHANGES + WARM_UP; round++) {
    const acknowledged = proxy.sync((sync) => isIPv4(sync) && sync.transactions > 0);
    const writtenAt = performance.now();
    writeChanged(manifests, cluster, round % 2 === 0 ? Math.floor(round / 2) % cluster.endpoints : null);
    const sync = await acknowledged;
    if (round >= WARM_UP) results.push({ sync, fileMs: sync.seenAt - writtenAt });
    await sleep(5);
  }
  return results;
}

function isIPv4(sync: Sync): boolean {
  return sync.family === 'IPv4';
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function row(result: Result): string {
  const { cluster } = result;
  const ms = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
  return [
    `${cluster.services} × ${cluster.endpoints}`,
    `${ms(result.coldSyncMs)} ms (process ${ms(result.coldStartMs)} ms, ${(result.coldBytes / 1e6).toFixed(1)} MB)`,
    `${ms(result.adoptMs)} ms (process ${ms(result.adoptStartMs)} ms, ${result.adoptOperations} operations)`,
    `${ms(percentile(result.changeMs, 0.5))} / ${ms(percentile(result.changeMs, 0.99))} ms (${result.changeOperations} operations, ${result.changeBytes} bytes)`,
    `${ms(percentile(result.fileToAckMs, 0.5))} / ${ms(percentile(result.fileToAckMs, 0.99))} ms`,
    `${result.residentMb.toFixed(0)} MB (peak ${result.peakMb.toFixed(0)})`,
  ].join(' | ');
}

function parseCluster(text: string): Cluster {
  const found = /^(\d+)[x×](\d+)$/.exec(text);
  if (found === null) throw new Error(`not SERVICESxENDPOINTS: ${text}`);
  return { services: Number(found[1]), endpoints: Number(found[2]) };
}

async function main(): Promise<void> {
  const clusters = process.argv.slice(2).map(parseCluster);
  const out = process.stdout;
  out.write(
    '| Services × endpoints | cold sync | adoption | one change, event to ack (p50 / p99) | the same from writing the file | memory |\n',
  );
  out.write('|---|---|---|---|---|---|\n');
  for (const cluster of clusters.length > 0 ? clusters : [parseCluster('1000x10'), parseCluster('5000x50')]) {
    const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
    try {
      out.write(`| ${row(await measure(cluster, directory))} |\n`);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}

/** Set in the copy of this program that runs inside the namespace. */
const INSIDE = 'POINTSMAN_BENCH_INSIDE';

if (process.env[INSIDE] === undefined) {
  const asUser = process.getuid?.() === 0 ? [] : ['-r'];
  const { status } = spawnSync('unshare', [...asUser, '-n', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: '1' },
  });
  process.exitCode = status ?? 1;
} else {
  await main();
}
