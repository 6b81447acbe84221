// Changes that are too many for one sync are divided: small ones of others do not wait for them, and what waits is not called done.
import t from 'tap';
import type { AcknowledgedSync } from '../../src/observe/cycle-observer.js';
import type { Row } from '../../src/state/rows.js';
import { largeService as large, largeSlice } from '../support/large-services.js';
import { planSettings } from '../support/plan-settings.js';
import { service } from '../support/rows.js';
import { replaceMode, taken, world } from './sync-cycle-world.js';

function small(number: number): Row {
  return service(`small-${number}`, { clusterIPs: [`10.96.2.${number}`] });
}

/** A world in which everything there is is in the kernel, and what its syncs acknowledge. */
async function started(...rows: readonly Row[]): Promise<{
  readonly made: ReturnType<typeof world>;
  /** Of IPv4: how long each commit took. */
  readonly commits: number[][];
  /** One run; which Services' frontends IPv4 got. */
  readonly run: (full?: boolean) => Promise<readonly string[]>;
}> {
  const commits: number[][] = [];
  const made = world(planSettings(), {
    acknowledged: ({ report, changes }: AcknowledgedSync) => {
      if (report.family === 'IPv4') commits.push(changes.commits.map((at) => made.clock.now() - at));
    },
  });
  made.upsert(...rows);
  await made.cycle.run({ full: true });
  commits.length = 0;
  made.dataplanes.IPv4.calls.length = 0;
  taken(made);
  const run = async (full = false): Promise<readonly string[]> => {
    await made.cycle.run({ full });
    const [keys = ''] = made.dataplanes.IPv4.calls.splice(0);
    const table = made.cycle.planner.tables.IPv4;
    const names = keys.split(',').map((key) => table.frontend(key)?.servicePort.replace(/^default\/|:.*$/g, '') ?? key);
    return [...new Set(names)].sort();
  };
  return { made, commits, run };
}

t.test('many Services with session affinity are divided among syncs', async (t) => {
  const { made, run } = await started();
  const { cycle } = made;
  const sticky = (number: number): Row =>
    service(`sticky-${number}`, { clusterIPs: [`10.97.${number >> 8}.${number & 255}`], affinitySeconds: 60 + number });
  const count = 500;
  made.upsert(...Array.from({ length: count }, (_, number) => sticky(number)));
  const taken: number[] = [];
  do taken.push((await run()).length);
  while (cycle.planner.tables.IPv4.deferred.size > 0 && taken.length < count);
  t.equal(taken.length, 3, taken.join());
  t.ok(
    taken.every((services) => services <= 200),
    'one sync has 200 at most',
  );
  t.equal(cycle.planner.tables.IPv4.counts.services, count);
});

t.test('a small change overtakes large ones, and these are planned one after the other', async (t) => {
  const { made, commits, run } = await started();
  const { clock, progress, cycle } = made;
  const began = clock.now();
  for (const number of [0, 1, 2]) made.upsert(...large(number));
  await clock.advance(10);
  made.upsert(small(0));
  await clock.advance(1);
  t.same(
    taken(made).filter((each) => each !== 'trigger'),
    [],
  );
  t.same(await run(), ['small-0']);
  t.same(taken(made), ['proceed'], 'the next follows');
  t.same(commits.splice(0), [[1]]);
  t.same([...cycle.planner.tables.IPv4.deferred], ['default/large-0', 'default/large-1', 'default/large-2']);
  t.same([progress.pendingServices, progress.pendingSlices, progress.of('IPv4')?.waitingSince], [3, 3, began]);
  t.equal(progress.of('IPv6')?.waitingSince, null, 'they have nothing to do with the other family');
  await clock.advance(1);
  made.upsert(small(1));
  t.same(await run(), ['large-0', 'small-1']);
  t.same(commits.splice(0), [[12, 0]]);
  made.upsert(small(2), largeSlice(1, 2));
  t.same(await run(), ['small-2'], 'the last plan had a large one');
  t.same(commits.splice(0), [[]], 'what was committed with a large one waits for it');
  t.same(await run(), ['large-1']);
  t.same(await run(), ['large-2']);
  t.same(taken(made).filter((each) => each === 'proceed').length, 3, 'after the last nothing follows');
  t.same([progress.pendingServices, progress.pendingSlices, progress.waitingSince], [0, 0, null]);
  const { counts } = cycle.planner.tables.IPv4;
  t.same(counts, { services: 6, frontends: 63, endpoints: 60_000 });
});

