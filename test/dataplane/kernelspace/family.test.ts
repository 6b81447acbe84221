import t from 'tap';
import { remoteMac } from '../../../src/dataplane/kernelspace/names.js';
import { HCN_DISTRIBUTION, hcnFeatures, type HcnEndpoint, type HcnLoadBalancer } from '../../../src/native/contract.js';
import { KEEPS_DESTINATION, REPLACED_WHOLE } from '../../../src/state/rows.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { address, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { loadBalancers, CLUSTER, costs, pods, pods6, REF, started } from './scene.js';

t.test('one more endpoint takes few calls of HNS', async (t) => {
  const modifying = await started(CLUSTER);
  modifying.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  t.same(
    await costs(modifying, () => modifying.sync()),
    { reads: 1, changes: 2 },
    'an endpoint, and the load balancer, which is looked at for once',
  );
  modifying.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.4')]);
  t.same(await modifying.reported(() => modifying.sync()), [
    'create endpoint',
    'modify loadBalancer',
    'delete endpoint',
  ]);
  const old = new HnsWorld();
  old.hns.version = { major: 13, minor: 0 };
  const replacing = await started(CLUSTER, new Rig(old));
  replacing.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  t.same(await replacing.reported(() => replacing.sync()), [
    'create endpoint',
    'delete loadBalancer',
    'create loadBalancer',
  ]);
});

t.test('a change rewrites its own Service only, and endpoints are shared', async (t) => {
  const many = Array.from({ length: 100 }, (_, index) => [
    service(`s${index}`, { clusterIPs: [`10.96.1.${index}`] }),
    pods(`s${index}`, '10.0.1.1', '10.0.1.2'),
  ]).flat();
  const rig = await started(many);
  t.equal(rig.kernel.hns.loadBalancers.size, 100);
  t.equal(rig.kernel.hns.endpoints.size, 2);
  rig.commit([pods('s7', '10.0.1.1')]);
  t.same(await costs(rig, () => rig.sync()), { reads: 1, changes: 1 }, 'the others use the endpoint');
  rig.commit([], [{ ...REF, name: 's8' }]);
  t.same(await rig.reported(() => rig.sync()), ['delete loadBalancer']);
});

t.test('correct load balancers of any origin stay at the start', async (t) => {
  const rig = await started(CLUSTER);
  rig.restart();
  t.same(await costs(rig, () => rig.sync()), { reads: 3, changes: 0 });
  // As kube-proxy would have made them: with other ids.
  const { hns } = rig.kernel;
  for (const objects of [hns.endpoints, hns.loadBalancers] as readonly Map<string, object>[]) {
    for (const [index, [id, properties]] of [...objects].entries()) {
      const another = `0000000${index}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`;
      objects.delete(id);
      objects.set(another, { ...properties, ID: another });
      for (const [own, loadBalancer] of hns.loadBalancers)
        hns.loadBalancers.set(own, {
          ...loadBalancer,
          HostComputeEndpoints: (loadBalancer.HostComputeEndpoints ?? []).map((each) => (each === id ? another : each)),
        });
    }
  }
  rig.restart();
  t.same(await costs(rig, () => rig.sync()), { reads: 3, changes: 0 });
  rig.commit([], [REF]);
  await rig.sync();
  t.equal(hns.loadBalancers.size + hns.endpoints.size, 0, 'and goes when it is not needed any more');
});

t.test('at the start, orphaned objects are removed and foreign ones stay', async (t) => {
  const rig = await started(CLUSTER);
  const { hns, network } = rig.kernel;
  const near = hns.addEndpoint(network, ['10.0.0.77']);
  const far = hns.addEndpoint(hns.addNetwork('nat'), ['172.16.0.2']);
  const put = (id: string, vip: string, endpoint: string, Flags = 0): void => {
    const PortMappings = [{ Protocol: 6, InternalPort: 80, ExternalPort: 80, Flags }];
    hns.loadBalancers.set(id, { HostComputeEndpoints: [endpoint], FrontendVIPs: [vip], PortMappings });
  };
  put('external-of-kube-proxy', '192.0.2.9', near, 16);
  put('of-another-network', '192.0.2.10', far, 16);
  put('of-nobody-we-know', '172.31.0.1', near);
  hns.endpoints.set('remote-of-kube-proxy', {
    HostComputeNetwork: network,
    IpConfigurations: [{ IpAddress: '10.0.3.3' }],
    MacAddress: '02-11-0A-00-03-03',
    Flags: 1,
  });
  rig.restart();
  await rig.sync();
  t.same(
    [...hns.loadBalancers.keys()].filter((id) => !id.startsWith('706f')),
    ['of-another-network', 'of-nobody-we-know'],
  );
  t.notOk(hns.endpoints.has('remote-of-kube-proxy'));
  t.ok(hns.endpoints.has(near), 'pods are not ours');
});

