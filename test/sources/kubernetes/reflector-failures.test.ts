import t from 'tap';
import { LINES_AT_ONCE, LINES_PER_SECOND } from '../../../src/base/line-limit.js';
import { ApiError } from '../../../src/sources/kubernetes/connection.js';
import type { ApiObject } from '../../support/api-objects.js';
import { EXPIRED, tooLargeVersion } from '../../support/api-server/encoding.js';
import { FakeWorld, SERVICE_TYPE, serviceAt, settle } from './fake-world.js';

/** Two Services, a and b, known at version 10. */
async function synced(): Promise<{
  readonly world: FakeWorld;
  readonly watch: Awaited<ReturnType<FakeWorld['syncServices']>>;
}> {
  const world = new FakeWorld();
  const watch = await world.syncServices(10, [serviceAt('a', 1), serviceAt('b', 2)]);
  return { world, watch };
}

t.test('reflector, 410 as an event: lists again, in one commit with removals', async (t) => {
  const { world, watch } = await synced();
  watch.event('ERROR', { kind: 'Status', metadata: {}, code: 410, reason: 'Expired', message: 'too old' });
  await settle();
  const second = await world.request('services', 2);
  t.equal(second.operation, 'watchlist');
  second.open().event('ADDED', serviceAt('b', 2)).event('ADDED', serviceAt('c', 11));
  await settle();
  t.same(world.services.takeCommits(), [], 'nothing before the end of the initial events');
  t.same([...world.services.rows.keys()], ['default/a', 'default/b']);
  second.bookmark(SERVICE_TYPE, '12', true);
  await settle();
  t.same(world.services.takeCommits(), ['+c -a'], 'one commit; b is unchanged and not in it');
  t.match(world.status('services'), { version: '12', lists: 2, failures: { expired: 1 }, trouble: null });
  await world.running.stop();
});

t.test("the reflector keeps and logs at most a kilobyte of the server's message", async (t) => {
  const { world, watch } = await synced();
  const long = 'ä'.repeat(50_000);
  watch.event('ADDED', serviceAt('c', 11, { externalIPs: Array.from({ length: 50 }, () => long) }));
  watch.event('ADDED', serviceAt('d', 12, { ports: Array.from({ length: 50 }, () => ({ port: long })) }));
  watch.event('ADDED', serviceAt(long, 13));
  watch.event('ERROR', { kind: 'Status', metadata: {}, code: 500, reason: 'InternalError', message: long });
  await settle();
  t.match(world.status('services').trouble, /^unavailable: 500: ä+…$/);
  const { lines, fields } = world.log;
  t.match(lines, [
    /Part of an object is left out.*…$/,
    /Object cannot be used.*…$/,
    /Object cannot be used.*metadata\.name/,
    /fails.*500: ä+…$/,
  ]);
  t.ok(lines.every((line) => Buffer.byteLength(line) < 1024 + 100));
  t.ok(fields.every((some) => Buffer.byteLength(JSON.stringify(some)) < 1024 + 100));
  t.ok(Buffer.byteLength(JSON.stringify(world.running.holdings.get('services')?.inventory.leftOut())) < 10_000);
  t.ok(Buffer.byteLength(world.status('services').trouble ?? '') < 1024 + 100);
  t.match(new ApiError('connect', long).message, /^ä{510}…$/, 'a proxy may have as much to say');
  await world.running.stop();
});

t.test('an object that is broken in another way in each version does not fill the log', async (t) => {
  const { world, watch } = await synced();
  const broken = async (from: number, count: number): Promise<void> => {
    for (let version = from; version < from + count; version++)
      watch.event('MODIFIED', serviceAt('a', version, { externalIPs: [`none-${version}`] }));
    await settle();
  };
  const { lines, fields } = world.log;
  lines.length = 0;
  await broken(11, 1000);
  t.equal(lines.length, LINES_AT_ONCE);
  await world.clock.advance(1000 / LINES_PER_SECOND);
  await broken(1011, 1000);
  t.equal(lines.length, LINES_AT_ONCE + 1);
  t.match(fields.at(-1), { object: 'Service default/a', omitted: 1000 - LINES_AT_ONCE });
  t.match(
    world.running.holdings.get('services')?.inventory.leftOut(),
    [{ text: /none-2010/ }],
    'the status has the last one',
  );
  await world.running.stop();
});

