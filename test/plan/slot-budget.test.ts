import t from 'tap';
import { SlotBudget } from '../../src/plan/slot-budget.js';

function budgetOf(most: number, asking: Readonly<Record<string, readonly [age: number, slots: number]>>): SlotBudget {
  const budget = new SlotBudget(most);
  for (const [service, [age, slots]] of Object.entries(asking)) budget.set(service, age, slots);
  budget.decide();
  return budget;
}

function having(budget: SlotBudget, ...services: readonly string[]): readonly string[] {
  return services.filter((service) => budget.has(service));
}

t.test('of Services that ask together the oldest get slots, in any order of arrival', (t) => {
  for (const order of [
    [1, 2, 3, 4],
    [4, 3, 2, 1],
    [3, 1, 4, 2],
  ]) {
    const budget = budgetOf(1000, Object.fromEntries(order.map((age) => [`default/s${age}`, [age, 400]])));
    t.same(having(budget, ...order.map((age) => `default/s${age}`)).toSorted(), ['default/s1', 'default/s2']);
  }
  t.end();
});

t.test('older Services take no slots from tables in force', (t) => {
  const budget = budgetOf(1000, { 'victim/web': [9, 100], 'other/web': [8, 600] });
  for (const age of [1, 2, 3]) budget.set(`attack/s${age}`, age, 300);
  t.same([...budget.decide()].toSorted(), ['attack/s2', 'attack/s3']);
  t.same(having(budget, 'victim/web', 'other/web', 'attack/s1'), ['victim/web', 'other/web', 'attack/s1']);
  budget.set('other/web', 8, 400);
  t.same(budget.decide(), [], 'it keeps fewer, and what is left is too small for another');
  budget.set('victim/web', 9, 400);
  t.equal(budget.has('attack/s1'), true);
  t.end();
});

t.test('a namespace within its share of slots is served before those with more', (t) => {
  const budget = budgetOf(1000, { 'attack/s1': [1, 350], 'attack/s2': [2, 350], 'attack/s3': [3, 300] });
  t.same(having(budget, 'attack/s1', 'attack/s2', 'attack/s3').length, 3, 'nobody else asks');
  budget.set('victim/web', 9, 200);
  const changed = budget.decide();
  t.equal(budget.has('victim/web'), true);
  t.same(changed, ['attack/s3'], 'the others stay');
  budget.set('victim/web', 9, 250);
  t.same(budget.decide(), []);
  t.equal(budget.has('victim/web'), true, 'it has a quarter');
  t.end();
});

t.test('a node that starts gives slots to namespaces with few before those with many', (t) => {
  const asking = { 'attack/s1': [1, 500], 'attack/s2': [2, 400], 'few/web': [7, 260], 'less/web': [8, 20] } as const;
  const all = Object.keys(asking);
  t.same(having(budgetOf(1000, asking), ...all), ['attack/s1', 'few/web', 'less/web']);
  t.end();
});

t.test('a request for more slots than are left ends nothing for those after it', (t) => {
  const budget = budgetOf(1000, { 'a/large': [1, 5000], 'a/s': [2, 100], 'b/s': [3, 600], 'c/s': [4, 300] });
  t.same(having(budget, 'a/large', 'a/s', 'b/s', 'c/s'), ['a/s', 'b/s', 'c/s']);
  t.end();
});

t.test('Services that get or lose slots are reported once', (t) => {
  const budget = new SlotBudget(1000);
  budget.set('default/b', 2, 600);
  budget.set('default/a', 2, 300);
  t.same(budget.decide(), []);
  budget.set('default/old', 1, 500);
  t.same(budget.decide(), ['default/old'], 'the others are in force');
  t.same(budget.decide(), []);
  budget.set('default/old', 1, 500);
  t.same(budget.decide(), [], 'nothing changed');
  budget.set('default/b', 2, 0);
  t.same(budget.decide(), ['default/old']);
  budget.setMost(200);
  t.same([...budget.decide()].sort(), ['default/a', 'default/old']);
  t.equal(budget.has('default/other'), true, 'one that does not ask');
  t.end();
});

t.test('a Service of which no age is known gets slots after the others of its namespace', (t) => {
  const budget = new SlotBudget(300);
  budget.set('default/late', null, 200);
  budget.set('default/web', 5, 200);
  budget.decide();
  t.same(having(budget, 'default/late', 'default/web'), ['default/web']);
  t.end();
});
