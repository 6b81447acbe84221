import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../src/base/clock.js';
import { NO_EVENTS } from '../src/base/events.js';
import type { Log } from '../src/base/log.js';
import { limitMemory } from '../src/base/heap-options.js';
import { settleHeap } from '../src/cli/memory.js';
import { connectToApi } from '../src/sources/kubernetes/connect/transport.js';
import { startKubernetes } from '../src/sources/kubernetes/source.js';
import { DEFAULT_TIMING } from '../src/sources/kubernetes/timing.js';
import { Store } from '../src/state/store.js';

/**
 * The API source and the state alone, in a process of their own. Arguments: kubeconfig, content type. Prints a line of JSON when it is in
 * step, and after each line on its standard input one with the CPU time and events since the last.
 */

const [kubeconfig = '', contentType = ''] = process.argv.slice(2);

const log: Log = {
  info: () => undefined,
  warn: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
  error: (error, message) => process.stderr.write(`${message}: ${String(error)}\n`),
};

const MB = 1024 * 1024;

function heapMb(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MB;
}

/** `VmRSS` and `VmHWM` in MB. */
function resident(field: 'VmRSS' | 'VmHWM'): number {
  const line = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

limitMemory();
const store = new Store();
const connection = await connectToApi({
  kubeconfig,
  master: '',
  qps: 5,
  burst: 10,
  userAgent: 'pointsman-bench',
  clock: systemClock,
  log,
});
const bareMb = resident('VmRSS');
const heapBefore = heapMb();
const cpuBefore = cpuMs();
const startedAt = performance.now();
const running = startKubernetes(
  {
    connection,
    nodeName: 'node-1',
    contentType,
    acceptContentTypes: '',
    configSyncPeriodMs: 900_000,
    nodeRequired: false,
    events: NO_EVENTS,
  },
  store,
  log,
  { clock: systemClock, random: Math.random, timing: DEFAULT_TIMING },
);
while (!store.snapshot.ready) await sleep(5);
const syncMs = performance.now() - startedAt;
const syncCpuMs = cpuMs() - cpuBefore;
const peakMb = resident('VmHWM');
settleHeap();
await sleep(500);
say({ syncMs, syncCpuMs, bareMb, peakMb, residentMb: resident('VmRSS'), retainedMb: heapMb() - heapBefore });

let cpu = cpuMs();
let events = eventCount();

function eventCount(): number {
  return running.status().reduce((sum, { events }) => sum + events.ADDED + events.MODIFIED + events.DELETED, 0);
}

process.stdin.setEncoding('utf8');
for await (const line of process.stdin) {
  if (String(line).startsWith('end')) break;
  const now = cpuMs();
  say({
    cpuMs: now - cpu,
    events: eventCount() - events,
    residentMb: resident('VmRSS'),
    peakMb: resident('VmHWM'),
    heapMb: heapMb(),
  });
  cpu = cpuMs();
  events = eventCount();
}
await running.stop();
connection.close();
