// How long changes of each Service took to the kernel.
import t from 'tap';
import { CycleObservers, type CycleObserver } from '../../src/observe/cycle-observer.js';
import { ProgrammingTimes } from '../../src/observe/telemetry/programming-times.js';
import { world, WEB } from '../control/sync-cycle-world.js';
import { planSettings } from '../support/plan-settings.js';
import { largeService } from '../support/large-services.js';
import { service, slice } from '../support/rows.js';

interface Scene {
  readonly made: ReturnType<typeof world>;
  readonly times: ProgrammingTimes;
  /** Of each Service how many changes were timed, and how many seconds they took together. */
  readonly reported: () => Readonly<Record<string, string>>;
}

function scene(max = 10): Scene {
  let now = (): number => 0;
  const times = new ProgrammingTimes(() => now(), max);
  const made = world(planSettings(), times);
  now = () => made.clock.now();
  const reported = (): Readonly<Record<string, string>> => {
    const { values } = times.family();
    const find = (service: string, end: string): number =>
      values.find(
        ({ labels, ...each }) => labels['service'] === service && 'metricName' in each && each.metricName.endsWith(end),
      )?.value ?? NaN;
    const names = new Set(values.map(({ labels }) => String(labels['service'])));
    return Object.fromEntries(
      [...names].map((name) => [name, `${find(name, '_count')} in ${find(name, '_sum').toFixed(3)}`]),
    );
  };
  return { made, times, reported };
}

t.test('programming times run from event to acknowledgement by family, without the initial state', async (t) => {
  const { made, times, reported } = scene();
  const { cycle, clock, upsert, dataplanes } = made;
  upsert(WEB);
  await clock.advance(700);
  await cycle.run({ full: true });
  t.same(reported(), {}, 'the start is not measured');
  upsert(slice('web', [{ address: '10.0.0.1' }], { ports: [{ port: 53, protocol: 'UDP' }] }));
  await clock.advance(4);
  await cycle.run({ full: false });
  t.same(reported(), { web: '1 in 0.004' });
  upsert({ ...WEB, affinitySeconds: 7 });
  await clock.advance(10);
  dataplanes.IPv4.failures.push(new Error('busy'));
  await t.rejects(cycle.run({ full: false }));
  t.same(reported(), { web: '2 in 0.014' }, 'IPv6');
  await clock.advance(90);
  await cycle.run({ full: false });
  t.same(reported(), { web: '3 in 0.114' }, 'IPv4 from the event on, however often it was tried');
  const buckets = times.family().values.filter((each) => 'metricName' in each && each.metricName.endsWith('_bucket'));
  t.same(
    buckets.map(({ labels, value }) => `${labels['le'] ?? ''}: ${value}`),
    ['0.002: 0', '0.005: 1', '0.01: 2', '0.05: 2', '0.2: 3', '1: 3', '5: 3', '30: 3', '+Inf: 3'],
  );
});

t.test('programming times of Services beyond the limit are added up, and removed Services leave', async (t) => {
  const { made, times, reported } = scene(2);
  const { cycle, clock, upsert } = made;
  await cycle.run({ full: true });
  for (const index of [0, 1, 2, 3]) {
    upsert(service(`many-${index}`, { clusterIPs: [`10.96.1.${index + 1}`] }));
    await clock.advance(1);
    await cycle.run({ full: false });
  }
  t.same(reported(), { 'many-0': '2 in 0.002', 'many-1': '2 in 0.002', _other: '4 in 0.004' });
  times.retain((service) => service !== 'default/many-0');
  t.same(Object.keys(reported()), ['many-1', '_other']);
});

t.test('several observers wrap the work of a sync, which runs once', async (t) => {
  const received: string[] = [];
  const observer = (name: string): CycleObserver => ({
    reconfigured: () => received.push(`${name} reconfigured`),
    took: (family) => received.push(`${name} took ${family}`),
    during: async (kind, family, work) => {
      received.push(`${name} ${kind} ${family}`);
      return await work();
    },
  });
  const all = new CycleObservers(observer('a'), {});
  all.add(observer('b'));
  all.notify('reconfigured');
  all.notify('took', 'IPv6');
  all.notify('planned');
  t.equal(await all.during('audit', 'IPv4', () => Promise.resolve(received.push('work'))), 7);
  t.same(received, [
    ...['reconfigured', 'took IPv6'].flatMap((what) => [`a ${what}`, `b ${what}`]),
    ...['b audit IPv4', 'a audit IPv4', 'work'],
  ]);
  t.equal(await new CycleObservers().during('apply', 'IPv4', () => Promise.resolve(1)), 1);
});

t.test('programming times include the delay of a change left to a later sync', async (t) => {
  const { made, reported } = scene();
  const { cycle, clock, upsert } = made;
  await cycle.run({ full: true });
  upsert(...largeService(0), ...largeService(1), service('small'));
  const step = async (): Promise<Readonly<Record<string, string>>> => {
    await clock.advance(1000);
    await cycle.run({ full: false });
    return reported();
  };
  // The Services are of both families, and of IPv6 nothing waits.
  const first = { small: '2 in 2.000', 'large-0': '1 in 1.000', 'large-1': '1 in 1.000' };
  t.same(await step(), first);
  t.same(await step(), { ...first, 'large-0': '2 in 3.000' });
  t.same(await step(), { ...first, 'large-0': '2 in 3.000', 'large-1': '2 in 4.000' });
});
