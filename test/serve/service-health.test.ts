import { Agent, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { FAMILIES, parseAddress, type Family, type IPAddress } from '../../src/base/ip.js';
import { boundPort, listen, shut } from '../../src/serve/listener.js';
import type { FamilyHealthChecks } from '../../src/control/family-sync.js';
import { ServiceHealth } from '../../src/serve/service-health.js';
import { ClientShares } from '../../src/serve/client-shares.js';
import { systemClock } from '../../src/base/clock.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask } from '../support/http.js';
import { listeningSockets, type ListeningSocket } from '../support/listening-sockets.js';
import { RecordingLog } from '../support/recording-log.js';

function address(text: string): IPAddress {
  return parseAddress(text)!;
}

function failTest(error: Error): void {
  t.error(error);
}

/** Of no Service. */
function answerNothing(_request: IncomingMessage, response: ServerResponse): void {
  response.end('{}');
}

interface Setup {
  readonly health: ServiceHealth;
  readonly clock: FakeClock;
  readonly log: RecordingLog;
  readonly failures: string[];
  proxyHealthy: boolean;
  /** `service family address` of each open socket that answers for a Service, sorted. */
  readonly sockets: () => Promise<string[]>;
  readonly port: (service: string, family?: Family) => Promise<number>;
}

function setup(): Setup {
  const clock = new FakeClock(0);
  const log = new RecordingLog();
  const failures: string[] = [];
  const health = new ServiceHealth({
    proxyHealthy: () => result.proxyHealthy,
    shares: new ClientShares(systemClock, log),
    clock,
    log,
    onListenFailure: (service, port, error) =>
      failures.push(`${service} ${port} ${'code' in error ? String(error.code) : error.message}`),
  });
  const others = new Set(listeningSockets().map(({ inode }) => inode));
  const answering = async (): Promise<readonly (ListeningSocket & { readonly service: string })[]> => {
    const opened = listeningSockets().filter(({ inode }) => !others.has(inode));
    const answers = await Promise.all(opened.map((socket) => ask(socket.address, socket.port)));
    return opened.flatMap((socket, index) => {
      const { service } = JSON.parse(answers[index]!.body) as { readonly service?: Record<string, string> };
      return service === undefined ? [] : [{ ...socket, service: `${service['namespace']}/${service['name']}` }];
    });
  };
  const sockets = async (): Promise<string[]> =>
    (await answering()).map((socket) => `${socket.service} ${socket.family} ${socket.address}`).sort();
  const port = async (service: string, family: Family = 'IPv4'): Promise<number> =>
    (await answering()).find((socket) => socket.service === service && socket.family === family)!.port;
  const result: Setup = { health, clock, log, failures, proxyHealthy: true, sockets, port };
  return result;
}

/** Checks of one family as `{ 'ns/svc': [port, localEndpoints] }`; port 0 lets the system choose. */
function checks(
  family: Family,
  plans: Record<string, [number, number]>,
  addresses: 'all' | string[] = [family === 'IPv4' ? '127.0.0.1' : '::1'],
): FamilyHealthChecks {
  return {
    family,
    plans: Object.entries(plans).map(([service, [port, localEndpoints]]) => ({ service, port, localEndpoints })),
    addresses: addresses === 'all' ? 'all' : addresses.map(address),
  };
}

/** A port that is free in both families; kept by nobody. */
async function freePort(): Promise<number> {
  const server = await listen({ address: address('::'), port: 0, dualStack: true }, () => undefined, failTest);
  const port = boundPort(server)!;
  await shut(server);
  return port;
}

t.test('a health check node port answers any path and method with the count of local endpoints', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  await s.health.sync([checks('IPv4', { 'shop/web': [0, 2] })]);
  const port = await s.port('shop/web');
  t.match(await ask('127.0.0.1', port, '/any/path?x', 'POST'), {
    status: 200,
    headers: {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      'x-load-balancing-endpoint-weight': '2',
    },
    body: '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
  });
  t.match(await ask('127.0.0.1', port, 'http://node/any'), { status: 200, body: /"localEndpoints": 2/ });
  s.proxyHealthy = false;
  t.match(await ask('127.0.0.1', port), {
    status: 503,
    body: /"localEndpoints": 2,\n\t"serviceProxyHealthy": false\n/,
  });
  s.proxyHealthy = true;
  void s.health.sync([checks('IPv4', { 'shop/web': [0, 0] })]);
  t.match(await ask('127.0.0.1', port), {
    status: 503,
    headers: { 'x-load-balancing-endpoint-weight': '0' },
    body: /"localEndpoints": 0,\n\t"serviceProxyHealthy": true\n/,
  });
});

