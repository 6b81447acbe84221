import t from 'tap';
import { StartProgress } from '../../src/control/start-progress.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

t.test('a slow start logs its progress', async (t) => {
  const clock = new FakeClock();
  const lines: [string, Readonly<Record<string, unknown>> | undefined][] = [];
  const reported = (): typeof lines => lines.splice(0);
  const store = { snapshot: { ready: false, serviceCount: 0 }, waitingFor: () => ['services', 'endpointslices'] };
  const received = { services: 0, endpointslices: 0 };
  const v4 = { family: 'IPv4' as const, lastUpdated: null as bigint | null, failure: null as string | null };
  const v6 = { ...v4, family: 'IPv6' as const };
  const progress = new StartProgress({
    store,
    clock,
    sources: { received: () => ({ ...received }) },
    progress: { families: [v4, v6] },
    log: {
      info: (verbosity, message, fields) => {
        t.equal(verbosity, 0);
        lines.push([message, fields]);
      },
      warn: () => void t.fail(),
      error: () => void t.fail(),
    },
  });
  progress.start();
  received.services = 12_000;
  await clock.advance(4999);
  t.same(reported(), [], 'nothing of a start that is fast');
  await clock.advance(1);
  const fields = { waitingFor: 'services,endpointslices', services: 12_000, endpointslices: 0 };
  t.same(reported(), [['still reading what there is', fields]]);
  await clock.advance(60_000);
  t.same(reported(), [], 'nor again while nothing comes');
  received.endpointslices = 3000;
  await clock.advance(5000);
  t.same(reported(), [['still reading what there is', { ...fields, endpointslices: 3000 }]]);
  store.snapshot = { ready: true, serviceCount: 12_000 };
  v6.lastUpdated = 1n;
  await clock.advance(5000);
  t.same(reported(), [['everything is read, still writing rules', { families: 'IPv4', services: 12_000 }]]);
  v4.failure = 'EBUSY';
  await clock.advance(5000);
  t.same(reported(), [], 'a failure is reported elsewhere');
  v4.lastUpdated = 2n;
  await clock.advance(5000);
  t.same([reported(), clock.waiting], [[], 0], 'and then it is over');
});

t.test('the progress of the start logs nothing after the stop', async (t) => {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const progress = new StartProgress({
    store: { snapshot: { ready: true, serviceCount: 1 }, waitingFor: () => [] },
    sources: { received: () => ({}) },
    progress: { families: [{ family: 'IPv4', lastUpdated: null, failure: null }] },
    clock,
    log,
  });
  progress.start();
  progress.stop();
  await clock.advance(10_000);
  t.same([log.lines, clock.waiting], [[], 0]);
});
