import t from 'tap';
import { service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { CLUSTER, pods, started } from './scene.js';

/** What HNS has otherwise than it was left. */

t.test('a network that returns with another id is used', async (t) => {
  const rig = await started([service('web'), pods('web', '10.0.0.1', '10.0.1.1')]);
  const { hns, network } = rig.kernel;
  hns.removeNetwork(network);
  t.equal(await rig.dataplane.probe(), true);
  await t.rejects(rig.sync(true), /there is no HNS network cbr0/);
  t.equal(await rig.stirred(), false);
  const back = hns.addNetwork('CBR0');
  hns.addEndpoint(back, ['10.0.0.1']);
  t.equal(await rig.stirred(), true);
  const { repairs, quarantined } = await rig.sync();
  t.match(repairs[0], /network cbr0 has come back with another id/);
  t.same(quarantined, []);
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.probe(), false);
});

t.test('a network that appears after the start is used', async (t) => {
  const rig = new Rig();
  rig.kernel.hns.removeNetwork(rig.kernel.network);
  rig.commit([...NODE_ROWS, ...CLUSTER]);
  await t.rejects(rig.sync(), /there is no HNS network cbr0/);
  t.equal(await rig.dataplane.probe(), false);
  rig.kernel.hns.addNetwork('cbr0');
  t.equal(await rig.dataplane.probe(), true);
  await rig.sync();
  t.same(await rig.difference(), []);
});

t.test('a network replaced by another of the same name is detected', async (t) => {
  const rig = await started();
  const { hns, network } = rig.kernel;
  t.same([await rig.stirred(), await rig.dataplane.audit()], [false, false]);
  hns.removeNetwork(network);
  hns.addNetwork('cbr0');
  t.same([await rig.stirred(), await rig.dataplane.audit()], [true, true]);
});

t.test('the network is looked up if HNS sends no notification, and in a full comparison', async (t) => {
  const rig = await started(CLUSTER);
  const { hns } = rig.kernel;
  const looks = async (): Promise<readonly string[]> => {
    hns.listed.length = 0;
    const look = rig.dataplane.probe();
    rig.now += 1;
    await look;
    return [...hns.listed];
  };
  const everything = ['network', 'endpoint', 'loadBalancer'];
  t.same(await looks(), everything);
  rig.now += 50;
  t.same(await looks(), ['network'], 'as long as it is not time for everything');
  rig.restartWith({ notifiesOfNetworks: () => true });
  await rig.sync();
  t.same(await looks(), everything);
  t.same(await looks(), [], 'that is not due');
});

t.test('external changes of HNS objects are found and repaired', async (t) => {
  const rig = await started(CLUSTER);
  const { hns } = rig.kernel;
  t.equal(await rig.dataplane.audit(), false);
  hns.loadBalancers.clear();
  t.equal(await rig.dataplane.probe(), true);
  t.match((await rig.sync(true)).repairs, ['load balancer 10.96.0.10:80/TCP was missing']);
  const [endpoint = ''] = hns.endpoints.keys();
  hns.removeEndpoint(endpoint);
  t.equal(await rig.dataplane.audit(), true);
  t.equal((await rig.sync(true)).repairs.length, 2, 'the endpoint, and the load balancer that lost it');
  t.same(await rig.difference(), []);
});