t.test('reflector, 410 as an answer: lists again at once', async (t) => {
  const { world, watch } = await synced();
  watch.end();
  await world.advance(800);
  (await world.request('services', 2)).fail(EXPIRED);
  t.equal((await world.request('services', 3)).operation, 'watchlist', 'at once');
  t.equal(world.services.rows.size, 2);
  await world.running.stop();
});

t.test('reflector, 410 after a long outage: lists at once, but not repeatedly', async (t) => {
  const { world, watch } = await synced();
  watch.break();
  let requests = 1;
  for (const backoff of [800, 1600, 3200, 6400, 12_800, 25_600, 30_000]) {
    await world.advance(backoff - 1);
    t.equal(world.requests('services').length, requests);
    await world.advance(1);
    (await world.request('services', ++requests)).refuse();
  }
  await world.advance(30_000);
  (await world.request('services', ++requests)).list('Service', '90', []);
  (await world.request('services', ++requests)).fail(EXPIRED);
  const again = await world.request('services', ++requests);
  t.equal(again.operation, 'watchlist');
  again.fail(EXPIRED);
  await world.advance(799);
  t.equal(world.requests('services').length, requests, 'a server that says so again is given time');
  await world.advance(1);
  (await world.request('services', ++requests)).fail(EXPIRED);
  await world.advance(1599);
  t.equal(world.requests('services').length, requests, 'and more of it');
  await world.advance(1);
  await world.request('services', ++requests);
  await world.running.stop();
});

t.test('reflector, a version the server has not seen: lists the newest', async (t) => {
  const world = new FakeWorld();
  (await world.request('services', 1)).fail({ code: 422, reason: 'Invalid', message: 'sendInitialEvents: Forbidden' });
  const list = await world.request('services', 2);
  t.match(list, { operation: 'list', query: { resourceVersion: '0' } });
  list.list('Service', '50', [serviceAt('a', 1)]);
  const watch = await world.request('services', 3);
  t.match(watch, { operation: 'watch', query: { resourceVersion: '50', allowWatchBookmarks: 'true' } });
  watch.fail(tooLargeVersion(50, 20));
  await world.advance(1000);
  const newest = await world.request('services', 4);
  t.equal(newest.operation, 'list');
  t.equal(newest.query['resourceVersion'], undefined);
  t.equal(world.services.rows.size, 1, 'the old state serves on');
  newest.list('Service', '20', []);
  await settle();
  t.same(world.services.rows.size, 0);
  t.match(world.status('services'), { failures: { ahead: 1 }, version: '20' });
  await world.running.stop();
});

t.test('reflector: a server that was unreachable is asked for its version before the watch', async (t) => {
  const { world, watch } = await synced();
  watch.break();
  await world.advance(800);
  (await world.request('services', 2)).fail(tooLargeVersion(10, 5), 1000);
  await world.advance(1000);
  const anew = await world.request('services', 3);
  t.equal(anew.operation, 'watchlist');
  anew.open().event('ADDED', serviceAt('a', 1)).event('ADDED', serviceAt('c', 2)).bookmark(SERVICE_TYPE, '5', true);
  await settle();
  t.same(world.services.takeCommits(), ['+a +c -b'], 'a is read again, though its version was known');
  t.match(world.status('services'), { version: '5', failures: { ahead: 1, unavailable: 1 }, trouble: null });

  anew.break();
  await world.advance(3200);
  (await world.request('services', 4)).fail({ code: 403, reason: 'Forbidden', message: 'list is' });
  const second = await world.request('services', 5);
  t.equal(second.operation, 'watch', 'who may only watch watches');
  second.open().end();
  await world.advance(6400);
  t.equal((await world.request('services', 6)).operation, 'watch', 'after an end nothing is asked');
  await world.running.stop();
});

