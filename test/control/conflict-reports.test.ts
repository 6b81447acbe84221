import t from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import { ConflictReports } from '../../src/control/conflict-reports.js';
import type { Conflict } from '../../src/plan/types.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

function world(): {
  readonly clock: FakeClock;
  readonly log: RecordingLog;
  readonly events: ProxyEvent[];
  readonly reports: ConflictReports;
} {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const events: ProxyEvent[] = [];
  const reports = new ConflictReports({ clock, log, events: { record: (event) => events.push(event) } });
  return { clock, log, events, reports };
}

function conflict(port: number, loser = 'shop/new:http', family: Conflict['family'] = 'IPv4'): Conflict {
  const kinds = { winnerKind: 'LoadBalancer', loserKind: 'ExternalIP', reason: 'kind' } as const;
  return { frontend: `192.0.2.1:${port}/TCP`, family, winner: 'default/old:web', loser, ...kinds };
}

t.test('a conflict that stays is told once, on the Service that loses', async (t) => {
  const { clock, log, events, reports } = world();
  t.equal(reports.update('IPv4', [conflict(80)], []), 1, 'counted at once');
  await clock.advance(2999);
  t.equal(reports.update('IPv4', [conflict(80)], []), 1, 'another sync in between');
  t.same([log.lines, events], [[], []], 'not told of yet');
  await clock.advance(1);
  t.match(events, [
    {
      type: 'Warning',
      reason: 'AddressConflict',
      regarding: { kind: 'Service', namespace: 'shop', name: 'new' },
      related: { kind: 'Service', namespace: 'default', name: 'old' },
      note: '192.0.2.1:80/TCP belongs to default/old:web, as its load balancer address, which comes before external IP; shop/new:http gets no connections there',
    },
  ]);
  t.match(log.lines, [/^warn conflict: IPv4 192\.0\.2\.1:80\/TCP/]);
  await clock.advance(60_000);
  reports.update('IPv4', [conflict(80)], []);
  t.equal(events.length, 1);
  t.equal(log.lines.length, 1);
  t.equal(reports.update('IPv4', [], []), 0);
  t.match(log.lines[1], /^info 1 settled: conflict/);
  t.equal(clock.waiting, 0);
});

t.test('what the platform does not do for a Service is told in the same way', async (t) => {
  const { clock, log, events, reports } = world();
  const shortfall = {
    family: 'IPv4',
    cause: 'platform',
    servicePort: 'shop/new:http',
    text: 'it is not done',
  } as const;
  t.equal(reports.update('IPv4', [], [shortfall]), 0, 'no conflict');
  reports.update('IPv6', [], [{ ...shortfall, family: 'IPv6' }]);
  await clock.advance(3000);
  t.match(events, [
    {
      reason: 'NotSupported',
      regarding: { kind: 'Service', namespace: 'shop', name: 'new' },
      note: 'shop/new:http: it is not done',
    },
    events[0],
  ]);
  t.same(log.lines, [
    'warn not on this platform: IPv4 shop/new:http: it is not done',
    'warn not on this platform: IPv6 shop/new:http: it is not done',
  ]);
  reports.update('IPv4', [], [shortfall]);
  reports.update('IPv6', [], []);
  t.match(log.lines.slice(2), ['info 1 settled: not on this platform: IPv6 shop/new:http: it is not done']);
});

t.test('two Services that exchange a port: nothing is told', async (t) => {
  const { clock, log, events, reports } = world();
  reports.update('IPv4', [conflict(80)], []);
  reports.update('IPv4', [conflict(443)], []);
  await clock.advance(2000);
  reports.update('IPv4', [], []);
  await clock.advance(60_000);
  t.same([log.lines, events], [[], []]);
  t.equal(clock.waiting, 0);
});

t.test('each conflict has its own time, families do not mix, and nothing waits once there is none', async (t) => {
  const { clock, events, reports } = world();
  reports.update('IPv4', [conflict(80)], []);
  await clock.advance(2000);
  t.equal(reports.update('IPv6', [conflict(80, 'shop/six:http', 'IPv6')], []), 1);
  t.equal(reports.update('IPv4', [conflict(80), conflict(443)], []), 2);
  await clock.advance(1000);
  t.equal(events.length, 1);
  await clock.advance(2000);
  t.equal(events.length, 3);
  reports.update('IPv4', [conflict(8080)], []);
  reports.update('IPv4', [], []);
  reports.update('IPv6', [], []);
  t.equal(clock.waiting, 0);
});
