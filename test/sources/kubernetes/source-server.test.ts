import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { Loop } from '../../../src/control/loop.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import { translate } from '../../../src/sources/translate/object.js';
import { objectKey } from '../../../src/state/rows.js';
import { fromFile } from '../../config/load-from.js';
import {
  nodeObject,
  serviceCIDRObject,
  serviceObject,
  sliceObject,
  type ApiObject,
} from '../../support/api-objects.js';
import { fixture, jsonList } from '../../support/api-server/fixtures.js';
import { resourceOfKind } from '../../support/api-server/resources.js';
import type { ServedWatch } from '../../support/api-server/watch.js';
import { FakeClock } from '../../support/fake-clock.js';
import { LiveWorld, until } from './live-world.js';

/** The objects of the recorded lists. */
function recorded(): readonly ApiObject[] {
  return ['services', 'endpointslices', 'nodes'].flatMap((plural) => {
    const { kind, items } = jsonList(fixture(`${plural}.list.json`));
    return items.map((item) => ({ ...item, kind }));
  });
}

const SERVICES = resourceOfKind('Service');

t.test('a change of the API server keeps equal objects and removes missing ones', async (t) => {
  const world = new LiveWorld({ bookmarkMs: 50 });
  t.teardown(() => world.stop());
  world.server.put(...recorded(), nodeObject('node-2'), serviceCIDRObject('kubernetes', ['10.96.0.0/12']));
  await world.start();
  await world.ready();
  await world.inStep();
  const web = world.store.snapshot.service('default/web');
  const edits: string[] = [];
  world.store.onChange((rows) => {
    edits.push(...rows.map(({ before, after }) => `${before?.name ?? ''} → ${after?.name ?? ''}`));
    t.ok(world.store.snapshot.ready, 'ready all the time');
  });
  let read = 0;
  await world.follow({ nodeName: 'node-2', contentType: 'application/json', nodeRead: () => read++ });
  await world.inStep();
  t.same(edits.sort(), [' → node-2', 'node-1 → '], 'another Node, and nothing else');
  t.equal(world.store.snapshot.service('default/web'), web);
  t.equal(read, 1);
  world.server.store.delete(SERVICES, { namespace: 'default', name: 'web' });
  await until(() => world.store.snapshot.service('default/web') === undefined, 'removed');
  await world.withdraw();
  t.same([...world.store.snapshot.services(), ...world.store.snapshot.serviceCIDRs()], []);
  t.equal(world.store.snapshot.node('node-2'), undefined);
});

t.test('both encodings, streamed or listed, give the same state', async (t) => {
  for (const contentType of ['application/json', 'application/vnd.kubernetes.protobuf']) {
    for (const watchList of ['yes', 'invalid', 'errorEvent', 'ignored'] as const) {
      const world = new LiveWorld({ watchList, bookmarkMs: 50 });
      world.server.put(...recorded(), serviceCIDRObject('kubernetes', ['10.96.0.0/12']));
      await world.start({ contentType });
      await world.ready();
      const name = `${contentType}, WatchList ${watchList}`;
      t.same(world.services(), ['dual', 'ext', 'kubernetes', 'lb', 'np', 'web'], name);
      const { row } = translate(
        'Service',
        recorded().find((object) => named(object, 'lb')),
        new Interner(),
      );
      t.strictSame(world.store.snapshot.service('default/lb'), row);
      t.equal(world.store.snapshot.slicesOf('default/lb')[0]?.count, 100);
      t.match(world.store.snapshot.node('node-1'), { zone: 'z1', eligible: false });
      t.match(world.store.snapshot.serviceCIDRs(), [{ cidrs: ['10.96.0.0/12'] }]);
      await world.inStep();
      world.server.put(serviceObject('late'));
      world.server.store.delete(SERVICES, { namespace: 'default', name: 'np' });
      await until(() => world.services().includes('late') && !world.services().includes('np'), 'changed');
      // A stream that is broken off closes its connection, which the server may hear of after the next one is open.
      const brokenOff = watchList === 'errorEvent' || watchList === 'ignored';
      const connections = brokenOff ? world.server.openConnections : world.server.peakConnections;
      t.ok(connections <= 3, `${name}: ${connections} connections`);
      await world.stop();
    }
  }
});

