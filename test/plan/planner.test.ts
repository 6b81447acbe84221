import t from 'tap';
import { FAMILIES, type Family } from '../../src/base/ip.js';
import type { PlanSettings } from '../../src/plan/facts.js';
import { Planner } from '../../src/plan/planner.js';
import { printTable } from '../../src/plan/text.js';
import type { TableChange } from '../../src/plan/types.js';
import { refOf, type ObjectKey, type Row, type RowRef } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import type { StateChange } from '../../src/state/writer.js';
import { rounds } from '../support/extent.js';
import { planSettings } from '../support/plan-settings.js';
import { SeededRandom } from '../support/random.js';
import { node, service, serviceCIDR, slice, type EndpointText } from '../support/rows.js';

/** State and planner as they stand beside each other in the process. */
class Pipeline {
  private readonly store = new Store();
  private readonly source = this.store.register('test');
  readonly planner: Planner;
  /** What was planned since last cleared: the Services of each family. */
  readonly planned: Readonly<Record<Family, ObjectKey[]>> = { IPv4: [], IPv6: [] };

  constructor(settings: Partial<PlanSettings> = {}) {
    this.planner = new Planner(planSettings(settings));
    for (const family of FAMILIES) {
      const table = this.planner.tables[family];
      const setService = table.setService.bind(table);
      table.setService = (key, plan) => {
        this.planned[family].push(key);
        setService(key, plan);
      };
    }
  }

  upsert(...rows: readonly Row[]): this {
    this.source.apply(rows.map((row) => ({ type: 'upsert', row })));
    return this;
  }

  remove(...refs: readonly RowRef[]): this {
    this.source.apply(refs.map((ref) => ({ type: 'remove', ref })));
    return this;
  }

  apply(changes: readonly StateChange[]): void {
    this.source.apply(changes);
  }

  plan(): this {
    for (const family of FAMILIES) this.planned[family].length = 0;
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    return this;
  }

  lines(): readonly string[] {
    return FAMILIES.flatMap((family) => printTable(this.planner.tables[family]));
  }

  /** What each family's table says has changed; null for nothing at all. */
  changes(): readonly (TableChange | null)[] {
    return FAMILIES.map((family) => {
      const change = this.planner.tables[family].takeChange();
      const sizes = [change.frontends, change.clusterAddresses, change.hairpinAddresses].map(({ size }) => size);
      return change.node || sizes.some((size) => size > 0) ? change : null;
    });
  }
}

const ME = node('me', ['192.168.0.2', '2001:db8::2'], { zone: 'a' });

function numbered(count: number): readonly Row[] {
  return Array.from({ length: count }, (_, number) => {
    const host = `${number >> 8}.${number & 255}`;
    return [
      service(`svc-${number}`, { clusterIPs: [`10.96.${host}`, `fd00:96::${number.toString(16)}`] }),
      slice(`svc-${number}`, [
        { address: `10.0.${host}`, node: 'me', zones: ['a'] },
        { address: `10.1.${host}`, node: 'other', zones: ['b'] },
      ]),
    ];
  }).flat();
}

const NOTHING = { IPv4: [], IPv6: [] };

t.test('a change of one Service among 5,000 plans that Service only, in the families that changed', (t) => {
  const pipeline = new Pipeline().upsert(ME, ...numbered(5_000)).plan();
  t.same([pipeline.planned.IPv4.length, pipeline.planned.IPv6.length], [5_000, 5_000]);
  t.equal(pipeline.lines().filter((line) => line.includes(' endpoint ')).length, 5_000, 'of its own zone each');
  pipeline.changes();

  pipeline.upsert(slice('svc-77', [{ address: '10.2.0.1', zones: ['a'] }])).plan();
  t.same(pipeline.planned, { IPv4: ['default/svc-77'], IPv6: [] }, 'its slice');
  const [four, six] = pipeline.changes();
  t.same(four?.frontends, new Set(['10.96.0.77:80/TCP']));
  t.equal(six, null);
  pipeline.upsert(slice('svc-77', [{ address: 'fd00::1' }], { family: 'IPv6' })).plan();
  t.same(pipeline.planned, { IPv4: [], IPv6: ['default/svc-77'] }, 'its slice of the other family');
  t.same(
    pipeline.changes().map((change) => change?.frontends),
    [undefined, new Set(['[fd00:96::4d]:80/TCP'])],
  );

  pipeline.upsert(service('svc-78', { clusterIPs: ['10.96.0.78'], affinitySeconds: 5 })).plan();
  t.same(pipeline.planned, { IPv4: ['default/svc-78'], IPv6: ['default/svc-78'] }, 'its row');
  t.same(
    pipeline.changes().map((change) => change?.frontends),
    [new Set(['10.96.0.78:80/TCP']), new Set(['[fd00:96::4e]:80/TCP'])],
  );

  pipeline.remove({ kind: 'Service', namespace: 'default', name: 'svc-79' }).plan();
  t.same(pipeline.planned, { IPv4: ['default/svc-79'], IPv6: ['default/svc-79'] }, 'its end');
  pipeline.remove({ kind: 'EndpointSlice', namespace: 'default', name: 'svc-80-ipv4' }).plan();
  t.same(pipeline.planned, { IPv4: ['default/svc-80'], IPv6: [] }, 'the end of its slice');
  t.end();
});

