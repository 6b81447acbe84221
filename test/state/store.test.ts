import t from 'tap';
import type { EndpointSliceRow, NodeRow, Row } from '../../src/state/rows.js';
import { refOf } from '../../src/state/rows.js';
import type { StateChanges } from '../../src/state/snapshot.js';
import { Store } from '../../src/state/store.js';
import type { StateChange } from '../../src/state/writer.js';
import { service, serviceCIDR } from '../support/rows.js';

function slice(name: string, serviceName: string, fields: Partial<EndpointSliceRow> = {}): EndpointSliceRow {
  return {
    kind: 'EndpointSlice',
    namespace: 'default',
    name,
    serviceName,
    family: 'IPv4',
    lastChangeTriggerTime: null,
    ports: [{ name: '', protocol: 'TCP', port: 80 }],
    count: 1,
    addresses: '\n\0\0\u0001',
    conditions: Uint8Array.of(3),
    nodeNames: ['node-1'],
    zoneHints: null,
    nodeHints: [['node-1']],
    ...fields,
  };
}

const node: NodeRow = { kind: 'Node', name: 'node-1', addresses: [], podCIDRs: [], zone: null, eligible: true };
const cidr = (name: string, text: string): Row => serviceCIDR(name, [text]);
const upsert = (...rows: Row[]): StateChange[] => rows.map((row) => ({ type: 'upsert', row }));
const remove = (...rows: Row[]): StateChange[] => rows.map((row) => ({ type: 'remove', ref: refOf(row) }));

/** Of either family, sorted. */
function servicesIn({ services }: StateChanges): readonly string[] {
  return [...new Set([...services.IPv4, ...services.IPv6])].sort();
}

function counting(store: Store): { calls: number } {
  const count = { calls: 0 };
  store.onChange(() => count.calls++);
  return count;
}

t.test('rows come out of the store as they went in, and changes name what changed', (t) => {
  const store = new Store();
  const source = store.register('test');
  const received = counting(store);
  const web = service('web');
  source.apply(
    upsert(
      web,
      slice('web-a', 'web'),
      slice('other-a', 'other'),
      node,
      cidr('b', '10.0.0.0/8'),
      cidr('a', '11.0.0.0/8'),
    ),
  );
  t.equal(received.calls, 1, 'one call for one commit');
  t.equal(store.snapshot.service('default/web'), web);
  t.same(
    store.snapshot.slicesOf('default/web').map((row) => row.name),
    ['web-a'],
  );
  t.equal(store.snapshot.slicesOf('default/other').length, 1);
  t.equal(store.snapshot.node('node-1'), node);
  t.same(
    store.snapshot.serviceCIDRs().map((row) => row.name),
    ['a', 'b'],
  );
  t.equal(store.snapshot.service('default/none'), undefined);
  t.same(store.snapshot.slicesOf('default/none'), []);
  const changes = store.takeChanges();
  t.same(servicesIn(changes), ['default/other', 'default/web']);
  t.same([...changes.services.IPv6], ['default/web'], 'the other only has a slice of IPv4');
  t.same([...changes.nodes], ['node-1']);
  t.equal(changes.serviceCIDRs, true);
  const none = store.takeChanges();
  t.same([servicesIn(none), none.nodes.size], [[], 0]);
  t.equal(none.serviceCIDRs, false);
  source.apply(remove(web, node, cidr('a', '11.0.0.0/8')));
  t.equal(store.snapshot.service('default/web'), undefined);
  t.equal(store.snapshot.node('node-1'), undefined);
  t.same(
    store.snapshot.serviceCIDRs().map((row) => row.name),
    ['b'],
  );
  t.same(servicesIn(store.takeChanges()), ['default/web']);
  t.end();
});

