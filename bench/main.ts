import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { findPrograms, programsCache } from '../test/support/programs.js';
import { compare, COMPARED, printComparison, type Compared, type Comparison } from './comparison.js';
import { measureCommands, printCosts, type CommandCost } from './commands.js';
import { CLUSTERS, NODE_NAME, parseCluster, printCluster } from './cluster.js';
import { measure, MODES, type BenchMode, type Measured, type MeasureOptions } from './measure.js';
import { medianResult } from './median.js';
import type { Result } from './measures.js';
import { plotSyncTimes } from './plot.js';
import { describeMachine, printTables } from './report.js';

const USAGE = `Usage: npm run bench -- [options] [cluster …]

Measures the process as a node runs it, against the test API server, in network namespaces of its own.
Clusters: SERVICESxENDPOINTS, with +affinity or +mix (of kinds of Services) behind it; by default ${CLUSTERS.join(' ')}.

  --mode MODE             ${MODES.join(', ')} (nftables)
  --peer COMMAND          measure another proxy as well; {config} and {kubeconfig} stand for files it needs, such as
                          'kube-proxy --config {config} --hostname-override ${NODE_NAME}'
  --runs NUMBER           how often both are measured, in turns; what is printed are the medians (3 with a peer, 5 to compare, otherwise 1)
  --api-server DIR        kube-apiserver and etcd in place of the test API server; a change begins when it is sent to that
  --idle-seconds NUMBER   how long it is seen what they take with nothing changing (60 with a peer, otherwise 5)
  --changes NUMBER        single changes (200)
  --churn-seconds NUMBER  how long endpoints change (10)
  --churn-rate NUMBER     how many a second (500)
  --connections NUMBER    connections for the rate (20000)
  --settle-ms NUMBER      how long the proxy is left alone before its memory is looked at (3000)
  --compare WHAT          in place of all else, in turns with and without: telemetry (Services counted),
                          tables (endpoints picked by tables of slots, and by chance),
                          hostile (connections to others while hostile Services are held, and without them), or
                          retry (dead endpoints cost nobody a connection, and without that)
  --commands              in place of all else: what each command that asks the process costs its main thread
  --flat MB               fail when the memory grows by more than this during the churn
  --json FILE             write all measures as JSON
  --plot FILE             write an SVG of sync time against cluster size
`;

const MAIN = resolve('dist/main.js');

function ownCommand(mode: BenchMode): string {
  const command = `'${MAIN}' --config {config} --hostname-override ${NODE_NAME} --status-socket=`;
  const flavor = mode.split('-')[1];
  return flavor === undefined ? command : `${command} --iptables-flavor ${flavor}`;
}

/** How often each side of a comparison is measured, and each command. */
const COMPARISON_RUNS = 5;

/** Set in the copy of this program that runs inside a namespace: what it is to measure. */
const INSIDE = 'POINTSMAN_BENCH_INSIDE';

interface Inside {
  readonly options: MeasureOptions;
  readonly what: What;
}

/** All measures of one proxy; or a flag's cost, or that of commands, of so many runs. */
type What =
  | { readonly kind: 'all' }
  | { readonly kind: 'comparison'; readonly compared: Compared; readonly runs: number }
  | { readonly kind: 'commands'; readonly runs: number };

/** Runs a measurement in a fresh network namespace; an ordinary user gets a user namespace as well. */
function inNamespace({ options, what }: Inside): unknown {
  // One after the other: files in /proc/net belong to whom the user namespace's root is when the network namespace is made.
  const asUser = process.getuid?.() === 0 ? [] : ['-r', 'unshare'];
  const { status, stdout } = spawnSync('unshare', [...asUser, '-n', process.execPath, ...process.argv.slice(1, 2)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    env: { ...process.env, [INSIDE]: JSON.stringify({ options, what }) },
  });
  if (status !== 0) throw new Error(`${printCluster(options.cluster)} could not be measured`);
  return JSON.parse(stdout);
}

function commandLine() {
  return parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean', default: false },
      mode: { type: 'string', default: MODES[0] },
      peer: { type: 'string' },
      runs: { type: 'string' },
      'api-server': { type: 'string' },
      'idle-seconds': { type: 'string' },
      changes: { type: 'string', default: '200' },
      'churn-seconds': { type: 'string', default: '10' },
      'churn-rate': { type: 'string', default: '500' },
      connections: { type: 'string', default: '20000' },
      'settle-ms': { type: 'string', default: '3000' },
      compare: { type: 'string' },
      commands: { type: 'boolean', default: false },
      flat: { type: 'string' },
      json: { type: 'string' },
      plot: { type: 'string' },
    },
  });
}

