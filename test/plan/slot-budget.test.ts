import t from 'tap';
import { SlotBudget } from '../../src/plan/slot-budget.js';

t.test('the oldest Services get slots, in any order of arrival', (t) => {
  for (const order of [
    [1, 2, 3, 4],
    [4, 3, 2, 1],
    [3, 1, 4, 2],
  ]) {
    const budget = new SlotBudget(1000);
    for (const age of order) {
      budget.set(`default/s${age}`, age, 400);
      budget.decide();
    }
    t.same(
      [1, 2, 3, 4].map((age) => budget.has(`default/s${age}`)),
      [true, true, false, false],
      order.join(),
    );
  }
  t.end();
});

t.test('Services that get or lose slots are reported once', (t) => {
  const budget = new SlotBudget(1000);
  budget.set('default/b', 2, 600);
  budget.set('default/a', 2, 300);
  t.same(budget.decide(), []);
  budget.set('default/old', 1, 500);
  t.same(budget.decide(), ['default/b']);
  t.same([budget.has('default/a'), budget.has('default/b')], [true, false], 'as old as the other and first by name');
  t.same(budget.decide(), []);
  budget.set('default/old', 1, 500);
  t.same(budget.decide(), [], 'nothing changed');
  budget.set('default/old', 1, 0);
  t.same(budget.decide(), ['default/b']);
  budget.setMost(200);
  t.same([...budget.decide()].sort(), ['default/a', 'default/b']);
  t.equal(budget.has('default/other'), true, 'one that does not ask');
  budget.set('default/late', null, 1);
  t.same(budget.decide(), ['default/late'], 'one of which no age is known comes last');
  t.end();
});