t.test('removed Services are planned in parts too', async (t) => {
  const { made, run } = await started(...large(0), ...large(1), small(0));
  for (const number of [0, 1]) made.remove(service(`large-${number}`));
  made.upsert({ ...service('small-0', { clusterIPs: ['10.96.2.0'] }), affinitySeconds: 7 });
  t.same(await run(), ['small-0']);
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 3);
  await run();
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 2);
  await run();
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 1);
  t.equal(made.progress.waitingSince, null);
});

t.test('source ranges count as entries, of Services that come and that go', async (t) => {
  const { made, run } = await started(small(0));
  const ranged = (number: number): Row =>
    service(`ranged-${number}`, {
      clusterIPs: [`10.96.3.${number}`],
      loadBalancer: [`192.0.2.${number}`],
      sourceRanges: Array.from({ length: 12_000 }, (_, index) => `198.${index >> 8}.${index & 255}.0/24`),
    });
  made.upsert(ranged(0), ranged(1), small(1));
  t.same(await run(), ['small-1']);
  t.same(await run(), ['ranged-0']);
  t.same(await run(), ['ranged-1']);
  for (const number of [0, 1]) made.remove(service(`ranged-${number}`));
  await run();
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 3);
  await run();
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 2);
});

t.test('a sync that fails leaves the rest of a divided plan to the next', async (t) => {
  const { made, run } = await started();
  made.upsert(...large(0), ...large(1), small(0));
  made.dataplanes.IPv4.failures.push(new Error('EBUSY'));
  await t.rejects(made.cycle.run({ full: false }));
  t.ok(taken(made).includes('proceed'), 'changes do not wait as long as a failure');
  t.not(made.progress.waitingSince, null);
  made.dataplanes.IPv4.calls.length = 0;
  await run();
  await run();
  t.same(made.cycle.planner.tables.IPv4.counts.services, 3);
  t.equal(made.progress.waitingSince, null);
});

t.test('the first plan of a node or a mode is not divided', async (t) => {
  const made = world();
  made.upsert(...large(0), ...large(1), small(0));
  await made.cycle.run({ full: true });
  t.equal(made.cycle.planner.tables.IPv4.counts.services, 3, 'a start');
  t.equal(made.progress.waitingSince, null);
  made.upsert(...large(2), ...large(3), small(1));
  await made.cycle.run({ full: false });
  t.equal(made.cycle.planner.tables.IPv4.deferred.size, 2);
  taken(made);
  const others = replaceMode(made);
  await made.cycle.run({ full: true });
  t.same(others.IPv4.calls, ['full']);
  t.same([made.cycle.planner.tables.IPv4.deferred.size, made.progress.waitingSince], [0, null], 'another mode');
  t.ok(taken(made).includes('the other takeover'), 'so what the mode before it left may go');
});

t.test('a change that concerns every Service discards the divided plan', async (t) => {
  const { made, run } = await started();
  made.upsert(...large(0), ...large(1), small(0));
  await run();
  t.equal(made.cycle.planner.tables.IPv4.deferred.size, 2);
  made.cycle.planner.setSettings(planSettings({ masqueradeAll: true }));
  await run();
  t.same([made.cycle.planner.tables.IPv4.deferred.size, made.progress.waitingSince], [0, null]);
});
