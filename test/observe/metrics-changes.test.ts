import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import { valueOf } from '../support/exposition.js';
import { node, service, slice } from '../support/rows.js';
import { START_MS, FAMILIES, scene, report, take, acknowledge, failed, sync } from './metrics-scene.js';

t.test('changes are counted as kube-proxy counts them, and pending until taken', async (t) => {
  const world = scene();
  const web = service('web');
  world.upsert(web, slice('web', [{ address: '10.0.0.1' }]), slice('web', [{ address: 'fd00::1' }]));
  world.upsert(node('n'));
  world.upsert(web);
  const count = async (name: string): Promise<number | null> =>
    valueOf(await world.scrape(), `kubeproxy_sync_proxy_rules_${name}`);
  t.equal(await count('service_changes_total'), 2, 'each family’s share');
  t.equal(await count('service_changes_pending'), 1);
  t.equal(await count('endpoint_changes_total'), 2);
  t.equal(await count('endpoint_changes_pending'), 2);
  take(world);
  world.remove(web);
  t.equal(await count('service_changes_total'), 4);
  t.equal(await count('service_changes_pending'), 1);
  world.upsert(web);
  t.equal(await count('service_changes_pending'), 1, 'a Service, however often it changes');
  t.equal(await count('endpoint_changes_total'), 2);
  t.equal(await count('endpoint_changes_pending'), 0);
});

t.test('slices of a family that is not served are not counted', async (t) => {
  const world = scene(['IPv4']);
  world.upsert(slice('web', [{ address: 'fd00::1' }]));
  t.equal(valueOf(await world.scrape(), 'kubeproxy_sync_proxy_rules_endpoint_changes_total'), 0);
  t.equal(valueOf(await world.scrape(), 'pointsman_oldest_pending_change_seconds', { ip_family: 'IPv6' }), null);
});

t.test('network programming latency runs from the trigger to the acknowledgement, through failures', async (t) => {
  const world = scene();
  const { clock, metrics } = world;
  const programmed = async (family: Family): Promise<readonly (number | null)[]> => {
    const families = await world.scrape();
    const name = 'kubeproxy_network_programming_duration_seconds';
    return [`${name}_count`, `${name}_sum`].map((sample) => valueOf(families, sample, { ip_family: family }));
  };
  await clock.advance(10_000);
  world.upsert(slice('web', [{ address: '10.0.0.1' }], { triggerTime: START_MS + 9_000 }));
  world.upsert(slice('old', [{ address: '10.0.0.2' }], { triggerTime: START_MS - 1 }));
  world.upsert(slice('six', [{ address: 'fd00::2' }], { triggerTime: START_MS + 9_500 }));
  world.upsert(slice('gone', [{ address: '10.0.0.3' }], { triggerTime: START_MS + 9_500 }));
  take(world);
  metrics.syncEnded(failed('IPv4', false, 0.1, null));
  t.same(await programmed('IPv4'), [null, null], 'nothing was acknowledged');
  world.remove(slice('gone', [{ address: '10.0.0.3' }]));
  await clock.advance(1000);
  world.upsert(slice('late', [{ address: '10.0.0.4' }], { triggerTime: START_MS + 10_500 }));
  take(world);
  world.upsert(slice('later', [{ address: '10.0.0.5' }], { triggerTime: START_MS + 10_600 }));
  sync(world, 'IPv4');
  t.same(await programmed('IPv4'), [2, 2.5], 'web after 2 s, late after 0.5 s; old, gone and later not');
  t.same(await programmed('IPv6'), [null, null]);
  sync(world, 'IPv6');
  t.same(await programmed('IPv6'), [1, 1.5]);
  sync(world, 'IPv4');
  t.same(await programmed('IPv4'), [2, 2.5], 'once each');
});

t.test('event-to-commit latency has one observation per change and family, from its own event', async (t) => {
  const world = scene();
  const { clock } = world;
  const observed = async (family: Family): Promise<readonly (number | null)[]> => {
    const families = await world.scrape();
    const name = 'pointsman_change_commit_duration_seconds';
    return [
      ...[`${name}_count`, `${name}_sum`].map((sample) => valueOf(families, sample, { ip_family: family })),
      valueOf(families, 'pointsman_oldest_pending_change_seconds', { ip_family: family }),
    ];
  };
  world.upsert(service('web'));
  await clock.advance(1);
  world.upsert(slice('web', [{ address: '10.0.0.1' }]));
  await clock.advance(2);
  t.same(await observed('IPv4'), [null, null, 0.003]);
  take(world);
  world.upsert(slice('web', [{ address: '10.0.0.2' }]));
  sync(world, 'IPv4');
  const [count, sum, age] = await observed('IPv4');
  t.equal(count, 2);
  t.ok(Math.abs((sum ?? 0) - 0.005) < 1e-9, '3 ms and 2 ms');
  t.equal(age, 0, 'the third is new');
  await clock.advance(4);
  t.same((await observed('IPv4'))[2], 0.004);
  sync(world, 'IPv6');
  t.same(await observed('IPv6'), [1, 0.007, 0], 'the slice is not its concern');
});

