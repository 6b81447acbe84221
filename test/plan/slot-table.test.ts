import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import type { IPAddress } from '../../src/base/ip.js';
import { slotCounts } from '../../src/plan/balance.js';
import { MOST_TABLE_ENDPOINTS, slotTable, tableSize, tableSteps, type SlotTable } from '../../src/plan/slot-table.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';

const random = new SeededRandom(Number(process.env['POINTSMAN_SLOTS_SEED'] ?? 30));

/** Endpoints as a cluster has them: neighbours in one range. */
function endpoints(count: number): EndpointList {
  const first = random.below(0xffff - count);
  const addresses = Array.from(
    { length: count },
    (_, index) => `10.1.${(first + index) >> 8}.${(first + index) & 255}`,
  );
  return EndpointList.of(
    'IPv4',
    addresses.map((address) => ({ address: address as IPAddress, port: 8080 })),
  );
}

function without({ family, packed }: EndpointList, place: number): EndpointList {
  const bytes = [...packed];
  bytes.splice(place * 6, 6);
  return new EndpointList(family, Uint8Array.from(bytes));
}

function made(list: EndpointList, weights: readonly number[], size = tableSize(list.count) ?? 0): Uint16Array {
  return slotTable(list, weights, size);
}

function equal(count: number): readonly number[] {
  return new Array<number>(count).fill(1);
}

/** The endpoint of each slot. */
function owners(list: EndpointList, slots: Uint16Array): readonly string[] {
  const names = list.toStrings();
  return [...slots].map((place) => names[place] ?? 'none');
}

/** The part of the slots that move although their endpoint stays. */
function needless(list: EndpointList, weights: readonly number[], place: number): number {
  const size = tableSize(list.count) ?? 0;
  const before = owners(list, made(list, weights, size));
  const rest = without(list, place);
  const after = owners(rest, made(rest, weights.toSpliced(place, 1), size));
  const gone = list.toStrings()[place];
  return before.filter((owner, slot) => owner !== gone && owner !== after[slot]).length / size;
}

t.test('a slot table has the next of six primes from 20 slots for each endpoint', (t) => {
  t.same([0, 1, 2, 12, 13, 25, 26, 51, 52, 409].map(tableSize), [1, 1, 251, 251, 509, 509, 1021, 1021, 2039, 8191]);
  t.equal(tableSize(MOST_TABLE_ENDPOINTS), 8191);
  t.equal(tableSize(MOST_TABLE_ENDPOINTS + 1), null);
  for (const count of [2, 13, 26, 52, 103, 205]) {
    const size = tableSize(count) ?? 0;
    const divisor = Array.from({ length: Math.ceil(Math.sqrt(size)) }, (_, index) => index + 2).find(
      (each) => size % each === 0,
    );
    t.equal(divisor, undefined, `${size} is a prime`);
  }
  t.end();
});

t.test('equal endpoints have equal shares, off by one slot at most', (t) => {
  for (const count of [1, 2, 3, 10, 12, 13, 50, 204, 409, MOST_TABLE_ENDPOINTS]) {
    const list = endpoints(count);
    const table = made(list, equal(count));
    const counts = slotCounts(list.count, table);
    t.equal(
      Math.max(...counts) - Math.min(...counts) <= 1,
      true,
      `${count}: ${Math.min(...counts)}…${Math.max(...counts)}`,
    );
    t.equal(
      counts.reduce((sum, each) => sum + each, 0),
      table.length,
    );
  }
  t.end();
});

