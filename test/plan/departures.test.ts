import t from 'tap';
import { addressFromBytes, parseAddress, type IPAddress } from '../../src/base/ip.js';
import { Departures, type ResetSettings } from '../../src/plan/departures.js';
import type { EndingConnectionsRow, EndpointSliceRow, Row } from '../../src/state/rows.js';
import { MOST_DEPARTURES, NAMESPACE_DEPARTURES } from '../../src/plan/known-departures.js';
import { refOf } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { node, prefix, service, slice, type EndpointText } from '../support/rows.js';
import { packedAddress } from '../../src/base/pack-address.js';

const A = '10.244.1.1';
const B = '10.244.1.2';
/** Ready, serves, and is a pod. */
const pod = (address: string, state = 'rsp'): EndpointText => ({ address, state });
const web = (endpoints: readonly EndpointText[], name = 'web-1'): EndpointSliceRow =>
  slice('web', endpoints, { name, family: 'IPv4' });

/** A state, and what is known to have departed from it. */
class Scene {
  readonly store = new Store();
  readonly settings: { -readonly [K in keyof ResetSettings]: ResetSettings[K] } = {
    resetRemovedEndpoints: true,
    localDetection: { type: 'ClusterCIDR', prefixes: [prefix('10.244.0.0/16')] },
    nodeName: 'here',
  };
  readonly departures = new Departures('IPv4', this.store.snapshot, () => this.settings);
  now = 0;
  private readonly writer = this.store.register('test');

  constructor(...rows: readonly Row[]) {
    this.store.onChange((edits) => {
      this.departures.committed(edits, this.now);
    });
    this.put(service('web'), service('other', { clusterIPs: ['10.96.0.11'] }), ...rows);
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert', row })));
  }

  remove(row: Row): void {
    this.writer.apply([{ type: 'remove', ref: refOf(row) }]);
  }

  /** Of connections of both Services to these endpoints those that would be reset. */
  reset(addresses: readonly string[] = [A, B], own: readonly string[] = []): readonly string[] {
    const pairs = ['default/web', 'default/other'].flatMap((key) =>
      addresses.map((text) => ({ service: key, address: packedAddress(ip(text)) })),
    );
    const confirmed = this.departures.confirm(pairs, new Set(own.map(ip)), this.now);
    return [...confirmed].flatMap(([key, found]) =>
      [...found].map((each) => `${key} ${addressFromBytes(Buffer.from(each, 'latin1'))}`),
    );
  }

  service(endingConnections: EndingConnectionsRow | null): void {
    this.put(service('web', { endingConnections }));
  }
}

function ip(text: string): IPAddress {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(text);
  return address;
}

t.test('a pod whose address is in no slice for a second counts as removed, for its Service', (t) => {
  const scene = new Scene(web([pod(A), pod(B)]));
  t.equal(scene.departures.dueAt, null);
  scene.now = 100;
  scene.put(web([pod(B)]));
  t.equal(scene.departures.dueAt, 1100);
  scene.now = 1099;
  t.same(scene.reset(), []);
  t.same(scene.departures.due(scene.now), []);
  scene.now = 1100;
  t.same(scene.reset(), [`default/web ${A}`]);
  const due = scene.departures.due(scene.now);
  t.match(due, [{ cause: 'removed', service: 'default/web', dueAt: 1100 }]);
  scene.departures.finished(due);
  t.same(scene.reset(), []);
  t.equal(scene.departures.dueAt, null);
  t.end();
});

t.test('an address in another slice, or that returns, or whose Service is deleted, is not removed', (t) => {
  const moved = new Scene(web([pod(A)]), web([pod(B)], 'web-2'));
  moved.put(web([]));
  moved.put(web([pod(B), pod(A)], 'web-2'));
  moved.now = 5000;
  t.same(moved.reset(), [], 'in another slice of the Service');

  const shared = new Scene(web([pod(A)]), slice('other', [pod(A)]));
  shared.put(web([]));
  shared.now = 5000;
  t.same(shared.reset(), [], 'in a slice of another Service');

  const back = new Scene(web([pod(A)]));
  back.put(web([]));
  back.now = 900;
  back.put(web([pod(A)]));
  back.now = 5000;
  t.same(back.reset(), [], 'back after 900 ms');
  back.put(web([]));
  back.now = 5900;
  t.same(back.reset(), [], 'and its second begins anew');
  back.now = 6000;
  t.ok(back.departures.stands({ service: 'default/web', address: packedAddress(ip(A)) }));
  back.put(web([pod(A)]));
  t.notOk(back.departures.stands({ service: 'default/web', address: packedAddress(ip(A)) }), 'back within the pass');

  const deleted = new Scene(web([pod(A)]));
  deleted.remove(service('web'));
  deleted.remove(web([pod(A)]));
  deleted.now = 5000;
  t.same(deleted.reset(), [], 'connections of a deleted Service go on');
  t.end();
});