function named(object: ApiObject, name: string): boolean {
  return (object['metadata'] as ApiObject)['name'] === name;
}

t.test('objects with the label of another proxy come and go', async (t) => {
  const world = new LiveWorld();
  world.server.put(serviceObject('web'));
  await world.start();
  await world.ready();
  const labels = { 'service.kubernetes.io/service-proxy-name': 'other' };
  world.server.put(serviceObject('web', {}, { metadata: { name: 'web', namespace: 'default', labels } }));
  await until(() => world.services().length === 0, 'gone');
  world.server.put(serviceObject('web'));
  await until(() => world.services().length === 1, 'back');
  t.equal(world.status('services').events.DELETED, 1);
  await world.stop();
});

t.test('with the default configuration no change is delayed', async (t) => {
  const world = new LiveWorld();
  const { minSyncPeriod, syncPeriod } = fromFile('').config;
  // It stands still: what waits for a time never runs.
  const clock = new FakeClock();
  const synced: string[] = [];
  const loop = new Loop({
    run: () => {
      synced.push(...world.services().slice(-1));
      return Promise.resolve();
    },
    minIntervalMs: minSyncPeriod,
    fullIntervalMs: syncPeriod,
    retry: { initialMs: 100, maxMs: 30_000, factor: 2 },
    clock,
    random: Math.random,
  });
  world.store.onChange(() => {
    loop.trigger();
  });
  await world.start();
  await world.ready();
  const names = ['a', 'b', 'c', 'd'];
  for (const name of names) {
    world.server.put(serviceObject(name));
    await until(() => world.services().includes(name), name);
    await clock.advance(0);
  }
  t.same(synced, names);
  await loop.stop();
  await world.stop();
});

t.test('connection failures of every kind remove nothing, and are recovered from', async (t) => {
  const world = new LiveWorld();
  let removed = 0;
  world.server.put(serviceObject('web'), sliceObject('web-1', 'web', ['10.0.0.1']), nodeObject('node-1'));
  await world.start({}, { silenceMs: 150, headersMs: 100 });
  await world.ready();
  world.store.onChange(() => {
    if (world.services().length === 0 || world.store.snapshot.slicesOf('default/web').length === 0) removed++;
  });
  const corruption = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
  const each = (action: (watch: ServedWatch) => void) => (): void => {
    for (const watch of [...world.server.watches]) action(watch);
  };
  const breaks: readonly (readonly [what: string, action: () => void])[] = [
    [
      'reset',
      each((watch) => {
        watch.reset();
      }),
    ],
    [
      'end',
      each((watch) => {
        watch.end();
      }),
    ],
    [
      'stall',
      each((watch) => {
        watch.stall();
      }),
    ],
    [
      'garbage',
      each((watch) => {
        watch.raw(Buffer.from(corruption));
      }),
    ],
    [
      'server error',
      each((watch) => {
        watch.error({ code: 500, reason: 'InternalError', message: 'etcd' });
      }),
    ],
    [
      'expired',
      () => {
        world.server.store.compact();
        each((watch) => {
          watch.error({ code: 410, reason: 'Expired', message: 'old' });
        })();
      },
    ],
  ];
  let number = 0;
  for (const [what, action] of breaks) {
    for (const fault of [
      null,
      { type: 'reset' },
      { type: 'hang' },
      { type: 'status', code: 503, body: 'upstream' },
      { type: 'status', code: 429, retryAfter: 0.02 },
      { type: 'truncate', bytes: 40, reset: true },
      { type: 'truncate', bytes: 40, reset: false },
      { type: 'stall', bytes: 40 },
      { type: 'corrupt', bytes: 30, replacement: corruption },
    ] as const) {
      await world.inStep();
      if (fault !== null) world.server.faults.add({ fault, times: 4 });
      action();
      world.server.put(serviceObject(`new-${++number}`));
      const name = `new-${number}`;
      await until(() => world.services().includes(name), `seen after ${what}, then ${fault?.type ?? 'nothing'}`);
      world.server.faults.clear();
    }
  }
  t.equal(removed, 0);
  t.equal(world.services().length, 1 + breaks.length * 9);
  await world.stop();
});

