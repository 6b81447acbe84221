// Passes over a connection table of 262,144 flows, with the kernel's own listing and deletion: src/dataplane/conntrack/README.md says what they took.
// needs: conntrack
import '../support/namespace.js';

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import t from 'tap';
import { CycleObservers } from '../../src/observe/cycle-observer.js';
import { addressFromBytes } from '../../src/base/ip.js';
import { TokenBucket } from '../../src/base/token-bucket.js';
import { CHALLENGES, EndingConnections } from '../../src/control/ending-connections.js';
import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import { StoppableClock, systemClock } from '../../src/base/clock.js';
import type { FrontendKey } from '../../src/plan/types.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import { eventually } from '../support/lab/lab.js';
import { NO_LOOPBACK } from '../support/no-loopback.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { prefix, service, slice } from '../support/rows.js';
import { addon } from './conntrack-flows.js';

/** What a node's table has room for by default, and a test's namespace: net.netfilter.nf_conntrack_max. */
const TABLE = 262_144;
const SERVICE = '10.96.0.10';
const GONE = '10.244.1.1';
const SILENT = '10.244.1.2';
const STAYS = '10.244.1.3';

interface Kind {
  readonly protocol: 'tcp' | 'udp';
  readonly endpoint: string;
  readonly count: number;
  readonly state?: 'SYN_SENT' | 'ESTABLISHED';
}

/** Most of a node's flows are connections that nothing happens to. */
const STALE: readonly Kind[] = [
  { protocol: 'tcp', endpoint: GONE, count: 100, state: 'ESTABLISHED' },
  { protocol: 'tcp', endpoint: GONE, count: 100, state: 'SYN_SENT' },
  { protocol: 'udp', endpoint: GONE, count: 100 },
];
const OTHERS: readonly Kind[] = [
  { protocol: 'tcp', endpoint: SILENT, count: 2000, state: 'SYN_SENT' },
  { protocol: 'udp', endpoint: STAYS, count: 20_000 },
];
const FLOWS: readonly Kind[] = [
  ...STALE,
  ...OTHERS,
  {
    protocol: 'tcp',
    endpoint: STAYS,
    state: 'ESTABLISHED',
    count: TABLE - [...STALE, ...OTHERS].reduce((sum, { count }) => sum + count, 0),
  },
];

/** Commands of conntrack(8) for all of them; each flow has a client address of its own. */
function commands(): string {
  const lines: string[] = [];
  for (const { protocol, endpoint, count, state } of FLOWS)
    for (let index = 0; index < count; index++) {
      const number = 0x0b000000 + lines.length;
      const client = addressFromBytes(Uint8Array.from([24, 16, 8, 0], (shift) => (number >> shift) & 255));
      const port = protocol === 'udp' ? 53 : 80;
      const answered = state === 'SYN_SENT' ? '' : ' -u SEEN_REPLY,ASSURED';
      lines.push(
        `-I -p ${protocol} -s ${client} -d ${SERVICE} --sport 40000 --dport ${port} --dst-nat ${endpoint}:${port} ` +
          `-t 3000${state === undefined ? '' : ` --state ${state}`}${answered}`,
      );
    }
  return `${lines.join('\n')}\n`;
}

function inTable(): number {
  return Number(readFileSync('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'));
}

/** A flow is counted until nothing refers to it any more. */
async function holds(count: number): Promise<void> {
  await eventually(`${count} flows`, () => Promise.resolve(inTable() === count || null));
}

/** What a pass takes: wall clock, and CPU of all threads with the kernel's part of it. */
class Stopwatch {
  private begun = { at: 0, usage: process.cpuUsage() };
  private taken = '';

  begin(): void {
    this.begun = { at: performance.now(), usage: process.cpuUsage() };
  }

  /** So far. The last time counts. */
  lap(): void {
    const { user, system } = process.cpuUsage(this.begun.usage);
    const [load = ''] = readFileSync('/proc/loadavg', 'utf8').split(' ');
    const wall = Math.round(performance.now() - this.begun.at);
    this.taken = `${wall} ms, CPU ${Math.round((user + system) / 1000)} ms, load ${load}`;
  }

  get text(): string {
    return this.taken;
  }
}