t.test("a slice of another Service's that calls an address a pod's resets no connection", (t) => {
  const scene = new Scene(web([{ address: A }]), slice('other', [pod(A)]));
  scene.put(web([]));
  scene.now = 5000;
  t.same(scene.reset(), []);
  scene.put(slice('other', []));
  scene.now = 10_000;
  t.same(scene.reset(), [`default/other ${A}`], 'only its own');
  t.end();
});

t.test('a pod that leaves its Services one after the other is removed for each when the last has dropped it', (t) => {
  const scene = new Scene(web([pod(A)]), slice('other', [pod(A)]));
  const isDue = (): boolean => scene.departures.due(scene.now).length > 0;
  scene.put(web([]));
  for (scene.now = 1000; scene.now <= 121_000; scene.now += 60_000) {
    const due = scene.departures.due(scene.now);
    t.equal(due.length, 1, 'looked at each minute, as long as there are connections');
    t.same(scene.reset(), []);
    scene.departures.finished(due);
    t.notOk(isDue());
  }
  scene.now = 122_000;
  scene.put(slice('other', []));
  scene.now = 122_999;
  t.notOk(isDue());
  scene.now = 123_000;
  t.same(scene.reset(), [`default/web ${A}`, `default/other ${A}`]);
  scene.departures.finished(scene.departures.due(scene.now));
  t.equal(scene.departures.dueAt, null);

  const back = new Scene(web([pod(A)]), slice('other', [pod(A)]));
  back.put(web([]));
  back.now = 1000;
  t.same(back.reset(), []);
  back.put(web([pod(A)], 'web-2'));
  back.put(slice('other', []));
  back.now = 5000;
  t.same(back.reset(), [], 'back in its Service while it waited');

  const moved = new Scene(web([pod(A)]), web([pod(A)], 'web-2'));
  moved.put(web([]));
  moved.now = 1000;
  const due = moved.departures.due(moved.now);
  t.same(moved.reset(), []);
  moved.departures.finished(due);
  t.equal(moved.departures.dueAt, null, 'in another slice of its Service, it waits for nothing');
  t.end();
});

t.test('many addresses are looked for in all slices at once', (t) => {
  const many = Array.from({ length: 40 }, (_, index) => `10.244.2.${index + 1}`);
  const scene = new Scene(web(many.map((address) => pod(address))));
  scene.put(
    slice(
      'other',
      many.slice(0, 30).map((address) => pod(address)),
    ),
  );
  scene.put(web([]));
  scene.now = 1000;
  t.same(
    scene.reset(many).filter((line) => line.startsWith('default/web')),
    many.slice(30).map((address) => `default/web ${address}`),
  );
  t.end();
});

t.test("an address that is not a pod's, or shared by pods, is never removed", (t) => {
  const other = new Scene(web([{ address: A }]));
  other.put(web([]));
  other.now = 5000;
  t.same(other.reset(), [], 'no targetRef of kind Pod');

  const host = new Scene(web([pod('192.168.0.9'), pod(A)]));
  host.put(web([]));
  host.now = 5000;
  t.same(host.reset(['192.168.0.9']), [], 'outside of the pods’ range');
  t.same(host.reset([A], [A]), [], 'an address of this node');
  host.settings.localDetection = { type: 'NodeCIDR' };
  t.same(host.reset(['192.168.0.9']), ['default/web 192.168.0.9'], 'the range is unknown');
  host.put(node('here', ['192.168.0.9']));
  t.same(host.reset(['192.168.0.9']), [], 'an address of our Node');
  t.end();
});

t.test('endpoints that are not ready, terminating or excluded by hints are not removed', (t) => {
  const scene = new Scene(web([pod(A), pod(B)]));
  for (const endpoint of [pod(A, 'p'), pod(A, 'tp'), pod(A, 'stp'), { ...pod(A), zones: ['elsewhere'] }]) {
    scene.put(web([endpoint, pod(B)]));
    scene.now += 5000;
    t.same(scene.reset(), []);
    t.equal(scene.departures.dueAt, null);
  }
  t.end();
});

