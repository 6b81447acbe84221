import { Agent, createServer } from 'node:http';
import t from 'tap';
import { parseAddress, type Family, type IPAddress } from '../../src/base/ip.js';
import { Progress, type FamilyProgress } from '../../src/control/progress.js';
import { HealthState } from '../../src/observe/health.js';
import { HealthServer, healthAnswer, type HealthServerOptions } from '../../src/serve/healthz.js';
import { boundPort, listen, shut } from '../../src/serve/listener.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask } from '../support/http.js';
import { RecordingLog } from '../support/recording-log.js';

const TIMEOUT_MS = 60_000;

/** State of these families on a fake clock whose wall time at 0 is 2025-01-02T03:04:05.000000007Z. */
function setup(...families: readonly Family[]): {
  clock: FakeClock;
  state: HealthState;
  progress: (family: Family) => FamilyProgress;
} {
  const clock = new FakeClock(0);
  const epoch = BigInt(Date.UTC(2025, 0, 2, 3, 4, 5)) * 1_000_000n + 7n;
  const wallClock = (): bigint => epoch + BigInt(clock.now()) * 1_000_000n;
  const all = new Progress(families, clock, wallClock);
  const state = new HealthState(all, TIMEOUT_MS, clock, wallClock);
  return { clock, state, progress: (family) => all.of(family)! };
}

const NONE: ReadonlySet<string> = new Set();

function sync(progress: FamilyProgress): void {
  progress.take(NONE);
  progress.acknowledge();
}

function address(text: string): IPAddress {
  return parseAddress(text)!;
}

function failTest(error: Error): void {
  t.error(error);
}

function health(state: HealthState): string {
  return state
    .families()
    .map(({ family, healthy }) => `${family} ${healthy ? 'up' : 'down'}`)
    .join(', ');
}

t.test('unhealthy until every expected family has been synced', async (t) => {
  t.equal(setup().state.healthy(), false, 'of no family nothing is known');
  const { clock, state, progress } = setup('IPv6', 'IPv4');
  t.equal(health(state), 'IPv4 down, IPv6 down');
  await clock.advance(10 * TIMEOUT_MS);
  sync(progress('IPv4'));
  t.equal(health(state), 'IPv4 up, IPv6 down');
  t.equal(state.healthy(), false);
  sync(progress('IPv6'));
  t.equal(state.healthy(), true);
  await clock.advance(1000 * TIMEOUT_MS);
  t.equal(state.healthy(), true, 'nothing waits, so nothing is late');
});

t.test('frontends that the kernel refuses are shown to who asks for more, and the node is healthy', (t) => {
  const { clock, state, progress } = setup('IPv4');
  const shown = (): unknown =>
    (JSON.parse(healthAnswer(state, '/healthz', true).body) as { setAside?: unknown }).setAside;
  sync(progress('IPv4'));
  t.equal(shown(), undefined);
  const refused = { frontend: '10.0.0.1:80/SCTP', servicePort: 'a/b', reason: 'ENOENT' };
  progress('IPv4').acknowledge([{ ...refused, since: clock.now() }]);
  t.same(shown(), [{ family: 'IPv4', ...refused }]);
  t.equal(state.healthy(), true);
  t.notOk(healthAnswer(state, '/healthz').body.includes('setAside'));
  t.end();
});

t.test('drift is shown to who asks for more, and says nothing of health', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  const drift = (): unknown => (JSON.parse(healthAnswer(state, '/healthz', true).body) as { drift: unknown }).drift;
  t.same(drift(), {});
  state.drifted('IPv4', 'nft[7]');
  await clock.advance(1000);
  state.drifted('IPv4', 'other[8]');
  t.same(drift(), { IPv4: { since: '2025-01-02T03:04:05.000000007Z', process: 'nft[7]' } }, 'since the first');
  t.equal(state.healthy(), true);
  t.notMatch(healthAnswer(state, '/healthz').body, /drift/);
  state.repaired('IPv4');
  t.same(drift(), {});
});