t.test('reflector: a list after the first never goes back in time', async (t) => {
  const world = new FakeWorld();
  (await world.request('services', 1)).fail({ code: 422, reason: 'Invalid', message: 'no' });
  (await world.request('services', 2)).list('Service', '50', []);
  (await world.request('services', 3)).fail(EXPIRED);
  const relist = await world.request('services', 4);
  t.match(relist.query, { resourceVersion: '50', resourceVersionMatch: 'NotOlderThan' });
  relist.fail(EXPIRED);
  await world.advance(1600);
  t.equal((await world.request('services', 5)).query['resourceVersion'], undefined, 'gone as well: the newest');
  await world.running.stop();
});

t.test('reflector, end of stream: watches the same version after growing delays up to 30 s', async (t) => {
  const { world, watch } = await synced();
  watch.event('MODIFIED', serviceAt('a', 11));
  watch.end();
  let count = 1;
  for (const delay of [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]) {
    await world.advance(delay - 1);
    t.equal(world.requests('services').length, count, `not before ${delay} ms`);
    await world.advance(1);
    const request = await world.request('services', ++count);
    t.match(request.query, { watch: '1', resourceVersion: '11' });
    request.open().end();
  }
  t.equal(world.services.rows.size, 2);
  t.same(
    world.log.lines.filter((line) => /^(error|warn)/.test(line)),
    [],
    'ends are no errors',
  );
  await world.running.stop();
});

t.test('reflector, end of stream after two healthy minutes: watches at once, with the first delay again', async (t) => {
  const { world, watch } = await synced();
  watch.end();
  await world.advance(800);
  const second = (await world.request('services', 2)).open();
  await world.advance(60_000);
  second.bookmark(SERVICE_TYPE, '20');
  await world.advance(60_000);
  second.end();
  const third = await world.request('services', 3);
  t.match(third.query, { resourceVersion: '20' });
  third.refuse();
  await world.advance(800);
  t.equal(world.requests('services').length, 4);
  await world.running.stop();
});

t.test('reflector, connection refused, reset or 5xx: keeps the version, logs once, and once on recovery', async (t) => {
  const { world, watch } = await synced();
  watch.break();
  await world.advance(800);
  (await world.request('services', 2)).refuse();
  await world.advance(1600);
  (await world.request('services', 3)).fail({ code: 503, reason: 'ServiceUnavailable', message: 'starting' });
  await world.advance(3200);
  (await world.request('services', 4)).fail({ code: 500, reason: 'InternalError', message: 'etcd' });
  t.match(world.status('services'), { watching: false, synced: true });
  await world.advance(6400);
  const asked = await world.request('services', 5);
  t.match(asked, {
    operation: 'list',
    query: { resourceVersion: '10', resourceVersionMatch: 'NotOlderThan', limit: '1' },
  });
  asked.list('Service', '30', [serviceAt('z', 30)]);
  const last = await world.request('services', 6);
  t.match(last, { operation: 'watch', query: { resourceVersion: '10' } });
  t.same(world.services.takeCommits(), [], 'the content of the answer is ignored');
  last.open();
  await settle();
  t.match(world.status('services'), { failures: { unavailable: 4 }, trouble: null, watching: true });
  const lines = world.log.lines.filter((line) => !line.startsWith('info 2') && !line.startsWith('info 3'));
  t.match(lines, [/^error Reading from the API server fails.*reset/, /^info 0 .*works again/]);
  t.equal(lines.length, 2);
  await world.running.stop();
});

t.test('reflector, 429: waits as long as the server asks, and keeps the version', async (t) => {
  const { world, watch } = await synced();
  watch.end();
  await world.advance(800);
  (await world.request('services', 2)).fail({ code: 429, reason: 'TooManyRequests', message: 'slow down' }, 7000);
  await world.advance(6999);
  t.equal(world.requests('services').length, 2);
  await world.advance(1);
  const third = await world.request('services', 3);
  t.match(third.query, { resourceVersion: '10' });
  third.fail({ code: 429, reason: 'TooManyRequests', message: 'x', details: { retryAfterSeconds: 4 } });
  await world.advance(3999);
  t.equal(world.requests('services').length, 3, 'by the Status');
  await world.advance(1);
  (await world.request('services', 4)).fail({ code: 429, reason: 'TooManyRequests', message: 'x' }, 0);
  await settle();
  t.equal(world.requests('services').length, 4, 'without a useful Status: backs off');
  await world.advance(6400);
  t.equal(world.requests('services').length, 5);
  t.equal(world.status('services').failures.throttled, 3);
  await world.running.stop();
});

