import t from 'tap';
import type { ProxyEvent } from '../../src/base/events.js';
import { FamilySync } from '../../src/control/family-sync.js';
import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import { blameFrontend, type FamilyDataplane } from '../../src/dataplane/contract.js';
import { HealthState } from '../../src/observe/health.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import { FakeClock } from '../support/fake-clock.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { service } from '../support/rows.js';

t.test('a Service that the kernel keeps refusing is told of on the Service', async (t) => {
  const clock = new FakeClock();
  const events: ProxyEvent[] = [];
  const store = new Store();
  const planner = new Planner(planSettings());
  store.register('test').apply([{ type: 'upsert', row: service('web', { clusterIPs: ['10.96.0.10'] }) }]);
  planner.update(store.snapshot, store.takeChanges());
  const errors = [
    blameFrontend(new Error('EEXIST'), '10.96.0.10:80/TCP'),
    blameFrontend(new Error('EEXIST'), '10.96.0.10:80/TCP'),
    blameFrontend(new Error('ENOENT'), '10.96.0.99:80/TCP'),
    blameFrontend(new Error('ENOENT'), '10.96.0.99:80/TCP'),
    new Error('ENOBUFS'),
    new Error('ENOBUFS'),
  ];
  const told: number[] = [];
  const sync = new FamilySync({
    table: planner.tables.IPv4,
    dataplane: {
      family: 'IPv4',
      apply: () => Promise.reject(errors.shift() ?? new Error('none left')),
    } as unknown as FamilyDataplane,
    conntrack: new ConntrackReconciler(new FakeKernel(loadCompiler())),
    health: new HealthState(60_000, clock, () => BigInt(clock.now())),
    serviceHealth: { sync: () => Promise.resolve() },
    conflicts: { update: () => 0 },
    localAddresses: () => [],
    metrics: null,
    events: { record: (event) => events.push(event) },
    log: new RecordingLog(),
  });
  while (errors.length > 0) {
    await t.rejects(sync.run(false, null));
    told.push(events.length);
  }
  t.same(told, [0, 1, 1, 1, 1, 1], 'not of the first failure, not of what no Service asked for, not of other failures');
  t.match(events, [
    {
      type: 'Warning',
      reason: 'ProgrammingFailed',
      regarding: { kind: 'Service', namespace: 'default', name: 'web' },
      note: /10\.96\.0\.10:80\/TCP .*EEXIST/,
    },
  ]);
});
