import t from 'tap';
import { Progress } from '../../src/control/progress.js';
import { FakeClock } from '../support/fake-clock.js';
import { service } from '../support/rows.js';

const NONE: ReadonlySet<string> = new Set();

t.test('something waits from its first change until the kernel has acknowledged a sync that took it', async (t) => {
  const clock = new FakeClock(0);
  const progress = new Progress(['IPv6', 'IPv4'], clock, () => BigInt(clock.now()));
  const [four, six] = progress.families;
  t.same([four?.family, six?.family, progress.waitingSince], ['IPv4', 'IPv6', null]);
  await clock.advance(10);
  progress.changed(8);
  await clock.advance(10);
  progress.changed(null);
  for (const family of progress.families) family.take(new Set(['a', 'b']));
  t.equal(progress.waitingSince, 10);
  six?.acknowledge();
  six?.succeeded();
  t.same([six?.waitingSince, six?.lastUpdated], [null, 20n]);
  four?.failed('EBUSY');
  await clock.advance(10);
  progress.changed(null);
  t.same([four?.failure, four?.waitingSince, six?.waitingSince], ['EBUSY', 10, 30]);
  four?.take(new Set(['b', 'c']));
  await clock.advance(10);
  four?.changed(null);
  t.equal(four?.pendingFrontends, 3);
  const { heardAt, frontends } = four!.acknowledge();
  t.same([heardAt, [...frontends]], [8, ['a', 'b', 'c']], 'with what failed before');
  four?.succeeded();
  t.same([four?.failure, four?.waitingSince, four?.pendingFrontends], [null, 40, 0], 'what came meanwhile waits');
  six?.take(NONE);
  six?.acknowledge();
  six?.failed('EIO');
  t.equal(six?.waitingSince, 40, 'the kernel does not hold what it should, with no change at all');
});

t.test('what the kernel does not take is not remembered without end', (t) => {
  const clock = new FakeClock(0);
  const progress = new Progress(['IPv4'], clock, () => 0n);
  for (let i = 0; i < 10_001; i++) progress.committed([{ before: null, after: service('web') }], true);
  const [four] = progress.families;
  for (let i = 0; i < 101; i++) four?.triggered('default/web', i);
  four?.take(NONE);
  const { commits, triggers } = four!.acknowledge();
  t.same([commits.length, triggers.length, progress.pendingServices], [10_000, 100, 1]);
  progress.planned();
  t.equal(progress.pendingServices, 0);
  t.end();
});
