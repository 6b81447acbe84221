import t, { type Test } from 'tap';
import { nodeSubject, serviceSubject, type ProxyEvent } from '../../../src/base/events.js';
import { DEFAULT_EVENT_RATES } from '../../../src/config/event-rates.js';
import { EventSender, type EventSenderOptions } from '../../../src/sources/kubernetes/events/event-sender.js';
import { serviceObject, type ApiObject } from '../../support/api-objects.js';
import { ApiServer } from '../../support/api-server/server.js';
import { FakeClock } from '../../support/fake-clock.js';
import { RecordingLog } from '../../support/recording-log.js';
import { connect } from './connect.js';
import { until } from './live-world.js';

const STARTING: ProxyEvent = {
  type: 'Normal',
  reason: 'Starting',
  action: 'StartKubeProxy',
  regarding: nodeSubject('node-1'),
  related: null,
  note: '',
};

function trouble(note: string, service = 'default/web'): ProxyEvent {
  const regarding = serviceSubject(service);
  return { ...STARTING, type: 'Warning', reason: 'AddressConflict', action: 'ProgramService', regarding, note };
}

type Rates = Partial<Pick<EventSenderOptions, 'hostname' | 'rates' | 'limit'>>;

class World {
  readonly server = new ApiServer();
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly sender: EventSender;
  private readonly wall = 1_700_000_000_123_456_789n;

  constructor({ hostname = 'host-1', rates = DEFAULT_EVENT_RATES, limit = null }: Rates = {}) {
    const { clock, log } = this;
    this.sender = new EventSender({ hostname, rates, limit, clock, wallClock: () => this.wall, log });
  }

  async start(t: Test): Promise<void> {
    await this.server.start();
    t.teardown(async () => {
      this.sender.stop();
      await this.server.stop();
    });
    this.sender.start(await connect(t, { cluster: { server: this.server.url } }));
  }

  get notes(): readonly unknown[] {
    return this.server.events.map(({ note }) => note);
  }

  get posts(): number {
    return this.server.requests.filter(({ method }) => method === 'POST').length;
  }

  delivered(count: number): Promise<void> {
    return until(() => this.server.events.length >= count, `${count} events delivered`);
  }

  dropped(count = 1): Promise<void> {
    return until(() => this.log.lines.length >= count, 'dropped');
  }
}

async function world(t: Test, rates: Rates = {}): Promise<World> {
  const made = new World(rates);
  await made.start(t);
  return made;
}

t.test("EV-10: events have the shape of kube-proxy's, with the uid of the object", async (t) => {
  const { server, sender, ...rest } = await world(t);
  const web = serviceObject('web');
  server.put({ ...web, metadata: { name: 'web', namespace: 'shop', uid: 'the-uid' } });
  sender.record(STARTING);
  sender.record({ ...trouble('taken', 'shop/web'), related: serviceSubject('default/first:http') });
  await until(() => server.events.length === 2, 'delivered');
  const [first, second] = server.events;
  t.same(first, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'node-1.17979cfe3d85cd15', namespace: 'default' },
    eventTime: '2023-11-14T22:13:20.123456Z',
    reportingController: 'kube-proxy',
    reportingInstance: 'kube-proxy-host-1',
    action: 'StartKubeProxy',
    reason: 'Starting',
    regarding: { kind: 'Node', name: 'node-1', apiVersion: 'v1' },
    note: '',
    type: 'Normal',
  });
  t.match(second, {
    metadata: { name: 'web.17979cfe3d85cd16', namespace: 'shop' },
    regarding: { kind: 'Service', namespace: 'shop', name: 'web', apiVersion: 'v1', uid: 'the-uid' },
    related: { kind: 'Service', namespace: 'default', name: 'first', apiVersion: 'v1' },
    note: 'taken',
    type: 'Warning',
  });
  t.same(rest.log.lines, []);
});