t.test('with unsynced sources, load balancers that the plan lacks stay, and go in steps', async (t) => {
  const many = Array.from({ length: 150 }, (_, index) => [
    service(`s${index}`, { clusterIPs: [`10.96.1.${index}`] }),
    pods(`s${index}`, '10.0.1.1'),
  ]).flat();
  const rig = await started(many);
  const other = new Rig(rig.kernel);
  other.commit(NODE_ROWS);
  other.unsynced(true);
  await other.sync();
  t.equal(rig.kernel.hns.loadBalancers.size, 150);
  other.unsynced(false);
  const { dueAt } = await other.sync();
  t.equal(rig.kernel.hns.loadBalancers.size, 50);
  t.equal(dueAt, 0, 'the next step comes at once');
  await other.sync();
  t.equal(rig.kernel.hns.loadBalancers.size + rig.kernel.hns.endpoints.size, 0);
});

t.test('flags, source VIP and distribution of load balancers follow the Service', async (t) => {
  const fields = {
    externalIPs: ['192.0.2.2'],
    loadBalancer: ['192.0.2.1'],
    ports: [{ port: 80, nodePort: 30_080 }],
    affinitySeconds: 100,
  };
  const rig = new Rig();
  rig.restartWith({ enableDSR: true, sourceVip: address('10.0.0.200') });
  await started([service('web', fields), pods('web', '10.0.0.1', '10.0.1.1')], rig);
  const shape = (): unknown =>
    Object.fromEntries(
      Object.entries(loadBalancers(rig)).map(([key, { Flags = 0, SourceVIP, PortMappings = [] }]) => [
        key,
        [Flags, PortMappings[0]?.Flags ?? 0, PortMappings[0]?.DistributionType, SourceVIP],
      ]),
    );
  const affine = HCN_DISTRIBUTION.sourceIp;
  t.same(shape(), {
    '10.96.0.10:80': [1, 0, affine, undefined],
    '192.0.2.1:80': [0, 16, affine, undefined],
    '192.0.2.2:80': [0, 16, affine, undefined],
    'node:30080': [0, 18, affine, undefined],
  });
  rig.commit([service('web', { ...fields, externalTrafficPolicy: 'Local' })]);
  await rig.sync();
  t.match(shape(), {
    '10.96.0.10:80': [1, 0],
    '192.0.2.1:80': [1, 16],
    '192.0.2.2:80': [1, 16],
    'node:30080': [1, 18],
  });
  rig.commit([service('web', { ...fields, loadBalancerFlags: KEEPS_DESTINATION, affinitySeconds: null })]);
  await rig.sync();
  t.match(shape(), { '192.0.2.1:80': [1, 28, undefined], '192.0.2.2:80': [0, 16], 'node:30080': [0, 18] });
  rig.restartWith({ features: hcnFeatures({ major: 10, minor: 1 }), enableDSR: false });
  await rig.sync();
  t.match(shape(), { '192.0.2.1:80': [0, 16] }, 'without direct server return no destination is kept');
});

t.test('affinity is set only on an HNS that has it', async (t) => {
  const old = new HnsWorld();
  old.hns.version = { major: 11, minor: 10 };
  const rig = await started([service('web', { affinitySeconds: 100 }), pods('web', '10.0.1.1')], new Rig(old));
  t.match(loadBalancers(rig)['10.96.0.10:80'], { PortMappings: [{ DistributionType: undefined }] });
  t.same(await rig.difference(), []);
});

t.test('a Service annotated for replacement is not modified in place', async (t) => {
  const rig = await started([service('web', { loadBalancerFlags: REPLACED_WHOLE }), pods('web', '10.0.1.1')]);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2')]);
  t.same(await rig.reported(() => rig.sync()), ['create endpoint', 'delete loadBalancer', 'create loadBalancer']);
});