t.test('changes before all sources are complete are pending and not measured', async (t) => {
  const queued = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds';
  const world = scene(FAMILIES, false);
  await world.clock.advance(1000);
  world.upsert(service('web'));
  t.equal(valueOf(await world.scrape(), queued, { ip_family: 'IPv4' }), START_MS / 1000, 'none is asked for yet');
  await world.clock.advance(4000);
  world.writer.complete();
  take(world);
  sync(world, 'IPv4');
  const families = await world.scrape();
  t.notOk(families.has('pointsman_change_commit_duration_seconds'));
  t.equal(valueOf(families, queued, { ip_family: 'IPv4' }), START_MS / 1000 + 5);
  t.equal(valueOf(families, 'kubeproxy_sync_proxy_rules_service_changes_total'), 2);
});

t.test('changes that a sync leaves to the next are queued again when it ends', async (t) => {
  const queued = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds';
  const world = scene();
  world.upsert(service('web'));
  await world.clock.advance(1000);
  world.metrics.deferred();
  take(world);
  sync(world, 'IPv4');
  await world.clock.advance(1000);
  world.metrics.runEnded();
  t.equal(valueOf(await world.scrape(), queued, { ip_family: 'IPv4' }), START_MS / 1000 + 2);
  await world.clock.advance(1000);
  world.metrics.runEnded();
  t.equal(
    valueOf(await world.scrape(), queued, { ip_family: 'IPv4' }),
    START_MS / 1000 + 2,
    'the last one leaves nothing',
  );
});

t.test('sync metrics: durations by kind, failures by errno, pending changes', async (t) => {
  const world = scene(['IPv4']);
  const { metrics } = world;
  const labels = { ip_family: 'IPv4' };
  take(world, 'a', 'b');
  metrics.syncEnded(failed('IPv4', true, 0.5, 'ENOBUFS'));
  take(world, 'b', 'c');
  const during = await world.scrape();
  t.equal(valueOf(during, 'pointsman_pending_frontends', labels), 3);
  t.equal(valueOf(during, 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total', labels), 1);
  t.equal(valueOf(during, 'pointsman_native_failures_total', { errno: 'ENOBUFS', ...labels }), 1);
  t.notOk(during.has('kubeproxy_sync_proxy_rules_last_timestamp_seconds'));
  acknowledge(world, report('IPv4', { ruleOperations: 7, repairs: ['x', 'y'] }));
  metrics.syncEnded({ family: 'IPv4', full: false, seconds: 0.002, result: { type: 'success' }, counts: true });
  acknowledge(world, report('IPv4', { transactions: 0, elementOperations: 0, bytes: 0 }));
  metrics.syncEnded(failed('IPv4', false, 0.002, null));
  const after = await world.scrape();
  t.equal(valueOf(after, 'pointsman_pending_frontends', labels), 0);
  t.equal(valueOf(after, 'pointsman_repairs_total', labels), 2);
  t.equal(valueOf(after, 'pointsman_quarantined_frontends', labels), 0);
  const quarantined = [{ frontend: '10.0.0.1:80/SCTP', reason: 'ENOENT', since: 0, retryAt: 1 }];
  acknowledge(world, report('IPv4', { quarantined }));
  t.equal(valueOf(await world.scrape(), 'pointsman_quarantined_frontends', labels), 1);
  t.equal(valueOf(after, 'pointsman_sync_operations_sum', { kind: 'element', ...labels }), 3);
  t.equal(valueOf(after, 'pointsman_sync_operations_sum', { kind: 'rule', ...labels }), 7);
  t.equal(valueOf(after, 'pointsman_sync_bytes_count', labels), 1, 'a sync with nothing to send is not one');
  t.equal(valueOf(after, 'kubeproxy_sync_proxy_rules_duration_seconds_count', labels), 3);
  t.equal(valueOf(after, 'kubeproxy_sync_full_proxy_rules_duration_seconds_sum', labels), 0.5);
  t.equal(valueOf(after, 'kubeproxy_sync_partial_proxy_rules_duration_seconds_count', labels), 2);
  const bucket = 'kubeproxy_sync_partial_proxy_rules_duration_seconds_bucket';
  t.same(
    ['0.001', '0.002'].map((le) => valueOf(after, bucket, { le, ...labels })),
    [0, 2],
  );
  take(world, 'd');
  t.equal(valueOf(await world.scrape(), 'pointsman_pending_frontends', labels), 1, 'nothing of before');
  t.equal(after.get('pointsman_native_failures_total')?.samples.length, 1, 'a failure that is not the kernel’s');
});