t.test('reflector, 401 and 403: counts, logs once each, backs off, and never gives up', async (t) => {
  const { world, watch } = await synced();
  watch.end();
  let count = 1;
  let delay = 800;
  for (const code of [401, 401, 403, 403, 403, 403, 403, 403, 403]) {
    await world.advance(delay);
    delay = Math.min(delay * 2, 30_000);
    (await world.request('services', ++count)).fail({ code, reason: '', message: `no ${code}` });
  }
  await world.advance(delay);
  (await world.request('services', ++count)).open();
  await settle();
  t.match(world.status('services'), { failures: { unauthorized: 2, forbidden: 7 }, trouble: null });
  t.equal(world.log.lines.filter((line) => line.startsWith('error')).length, 2);
  t.equal(world.services.rows.size, 2);
  await world.running.stop();
});

t.test('reflector, three minutes of silence: reconnects, and watches the same version', async (t) => {
  const { world, watch } = await synced();
  await world.advance(60_000);
  watch.bookmark(SERVICE_TYPE, '15');
  await world.advance(179_999);
  t.notOk(watch.aborted, 'bytes move the limit');
  await world.advance(1);
  t.ok(watch.aborted);
  await world.advance(800);
  (await world.request('services', 2)).list('Service', '15', []);
  const second = await world.request('services', 3);
  t.match(second, { operation: 'watch', query: { resourceVersion: '15' } });
  t.match(world.status('services').failures, { silent: 1, unavailable: 0 });
  await world.advance(180_000);
  t.ok(second.aborted, 'no headers are silence too');
  t.equal(world.services.rows.size, 2);
  await world.running.stop();
});

t.test('reflector, an event that cannot be decoded: keeps the old object, and lists again', async (t) => {
  const { world, watch } = await synced();
  watch.write('{"type":"MODIFIED","object":{"kind":"Serv\n');
  await settle();
  t.equal(world.services.rows.size, 2);
  t.match(world.status('services'), { undecodable: 1, failures: { undecodable: 1 }, trouble: /undecodable/ });
  await world.advance(800);
  const second = (await world.request('services', 2)).open();
  t.equal(second.operation, 'watchlist');
  second.event('ADDED', serviceAt('a', 11)).event('ADDED', serviceAt('b', 2)).bookmark(SERVICE_TYPE, '12', true);
  await settle();
  t.same(world.services.takeCommits(), ['+a']);
  t.equal(world.status('services').trouble, null);
  await world.running.stop();
});

t.test('reflector: events before an invalid one are kept', async (t) => {
  const { world, watch } = await synced();
  const good = JSON.stringify({ type: 'ADDED', object: serviceAt('c', 11) });
  watch.write(`${good}\nrubbish\n`);
  await settle();
  t.same(world.services.takeCommits(), ['+c']);
  await world.running.stop();
});

t.test('reflector, an invalid object: keeps its last valid version, and does not list again', async (t) => {
  const { world, watch } = await synced();
  const bad = serviceAt('a', 11, { clusterIP: 'nonsense', clusterIPs: ['nonsense'] });
  watch.event('MODIFIED', bad).event('MODIFIED', serviceAt('b', 12));
  await settle();
  t.same(world.services.takeCommits(), ['+b']);
  t.ok(world.services.rows.has('default/a'));
  t.match(world.status('services'), { invalid: 1, version: '12', trouble: null });
  const reported = world.log.lines.filter((line) => line.includes('nonsense'));
  t.equal(reported.length, 1);
  watch.event('MODIFIED', { ...bad, metadata: { name: 'a', namespace: 'default', resourceVersion: '13' } });
  await settle();
  t.equal(world.log.lines.filter((line) => line.includes('nonsense')).length, 1, 'the same is not said again');
  const { inventory } = world.running.holdings.get('services') ?? {};
  t.match(inventory?.leftOut(), [
    { ref: { kind: 'Service', name: 'a' }, service: 'default/a', isWhole: true, text: /nonsense/ },
  ]);
  watch.event('MODIFIED', serviceAt('a', 14));
  await settle();
  t.strictSame(world.log.lines.slice(-1), ['info 0 Object is valid again']);
  t.strictSame(inventory?.leftOut(), []);
  watch.event('DELETED', serviceAt('a', 15));
  await settle();
  t.equal(world.services.takeCommits().join(' '), '+a -a');
  await world.running.stop();
});

