import t from 'tap';
import { spilledWeights, type Placed } from '../../src/plan/zone-shares.js';
import type { ZoneSpill } from '../../src/state/rows.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';

const random = new SeededRandom(3293);

function endpoints(counts: Readonly<Record<string, number>>): readonly Placed[] {
  return Object.entries(counts).flatMap(([zone, count]) => new Array<Placed>(count).fill({ weight: 1, zone }));
}

function parts(list: readonly Placed[], own: string, clients: ZoneSpill['clients'] = null): readonly number[] {
  const weights = spilledWeights(list, own, { clients });
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / all);
}

/** The greatest load of an endpoint in terms of its fair one, and what stays in its zone, when each zone has a part of all clients. */
function outcome(
  list: readonly Placed[],
  clients: Readonly<Record<string, number>>,
  named = true,
): { readonly hottest: number; readonly stays: number } {
  const all = Object.values(clients).reduce((sum, share) => sum + share, 0);
  const weights = list.reduce((sum, { weight }) => sum + weight, 0);
  const shares = Object.entries(clients).map(([zone, share]) => ({ zone, share }));
  const loads = new Array<number>(list.length).fill(0);
  let stays = 0;
  for (const { zone, share } of shares) {
    for (const [place, part] of parts(list, zone, named ? shares : null).entries()) {
      loads[place] = (loads[place] ?? 0) + (part * share) / all;
      if (list[place]?.zone === zone) stays += (part * share) / all;
    }
  }
  const hottest = Math.max(...loads.map((load, place) => (load * weights) / (list[place]?.weight ?? 1)));
  return { hottest: Number(hottest.toFixed(2)), stays: Math.round(stays * 100) };
}

t.test('zone shares: no endpoint has more than its share, and as much as possible stays in the zone', (t) => {
  const equal = { a: 1, b: 1, c: 1 };
  t.same(outcome(endpoints({ a: 1, b: 2, c: 7 }), equal, false), { hottest: 1, stays: 63 });
  t.same(outcome(endpoints({ a: 4, b: 3, c: 3 }), equal, false), { hottest: 1, stays: 93 });
  t.same(outcome(endpoints({ a: 3, b: 3, c: 3 }), equal, false), { hottest: 1, stays: 100 });
  t.same(outcome(endpoints({ a: 5, b: 3, c: 2 }), { a: 50, b: 30, c: 20 }), { hottest: 1, stays: 100 });
  t.end();
});

t.test('zone shares: in random zones no endpoint has more than its share', (t) => {
  for (let round = 0; round < rounds(500); round++) {
    const zones = ['a', 'b', 'c', 'd', 'e'].slice(0, 1 + random.below(5));
    const list = Array.from({ length: 1 + random.below(30) }, () => ({
      weight: 1 + random.below(5),
      zone: random.chance(0.1) ? null : random.pick(zones),
    }));
    const clients = Object.fromEntries(zones.map((zone) => [zone, 1 + random.below(100)]));
    const { hottest } = outcome(list, clients);
    t.ok(hottest <= 1.01, `${hottest}: ${JSON.stringify({ list, clients })}`);
  }
  t.end();
});

t.test('zone shares: a zone without endpoints, or with unknown size', (t) => {
  t.same(parts(endpoints({ b: 1, c: 1 }), 'a'), [0.5, 0.5]);
  const named = [
    { zone: 'b', share: 1 },
    { zone: 'c', share: 1 },
  ];
  t.same(parts(endpoints({ b: 1, c: 1 }), 'a', named), [0.5, 0.5], 'nothing is left anywhere: as much to each');
  t.same(
    parts(endpoints({ a: 1, b: 1 }), 'a', named),
    [1, 0],
    'a zone that has no clients by the annotation stays by itself',
  );
  t.same(
    parts(
      [
        { weight: 1, zone: null },
        { weight: 1, zone: 'a' },
      ],
      'a',
    ).length,
    2,
  );
  t.same(parts([{ weight: 1, zone: null }], 'a'), [1]);
  t.end();
});
