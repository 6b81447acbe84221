// Fills bounds of SECURITY.md, each for one tenant or client, and asserts what a neighbour gets.
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createTCPServer, Socket, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { Test } from 'tap';
import { Handshakes, ADDRESS_HANDSHAKES_AT_ONCE, HANDSHAKES_AT_ONCE } from '../../packages/secured/src/handshakes.js';
import { DEFAULT_BALANCE } from '../../src/base/balance.js';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { parseAddress } from '../../src/base/ip.js';
import { cutMessage, MAX_MESSAGE_BYTES } from '../../src/base/outside-text.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import { loadAddon } from '../../src/native/load.js';
import { SlotBudget } from '../../src/plan/slot-budget.js';
import type { FamilyTable, FrontendKey, FrontendPlan } from '../../src/plan/types.js';
import { ALL_CLIENTS_BURST_MS, CLIENT_BURST_MS, ClientShares, type Client } from '../../src/serve/client-shares.js';
import { ConnectionLimit } from '../../src/serve/connection-limit.js';
import { MAX_CONNECTIONS, MAX_LISTENERS, NodePortListeners } from '../../src/serve/node-port-listeners.js';
import type { ApiConnection } from '../../src/sources/kubernetes/connection.js';
import { DEFAULT_TIMING } from '../../src/sources/kubernetes/timing.js';
import { ApiExchanger } from '../../src/sources/kubernetes/watch/exchange.js';
import { Pacer } from '../../src/sources/manifests/pacer.js';
import { parseDocuments } from '../../src/sources/manifests/parse.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { serviceObject } from './api-objects.js';
import { FakeClock } from './fake-clock.js';
import { RecordingLog } from './recording-log.js';

/** Addresses of other clients, of which each is one. */
function stranger(index: number): string {
  return `198.18.${index >> 8}.${index & 255}`;
}

/** One client opens as many connections as there may be, and twice as many: another one's connections stay, and it gets more. */
export function fillConnections(most: number): (t: Test) => void {
  return (t) => {
    const server = createServer().removeAllListeners('connection');
    new ConnectionLimit(most).serve(server, () => undefined);
    const open = (remoteAddress: string): Socket => {
      const socket = Object.defineProperties(new Socket(), {
        remoteAddress: { value: remoteAddress },
        localAddress: { value: '192.0.2.254' },
        bytesRead: { value: 1 },
      });
      socket.destroy = () => Object.defineProperty(socket, 'destroyed', { value: true });
      server.emit('connection', socket);
      return socket;
    };
    const neighbour = open('192.0.2.1');
    server.emit('request', { socket: neighbour, headers: {} }, new EventEmitter());
    const many = Array.from({ length: 2 * most }, () => open('198.51.100.1'));
    const later = open('192.0.2.1');
    t.ok(many.filter(({ destroyed }) => destroyed).length >= most, 'it is at its limit');
    t.same([neighbour.destroyed, later.destroyed], [false, false]);
  };
}

function client(address: string): Client {
  return { key: address, address, isNear: false };
}

/** One namespace has all slots. Neighbours with younger Services get their quarters, and it keeps its own. */
export function fillSlots(t: Test): void {
  const { slots } = DEFAULT_BALANCE;
  const budget = new SlotBudget(slots);
  const many = Array.from({ length: 64 }, (_, index) => `noisy/s${index}`);
  for (const [age, service] of many.entries()) budget.set(service, age, slots / 64);
  budget.decide();
  t.ok(
    many.every((service) => budget.has(service)),
    'one namespace has all',
  );
  const neighbours = ['default/web', 'shop/api', 'shop-2/api'];
  for (const [index, neighbour] of neighbours.entries()) {
    budget.set(neighbour, 100 + index, slots / 4);
    budget.decide();
    t.ok(budget.has(neighbour), `${neighbour}, a younger Service, has its quarter`);
    t.equal(many.filter((service) => budget.has(service)).length, 48 - 16 * index, 'the others lose what is needed');
  }
  budget.set('greedy/all', 99, slots);
  budget.decide();
  t.notOk(budget.has('greedy/all'), 'more than a share takes none of others');
  t.ok(neighbours.every((service) => budget.has(service)));
}

export function fillOneClient(t: Test): void {
  const shares = new ClientShares(new FakeClock(), new RecordingLog());
  shares.spend(client('198.51.100.1'), CLIENT_BURST_MS + 1);
  t.ok(shares.wait(client('198.51.100.1')) > 0, 'it waits');
  t.equal(shares.wait(client('192.0.2.1')), 0);
}