t.test('resets of removed endpoints are switched off or on, globally or by Service', (t) => {
  const scene = new Scene(web([pod(A)]));
  scene.service({ reset: 'off', drainSeconds: null, unreadable: [] });
  scene.put(slice('other', [pod(A)]));
  scene.put(web([]), slice('other', []));
  scene.now = 1000;
  t.same(scene.reset(), [`default/other ${A}`]);
  scene.settings.resetRemovedEndpoints = false;
  t.same(scene.reset(), []);
  scene.service({ reset: 'service', drainSeconds: null, unreadable: [] });
  t.same(scene.reset(), [`default/web ${A}`]);
  t.end();
});

t.test('reset annotation "service": endpoints that left the Service are removed for it only', (t) => {
  const scene = new Scene();
  scene.service({ reset: 'service', drainSeconds: null, unreadable: [] });
  scene.put(web([{ address: A }, pod(B)]), slice('other', [{ address: A }, pod(B)]));
  scene.put(web([]));
  t.same(scene.reset(), []);
  scene.now = 1000;
  t.same(scene.reset(), [`default/web ${A}`, `default/web ${B}`]);
  scene.put(web([{ address: A }]));
  t.same(scene.reset(), [`default/web ${B}`]);
  t.end();
});

t.test('drain annotation: connections to a terminating endpoint end after its time', (t) => {
  const scene = new Scene(slice('other', [pod(A, 'stp')]));
  scene.put(web([pod(A, 'stp'), pod(B)]));
  scene.now = 10_000;
  scene.service({ reset: null, drainSeconds: 60, unreadable: [] });
  t.equal(scene.departures.dueAt, 70_000);
  scene.now = 20_000;
  scene.put(web([pod(A, 'tp'), pod(B, 'stp')]));
  scene.now = 69_999;
  t.same(scene.reset(), []);
  scene.now = 70_000;
  t.same(scene.reset(), [`default/web ${A}`]);
  scene.put(web([pod(A), pod(B, 'stp')]));
  t.same(scene.reset(), [], 'it terminates no more');
  scene.now = 80_000;
  t.same(scene.reset(), [`default/web ${B}`]);
  scene.service({ reset: 'off', drainSeconds: 90, unreadable: [] });
  t.same(scene.reset(), [], 'a longer time, from the same moment');
  scene.now = 110_000;
  t.same(scene.reset(), [`default/web ${B}`]);
  scene.service(null);
  t.same(scene.reset(), []);
  t.end();
});

t.test('endpoints removed while no process ran are derived from connections', (t) => {
  const scene = new Scene(web([pod(B)]));
  const pairs = [A, B, '192.168.0.9'].map((text) => ({ service: 'default/web', address: packedAddress(ip(text)) }));
  scene.now = 1000;
  t.ok(scene.departures.derives);
  scene.departures.derive(pairs, scene.now);
  t.same(scene.reset(), [], 'slices may be on their way');
  scene.now = 2000;
  t.same(
    scene.reset([A, B, '192.168.0.9']).filter((line) => line.startsWith('default/web')),
    [`default/web ${A}`],
    'in the pods’ range and in no slice',
  );
  t.equal(scene.departures.due(scene.now).length, 1);
  scene.departures.finished(scene.departures.due(scene.now));
  scene.put(web([]));
  scene.departures.derive(pairs, scene.now);
  t.same(scene.reset([B]), [], 'one that was seen going a moment ago waits for its second');

  const unknown = new Scene(web([pod(B)]));
  unknown.settings.localDetection = { type: 'BridgeInterface', name: 'cbr0' };
  t.notOk(unknown.departures.derives);
  unknown.departures.derive(pairs, 0);
  unknown.now = 1000;
  t.same(unknown.reset([A, '192.168.0.9']), [], 'nothing is known of pods’ addresses');
  unknown.service({ reset: 'service', drainSeconds: null, unreadable: [] });
  t.ok(unknown.departures.derives);
  unknown.departures.derive(pairs, 0);
  t.same(unknown.reset([A, B, '192.168.0.9']), [`default/web ${A}`, 'default/web 192.168.0.9']);

  const other = new Scene(web([{ address: A }]));
  other.departures.derive(pairs, 0);
  other.put(web([]));
  other.now = 5000;
  t.same(other.reset([A]), [], 'one that was there and is not a pod');
  t.end();
});