t.test('a local pod that HNS learns of late is added then', async (t) => {
  const rig = await started([service('web'), pods('web', '10.0.1.1')]);
  rig.commitEarly([pods('web', '10.0.0.1', '10.0.1.1')]);
  const first = await rig.sync();
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints?.length, 1, 'the others serve');
  t.equal(first.dueAt, 100);
  t.equal(rig.kernel.hns.endpoints.size, 1, 'no remote endpoint takes its place');
  const again = await rig.sync();
  t.equal(again.full, false);
  t.equal(again.dueAt, 200, 'it is looked for ever more rarely');
  rig.now += 10_000;
  t.match((await rig.sync()).quarantined, [{ frontend: '10.96.0.10:80/TCP', reason: /no endpoint 10\.0\.0\.1/ }]);
  const { hns, network } = rig.kernel;
  // Pods of others, and one that gets its address later.
  hns.addEndpoint(hns.addNetwork('nat'), ['172.16.0.2']);
  const early = hns.addEndpoint(network, []);
  hns.looks = 0;
  await rig.sync();
  await rig.sync();
  t.equal(hns.looks, 3, 'what has been looked at is not looked at again, but for what had no address');
  hns.removeEndpoint(early);
  hns.addEndpoint(network, ['10.0.0.1']);
  hns.looks = 0;
  const found = await rig.sync();
  t.equal(
    hns.looks,
    2,
    'one that has come is looked at, whatever HNS holds, and the load balancer that was changed first',
  );
  t.equal(found.full, false);
  t.same([found.quarantined, found.dueAt, found.repairs], [[], undefined, []]);
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints?.length, 2);
});

t.test('a remote endpoint goes when a pod of this node has its address', async (t) => {
  const rig = await started([service('web'), pods('web', '10.0.1.1')]);
  const { hns, network } = rig.kernel;
  const [remote] = [...hns.endpoints.keys()];
  hns.addEndpoint(network, ['10.0.1.1']);
  rig.commitEarly([slice('web', [{ address: '10.0.1.1', node: 'me' }])]);
  await rig.sync();
  const [local, ...others] = [...hns.endpoints.keys()];
  t.same(others, []);
  t.not(local, remote);
  t.same(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints, [local]);
  t.same(await rig.difference(), []);
});

t.test('a pod on the host network is left out, without a wait', async (t) => {
  const rig = await started();
  const host = slice('web', [
    { address: '192.168.0.2', node: 'me' },
    { address: '10.0.1.1', node: 'other' },
  ]);
  rig.commitEarly([service('web'), host]);
  t.match(await rig.sync(), { quarantined: [], dueAt: undefined });
  rig.now += 60_000;
  t.match(await rig.sync(), { quarantined: [], dueAt: undefined }, 'it is no refusal however long it takes');
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints?.length, 1);
  t.same(await rig.difference(), []);
});

t.test('health checks of load balancers are forwarded to the node', async (t) => {
  const world = new HnsWorld();
  const gateway = world.hns.addEndpoint(world.network, ['10.0.0.1'], { Name: 'cbr0_ep' });
  const rig = new Rig(world);
  rig.restartWith({ healthCheckEndpoint: 'cbr0_ep' });
  const local = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32_000 } as const;
  const web = service('web', { loadBalancer: ['192.0.2.1'], ports: [{ port: 80 }, { name: 'b', port: 81 }], ...local });
  await started(
    [
      web,
      pods('web', '10.0.0.5'),
      slice('web', [{ address: '10.0.0.5', node: 'me' }], { name: 'b', ports: [{ name: 'b' }] }),
    ],
    rig,
  );
  t.match(loadBalancers(rig)['192.0.2.1:32000'], {
    HostComputeEndpoints: [gateway],
    PortMappings: [{ Protocol: 6, InternalPort: 32_000 }],
  });
  t.same(await rig.difference(), []);
  rig.commit([service('web', { loadBalancer: ['192.0.2.1'] })]);
  await rig.sync();
  t.same(Object.keys(loadBalancers(rig)).sort(), ['10.96.0.10:80', '192.0.2.1:10256', '192.0.2.1:80']);
  rig.commit([], [REF]);
  await rig.sync();
  t.same(loadBalancers(rig), {});
});

