import t from 'tap';
import { Loop, type LoopOptions } from '../../src/control/loop.js';
import { FakeClock } from '../support/fake-clock.js';

interface Run {
  readonly at: number;
  readonly full: boolean;
  /** Ends a run that takes time. */
  readonly end: (error?: Error) => void;
}

/** A loop on a fake clock that starts at 0. `work` decides how each run ends; undefined: the test ends it. */
function setup(
  options: Partial<LoopOptions> = {},
  work: (index: number) => Error | null | undefined = () => null,
): { clock: FakeClock; loop: Loop; runs: Run[]; starts: () => number[] } {
  const clock = new FakeClock(0);
  const runs: Run[] = [];
  const loop = new Loop({
    run: ({ full }) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error): void => {
          if (error === undefined) resolve();
          else reject(error);
        };
        const result = work(runs.length);
        runs.push({ at: clock.now(), full, end });
        if (result !== undefined) end(result ?? undefined);
      }),
    minIntervalMs: 1000,
    fullIntervalMs: 30_000,
    retry: { initialMs: 100, maxMs: 30_000, factor: 2 },
    clock,
    random: () => 0,
    ...options,
  });
  return { clock, loop, runs, starts: () => runs.map((run) => run.at) };
}

t.test('the loop runs nothing before the first trigger, and then a full run without delay', async (t) => {
  const { clock, loop, runs } = setup();
  await clock.advance(100_000);
  t.equal(runs.length, 0);
  loop.trigger();
  t.equal(runs.length, 0, 'not in the turn of the trigger');
  await clock.advance(0);
  t.match(runs, [{ at: 100_000, full: true }]);
});

t.test('a burst is one run, and the interval counts from start to start', async (t) => {
  const { clock, loop, runs, starts } = setup({}, () => undefined);
  for (let i = 0; i < 100; i++) loop.trigger();
  await clock.advance(700);
  t.same(starts(), [0]);
  runs[0]!.end();
  await clock.advance(100);
  loop.trigger();
  loop.trigger();
  await clock.advance(199);
  t.same(starts(), [0], 'not before the interval has passed');
  await clock.advance(1);
  t.same(starts(), [0, 1000], 'a second after the start, though only 300 ms after the end');
  runs[1]!.end();
  await clock.advance(5000);
  loop.trigger();
  await clock.advance(0);
  t.same(starts(), [0, 1000, 6000], 'an idle loop starts at once');
});

t.test('without a minimum interval a run starts at once, and triggers of one turn are one run', async (t) => {
  const { clock, loop, starts } = setup({ minIntervalMs: 0 });
  for (let i = 0; i < 3; i++) {
    loop.trigger();
    loop.trigger();
    await clock.advance(0);
  }
  t.same(starts(), [0, 0, 0]);
});

t.test('an urgent trigger ignores the minimum interval, and its retry does too', async (t) => {
  const { clock, loop, starts } = setup({}, (index) => (index === 1 ? new Error('no') : null));
  loop.trigger();
  await clock.advance(10);
  loop.triggerNow();
  await clock.advance(0);
  t.same(starts(), [0, 10]);
  await clock.advance(99);
  t.same(starts(), [0, 10], 'a retry waits its time');
  await clock.advance(1);
  t.same(starts(), [0, 10, 110], 'but no longer');
  loop.trigger();
  await clock.advance(999);
  t.same(starts(), [0, 10, 110], 'others keep the interval');
  loop.triggerNow();
  await clock.advance(0);
  t.same(starts(), [0, 10, 110, 1109], 'unless an urgent one comes');
  await loop.stop();
  loop.triggerNow();
  await clock.advance(0);
  t.equal(starts().length, 4);
});

t.test('triggers during a run lead to exactly one more', async (t) => {
  const { clock, loop, runs, starts } = setup({ minIntervalMs: 1 }, () => undefined);
  loop.trigger();
  await clock.advance(0);
  for (let i = 0; i < 5; i++) {
    loop.trigger();
    await clock.advance(10);
  }
  t.same(starts(), [0], 'never two at a time');
  runs[0]!.end();
  await clock.advance(0);
  t.same(starts(), [0, 50]);
  runs[1]!.end();
  await clock.advance(1000);
  t.same(starts(), [0, 50]);
});

t.test('failures are retried with growing delays up to the maximum, and success starts again', async (t) => {
  const retry = { initialMs: 100, maxMs: 1000, factor: 2 };
  const { clock, loop, starts, runs } = setup({ minIntervalMs: 0, retry }, (index) =>
    index < 6 || index === 7 ? new Error(`no ${index}`) : null,
  );
  loop.trigger();
  await clock.advance(4000);
  t.same(starts(), [0, 100, 300, 700, 1500, 2500, 3500]);
  t.ok(
    runs.every((run) => run.full),
    'what failed as a full run stays one',
  );
  loop.trigger();
  await clock.advance(100);
  t.same(starts().slice(7), [4000, 4100], 'from the initial delay again');
  t.equal(runs[8]?.full, false);
  t.equal(clock.waiting, 1, 'only the periodic run waits');
});

