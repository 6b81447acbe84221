// One Service with the most slots and endpoints costs others little: its tables are made from those before, in steps that several plans share.
import t from 'tap';
import { MOST_PAIRS, Planner } from '../../src/plan/planner.js';
import { planService } from '../../src/plan/service-plan.js';
import type { EndpointSliceRow, Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { cpuTime } from '../support/cpu-time.js';
import { planSettings } from '../support/plan-settings.js';
import { service, slice } from '../support/rows.js';

const NODE = { name: 'me', zone: null, addresses: { IPv4: null, IPv6: null }, ranges: null };
const HASHED = { by: 'address', unreadable: [] } as const;
const SETTINGS = planSettings();
/** The most that one sync of changes takes. */
const MOST = 20_000;
const ENDPOINTS = 818;
const PORTS = Array.from({ length: 12 }, (_, index) => ({ name: `p${index}`, port: 80 + index }));
const ATTACK = service('attack', { clusterIPs: ['10.96.0.1'], ports: PORTS });

/** A slice of one endpoint with a weight of its own. @param ports numbers that the pods listen on. */
function weighted(index: number, weight: number, ports: readonly { name: string; port: number }[] = PORTS): Row {
  const [name, address] = [`s${String(index).padStart(4, '0')}`, `10.1.${index >> 8}.${index & 255}`];
  return { ...slice('attack', [{ address }], { name, ports }), weight };
}

function small(number: number): Row {
  return service(`small-${number}`, { clusterIPs: [`10.96.2.${number}`] });
}

class World {
  readonly store = new Store();
  readonly planner = new Planner(SETTINGS);
  private readonly writer = this.store.register('test');

  constructor(rows: readonly Row[]) {
    this.put(...rows);
    this.writer.complete();
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  }

  /** One plan; the number of its steps. */
  plan(most = MOST): number {
    const steps = this.planner.plan(this.store.snapshot, this.store.takeChanges(), most);
    let count = 0;
    while (steps.next().done !== true) count++;
    return count;
  }

  get isDeferred(): boolean {
    return this.planner.tables.IPv4.deferred.has('default/attack');
  }

  has(name: string): boolean {
    return this.planner.tables.IPv4.plan(`default/${name}`) !== undefined;
  }

  weightsInForce(): readonly (readonly number[] | undefined)[] {
    const frontends = this.planner.tables.IPv4.plan('default/attack')?.frontends ?? [];
    return frontends.map(({ balance }) => balance?.endpoints.weights);
  }

  /** The plan is that of a node that knows nothing of the past. */
  isExact(): boolean {
    const slices = this.store.snapshot.slicesOf('default/attack');
    const fresh = planService('IPv4', ATTACK, slices, NODE, SETTINGS)?.frontends ?? [];
    const held = this.planner.tables.IPv4.plan('default/attack')?.frontends ?? [];
    return fresh.every(({ balance }, index) => {
      const [wanted, have] = [balance?.endpoints.slots, held[index]?.balance?.endpoints.slots];
      return wanted?.length === 8191 && wanted.join() === have?.join();
    });
  }
}

function distinct(factor = 1, ports = PORTS): readonly Row[] {
  return Array.from({ length: ENDPOINTS }, (_, index) => weighted(index, factor * (1 + index), ports));
}

t.test('a changed weight of one of 818 endpoints costs a small part of twelve tables of slots', async (t) => {
  const world = new World([ATTACK, ...distinct(), small(0)]);
  let [steps, changed] = [0, 0];
  const whole = await cpuTime(() => (steps = world.plan(Infinity)));
  world.put(weighted(400, 7));
  const one = await cpuTime(() => (changed = world.plan()));
  t.comment(`all: ${steps} steps, ${whole} ms; one weight: ${changed} steps, ${one} ms`);
  t.ok(steps > 150, 'made in slices');
  t.ok(changed < 10, `${changed} steps`);
  t.notOk(world.isDeferred);
  t.ok(world.isExact());
  t.end();
});

t.test('no step of making tables of slots takes more than a part of one table', (t) => {
  const world = new World([ATTACK, ...distinct()]);
  const steps = world.planner.plan(world.store.snapshot, world.store.takeChanges());
  const times: number[] = [];
  for (;;) {
    const before = process.cpuUsage().user;
    if (steps.next().done === true) break;
    times.push(process.cpuUsage().user - before);
  }
  const sum = times.reduce((all, each) => all + each, 0);
  // The first step plans the Service without its tables.
  const longest = Math.max(...times.slice(13));
  t.comment(`${times.length} steps, ${sum / 1000} ms, the longest ${longest / 1000} ms`);
  // A table is a twelfth. A collection of garbage may come into one step.
  t.ok(longest < sum / 6, `${longest / 1000} of ${sum / 1000} ms`);
  t.end();
});

t.test('while very many slots change, each plan has the small changes of others and a part of the tables', (t) => {
  const world = new World([ATTACK, ...distinct(), small(0)]);
  world.plan(Infinity);
  world.put(...distinct(3), weighted(0, 17), small(1));
  let plans = 0;
  do {
    world.put(small(10 + plans));
    const steps = world.plan();
    t.ok(steps <= MOST_PAIRS / 2 ** 19 + 20, `${steps} steps`);
    t.ok(world.has(`small-${10 + plans}`));
    if (world.isDeferred) t.equal(world.weightsInForce()[0]?.[1], 2, 'the former plan is in force');
    plans++;
  } while (world.isDeferred && plans < 50);
  t.comment(`${plans} plans`);
  t.ok(plans > 2 && plans < 30);
  t.same(
    world.weightsInForce().map((weights) => weights?.[1]),
    PORTS.map(() => 6),
  );
  t.ok(world.isExact());
  t.end();
});

t.test('a Service whose weights all change before each plan gets its tables of slots in the end', (t) => {
  const world = new World([ATTACK, ...distinct()]);
  world.plan(Infinity);
  const seen = new Set<number | undefined>();
  for (let round = 2; round < 26; round++) {
    world.put(...distinct(round));
    world.plan();
    seen.add(world.weightsInForce()[0]?.[0]);
  }
  t.ok(seen.size >= 3, [...seen].join());
  for (let plans = 0; world.isDeferred && plans < 30; plans++) world.plan();
  t.equal(world.weightsInForce()[0]?.[0], 25);
  t.ok(world.isExact());
  t.end();
});

t.test('a Service that goes while its tables of slots are made is gone with the next plan', (t) => {
  const world = new World([ATTACK, ...distinct(), small(0)]);
  world.plan(Infinity);
  world.put(...distinct(3));
  world.plan();
  t.ok(world.isDeferred);
  world.put({ ...ATTACK, clusterIPs: [] });
  for (let plans = 0; world.isDeferred && plans < 30; plans++) world.plan();
  t.notOk(world.has('attack'), 'without an address it has no plan');
  t.end();
});

t.test('ports with the same endpoints and weights share one table of slots', (t) => {
  const same = PORTS.map(({ name }) => ({ name, port: 8080 }));
  const world = new World([ATTACK, ...distinct(1, same)]);
  const steps = world.plan(Infinity);
  t.ok(steps < 16, `${steps} steps`);
  const tables = world.planner.tables.IPv4.plan('default/attack')?.frontends ?? [];
  t.equal(new Set(tables.map(({ balance }) => balance?.endpoints.slots)).size, 1);
  t.ok(world.isExact());
  t.end();
});

t.test('the time of planning a Service with hashing grows with its ports, not with their square', async (t) => {
  const ports = Array.from({ length: 5000 }, (_, index) => ({ name: `p${index}`, port: 1 + index }));
  const slices: readonly EndpointSliceRow[] = [slice('web', [{ address: '10.1.0.1' }], { ports })];
  const time = async (hashed: boolean): Promise<number> => {
    const row = service('web', { ports, ...(hashed ? { balance: HASHED } : {}) });
    const times: number[] = [];
    for (let round = 0; round < 3; round++)
      times.push(await cpuTime(() => planService('IPv4', row, slices, NODE, SETTINGS)));
    return Math.min(...times);
  };
  const [calm, hashed] = [await time(false), await time(true)];
  t.comment(`${calm} ms, with hashing ${hashed} ms`);
  t.ok(hashed < 5 * calm, `${calm} ms, with hashing ${hashed} ms`);
  t.end();
});
