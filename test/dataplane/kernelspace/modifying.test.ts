import t from 'tap';
import { hcnFeatures } from '../../../src/native/contract.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { Rig } from './rig.js';
import { loadBalancers, CLUSTER, costs, pods, started } from './scene.js';

/** Load balancers that HNS changes in place, and that it says it changes in place. */

t.test('load balancers are modified in place from HNS 15.5 on, not on 15.4', (t) => {
  const modifies = (major: number, minor: number): boolean => hcnFeatures({ major, minor }).modifyLoadBalancer;
  t.same([modifies(13, 0), modifies(15, 4), modifies(15, 5), modifies(16, 0)], [false, false, true, true]);
  t.end();
});

t.test('HNS 15.4: a change of endpoints replaces the load balancer', async (t) => {
  const world = new HnsWorld();
  world.hns.version = { major: 15, minor: 4 };
  const rig = await started(CLUSTER, new Rig(world));
  rig.commit([pods('web', '10.0.1.1', '10.0.1.3')]);
  const reported = await rig.reported(() => rig.sync());
  t.same(reported, ['create endpoint', 'delete loadBalancer', 'create loadBalancer', 'delete endpoint']);
  t.same([await rig.difference(), rig.refuted], [[], 0]);
});

t.test('an HNS that reports success and does not modify is detected at the first change', async (t) => {
  const rig = await started(CLUSTER);
  rig.kernel.hns.pretendsToModify = true;
  rig.commit([pods('web', '10.0.1.1', '10.0.1.3')]);
  t.same(await rig.reported(() => rig.sync()), [
    ...['create endpoint', 'modify loadBalancer'],
    ...['delete loadBalancer', 'create loadBalancer', 'delete endpoint'],
  ]);
  t.same([await rig.difference(), rig.refuted], [[], 1]);
  rig.commit([pods('web', '10.0.1.1')]);
  t.same(await rig.reported(() => rig.sync()), ['delete loadBalancer', 'create loadBalancer', 'delete endpoint']);
  t.equal(rig.refuted, 1);
});

t.test('an HNS that modifies is read back once, and trusted then', async (t) => {
  const rig = await started(CLUSTER);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.3')]);
  t.same(await costs(rig, () => rig.sync()), { reads: 1, changes: 3 });
  rig.commit([pods('web', '10.0.1.1', '10.0.1.4')]);
  t.same(await costs(rig, () => rig.sync()), { reads: 0, changes: 3 });
  t.equal(rig.refuted, 0);
});

t.test('an HNS that stops modifying is detected by a later audit', async (t) => {
  const rig = await started(CLUSTER);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  await rig.sync();
  rig.kernel.hns.pretendsToModify = true;
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3', '10.0.1.4')]);
  await rig.sync();
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints?.length, 3);
  t.equal(await rig.dataplane.audit(), true);
  await rig.sync(true);
  t.same([await rig.difference(), rig.refuted], [[], 1]);
});

t.test('an external change does not count as a failed modification', async (t) => {
  const rig = await started(CLUSTER);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  await rig.sync();
  rig.kernel.hns.loadBalancers.clear();
  await rig.sync(true);
  t.same([await rig.difference(), rig.refuted], [[], 0]);
});
