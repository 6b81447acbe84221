import t from 'tap';
import { percentages } from '../../src/plan/balance.js';
import type { PlanSettings } from '../../src/plan/facts.js';
import { Planner } from '../../src/plan/planner.js';
import { planService } from '../../src/plan/service-plan.js';
import { MOST_TABLE_ENDPOINTS } from '../../src/plan/slot-table.js';
import { printFrontend, printLimitation } from '../../src/plan/text.js';
import type { FrontendPlan, ServicePlan } from '../../src/plan/types.js';
import type { EndpointSliceRow, ServiceRow } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { planSettings, PLAIN_TRAITS } from '../support/plan-settings.js';
import { service, slice, type ServiceText } from '../support/rows.js';

const NODE = { name: 'me', zone: null, addresses: { IPv4: null, IPv6: null }, ranges: null };
const HASHED = { by: 'address', unreadable: [] } as const;

function pods(count: number, weight?: number, name = 'a'): EndpointSliceRow {
  const [second, endpoints] = [name.charCodeAt(0), Array.from({ length: count })];
  const row = slice(
    'web',
    endpoints.map((_, index) => ({ address: `10.${second}.${index >> 8}.${index & 255}` })),
    { name },
  );
  return weight === undefined ? row : { ...row, weight };
}

function plan(
  text: ServiceText,
  slices: readonly EndpointSliceRow[],
  settings: Partial<PlanSettings> = {},
): ServicePlan {
  const planned = planService('IPv4', service('web', text), slices, NODE, planSettings(settings));
  if (planned === null) throw new Error('nothing is planned');
  return planned;
}

function only({ frontends: [frontend] }: ServicePlan): FrontendPlan {
  if (frontend === undefined) throw new Error('no frontend');
  return frontend;
}

function withTraits(shares?: 'slots' | 'weights'): Partial<PlanSettings> {
  return { traits: { ...PLAIN_TRAITS, ...(shares === undefined ? {} : { shares }) } };
}

t.test('a Service without balancing annotations has no slot table', (t) => {
  t.equal(only(plan({}, [pods(10)])).balance, null);
  t.equal(only(plan({ balance: { by: 'random', unreadable: [] } }, [pods(10)])).balance, null);
  t.equal(only(plan({}, [pods(5, 3), pods(5, 3, 'b')])).balance, null, 'weights that are all the same');
  t.end();
});

t.test('hashing is set by the annotation, or by the configuration for all Services', (t) => {
  const asked = only(plan({ balance: HASHED }, [pods(10)])).balance;
  t.equal(asked?.by, 'address');
  t.equal(asked?.endpoints.slots?.length, 251);
  const settings = { balance: { by: 'address-port', slots: 10_000 } } as const;
  t.equal(only(plan({}, [pods(10)], settings)).balance?.by, 'address-port');
  t.equal(only(plan({ balance: { by: 'random', unreadable: [] } }, [pods(10)], settings)).balance, null);
  t.equal(only(plan({ balance: HASHED }, [])).balance?.endpoints.slots?.length, 0, 'nothing to hash to');
  t.end();
});

t.test('weights of slices become shares, and weight 0 gets no new connections', (t) => {
  const planned = only(plan({}, [pods(1, 1), pods(1, 3, 'b'), pods(1, 0, 'c')]));
  t.same(planned.endpoints.toStrings(), ['10.97.0.0:80', '10.98.0.0:80']);
  t.same(planned.balance?.endpoints.weights, [1, 3]);
  t.same(planned.balance && percentages(planned.balance.endpoints).map(Math.round), [25, 75]);
  const lines = printFrontend(planned);
  t.match(lines.join('\n'), /share 10\.97\.0\.0:80 63\/251\n.*share 10\.98\.0\.0:80 188\/251\n.* table [0-9a-f]{8}/);
  const none = only(plan({}, [pods(2, 0)]));
  t.equal(none.endpoints.count, 0, 'where all weights are 0 there is none to connect to');
  t.end();
});

t.test('external policy Local has a slot table for each list', (t) => {
  const here = {
    ...slice(
      'web',
      [
        { address: '10.97.0.1', node: 'me' },
        { address: '10.97.0.2', node: 'me' },
      ],
      { name: 'a' },
    ),
  };
  const text = { balance: HASHED, externalIPs: ['192.0.2.1'], externalTrafficPolicy: 'Local' } as const;
  const [internal, external] = plan(text, [here, pods(3, undefined, 'b')]).frontends;
  t.equal(internal?.balance?.localEndpoints, null);
  t.equal(external?.balance?.endpoints.weights.length, 5);
  t.equal(external?.balance?.localEndpoints?.weights.length, 2);
  t.equal(internal?.balance?.endpoints.slots, external?.balance?.endpoints.slots, 'made once for all frontends');
  t.end();
});

t.test('a mode reports limitations of balancing', (t) => {
  const text = { balance: HASHED };
  const slices = [pods(1, 1), pods(1, 3, 'b')];
  const reported = (settings: Partial<PlanSettings>): readonly string[] =>
    plan(text, slices, settings).limitations.map(printLimitation);
  t.same(reported({}), []);
  t.match(reported(withTraits('weights')), [
    /^not in this mode: IPv4 default\/web: balance hash=address without effect/,
  ]);
  t.match(reported(withTraits()), [/balance hash=address and weights other than 0 without effect/]);
  const weighted = only(plan(text, slices, withTraits('weights'))).balance;
  t.match(weighted, { by: 'random', endpoints: { weights: [1, 3], slots: null } });
  t.equal(only(plan(text, slices, withTraits())).balance, null);
  t.end();
});

