import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { Registry } from 'prom-client';
import t, { type Test } from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import type { LoopbackTable } from '../../src/control/loopback.js';
import type { RelayAddon, RelayEnd } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { Planner } from '../../src/plan/planner.js';
import {
  MAX_CONNECTIONS,
  MAX_LISTENERS,
  NAMESPACE_CONNECTIONS,
  NAMESPACE_LISTENERS,
  NodePortListeners,
} from '../../src/serve/node-port-listeners.js';
import type { Row } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { address, service, slice } from '../support/rows.js';

/** Loopback addresses of this process alone, whose ports no other program has. */
const [HOST, ONE, OTHER, SILENT] = [0, 1, 2, 3].map((place) => {
  const { pid } = process;
  return `127.${64 + ((pid >> 14) & 127)}.${(pid >> 6) & 255}.${(pid & 63) * 4 + place}`;
}) as [string, string, string, string];
const POLL_MS = 5;
const FIRST_PORT = 30_000;
const RETRY_MS = 5000;
const DIAL_MS = 5000;
const { relay } = loadAddon();
const NAMES = {
  open: { name: 'listeners', help: 'Listeners.' },
  failures: { name: 'failures_total', help: 'Failures.' },
};

/** A server that names itself, and keeps its connections. */
interface Backend {
  readonly address: string;
  readonly port: number;
  readonly sockets: readonly Socket[];
}

class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly events: ProxyEvent[] = [];
  readonly listeners: NodePortListeners;
  /** What the next picks draw. */
  draw = 0;
  private readonly registry = new Registry();
  private readonly store = new Store();
  private readonly writer = this.store.register('test');
  private readonly planner = new Planner(planSettings({ nodeName: 'me' }));

  constructor(
    private readonly t: Test,
    addon: RelayAddon = relay,
  ) {
    const { clock, log, events, registry } = this;
    this.listeners = new NodePortListeners({
      clock,
      log,
      events: { record: (event) => events.push(event) },
      metrics: { register: (make) => make(registry) },
      names: NAMES,
      relay: () => addon,
      random: () => this.draw,
    });
    t.teardown(() => {
      this.listeners.close();
    });
  }

  put(...rows: readonly Row[]): void {
    this.writer.apply(rows.map((row) => ({ type: 'upsert' as const, row })));
    this.planner.update(this.store.snapshot, this.store.takeChanges());
    const table = this.planner.tables.IPv4;
    const loopback: LoopbackTable = {
      family: 'IPv4',
      node: { nodePortListener: address(HOST) },
      frontend: (key) => table.frontend(key),
      frontends: () => table.frontends(),
    };
    this.listeners.sync(loopback, table.takeChange());
  }

  async backend(host: string): Promise<Backend> {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      socket.write(host);
    });
    server.listen(0, host);
    await once(server, 'listening');
    this.t.teardown(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return { address: host, port: portOf(server), sockets };
  }

  /** A client of a node port. */
  client(port: number): Socket {
    const socket = connect({ host: HOST, port }).on('error', () => undefined);
    this.t.teardown(() => socket.destroy());
    return socket;
  }

  /** The endpoint that a new connection gets; null: it is reset or refused. */
  async asked(port = FIRST_PORT): Promise<string | null> {
    const socket = this.client(port);
    const name = await new Promise<string | null>((resolve) => {
      socket.once('data', (data) => {
        resolve(data.toString());
      });
      socket.once('close', () => {
        resolve(null);
      });
    });
    socket.destroy();
    return name;
  }

  /** The failure and the count of {@link NAMES}. */
  async counted(name: string): Promise<number> {
    const { values } = (await this.registry.getMetricsAsJSON()).find((each) => each.name === `kubeproxy_${name}`) ?? {
      values: [],
    };
    return values.reduce((sum, { value }) => sum + value, 0);
  }
}

function portOf(server: Server): number {
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound.port : 0;
}

