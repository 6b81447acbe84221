import t from 'tap';
import { percentages } from '../../src/plan/balance.js';
import { Planner } from '../../src/plan/planner.js';
import type { EndpointSliceRow, Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings } from '../support/plan-settings.js';
import { service, slice, type EndpointText } from '../support/rows.js';

const ASKS = { by: null, slowStartSeconds: 30, unreadable: [] } as const;

/** A planner on a clock that the test moves, and a Service that asks for slow start. */
class Scene {
  now = 100_000;
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  readonly planner = new Planner(planSettings(), () => this.now);

  constructor(endpoints: readonly EndpointText[]) {
    this.put(service('web', { balance: ASKS }), pods(endpoints));
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
    this.plan();
  }

  /** How many Services are planned for it. */
  plan(): number {
    const steps = this.planner.plan(this.store.snapshot, this.store.takeChanges());
    let count = 0;
    while (steps.next().done !== true) count++;
    return count;
  }

  /** Of each endpoint, in per cent. */
  get shares(): readonly number[] {
    const balance = this.planner.tables.IPv4.frontend('10.96.0.10:80/TCP')?.balance ?? null;
    return balance === null ? [] : percentages(balance.endpoints).map((share) => Math.round(share));
  }
}

function pods(endpoints: readonly EndpointText[]): EndpointSliceRow {
  return slice('web', endpoints);
}

const OLD = [{ address: '10.0.0.1' }, { address: '10.0.0.2' }];
const NEW = { address: '10.0.0.3' };

t.test('an endpoint that becomes ready reaches its weight in ten steps', (t) => {
  const scene = new Scene(OLD);
  t.same(scene.shares, [50, 50], 'those that were there at the start have come to theirs');
  t.equal(scene.planner.dueAt, null);
  scene.put(pods([...OLD, NEW]));
  t.same(scene.shares, [47, 48, 5], 'a tenth of the weight of others');
  const seen: number[] = [];
  for (let step = 0; step < 9; step++) {
    const due = scene.planner.dueAt ?? t.fail('nothing is due');
    t.ok(Number(due) > scene.now, 'the next step is in the future');
    scene.now = Number(due) - 1;
    t.equal(scene.plan(), 0, 'nothing is planned before it is due');
    scene.now = Number(due);
    t.equal(scene.plan(), 1);
    seen.push(scene.shares[2] ?? 0);
  }
  t.same(seen, [9, 13, 17, 20, 23, 26, 29, 31, 33]);
  t.equal(scene.now, 130_000, 'in the time that it has');
  t.equal(scene.planner.dueAt, null, 'and that is all');
  t.end();
});

t.test('an endpoint that becomes ready again restarts its slow start, and others continue', (t) => {
  const scene = new Scene(OLD);
  scene.put(pods([...OLD, { ...NEW, state: 's' }]));
  t.same(scene.shares, [50, 50]);
  scene.now += 60_000;
  scene.put(pods([...OLD, NEW]));
  t.same(scene.shares, [47, 48, 5], 'it counts from when it is ready');
  scene.now += 15_000;
  scene.plan();
  t.same(scene.shares, [40, 40, 20]);
  scene.put(pods([...OLD, { ...NEW, state: 's' }]));
  scene.put(pods([...OLD, NEW]));
  t.same(scene.shares, [47, 48, 5]);
  t.end();
});

t.test('if all endpoints are new they start without delay', (t) => {
  const scene = new Scene([]);
  scene.put(pods(OLD));
  t.same(scene.shares, [50, 50]);
  scene.now += 9000;
  scene.put(pods([...OLD, NEW]));
  t.same(scene.shares, [43, 43, 14], 'a third and a tenth of their weights');
  t.end();
});

t.test('slow start steps of many endpoints are taken together', (t) => {
  const scene = new Scene(OLD);
  for (let index = 0; index < 20; index++) {
    scene.now += 10;
    scene.put(pods([...OLD, ...Array.from({ length: index + 1 }, (_, place) => ({ address: `10.0.1.${place}` }))]));
  }
  let plans = 0;
  for (let { dueAt } = scene.planner; dueAt !== null; { dueAt } = scene.planner) {
    scene.now = dueAt;
    scene.plan();
    plans++;
  }
  t.ok(plans <= 20, `${plans} plans for 180 steps`);
  t.end();
});

t.test('a Service that is deleted, or loses its slow start, has no step due', (t) => {
  const scene = new Scene(OLD);
  scene.put(pods([...OLD, NEW]));
  t.not(scene.planner.dueAt, null);
  scene.put(service('web'));
  t.equal(scene.planner.dueAt, null);
  t.same(scene.shares, []);
  scene.put(service('web', { balance: ASKS }));
  t.same(scene.shares, [33, 33, 33], 'asked for later: all are there already');
  t.end();
});
