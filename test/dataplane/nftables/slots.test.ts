import t from 'tap';
import { EndpointList, endpointSize } from '../../../src/base/endpoint-list.js';
import type { Family } from '../../../src/base/ip.js';
import { assignSlots, diffSlots, lostEndpoints, NO_SLOTS, type Slots } from '../../../src/dataplane/nftables/slots.js';
import { rounds } from '../../support/extent.js';
import { SeededRandom } from '../../support/random.js';
import { address } from '../../support/rows.js';

const PREFIXES = { IPv4: '10.0.0.', IPv6: 'fd00::' } as const;

function endpoints(family: Family, numbers: readonly number[]): EndpointList {
  const sorted = [...numbers].sort((one, other) => one - other);
  return EndpointList.of(
    family,
    sorted.map((number) => ({ address: address(`${PREFIXES[family]}${number}`), port: 8000 + number })),
  );
}

function print(family: Family, slots: Slots): readonly string[] {
  return new EndpointList(family, slots).toStrings();
}

function printOne(family: Family, endpoint: string): string {
  return print(family, Buffer.from(endpoint, 'latin1'))[0] ?? '';
}

interface Change {
  readonly slot: number;
  readonly before: string | null;
  readonly endpoint: string | null;
}

function changesOf(family: Family, current: Slots, next: Slots): readonly Change[] {
  const size = endpointSize(family);
  const one = (slots: Slots, at: number): string => print(family, slots.slice(at, at + size))[0] ?? '';
  return diffSlots(family, current, next).map(({ slot, at, held, wanted }) => ({
    slot,
    before: held ? one(current, at) : null,
    endpoint: wanted ? one(next, at) : null,
  }));
}

/** Replays changes on slots as the kernel would. */
function replay(family: Family, current: Slots, next: Slots): readonly string[] {
  const held = new Map(print(family, current).map((endpoint, slot) => [slot, endpoint]));
  for (const { slot, before, endpoint } of changesOf(family, current, next)) {
    if ((before ?? undefined) !== held.get(slot)) throw new Error(`slot ${slot}: replaces ${before}`);
    held.delete(slot);
    if (endpoint !== null) held.set(slot, endpoint);
  }
  return [...held.entries()].sort(([one], [other]) => one - other).map(([slot, endpoint]) => `${slot} ${endpoint}`);
}

for (const family of ['IPv4', 'IPv6'] as const) {
  t.test(`${family}: few changes among thousands of endpoints give few changed slots`, (t) => {
    const random = new SeededRandom(9);
    const list = (numbers: ReadonlySet<number>): EndpointList =>
      EndpointList.of(
        family,
        [...numbers]
          .sort((one, other) => one - other)
          .map((number) => {
            const [high, low] = [number >> 8, number & 255];
            const text = family === 'IPv4' ? `10.1.${high}.${low}` : `fd00::${high.toString(16)}:${low.toString(16)}`;
            return { address: address(text), port: 257 };
          }),
      );
    const numbers = new Set(Array.from({ length: 2000 }, (_, index) => index * 3));
    let slots = assignSlots(NO_SLOTS, list(numbers));
    for (let round = 0; round < rounds(400); round++) {
      const few = random.below(5);
      for (let change = 0; change < few; change++)
        if (random.chance(0.5)) numbers.delete(random.pick([...numbers]));
        else numbers.add(random.below(10_000));
      // Many at once now and then, as when a Service is scaled.
      if (round % 50 === 7) for (const number of [...numbers].slice(0, 60)) numbers.delete(number);
      if (round % 50 === 9) for (let number = 0; number < 200; number++) numbers.add(number);
      const desired = list(numbers);
      const next = assignSlots(slots, desired);
      // Slots that were read back are a copy, of which nothing is remembered.
      if (Buffer.compare(next, assignSlots(slots.slice(), desired)) !== 0) t.fail(`round ${round}`);
      slots = next;
    }
    t.pass();
    t.end();
  });

  t.test(`${family}: any change fills slots 0 … n−1 and moves as few as possible`, (t) => {
    const random = new SeededRandom(5);
    const pool = Array.from({ length: 40 }, (_, index) => index + 1);
    for (let round = 0; round < rounds(300); round++) {
      const before = random.shuffled(random.some(pool, 0.5));
      const after = random.some(pool, round % 3 === 0 ? 0.1 : 0.5);
      const first = assignSlots(NO_SLOTS, endpoints(family, before));
      const desired = endpoints(family, after);
      const next = assignSlots(first, desired);
      const numbers = print(family, next);
      if ([...numbers].sort().join() !== desired.toStrings().sort().join()) t.fail(`round ${round}: ${numbers.join()}`);

      const changes = diffSlots(family, first, next);
      const expected = next.length === 0 ? [] : print(family, next).map((endpoint, slot) => `${slot} ${endpoint}`);
      if (replay(family, first, next).join() !== expected.join()) t.fail(`round ${round}: replay`);

      // Who is in a slot that stays keeps it; every other endpoint needs one write, every slot beyond one deletion.
      const held = print(family, first).slice(0, desired.count);
      const kept = held.filter((endpoint) => numbers.includes(endpoint)).length;
      const fewest = desired.count - kept + Math.max(0, before.length - desired.count);
      if (changes.length !== fewest) t.fail(`round ${round}: ${changes.length} changes, ${fewest} would do`);
    }
    t.pass();
    t.end();
  });
}

