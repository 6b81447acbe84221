import t from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import { ConflictReports, type Findings } from '../../src/control/conflict-reports.js';
import type { Conflict, ConflictPair, ServiceLimitation } from '../../src/plan/types.js';
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

let version = 0;

/** What a table says that has these. */
function findings(
  family: Conflict['family'],
  conflicts: readonly Conflict[],
  limitations: readonly ServiceLimitation[],
): Findings {
  const pairs = conflicts.map((first) => ({ first, count: 1 }));
  return { family, conflictPairs: () => pairs, limitations: () => limitations.values(), findingsVersion: ++version };
}

function conflict(port: number, loser = 'shop/new:http', family: Conflict['family'] = 'IPv4'): Conflict {
  const kinds = { winnerKind: 'LoadBalancer', loserKind: 'ExternalIP', reason: 'kind' } as const;
  return { frontend: `192.0.2.1:${port}/TCP`, family, winner: 'default/old:web', loser, ...kinds };
}

t.test('a conflict of frontends that lasts is reported once, on the Service that loses', async (t) => {
  const { clock, log, events, reports } = world();
  reports.update(findings('IPv4', [conflict(80)], []));
  await clock.advance(2999);
  reports.update(findings('IPv4', [conflict(80)], []));
  t.same([log.lines, events], [[], []], 'not reported yet');
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
  reports.update(findings('IPv4', [conflict(80)], []));
  t.equal(events.length, 1);
  t.equal(log.lines.length, 1);
  reports.update(findings('IPv4', [], []));
  t.match(log.lines[1], /^info 0 resolved: conflict/);
  t.equal(clock.waiting, 0);
});

t.test('limitations of the platform are reported like conflicts', async (t) => {
  const { clock, log, events, reports } = world();
  const limitation = {
    family: 'IPv4',
    cause: 'platform',
    servicePort: 'shop/new:http',
    text: 'it is not done',
  } as const;
  reports.update(findings('IPv4', [], [limitation]));
  reports.update(findings('IPv6', [], [{ ...limitation, family: 'IPv6' }]));
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
  reports.update(findings('IPv4', [], [limitation]));
  reports.update(findings('IPv6', [], []));
  t.match(log.lines.slice(2), ['info 0 resolved: not on this platform: IPv6 shop/new:http: it is not done']);
});

t.test('source ranges of the other family alone are a warning and an event on the Service', async (t) => {
  const { clock, log, events, reports } = world();
  const [text, servicePort] = ['every client is admitted over IPv4', 'shop/new'];
  reports.update(findings('IPv4', [], [{ family: 'IPv4', cause: 'source-ranges', servicePort, text }]));
  await clock.advance(3000);
  const regarding = { kind: 'Service', namespace: 'shop', name: 'new' };
  t.match(events, [{ reason: 'EveryClientAdmitted', regarding, note: `shop/new: ${text}` }]);
  t.same(log.lines, [`warn open to every client: IPv4 shop/new: ${text}`]);
});

t.test('two Services that exchange a port are not reported as a conflict', async (t) => {
  const { clock, log, events, reports } = world();
  reports.update(findings('IPv4', [conflict(80)], []));
  reports.update(findings('IPv4', [conflict(443)], []));
  await clock.advance(2000);
  reports.update(findings('IPv4', [], []));
  await clock.advance(60_000);
  t.same([log.lines, events], [[], []]);
  t.equal(clock.waiting, 0);
});

t.test('each conflict has its own delay, per family, and no timer stays when there is none', async (t) => {
  const { clock, events, reports } = world();
  reports.update(findings('IPv4', [conflict(80)], []));
  await clock.advance(2000);
  reports.update(findings('IPv6', [conflict(80, 'shop/six:http', 'IPv6')], []));
  reports.update(findings('IPv4', [conflict(80), conflict(443, 'shop/other:http')], []));
  await clock.advance(1000);
  t.equal(events.length, 1);
  await clock.advance(2000);
  t.equal(events.length, 3);
  reports.update(findings('IPv4', [conflict(8080)], []));
  reports.update(findings('IPv4', [], []));
  reports.update(findings('IPv6', [], []));
  t.equal(clock.waiting, 0);
});

t.test('a conflict that both families have is one event and one log line per family', async (t) => {
  const { clock, log, events, reports } = world();
  const limitation = { cause: 'limit', servicePort: 'shop/new', text: 'too many frontends' } as const;
  for (const family of ['IPv4', 'IPv6'] as const) {
    reports.update(findings(family, [conflict(80, 'shop/new:http', family)], [{ ...limitation, family }]));
  }
  await clock.advance(3000);
  t.equal(log.lines.length, 4);
  const findingOf = ({ regarding, reason, finding }: ProxyEvent): string =>
    JSON.stringify([regarding, reason, finding]);
  t.equal(new Set(events.map(findingOf)).size, 2, 'the sender takes each once, and all nodes name them alike');
});

function pairOf(count: number, winner: string, loser: string): ConflictPair {
  return { count, first: { ...conflict(80, loser), winner } };
}

t.test('thousands of conflicts between two Services are one log line and one event, with their number', async (t) => {
  const { clock, log, events, reports } = world();
  const table = (count: number): Findings => ({
    ...findings('IPv4', [], []),
    conflictPairs: () => [pairOf(count, 'default/old:web', 'shop/new:http')],
  });
  reports.update(table(40_000));
  await clock.advance(3000);
  t.match(log.lines, [/does not get it, one of 40000 frontends that both claim$/]);
  t.match(events, [{ note: /, one of 40000 frontends that both claim$/ }]);
  reports.update(table(39_999));
  await clock.advance(60_000);
  t.equal(log.lines.length + events.length, 2, 'another number is no news');
});

t.test('a Service in conflict with thousands of others does not fill the log', async (t) => {
  const { clock, log, reports } = world();
  const pairs = Array.from({ length: 5000 }, (_, index) => pairOf(1, `default/s${index}:web`, 'shop/new:http'));
  reports.update({ ...findings('IPv4', [], []), conflictPairs: () => pairs });
  await clock.advance(3000);
  t.equal(log.lines.length, 101);
  t.match(log.lines.at(-1), /more Services are in conflict/);
  reports.update(findings('IPv4', [], []));
  t.equal(log.lines.length, 202);
});

t.test('unchanged conflicts are not compared again', (t) => {
  const { reports } = world();
  const table = findings('IPv4', [conflict(80)], []);
  reports.update(table);
  reports.update({
    ...table,
    conflictPairs: () => {
      throw new Error('looked at');
    },
  });
  t.end();
});
