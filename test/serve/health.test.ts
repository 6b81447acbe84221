import t from 'tap';
import { HealthState } from '../../src/record/health.js';
import { healthAnswer } from '../../src/serve/healthz.js';
import { TIMEOUT_MS, setup, sync } from './health-scene.js';

function health(state: HealthState): string {
  return state
    .families()
    .map(({ family, healthy }) => `${family} ${healthy ? 'up' : 'down'}`)
    .join(', ');
}

t.test('health: unhealthy until every expected family has been synced', async (t) => {
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

t.test('refused frontends are in the verbose health answer, and the node is healthy', (t) => {
  const { clock, state, progress } = setup('IPv4');
  const shown = (): unknown =>
    (JSON.parse(healthAnswer(state, '/healthz', true).body) as { quarantined?: unknown }).quarantined;
  sync(progress('IPv4'));
  t.equal(shown(), undefined);
  const refused = { frontend: '10.0.0.1:80/SCTP', servicePort: 'a/b', reason: 'ENOENT' };
  progress('IPv4').acknowledge([{ ...refused, since: clock.now() }]);
  t.same(shown(), [{ family: 'IPv4', ...refused }]);
  t.equal(state.healthy(), true);
  t.notOk(healthAnswer(state, '/healthz').body.includes('quarantined'));
  t.end();
});

t.test('a fault of the node fails /healthz and not /livez, until a sync finds it no more', (t) => {
  const { clock, state, progress } = setup('IPv4');
  const statuses = (): readonly number[] =>
    (['/healthz', '/livez'] as const).map((path) => healthAnswer(state, path).status);
  const fault = { text: 'no module xt_statistic', remedy: 'modprobe xt_statistic' };
  state.nodeEligible = true;
  sync(progress('IPv4'));
  t.same(statuses(), [200, 200]);
  const quarantined = [{ frontend: '10.0.0.1:80/TCP', servicePort: 'a/b', reason: fault.text, since: clock.now() }];
  progress('IPv4').acknowledge(quarantined, [], [{ ...fault, isVital: false }]);
  t.same(statuses(), [200, 200], 'few Services need the part');
  progress('IPv4').acknowledge(quarantined, [], [{ ...fault, isVital: true }]);
  t.same(statuses(), [503, 200], 'another process would find the same');
  progress('IPv4').acknowledge();
  t.same(statuses(), [200, 200]);
  progress('IPv4').failed('refused', [{ ...fault, isVital: true }]);
  t.same(statuses(), [503, 200], 'at once, not after the timeout');
  t.end();
});

t.test('/healthz?verbose names each source and when it was last heard of', (t) => {
  const { state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  state.sources = () => [
    { source: 'services', synced: true, sinceLastEventMs: 2000.4 },
    { source: 'nodes', synced: false, sinceLastEventMs: null },
  ];
  const { sources, ...others } = JSON.parse(healthAnswer(state, '/healthz', true).body) as Record<string, unknown>;
  t.notOk('apiServer' in others, 'there is no connection to one');
  state.apiHeardMs = () => 2000.4;
  t.match(JSON.parse(healthAnswer(state, '/healthz', true).body), {
    apiServer: { lastHeard: '2025-01-02T03:04:03.000000007Z' },
  });
  t.same(sources, {
    services: { synced: true, lastHeard: '2025-01-02T03:04:03.000000007Z' },
    nodes: { synced: false, lastHeard: null },
  });
  t.notMatch(healthAnswer(state, '/healthz').body, /lastHeard/);
  t.end();
});

t.test('drift is in the verbose health answer, and does not affect health', async (t) => {
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

t.test('a family that was not expected is neither shown nor missing in the health answer', (t) => {
  const { state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  t.equal(health(state), 'IPv4 up');
  t.equal(state.healthy(), true);
  t.end();
});

t.test('a change that waits longer than the timeout makes its family unhealthy until it is synced', async (t) => {
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
  progress('IPv4').take();
  t.equal(state.healthy(), false, 'a start is no success');
  progress('IPv4').acknowledge();
  t.equal(state.healthy(), true);
});

t.test('a change queued during a sync is not acknowledged by it', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  progress('IPv4').take();
  await clock.advance(1000);
  progress('IPv4').changed(null);
  progress('IPv4').acknowledge();
  await clock.advance(TIMEOUT_MS - 1);
  t.equal(state.healthy(), true);
  await clock.advance(1);
  t.equal(state.healthy(), false);
});

t.test('failing syncs keep the first change pending, and a failing periodic sync counts by itself', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  for (let i = 0; i < 6; i++) {
    progress('IPv4').take();
    await clock.advance(TIMEOUT_MS / 6);
    progress('IPv4').failed('EBUSY');
  }
  t.equal(state.healthy(), false);
  sync(progress('IPv4'));
  t.equal(state.healthy(), true);

  progress('IPv4').take();
  progress('IPv4').failed('EBUSY');
  await clock.advance(TIMEOUT_MS);
  t.equal(state.healthy(), false, 'with no change at all');
});

t.test('a sync that never ends makes the family unhealthy', async (t) => {
  const { clock, state, progress } = setup('IPv4');
  sync(progress('IPv4'));
  progress('IPv4').changed(null);
  progress('IPv4').take();
  await clock.advance(TIMEOUT_MS);
  t.equal(state.healthy(), false);
});

t.test('the health answer has the format of kube-proxy', async (t) => {
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

t.test('node eligibility affects /healthz only', (t) => {
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

t.test('HZ-04, HZ-05: /livez does not wait for the first sync, and fails for one that hangs', async (t) => {
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
  progress('IPv4').take();
  progress('IPv4').failed('EBUSY');
  t.equal(livez().status, 200);
  await clock.advance(TIMEOUT_MS);
  t.match(livez(), {
    status: 503,
    body: { healthy: false, status: { IPv4: { healthy: false }, IPv6: { healthy: true } } },
  });
  sync(progress('IPv4'));
  t.match(livez(), { status: 200, body: { healthy: true, status: { IPv4: { healthy: true } } } });
});

t.test('changes that are held back fail /healthz after the timeout, and not /livez', async (t) => {
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
  t.notMatch(healthAnswer(state, '/healthz').body, /held/, 'only the verbose answer has it');
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