t.test('an update without changes plans nothing', (t) => {
  const rows = [ME, ...numbered(20), serviceCIDR('default', ['10.96.0.0/12'])];
  const pipeline = new Pipeline().upsert(...rows).plan();
  pipeline.changes();
  pipeline.plan();
  t.same([pipeline.planned, pipeline.changes()], [NOTHING, [null, null]], 'no change');
  pipeline.upsert(...rows).plan();
  t.same([pipeline.planned, pipeline.changes()], [NOTHING, [null, null]], 'the same rows again');
  pipeline.upsert(node('other', ['192.168.0.3'], { zone: 'b' })).plan();
  t.same([pipeline.planned, pipeline.changes()], [NOTHING, [null, null]], 'another node');
  pipeline.upsert({ ...ME, eligible: false }).plan();
  t.same([pipeline.planned, pipeline.changes()], [NOTHING, [null, null]], 'what no plan depends on');
  pipeline.planner.setSettings(structuredClone(planSettings()));
  pipeline.plan();
  t.same([pipeline.planned, pipeline.changes()], [NOTHING, [null, null]], 'settings that say the same');
  pipeline.planner.setSettings(planSettings({ masqueradeAll: true }));
  pipeline.planner.setSettings(planSettings({ masqueradeAll: true }));
  pipeline.plan();
  t.equal(pipeline.planned.IPv4.length, 20, 'others, said twice');
  t.end();
});

t.test('a change that all Services depend on plans them all', (t) => {
  const pipeline = new Pipeline().upsert(...numbered(20)).plan();
  const endpoints = (): number => pipeline.lines().filter((line) => line.includes(' endpoint ')).length;
  t.equal(endpoints(), 40, 'no Node, no zone: all endpoints');
  pipeline.changes();

  pipeline.upsert(ME).plan();
  t.same([pipeline.planned.IPv4.length, pipeline.planned.IPv6.length], [20, 20]);
  t.equal(endpoints(), 20, 'the Node came');
  t.equal(pipeline.changes()[0]?.frontends.size, 20);

  pipeline.upsert({ ...ME, zone: 'c' }).plan();
  t.equal(endpoints(), 40, 'no endpoint is hinted to the new zone');
  t.equal(pipeline.changes()[0]?.node, false, 'which is nothing to the node plan');

  pipeline.upsert({ ...ME, zone: 'b' }).plan();
  t.ok(pipeline.lines().includes('IPv4 frontend 10.96.0.5:80/TCP endpoint 10.1.0.5:80'));
  t.equal(endpoints(), 20);

  pipeline.remove(refOf(ME), { kind: 'Service', namespace: 'default', name: 'svc-3' }).plan();
  t.equal(endpoints(), 38, 'the Node went, and a Service with it');
  t.notOk(pipeline.lines().some((line) => line.includes('10.96.0.3:')));
  t.end();
});

t.test('a node address that appears late is planned', (t) => {
  const text = { loadBalancer: ['1.2.3.4'], sourceRanges: ['192.168.0.0/24'], ports: [{ nodePort: 30000 }] };
  const pipeline = new Pipeline().upsert(service('svc', text), node('me')).plan();
  const admitted = (): readonly string[] => pipeline.lines().filter((line) => / admit | nodeport-address /.test(line));
  t.same(admitted(), [
    'IPv4 frontend 1.2.3.4:80/TCP admit 192.168.0.0/24',
    'IPv4 node nodeport-address all',
    'IPv6 node nodeport-address all',
  ]);
  pipeline.upsert(node('me', ['192.168.0.2'])).plan();
  t.same(pipeline.planned, { IPv4: ['default/svc'], IPv6: [] }, 'of its own family');
  t.same(admitted(), [
    'IPv4 frontend 1.2.3.4:80/TCP admit 1.2.3.4/32',
    'IPv4 frontend 1.2.3.4:80/TCP admit 192.168.0.0/24',
    'IPv4 node nodeport-address 192.168.0.2/32',
    'IPv6 node nodeport-address all',
  ]);
  t.end();
});