t.test('each family has its own health check sockets and counts', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const port = await freePort();
  await s.health.sync([checks('IPv4', { 'ns/a': [port, 1] }, 'all'), checks('IPv6', { 'ns/a': [port, 3] }, 'all')]);
  t.same(s.failures, [], 'the IPv6 wildcard leaves IPv4 alone');
  t.match(await ask('127.0.0.1', port), { headers: { 'x-load-balancing-endpoint-weight': '1' } });
  t.match(await ask('::1', port), { headers: { 'x-load-balancing-endpoint-weight': '3' } });
  await s.health.sync([checks('IPv4', {}, 'all')]);
  await t.rejects(ask('127.0.0.1', port), { code: 'ECONNREFUSED' });
  t.match(await ask('::1', port), { status: 200 }, 'a family that was not named keeps its own');
  await s.health.sync([checks('IPv6', {}, 'all')]);
  await t.rejects(ask('::1', port), { code: 'ECONNREFUSED' });
});

t.test('an IPv6-only check does not answer over IPv4', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  await s.health.sync([checks('IPv6', { 'ns/a': [0, 1] }, 'all')]);
  const port = await s.port('ns/a', 'IPv6');
  t.equal((await ask('::1', port)).status, 200);
  await t.rejects(ask('127.0.0.1', port), { code: 'ECONNREFUSED' });
});

t.test('an unchanged health check port stays open; another one closes it and its connections', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const [first, second] = [await freePort(), await freePort()];
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => {
    agent.destroy();
  });
  await s.health.sync([checks('IPv4', { 'ns/a': [first, 1] })]);
  await ask('127.0.0.1', first, '/', 'GET', agent);
  const socket = Object.values(agent.freeSockets)[0]![0]!;
  await s.health.sync([checks('IPv4', { 'ns/a': [first, 5] })]);
  t.match(await ask('127.0.0.1', first, '/', 'GET', agent), { headers: { 'x-load-balancing-endpoint-weight': '5' } });
  t.equal(Object.values(agent.freeSockets)[0]![0], socket, 'over the same connection');
  const cut = new Promise((resolve) => socket.once('close', resolve));
  await s.health.sync([checks('IPv4', { 'ns/a': [second, 5] })]);
  await cut;
  await t.rejects(ask('127.0.0.1', first), { code: 'ECONNREFUSED' });
  t.equal((await ask('127.0.0.1', second)).status, 200);
});

t.test('closing a health check port cuts a connection in the middle of a request', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  await s.health.sync([checks('IPv4', { 'ns/a': [0, 1] })]);
  const socket = connect(await s.port('ns/a'), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: ');
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.resume();
  const cut = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  await s.health.sync([checks('IPv4', {})]);
  await cut;
  t.equal((await s.sockets()).length, 0);
});

t.test('a health check port moves from one Service to another in one sync', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const port = await freePort();
  await s.health.sync([checks('IPv4', { 'ns/old': [port, 1] })]);
  await s.health.sync([checks('IPv4', { 'ns/new': [port, 1] })]);
  t.match(await ask('127.0.0.1', port), { body: /"name": "new"/ });
  t.same(s.failures, []);
});

