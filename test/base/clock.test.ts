import t from 'tap';
import { BEAT_MS, nextLook, StoppableClock, systemClock } from '../../src/base/clock.js';
import { FakeClock } from '../support/fake-clock.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('callAt() with a past time calls back in the next turn of the event loop, not in this one', async (t) => {
  let calls = 0;
  systemClock.callAt(systemClock.now() - 5, () => calls++);
  await Promise.resolve();
  t.equal(calls, 0);
  await turn();
  await turn();
  t.equal(calls, 1);
});

t.test('callAt() never calls early, even by fractions of a millisecond', async (t) => {
  for (const delay of [0.3, 1.5, 3]) {
    const due = systemClock.now() + delay;
    await new Promise<void>((resolve) => {
      systemClock.callAt(due, resolve);
    });
    t.ok(systemClock.now() >= due, `${delay} ms`);
  }
});

t.test('callAt() does not call after a cancellation, nor early for a time centuries away', async (t) => {
  const calls: string[] = [];
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  systemClock.callAt(0, () => calls.push('immediate'))();
  systemClock.callAt(systemClock.now() + 2, () => calls.push('timer'))();
  const cancel = systemClock.callAt(systemClock.now() + 2 ** 40, () => calls.push('far'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.same(calls, []);
  t.same(warnings, [], 'no timer longer than the system takes');
  cancel();
});

t.test('a stopped clock calls nothing back, whether it was requested before or after', async (t) => {
  const fake = new FakeClock();
  const clock = new StoppableClock(fake);
  const calls: string[] = [];
  clock.callAt(clock.now() + 1, () => calls.push('in time'));
  clock.callAt(clock.now() + 1, () => calls.push('cancelled'))();
  await fake.advance(1);
  const cancel = clock.callAt(clock.now() + 1, () => calls.push('before'));
  clock.stop();
  clock.callAt(clock.now() + 1, () => calls.push('after'))();
  cancel();
  t.equal(fake.waiting, 0);
  await fake.advance(1);
  t.same(calls, ['in time']);
});

t.test('periodic timers wake together, and never later than asked', (t) => {
  for (const from of [0, 1.5, BEAT_MS - 0.5, BEAT_MS, 12_345.6]) {
    for (const period of [1, 20, BEAT_MS, 1000, 20_000]) {
      const next = nextLook(from, period);
      t.ok(next > from && next <= from + period, `${period} ms after ${from}`);
      if (period >= BEAT_MS) t.equal(next % BEAT_MS, 0);
    }
  }
  t.equal(nextLook(2 * BEAT_MS + 1.5, BEAT_MS), 3 * BEAT_MS, 'a look that begins a little late is not later each time');
  t.end();
});