async function measured<T>(t: Test, what: string, pass: () => Promise<T>): Promise<T> {
  const watch = new Stopwatch();
  watch.begin();
  const result = await pass();
  watch.lap();
  t.comment(`${what}: ${watch.text}`);
  return result;
}

const settings = planSettings({
  localDetection: { type: 'ClusterCIDR', prefixes: [prefix('10.244.0.0/16')] },
  resetRemovedEndpoints: true,
});
const store = new Store();
const writer = store.register('test');
const planner = new Planner(settings);
const view = planner.tables.IPv4;

function put(endpoints: readonly string[]): void {
  const ports = [
    { name: 'web', port: 80 },
    { name: 'dns', port: 53, protocol: 'UDP' as const },
  ];
  const rows = [
    service('web', { clusterIPs: [SERVICE], ports }),
    slice(
      'web',
      endpoints.map((each) => ({ address: each, state: 'rsp' })),
      { family: 'IPv4', ports },
    ),
  ];
  writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  planner.update(store.snapshot, store.takeChanges());
}

t.test('one removed endpoint among 262,144 flows costs little', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'flows-'));
  writeFileSync(join(folder, 'flows'), commands());
  const { status, stderr } = spawnSync('conntrack', ['-R', join(folder, 'flows')], { encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  t.equal(status, 0, stderr);
  t.equal(inTable(), TABLE);

  const clock = new StoppableClock(systemClock);
  t.teardown(() => {
    clock.stop();
  });
  const log = new RecordingLog();
  /** From a listing on until it has come, and its flows are deleted where there are some. */
  const watch = new Stopwatch();
  let listings = 0;
  let reset = 0;
  const dataplane = {
    resets: { expect: () => Promise.resolve(), unanswered: () => Promise.resolve(new Uint8Array()) },
  };
  const ending = new EndingConnections({
    table: view,
    snapshot: store.snapshot,
    settings: () => settings,
    loopback: NO_LOOPBACK,
    localAddresses: () => [],
    log,
    clock,
    kernel: {
      conntrackListTranslated: async (family, sources) => {
        watch.begin();
        const listing = await addon.conntrackListTranslated(family, sources);
        setImmediate(() => {
          watch.lap();
          listings++;
        });
        return listing;
      },
      conntrackDelete: (family, records) => addon.conntrackDelete(family, records),
      // Nobody is at these addresses.
      conntrackChallenge: () => Promise.resolve({ sent: 0, failure: null }),
    },
    challenges: new TokenBucket(CHALLENGES.perSecond, CHALLENGES.burst, () => clock.now()),
    observers: new CycleObservers({
      connectionsReset: ({ connections }) => {
        watch.lap();
        reset += connections;
      },
    }),
    onDue: () => {
      ending.proceed(dataplane);
    },
  });
  store.onChange((edits) => {
    ending.committed(edits);
  });
  writer.complete();
  put([GONE, SILENT, STAYS]);
  ending.proceed(dataplane);
  await eventually('a look at all', () => Promise.resolve(listings > 0 || null));
  t.comment(`at a start, all translated connections are listed: ${watch.text}`);
  t.equal(reset, 0);

  put([SILENT, STAYS]);
  const conntrack = new ConntrackReconciler(addon);
  const changed = new Set<FrontendKey>([`${SERVICE}:80/TCP`, `${SERVICE}:53/UDP`]);
  const pass = (full: boolean): ReturnType<ConntrackReconciler['reconcile']> =>
    conntrack.reconcile({ table: view, isNodePortAddress: () => false, full, changed });
  const first = await measured(t, 'UDP and attempts of TCP, of a changed Service', () => pass(false));
  t.same(first, { flows: 22_200, deleted: 200, errors: [] });
  await holds(TABLE - 200);
  const full = await measured(t, 'UDP and attempts of TCP, of all Services', () => pass(true));
  t.same(full, { flows: 22_000, deleted: 0, errors: [] });

  ending.proceed(dataplane);
  await eventually('resets of connections to the removed endpoint', () => Promise.resolve(reset > 0 || null));
  t.comment(`connections to the removed endpoint: ${watch.text}`);
  t.equal(reset, 100);
  await holds(TABLE - 300);
  t.same(
    log.lines.filter((line) => line.includes('cannot')),
    [],
  );
});
