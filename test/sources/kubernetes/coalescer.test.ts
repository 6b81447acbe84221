import t from 'tap';
import { Coalescer } from '../../../src/sources/kubernetes/watch/coalescer.js';
import type { FakeRequest } from '../../support/api-server/fake-connection.js';
import { FakeClock } from '../../support/fake-clock.js';
import { FakeWorld, serviceAt, settle } from './fake-world.js';

/** What was handed on, as `text@when it came`, and nothing that was seen before. */
class Received {
  readonly clock = new FakeClock(0);
  private readonly taken: string[] = [];
  readonly coalescer = new Coalescer(this.clock, (chunk, receivedAt) => {
    this.taken.push(`${chunk.toString()}@${receivedAt}`);
  });

  push(text: string): void {
    this.coalescer.push(Buffer.from(text));
  }

  take(): readonly string[] {
    return this.taken.splice(0);
  }

  /** Chunks for a second, at a rate. */
  async second(chunks: number): Promise<void> {
    for (let count = 0; count < chunks; count++) {
      this.push('.');
      await this.clock.advance(1000 / chunks);
    }
    this.take();
  }
}

t.test('below 400 chunks a second each chunk is passed on at once', async (t) => {
  const received = new Received();
  for (let second = 0; second < 3; second++) {
    await received.second(250);
    received.push('one');
    t.strictSame(received.take(), [`one@${received.clock.now()}`]);
  }
  t.equal(received.clock.waiting, 0);
});

t.test('above 400 chunks a second, those within 8 ms are passed on together, in order', async (t) => {
  const received = new Received();
  await received.second(500);
  received.push('a');
  await received.clock.advance(5);
  received.push('b');
  await received.clock.advance(2);
  t.strictSame(received.take(), []);
  await received.clock.advance(1);
  t.strictSame(received.take(), ['a@1000', 'b@1000']);
  t.equal(received.clock.waiting, 0, 'no timer without chunks');
  received.push('c');
  received.coalescer.flush();
  t.strictSame(received.take(), ['c@1008']);
  t.equal(received.clock.waiting, 0);
});

t.test('coalescing ends after the first second below the limit', async (t) => {
  const received = new Received();
  await received.second(500);
  await received.second(100);
  received.push('a');
  t.strictSame(received.take(), ['a@2000']);
});

t.test('a pause ends coalescing at once, and a single burst does not start it', async (t) => {
  const received = new Received();
  await received.second(500);
  await received.clock.advance(49);
  received.push('a');
  t.strictSame(received.take(), ['a@1049']);
  for (let count = 0; count < 5000; count++) received.push('.');
  received.take();
  await received.clock.advance(3000);
  received.push('b');
  t.strictSame(received.take(), ['b@4049']);
});

/** A watch of Services that has brought 500 changes in a second, so that further ones are held back, and the last version. */
async function flood(): Promise<{ readonly world: FakeWorld; readonly watch: FakeRequest; readonly version: number }> {
  const world = new FakeWorld();
  const watch = await world.syncServices(10, [serviceAt('web', 5)]);
  await world.advance(5000);
  let version = 100;
  for (let count = 0; count < 500; count++) {
    watch.event('MODIFIED', serviceAt('web', ++version, { clusterIP: `10.96.0.${version % 250}` }));
    await world.advance(2);
  }
  world.services.takeCommits();
  return { world, watch, version };
}

t.test('the store gets the time when a change arrived, coalesced or not', async (t) => {
  const { world, watch, version } = await flood();
  const times = world.services.receivedAt;
  t.equal(Number(times.at(-1)) - Number(times.at(-500)), 499 * 2, 'not counted from the initial events');
  await world.advance(8);
  const commits = world.services.receivedAt.length;
  const first = world.clock.now();
  watch.event('MODIFIED', serviceAt('web', version + 1, { clusterIP: '10.96.1.1' }));
  await world.advance(3);
  watch.event('MODIFIED', serviceAt('web', version + 2, { clusterIP: '10.96.1.2' }));
  await world.advance(5);
  t.strictSame(world.services.receivedAt.slice(commits), [first]);
  await world.running.stop();
});

t.test('a connection that breaks during coalescing keeps what had arrived, and continues from there', async (t) => {
  const { world, watch, version } = await flood();
  watch.event('ADDED', serviceAt('late', version + 1, { clusterIP: '10.96.0.2' }));
  await settle();
  t.strictSame(world.services.takeCommits(), [], 'held back');
  watch.break();
  await settle();
  t.strictSame(world.services.takeCommits(), ['+late']);
  await world.advance(1000);
  t.equal((await world.request('services', 2)).query['resourceVersion'], String(version + 1));
  await world.running.stop();
  t.equal(world.clock.waiting, 0);
});

t.test('an invalid event during coalescing: earlier ones count, later ones do not', async (t) => {
  const { world, watch, version } = await flood();
  watch.event('ADDED', serviceAt('before', version + 1, { clusterIP: '10.96.0.2' }));
  await settle();
  watch.write('{nonsense}\n');
  await settle();
  watch.event('ADDED', serviceAt('after', version + 2, { clusterIP: '10.96.0.3' }));
  await world.advance(8);
  t.strictSame(world.services.takeCommits(), ['+before']);
  t.equal(world.status('services').failures.undecodable, 1);
  await world.running.stop();
});
