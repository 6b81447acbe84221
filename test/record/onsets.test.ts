import t from 'tap';
import { Progress } from '../../src/record/progress.js';
import { HealthState } from '../../src/record/health.js';
import { FakeClock } from '../support/fake-clock.js';

t.test('the time when each reason of ill health began is kept until it ends', (t) => {
  const clock = new FakeClock();
  let now = 0n;
  const wallClock = (): bigint => now;
  const health = new HealthState(new Progress(['IPv4'], clock, wallClock), 1000, clock, wallClock);
  const { onsets } = health;
  t.equal(onsets.of('node'), 0n, 'unknown at the start');
  now = 5n;
  health.nodeEligible = false;
  t.equal(onsets.of('node'), 0n);
  health.nodeEligible = true;
  t.equal(onsets.of('node'), null);
  health.nodeEligible = false;
  t.equal(onsets.of('node'), 5n);

  health.sysctls = ['a is 0', 'b is 0'];
  now = 7n;
  health.sysctls = ['b is 0', 'c is 0'];
  t.same(
    ['a', 'b', 'c'].map((name) => onsets.of(`sysctl ${name} is 0`)),
    [null, 5n, 7n],
  );
  health.sysctls = [];
  t.equal(onsets.of('sysctl b is 0'), null);

  health.refusal = 'one';
  now = 9n;
  health.refusal = 'another';
  t.same([health.refusal, onsets.of('configuration')], ['another', 7n]);
  health.refusal = null;
  t.equal(onsets.of('configuration'), null);
  t.end();
});