function main(): number {
  const { values, positionals } = commandLine();
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const { path, note } = findPrograms(programsCache());
  if (note !== null) process.stderr.write(`${note}\n`);
  process.env['PATH'] = path;
  const mode = MODES.find((each) => each === values.mode);
  if (mode === undefined) throw new Error(`--mode ${values.mode}: must be one of ${MODES.join(', ')}`);
  const subjects = [
    { proxy: 'pointsman' as const, command: ownCommand(mode) },
    ...(values.peer === undefined ? [] : [{ proxy: 'peer' as const, command: values.peer }]),
  ];
  const clusters = (positionals.length > 0 ? positionals : CLUSTERS).map(parseCluster);
  if (values.compare !== undefined) {
    const compared = (Object.keys(COMPARED) as Compared[]).find((each) => each === values.compare);
    if (compared === undefined) throw new Error(`--compare ${values.compare}: ${Object.keys(COMPARED).join(', ')}`);
    const what = { kind: 'comparison', compared, runs: Number(values.runs ?? COMPARISON_RUNS) } as const;
    for (const cluster of clusters) {
      const measured = alone({ ...settings(values), cluster, mode, command: ownCommand(mode) }, what) as Comparison;
      process.stdout.write(`${printCluster(cluster)}\n${printComparison(measured)}`);
    }
    return 0;
  }
  if (values.commands) {
    const runs = Number(values.runs ?? COMPARISON_RUNS);
    for (const cluster of clusters) {
      const what = { kind: 'commands', runs } as const;
      const costs = alone({ ...settings(values), cluster, mode, command: ownCommand(mode) }, what) as CommandCost[];
      process.stdout.write(`${printCluster(cluster)}\n${printCosts(costs)}`);
    }
    return 0;
  }
  const results: Result[] = [];
  const runs = Number(values.runs ?? (subjects.length > 1 ? 3 : 1));
  for (const cluster of clusters) {
    const all = Array.from({ length: runs }, () =>
      subjects.map(({ proxy, command }) => run(proxy, { ...settings(values), cluster, mode, command })),
    );
    results.push(...subjects.flatMap((_, index) => medianResult(all.flatMap((each) => each[index] ?? []))));
  }
  process.stdout.write(printTables(results));
  const report = { machine: describeMachine(), results };
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  if (values.plot !== undefined) writeFileSync(values.plot, plotSyncTimes(results));
  return values.flat === undefined ? 0 : judgeGrowth(results, Number(values.flat));
}

type Values = ReturnType<typeof commandLine>['values'];

/** What is the same for all measurements. */
function settings(values: Values): Omit<MeasureOptions, 'cluster' | 'mode' | 'command' | 'ours' | 'directory'> {
  return {
    apiServer: values['api-server'] === undefined ? null : resolve(values['api-server']),
    changes: Number(values.changes),
    churnSeconds: Number(values['churn-seconds']),
    churnRate: Number(values['churn-rate']),
    connections: Number(values.connections),
    settleMs: Number(values['settle-ms']),
    idleSeconds: Number(values['idle-seconds'] ?? (values.peer === undefined ? 5 : 60)),
  };
}

function run(proxy: Result['proxy'], options: Omit<MeasureOptions, 'ours' | 'directory'>): Result {
  const cluster = printCluster(options.cluster);
  const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
  process.stderr.write(`${cluster}: ${proxy} …\n`);
  try {
    const measured = inNamespace({
      options: { ...options, ours: proxy === 'pointsman', directory },
      what: { kind: 'all' },
    }) as Measured;
    const { services, endpoints } = options.cluster;
    return { cluster, proxy, endpoints: services * endpoints, ...measured };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Something else than all measures of a proxy, of ours. */
function alone(options: Omit<MeasureOptions, 'ours' | 'directory'>, what: What): unknown {
  const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
  try {
    return inNamespace({ options: { ...options, ours: true, directory }, what });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function judgeGrowth(results: readonly Result[], limitMb: number): number {
  const grown = results.filter(({ outside }) => outside.churnGrowthMb > limitMb);
  for (const { cluster, proxy, outside } of grown) {
    process.stderr.write(`${cluster}: ${proxy} has grown by ${outside.churnGrowthMb.toFixed(1)} MB\n`);
  }
  return grown.length === 0 ? 0 : 1;
}

const inside = process.env[INSIDE];
if (inside === undefined) process.exitCode = main();
else {
  process.stdout.write(JSON.stringify(await measured(JSON.parse(inside) as Inside)));
}

function measured({ options, what }: Inside): Promise<unknown> {
  switch (what.kind) {
    case 'all':
      return measure(options);
    case 'comparison':
      return compare(options, what.compared, what.runs);
    case 'commands':
      return measureCommands(options, what.runs);
  }
}
