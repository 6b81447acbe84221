// What is to take a share of the time, and what holds it up for once.
import t from 'tap';
import { TimeBudget } from '../../src/dataplane/time-budget.js';

/** TimeBudget of a hundredth of the time, and after how much of it each is due again. */
class Scene {
  private time = 1000;
  private readonly budget = new TimeBudget(() => this.time, 0.01);

  /** @returns milliseconds from the end of one that takes so long to the next. */
  async take(milliseconds: number, fails = false): Promise<number> {
    const work = (): Promise<void> => {
      this.time += milliseconds;
      return fails ? Promise.reject(new Error('no')) : Promise.resolve();
    };
    await this.budget.take(work).catch(() => undefined);
    const ended = this.time;
    while (!this.budget.isDue) this.time++;
    return this.time - ended;
  }
}

t.test('time budget: the next run is due when the last has used its share', async (t) => {
  const scene = new Scene();
  t.equal(await scene.take(10), 990);
  t.equal(await scene.take(10), 990);
  t.equal(await scene.take(5), 495, 'less at once');
  t.equal(await scene.take(5, true), 495, 'whether it fails or not');
});

t.test('time budget: where a cost is given, the time of waiting does not count', async (t) => {
  let [time, cost] = [1000, 0];
  const budget = new TimeBudget(
    () => time,
    0.01,
    () => cost,
  );
  await budget.take(() => {
    [time, cost] = [time + 60_000, cost + 10];
    return Promise.resolve();
  });
  t.ok(budget.isDue, 'its share has passed meanwhile');
  await budget.take(() => {
    cost += 10;
    return Promise.resolve();
  });
  time += 999;
  t.notOk(budget.isDue);
  time++;
  t.ok(budget.isDue);
});

t.test('time budget: one delayed run does not delay the next', async (t) => {
  const scene = new Scene();
  await scene.take(10);
  t.equal(await scene.take(10_000), 0, 'as long as it took, its share has passed');
  t.equal(await scene.take(10), 990, 'it was held up for once');
  t.equal(await scene.take(300), 700);
  t.equal(await scene.take(300), 29_700, 'that was no chance');
});