t.test('equal rows change nothing, notify no listener and keep the held object', (t) => {
  const store = new Store();
  const source = store.register('test');
  const first = slice('web-a', 'web');
  source.apply(upsert(service('web'), first, node, cidr('a', '10.0.0.0/8')));
  store.takeChanges();
  const received = counting(store);
  source.apply(upsert(service('web'), slice('web-a', 'web'), { ...node }, cidr('a', '10.0.0.0/8')));
  source.apply(remove(service('never-there'), slice('never-there', 'web')));
  source.apply([]);
  t.equal(received.calls, 0);
  t.same(servicesIn(store.takeChanges()), []);
  t.equal(store.snapshot.slicesOf('default/web')[0], first);
  t.end();
});

t.test('a change of any field of a slice is a change of the store', (t) => {
  const store = new Store();
  const source = store.register('test');
  const others: Omit<EndpointSliceRow, 'kind' | 'lastChangeTriggerTime' | 'namespace' | 'name'> = {
    serviceName: 'other',
    family: 'IPv6',
    ports: [{ name: '', protocol: 'UDP', port: 80 }],
    count: 0,
    addresses: '\n\0\0\u0002',
    conditions: Uint8Array.of(2),
    nodeNames: [null],
    zoneHints: [['zone-1']],
    nodeHints: null,
  };
  const fields = Object.keys(others);
  t.strictSame(
    [...fields, 'kind', 'lastChangeTriggerTime', 'namespace', 'name'].sort(),
    Object.keys(slice('web-a', 'web')).sort(),
  );
  for (const [field, value] of Object.entries(others)) {
    source.apply(upsert(slice('web-a', 'web')));
    const received = counting(store);
    source.apply(upsert(slice('web-a', 'web', { [field]: value })));
    t.equal(received.calls, 1, field);
  }
  t.end();
});

t.test('listeners get the time when a change reached the process, if the source gives it', (t) => {
  const store = new Store();
  const source = store.register('test');
  const times: (number | null)[] = [];
  store.onChange((_, receivedAt) => times.push(receivedAt));
  source.apply(upsert(service('web')), 12.5);
  source.apply(upsert(service('other')));
  source.apply(upsert(service('web')), 13);
  t.same(times, [12.5, null]);
  t.end();
});

t.test('a row is held by the key that comes with it', (t) => {
  const store = new Store();
  const source = store.register('test');
  const row = service('web');
  source.apply([{ type: 'upsert', row, key: 'default/web' }]);
  t.equal(store.snapshot.service('default/web'), row);
  source.apply(remove(row));
  t.equal(store.snapshot.service('default/web'), undefined);
  t.end();
});

t.test('a new trigger time alone is no change; with another field it is stored', (t) => {
  const store = new Store();
  const source = store.register('test');
  source.apply(upsert(slice('web-a', 'web', { lastChangeTriggerTime: 1 })));
  store.takeChanges();
  const received = counting(store);
  for (const lastChangeTriggerTime of [2, null]) source.apply(upsert(slice('web-a', 'web', { lastChangeTriggerTime })));
  t.equal(received.calls, 0);
  t.same(servicesIn(store.takeChanges()), []);
  source.apply(upsert(slice('web-a', 'web', { lastChangeTriggerTime: 3, conditions: Uint8Array.of(2) })));
  t.equal(received.calls, 1);
  t.equal(store.snapshot.slicesOf('default/web')[0]?.lastChangeTriggerTime, 3);
  t.end();
});

t.test('listeners get the changes of a commit in their order, and nothing about readiness', (t) => {
  const store = new Store();
  const received: string[] = [];
  store.onChange((edits) => {
    received.push(edits.map(({ before, after }) => `${before?.name ?? '-'} > ${after?.name ?? '-'}`).join(', '));
  });
  const source = store.register('test');
  source.apply(upsert(node, slice('a', 'web'), service('web'), cidr('c', '10.0.0.0/8'), node));
  source.apply([...upsert(slice('a', 'other')), ...remove(service('web'), service('never'), cidr('c', '10.0.0.0/8'))]);
  source.complete();
  t.same(received, ['- > node-1, - > a, - > web, - > c', 'a > a, web > -, c > -', '']);
  t.end();
});