t.test('shares of slots follow weights within one slot, and the least weight has a slot', (t) => {
  for (let round = 0; round < rounds(200); round++) {
    const count = 2 + random.below(60);
    const weights = Array.from({ length: count }, () => 1 + random.below(20));
    const list = endpoints(count);
    const table = made(list, weights);
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    const off = slotCounts(list.count, table).filter((have, place) => {
      const exact = ((weights[place] ?? 0) * table.length) / all;
      return Math.abs(have - exact) >= 1 && !(exact < 1 && have === 1);
    });
    // Those that are lifted to one slot take theirs from the others, one each at most.
    t.same(off, [], `weights ${weights.join()}`);
  }
  const counts = slotCounts(12, made(endpoints(12), [65_535, ...equal(11)]));
  t.same(counts, [240, ...equal(11)]);
  t.same(slotCounts(4, made(endpoints(4), [1, 2, 5, 8])), [16, 31, 78, 126]);
  t.end();
});

function movesFew(t: Test, count: number, weightOf: (place: number) => number): void {
  const moved: number[] = [];
  for (let round = 0; round < rounds(100); round++) {
    const list = endpoints(count);
    const weights = Array.from({ length: count }, (_, place) => weightOf(place));
    moved.push(needless(list, weights, random.below(count)));
  }
  const mean = moved.reduce((sum, each) => sum + each, 0) / moved.length;
  const most = Math.max(...moved);
  t.comment(`${count}: mean ${(mean * 100).toFixed(1)} %, most ${(most * 100).toFixed(1)} %`);
  t.equal(mean <= 0.05, true, `${count} endpoints: ${(mean * 100).toFixed(1)} % in the mean`);
  t.equal(most <= 0.07, true, `${count} endpoints: ${(most * 100).toFixed(1)} % at most`);
}

t.test('a removed endpoint moves few slots of the others', (t) => {
  movesFew(t, 10, () => 1);
  movesFew(t, 50, () => 1);
  movesFew(t, 10, (place) => 1 + ((place * 7) % 5));
  t.equal(needless(endpoints(2), [1, 1], 0), 0, 'of two nothing but its own');
  t.end();
});

t.test('a changed weight moves few slots between the others', (t) => {
  const list = endpoints(10);
  const before = made(list, equal(10));
  const after = made(list, [0.1, ...equal(9)]);
  const moved = before.filter((place, slot) => place !== 0 && place !== after[slot]).length;
  t.equal(moved <= 0.1 * 251, true, `${moved} of 251`);
  t.end();
});

t.test('two nodes with different histories have the same slot table, byte for byte', (t) => {
  // Whatever a node planned before leaves nothing behind, and the list is sorted: the same list and weights are all there is.
  const list = endpoints(10);
  const first = made(list, equal(10));
  let other = list;
  for (let place = 0; place < 5; place++) {
    other = without(list, place);
    made(other, equal(9));
  }
  t.same(made(new EndpointList('IPv4', Uint8Array.from(list.packed)), equal(10)), first);
  const golden = EndpointList.of(
    'IPv4',
    [1, 2, 3].map((last) => ({ address: `10.1.0.${last}` as IPAddress, port: 80 })),
  );
  // Another release must not move the connections of those before it.
  t.equal([...made(golden, [1, 2, 3]).subarray(0, 24)].join(''), '212220122122001121121212');
  t.end();
});

t.test('slot tables of all sizes are those of other releases, byte for byte', (t) => {
  const list = (count: number, address: (index: number) => string, port: number): EndpointList =>
    EndpointList.of(
      address(0).includes(':') ? 'IPv6' : 'IPv4',
      Array.from({ length: count }, (_, index) => ({ address: address(index) as IPAddress, port })),
    );
  const four = (count: number): EndpointList => list(count, (index) => `10.1.${index >> 8}.${index & 255}`, 8080);
  const six = (count: number): EndpointList => list(count, (index) => `fd00::${(index + 1).toString(16)}`, 80);
  const cases = [
    [four(50), () => 1, '281464eac513815a'],
    [four(818), (place: number) => 1 + place, '868e2eb135856b82'],
    [four(409), (place: number) => place % 3, 'f7621f22c70c960a'],
    [six(100), (place: number) => (place === 7 ? 65_535 : 1), '9f41f27e4c571fcf'],
    [six(12), (place: number) => (place + 1) ** 2, 'db04ac5c056a8852'],
  ] as const;
  for (const [endpoints, weightOf, digest] of cases) {
    const table = made(
      endpoints,
      Array.from({ length: endpoints.count }, (_, place) => weightOf(place)),
    );
    t.equal(createHash('sha256').update(table.join()).digest('hex').slice(0, 16), digest);
  }
  t.end();
});

