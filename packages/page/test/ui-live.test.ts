import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import type { LiveEvents, ServicesChanged, SyncsHappened } from '../src/api.js';
import { Live } from '../src/live.js';
import { cpuTime } from '../../../test/support/cpu-time.js';
import { eventually } from '../../../test/support/lab/lab.js';
import { service, slice } from '../../../test/support/rows.js';
import { pageScene, type PageScene } from './ui-scene.js';

interface Received {
  readonly id: number;
  readonly name: keyof LiveEvents;
  readonly data: unknown;
}

interface Listener {
  readonly response: IncomingMessage;
  readonly text: () => string;
  readonly events: () => readonly Received[];
  readonly close: () => void;
}

/** Listens; resolves when the head of the answer is there. */
async function listen(t: Test, { port }: PageScene, headers: Record<string, string> = {}): Promise<Listener> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path: '/ui/api/events', headers, agent: false }, resolve);
    asked.once('error', reject).end();
    t.teardown(() => asked.destroy());
  });
  let text = '';
  response.on('error', () => undefined);
  const read = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  response.on('data', read);
  const events = (): readonly Received[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((block) => {
        const [, id, name, data = ''] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block) ?? [];
        return id === undefined
          ? []
          : [{ id: Number(id), name: name as keyof LiveEvents, data: JSON.parse(data) as unknown }];
      });
  return {
    response,
    text: () => text,
    events,
    close: () => response.destroy(),
  };
}

async function received(listener: Listener, name: keyof LiveEvents, count = 1): Promise<readonly Received[]> {
  return eventually(`${count} × ${name}`, () => {
    const found = listener.events().filter((event) => event.name === name);
    return Promise.resolve(found.length >= count ? found : null);
  });
}

const WEB = service('web', {});

t.test('the event stream sends a snapshot, then changes; a client that reconnects gets the same', async (t) => {
  const scene = await pageScene(t);
  scene.say([WEB, slice('web', [{ address: '10.0.0.1' }])]);
  scene.sync();
  const listener = await listen(t, scene);
  const [first] = await received(listener, 'snapshot');
  t.match(listener.response.headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  });
  t.match(listener.text(), /^retry: 2000\n\nid: 1\nevent: snapshot\n/);
  t.match(first?.data, { overview: { services: 1 }, history: { syncs: [{ number: 1 }] } });

  scene.say([slice('web', [{ address: '10.0.0.2' }])]);
  await scene.clock.advance(500);
  t.notOk(
    listener.events().some(({ name }) => name === 'services'),
    'not before it has been planned',
  );
  scene.sync();
  await scene.clock.advance(500);
  t.same((await received(listener, 'services'))[0]?.data, { keys: ['default/web'], more: false, membership: false });
  t.match((await received(listener, 'syncs'))[0]?.data, {
    syncs: [{ number: 2 }],
    skipped: 0,
    latency: [{ kind: 'sync' }],
  });

  scene.say([service('new', { clusterIPs: ['10.96.0.11'] })]);
  scene.health.drifted('IPv4', 'nft[7]');
  scene.sync({ repairs: ['set a was lost'] }, 'nft[7]');
  await scene.clock.advance(500);
  t.match((await received(listener, 'services', 2))[1]?.data, { keys: ['default/new'], membership: true });
  t.match((await received(listener, 'repairs'))[0]?.data, { repairs: [{ number: 1, process: 'nft[7]' }] });
  t.match((await received(listener, 'overview')).at(-1)?.data, {
    services: 2,
    health: { reasons: [{ kind: 'drift' }] },
  });
  const ids = listener.events().map(({ id }) => id);
  t.same(
    ids,
    [...ids].sort((one, other) => one - other),
  );

  scene.sync({ quarantined: [{ frontend: '10.96.0.11:80/TCP', reason: 'EINVAL', since: 0, retryAt: 0 }] });
  await scene.clock.advance(500);
  t.match((await received(listener, 'services', 3))[2]?.data, { keys: ['default/new'] }, 'a problem that came');

  const again = await listen(t, scene, { 'Last-Event-ID': String(ids.at(-1)) });
  t.match((await received(again, 'snapshot'))[0]?.data, {
    overview: { services: 2 },
    history: { repairs: [{ number: 1 }] },
  });
  listener.close();
  again.close();
  await eventually('no client to wait for', async () => {
    await scene.clock.advance(500);
    return scene.clock.waiting === 0 || null;
  });
});