t.test('every field counts in the comparison of rows', (t) => {
  const variants: Row[] = [
    service('web', { affinitySeconds: 10 }),
    service('web', { creationTime: 1 }),
    service('web', { clusterIPs: ['10.96.0.11'] }),
    service('web', { ports: [{ name: '', protocol: 'UDP', port: 80, nodePort: 0 }] }),
    service('web', { type: 'ClusterIP', loadBalancer: ['1.2.3.4'] }),
    slice('web-a', 'web', { nodeHints: [[]] }),
  ];
  for (const variant of variants) {
    const store = new Store();
    const source = store.register('test');
    source.apply(upsert(service('web'), slice('web-a', 'web')));
    store.takeChanges();
    source.apply(upsert(variant));
    t.same(servicesIn(store.takeChanges()), ['default/web'], JSON.stringify(variant));
  }
  t.end();
});

t.test('slices are sorted by name in any order of arrival, and arrays handed out do not change', (t) => {
  const names = ['c', 'a', 'e', 'b', 'd'];
  const orders = [names, [...names].reverse(), [...names].sort()];
  for (const order of orders) {
    const store = new Store();
    const source = store.register('test');
    for (const name of order) source.apply(upsert(slice(name, 'web')));
    t.same(
      store.snapshot.slicesOf('default/web').map((row) => row.name),
      ['a', 'b', 'c', 'd', 'e'],
      order.join(),
    );
    const held = store.snapshot.slicesOf('default/web');
    t.equal(store.snapshot.slicesOf('default/web'), held, 'not built again for each read');
    source.apply([...remove(slice('c', 'web')), ...upsert(slice('a', 'web', { count: 0 }), slice('aa', 'web'))]);
    t.same(
      held.map((row) => row.name),
      ['a', 'b', 'c', 'd', 'e'],
    );
    t.equal(held[0]?.count, 1);
    t.same(
      store.snapshot.slicesOf('default/web').map((row) => row.name),
      ['a', 'aa', 'b', 'd', 'e'],
    );
  }
  t.end();
});

t.test('a Service is marked as changed in the families that changed', (t) => {
  const store = new Store();
  const source = store.register('test');
  const marked = (...changes: readonly StateChange[]): readonly unknown[] => {
    source.apply(changes);
    const { services } = store.takeChanges();
    return [[...services.IPv4], [...services.IPv6]];
  };
  const key = 'default/web';
  t.same(marked(...upsert(service('web'))), [[key], [key]], 'its row: in both');
  t.same(marked(...upsert(slice('a', 'web'))), [[key], []]);
  t.same(marked(...upsert(slice('b', 'web', { family: 'IPv6' }))), [[], [key]]);
  t.same(marked(...upsert(slice('b', 'web', { family: 'IPv6', conditions: Uint8Array.of(1) }))), [[], [key]]);
  t.same(marked(...upsert(slice('a', 'web', { family: 'IPv6' }))), [[key], [key]], 'a slice of another family now');
  t.same(marked(...upsert(slice('a', 'other', { family: 'IPv4' }))), [['default/other'], [key]]);
  t.same(marked(...remove(slice('b', 'web'))), [[], [key]]);
  t.end();
});

t.test('a slice that moves to another Service marks both as changed', (t) => {
  const store = new Store();
  const source = store.register('test');
  source.apply(upsert(slice('s', 'one')));
  store.takeChanges();
  source.apply(upsert(slice('s', 'two')));
  t.same(servicesIn(store.takeChanges()), ['default/one', 'default/two']);
  t.same(store.snapshot.slicesOf('default/one'), []);
  t.equal(store.snapshot.slicesOf('default/two').length, 1);
  t.end();
});

t.test('Services and slices with one name in two namespaces are separate', (t) => {
  const store = new Store();
  const source = store.register('test');
  source.apply(upsert(slice('s', 'web'), slice('s', 'web', { namespace: 'other', count: 0 })));
  t.equal(store.snapshot.slicesOf('default/web')[0]?.count, 1);
  t.equal(store.snapshot.slicesOf('other/web')[0]?.count, 0);
  t.end();
});

