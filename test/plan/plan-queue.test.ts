import t from 'tap';
import { PlanQueue } from '../../src/plan/plan-queue.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';

function sized(sizes: Readonly<Record<string, number>>): (service: string) => number {
  return (service) => sizes[service] ?? 1;
}

t.test('Services that fit the budget are planned at once, in their order of arrival', (t) => {
  const queue = new PlanQueue();
  queue.add(['b', 'a', 'b']);
  t.same([...queue.take(10, sized({ b: 9, a: 1 }))], ['b', 'a']);
  t.equal(queue.rest.size, 0);
  queue.add(['c']);
  t.same([...queue.take(10, sized({ c: 11 }))], ['c'], 'one alone, whatever its size');
  queue.add(['d', 'e']);
  t.same([...queue.take(Infinity, sized({ d: 100, e: 100 }))], ['d', 'e']);
  t.end();
});

t.test('small Services are planned first; every other plan is the one that waited longest', (t) => {
  const queue = new PlanQueue();
  const size = sized({ large1: 30, large2: 20, large3: 40, small: 1, other: 2 });
  queue.add(['large1', 'large2', 'large3', 'small']);
  t.same([...queue.take(10, size)], ['small']);
  t.same([...queue.rest], ['large1', 'large2', 'large3']);
  queue.add(['other', 'large1']);
  t.same([...queue.take(10, size)], ['large1', 'other'], 'a change of one that waits does not put it back');
  t.same([...queue.take(10, size)], ['large2'], 'at least one');
  queue.clear();
  t.equal(queue.take(10, size).size, 0);
  t.end();
});

t.test('large Services are planned together up to the budget, and not together with small ones', (t) => {
  const queue = new PlanQueue();
  const size = sized({ m1: 4, m2: 4, m3: 4, m4: 4, m5: 4, m6: 4 });
  queue.add(['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'small']);
  t.same([...queue.take(10, size)], ['small'], 'although two more would fit');
  queue.add(['other']);
  t.same([...queue.take(10, size)], ['m1', 'other'], 'the one that waited longest');
  t.same([...queue.take(10, size)], ['m2', 'm3']);
  t.same([...queue.take(10, size)], ['m4', 'm5'], 'no more with the one that waited longest');
  t.same([...queue.take(10, size)], ['m6']);
  t.end();
});

t.test('no Service waits for ever for its plan, a small one never for more than one large one', (t) => {
  const random = new SeededRandom(25);
  for (let round = 0; round < rounds(100); round++) {
    const queue = new PlanQueue();
    const most = 100;
    const size = (service: string): number => (service.startsWith('large') ? 200 + (service.length % 7) * 50 : 1);
    const larges = Array.from({ length: 1 + random.below(20) }, (_, index) => `large${'x'.repeat(index)}`);
    queue.add(larges);
    const taken = new Set<string>();
    let plans = 0;
    for (; larges.some((each) => !taken.has(each)); plans++) {
      queue.add(Array.from({ length: random.below(20) }, (_, index) => `small-${plans}-${index}`));
      const now = [...queue.take(most, size)];
      t.ok(now.filter((each) => each.startsWith('large')).length <= 1);
      t.notOk([...queue.rest].some((each) => each.startsWith('small')));
      for (const each of now) taken.add(each);
      if (plans > 1000) break;
    }
    t.ok(plans <= 2 * larges.length, `${larges.length} large ones in ${plans} plans`);
  }
  t.end();
});
