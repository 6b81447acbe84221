import { Agent, createServer } from 'node:http';
import t from 'tap';
import { parseAddress, type IPAddress } from '../../src/base/ip.js';
import { HealthServer, type HealthServerOptions } from '../../src/serve/healthz.js';
import { boundPort, listen, shut } from '../../src/serve/listener.js';
import { ClientShares } from '../../src/serve/client-shares.js';
import { systemClock } from '../../src/base/clock.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask } from '../support/http.js';
import { RecordingLog } from '../support/recording-log.js';
import { setup, sync } from './health-scene.js';

function address(text: string): IPAddress {
  return parseAddress(text)!;
}

function failTest(error: Error): void {
  t.error(error);
}

interface Served extends HealthServerOptions {
  readonly log: RecordingLog;
  readonly clock: FakeClock;
  readonly fatal: Error[];
}

function served(text: string, port = 0, hardFail = false): Served {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  state.nodeEligible = true;
  const fatal: Error[] = [];
  const onFatal = (error: Error): void => void fatal.push(error);
  const log = new RecordingLog();
  const shares = new ClientShares(systemClock, log);
  return { state, bind: { address: address(text), port, hardFail }, shares, clock, log, onFatal, fatal };
}

t.test('the health server answers its exact paths for any method', async (t) => {
  const options = served('127.0.0.1');
  const server = new HealthServer(options);
  t.equal(server.port(), null);
  await server.start();
  t.teardown(() => server.close());
  const port = server.port()!;
  const answer = await ask('127.0.0.1', port, '/healthz');
  t.match(answer, {
    status: 200,
    headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff' },
    body: /^\{"lastUpdated":.*\}$/,
  });
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    t.match(await ask('127.0.0.1', port, '/livez', method), { status: 200, body: /"healthy":true/ }, method);
  }
  t.match(await ask('127.0.0.1', port, '/livez', 'HEAD'), { status: 200, body: '' });
  t.equal((await ask('127.0.0.1', port, '/livez?verbose')).status, 200);
  for (const target of ['http://node:10256/healthz', 'HTTPS://[::1]/healthz?verbose'])
    t.match(await ask('127.0.0.1', port, target), { status: 200, body: /"healthy":true/ }, target);
  for (const target of ['http://node:10256', 'http://node?/healthz', 'http:///healthz', 'ftp://node/healthz'])
    t.match(await ask('127.0.0.1', port, target), { status: 404 }, target);
  for (const path of ['/', '/healthz/', '/healthz/x', '//healthz', '/HEALTHZ', '/metrics', '/livezz']) {
    t.match(await ask('127.0.0.1', port, path), { status: 404 }, path);
  }
  options.state.nodeEligible = false;
  t.equal((await ask('127.0.0.1', port, '/healthz')).status, 503);
  t.equal((await ask('127.0.0.1', port, '/livez')).status, 200);
});

t.test('health answers come whole, on connections that may stay open', async (t) => {
  const server = new HealthServer(served('127.0.0.1'));
  await server.start();
  t.teardown(() => server.close());
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => {
    agent.destroy();
  });
  for (const [path, status] of [
    ['/healthz', 200],
    ['/nothing', 404],
  ] as const) {
    const { headers, ...answer } = await ask('127.0.0.1', server.port()!, path, 'GET', agent);
    t.equal(answer.status, status);
    t.equal(headers['content-length'], String(answer.body.length), path);
    t.notOk('transfer-encoding' in headers, 'no chunks');
    // A balancer that asks every five seconds must not meet a connection that is closed after five.
    t.notOk('keep-alive' in headers, 'no time after which an idle connection is closed');
  }
});

t.test('answers of /healthz and /livez are counted, and no others', async (t) => {
  const reported: string[] = [];
  const options = {
    ...served('127.0.0.1'),
    onAnswer: (path: string, status: number) => reported.push(`${path} ${status}`),
  };
  const server = new HealthServer(options);
  await server.start();
  t.teardown(() => server.close());
  for (const path of ['/healthz', '/livez?x', '/other']) await ask('127.0.0.1', server.port()!, path);
  options.state.nodeEligible = false;
  await ask('127.0.0.1', server.port()!, '/healthz');
  t.same(reported, ['/healthz 200', '/livez 200', '/healthz 503']);
});

t.test('a wildcard health address serves both families, and a single address only itself', async (t) => {
  for (const wildcard of ['0.0.0.0', '::']) {
    const server = new HealthServer(served(wildcard));
    await server.start();
    const port = server.port()!;
    t.equal((await ask('127.0.0.1', port, '/livez')).status, 200, `${wildcard} over IPv4`);
    t.equal((await ask('::1', port, '/livez')).status, 200, `${wildcard} over IPv6`);
    await server.close();
    await t.rejects(ask('127.0.0.1', port, '/livez'), { code: 'ECONNREFUSED' });
  }
  const server = new HealthServer(served('::1'));
  await server.start();
  t.teardown(() => server.close());
  t.equal((await ask('::1', server.port()!, '/livez')).status, 200);
  await t.rejects(ask('127.0.0.1', server.port()!, '/livez'), { code: 'ECONNREFUSED' });
});

t.test('a health port in use is retried every five seconds', async (t) => {
  const squatter = await listen(
    { address: address('127.0.0.1'), port: 0, dualStack: false },
    () => undefined,
    failTest,
  );
  const port = boundPort(squatter)!;
  const options = served('127.0.0.1', port);
  const server = new HealthServer(options);
  await server.start();
  t.equal(server.port(), null);
  t.match(options.log.lines, [/^error cannot serve health checks on 127\.0\.0\.1 port \d+: listen EADDRINUSE/]);
  await options.clock.advance(5000);
  while (options.log.lines.length < 2) await new Promise((resolve) => setImmediate(resolve));
  await shut(squatter);
  await options.clock.advance(4999);
  t.equal(server.port(), null);
  await options.clock.advance(1);
  while (server.port() === null) await new Promise((resolve) => setImmediate(resolve));
  t.equal((await ask('127.0.0.1', port, '/livez')).status, 200);
  t.same(options.fatal, []);
  await server.close();
});

t.test('with bindAddressHardFail a health port in use is fatal and not retried', async (t) => {
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
  t.teardown(() => shut(squatter));
  const options = served('127.0.0.1', boundPort(squatter)!, true);
  const server = new HealthServer(options);
  await server.start();
  t.equal(options.fatal[0]?.cause, undefined, 'which the log would print a second time');
  t.match(options.fatal, [{ message: /^cannot serve health checks on 127\.0\.0\.1 port \d+: listen EADDRINUSE/ }]);
  t.equal(options.clock.waiting, 0);
  await server.close();
});

t.test('closing the health server during a retry leaves nothing', async (t) => {
  const squatter = await listen({ address: address('::1'), port: 0, dualStack: false }, () => undefined, failTest);
  t.teardown(() => shut(squatter));
  const options = served('::1', boundPort(squatter)!);
  const server = new HealthServer(options);
  await server.start();
  t.equal(options.clock.waiting, 1);
  await server.close();
  t.equal(options.clock.waiting, 0);
});
