import { cpus, release } from 'node:os';
import { IDLE_LIMIT_MS } from './dying.js';
import type { InsideMeasures, OutsideMeasures, Result } from './measures.js';
import type { Spread } from './statistics.js';

interface Column<M> {
  readonly title: string;
  readonly print: (measures: M) => string;
  /** What a ratio is made of; null where there is none to be made. */
  readonly value: ((measures: M) => number) | null;
}

/** Three digits are enough for what differs from run to run. */
export function digits(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

const times = ({ p50, p99, max }: Spread): string => [p50, p99, max].map(digits).join(' / ');

const INSIDE: readonly Column<InsideMeasures>[] = [
  {
    title: 'first sync',
    print: (m) =>
      `${digits(m.coldSyncMs)} ms, ${m.coldOperations} operations, ${digits(m.coldBytes / 1e6)} MB to the kernel`,
    value: null,
  },
  {
    title: 'first sync after a restart',
    print: (m) => `${digits(m.restartSyncMs)} ms, ${m.restartOperations} operations`,
    value: null,
  },
  {
    title: 'one change, watch to acknowledgement (p50 / p99 / max)',
    print: (m) => `${times(m.changeMs)} ms, ${m.changeOperations} operations, ${m.changeBytes} bytes`,
    value: null,
  },
  { title: 'CPU time of the kernel for one change', print: (m) => `${digits(m.changeKernelMs)} ms`, value: null },
  { title: 'full check', print: (m) => `${digits(m.fullCheckMs)} ms`, value: null },
];

const OUTSIDE: readonly Column<OutsideMeasures>[] = [
  column('process start to healthy', 'ms', (m) => m.coldHealthyMs),
  column('process start to synced', 'ms', (m) => m.coldSyncedMs),
  column('process start to the first connection', 'ms', (m) => m.coldAnsweredMs),
  column('CPU until then', 's', (m) => m.coldCpuSeconds),
  column("the kernel's part of it", 's', (m) => m.coldKernelSeconds),
  column('the same after a restart, to healthy', 'ms', (m) => m.restartHealthyMs),
  column('the same after a restart, to synced', 'ms', (m) => m.restartSyncedMs),
  column('CPU until then', 's', (m) => m.restartCpuSeconds),
  spreadColumn('one change, watch to first connection', (m) => m.changeSeenMs),
  column('all endpoints of 100 Services replaced', 'ms', (m) => m.rollingMs),
  column('CPU while endpoints change', '%', (m) => m.churnCpuPercent),
  spreadColumn('lag while endpoints change', (m) => m.churnLagMs),
  column('resident memory', 'MB', (m) => m.residentMb),
  column('of it anonymous', 'MB', (m) => m.anonymousMb),
  column('CPU with nothing changing', '%', (m) => m.idleCpuPercent),
  column('wakeups a second with nothing changing', '', (m) => m.idleWakeupsPerSecond),
  column('at its peak', 'MB', (m) => m.peakMb),
  column('resident memory at the end of the changes', 'MB', (m) => m.churnResidentMb),
  { ...column('growth during the changes', 'MB', (m) => m.churnGrowthMb), value: null },
  column('kernel memory', 'MB', (m) => m.kernelMb),
  column('new connections per second', '', (m) => m.connectionsPerSecond),
  column('straight to endpoints', '', (m) => m.directConnectionsPerSecond),
  spreadColumn('first packet to answer', (m) => m.firstPacketMs),
  spreadColumn('straight to endpoints', (m) => m.directFirstPacketMs),
  {
    title: 'one of three endpoints dies silently: attempts connected within 1 / 3 / 10 s',
    print: ({ dying: { connectedPercent: percent } }) =>
      `${[percent.within1s, percent.within3s, percent.within10s].map(digits).join(' / ')} %`,
    value: ({ dying }) => dying.connectedPercent.within3s,
  },
  {
    title: 'endpoint removed: idle clients learn after',
    print: ({ dying }) =>
      dying.idleLearnMs === 0 ? `not within ${IDLE_LIMIT_MS / 1000} s` : `${digits(dying.idleLearnMs)} ms`,
    value: null,
  },
];

function column(title: string, unit: string, value: (measures: OutsideMeasures) => number): Column<OutsideMeasures> {
  return { title, print: (measures) => `${digits(value(measures))} ${unit}`.trimEnd(), value };
}

function spreadColumn(title: string, value: (measures: OutsideMeasures) => Spread): Column<OutsideMeasures> {
  return {
    title: `${title} (p50 / p99 / max)`,
    print: (measures) => `${times(value(measures))} ms`,
    value: (measures) => value(measures).p50,
  };
}

/** Tables in Markdown: a line per measure and a column per cluster; where a peer was measured, its values and what part of them ours are. */
export function printTables(results: readonly Result[]): string {
  const own = results.filter(({ proxy }) => proxy === 'pointsman');
  const peers = results.filter(({ proxy }) => proxy === 'peer');
  const lines = [`\n${describeMachine()}\n`, ...head('pointsman', own)];
  for (const { title, print } of INSIDE) {
    lines.push(
      row(
        title,
        own.map(({ inside }) => (inside === null ? '' : print(inside))),
      ),
    );
  }
  for (const { title, print } of OUTSIDE)
    lines.push(
      row(
        title,
        own.map(({ outside }) => print(outside)),
      ),
    );
  if (peers.length > 0) lines.push('', ...head('the peer (ours is × of it)', peers), ...peerRows(own, peers));
  return `${lines.join('\n')}\n`;
}

function peerRows(own: readonly Result[], peers: readonly Result[]): readonly string[] {
  return OUTSIDE.map(({ title, print, value }) =>
    row(
      title,
      peers.map(({ cluster, outside }) => {
        const ours = own.find((result) => result.cluster === cluster);
        if (ours === undefined || value === null || value(outside) === 0) return print(outside);
        return `${print(outside)} (${digits(value(ours.outside) / value(outside))} ×)`;
      }),
    ),
  );
}

function head(title: string, results: readonly Result[]): readonly string[] {
  return [
    row(
      title,
      results.map(({ cluster }) => cluster),
    ),
    row(
      '---',
      results.map(() => '---'),
    ),
  ];
}

function row(title: string, cells: readonly string[]): string {
  return `| ${[title, ...cells].join(' | ')} |`;
}

export function describeMachine(): string {
  const [first] = cpus();
  return `${cpus().length} × ${first?.model.trim() ?? 'CPU'}, Linux ${release()}, Node ${process.version}`;
}