t.test('the event stream sends at most two events of a kind a second, at 500 changes a second', async (t) => {
  const scene = await pageScene(t);
  const name = (index: number): string => `service-${index}`;
  scene.say(Array.from({ length: 1000 }, (_, index) => ({ ...WEB, name: name(index) })));
  scene.sync();
  const listener = await listen(t, scene);
  await received(listener, 'snapshot');
  const churn = async (listening: boolean): Promise<void> => {
    for (let change = 0; change < 500; change++) {
      scene.say([slice(name(change), [{ address: `10.0.${change % 200}.${listening ? 1 : 2}` }])]);
      scene.sync();
      await scene.clock.advance(2);
    }
    await scene.clock.advance(500);
  };
  const heardOf = await cpuTime(() => churn(true));
  const services = await received(listener, 'services', 2);
  const counts = new Map<string, number>();
  for (const { name: each } of listener.events()) counts.set(each, (counts.get(each) ?? 0) + 1);
  for (const each of ['services', 'syncs', 'overview'])
    t.ok((counts.get(each) ?? 0) <= 4, `${each} ${counts.get(each)}`);
  for (const { data } of services) t.ok((data as ServicesChanged).keys.length <= 200);
  t.ok(
    services.some(({ data }) => (data as ServicesChanged).more),
    'more than are sent by name',
  );
  const syncs = (await received(listener, 'syncs')).map(({ data }) => data as SyncsHappened);
  t.equal(
    syncs.reduce((sum, { syncs: reported, skipped }) => sum + reported.length + skipped, 0),
    500,
    'each is counted',
  );
  t.ok(listener.text().length < 1_000_000);
  listener.close();
  await eventually('the end', () => Promise.resolve(scene.connections === 0 || null));
  const alone = await cpuTime(() => churn(false));
  t.comment(`CPU ms: ${heardOf} with a listener, ${alone} without`);
  t.ok(heardOf < alone + 1000, `${heardOf} ${alone}`);
});

/** Takes one piece, and the next when it is told to. */
class SlowReader extends Writable {
  taken: string[] = [];
  private next: () => void = () => undefined;

  constructor() {
    super({ highWaterMark: 1 });
  }

  override _write(chunk: Buffer, _encoding: string, next: () => void): void {
    this.taken.push(chunk.toString());
    this.next = next;
  }

  async read(): Promise<void> {
    const { length } = this.taken;
    this.next();
    await eventually('the next piece', () => Promise.resolve(this.taken.length > length || null));
  }
}

t.test('the event stream sends a slow client a snapshot later, and closes it in the end', async (t) => {
  const scene = await pageScene(t);
  scene.say([WEB]);
  scene.sync();
  const live = new Live(scene);
  const reader = new SlowReader();
  await live.open(reader as unknown as ServerResponse);
  t.same(reader.taken, ['retry: 2000\n\n']);
  await reader.read();
  t.match(reader.taken[1], /^id: \d+\nevent: snapshot\n/);
  for (let change = 0; change < 50; change++) {
    scene.say([slice('web', [{ address: `10.0.0.${change}` }])]);
    scene.sync();
    await scene.clock.advance(500);
  }
  t.equal(reader.taken.length, 2);
  t.equal(reader.writableLength, reader.taken[1]?.length, 'nothing waits behind it');
  await reader.read();
  t.match(reader.taken[2], /event: snapshot\n.*"syncs":51,/s, 'in place of all that was left out');
  scene.sync();
  const reading = reader.read();
  await new Promise((resolve) => setImmediate(resolve));
  await scene.clock.advance(500);
  await reading;
  t.match(reader.taken[3], /event: syncs\n/, 'as before');
  await scene.clock.advance(29_000);
  t.notOk(reader.destroyed);
  await scene.clock.advance(2000);
  t.ok(reader.destroyed);
  t.equal(scene.clock.waiting, 0, 'and no client is left');
});

t.test('the event stream limits the number of clients', async (t) => {
  const scene = await pageScene(t);
  const listeners = [];
  for (let count = 0; count < 16; count++) listeners.push(await listen(t, scene));
  t.match(await scene.ask('/ui/api/events'), { status: 503, body: /too many/ });
  listeners[0]?.close();
  await eventually('a place', async () => {
    const next = await listen(t, scene);
    return next.response.statusCode === 200 || null;
  });
});