/** Slices of a thousand endpoints each. */
function thousands(namespace: string, count: number, state = 'rsp'): readonly EndpointSliceRow[] {
  return Array.from({ length: count }, (_, block) =>
    slice(
      'web',
      Array.from({ length: 1000 }, (_, index) => pod(`10.${block + 1}.${index >> 8}.${index & 255}`, state)),
      { namespace, name: `web-${block}`, family: 'IPv4' },
    ),
  );
}

const HALF = MOST_DEPARTURES / 2;
const SHARE = NAMESPACE_DEPARTURES;

t.test(
  'a flood of removed endpoints takes the places of half, what has none is due at once, and others have room',
  (t) => {
    const scene = new Scene(service('web', { namespace: 'noisy' }), web([pod(A)]));
    const blocks = thousands('noisy', 70);
    scene.put(...blocks);
    for (const block of blocks) scene.remove(block);
    t.equal(scene.departures.dueAt, -Infinity);
    t.same(scene.departures.takeOverflow(), { removed: 70_000 - HALF, left: 0, drained: 0, namespace: 'noisy' });
    t.equal(scene.departures.takeOverflow(), null);
    t.equal(scene.departures.dueAt, 1000);
    scene.put(web([]));
    t.equal(scene.departures.takeOverflow(), null, 'the neighbour has a place');
    scene.now = 1000;
    t.same(scene.reset([A]), [`default/web ${A}`]);
    scene.departures.finished(scene.departures.due(scene.now));
    t.equal(scene.departures.dueAt, null);
    t.end();
  },
);

t.test(
  'namespaces that fill the places leave each other their shares, and what cannot be derived now is due again',
  (t) => {
    const scene = new Scene();
    for (const namespace of ['a', 'b', 'c', 'd', 'e']) {
      const blocks = thousands(namespace, namespace === 'a' ? 40 : 10);
      scene.put(...blocks);
      for (const block of blocks) scene.remove(block);
    }
    const kept = HALF + 4 * SHARE;
    t.equal(kept, MOST_DEPARTURES);
    t.match(scene.departures.takeOverflow(), { removed: 80_000 - kept, namespace: 'a' });
    const pairs = [{ service: 'default/web', address: packedAddress(ip(A)) }];
    t.notOk(scene.departures.derive(pairs, 500));
    scene.now = 1000;
    scene.departures.finished(scene.departures.due(scene.now));
    t.ok(scene.departures.derive(pairs, scene.now));
    t.end();
  },
);

t.test('endpoints that drain for a day take no place of removals, and no more than half of their own', (t) => {
  const drain = { reset: null, drainSeconds: 86_400, unreadable: [] } as const;
  const scene = new Scene(service('web', { namespace: 'noisy', endingConnections: drain }), web([pod(A), pod(B)]));
  scene.put(...thousands('noisy', 70, 'stp'));
  t.match(scene.departures.takeOverflow(), { removed: 0, drained: 70_000 - HALF, namespace: 'noisy' });
  t.ok(scene.departures.drainsAreFull('noisy'));
  t.notOk(scene.departures.drainsAreFull('default'));
  scene.service({ ...drain, drainSeconds: 1 });
  scene.put(web([pod(B, 'stp')]));
  scene.now = 1000;
  t.same(scene.reset([A, B]).toSorted(), [`default/web ${A}`, `default/web ${B}`], 'a neighbour’s removal and drain');
  scene.remove(thousands('noisy', 1)[0] ?? web([]));
  t.notOk(scene.departures.drainsAreFull('noisy'));
  t.end();
});

t.test('an endpoint with many connections is looked up once', (t) => {
  const scene = new Scene(web([pod(A), pod(B)]));
  scene.service({ reset: 'service', drainSeconds: null, unreadable: [] });
  scene.put(web([pod(B)]));
  scene.now = 1000;
  let looks = 0;
  const { snapshot } = scene.store;
  const departures = new Departures(
    'IPv4',
    Object.create(snapshot, {
      slicesOf: {
        value: (key: string) => {
          looks++;
          return snapshot.slicesOf(key);
        },
      },
    }) as typeof snapshot,
    () => scene.settings,
  );
  const pair = { service: 'default/web', address: packedAddress(ip(A)) };
  departures.derive(new Array<typeof pair>(1000).fill(pair), 0);
  t.equal(looks, 1, 'to find it');
  t.equal(departures.confirm(new Array<typeof pair>(1000).fill(pair), new Set(), 1000).size, 1);
  t.equal(looks, 2, 'to make sure');
  t.end();
});