t.test('event fields that are too long for the server are cut', async (t) => {
  const { server, sender, log } = await world(t, { hostname: 'h'.repeat(300) });
  sender.record({ ...STARTING, regarding: nodeSubject(`n.${'a.'.repeat(125)}b`), note: 'é'.repeat(800) });
  await until(() => server.events.length === 1 || log.lines.length > 0, 'delivered or dropped');
  t.same(log.lines, []);
  t.equal(server.events[0]?.['note'], `${'é'.repeat(510)}…`);
});

t.test('a repeated event is sent once in ten minutes', async (t) => {
  const made = await world(t);
  const { sender, clock } = made;
  for (const note of ['a', 'b', 'a', 'a']) sender.record(trouble(note));
  await made.delivered(2);
  t.same(made.notes, ['a', 'b']);
  await clock.advance(599_999);
  sender.record(trouble('a'));
  await clock.advance(1);
  sender.record(trouble('a'));
  await made.delivered(3);
  sender.record(trouble('c'));
  await made.delivered(4);
  t.same(made.notes, ['a', 'b', 'a', 'c']);
});

t.test('events recorded before the connection are sent first, and those over the limit are dropped', async (t) => {
  const made = new World();
  for (let number = 0; number < 130; number++) made.sender.record(trouble(`number ${number}`));
  await made.dropped(30);
  t.equal(made.log.lines.length, 30, 'a bounded queue');
  t.match(made.log.lines[0], /^info 2 An event is dropped/);
  await made.start(t);
  await made.delivered(25);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(made.server.events.length, 25, 'a small bucket');
  t.same(made.notes.slice(0, 2), ['number 0', 'number 1']);
});

t.test('events are sent at the rate of the flags', async (t) => {
  const limited = await world(t, { rates: { qps: 0.1, burst: 2 } });
  for (const note of ['a', 'b', 'c']) limited.sender.record(trouble(note));
  await limited.delivered(2);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.same(limited.notes, ['a', 'b'], 'the next one waits');
  const unlimited = await world(t, { rates: { qps: 0, burst: 1 } });
  for (let number = 0; number < 60; number++) unlimited.sender.record(trouble(`number ${number}`));
  await unlimited.delivered(60);
  const dropping = await world(t, { limit: ({ note }) => note !== 'b' });
  for (const note of ['a', 'b', 'c']) dropping.sender.record(trouble(note));
  await dropping.delivered(2);
  t.same(dropping.notes, ['a', 'c']);
  t.match(dropping.log.lines, [/^info 2 An event is dropped/]);
});

for (const [code, name] of [
  [403, 'no right to'],
  [404, 'a server without them'],
  [422, 'not what the server wants'],
] as const) {
  t.test(`an event answered with ${code}, ${name}, is dropped, and the next is sent`, async (t) => {
    const made = await world(t);
    made.server.faults.add({ fault: { type: 'status', code }, resource: 'events', times: 1 });
    made.sender.record(trouble('first'));
    made.sender.record(trouble('second'));
    await made.delivered(1);
    t.same(made.notes, ['second']);
    t.equal(made.posts, 2);
    t.match(made.log.lines, [/^info 2 An event is dropped/]);
  });
}

t.test('an event answered with 401 is sent again, as the token may be changing', async (t) => {
  const made = await world(t);
  made.server.faults.add({ fault: { type: 'status', code: 401 }, resource: 'events', times: 1 });
  made.sender.record(trouble('first'));
  await until(() => made.posts === 1 && made.clock.waiting > 0, 'refused');
  await made.clock.advance(2000);
  await made.delivered(1);
  t.same(made.notes, ['first']);
});