t.test('health check sockets follow the node port addresses', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const port = await freePort();
  const plans: Record<string, [number, number]> = { 'ns/a': [port, 1] };
  await s.health.sync([checks('IPv4', plans, ['127.0.0.2', '::1', '127.0.0.3', '127.0.0.2'])]);
  t.same(await s.sockets(), ['ns/a IPv4 127.0.0.2', 'ns/a IPv4 127.0.0.3'], 'the other family is passed over');
  await s.health.sync([checks('IPv4', plans, ['127.0.0.3', '127.0.0.4'])]);
  t.same(await s.sockets(), ['ns/a IPv4 127.0.0.3', 'ns/a IPv4 127.0.0.4']);
  await t.rejects(ask('127.0.0.2', port), { code: 'ECONNREFUSED' });
  await s.health.sync([checks('IPv4', plans, 'all')]);
  t.same(await s.sockets(), ['ns/a IPv4 0.0.0.0']);
  t.equal((await ask('127.0.0.2', port)).status, 200);
  await s.health.sync([checks('IPv4', plans, ['127.0.0.5'])]);
  t.same(await s.sockets(), ['ns/a IPv4 127.0.0.5'], 'from the wildcard back to one');
  await s.health.sync([checks('IPv4', plans, [])]);
  t.same(await s.sockets(), []);
  t.same(s.failures, [], 'no address is no failure');
  await s.health.sync([checks('IPv4', plans, ['127.0.0.1'])]);
  t.equal((await ask('127.0.0.1', port)).status, 200);
});

t.test('a health check port that fails on one address is closed on all, reported once, and retried', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const squatter = await listen({ address: address('127.0.0.3'), port: 0, dualStack: false }, answerNothing, failTest);
  const port = boundPort(squatter)!;
  const wanted = checks('IPv4', { 'ns/a': [port, 1], 'ns/b': [0, 1] }, ['127.0.0.2', '127.0.0.3']);
  await s.health.sync([wanted]);
  t.same(await s.sockets(), ['ns/b IPv4 127.0.0.2', 'ns/b IPv4 127.0.0.3'], 'the other Service is served');
  await t.rejects(ask('127.0.0.2', port), { code: 'ECONNREFUSED' });
  t.same(s.failures, [`ns/a ${port} EADDRINUSE`]);
  await s.health.sync([wanted]);
  t.same(s.failures.length, 1, 'said once');
  t.equal(s.clock.waiting, 1);
  await shut(squatter);
  await s.health.sync([wanted]);
  t.equal((await ask('127.0.0.3', port)).status, 200, 'retried by a sync');
  t.same(s.log.lines, ['info 0 listening on health check node port again']);
  t.equal(s.clock.waiting, 0);
});

t.test('a health check port that failed is retried by a timer, and forgotten with its Service', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const squatter = await listen({ address: address('::1'), port: 0, dualStack: false }, answerNothing, failTest);
  const port = boundPort(squatter)!;
  await s.health.sync([checks('IPv6', { 'ns/a': [port, 1] })]);
  t.same(s.failures, [`ns/a ${port} EADDRINUSE`]);
  await shut(squatter);
  await s.clock.advance(5000);
  while ((await s.sockets()).length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.equal((await ask('::1', port)).status, 200);

  await s.health.sync([checks('IPv6', { 'ns/a': [port, 1] }, ['2001:db8::1'])]);
  t.match(s.failures[1], 'EADDRNOTAVAIL');
  t.equal(s.clock.waiting, 1);
  await s.health.sync([checks('IPv6', {})]);
  t.equal(s.clock.waiting, 0);
});

t.test('overlapping syncs of health checks end in the last state', async (t) => {
  const s = setup();
  t.teardown(() => s.health.close());
  const [first, second] = [await freePort(), await freePort()];
  void s.health.sync([checks('IPv4', { 'ns/a': [first, 1] })]);
  void s.health.sync([checks('IPv4', { 'ns/a': [second, 1], 'ns/b': [first, 1] })]);
  void s.health.sync([checks('IPv4', {})]);
  await s.health.sync([checks('IPv4', { 'ns/a': [first, 7] }, ['127.0.0.9'])]);
  t.same(await s.sockets(), ['ns/a IPv4 127.0.0.9']);
  t.match(await ask('127.0.0.9', first), { headers: { 'x-load-balancing-endpoint-weight': '7' } });
  await t.rejects(ask('127.0.0.1', second), { code: 'ECONNREFUSED' });
});

t.test('close() ends all health check sockets for good', async (t) => {
  const s = setup();
  await s.health.sync(FAMILIES.map((family) => checks(family, { 'ns/a': [0, 1] })));
  t.equal((await s.sockets()).length, 2);
  const port = await s.port('ns/a');
  await s.health.close();
  await t.rejects(ask('127.0.0.1', port), { code: 'ECONNREFUSED' });
  await s.health.sync([checks('IPv4', { 'ns/a': [0, 1] })]);
  t.same(await s.sockets(), []);
});