t.test('slots are limited per endpoint, per Service and per node', (t) => {
  const reported = (planned: ServicePlan): readonly string[] => planned.limitations.map(printLimitation);
  const large = plan({ balance: HASHED }, [pods(MOST_TABLE_ENDPOINTS + 1)]);
  t.equal(only(large).balance, null);
  t.match(reported(large), [/^over a limit: .*no table of slots has more than 819 endpoints/]);
  const externalIPs = Array.from({ length: 400 }, (_, index) => `198.51.${100 + (index >> 8)}.${index & 255}`);
  const many = plan({ balance: HASHED, externalIPs }, [pods(10)]);
  t.equal(many.frontends.length, 401, 'all frontends are there');
  t.equal(only(many).balance, null);
  t.match(reported(many), [/its frontends would have 100651 slots, and a Service has at most 100000 entries/]);
  t.end();
});

t.test('Services that need more slots than the node has are reported, and the others keep theirs', (t) => {
  const store = new Store();
  const writer = store.register('test');
  const planner = new Planner(planSettings({ balance: { by: 'random', slots: 600 } }));
  const put = (row: ServiceRow | EndpointSliceRow): void => {
    writer.apply([{ type: 'upsert', row }]);
    planner.update(store.snapshot, store.takeChanges());
  };
  const asking = (age: number): ServiceRow =>
    service(`s${age}`, { clusterIPs: [`10.96.0.${age}`], balance: HASHED, creationTime: age });
  const served = (): readonly number[] =>
    [1, 2, 3].filter((age) => (planner.tables.IPv4.frontend(`10.96.0.${age}:80/TCP`)?.balance ?? null) !== null);
  for (const age of [3, 2, 1]) {
    put(slice(`s${age}`, [{ address: `10.1.${age}.1` }, { address: `10.1.${age}.2` }]));
    put(asking(age));
  }
  t.same(served(), [2, 3], 'they were in force');
  const reported = [...planner.tables.IPv4.limitations()].map(printLimitation);
  t.match(reported, [/over a limit: IPv4 default\/s1: other Services have the slots of this node/]);
  put(service('s2', { clusterIPs: ['10.96.0.2'], creationTime: 2 }));
  t.same(served(), [1, 3], 'what one does not ask for any more the next one gets');
  planner.setSettings(planSettings({ balance: { by: 'random', slots: 300 } }));
  planner.update(store.snapshot, store.takeChanges());
  t.same(served(), [1]);
  t.end();
});

t.test('unreadable annotations are reported, and the Service is served', (t) => {
  const row = { ...pods(2), unreadable: 'annotation pointsman.dev/weight is "x"' };
  const planned = plan({ balance: { by: null, unreadable: ['annotation pointsman.dev/balance is "y"'] } }, [
    row,
    { ...row, name: 'b' },
  ]);
  t.equal(only(planned).endpoints.count, 2);
  t.same(planned.limitations.map(printLimitation), [
    'not readable: IPv4 default/web: annotation pointsman.dev/balance is "y"; EndpointSlice a: annotation pointsman.dev/weight is "x", and so in 1 more',
  ]);
  t.end();
});

const ZONES = ['a', 'b', 'c'] as const;

/** Endpoints in zones, with hints for their own ones, as trafficDistribution makes them. */
function zoned(counts: readonly number[], hinted = false): EndpointSliceRow {
  const places = counts.flatMap((count, index) => new Array<number>(count).fill(index));
  const endpoints = places.map((zone, index) => ({
    address: `10.0.${zone}.${index + 1}`,
    zones: hinted ? [ZONES[zone] ?? ''] : [],
  }));
  const zones = places.map((zone) => String.fromCharCode(zone + 1)).join('');
  return { ...slice('web', endpoints), zoneNames: [...ZONES], zones };
}

t.test('connections stay in their zone as far as its endpoints have capacity, whatever the hints say', (t) => {
  const spill = { by: null, spill: { clients: null }, unreadable: [] } as const;
  const planned = (zone: string | null, hinted: boolean, text: ServiceText = {}): FrontendPlan => {
    const row = service('web', { balance: spill, ...text });
    const result = planService('IPv4', row, [zoned([1, 2, 7], hinted)], { ...NODE, zone }, planSettings());
    if (result === null) throw new Error('nothing is planned');
    return only(result);
  };
  for (const hinted of [false, true]) {
    const a = planned('a', hinted);
    // A tenth of what clients have is a third of what this zone's have; the rest goes where there is room.
    const shares = a.balance === null ? [] : percentages(a.balance.endpoints);
    t.same(a.endpoints.count, 8, 'of zone a and c');
    t.ok(Math.abs((shares[0] ?? 0) - 30) < 0.5, shares.join());
    const c = planned('c', hinted);
    t.same(
      c.endpoints.toStrings().map((endpoint) => endpoint.split('.')[2]),
      new Array(7).fill('2'),
    );
    t.equal(c.balance, null, 'all of one zone, with equal shares');
  }
  t.equal(planned(null, true).endpoints.count, 10, 'a node of which no zone is known');
  const local = planned('a', false, { internalTrafficPolicy: 'Local' });
  t.equal(local.endpoints.count, 0, 'policy Local comes first');
  const hashed = planned('a', false, { balance: { ...spill, by: 'address' } });
  t.equal(hashed.balance?.by, 'address');
  t.end();
});
