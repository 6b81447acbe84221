// What is reported of quarantined frontends, and when they are tried again.
import t from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import { QuarantineReports } from '../../src/control/quarantine-reports.js';
import type { QuarantinedFrontend } from '../../src/dataplane/contract.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';
import { address } from '../support/rows.js';

const KEYS = [1, 2, 3].map((port) => frontendKey(address('10.96.0.10'), port, 'TCP'));

function quarantined(...retryAt: readonly number[]): readonly QuarantinedFrontend[] {
  return retryAt.map((at, index) => ({ frontend: KEYS[index]!, reason: 'ENOMEM', since: 0, retryAt: at }));
}

function scene() {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const events: ProxyEvent[] = [];
  const due: number[] = [];
  const reports = new QuarantineReports({
    family: 'IPv4',
    plan: () => undefined,
    clock,
    log,
    events: { record: (event) => events.push(event) },
    onDue: () => due.push(clock.now()),
  });
  return { clock, log, events, due, reports };
}

t.test('quarantined frontends are tried again when the first of them is due', async (t) => {
  const { clock, due, reports } = scene();
  const start = clock.now();
  reports.update(quarantined(start + 300, start + 100, start + 200));
  await clock.advance(99);
  t.same(due, []);
  await clock.advance(1);
  t.same(due, [start + 100]);
  await clock.advance(1000);
  t.equal(due.length, 1, 'once, until it is known what became of it');
  reports.update(quarantined(start));
  await clock.advance(0);
  t.equal(due.length, 2, 'what was due before is due now');
  reports.update(quarantined(clock.now() + 100));
  reports.update([]);
  await clock.advance(1000);
  t.equal(due.length, 2, 'not without any');
});

t.test('the first of more quarantined frontends than a call takes arguments is found', async (t) => {
  const { clock, due, reports } = scene();
  const at = clock.now() + 100;
  const [one] = quarantined(at);
  reports.update(Array.from({ length: 200_000 }, (_, index) => ({ ...one!, retryAt: at + ((index + 7) % 200_000) })));
  await clock.advance(100);
  t.same(due, [at]);
});

t.test('a quarantined frontend is logged once for each reason, and at its end', (t) => {
  const { log, reports } = scene();
  const one = quarantined(100);
  reports.update(one);
  reports.update(one);
  reports.update(one.map((each) => ({ ...each, reason: 'EINVAL' })));
  reports.update([]);
  t.same(
    log.lines.map((line) => line.slice(0, 40)),
    [...Array<string>(2).fill('warn the kernel refuses a frontend, whic'), 'info 0 a frontend is no longer quarantin'],
  );
  t.end();
});

t.test('frontends that the node is at fault for are logged once for all, with the remedy', (t) => {
  const { log, events, reports } = scene();
  const fault = { text: 'no module xt_statistic', remedy: 'modprobe xt_statistic', isVital: true };
  const [first, ...rest] = quarantined(100, 100, 100).map((each) => ({ ...each, reason: fault.text, ofNode: true }));
  reports.update([first!, ...rest], [fault]);
  reports.update([first!, ...rest], [fault]);
  t.same(log.lines, ['error this node is at fault: null']);
  t.same(events, []);
  reports.update([first!, { ...rest[0]!, reason: 'ENOMEM', ofNode: false }], [fault]);
  t.equal(log.lines.length, 2, 'one with a reason of its own is named');
  t.match(log.lines[1], /^warn the kernel refuses a frontend/);
  reports.update([], []);
  t.match(log.lines.slice(2).sort(), [
    'info 0 a frontend is no longer quarantined',
    'info 0 this node is no longer at fault',
  ]);
  t.end();
});