t.test('a family that was not expected is neither shown nor missed', (t) => {
  const { state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  t.equal(health(state), 'IPv4 up');
  t.equal(state.healthy(), true);
  t.end();
});

t.test('a change that waits the timeout makes its family unhealthy until a sync has taken it', async (t) => {
  const { clock, state, progress } = setup('IPv4', 'IPv6');
  sync(progress('IPv4'));
  sync(progress('IPv6'));
  progress('IPv4').changed(null);
  await clock.advance(TIMEOUT_MS - 1);
  progress('IPv4').changed(null);
  t.equal(health(state), 'IPv4 up, IPv6 up');
  await clock.advance(1);
  t.equal(health(state), 'IPv4 down, IPv6 up', 'the first change counts, not the last');
  t.equal(state.healthy(), false);
  progress('IPv4').take(NONE);
  t.equal(state.healthy(), false, 'a start is no success');
  progress('IPv4').acknowledge();
  t.equal(state.healthy(), true);
});

t.test('a change queued during a sync is not satisfied by it', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  progress('IPv4').take(NONE);
  await clock.advance(1000);
  progress('IPv4').changed(null);
  progress('IPv4').acknowledge();
  await clock.advance(TIMEOUT_MS - 1);
  t.equal(state.healthy(), true);
  await clock.advance(1);
  t.equal(state.healthy(), false);
});

t.test('failing syncs keep the first change waiting, and a failing periodic sync counts by itself', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  for (let i = 0; i < 6; i++) {
    progress('IPv4').take(NONE);
    await clock.advance(TIMEOUT_MS / 6);
    progress('IPv4').failed('EBUSY');
  }
  t.equal(state.healthy(), false);
  sync(progress('IPv4'));
  t.equal(state.healthy(), true);

  progress('IPv4').take(NONE);
  progress('IPv4').failed('EBUSY');
  await clock.advance(TIMEOUT_MS);
  t.equal(state.healthy(), false, 'with no change at all');
});

t.test('a sync that never ends is noticed', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  progress('IPv4').take(NONE);
  await clock.advance(TIMEOUT_MS);
  t.equal(state.healthy(), false);
});

t.test('payload', async (t) => {
  const { clock, state, progress } = setup('IPv4', 'IPv6');
  const never = '"0001-01-01T00:00:00Z"';
  const now = '"2025-01-02T03:04:05.000000007Z"';
  const none = setup().state;
  t.same(healthAnswer(none, '/livez'), {
    status: 200,
    body: `{"lastUpdated":${now},"currentTime":${now},"healthy":true}`,
  });
  t.same(healthAnswer(none, '/healthz'), {
    status: 503,
    body: `{"lastUpdated":${never},"currentTime":${now},"nodeEligible":false,"healthy":false}`,
  });
  await clock.advance(1000);
  sync(progress('IPv6'));
  await clock.advance(1500);
  const four = `"IPv4":{"lastUpdated":${never},"healthy":false}`;
  const six = '"IPv6":{"lastUpdated":"2025-01-02T03:04:06.000000007Z","healthy":true}';
  t.same(
    healthAnswer(state, '/healthz'),
    {
      status: 503,
      body:
        '{"lastUpdated":"2025-01-02T03:04:06.000000007Z","currentTime":"2025-01-02T03:04:07.500000007Z",' +
        `"nodeEligible":false,"healthy":false,"status":{${four},${six}}}`,
    },
    'the latest update of any family',
  );
  sync(progress('IPv4'));
  await clock.advance(500);
  const up = '"IPv4":{"lastUpdated":"2025-01-02T03:04:07.500000007Z","healthy":true}';
  t.same(
    healthAnswer(state, '/livez'),
    {
      status: 200,
      body:
        '{"lastUpdated":"2025-01-02T03:04:08.000000007Z","currentTime":"2025-01-02T03:04:08.000000007Z",' +
        `"healthy":true,"status":{${up},${six}}}`,
    },
    'now, when all is well',
  );
});

