// Long work makes room for short work.
import t from 'tap';
import { Turns, type Work } from '../src/turns.js';

/** Of so many pauses; notes each step. */
function* work(name: string, pauses: number, steps: string[]): Work<string> {
  for (let step = 0; step < pauses; step++) {
    steps.push(name);
    yield;
  }
  steps.push(`${name} done`);
  return name;
}

const WANTED = (): boolean => true;

t.test('short work is done at once, long work a step in each turn, the oldest first', async (t) => {
  const turns = new Turns(1000);
  const steps: string[] = [];
  const long = [turns.run(work('a', 3, steps), 1, WANTED), turns.run(work('b', 2, steps), 1, WANTED)];
  const short = turns.run(work('c', 0, steps), 1, WANTED);
  t.same(steps, ['a', 'b', 'c done']);
  await new Promise((resolve) => setImmediate(resolve));
  const between = turns.run(work('d', 0, steps), 1, WANTED);
  t.same(await Promise.all([...long, short, between]), ['a', 'b', 'c', 'd']);
  t.same(steps, ['a', 'b', 'c done', 'a', 'd done', 'a', 'a done', 'b', 'b done']);
});

t.test('beyond the limit of memory the oldest work is finished at once', async (t) => {
  const turns = new Turns(10);
  const steps: string[] = [];
  const first = turns.run(work('a', 2, steps), 6, WANTED);
  const second = turns.run(work('b', 2, steps), 5, WANTED);
  t.same(steps, ['a', 'b', 'a', 'a done']);
  await Promise.all([first, second]);
  const large = turns.run(work('large', 2, steps), 11, WANTED);
  t.equal(steps.at(-1), 'large done');
  await large;
});

t.test('work that is not wanted any more, or that fails, ends alone', async (t) => {
  const turns = new Turns(1000);
  const steps: string[] = [];
  let isWanted = true;
  const gone = turns.run(work('gone', 5, steps), 1, () => isWanted);
  function* failing(): Work<string> {
    yield;
    throw new Error('fails');
  }
  const failed = turns.run(failing(), 1, WANTED);
  const other = turns.run(work('other', 1, steps), 1, WANTED);
  isWanted = false;
  t.equal(await gone, null);
  await t.rejects(failed, { message: 'fails' });
  t.equal(await other, 'other');
  t.equal(steps.filter((step) => step === 'gone').length, 1);
});
