// Limits of events as the API server's admission plugin has them, for the events of this process.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { nodeSubject, serviceSubject, type EventLimit, type ProxyEvent } from '../../src/base/events.js';
import { readEventLimit } from '../../src/control/event-limit.js';
import { scratch } from '../sources/kubernetes/connect.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

const HEADER = 'apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n';

function about(service: string): ProxyEvent {
  const regarding = service === '' ? nodeSubject('me') : serviceSubject(service);
  return { type: 'Normal', reason: 'R', action: 'A', regarding, related: null, note: '' };
}

function read(
  t: Test,
  text: string,
  log = new RecordingLog(),
  clock = new FakeClock(),
): EventLimit | { readonly problem: string } {
  const file = join(scratch(t), 'limits.yaml');
  writeFileSync(file, HEADER + text);
  return readEventLimit(file, clock, log);
}

function limiter(t: Test, text: string, clock = new FakeClock()): (service?: string) => boolean {
  const limit = read(t, text, new RecordingLog(), clock);
  if ('problem' in limit) throw new Error(limit.problem);
  return (service = '') => limit(about(service));
}

t.test('the event rate limit allows a burst, and then its rate', async (t) => {
  const clock = new FakeClock();
  const may = limiter(t, 'limits: [{type: Server, qps: 2, burst: 3}]', clock);
  t.same([may(), may('a/b'), may('b/c'), may()], [true, true, true, false]);
  await clock.advance(500);
  t.same([may(), may()], [true, false]);
  await clock.advance(60_000);
  t.same([may(), may(), may(), may()], [true, true, true, false], 'no more than the burst is kept');
});

t.test('the event rate limit counts per namespace and per object', (t) => {
  const namespaces = limiter(t, 'limits: [{type: Namespace, qps: 1, burst: 1}]');
  t.same(['a/x', 'a/y', 'b/x', ''].map(namespaces), [true, false, true, true]);
  const objects = limiter(t, 'limits: [{type: SourceAndObject, qps: 1, burst: 1}]');
  t.same(['a/x', 'a/y', 'a/x', '', ''].map(objects), [true, true, false, true, false]);
  const few = limiter(t, 'limits: [{type: SourceAndObject, qps: 1, burst: 1, cacheSize: 1}]');
  t.same(['a/x', 'a/y', 'a/x'].map(few), [true, true, true], 'one that is forgotten begins anew');
  const both = limiter(t, 'limits: [{type: User, qps: 1, burst: 2}, {type: Namespace, qps: 1, burst: 1}]');
  t.same(['a/x', 'a/x', 'b/x'].map(both), [true, false, false], 'each counts what another refuses');
  t.end();
});

t.test('an invalid event rate limit file is refused', (t) => {
  t.match(read(t, 'limits: []'), {
    problem:
      /^--event-rate-limit-config: .*limits\.yaml: Configuration\.limits: is empty: should be a list of at least 1$/,
  });
  t.match(readEventLimit('/nowhere', new FakeClock(), new RecordingLog()), {
    problem: '--event-rate-limit-config: /nowhere: ENOENT',
  });
  const log = new RecordingLog();
  read(t, 'limits: [{type: Server, qps: 1, burst: 1, cacheSize: 5}]', log);
  t.match(log.lines, [/^warn --event-rate-limit-config: .*cacheSize: 5: has no effect for type Server$/]);
  t.end();
});
