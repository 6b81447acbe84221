import t from 'tap';
import { nodeObject, serviceCIDRObject, sliceObject, type ApiObject } from '../../support/api-objects.js';
import { fixture } from '../../support/api-server/fixtures.js';
import { encodeWatchEvent } from '../../support/api-server/protobuf.js';
import { brokenService } from './broken-object.js';
import { FakeWorld, SERVICE_TYPE, serviceAt, settle } from './fake-world.js';

const NODE_TYPE = { kind: 'Node', apiVersion: 'v1' };
const SLICE_TYPE = { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1' };

function at(object: ApiObject, version: number): ApiObject {
  return { ...object, metadata: { ...(object['metadata'] as ApiObject), resourceVersion: String(version) } };
}

t.test('the reflector sends the requests of a list and a watch', async (t) => {
  const world = new FakeWorld({ contentType: '' });
  const services = await world.request('services', 1);
  t.equal(services.path, '/api/v1/services');
  t.strictSame(services.query, {
    watch: '1',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '300',
    labelSelector: '!service.kubernetes.io/service-proxy-name',
    fieldSelector: 'spec.clusterIP!=None',
  });
  t.equal(services.options.accept, 'application/vnd.kubernetes.protobuf, */*');
  const slices = await world.request('endpointslices', 1);
  t.match(slices, {
    path: '/apis/discovery.k8s.io/v1/endpointslices',
    query: { labelSelector: '!service.kubernetes.io/headless' },
  });
  t.equal(slices.query['fieldSelector'], undefined);
  const cidrs = await world.request('servicecidrs', 1);
  t.match(cidrs, { path: '/apis/networking.k8s.io/v1/servicecidrs', operation: 'list' });
  t.equal(world.requests('nodes').length, 0, 'after the ServiceCIDRs, on their connection');
  cidrs.list('ServiceCIDR', '5', []);
  const node = await world.request('nodes', 1);
  t.match(node, { path: '/api/v1/nodes', query: { fieldSelector: 'metadata.name=node-1' } });
  await world.running.stop();
  t.ok([services, slices, node].every(({ aborted }) => aborted));
});

t.test('the reflector uses the configured encoding', async (t) => {
  for (const [contentType, acceptContentTypes, accept] of [
    ['application/json', '', 'application/json, */*'],
    ['application/vnd.kubernetes.protobuf', 'application/json', 'application/json'],
  ] as const) {
    const world = new FakeWorld({ contentType, acceptContentTypes });
    t.equal((await world.request('services', 1)).options.accept, accept);
    await world.running.stop();
  }
});

t.test(
  'the reflectors are ready: Services and slices when synced, Node and ServiceCIDRs after one attempt',
  async (t) => {
    const world = new FakeWorld();
    const completed = (): readonly number[] =>
      ['services', 'endpointslices', 'nodes', 'servicecidrs'].map(
        (name) => world.writer.source(`kubernetes ${name}`).completed,
      );
    (await world.request('services', 1)).fail({ code: 503, reason: '', message: 'starting' });
    (await world.request('servicecidrs', 1)).fail({ code: 403, reason: 'Forbidden', message: 'no' });
    await settle();
    t.same(completed(), [0, 0, 0, 1]);
    (await world.request('nodes', 1)).refuse();
    const slices = (await world.request('endpointslices', 1)).open();
    slices.event('ADDED', at(sliceObject('web-1', 'web', ['10.0.0.1']), 3));
    await settle();
    t.same(completed(), [0, 0, 1, 1]);
    slices.bookmark(SLICE_TYPE, '4', true);
    await world.advance(800);
    (await world.request('services', 2)).open().bookmark(SERVICE_TYPE, '4', true);
    await settle();
    t.same(completed(), [1, 1, 1, 1]);
    t.match(world.status('nodes'), { synced: false, failures: { unavailable: 1 } });
    t.match(world.status('servicecidrs'), { synced: false, failures: { forbidden: 1 } });
    t.match(world.status('endpointslices'), { synced: true, objects: 1, events: { ADDED: 1, BOOKMARK: 1 } });
    await world.running.stop();
    t.same(completed(), [1, 1, 1, 1], 'once each');
  },
);

t.test('the reflector waits for a required Node', async (t) => {
  const world = new FakeWorld({ nodeRequired: true });
  const nodes = world.writer.source('kubernetes nodes');
  (await world.request('servicecidrs', 1)).list('ServiceCIDR', '5', []);
  (await world.request('nodes', 1)).refuse();
  await world.advance(800);
  t.equal(nodes.completed, 0);
  const watch = (await world.request('nodes', 2)).open();
  watch
    .event('ADDED', at(nodeObject('node-1', { spec: { podCIDR: '10.1.0.0/24' } }), 3))
    .bookmark(NODE_TYPE, '3', true);
  await settle();
  t.equal(nodes.completed, 1);
  t.match(nodes.rows.get('/node-1'), { podCIDRs: ['10.1.0.0/24'] });
  watch.event('DELETED', at(nodeObject('node-1'), 9));
  await settle();
  t.equal(nodes.rows.size, 0);
  await world.running.stop();
});

t.test('a server that refuses streaming lists is asked for a list, which is remembered', async (t) => {
  const refusals: readonly ((world: FakeWorld) => Promise<void>)[] = [
    async (world) => {
      (await world.request('services', 1)).fail({ code: 422, reason: 'Invalid', message: 'Forbidden' });
    },
    async (world) => {
      (await world.request('services', 1)).open().end(fixture('services.watchlist-refused.json').toString());
    },
    // A server that knows neither parameter: an ordinary watch, and its ordinary bookmark.
    async (world) => {
      (await world.request('services', 1)).open().event('ADDED', serviceAt('a', 1)).bookmark(SERVICE_TYPE, '7');
    },
  ];
  for (const refuse of refusals) {
    const world = new FakeWorld({ configSyncPeriodMs: 600_000 });
    await refuse(world);
    const list = await world.request('services', 2);
    t.match(list, { operation: 'list', query: { resourceVersion: '0' } }, 'at once');
    t.equal(list.query['limit'], undefined, 'unpaged');
    list.list('Service', '10', [serviceAt('a', 1)]);
    await settle();
    t.same(world.services.takeCommits(), ['+a']);
    t.equal(world.services.completed, 1);
    const expired = { kind: 'Status', metadata: {}, code: 410, reason: 'Expired', message: 'old' };
    (await world.request('services', 3)).open().event('ERROR', expired);
    await world.advance(800);
    const again = await world.request('services', 4);
    t.equal(again.operation, 'list', 'remembered');
    again.list('Service', '11', [serviceAt('a', 1)]);
    const watch = (await world.request('services', 5)).open();
    await world.advance(170_000);
    watch.bookmark(SERVICE_TYPE, '12');
    await world.advance(170_000);
    watch.bookmark(SERVICE_TYPE, '13');
    await world.advance(170_000);
    watch.bookmark(SERVICE_TYPE, '14');
    await world.advance(100_000);
    watch.event('ERROR', expired);
    await world.advance(1600);
    t.equal((await world.request('services', 6)).operation, 'watchlist', 'not for ever: the server may be a newer one');
    await world.running.stop();
  }
});

t.test('the reflector reads a list in pages that it did not ask for', async (t) => {
  const world = new FakeWorld();
  (await world.request('services', 1)).fail({ code: 400, reason: 'BadRequest', message: 'no' });
  const page = (items: readonly ApiObject[], token: string): string =>
    JSON.stringify({ kind: 'ServiceList', metadata: { resourceVersion: '50', continue: token }, items });
  (await world.request('services', 2)).open().end(page([serviceAt('a', 1)], 'rest'));
  const second = await world.request('services', 3);
  t.match(second.query, { continue: 'rest', limit: '500', labelSelector: /^!/ });
  t.equal(second.query['resourceVersion'], undefined);
  t.same(world.services.takeCommits(), []);
  second.open().end(page([serviceAt('b', 2)], ''));
  await settle();
  t.same(world.services.takeCommits(), ['+a +b']);
  await world.running.stop();
});

t.test('events that arrive together are one commit, and changed labels hide and show an object', async (t) => {
  const world = new FakeWorld();
  const watch = await world.syncServices(10, []);
  const events = [
    { type: 'ADDED', object: serviceAt('a', 11) },
    { type: 'MODIFIED', object: serviceAt('a', 12, { externalIPs: ['192.0.2.1'] }) },
    { type: 'ADDED', object: serviceAt('b', 13) },
  ];
  watch.write(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  await settle();
  t.same(world.services.takeCommits(), ['+a +a +b']);
  t.match(world.services.rows.get('default/a'), { externalIPs: ['192.0.2.1'] });
  watch.event('DELETED', serviceAt('a', 14));
  await settle();
  t.same(world.services.takeCommits(), ['-a'], 'the label of another proxy');
  watch.event('ADDED', serviceAt('a', 15)).event('MODIFIED', serviceAt('a', 15));
  await settle();
  t.same(world.services.takeCommits(), ['+a'], 'and an event in a known version is nothing');
  t.match(world.status('services'), { version: '15', objects: 2, events: { ADDED: 3, MODIFIED: 2, DELETED: 1 } });
  await world.running.stop();
});

t.test('objects deleted during the initial events are gone afterwards', async (t) => {
  const world = new FakeWorld();
  const watch = (await world.request('services', 1)).open();
  watch.event('ADDED', serviceAt('a', 1)).event('ADDED', serviceAt('b', 2)).event('DELETED', serviceAt('a', 3));
  watch.bookmark(SERVICE_TYPE, '3', true);
  await settle();
  t.same([...world.services.rows.keys()], ['default/b']);
  t.equal(world.status('services').objects, 1);
  await world.running.stop();
});

t.test('five idle minutes: three watches, and no further request', async (t) => {
  const world = new FakeWorld();
  (await world.request('servicecidrs', 1)).list('ServiceCIDR', '5', [
    at(serviceCIDRObject('kubernetes', ['10.96.0.0/12']), 2),
  ]);
  const watches = [
    { watch: (await world.request('services', 1)).open(), type: SERVICE_TYPE },
    { watch: (await world.request('endpointslices', 1)).open(), type: SLICE_TYPE },
    { watch: (await world.request('nodes', 1)).open(), type: NODE_TYPE },
  ];
  for (const { watch, type } of watches) watch.bookmark(type, '10', true);
  for (let minute = 1; minute <= 5; minute++) {
    await world.advance(60_000);
    for (const { watch, type } of watches) watch.bookmark(type, String(10 + minute));
  }
  await settle();
  t.equal(world.connection.requests.length, 4);
  t.ok(watches.every(({ watch }) => !watch.aborted));
  t.ok(world.clock.waiting <= 3, `${world.clock.waiting} timers`);
  t.match(world.status('services'), { version: '15', watching: true, sinceLastEventMs: 0 });
  await world.running.stop();
  t.equal(world.clock.waiting, 0);
});

t.test('ServiceCIDRs are listed again after configSyncPeriod, when the watch of the Node restarts', async (t) => {
  const world = new FakeWorld({ configSyncPeriodMs: 400_000 });
  const cidrs = world.writer.source('kubernetes servicecidrs');
  const cidr = at(serviceCIDRObject('kubernetes', ['10.96.0.0/12']), 2);
  (await world.request('servicecidrs', 1)).list('ServiceCIDR', '5', [cidr]);
  await settle();
  t.same([cidrs.takeCommits(), cidrs.completed], [['+kubernetes'], 1]);
  let watch = (await world.request('nodes', 1)).open().bookmark(NODE_TYPE, '10', true);
  for (let turn = 2; turn <= 3; turn++) {
    await world.advance(150_000);
    watch.bookmark(NODE_TYPE, '11');
    await world.advance(150_000);
    t.equal(world.requests('servicecidrs').length, 1);
    watch.end();
    if (turn === 2) watch = (await world.request('nodes', turn)).open();
  }
  const second = await world.request('servicecidrs', 2);
  t.match(second.query, { resourceVersion: '5', resourceVersionMatch: 'NotOlderThan' });
  second.fail({ code: 404, reason: 'NotFound', message: 'gone' });
  await world.request('nodes', 3);
  t.equal(cidrs.rows.size, 1, 'a server that had some and now says it has none is not believed');
  await world.running.stop();
});

t.test('ServiceCIDRs that no server answered for are requested again soon', async (t) => {
  const world = new FakeWorld();
  (await world.request('servicecidrs', 1)).fail({ code: 503, reason: 'ServiceUnavailable', message: 'starting' });
  const watch = await world.request('nodes', 1);
  const seconds = Number(watch.query['timeoutSeconds']);
  t.ok(seconds >= 1 && seconds <= 2, `a watch of ${seconds} s`);
  watch.open().bookmark(NODE_TYPE, '10', true).end();
  await world.advance(2000);
  const cidr = at(serviceCIDRObject('kubernetes', ['10.96.0.0/12']), 2);
  (await world.request('servicecidrs', 2)).list('ServiceCIDR', '5', [cidr]);
  t.ok(Number((await world.request('nodes', 2)).query['timeoutSeconds']) >= 300, 'then as ever');
  await world.running.stop();
});

for (const [code, reason] of [
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
] as const)
  t.test(`ServiceCIDRs that were refused by ${code} with the Node are requested again soon after it`, async (t) => {
    const world = new FakeWorld();
    const refusal = { code, reason, message: 'not yet' };
    (await world.request('servicecidrs', 1)).fail(refusal);
    (await world.request('nodes', 1)).fail(refusal);
    await world.advance(1000);
    (await world.request('servicecidrs', 2)).fail(refusal);
    // The credentials are accepted from here on.
    const watch = await world.request('nodes', 2);
    t.ok(Number(watch.query['timeoutSeconds']) <= 2, `a watch of ${watch.query['timeoutSeconds'] ?? ''} s`);
    watch.open().bookmark(NODE_TYPE, '10', true).end();
    await world.advance(2000);
    const cidr = at(serviceCIDRObject('kubernetes', ['10.96.0.0/12']), 2);
    (await world.request('servicecidrs', 3)).list('ServiceCIDR', '5', [cidr]);
    t.ok(Number((await world.request('nodes', 3)).query['timeoutSeconds']) >= 300, 'then as ever');
    t.match(world.status('servicecidrs'), { synced: true, trouble: null });
    await world.running.stop();
  });

t.test('ServiceCIDRs alone that are refused do not shorten watches of the Node', async (t) => {
  const world = new FakeWorld();
  const refusal = { code: 403, reason: 'Forbidden', message: 'no' };
  (await world.request('servicecidrs', 1)).fail(refusal);
  const watch = await world.request('nodes', 1);
  t.ok(Number(watch.query['timeoutSeconds']) >= 300);
  watch.open().bookmark(NODE_TYPE, '10', true).end();
  await world.advance(2000);
  (await world.request('servicecidrs', 2)).fail(refusal);
  t.ok(Number((await world.request('nodes', 2)).query['timeoutSeconds']) >= 300);
  await world.running.stop();
});

t.test('a server without ServiceCIDRs is accepted', async (t) => {
  const world = new FakeWorld();
  (await world.request('servicecidrs', 1)).fail({ code: 404, reason: 'NotFound', message: 'no such resource' });
  const watch = (await world.request('nodes', 1)).open().bookmark(NODE_TYPE, '10', true);
  await settle();
  t.equal(world.writer.source('kubernetes servicecidrs').completed, 1);
  t.match(world.status('servicecidrs'), { trouble: null, failures: { missing: 0 } });
  t.same(
    world.log.lines.filter((line) => /^(error|warn)/.test(line)),
    [],
  );
  await world.advance(150_000);
  watch.end();
  await world.request('nodes', 2);
  t.equal(world.requests('servicecidrs').length, 1);
  await world.running.stop();
});

t.test('an unreadable object in a list is kept, and everything is listed again after configSyncPeriod', async (t) => {
  const world = new FakeWorld({ configSyncPeriodMs: 200_000, contentType: '' });
  const first = (await world.request('services', 1)).open('application/vnd.kubernetes.protobuf');
  const end = {
    ...SERVICE_TYPE,
    metadata: { resourceVersion: '10', annotations: { 'k8s.io/initial-events-end': 'true' } },
  };
  first.write(encodeWatchEvent('ADDED', serviceAt('a', 1))).write(encodeWatchEvent('BOOKMARK', end));
  await settle();
  t.same(world.services.takeCommits(), ['+a']);
  first.write(brokenService('MODIFIED', serviceAt('a', 11)));
  await world.advance(800);
  const second = (await world.request('services', 2)).open('application/vnd.kubernetes.protobuf');
  second.write(brokenService('ADDED', serviceAt('a', 11))).write(brokenService('ADDED', serviceAt('b', 12)));
  second.write(encodeWatchEvent('ADDED', serviceAt('c', 13))).write(encodeWatchEvent('BOOKMARK', end));
  await settle();
  t.same(world.services.takeCommits(), ['+c'], 'a is present in its old form, b is not to be had');
  t.match(world.status('services'), { synced: true, undecodable: 3, failures: { undecodable: 1 } });
  await world.advance(170_000);
  second.write(encodeWatchEvent('BOOKMARK', end));
  await world.advance(40_000);
  second.end();
  const third = (await world.request('services', 3)).open('application/vnd.kubernetes.protobuf');
  t.equal(third.operation, 'watchlist', 'not from the version it had');
  for (const [name, version] of [
    ['a', 11],
    ['b', 12],
    ['c', 13],
  ] as const) {
    third.write(encodeWatchEvent('ADDED', serviceAt(name, version)));
  }
  third.write(encodeWatchEvent('BOOKMARK', end));
  await settle();
  t.same(world.services.takeCommits(), ['+a +b']);
  await world.running.stop();
});

t.test('an object without metadata is left out of initial events and lists, and the others are taken', async (t) => {
  for (const metadata of [null, 7, { name: 7 }]) {
    const world = new FakeWorld();
    const bad = { ...serviceAt('bad', 2), metadata } as unknown as ApiObject;
    const first = (await world.request('services', 1)).open();
    for (const object of [serviceAt('a', 1), bad, serviceAt('c', 3)]) first.event('ADDED', object);
    first.bookmark(SERVICE_TYPE, '10', true);
    await settle();
    t.same([...world.services.rows.keys()], ['default/a', 'default/c']);
    t.match(world.status('services'), { synced: true, undecodable: 1, failures: {}, trouble: null });
    t.match(world.log.lines.join('\n'), /cannot be used.*(an object has no metadata|name is no text)/);
    first.event('MODIFIED', bad);
    await world.advance(800);
    (await world.request('services', 2)).fail({
      code: 422,
      reason: 'Invalid',
      message: 'sendInitialEvents: Forbidden',
    });
    (await world.request('services', 3)).list('Service', '20', [serviceAt('a', 1), bad, serviceAt('d', 12)]);
    await settle();
    t.same([...world.services.rows.keys()], ['default/a', 'default/d']);
    t.match(world.status('services'), { synced: true, failures: { undecodable: 1 }, trouble: null });
    await world.running.stop();
  }
});

t.test('an object without a name is reported once, and the others of its list are taken', async (t) => {
  const world = new FakeWorld();
  const first = (await world.request('services', 1)).open();
  const unnamed = serviceAt('', 2);
  const misplaced = (name: string): ApiObject => ({ ...unnamed, metadata: { name, resourceVersion: '3' } });
  for (const object of [serviceAt('a', 1), unnamed, misplaced('b'), serviceAt('c', 4)]) first.event('ADDED', object);
  first.event('DELETED', misplaced('a')).bookmark(SERVICE_TYPE, '10', true);
  await settle();
  t.same([...world.services.rows.keys()], ['default/a', 'default/c']);
  t.match(world.status('services'), { synced: true, lists: 1, undecodable: 2, failures: {}, trouble: null });
  t.match(world.log.lines, [/cannot be used.*namespace "default" and name ""/, /namespace "" and name "b"/]);
  t.equal(world.running.holdings.get('services')?.inventory.leftOut().length, 2);
  first.event('DELETED', serviceAt('', 11));
  await world.advance(800);
  const second = (await world.request('services', 2)).open();
  for (const object of [unnamed, misplaced('b'), serviceAt('c', 4), serviceAt('d', 6)]) second.event('ADDED', object);
  second.bookmark(SERVICE_TYPE, '12', true);
  await settle();
  t.same([...world.services.rows.keys()], ['default/c', 'default/d'], 'what the list lacks is removed');
  t.equal(world.log.lines.filter((line) => line.includes('cannot be used')).length, 2);
  await world.running.stop();
});