export function fillAllClients(t: Test): void {
  const shares = new ClientShares(new FakeClock(), new RecordingLog());
  for (let index = 0; index < 10; index++) shares.spend(client(stranger(index)), ALL_CLIENTS_BURST_MS / 10 + 1);
  t.ok(shares.wait(client(stranger(0))) > 0, 'one of them waits');
  t.equal(shares.wait(client('192.0.2.1')), 0, 'a neighbour that used little');
  t.equal(shares.wait({ ...client('192.0.2.254'), isNear: true }), 0, 'one on the node');
}

export function fillHandshakes(t: Test): void {
  const handshakes = new Handshakes(new FakeClock());
  handshakes.admit('192.0.2.1');
  for (let index = 0; index < HANDSHAKES_AT_ONCE; index++) handshakes.take(stranger(index));
  t.notOk(handshakes.take(stranger(HANDSHAKES_AT_ONCE)), 'their share is used');
  t.same(
    ['192.0.2.1', '127.0.0.1'].map((address) => handshakes.take(address)),
    [true, true],
  );
}

export function fillHandshakesOfOne(t: Test): void {
  const handshakes = new Handshakes(new FakeClock());
  for (let index = 0; index < ADDRESS_HANDSHAKES_AT_ONCE; index++) handshakes.take('198.51.100.1');
  t.notOk(handshakes.take('198.51.100.1'), 'its share is used');
  t.ok(handshakes.take('192.0.2.1'));
}

/** A client takes one place, however often it connects. */
export function fillClientsApart(t: Test): void {
  const handshakes = new Handshakes(new FakeClock());
  for (let index = 0; index < ADDRESS_HANDSHAKES_AT_ONCE; index++) handshakes.take('192.0.2.1');
  for (let index = 0; index < 1000; index++) handshakes.take('198.51.100.1');
  t.notOk(handshakes.take('192.0.2.1'), 'the neighbour is not forgotten');
  for (let index = 0; index < 512; index++) handshakes.take(stranger(index));
  t.notOk(handshakes.take('192.0.2.1'), 'the share of unknown clients is used');
}

export function fillAdmitted(t: Test): void {
  const handshakes = new Handshakes(new FakeClock());
  handshakes.admit('192.0.2.1');
  for (let index = 0; index < 1000; index++) handshakes.admit('198.51.100.1');
  for (let index = 0; index < HANDSHAKES_AT_ONCE; index++) handshakes.take(stranger(index));
  t.ok(handshakes.take('192.0.2.1'), 'a neighbour is remembered as one that was answered');
}

export function fillMessage(t: Test): void {
  t.equal(Buffer.byteLength(cutMessage('ä'.repeat(1_000_000))), MAX_MESSAGE_BYTES - 1, 'whole characters');
  t.equal(cutMessage('a neighbour’s text'), 'a neighbour’s text');
}

export function fillNames(t: Test): void {
  const names = new Interner();
  const before = names.list(['neighbour']);
  for (let index = 0; index < 5000; index++) names.list([`${index}`.repeat(500)]);
  t.not(names.list(['neighbour']), before, 'it is not shared any more');
  t.same(names.list(['neighbour']), ['neighbour']);
}

const NODE_PORTS = 30_000;

/** Node ports on an address of loopback that no other process uses. */
interface Loopback {
  readonly listeners: NodePortListeners;
  readonly log: RecordingLog;
  /** Gives a Service so many node ports more. */
  readonly add: (service: string, count: number) => void;
  /** Connects to a node port, by its number from 0; null: refused or reset. */
  readonly connect: (number: number) => Promise<Socket | null>;
}