t.test('a restart of the server, short or long, removes the objects that are gone', async (t) => {
  const world = new LiveWorld();
  world.server.put(serviceObject('a'), serviceObject('b'));
  await world.start();
  await world.ready();
  const { port } = world.server;
  for (const pause of [0, 100]) {
    await world.server.stop();
    await delay(pause);
    t.ok(world.services().includes('b'));
    world.server.put(serviceObject(`during-${pause}`));
    await world.server.start(port);
    await until(() => world.services().includes(`during-${pause}`), 'caught up');
  }
  await world.server.stop();
  world.server.store.delete(SERVICES, { namespace: 'default', name: 'a' });
  world.server.store.compact();
  await delay(20);
  t.ok(world.services().includes('a'));
  await world.server.start(port);
  await until(() => !world.services().includes('a'), 'swept');
  t.same(world.services(), ['b', 'during-0', 'during-100']);
  t.ok(world.status('services').failures.expired >= 1, 'it was compacted away');
  await world.stop();
});

t.test('a server that is restored from a backup is followed', async (t) => {
  for (const watchList of ['yes', 'invalid'] as const) {
    const world = new LiveWorld({ watchList });
    world.server.put(serviceObject('a'));
    const { version } = world.server.store;
    world.server.put(serviceObject('b'), serviceObject('c'));
    await world.start();
    await world.ready();
    await world.inStep();
    world.server.store.delete(SERVICES, { namespace: 'default', name: 'c' });
    await until(() => !world.services().includes('c'), 'deleted');
    world.server.store.rewind(version);
    // A version that has been there before, with other content.
    world.server.put(serviceObject('b', { clusterIP: '10.96.0.99' }));
    for (const watch of [...world.server.watches]) watch.reset();
    await until(() => world.status('services').failures.ahead > 0, 'found ahead');
    await until(
      () => world.status('services').watching && world.status('services').version === String(version + 1),
      'back',
    );
    t.same(world.services(), ['a', 'b'], watchList);
    t.same(world.store.snapshot.service(objectKey('default', 'b'))?.clusterIPs, ['10.96.0.99'], 'read anew');
    await world.stop();
  }
});

t.test('rejected credentials keep the state until they work again', async (t) => {
  const world = new LiveWorld();
  world.server.put(serviceObject('a'));
  await world.start();
  await world.ready();
  world.server.tokens = ['another'];
  for (const watch of [...world.server.watches]) watch.reset();
  await until(() => world.status('services').failures.unauthorized > 3, 'refused a few times');
  world.server.put(serviceObject('b'));
  world.server.tokens = [];
  await until(() => world.services().includes('b'), 'let in again');
  t.same(world.services(), ['a', 'b']);
  await world.stop();
});

t.test('a slow connection delivers the whole state', async (t) => {
  const world = new LiveWorld();
  world.server.put(...recorded());
  world.server.faults.add({ fault: { type: 'slow', bytes: 100 } });
  await world.start();
  await world.ready();
  t.equal(world.services().length, 6);
  await world.stop();
});

t.test('a list that the server divides into pages is read in full', async (t) => {
  const world = new LiveWorld({ watchList: 'invalid' });
  for (let number = 0; number < 1200; number++) world.server.put(serviceObject(`s-${number}`));
  world.server.pageAnyway = 500;
  await world.start();
  await world.ready();
  t.equal(world.services().length, 1200);
  const pages = world.server.requests.filter(
    ({ resource, operation }) => resource === 'services' && operation === 'list',
  );
  t.same(
    pages.map(({ query }) => query['continue'] !== undefined),
    [false, true, true],
  );
  await world.stop();
});

t.test('slices without a Service name are ignored', async (t) => {
  for (const watchList of ['yes', 'invalid'] as const) {
    const world = new LiveWorld({ watchList });
    const strange = (name: string): ApiObject =>
      sliceObject(name, '', ['10.0.0.1'], { metadata: { name, namespace: 'default' } });
    world.server.put(...Array.from({ length: 50 }, (_, number) => strange(`strange-${number}`)));
    await world.start();
    await world.ready();
    const lines = (): readonly string[] => world.log.lines.filter((line) => /object/i.test(line));
    t.same(lines(), ['info 2 Objects are not used'], 'are said in one line for all, and not always');
    await world.inStep();
    world.server.put(strange('strange-0'), strange('late'));
    await until(() => world.status('endpointslices').objects === 51, 'seen');
    t.equal(lines().length, 2, 'one that comes later once');
    await world.stop();
  }
});