t.test('a MAC address in use is not given to another endpoint', (t) => {
  const first = remoteMac(address('fd00:10::1'), () => false);
  t.match(first, /^02-12(-[0-9A-F]{2}){4}$/);
  t.match(
    remoteMac(address('fd00:10::1'), (mac) => mac === first),
    /^02-12(-[0-9A-F]{2}){4}$/,
  );
  t.not(
    remoteMac(address('fd00:10::1'), (mac) => mac === first),
    first,
  );
  t.end();
});

t.test('IPv6 endpoints have distinct MAC addresses, and do not affect IPv4', async (t) => {
  const world = new HnsWorld();
  const rig = new Rig(world, 'IPv6');
  const ipv4 = await started(CLUSTER, new Rig(world));
  // The last two share their last four bytes with an IPv4 address and with each other.
  const addresses = ['fd00:10::a00:101', 'fd00:11::a00:101', 'fd00:10::1'];
  rig.commit([
    ...NODE_ROWS,
    service('web', { clusterIPs: ['fd00:96::10'] }),
    slice(
      'web',
      addresses.map((each) => ({ address: each, node: 'other' })),
    ),
  ]);
  await rig.sync();
  const macs = [...world.hns.endpoints.values()].map(({ MacAddress }) => MacAddress);
  t.equal(new Set(macs).size, 5);
  t.match(loadBalancers(rig)['fd00:96::10:80'], { Flags: 2 });
  await rig.remove();
  t.same(await ipv4.difference(), []);
  const overlay = new HnsWorld();
  overlay.hns.networks.set(overlay.network, { Name: 'cbr0', Type: 'Overlay' });
  const second = new Rig(overlay, 'IPv6');
  second.restartWith({ servesOverlay: false });
  second.commit(NODE_ROWS);
  t.match((await second.sync()).problems, [/is an overlay, which has one family: IPv6 is not served/]);
  t.match((await second.sync(true)).problems, [/overlay/], 'as long as it is so');
});

t.test('HNS objects with nulls, foreign flags and other spellings are read', async (t) => {
  const world = new HnsWorld();
  const rig = new Rig(world, 'IPv6');
  rig.commit([...NODE_ROWS, service('web', { clusterIPs: ['fd00:96::10'] }), pods6('fd00:10::1')]);
  await rig.sync();
  const { hns } = world;
  for (const [id, loadBalancer] of hns.loadBalancers) {
    const [mapping] = loadBalancer.PortMappings ?? [];
    hns.loadBalancers.set(id, {
      ...loadBalancer,
      FrontendVIPs: ['fd00:96:0::10'],
      Flags: (loadBalancer.Flags ?? 0) | 0x100,
      PortMappings: [{ ...mapping, Flags: 1 }],
      HostComputeEndpoints: (loadBalancer.HostComputeEndpoints ?? []).map((each) => each.toUpperCase()),
    });
  }
  for (const [id, endpoint] of hns.endpoints)
    hns.endpoints.set(id, { ...endpoint, MacAddress: endpoint.MacAddress?.toLowerCase().replaceAll('-', ':') ?? '' });
  const odd = { HostComputeEndpoints: null, FrontendVIPs: null, PortMappings: null, Flags: null } as unknown;
  hns.loadBalancers.set('odd', odd as HcnLoadBalancer);
  hns.endpoints.set('odd', { IpConfigurations: null, Policies: null } as unknown as HcnEndpoint);
  t.equal(await rig.dataplane.audit(), false);
  rig.restart();
  t.same((await costs(rig, () => rig.sync())).changes, 0);
  t.ok(hns.loadBalancers.has('odd'));
});

t.test('load balancers left on a formerly configured network are removed', async (t) => {
  const rig = await started(CLUSTER);
  const { hns } = rig.kernel;
  const other = hns.addNetwork('cbr1');
  rig.restartWith({ network: { by: 'name', text: 'cbr1' } });
  await rig.sync();
  await rig.sync(true);
  t.same(
    [...hns.endpoints.values()].map(({ HostComputeNetwork }) => HostComputeNetwork),
    [other, other],
  );
  t.same(await rig.difference(), []);
});