t.test('skipped slices, whole or in part, name their Service', async (t) => {
  const world = new FakeWorld();
  const watch = (await world.request('endpointslices', 1)).open();
  const reported = (
    name: string,
    rest: ApiObject,
    labels: ApiObject = { 'kubernetes.io/service-name': 'web' },
  ): void => {
    const metadata = { name, namespace: 'shop', resourceVersion: '3', labels };
    const object = { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', addressType: 'IPv4', metadata, ...rest };
    watch.event('ADDED', object);
  };
  reported('part', { endpoints: [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.x'] }], ports: [{ port: 80 }] });
  reported('whole', { endpoints: [], ports: [{ port: 70_000 }] });
  reported('names', { addressType: 'FQDN', endpoints: [{ addresses: ['a.example'] }], ports: [] });
  reported('nobody', { endpoints: [], ports: [] }, {});
  reported('good', { endpoints: [{ addresses: ['10.0.0.1'] }], ports: [{ port: 80 }] });
  await settle();
  const found = world.running.holdings.get('endpointslices')?.inventory.leftOut() ?? [];
  t.match(found, [
    {
      ref: { name: 'part' },
      service: 'shop/web',
      isWhole: false,
      text: /^endpoints\[1\]\.addresses\[0\]: "10\.0\.0\.x"/,
    },
    { ref: { name: 'whole' }, service: 'shop/web', isWhole: true, text: /^ports\[0\]\.port: 70000/ },
    { ref: { name: 'names' }, service: 'shop/web', isWhole: true, text: /^addressType: "FQDN"/ },
  ]);
  t.equal(found.length, 3, 'one of no Service is nothing that is missing');
  await world.running.stop();
});

t.test('reflector: a truncated list changes nothing', async (t) => {
  const world = new FakeWorld();
  (await world.request('services', 1)).fail({ code: 422, reason: 'Invalid', message: 'no' });
  (await world.request('services', 2)).list('Service', '50', [serviceAt('a', 1), serviceAt('b', 2)]);
  (await world.request('services', 3)).fail(EXPIRED);
  world.services.takeCommits();
  let count = 4;
  await world.advance(800);
  const start = `{"kind":"ServiceList","metadata":{"resourceVersion":"60"},"items":[${JSON.stringify(serviceAt('c', 3))},`;
  (await world.request('services', count)).open().write(start).break();
  await world.advance(1600);
  (await world.request('services', ++count)).open().end(start);
  await world.advance(3200);
  (await world.request('services', ++count)).open().end('{"kind":"ServiceList","items":[]}');
  await world.advance(6400);
  (await world.request('services', ++count)).open('text/html').end('<html>');
  await world.advance(12800);
  t.same(world.services.takeCommits(), []);
  t.equal(world.services.rows.size, 2);
  t.match(world.status('services').failures, { unavailable: 1, truncated: 1, undecodable: 1, rejected: 1 });
  (await world.request('services', ++count)).list('Service', '60', [serviceAt('c', 3)]);
  await settle();
  t.same(world.services.takeCommits(), ['+c -a -b']);
  await world.running.stop();
});

t.test('reflector: truncated initial events change nothing, and after the third time it lists', async (t) => {
  const { world, watch } = await synced();
  watch.event('ERROR', { kind: 'Status', metadata: {}, code: 410, reason: 'Expired', message: 'too old' });
  let delay = 800;
  for (let count = 2; count <= 4; count++) {
    await world.advance(delay);
    delay *= 2;
    const request = await world.request('services', count);
    t.equal(request.operation, 'watchlist');
    request.open().event('ADDED', serviceAt('c', 3)).end();
    await settle();
  }
  t.same(world.services.takeCommits(), []);
  t.equal(world.status('services').failures.truncated, 3);
  await world.advance(delay);
  const list = await world.request('services', 5);
  t.equal(list.operation, 'list');
  list.list('Service', '70', [serviceAt('c', 3)]);
  await settle();
  t.same(world.services.takeCommits(), ['+c -a -b']);
  await world.running.stop();
});