/** Services with these numbers of node ports, each port of the next number. */
function nodePorts(
  name: string,
  first: number,
  count: number,
  { address: host, port }: Backend,
  namespace = 'default',
): readonly Row[] {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const ports = numbers.map((nodePort) => ({ name: `p${nodePort}`, port: nodePort - 20_000, nodePort }));
  const clusterIPs = [`10.96.${(first >> 8) & 255}.${first & 255}`];
  const targets = ports.map((each) => ({ name: each.name, port }));
  return [
    service(name, { namespace, type: 'NodePort', clusterIPs, ports }),
    slice(name, [{ address: host }], { namespace, ports: targets }),
  ];
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

t.test(
  'session affinity on loopback: each connection begins the time anew, and its end sends the next one elsewhere',
  async (t) => {
    const scene = new Scene(t);
    const one = await scene.backend(ONE);
    const other = createServer((socket) => socket.on('error', () => undefined).end(OTHER));
    other.listen(one.port, OTHER);
    await once(other, 'listening');
    t.teardown(() => other.close());
    const ports = [{ port: 80, nodePort: FIRST_PORT }];
    const sticky = (affinitySeconds: number | null): Row =>
      service('web', { type: 'NodePort', ports, affinitySeconds });
    const pods = [ONE, OTHER].map((each) => ({ address: each }));
    scene.put(sticky(10), slice('web', pods, { ports: [{ port: one.port }] }));
    await until(async () => (await scene.counted('listeners')) === 1);
    t.equal(await scene.asked(), ONE);
    scene.draw = 0.9;
    scene.clock.elapse(10_000);
    t.equal(await scene.asked(), ONE, 'after 10 s it is still the same');
    scene.clock.elapse(10_000);
    t.equal(await scene.asked(), ONE, 'the last connection began the time anew');
    scene.clock.elapse(10_001);
    t.equal(await scene.asked(), OTHER, 'then it is chosen anew');
    scene.draw = 0;
    scene.put(slice('web', pods.slice(0, 1), { ports: [{ port: one.port }] }));
    t.equal(await scene.asked(), ONE, 'so it is when the endpoint has gone');
    scene.put(slice('web', pods, { ports: [{ port: one.port }] }));
    scene.draw = 0.9;
    scene.put(sticky(null));
    t.equal(await scene.asked(), OTHER, 'without affinity each connection is chosen anew');
  },
);

t.test('an endpoint that does not answer on loopback ends the connection after 5 s', async (t) => {
  const scene = new Scene(t);
  const { port, fill } = await silentServer(t);
  scene.put(
    service('web', { type: 'NodePort', ports: [{ port: 80, nodePort: FIRST_PORT }] }),
    slice('web', [{ address: SILENT }], { ports: [{ port }] }),
  );
  await until(async () => (await scene.counted('listeners')) === 1);
  await fill();
  const client = scene.client(FIRST_PORT);
  let fate: string | null = null;
  client.on('error', (error) => (fate = (error as NodeJS.ErrnoException).code ?? error.message));
  await until(() => scene.clock.waiting === 1);
  await scene.clock.advance(DIAL_MS - 1);
  t.equal(fate, null);
  await scene.clock.advance(1);
  await once(client, 'close');
  t.equal(fate, 'ECONNRESET');
  t.equal(scene.clock.waiting, 0);
  t.same([...scene.listeners.endpoints('IPv4')], [], 'nothing of it is left');
});

t.test('a node port on loopback that cannot be listened on is reported once, shown, and tried again', async (t) => {
  const scene = new Scene(t);
  const backend = await scene.backend(ONE);
  const occupier = createServer().listen(FIRST_PORT, HOST);
  await once(occupier, 'listening');
  scene.put(...nodePorts('web', FIRST_PORT, 1, backend));
  const text = `cannot listen on ${HOST} for node port 30000 of default/web:p30000: EADDRINUSE`;
  await until(() => scene.events.length > 0);
  t.match(scene.events, [
    { type: 'Warning', reason: 'LocalhostNodePortFailed', regarding: { kind: 'Service', name: 'web' }, note: text },
  ]);
  t.same([scene.listeners.failures('IPv4'), scene.listeners.failures('IPv6')], [[text], []]);
  t.equal(await scene.counted('failures_total'), 1);
  await scene.clock.advance(RETRY_MS);
  await until(async () => (await scene.counted('failures_total')) === 2);
  t.same([scene.events.length, scene.log.lines.length], [1, 1], 'the same failure is reported once');
  occupier.close();
  await once(occupier, 'close');
  await scene.clock.advance(RETRY_MS);
  await until(async () => (await scene.counted('listeners')) === 1);
  t.equal(await scene.asked(), backend.address);
  t.same(scene.listeners.failures('IPv4'), []);
  t.match(scene.log.lines.at(-1), 'node port on loopback answers again');
  t.equal(scene.clock.waiting, 0);
});

t.test('a namespace, and all together, have bounded numbers of listeners on loopback', async (t) => {
  const scene = new Scene(t);
  const backend = await scene.backend(ONE);
  const half = MAX_LISTENERS / 2;
  scene.put(...nodePorts('many', FIRST_PORT, half + 1, backend));
  await until(async () => (await scene.counted('listeners')) === half);
  const [failure = '', ...rest] = scene.listeners.failures('IPv4');
  t.match(failure, /of default\/many:p\d+: too many listeners: a namespace has 128, all together 1024$/);
  t.same(rest, []);
  const others = half / NAMESPACE_LISTENERS;
  for (let index = 0; index <= others; index++)
    scene.put(...nodePorts('s', FIRST_PORT + 600 + index * 200, index < others ? 128 : 1, backend, `other-${index}`));
  await until(async () => (await scene.counted('listeners')) === MAX_LISTENERS);
  t.match(scene.listeners.failures('IPv4'), [/default\/many/, /other-4\/s/]);
  const last = FIRST_PORT + 600 + others * 200;
  t.equal(await scene.asked(last), null);
  scene.put(...nodePorts('many', FIRST_PORT, 1, backend));
  await scene.clock.advance(RETRY_MS);
  await until(async () => (await scene.asked(last)) === backend.address);
  t.same(scene.listeners.failures('IPv4'), []);
});

t.test('a namespace, and all together, have bounded numbers of connections on loopback', async (t) => {
  const scene = new Scene(t);
  const backend = await scene.backend(ONE);
  const half = MAX_CONNECTIONS / 2;
  const others = half / NAMESPACE_CONNECTIONS;
  for (let index = 0; index <= others + 1; index++)
    scene.put(...nodePorts('s', FIRST_PORT + index, 1, backend, `of-${index}`));
  await until(async () => (await scene.counted('listeners')) === others + 2);
  const connected = (): number => [...scene.listeners.endpoints('IPv4')].length;
  const held: Socket[] = [];
  const fill = async (port: number, count: number): Promise<void> => {
    while (held.length < count) held.push(scene.client(port));
    await until(() => connected() === count);
  };
  await fill(FIRST_PORT, half);
  t.equal(await scene.asked(FIRST_PORT), null, 'one more of the namespace is reset');
  t.equal(await scene.asked(FIRST_PORT + 1), backend.address, 'others have room');
  t.equal(await scene.asked(FIRST_PORT), null);
  await until(() => connected() === half);
  for (let index = 1; index <= others; index++) await fill(FIRST_PORT + index, half + index * NAMESPACE_CONNECTIONS);
  const last = FIRST_PORT + others + 1;
  t.equal(await scene.asked(last), null, 'one more of all is reset');
  const full = 'warn too many connections to node ports on loopback: new ones are reset';
  t.same(scene.log.lines, [full, full], 'each namespace is reported once');
  for (const socket of held.slice(0, half)) socket.destroy();
  await until(() => connected() === half);
  for (const port of [FIRST_PORT, last]) t.equal(await scene.asked(port), backend.address, 'there is room');
});

t.test('connections on loopback that end while their node port goes leave no socket', async (t) => {
  const held = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  for (let turns = 0; turns < 6; turns++) {
    const scene = new Scene(t);
    const backend = await scene.backend(ONE);
    scene.put(...nodePorts('web', FIRST_PORT, 1, backend));
    await until(async () => (await scene.counted('listeners')) === 1);
    const clients = Array.from({ length: 10 }, () => scene.client(FIRST_PORT));
    await Promise.all(clients.map((client) => once(client, 'data')));
    for (const client of clients) client.destroy();
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    scene.listeners.close();
    for (const socket of backend.sockets) socket.destroy();
  }
  await until(() => held() === 0);
});

t.test('a client on loopback that closes its side early gets the whole answer', async (t) => {
  const scene = new Scene(t);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let question = '';
    socket.on('data', (data) => (question += data.toString()));
    socket.on('end', () => socket.end(`${question}: an answer`));
  });
  server.listen(0, ONE);
  await once(server, 'listening');
  t.teardown(() => server.close());
  scene.put(...nodePorts('web', FIRST_PORT, 1, { address: ONE, port: portOf(server), sockets: [] }));
  await until(async () => (await scene.counted('listeners')) === 1);
  const client = connect({ host: HOST, port: FIRST_PORT, allowHalfOpen: true });
  client.end('a question');
  let answer = '';
  client.on('data', (data) => (answer += data.toString()));
  await once(client, 'end');
  t.equal(answer, 'a question: an answer');
  await until(() => [...scene.listeners.endpoints('IPv4')].length === 0);
});