t.test('the store is ready once every registered source is complete, and reports each change of that', (t) => {
  const store = new Store();
  const received = counting(store);
  t.equal(store.snapshot.ready, false, 'no source');
  const one = store.register('one');
  const two = store.register('two');
  one.complete();
  one.complete();
  t.equal(store.snapshot.ready, false);
  t.same(store.waitingFor(), ['two']);
  t.equal(received.calls, 0);
  two.complete();
  t.equal(store.snapshot.ready, true);
  t.equal(received.calls, 1);
  t.equal(store.takeChanges().ready, true);
  t.equal(store.takeChanges().ready, false);
  const late = store.register('late');
  t.equal(store.snapshot.ready, false);
  t.equal(store.takeChanges().ready, true);
  late.complete();
  t.equal(store.snapshot.ready, true);
  t.equal(received.calls, 3);
  t.end();
});

t.test('of two sources with one object the first registered wins, in any order of arrival', (t) => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const store = new Store();
    const sources = [store.register('one'), store.register('two')];
    const rows = [service('web', { affinitySeconds: 1 }), service('web', { affinitySeconds: 2 })];
    for (const index of order) sources[index]!.apply(upsert(rows[index]!));
    t.equal(store.snapshot.service('default/web')?.affinitySeconds, 1);
    store.takeChanges();
    sources[1]!.apply(upsert(service('web', { affinitySeconds: 3 })));
    t.same(servicesIn(store.takeChanges()), [], 'a row that does not count changes nothing');
    sources[0]!.apply(remove(rows[0]!));
    t.equal(store.snapshot.service('default/web')?.affinitySeconds, 3, 'the other takes over');
    t.same(servicesIn(store.takeChanges()), ['default/web']);
    sources[0]!.apply(remove(rows[0]!));
    t.equal(store.snapshot.service('default/web')?.affinitySeconds, 3, 'a source removes only what it brought');
    sources[1]!.apply(remove(rows[1]!));
    t.equal(store.snapshot.service('default/web'), undefined);
  }
  t.end();
});

t.test('random histories that end in the same rows end in the same snapshot', (t) => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  const final = Array.from({ length: 30 }, (_, index) => slice(`s${index}`, `svc${index % 4}`, { count: index }));
  const print = (store: Store): string =>
    ['svc0', 'svc1', 'svc2', 'svc3', 'gone']
      .map((name) =>
        store.snapshot
          .slicesOf(`default/${name}`)
          .map((row) => `${row.name}=${row.count}`)
          .join(),
      )
      .join('\n');
  const plain = new Store();
  plain.register('test').apply(upsert(...final));
  for (let round = 0; round < 50; round++) {
    const store = new Store();
    const source = store.register('test');
    for (let step = 0; step < 60; step++) {
      const name = `s${random(40)}`;
      const row = slice(name, random(3) === 0 ? 'gone' : `svc${random(4)}`, { count: 1000 + random(9) });
      source.apply(random(3) === 0 ? remove(row) : upsert(row));
    }
    const rest = Array.from({ length: 10 }, (_, index) => slice(`s${30 + index}`, ''));
    const changes = [...upsert(...final), ...remove(...rest)];
    changes.sort(() => random(3) - 1);
    source.apply(changes);
    t.equal(print(store), print(plain));
  }
  t.end();
});

t.test('a commit costs time by its rows: 20,000 commits of one slice among 5,000 Services', (t) => {
  const store = new Store();
  const source = store.register('test');
  const rows = Array.from({ length: 5000 }, (_, index) => slice(`s${index}`, `svc${index}`));
  source.apply(upsert(...rows));
  store.takeChanges();
  const before = store.snapshot.slicesOf('default/svc1');
  for (let index = 0; index < 20_000; index++) source.apply(upsert(slice('s7', 'svc7', { count: index })));
  t.same(servicesIn(store.takeChanges()), ['default/svc7']);
  t.equal(store.snapshot.slicesOf('default/svc1'), before, 'untouched Services keep their very arrays');
  t.end();
});
