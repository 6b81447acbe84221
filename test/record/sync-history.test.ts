import t from 'tap';
import type { SyncReport } from '../../src/dataplane/contract.js';
import { printStatus, type ProcessStatus } from '../../src/observe/process-status.js';
import { SyncHistory } from '../../src/record/sync-history.js';

const REPORT: SyncReport = {
  family: 'IPv4',
  full: false,
  transactions: 1,
  elementOperations: 3,
  ruleOperations: 0,
  bytes: 300,
  repairs: [],
  problems: [],
  rules: null,
  quarantined: [],
  flows: new Set(),
};

function history(): {
  readonly history: SyncHistory;
  readonly done: (syncMs: number, report?: Partial<SyncReport>, ...frontends: readonly string[]) => void;
} {
  let hour = 0;
  const made = new SyncHistory(() => new Date(Date.UTC(2026, 0, 1, hour++)));
  const done = (syncMs: number, report: Partial<SyncReport> = {}, ...frontends: readonly string[]): void => {
    const times = { syncMs, sinceChangeMs: syncMs + 1 };
    made.acknowledged({ ...REPORT, ...report }, new Set(frontends), () => undefined, times, 'nft[7]');
  };
  return { history: made, done };
}

t.test('the sync history has the recent and the slowest syncs', (t) => {
  const { history: reported, done } = history();
  t.same([reported.recent(), reported.slowest], [[], []]);
  done(90, { full: true }, 'a', 'b', 'c', 'd');
  t.match(reported.recent(), [
    { number: 1, full: true, syncMs: 90, sinceChangeMs: 91, frontends: 4, servicePorts: ['a', 'b', 'c'] },
  ]);
  t.same(reported.slowest, [], 'those that compare everything do not count');
  for (const ms of [3, 9, 1, 8, 2, 7]) {
    done(ms, {}, `f${ms}`);
  }
  done(50, { transactions: 0 });
  t.same(
    reported.recent(5).map(({ syncMs }) => syncMs),
    [7, 2, 8, 1, 9],
  );
  t.same(
    reported.slowest.map(({ syncMs, servicePorts }) => `${servicePorts.join()} ${syncMs}`),
    ['f9 9', 'f8 8', 'f7 7', 'f3 3', 'f2 2'],
  );
  t.end();
});

t.test('the sync history has failed syncs and repairs', (t) => {
  const { history: reported, done } = history();
  reported.failedWith('EBUSY');
  reported.failedWith('ENOBUFS');
  t.same(reported.failures, { count: 2, last: { at: '2026-01-01T01:00:00.000Z', text: 'ENOBUFS' } });
  done(1, { repairs: ['chain a was lost', 'set b was lost'] });
  t.match(reported.repairs, { count: 2, last: { text: 'chain a was lost; set b was lost' } });
  const repairs = Array.from({ length: 40 }, (_, number) => `rule ${number} was lost`);
  done(1, { repairs });
  t.match(reported.recentlyRepaired, [
    { number: 2, process: 'nft[7]', differences: 40, texts: repairs.slice(0, 5) },
    { number: 1, process: 'nft[7]', differences: 2 },
  ]);
  reported.repairedIn(0.5);
  t.match(reported.recentlyRepaired, [
    { number: 2, seconds: 0.5 },
    { number: 1, seconds: null },
  ]);
  for (let again = 0; again < 100; again++) done(1, { repairs });
  t.same([reported.recentlyRepaired.length, reported.recentlyRepaired[0]?.number], [32, 102]);
  t.same(
    [reported.syncs, reported.recent().length, reported.recent()[0]?.number, reported.recent(0)],
    [102, 64, 102, []],
  );
  t.end();
});

t.test('a difference that could not be repaired stays in the history until a full sync finds none', (t) => {
  const { history: reported, done } = history();
  done(1, { problems: ['x stays'], refusedChains: ['y stays as it was'] });
  done(1);
  t.same(reported.problems, ['y stays as it was', 'x stays']);
  done(1, { full: true });
  t.same(reported.problems, []);
  t.end();
});

