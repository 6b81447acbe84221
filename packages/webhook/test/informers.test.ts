import t from 'tap';
import { Informers } from '../src/informers.js';
import { ObservedCluster } from '../src/observed-cluster.js';
import { serviceObject, type ApiObject } from '../../../test/support/api-objects.js';
import { FakeConnection, type FakeRequest } from '../../../test/support/api-server/fake-connection.js';
import { FakeClock } from '../../../test/support/fake-clock.js';
import { RecordingLog } from '../../../test/support/recording-log.js';

const BAD: readonly unknown[] = [null, 7, [], { kind: 'Service' }, { kind: 'Service', metadata: 7 }];

/** Lets streams and promises come to rest. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}

t.test('an object without metadata is left out of lists and watches, and the others are taken', async (t) => {
  const connection = new FakeConnection();
  const log = new RecordingLog();
  const cluster = new ObservedCluster([], log);
  const put: (string | undefined)[] = [];
  const store = cluster.put.bind(cluster);
  cluster.put = (kind, object) => {
    const metadata = (object as { readonly metadata?: { readonly name?: string } } | null)?.metadata;
    put.push(metadata?.name);
    store(kind, object);
  };
  const informers = new Informers({ connection, cluster, clock: new FakeClock(), log });
  informers.start();
  const requests = async (kind: string): Promise<readonly FakeRequest[]> => {
    await settle();
    return connection.requests.filter(({ path }) => path.endsWith(kind));
  };
  for (const [path, kind] of [
    ['nodes', 'Node'],
    ['servicecidrs', 'ServiceCIDR'],
  ] as const)
    for (const request of await requests(path)) request.list(kind, '1', []);
  const [list] = await requests('services');
  list?.list('Service', '1', [serviceObject('a'), ...(BAD as readonly ApiObject[]), serviceObject('b')]);
  const [, watch] = await requests('services');
  t.same(cluster.unread, [], 'all has been read');
  t.same(
    put.filter((name) => name !== undefined),
    ['a', 'b'],
  );
  t.equal(log.lines.filter((line) => line.includes('an object cannot be used')).length, BAD.length);
  watch?.open();
  for (const object of BAD as readonly ApiObject[])
    for (const type of ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']) watch?.event(type, object);
  watch?.event('ERROR', null as unknown as ApiObject).event('ADDED', serviceObject('c'));
  await settle();
  t.equal(put.at(-1), 'c', 'the watch goes on');
  t.equal((await requests('services')).length, 2);
  await informers.stop();
});