t.test("an event answered with 429 or 5xx is sent again after the server's delay, five times at most", async (t) => {
  const made = await world(t);
  const { server, sender, clock } = made;
  const posts = (count: number): Promise<void> => until(() => made.posts === count && clock.waiting > 0, `${count}`);
  server.faults.add({ fault: { type: 'status', code: 429, retryAfter: 7 }, resource: 'events', times: 1 });
  server.faults.add({ fault: { type: 'status', code: 500 }, resource: 'events', times: 1 });
  sender.record(trouble('first'));
  await posts(1);
  await clock.advance(6999);
  t.equal(made.posts, 1);
  await clock.advance(1);
  await posts(2);
  await clock.advance(6000);
  await made.delivered(1);
  server.faults.add({ fault: { type: 'status', code: 503 }, resource: 'events' });
  sender.record(trouble('second'));
  for (let attempt = 1; attempt < 5; attempt++) {
    await posts(3 + attempt);
    await clock.advance(60_000);
  }
  await made.dropped();
  t.equal(made.posts, 8);
  server.faults.clear();
  sender.record(trouble('third'));
  await made.delivered(2);
  t.same(made.notes, ['first', 'third']);
});

t.test('an event whose answer is lost is created once', async (t) => {
  const made = await world(t);
  made.server.faults.add({ fault: { type: 'truncate', bytes: 3, reset: true }, resource: 'events', times: 1 });
  made.sender.record(trouble('first'));
  await until(() => made.posts === 1 && made.clock.waiting > 0, 'broken');
  await made.clock.advance(2000);
  await until(() => made.posts === 2, 'sent again');
  made.sender.record(trouble('second'));
  await made.delivered(2);
  t.same(made.notes, ['first', 'second']);
  t.same(made.log.lines, []);
});

t.test('without an API server events do not wait, and a stop drops them', async (t) => {
  const made = await world(t);
  await made.server.stop();
  made.sender.record(trouble('first'));
  made.sender.record(trouble('second'));
  await until(() => made.clock.waiting > 0, 'failed once');
  const flushed = made.sender.flush(50);
  await made.clock.advance(50);
  await flushed;
  made.sender.stop();
  made.sender.record(trouble('third'));
  await made.sender.flush(2000);
  await made.server.start();
  t.same(made.server.events, [] satisfies ApiObject[]);
});

t.test('a finding that all nodes share is one event in the cluster, sent by the first node', async (t) => {
  const server = new ApiServer();
  await server.start();
  t.teardown(() => server.stop());
  const web = serviceObject('web');
  server.put({ ...web, metadata: { name: 'web', namespace: 'default', uid: 'the-uid' } });
  const nodes = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const clock = new FakeClock();
      const sender = new EventSender({
        hostname: `host-${index}`,
        rates: DEFAULT_EVENT_RATES,
        limit: null,
        clock,
        log: new RecordingLog(),
        random: () => index / 50,
        wallClock: () => 1_700_000_000_000_000_000n + BigInt(index),
      });
      t.teardown(() => {
        sender.stop();
      });
      sender.start(await connect(t, { cluster: { server: server.url } }));
      return { clock, sender };
    }),
  );
  for (const [index, { sender }] of nodes.entries()) {
    sender.record({ ...trouble(`the node's own words: ${index}`), finding: 'IPv4 conflict default/first default/web' });
    sender.record({ ...trouble('another one'), reason: 'InvalidObject', finding: 'another one' });
  }
  t.equal(server.requests.length, 0, 'none at once');
  await nodes[0]?.clock.advance(0);
  await until(() => server.events.length === 2, 'the first of all');
  await Promise.all(nodes.slice(1, 25).map(({ clock }) => clock.advance(5000)));
  const posts = (): number => server.requests.filter(({ method }) => method === 'POST').length;
  await until(() => posts() === 50, 'half of them, spread over time');
  await Promise.all(nodes.map(({ clock }) => clock.advance(10_000)));
  await until(() => posts() === 100, 'all');
  for (const { sender } of nodes) await sender.flush(60_000);
  t.equal(posts(), 100, 'and none again');
  t.same(
    server.events.map(({ reason, reportingInstance }) => `${String(reason)} ${String(reportingInstance)}`).sort(),
    ['AddressConflict kube-proxy-host-0', 'InvalidObject kube-proxy-host-0'],
  );
  for (const { sender } of nodes) sender.record(trouble('of each node'));
  await until(() => server.events.length === 52, 'an event of a node is sent by each');
});
