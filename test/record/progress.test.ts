import t from 'tap';
import { Progress } from '../../src/record/progress.js';
import { FakeClock } from '../support/fake-clock.js';
import { service, slice } from '../support/rows.js';

t.test('a change is pending until the kernel acknowledges a sync that contains it', async (t) => {
  const clock = new FakeClock(0);
  const progress = new Progress(['IPv6', 'IPv4'], clock, () => BigInt(clock.now()));
  const [four, six] = progress.families;
  t.same([four?.family, six?.family, progress.waitingSince], ['IPv4', 'IPv6', null]);
  await clock.advance(10);
  progress.changed(8);
  await clock.advance(10);
  progress.changed(null);
  progress.take();
  for (const family of progress.families) family.sending(new Set(['a', 'b']));
  t.equal(progress.waitingSince, 10);
  six?.acknowledge();
  six?.succeeded();
  t.same([six?.waitingSince, six?.lastUpdated], [null, 20n]);
  four?.failed('EBUSY');
  await clock.advance(10);
  progress.changed(null);
  t.same([four?.failure, four?.waitingSince, six?.waitingSince], ['EBUSY', 10, 30]);
  four?.take();
  four?.sending(new Set(['b', 'c']));
  await clock.advance(10);
  four?.changed(null);
  t.equal(four?.pendingFrontends, 3);
  const { receivedAt, frontends } = four!.acknowledge();
  t.same([receivedAt, [...frontends]], [8, ['a', 'b', 'c']], 'with what failed before');
  four?.succeeded();
  t.same([four?.failure, four?.waitingSince, four?.pendingFrontends], [null, 40, 0], 'what came meanwhile waits');
  six?.take();
  six?.acknowledge();
  six?.failed('EIO');
  t.equal(six?.waitingSince, 40, 'the kernel does not hold what it should, with no change at all');
});

t.test('changes that the kernel never accepts take bounded memory', (t) => {
  const clock = new FakeClock(0);
  const progress = new Progress(['IPv4'], clock, () => 0n);
  for (let i = 0; i < 10_001; i++) progress.committed([{ before: null, after: service('web') }], true);
  const [four] = progress.families;
  for (let i = 0; i < 101; i++) four?.triggered('default/web', i);
  four?.take();
  const { commits, triggers } = four!.acknowledge();
  t.same([commits.length, triggers.length, progress.pendingServices], [10_000, 100, 1]);
  progress.take();
  t.equal(progress.pendingServices, 0);
  t.end();
});

t.test('changes left to a later plan stay pending, and the others are acknowledged', async (t) => {
  const clock = new FakeClock(0);
  const progress = new Progress(['IPv4', 'IPv6'], clock, () => BigInt(clock.now()));
  const [four, six] = progress.families;
  const commit = (...names: readonly string[]): void => {
    const edits = names.flatMap((name) => [
      { before: null, after: service(name) },
      { before: null, after: slice(name, [{ address: '10.0.0.1' }], { triggerTime: clock.now() + 1 }) },
    ]);
    progress.committed(edits, true, clock.now() - 1);
  };
  const acknowledged = (): unknown => {
    const { receivedAt, commits, triggers } = four!.acknowledge();
    return { receivedAt, commits, triggers };
  };
  const deferred = { IPv4: new Set(['default/large']), IPv6: new Set<string>() };
  await clock.advance(10);
  commit('large');
  await clock.advance(10);
  commit('small');
  progress.take();
  t.same([progress.pendingServices, progress.pendingSlices], [0, 0]);
  progress.planned(deferred);
  t.same([progress.pendingServices, progress.pendingSlices, [...progress.deferred]], [1, 1, ['default/large']]);
  t.same(acknowledged(), { receivedAt: 19, commits: [20], triggers: [21] }, 'the small one');
  t.same([four?.waitingSince, four?.oldestCommit], [10, 10], 'the other waits');
  t.same(six?.acknowledge().commits, [10, 20]);
  t.equal(six?.waitingSince, null, 'it waits in one family only');

  await clock.advance(10);
  commit('large', 'small');
  progress.take();
  four?.failed('EBUSY');
  progress.planned(deferred);
  t.same([progress.pendingServices, progress.pendingSlices], [1, 2]);
  t.same(acknowledged(), { receivedAt: null, commits: [], triggers: [31] }, 'a commit of both waits for both');
  t.equal(four?.waitingSince, 10);
  progress.take();
  progress.planned();
  t.same(acknowledged(), { receivedAt: 9, commits: [10, 30], triggers: [11, 31] });
  t.same([four?.waitingSince, progress.pendingServices, progress.deferred.size], [null, 0, 0]);
});

t.test('a change beyond the remembered ones is pending while it is left to a later plan', (t) => {
  const clock = new FakeClock(5);
  const progress = new Progress(['IPv4'], clock, () => 0n);
  for (let i = 0; i < 10_000; i++) progress.committed([{ before: null, after: service('web') }], true);
  progress.committed([{ before: null, after: service('large') }], true);
  progress.take();
  progress.planned({ IPv4: new Set(['default/large']) });
  const [four] = progress.families;
  t.equal(four?.acknowledge().commits.length, 10_000);
  t.same([four?.waitingSince, four?.oldestCommit], [5, null]);
  progress.take();
  progress.planned();
  t.equal(four?.acknowledge().commits.length, 0);
  t.equal(four?.waitingSince, null);
  t.end();
});