t.test('the sync status is printed in words', (t) => {
  const status: ProcessStatus = {
    version: 'v1.37.2',
    release: '0.1.0',
    pid: 7,
    mode: 'nftables',
    node: 'me',
    startedAt: '2026-01-01T00:00:00.000Z',
    uptimeSeconds: 93_784,
    ready: false,
    unsynced: true,
    sources: [
      { source: 'services', synced: true, sinceLastEventMs: 61_000, failures: { watch: 2, list: 0 } },
      { source: 'nodes', synced: false, sinceLastEventMs: null, failures: {} },
    ],
    apiHeardMs: 2000,
    healthy: false,
    nodeEligible: null,
    ineligibleSeconds: 3601,
    unsyncedSeconds: 5,
    sysctls: [{ problem: 'net.x is 0', sinceSeconds: 7 }],
    pendingMs: 12.4,
    held: 'no pod CIDRs',
    clientCertificate: 'request x waits for its approval',
    refusedConfiguration: 'address in use',
    refusedSeconds: 62,
    limitation: 'scheduler "x": refuses',
    observations: [],
    families: [
      {
        family: 'IPv4',
        healthy: false,
        services: 1,
        frontends: 2,
        endpoints: 3,
        pendingFrontends: 4,
        conflicts: ['conflict: one'],
        conflictsSeconds: 63,
        serviceLimitations: ['not on this platform: one'],
        limitations: ['attempts wait'],
        fullAffinity: ['no room for session affinity: one'],
        removedEndpoints: { connections: 5, endpoints: 2, limitation: 'EPERM' },
        quarantined: [
          { frontend: '10.96.0.1:80/SCTP', servicePort: 'a/b:c', reason: 'ENOENT', sinceSeconds: 61 },
          { frontend: '10.96.0.2:80/TCP', servicePort: null, reason: 'EBUSY', sinceSeconds: 1 },
        ],
        unplanned: [{ service: 'a/d', reason: 'out of order' }],
        unplannedSeconds: null,
        recentSyncs: [],
        slowestSyncs: [],
        failures: { count: 2, last: { at: '2026-01-01T01:00:00.000Z', text: 'EBUSY' } },
        repairs: { count: 3, last: { at: '2026-01-01T02:00:00.000Z', text: 'chain a was lost' } },
        lastRepair: {
          number: 2,
          at: '2026-01-01T02:00:00.000Z',
          process: 'nft[7]',
          differences: 2,
          seconds: 0.0123,
          texts: ['chain a was lost'],
        },
        problems: ['could not remove foreign objects (x): EBUSY'],
      },
    ],
    memory: { residentBytes: 100_400_000, heapBytes: 30_000_000, externalBytes: 1_000_000 },
  };
  t.same(printStatus(status), [
    'pointsman 0.1.0 for Kubernetes v1.37.2, nftables on me, process 7, up 1d 2h',
    'NOT healthy, out of rotation for load balancers for 1h 0m: the node is unknown',
    'sources: still reading, some unsynced for 5s: what could not be read is left alone',
    '  services: read, last event 1m 1s ago, 2 × watch',
    '  nodes: not read yet',
    'API server: last packet 2s ago',
    'changes waiting: for 12 ms',
    'changes are held back: no pod CIDRs',
    'client certificate: request x waits for its approval',
    'limitation: scheduler "x": refuses',
    'sysctl for 7s: net.x is 0',
    'IPv4: NOT in sync, 1 Service, 2 frontends, 3 endpoints, 4 frontends pending',
    '  failed syncs: 2, last at 2026-01-01T01:00:00.000Z: EBUSY',
    '  repairs: 3, last at 2026-01-01T02:00:00.000Z: an external change by nft[7], 2 differences repaired in 0.012 s: chain a was lost, …',
    '  connections to removed endpoints: 5 reset, of 2 endpoints',
    '  connections to removed endpoints go on: EPERM',
    '  in conflict for 1m 3s:',
    '  conflict: one',
    '  not on this platform: one',
    '  no room for session affinity: one',
    '  problem: could not remove foreign objects (x): EBUSY',
    '  quarantined for 1m 1s: 10.96.0.1:80/SCTP of a/b:c, which the kernel refuses: ENOENT',
    '  quarantined for 1s: 10.96.0.2:80/TCP, which the kernel refuses: EBUSY',
    '  cannot be planned, and stays as it was: a/d: out of order',
    '  last syncs: none',
    '  slowest: none',
    'limitation of IPv4: attempts wait',
    'memory: 100 MB resident, 30 MB heap, 1 MB external',
  ]);
  const sync = {
    number: 1,
    endedAt: '2026-01-01T02:00:00.000Z',
    full: false,
    syncMs: 1.25,
    sinceChangeMs: 2,
    transactions: 1,
    elementOperations: 3,
    ruleOperations: 0,
    bytes: 100,
    frontends: 4,
    servicePorts: ['default/web:http'],
  };
  const [family] = status.families;
  const busy =
    family === undefined
      ? []
      : [{ ...family, recentSyncs: [sync], slowestSyncs: [{ ...sync, full: true, frontends: 1 }] }];
  const dual = status.families.flatMap((each) => [each, { ...each, family: 'IPv6' as const, healthy: true }]);
  const limitations = printStatus({ ...status, families: dual }).filter((line) => line.includes('attempts wait'));
  t.same(limitations, ['limitation of IPv4 and IPv6: attempts wait'], 'once for both families');
  const lines = printStatus({
    ...status,
    families: busy,
    uptimeSeconds: 0.4,
    ready: true,
    unsynced: false,
    pendingMs: null,
    held: null,
    clientCertificate: null,
  });
  t.ok(
    lines.includes('    2026-01-01T02:00:00.000Z  1.3 ms, 3 elements, 0 rules: default/web:http, …'),
    lines.join('\n'),
  );
  t.ok(lines.includes('    2026-01-01T02:00:00.000Z  1.3 ms, full, 3 elements, 0 rules: default/web:http'));
  t.match(lines[0], /up 0s$/);
  t.ok(lines.includes('changes waiting: none') && lines.includes('sources: all read'));
  t.notMatch(lines.join('\n'), /held back|client certificate/);
  t.end();
});
