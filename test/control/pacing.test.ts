import t from 'tap';
import { Loop } from '../../src/control/loop.js';
import { Pacing } from '../../src/control/pacing.js';
import { FakeClock } from '../support/fake-clock.js';
import { SeededRandom } from '../support/random.js';

interface Run {
  readonly start: number;
  readonly end: number;
}

interface Cost {
  readonly ms: number;
  readonly fails?: boolean;
}

/** A loop without a minimum interval, whose runs take the time of the fake clock that `cost` says. */
function paced(cost: (full: boolean, index: number) => Cost): {
  readonly clock: FakeClock;
  readonly loop: Loop;
  readonly runs: Run[];
} {
  const clock = new FakeClock(0);
  const runs: Run[] = [];
  const loop = new Loop({
    run: ({ full }) =>
      new Promise((resolve, reject) => {
        const start = clock.now();
        const { ms, fails } = cost(full, runs.length);
        clock.callAt(start + ms, () => {
          runs.push({ start, end: clock.now() });
          if (fails === true) reject(new Error('no'));
          else resolve();
        });
      }),
    minIntervalMs: 0,
    fullIntervalMs: 30_000,
    retry: { initialMs: 100, maxMs: 30_000, factor: 2 },
    clock,
    random: () => 0,
  });
  return { clock, loop, runs };
}

/** Triggers every 3 milliseconds for some time; how long each trigger waited for the end of the run that took it. */
async function flood({ clock, loop, runs }: ReturnType<typeof paced>, ms: number): Promise<number[]> {
  const triggers: number[] = [];
  for (const end = clock.now() + ms; clock.now() < end;) {
    triggers.push(clock.now());
    loop.trigger();
    await clock.advance(3);
  }
  await clock.advance(5000);
  return triggers.map((at) => (runs.find(({ start }) => start >= at)?.end ?? Infinity) - at);
}

t.test('the first change after a pause starts at once, the next after a pause as long as the last run', async (t) => {
  const { clock, loop, runs } = paced((full) => ({ ms: full ? 0 : 24 }));
  loop.trigger();
  await clock.advance(1000);
  for (let i = 0; i < 3; i++) {
    loop.trigger();
    await clock.advance(1);
    loop.trigger();
    await clock.advance(200);
  }
  t.same(
    runs.slice(1).map(({ start }) => start),
    [1000, 1048, 1201, 1249, 1402, 1450],
  );
});

t.test('a burst with runs of 24 ms is synced within 100 ms, whatever was compared before', async (t) => {
  for (const first of [0, 24, 800, 5000]) {
    const world = paced((full) => ({ ms: full ? first : 24 }));
    world.loop.trigger();
    await world.clock.advance(first);
    const [soonest = Infinity, ...others] = await flood(world, 3000);
    t.ok(soonest <= 100 + 24, `the first after ${first} ms waited ${soonest} ms`);
    const longest = Math.max(...others.slice(100));
    t.ok(longest <= 100, `after ${first} ms: ${longest}`);
  }
});

t.test('a comparison of everything delays the next change by 100 ms at the most', async (t) => {
  for (const [took, rest] of [
    [800, 100],
    [30, 30],
  ] as const) {
    const { clock, loop, runs } = paced((full) => ({ ms: full ? took : 5 }));
    loop.trigger();
    await clock.advance(10);
    loop.trigger();
    await clock.advance(2000);
    t.equal(runs[1]?.start, took + rest, `${took} ms`);
  }
});

t.test('a repair delays changes no more than a comparison does, and does not rest itself', async (t) => {
  const { clock, loop, runs } = paced((full, index) => ({ ms: full ? 0 : index === 1 ? 800 : 5 }));
  loop.trigger();
  await clock.advance(1000);
  loop.triggerNow();
  await clock.advance(10);
  loop.trigger();
  await clock.advance(895);
  t.equal(runs[2]?.start, 1900);
  loop.triggerNow();
  await clock.advance(10);
  t.equal(runs[3]?.start, 1905, 'right after the change');
});

t.test('a flood takes at most half of the time, whatever the cost and the result of its runs', (t) => {
  const random = new SeededRandom(7);
  for (let story = 0; story < 200; story++) {
    const change = random.pick([0.3, 1, 8, 24, 200, 900]);
    const comparison = random.pick([1, 50, 800, 4000]);
    const failing = random.pick([0, 0, 0.1, 0.5, 1]);
    const pacing = new Pacing();
    let [now, nextFull, spent] = [0, 0, 0];
    for (let run = 0; run < 3000; run++) {
      const startedAt = Math.max(now, pacing.earliest);
      const full = startedAt >= nextFull;
      const took = (full ? comparison : change) * (0.5 + random.below(100) / 100);
      const success = !random.chance(failing);
      now = startedAt + took;
      spent += took;
      if (full && success) nextFull = now + 30_000;
      pacing.ended({ startedAt, finishedAt: now, extra: full && success });
      const most = full && success ? 100 : 2 * took;
      if (pacing.earliest - now > most + 1e-6) t.fail(`a rest of ${pacing.earliest - now} ms after ${took} ms`);
    }
    const title = `changes ${change} ms, comparisons ${comparison} ms, failing ${failing}`;
    t.ok(spent <= now / 2 + 1.5 * Math.max(change, comparison), `${title}: ${spent} of ${now} ms`);
    t.ok(spent >= now / 4, `${title}: and no less than it may`);
  }
  t.end();
});

t.test('a failed run is retried with its backoff, and a flood of failures rests as well', async (t) => {
  const alone = paced((_full, index) => ({ ms: 10, fails: index < 3 }));
  alone.loop.trigger();
  await alone.clock.advance(2000);
  t.same(
    alone.runs.map(({ start }) => start),
    [0, 110, 320, 730],
    'the backoff is longer than the rest',
  );
  const long = paced((_full, index) => ({ ms: 800, fails: index === 0 }));
  long.loop.trigger();
  await long.clock.advance(5000);
  t.same(
    long.runs.map(({ start }) => start),
    [0, 1600],
    'the rest is longer than the backoff',
  );
});

t.test('a configured interval is obeyed, and pacing resumes when it is removed', async (t) => {
  const { clock, loop, runs } = paced(() => ({ ms: 50 }));
  loop.setIntervals({ minIntervalMs: 60, fullIntervalMs: 30_000 });
  loop.trigger();
  await clock.advance(10);
  loop.trigger();
  await clock.advance(500);
  t.same(
    runs.map(({ start }) => start),
    [0, 60],
  );
  loop.trigger();
  await clock.advance(10);
  loop.setIntervals({ minIntervalMs: 0, fullIntervalMs: 30_000 });
  loop.trigger();
  await clock.advance(500);
  t.same(
    runs.slice(2).map(({ start }) => start),
    [510, 610],
  );
});
