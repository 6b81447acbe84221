import t from 'tap';
import type { HcnPolicy } from '../../../src/native/contract.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { address, service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { loadBalancers, CLUSTER, costs, pods } from './scene.js';

function route(DestinationPrefix: string, ProviderAddress: string): HcnPolicy {
  return { Type: 'RemoteSubnetRoute', Settings: { DestinationPrefix, ProviderAddress, IsolationId: 4096 } };
}

/** By address: of remote endpoints the node that they are behind. */
function providers({ kernel: { hns } }: Rig): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...hns.endpoints.values()].flatMap(({ IpConfigurations, Policies = [] }) => {
      const { ProviderAddress = '' } = (Policies[0]?.Settings ?? {}) as { readonly ProviderAddress?: string };
      return ProviderAddress === '' ? [] : [[IpConfigurations?.[0]?.IpAddress ?? '', ProviderAddress]];
    }),
  );
}

/** An overlay network that gets routes as nodes come. */
async function overlay(...routes: readonly HcnPolicy[]): Promise<Rig> {
  const world = new HnsWorld();
  const rig = new Rig(world);
  setRoutes(rig, ...routes);
  rig.restartWith({ sourceVip: address('10.0.0.200'), notifiesOfNetworks: () => true });
  rig.commit([...NODE_ROWS, ...CLUSTER]);
  await rig.sync();
  return rig;
}

function setRoutes({ kernel: { hns, network } }: Rig, ...Policies: readonly HcnPolicy[]): void {
  hns.networks.set(network, { Name: 'cbr0', Type: 'Overlay', Policies });
}

t.test('overlay: an endpoint made before the route to its node moves behind that node with the route', async (t) => {
  for (const tells of [true, false]) {
    const rig = await overlay();
    t.match(providers(rig), { '10.0.1.1': '192.168.0.2', '10.0.1.2': '192.168.0.2' }, 'the own node');
    if (!tells)
      for (const [id, each] of rig.kernel.hns.endpoints) rig.kernel.hns.endpoints.set(id, { ...each, Policies: [] });
    t.equal(await rig.stirred(), false);
    setRoutes(rig, route('10.0.1.0/24', '192.168.0.3'));
    t.same([await rig.dataplane.probe(), await rig.dataplane.audit()], [true, true]);
    await rig.sync(true);
    t.match(providers(rig), { '10.0.1.1': '192.168.0.3', '10.0.1.2': '192.168.0.3' }, `HNS says providers: ${tells}`);
    t.same([await rig.dataplane.probe(), await rig.difference()], [false, []]);
  }
});

t.test('overlay: a route that appears while a pod is added applies to all endpoints', async (t) => {
  const rig = await overlay();
  setRoutes(rig, route('10.0.1.0/24', '192.168.0.3'));
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  await rig.sync();
  t.match(providers(rig), { '10.0.1.1': '192.168.0.3', '10.0.1.2': '192.168.0.3', '10.0.1.3': '192.168.0.3' });
});

t.test('overlay: provider addresses, source VIPs and endpoints of Service addresses are set', async (t) => {
  const world = new HnsWorld();
  world.hns.networks.set(world.network, {
    Name: 'cbr0',
    Type: 'Overlay',
    Policies: [route('10.0.1.0/24', '192.168.0.3')],
  });
  const rig = new Rig(world);
  rig.commit([...NODE_ROWS, ...CLUSTER]);
  await t.rejects(rig.sync(), /sourceVip: required for the overlay network cbr0/);
  rig.restartWith({ sourceVip: address('10.0.0.200') });
  await rig.sync();
  const made = (): unknown =>
    [...world.hns.endpoints.values()]
      .map(({ IpConfigurations, MacAddress, Flags, Policies }) => [
        IpConfigurations?.[0]?.IpAddress,
        MacAddress,
        Flags,
        JSON.stringify(Policies?.[0]?.Settings),
      ])
      .sort();
  t.same(made(), [
    ['10.0.0.200', '00-15-5D-00-00-02', undefined, undefined],
    ['10.0.1.1', '02-11-0A-00-01-01', 1, '{"ProviderAddress":"192.168.0.3"}'],
    ['10.0.1.2', '02-11-0A-00-01-02', 1, '{"ProviderAddress":"192.168.0.3"}'],
    ['10.96.0.10', '00-15-5D-00-00-02', 1, '{"ProviderAddress":"192.168.0.2"}'],
  ]);
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.SourceVIP, '10.0.0.200');
  t.same(await rig.difference(), []);
  rig.restart();
  t.same((await costs(rig, () => rig.sync())).changes, 0);
  // A node comes, and then its pod; what is no pod's leaves by the node's address.
  world.hns.networks.set(world.network, {
    ...world.hns.networks.get(world.network),
    Policies: [route('10.0.1.0/24', '192.168.0.3'), route('10.0.2.0/24', '192.168.0.4')],
  });
  rig.commit([pods('web', '10.0.1.1', '10.0.2.1')]);
  await rig.sync();
  t.match(JSON.stringify(made()), /10\.0\.2\.1","02-11-0A-00-02-01",1,"\{\\"ProviderAddress\\":\\"192\.168\.0\.4/);
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.SourceVIP, '10.0.0.200');
  rig.commit([pods('web', '10.0.1.1', '198.51.100.7')]);
  await rig.sync();
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.SourceVIP, '192.168.0.2');
  // Of subnets within one another the smallest counts.
  world.hns.networks.set(world.network, {
    ...world.hns.networks.get(world.network),
    Policies: [
      route('10.0.0.0/8', '192.168.0.5'),
      route('10.0.3.0/24', '192.168.0.6'),
      route('10.0.0.0/16', '192.168.0.7'),
    ],
  });
  rig.commit([pods('web', '10.0.3.1')]);
  await rig.sync();
  t.match(JSON.stringify(made()), /10\.0\.3\.1","02-11-0A-00-03-01",1,"\{\\"ProviderAddress\\":\\"192\.168\.0\.6/);
  rig.commit([pods('web', '10.0.1.1')]);
  await rig.sync();
  // The subnet moves to another node: its endpoints are made anew.
  world.hns.networks.set(world.network, {
    ...world.hns.networks.get(world.network),
    Policies: [route('10.0.1.0/24', '192.168.0.9')],
  });
  await rig.sync(true);
  t.match(JSON.stringify(made()), /10\.0\.1\.1","02-11-0A-00-01-01",1,"\{\\"ProviderAddress\\":\\"192\.168\.0\.9/);
  t.same(await rig.difference(), []);
  await rig.remove();
  t.same(made(), []);
});

t.test('overlay: Service addresses share a MAC address, and missing provider policies count as right', async (t) => {
  const world = new HnsWorld();
  world.hns.networks.set(world.network, { Name: 'cbr0', Type: 'overlay' });
  const rig = new Rig(world);
  rig.restartWith({ sourceVip: address('10.0.0.200') });
  rig.commit([...NODE_ROWS, ...CLUSTER, service('two', { clusterIPs: ['10.96.0.11'] }), pods('two', '10.0.1.1')]);
  await rig.sync();
  t.equal(world.hns.endpoints.size, 5);
  for (const [id, endpoint] of world.hns.endpoints) world.hns.endpoints.set(id, { ...endpoint, Policies: [] });
  t.equal(await rig.dataplane.audit(), false);
  rig.restart();
  t.same((await costs(rig, () => rig.sync())).changes, 0);
});