t.test('a removed endpoint: the last one takes its slot', (t) => {
  const before = assignSlots(NO_SLOTS, endpoints('IPv4', [1, 2, 3, 4]));
  const after = assignSlots(before, endpoints('IPv4', [1, 3, 4]));
  t.same(print('IPv4', after), ['10.0.0.1:8001', '10.0.0.4:8004', '10.0.0.3:8003']);
  const changes = changesOf('IPv4', before, after).map(({ slot, before, endpoint }) => [slot, before, endpoint]);
  t.same(changes, [
    [1, '10.0.0.2:8002', '10.0.0.4:8004'],
    [3, '10.0.0.4:8004', null],
  ]);
  t.end();
});

t.test('another order of endpoints changes no slot', (t) => {
  const shuffled = assignSlots(assignSlots(NO_SLOTS, endpoints('IPv4', [1, 2, 3])), endpoints('IPv4', [2, 3, 4]));
  const again = assignSlots(shuffled, endpoints('IPv4', [4, 3, 2]));
  t.same(diffSlots('IPv4', shuffled, again), []);
  t.end();
});

t.test('gaps and duplicates made externally are filled and removed', (t) => {
  const list = endpoints('IPv4', [1, 2, 3]);
  const holed = Uint8Array.from(list.packed);
  holed.fill(0, 6, 12);
  const filled = assignSlots(holed, list);
  t.same(print('IPv4', filled), list.toStrings());
  t.same(
    changesOf('IPv4', holed, filled).map(({ slot, before }) => [slot, before]),
    [[1, null]],
    'an empty slot has nothing to delete',
  );
  const doubled = Uint8Array.from([...list.packed.subarray(0, 6), ...list.packed.subarray(0, 6)]);
  t.same(print('IPv4', assignSlots(doubled, endpoints('IPv4', [1, 2]))), ['10.0.0.1:8001', '10.0.0.2:8002']);
  t.end();
});

t.test('lost endpoints are reported, moved ones are not', (t) => {
  const before = assignSlots(NO_SLOTS, endpoints('IPv4', [1, 2, 3]));
  const lost = (next: Slots): readonly string[] =>
    lostEndpoints('IPv4', before, next).map((endpoint) => printOne('IPv4', endpoint));
  t.same(lost(assignSlots(before, endpoints('IPv4', [1, 3]))), ['10.0.0.2:8002']);
  t.same(lost(assignSlots(NO_SLOTS, endpoints('IPv4', [3, 2, 1, 4]))), []);
  t.same(lost(NO_SLOTS), ['10.0.0.1:8001', '10.0.0.2:8002', '10.0.0.3:8003']);
  t.end();
});