/** A table, and how many endpoints were compared for its slots. */
function stepwise(list: EndpointList, weights: readonly number[], before: SlotTable | null): [SlotTable, number] {
  const left = { pairs: 0 };
  const steps = tableSteps(list, weights, tableSize(list.count) ?? 0, before, left);
  for (let pairs = 0; ;) {
    const { done, value } = steps.next();
    if (done === true) return [value, pairs + left.pairs];
    pairs += value;
  }
}

t.test('a slot table that is made from the one before is the same, byte for byte', (t) => {
  let compared = 0;
  for (let round = 0; round < rounds(60); round++) {
    const count = 30 + random.below(150);
    const list = endpoints(count);
    const weights = Array.from({ length: count }, () => random.below(6) ** random.below(6));
    weights[0] = 1;
    let [before] = stepwise(list, weights, null);
    for (let change = 0; change < 8; change++) {
      const places = [...weights.keys()].filter(() => random.below(10) > 0);
      const now = new EndpointList(
        'IPv4',
        Uint8Array.from(places.flatMap((place) => [...list.packed.subarray(6 * place, 6 * place + 6)])),
      );
      const changed = places.map((place) => (random.below(12) === 0 ? 1 + random.below(9) : (weights[place] ?? 1)));
      if (changed.every((weight) => weight === 0)) continue;
      const [table, pairs] = stepwise(now, changed, before);
      t.same(table.slots, made(now, changed));
      if (table.winners.length === before.winners.length) compared += pairs / (table.winners.length * now.count);
      before = table;
    }
  }
  t.comment(`${compared} whole tables`);
  t.end();
});

t.test('a slot table compares few endpoints when one comes, goes or changes its weight', (t) => {
  const count = 800;
  const list = endpoints(count);
  const weights = Array.from({ length: count }, (_, place) => 1 + place);
  const [before, whole] = stepwise(list, weights, null);
  const cases = [
    ['lighter', list, weights.with(400, 1)],
    ['heavier', list, weights.with(400, 900)],
    ['gone', without(list, 400), weights.toSpliced(400, 1)],
  ] as const;
  for (const [what, now, changed] of cases) {
    const [table, pairs] = stepwise(now, changed, before);
    t.ok(pairs < whole / 20, `${what}: ${pairs} of ${whole}`);
    t.same(table.slots, made(now, changed));
  }
  const [, back] = stepwise(list, weights, stepwise(without(list, 400), weights.toSpliced(400, 1), null)[0]);
  t.ok(back < whole / 20, `come: ${back} of ${whole}`);
  t.end();
});

t.test('the slots of IPv6 endpoints depend on all their bytes', (t) => {
  const list = EndpointList.of(
    'IPv6',
    Array.from({ length: 10 }, (_, index) => ({ address: `fd00::${index + 1}` as IPAddress, port: 80 })),
  );
  const counts = slotCounts(10, made(list, equal(10)));
  t.same([Math.min(...counts), Math.max(...counts)], [25, 26]);
  t.end();
});

t.test('the largest slot table is made within the time of a sync', (t) => {
  const list = endpoints(MOST_TABLE_ENDPOINTS);
  const weights = Array.from({ length: list.count }, (_, place) => 1 + (place % 3));
  const before = process.cpuUsage();
  made(list, weights);
  const { user } = process.cpuUsage(before);
  t.comment(`${(user / 1000).toFixed(0)} ms`);
  t.equal(user < 500_000, true);
  t.end();
});