t.test('service CIDRs and pod CIDRs change only the node plan', (t) => {
  const pipeline = new Pipeline({ localDetection: { type: 'NodeCIDR' } }).upsert(ME, ...numbered(20)).plan();
  pipeline.changes();
  pipeline.upsert(serviceCIDR('default', ['10.96.0.0/12'])).plan();
  t.same(pipeline.planned, NOTHING, 'of Services without addresses from outside');
  let [four, six] = pipeline.changes();
  t.same([four?.node, four?.frontends.size, six], [true, 0, null], 'of its own family');
  t.ok(pipeline.lines().includes('IPv4 node service-cidr 10.96.0.0/12'));
  pipeline.upsert(node('me', ['192.168.0.2', '2001:db8::2'], { zone: 'a', podCIDRs: ['fd00:244::/64'] })).plan();
  t.same(pipeline.planned, NOTHING);
  [four, six] = pipeline.changes();
  t.same([four, six?.node], [null, true]);
  pipeline.remove({ kind: 'ServiceCIDR', namespace: '', name: 'default' }).plan();
  t.notOk(pipeline.lines().some((line) => line.includes('service-cidr')));
  t.end();
});

t.test('a changed ServiceCIDR plans Services with addresses from outside anew', (t) => {
  const outside = service('outside', { clusterIPs: ['10.96.1.1'], externalIPs: ['10.97.0.1', '198.51.100.1'] });
  const localDetection = { type: 'BridgeInterface', name: 'cbr0' } as const;
  const pipeline = new Pipeline({ localDetection }).upsert(ME, outside, ...numbered(3)).plan();
  const served = (): unknown => pipeline.lines().filter((line) => line.includes(' ExternalIP')).length;
  t.equal(served(), 2);
  pipeline.changes();
  pipeline.upsert(serviceCIDR('default', ['10.96.0.0/12'])).plan();
  t.same(pipeline.planned.IPv4, ['default/outside']);
  t.equal(served(), 1);
  pipeline.remove({ kind: 'ServiceCIDR', namespace: '', name: 'default' }).plan();
  t.equal(served(), 2);
  t.end();
});

t.test('slices before their Service, a lost family and a recreated Service are planned', (t) => {
  const pipeline = new Pipeline().upsert(slice('svc', [{ address: '10.0.0.1' }])).plan();
  t.same(
    pipeline.changes().map((change) => change?.frontends.size),
    [0, 0],
  );
  pipeline.upsert(service('svc', { clusterIPs: ['10.96.0.1', 'fd00::1'] })).plan();
  t.same(
    pipeline.changes().map((change) => [...(change?.frontends ?? [])]),
    [['10.96.0.1:80/TCP'], ['[fd00::1]:80/TCP']],
  );
  pipeline.upsert(service('svc', { clusterIPs: ['10.96.0.1'] })).plan();
  t.same(
    pipeline.changes().map((change) => change && [...change.frontends]),
    [null, ['[fd00::1]:80/TCP']],
  );
  pipeline.upsert(service('svc', { clusterIPs: [] })).plan();
  t.same([...pipeline.planner.tables.IPv4.frontends()], [], 'headless now');
  t.end();
});

function randomRow(random: SeededRandom): Row {
  const name = random.pick(['a', 'b', 'c', 'd']);
  const endpoints = (addresses: readonly string[]): readonly EndpointText[] =>
    random.some(addresses, 0.6).map((address) => ({
      address,
      state: random.pick(['rs', 'rs', 'st', 't']),
      node: random.pick(['me', 'other', null]),
      zones: random.pick([[], ['a'], ['b']]),
    }));
  switch (random.below(7)) {
    case 0:
    case 1:
    case 2:
      return service(name, {
        clusterIPs: random.pick([['10.96.0.1'], ['10.96.0.2'], ['10.96.0.2', 'fd00::2'], []]),
        externalIPs: random.some(['1.1.1.1', '10.96.0.1', 'fd00::9', '192.168.0.2'], 0.4),
        loadBalancer: random.some(['2.2.2.2'], 0.4),
        sourceRanges: random.some(['192.168.0.0/24'], 0.5),
        ports: [
          { port: random.pick([80, 30000]), nodePort: random.pick([0, 30000]), protocol: random.pick(['TCP', 'UDP']) },
        ],
        creationTime: random.pick([null, 1, 2]),
        externalTrafficPolicy: random.pick(['Cluster', 'Local']),
        internalTrafficPolicy: random.pick(['Cluster', 'Local']),
        healthCheckNodePort: 31000,
      });
    case 3:
      return node(random.pick(['me', 'other']), random.some(['192.168.0.2', '2001:db8::2'], 0.7), {
        zone: random.pick(['a', 'b', null]),
      });
    case 4:
      return serviceCIDR(random.pick(['x', 'y']), random.some(['10.96.0.0/12', 'fd00::/112'], 0.7));
    default: {
      const family = random.pick(FAMILIES);
      const addresses = family === 'IPv4' ? ['10.0.0.1', '10.0.0.2', '10.0.0.3'] : ['fd00::1', 'fd00::2', 'fd00::3'];
      return slice(name, endpoints(addresses), { name: `${name}-${random.below(2)}`, family });
    }
  }
}