t.test('eligibility decides /healthz only', (t) => {
  const { state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  for (const nodeEligible of [null, false, true]) {
    state.nodeEligible = nodeEligible;
    const { status, body } = healthAnswer(state, '/healthz');
    t.equal(status, nodeEligible === true ? 200 : 503, `eligible ${String(nodeEligible)}`);
    t.match(JSON.parse(body), { nodeEligible: nodeEligible === true, healthy: true });
    t.equal(healthAnswer(state, '/livez').status, 200);
    t.notMatch(healthAnswer(state, '/livez').body, 'nodeEligible');
  }
  t.end();
});

t.test(
  'HZ-04, HZ-05: /livez does not wait for the first sync, only for one that does not come to its end',
  async (t) => {
    const { clock, state, progress } = setup('IPv4', 'IPv6');
    const livez = (): { readonly status: number; readonly body: unknown } => {
      const { status, body } = healthAnswer(state, '/livez');
      return { status, body: JSON.parse(body) };
    };
    await clock.advance(10 * TIMEOUT_MS);
    t.equal(livez().status, 200, 'sources that cannot be read are nothing a new process could mend');
    t.notMatch(livez().body, { status: {} }, 'families that were never synced are not shown');
    t.equal(healthAnswer(state, '/healthz').status, 503);
    sync(progress('IPv6'));
    progress('IPv4').changed(null);
    progress('IPv4').take(NONE);
    progress('IPv4').failed('EBUSY');
    t.equal(livez().status, 200);
    await clock.advance(TIMEOUT_MS);
    t.match(livez(), {
      status: 503,
      body: { healthy: false, status: { IPv4: { healthy: false }, IPv6: { healthy: true } } },
    });
    sync(progress('IPv4'));
    t.match(livez(), { status: 200, body: { healthy: true, status: { IPv4: { healthy: true } } } });
  },
);

t.test('changes that are held back make the node unhealthy in time, but not the process', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  state.nodeEligible = true;
  const statuses = (): readonly number[] =>
    (['/healthz', '/livez'] as const).map((path) => healthAnswer(state, path).status);
  const held = (): unknown => (JSON.parse(healthAnswer(state, '/healthz', true).body) as { held?: unknown }).held;
  t.equal(held(), undefined);
  state.hold('no pod CIDRs');
  progress('IPv4').changed(null);
  t.equal(held(), 'no pod CIDRs');
  t.notMatch(healthAnswer(state, '/healthz').body, /held/, 'only who asks for more is told');
  await clock.advance(TIMEOUT_MS - 1);
  t.same(statuses(), [200, 200]);
  await clock.advance(1);
  t.same(statuses(), [503, 200]);
  t.match(JSON.parse(healthAnswer(state, '/livez').body), { healthy: true, status: { IPv4: { healthy: true } } });
  state.hold(null);
  t.equal(held(), undefined);
  t.same(statuses(), [503, 200], 'from now on the process is asked again');
  await clock.advance(TIMEOUT_MS);
  t.same(statuses(), [503, 503]);
  sync(progress('IPv4'));
  t.same(statuses(), [200, 200]);
});

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
  return { state, bind: { address: address(text), port, hardFail }, clock, log: new RecordingLog(), onFatal, fatal };
}

t.test('serves exact paths to any method', async (t) => {
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
  for (const path of ['/', '/healthz/', '/healthz/x', '//healthz', '/HEALTHZ', '/metrics', '/livezz']) {
    t.match(await ask('127.0.0.1', port, path), { status: 404 }, path);
  }
  options.state.nodeEligible = false;
  t.equal((await ask('127.0.0.1', port, '/healthz')).status, 503);
  t.equal((await ask('127.0.0.1', port, '/livez')).status, 200);
});

t.test('answers come in one piece, on connections that may stay open between them', async (t) => {
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

t.test('answers to the two paths are told, and no others', async (t) => {
  const told: string[] = [];
  const options = {
    ...served('127.0.0.1'),
    onAnswer: (path: string, status: number) => told.push(`${path} ${status}`),
  };
  const server = new HealthServer(options);
  await server.start();
  t.teardown(() => server.close());
  for (const path of ['/healthz', '/livez?x', '/other']) await ask('127.0.0.1', server.port()!, path);
  options.state.nodeEligible = false;
  await ask('127.0.0.1', server.port()!, '/healthz');
  t.same(told, ['/healthz 200', '/livez 200', '/healthz 503']);
});

t.test('both wildcards serve both families, an address only itself', async (t) => {
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

t.test('a port in use is retried every five seconds', async (t) => {
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

t.test('with hardFail a port in use is fatal and not retried', async (t) => {
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

t.test('close while retrying leaves nothing behind', async (t) => {
  const squatter = await listen({ address: address('::1'), port: 0, dualStack: false }, () => undefined, failTest);
  t.teardown(() => shut(squatter));
  const options = served('::1', boundPort(squatter)!);
  const server = new HealthServer(options);
  await server.start();
  t.equal(options.clock.waiting, 1);
  await server.close();
  t.equal(options.clock.waiting, 0);
});