t.test('connections on loopback whose bytes cannot be carried are reset, with one warning', async (t) => {
  const refusals: readonly (string | null)[] = ['EMFILE', 'EMFILE', null, 'EMFILE'];
  let carried = 0;
  let report: (ends: readonly RelayEnd[]) => void = () => undefined;
  const scene = new Scene(t, {
    relayOpen: (onEnd) => {
      report = onEnd;
      return { carry: () => refusals[carried++] ?? carried, end: () => undefined, close: () => undefined };
    },
  });
  scene.put(...nodePorts('web', FIRST_PORT, 1, await scene.backend(ONE)));
  await until(async () => (await scene.counted('listeners')) === 1);
  const warning = 'warn connections to node ports on loopback are reset, as their bytes cannot be carried';
  for (const refusal of refusals.slice(0, 2)) t.equal(await scene.asked(), null, refusal ?? '');
  t.same(scene.log.lines, [warning]);
  scene.client(FIRST_PORT);
  await until(() => carried === 3);
  t.equal([...scene.listeners.endpoints('IPv4')].length, 1, 'the relay has it');
  report([{ id: 3, lack: null }]);
  t.same([...scene.listeners.endpoints('IPv4')], []);
  t.equal(await scene.asked(), null);
  t.same(scene.log.lines, [warning, warning], 'a connection ended well between them');
});

/** A server of a stopped process, whose queue can be filled: the kernel answers no further connection. */
async function silentServer(t: Test): Promise<{ readonly port: number; readonly fill: () => Promise<void> }> {
  const code = `require('net').createServer().listen({ port: 0, host: '${SILENT}', backlog: 1 }, function () {
    console.log(this.address().port);
  });`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const port = Number((await once(child.stdout, 'data'))[0]);
  child.kill('SIGSTOP');
  const fill = async (): Promise<void> => {
    // The queue has room for one more than its length.
    for (let count = 0; count < 2; count++) {
      const socket = connect({ host: SILENT, port });
      t.teardown(() => socket.destroy());
      await once(socket, 'connect');
    }
  };
  return { port, fill };
}