/** Everything a table shows, beyond its text. */
function picture(pipeline: Pipeline): readonly string[] {
  const more = FAMILIES.flatMap((family) => {
    const table = pipeline.planner.tables[family];
    return [
      ...[...table.healthChecks(), ...table.conflicts()].map((found) => JSON.stringify(found)),
      ...[...table.frontends()].map(
        ({ key, flowEndpoints }) => `${key} flows ${flowEndpoints?.toStrings().join() ?? '-'}`,
      ),
    ];
  });
  return [...pipeline.lines(), ...more.sort()];
}

t.test('the tables depend on the final state only, whatever the history', (t) => {
  const random = new SeededRandom(1);
  for (let round = 0; round < rounds(150); round++) {
    const history = Array.from({ length: 5 + random.below(40) }, (): StateChange => {
      const row = randomRow(random);
      return random.chance(0.25) ? { type: 'remove', ref: refOf(row) } : { type: 'upsert', row };
    });
    const split = new Pipeline();
    const batched = new Pipeline();
    for (const change of history) {
      split.apply([change]);
      split.plan();
      batched.apply([change]);
      if (random.chance(0.2)) batched.plan();
    }
    batched.plan();
    const final = new Map<string, StateChange>();
    for (const change of history) {
      const ref = change.type === 'upsert' ? refOf(change.row) : change.ref;
      final.set(`${ref.kind} ${ref.namespace}/${ref.name}`, change);
    }
    const squashed = new Pipeline();
    squashed.apply(random.shuffled([...final.values()]));
    const expected = picture(squashed.plan());
    for (const [name, pipeline] of Object.entries({ split, batched })) {
      if (picture(pipeline).join('\n') !== expected.join('\n'))
        t.same(picture(pipeline), expected, `${round}, ${name}`);
    }
  }
  t.pass('150 histories');
  t.end();
});

t.test('an update that fails loses no change', (t) => {
  const pipeline = new Pipeline().upsert(ME, ...numbered(3)).plan();
  const { tables } = pipeline.planner;
  const setNode = tables.IPv6.setNode.bind(tables.IPv6);
  tables.IPv6.setNode = () => {
    throw new Error('out of order');
  };
  pipeline.remove(refOf(service('svc-0'))).upsert({ ...ME, zone: 'b' });
  t.throws(() => pipeline.plan(), { message: 'out of order' });
  tables.IPv6.setNode = setNode;
  t.same(
    pipeline.plan().lines(),
    new Pipeline()
      .upsert({ ...ME, zone: 'b' }, ...numbered(3).slice(2))
      .plan()
      .lines(),
  );
  t.end();
});

t.test('an unfinished plan is completed by the next', (t) => {
  const [store, settings] = [new Store(), planSettings()];
  const source = store.register('test');
  const planner = new Planner(settings);
  const say = (rows: readonly Row[]): void => {
    source.apply(rows.map((row) => ({ type: 'upsert', row })));
  };
  const whole = (rows: readonly Row[]): readonly string[] =>
    new Pipeline()
      .upsert(...rows)
      .plan()
      .lines();
  const lines = (): readonly string[] => FAMILIES.flatMap((family) => printTable(planner.tables[family]));
  const rows = [ME, ...numbered(20)];
  say(rows);
  const dropped = planner.plan(store.snapshot, store.takeChanges());
  for (let step = 0; step < 7; step++) t.equal(dropped.next().done, false);
  t.not(lines().length, whole(rows).length, 'between two Services');
  planner.update(store.snapshot, store.takeChanges());
  t.same(lines(), whole(rows));
  const [first] = numbered(21).slice(-2);
  say([first!]);
  const outdated = planner.plan(store.snapshot, store.takeChanges());
  outdated.next();
  planner.setSettings({ ...settings });
  t.same([...outdated], [undefined], 'settings that say the same change nothing: the other family is planned');
  say(numbered(21));
  const other = planner.plan(store.snapshot, store.takeChanges());
  other.next();
  planner.setSettings({ ...settings, masqueradeAll: true });
  t.same(other.next(), { done: true, value: null }, 'it is given up');
  planner.update(store.snapshot, store.takeChanges());
  t.same(
    lines(),
    new Pipeline({ masqueradeAll: true })
      .upsert(ME, ...numbered(21))
      .plan()
      .lines(),
  );
  t.end();
});