async function loopback(t: Test): Promise<Loopback> {
  const host = `127.${200 + ((process.pid >> 16) & 31)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;
  const address = parseAddress(host);
  if (address === null) throw new Error(host);
  // An endpoint greets, so that its client knows when it is connected.
  const endpoint = createTCPServer((socket) => socket.on('error', () => undefined).write('.')).listen(0, host);
  await once(endpoint, 'listening');
  const { port } = endpoint.address() as AddressInfo;
  const log = new RecordingLog();
  const listeners = new NodePortListeners({
    clock: new FakeClock(),
    log,
    events: { record: () => undefined },
    metrics: { register: () => undefined as never },
    names: undefined,
    relay: () => loadAddon().relay,
  });
  const plans = new Map<FrontendKey, FrontendPlan>();
  const endpoints = EndpointList.of('IPv4', [{ address, port }]);
  const clients: Socket[] = [];
  t.teardown(() => {
    for (const client of clients) client.destroy();
    listeners.close();
    endpoint.close();
  });
  return {
    listeners,
    log,
    add: (service, count) => {
      const added = Array.from({ length: count }, () => {
        const key = frontendKey(null, NODE_PORTS + plans.size, 'TCP');
        const plan = {
          key,
          family: 'IPv4',
          address: null,
          port: NODE_PORTS + plans.size,
          servicePort: service,
          endpoints,
        };
        plans.set(key, {
          ...plan,
          localEndpoints: null,
          balance: null,
          sourceRanges: null,
          affinitySeconds: null,
        } as FrontendPlan);
        return key;
      });
      const table = {
        family: 'IPv4',
        node: { nodePortListener: address },
        frontend: (key: FrontendKey) => plans.get(key),
      };
      listeners.sync(table as unknown as FamilyTable, { frontends: new Set(added), node: false });
    },
    connect: async (number) => {
      const client = connect(NODE_PORTS + number, host);
      clients.push(client);
      const came = await Promise.race([
        once(client, 'data').then(() => true),
        new Promise<boolean>((resolve) =>
          client.on('close', () => {
            resolve(false);
          }),
        ),
      ]).catch(() => false);
      return came ? client : null;
    },
  };
}

/** A namespace with more node ports than it may have listeners. */
export async function fillLoopbackListeners(t: Test): Promise<void> {
  const { add, connect, log } = await loopback(t);
  const half = MAX_LISTENERS / 2;
  add('noisy/many', half);
  add('noisy/more', 1);
  add('default/web', 1);
  t.ok(await connect(half - 1), 'it has as many as it may');
  t.equal(await connect(half), null, 'and no more');
  t.ok(await connect(half + 1), 'a neighbour');
  t.match(log.lines, [/cannot listen for a node port on loopback/]);
}

/** A namespace with as many connections as it may have. */
export async function fillLoopbackConnections(t: Test): Promise<void> {
  const { add, connect, log } = await loopback(t);
  add('noisy/many', 1);
  add('default/web', 1);
  // In parts, so that no queue of the kernel is full.
  for (let count = 0; count < MAX_CONNECTIONS / 2; count += 64) {
    const part = await Promise.all(Array.from({ length: 64 }, () => connect(0)));
    if (part.includes(null)) t.fail(`a connection of ${count} to ${count + 63} is refused`);
  }
  t.equal(await connect(0), null, 'and no more');
  t.ok(await connect(1), 'a neighbour');
  t.match(log.lines, [/too many connections to node ports on loopback/]);
}

/** The API server explains a refusal at length: little of it is read, and another answer is taken. */
export async function fillRefusal(t: Test): Promise<void> {
  let sent = 0;
  const long = new Readable({
    read() {
      sent += 8192;
      this.push(sent > 1 << 24 ? null : Buffer.alloc(8192, 'x'));
    },
  });
  const list = JSON.stringify({
    kind: 'ServiceList',
    metadata: { resourceVersion: '5' },
    items: [serviceObject('web')],
  });
  const bodies = new Map([
    ['/refused', { status: 403, body: long }],
    ['/taken', { status: 200, body: Readable.from([Buffer.from(list)]) }],
  ]);
  const connection = {
    get: (path: string) =>
      Promise.resolve({ contentType: 'application/json', retryAfterMs: null, ...bodies.get(path) }),
  } as unknown as ApiConnection;
  const dependencies = { clock: new FakeClock(), random: () => 0, timing: DEFAULT_TIMING };
  const exchanger = new ApiExchanger(connection, 'application/json', dependencies);
  const names: string[] = [];
  const run = (path: string): Promise<unknown> =>
    exchanger.run(
      { path, query: {}, open: (codec) => codec.list('Service', ({ name }) => names.push(name)) },
      AbortSignal.timeout(60_000),
    );
  const [refused] = await Promise.allSettled([run('/refused'), run('/taken')]);
  t.match(refused, { status: 'rejected', reason: { kind: 'forbidden' } });
  t.ok(long.destroyed && sent <= 4 * 65_536, `${sent} bytes`);
  t.same(names, ['web']);
}

/** A file of documents that are no YAML is left after a thousand, and another file is read. */
export async function fillBroken(t: Test): Promise<void> {
  const bad: unknown[] = [];
  for await (const document of parseDocuments('a: {\n---\n'.repeat(1500), new Pacer())) bad.push(document);
  t.equal(bad.length, 1001);
  t.match(bad.at(-1), { type: 'error', message: /is not read, like all after it/ });
  for await (const document of parseDocuments('kind: Service\n', new Pacer()))
    t.match(document, { type: 'value', value: { kind: 'Service' } });
}