t.test('a trigger brings the retry forward, within the minimum interval', async (t) => {
  const retry = { initialMs: 5000, maxMs: 60_000, factor: 2 };
  const { clock, loop, starts } = setup({ retry }, () => new Error('no'));
  loop.trigger();
  await clock.advance(10);
  loop.trigger();
  await clock.advance(990);
  t.same(starts(), [0, 1000], 'at the minimum interval, not at the retry');
  await clock.advance(5000);
  t.same(starts(), [0, 1000, 6000], 'and the delay has not grown');
  await clock.advance(10_000);
  t.same(starts(), [0, 1000, 6000, 16_000], 'the retry itself makes it grow');
});

t.test('a retry keeps the minimum interval', async (t) => {
  const { clock, loop, starts } = setup({}, (index) => (index === 0 ? new Error('no') : null));
  loop.trigger();
  await clock.advance(2000);
  t.same(starts(), [0, 1000]);
});

t.test('the jitter of the loop shortens a delay by a fifth at most', async (t) => {
  const { clock, loop, starts } = setup({ minIntervalMs: 1, random: () => 0.5 }, () => new Error('no'));
  loop.trigger();
  await clock.advance(90);
  t.same(starts(), [0, 90]);
});

t.test('the loop makes a full run each interval after the last one succeeded', async (t) => {
  const { clock, loop, runs } = setup({ minIntervalMs: 0 }, (index) => (index === 2 ? new Error('no') : null));
  loop.trigger();
  await clock.advance(20_000);
  loop.trigger();
  await clock.advance(40_100);
  t.same(
    runs.map(({ at, full }) => [at, full]),
    [
      [0, true],
      [20_000, false],
      [30_000, true],
      [30_100, true],
      [60_100, true],
    ],
    'a partial run does not put it off, a failed one is repeated as full',
  );
});

t.test('a partial run that fails is retried as partial, and as full once that is due', async (t) => {
  const retry = { initialMs: 6000, maxMs: 6000, factor: 2 };
  const { clock, loop, runs } = setup({ retry }, (index) => (index > 0 ? new Error('no') : null));
  loop.trigger();
  await clock.advance(20_000);
  loop.trigger();
  await clock.advance(20_000);
  t.same(
    runs.map(({ at, full }) => [at, full]),
    [
      [0, true],
      [20_000, false],
      [26_000, false],
      [30_000, true],
      [36_000, true],
    ],
  );
});

t.test('a run that throws before it returns a promise is a failed run', async (t) => {
  let calls = 0;
  const run = (): Promise<void> => {
    if (++calls === 1) throw new Error('at once');
    return Promise.resolve();
  };
  const { clock, loop } = setup({ minIntervalMs: 0, run });
  loop.trigger();
  await clock.advance(100);
  t.equal(calls, 2);
  await loop.stop();
});

t.test('stop waits for the run in flight and starts no other', async (t) => {
  const { clock, loop, runs } = setup({ minIntervalMs: 0 }, () => undefined);
  loop.trigger();
  await clock.advance(0);
  loop.trigger();
  let stopped = false;
  const stop = loop.stop().then(() => (stopped = true));
  await clock.advance(1000);
  t.equal(stopped, false);
  runs[0]!.end(new Error('even a failing one'));
  await stop;
  loop.trigger();
  await clock.advance(100_000);
  t.equal(runs.length, 1);
  t.equal(clock.waiting, 0);
});

t.test('stop() of the loop cancels a run that was about to start', async (t) => {
  const { clock, loop, runs } = setup();
  loop.trigger();
  await loop.stop();
  await loop.stop();
  await clock.advance(1000);
  t.equal(runs.length, 0);
});

t.test('a trigger during a run of the loop is not lost', async (t) => {
  const clock = new FakeClock(0);
  let runs = 0;
  const loop = new Loop({
    run: () => {
      if (++runs < 3) loop.trigger();
      return Promise.resolve();
    },
    minIntervalMs: 5,
    fullIntervalMs: 1000,
    retry: { initialMs: 1, maxMs: 1, factor: 1 },
    clock,
    random: () => 0,
  });
  loop.trigger();
  await clock.advance(100);
  t.equal(runs, 3);
});

t.test('work that a run leaves follows after a short pause, without the minimum interval', async (t) => {
  const clock = new FakeClock(0);
  const starts: number[] = [];
  const loop: Loop = new Loop({
    run: () => {
      const start = clock.now();
      starts.push(start);
      if (starts.length > 1 && starts.length < 4) loop.proceed();
      return new Promise((resolve) => void clock.callAt(start + 400, resolve));
    },
    minIntervalMs: 10_000,
    fullIntervalMs: 1_000_000,
    retry: { initialMs: 1, maxMs: 1, factor: 1 },
    clock,
    random: () => 0,
  });
  loop.trigger();
  await clock.advance(1);
  loop.trigger();
  await clock.advance(100_000);
  t.same(starts, [0, 10_000, 10_500, 11_000], 'then nothing is left');
  loop.trigger();
  await clock.advance(0);
  loop.trigger();
  await clock.advance(100_000);
  t.same(starts.slice(4), [100_001, 110_001], 'changes keep the interval again');
});
