import t from 'tap';
import type { HnsFault } from '../../support/fake-hns/faults.js';
import { LoadBalancerFailures } from '../../../src/dataplane/kernelspace/load-balancer-failures.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { loadBalancers, CLUSTER, costs, pods, pods6, REF, started } from './scene.js';

/** What HNS does not do, or does and does not say. */

t.test('an HNS that cannot modify is not asked twice', async (t) => {
  const rig = await started([...CLUSTER, service('two', { clusterIPs: ['10.96.0.11'] }), pods('two', '10.0.1.2')]);
  rig.kernel.hns.version = { major: 13, minor: 0 };
  rig.commit([pods('web', '10.0.1.1'), pods('two', '10.0.1.1')]);
  t.same(await rig.reported(() => rig.sync()), [
    ...Array<string>(2).fill('modify loadBalancer'),
    ...Array<readonly string[]>(2).fill(['delete loadBalancer', 'create loadBalancer']).flat(),
    'delete endpoint',
  ]);
  t.same(await rig.difference(), []);
});

t.test('a frontend that HNS refuses is quarantined and retried, and others proceed', async (t) => {
  const rig = await started();
  rig.kernel.hns.faults.planned.push(null, { errno: 'HCN_E_INVALID_POLICY', operation: 0 });
  rig.commit([...CLUSTER, service('two', { clusterIPs: ['10.96.0.11'] }), pods('two', '10.0.1.1')]);
  const refused = await rig.sync();
  t.match(refused.quarantined, [{ frontend: '10.96.0.10:80/TCP', reason: /HCN_E_INVALID_POLICY/, retryAt: 1000 }]);
  t.same(Object.keys(loadBalancers(rig)), ['10.96.0.11:80']);
  t.same(await costs(rig, () => rig.sync()), { reads: 0, changes: 0 }, 'not before its time');
  rig.now = 1000;
  t.same((await rig.sync()).quarantined, []);
  t.equal(Object.keys(loadBalancers(rig)).length, 2);
});

t.test('load balancers that HNS refuses are counted by operation, type and error', async (t) => {
  const failures = new LoadBalancerFailures();
  const rig = await started();
  rig.restartWith({ failures });
  const refuse = async (calls: number, errno: string): Promise<void> => {
    rig.kernel.hns.faults.planned.push(...Array<null>(calls).fill(null), { errno, operation: 0 });
    await rig.sync();
    rig.now += 60_000;
    await rig.sync();
  };
  rig.commit([...CLUSTER, service('two', { clusterIPs: ['10.96.0.11'] }), pods('two', '10.0.1.1')]);
  await refuse(1, 'HCN_E_INVALID_IP');
  rig.commit([pods('web', '10.0.1.1')]);
  await refuse(0, 'HCN_E_INVALID_POLICY');
  rig.commit([], [REF]);
  await refuse(0, 'HCN_E_NETWORK_NOT_FOUND');
  const count = (what: string, error: string): unknown => [
    `sync_proxy_rules_winkernel_lb_${what}_failures_total`,
    [{ labels: { ip_family: 'IPv4', lb_type: 'clusterip', error }, count: 1 }],
  ];
  t.match(Object.entries(failures.read()), [
    count('create', 'invalid_ip'),
    count('update', 'other'),
    count('delete', 'network_not_found'),
  ]);
  t.same(await rig.difference(), []);
});

t.test('a temporary error of HNS does not quarantine the object', async (t) => {
  for (const errno of [
    'E_OUTOFMEMORY',
    'ERROR_BUSY',
    'ERROR_TIMEOUT',
    'RPC_S_SERVER_TOO_BUSY',
    'RPC_S_CALL_FAILED_DNE',
    'ERROR_SERVICE_NOT_ACTIVE',
    'EPT_S_NOT_REGISTERED',
    'RPC_S_UNKNOWN_IF',
    'ERROR_SHUTDOWN_IN_PROGRESS',
    'WAIT_TIMEOUT',
  ]) {
    const rig = await started();
    rig.kernel.hns.faults.planned.push(null, { errno, operation: 0 });
    rig.commit([...CLUSTER, service('two', { clusterIPs: ['10.96.0.11'] }), pods('two', '10.0.1.1')]);
    await t.rejects(rig.sync(), new RegExp(errno));
    t.same(Object.keys(loadBalancers(rig)), ['10.96.0.11:80'], 'others do not wait');
    t.same([(await rig.sync()).quarantined, await rig.difference()], [[], []], errno);
  }
});

t.test('an endpoint that HNS does not delete is reported, retried, and found by the next process', async (t) => {
  const rig = await started(CLUSTER);
  const { hns } = rig.kernel;
  const refuse = (): unknown => hns.faults.planned.push(null, { errno: 'HCN_E_ENTITY_HAS_REFERENCES', operation: 0 });
  refuse();
  rig.commit([pods('web', '10.0.1.1')]);
  const { quarantined } = await rig.sync();
  t.match(quarantined, [{ frontend: 'endpoint 10.0.1.2', reason: /HCN_E_ENTITY_HAS_REFERENCES/, retryAt: 1000 }]);
  t.same(await costs(rig, () => rig.sync()), { reads: 0, changes: 0 }, 'not before its time');
  rig.now = 1000;
  t.same(await rig.reported(() => rig.sync()), ['delete endpoint']);
  t.equal(hns.endpoints.size, 1);
  refuse();
  rig.commit([], [REF]);
  await rig.sync();
  t.same([hns.loadBalancers.size, hns.endpoints.size], [0, 1]);
  rig.restart();
  t.same([await rig.reported(() => rig.sync()), hns.endpoints.size], [['delete endpoint'], 0]);
});

t.test('a failure of one family does not affect the other', async (t) => {
  const world = new HnsWorld();
  const [ipv4, ipv6] = [new Rig(world), new Rig(world, 'IPv6')];
  const both = [
    service('web', { clusterIPs: ['10.96.0.10', 'fd00:96::10'] }),
    pods('web', '10.0.1.1'),
    pods6('fd00:10::1'),
  ];
  for (const rig of [ipv4, ipv6]) {
    rig.commit([...NODE_ROWS, ...both]);
    await rig.sync();
    rig.commit([], [REF]);
  }
  world.hns.faults.planned.push('refuse');
  await t.rejects(ipv4.sync(), /RPC_S_CALL_FAILED/);
  t.same(await ipv6.reported(() => ipv6.sync()), ['delete loadBalancer', 'delete endpoint']);
  await ipv4.sync();
  t.same([world.hns.loadBalancers.size, world.hns.endpoints.size], [0, 0]);
});

t.test('an object removed externally during a sync does not quarantine its frontend', async (t) => {
  const rig = await started(CLUSTER);
  const { hns } = rig.kernel;
  const [endpoint = ''] = hns.endpoints.keys();
  hns.removeEndpoint(endpoint);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.2', '10.0.1.3')]);
  const { quarantined, repairs } = await rig.sync();
  t.same([quarantined, await rig.difference()], [[], []], 'everything is read, and sent again at once');
  t.equal(repairs.length, 2, 'and reported: the endpoint, and the load balancer that lost it');
  hns.loadBalancers.clear();
  hns.endpoints.clear();
  rig.commit([], [REF]);
  t.equal((await costs(rig, () => rig.sync())).reads, 0, 'what is to go may be gone');
  t.same(await rig.difference(), []);
});

t.test('a frontend in use by another program is reported, and taken once it is free', async (t) => {
  const rig = await started();
  const { hns } = rig.kernel;
  const far = hns.addEndpoint(hns.addNetwork('nat'), ['172.16.0.2']);
  const PortMappings = [{ Protocol: 6, InternalPort: 80, ExternalPort: 80 }];
  hns.loadBalancers.set('foreign', { HostComputeEndpoints: [far], FrontendVIPs: ['10.96.0.10'], PortMappings });
  rig.commit(CLUSTER);
  t.match((await rig.sync()).quarantined, [{ reason: /ERROR_ALREADY_EXISTS/ }]);
  t.ok(hns.loadBalancers.has('foreign'));
  hns.loadBalancers.delete('foreign');
  rig.now = 1000;
  t.same((await rig.sync()).quarantined, []);
});

t.test('lost answers and calls that end halfway are completed by the next sync', async (t) => {
  for (const fault of ['lose-answer', 'halve', 'refuse'] as const) {
    const rig = await started();
    rig.kernel.hns.faults.planned.push(fault);
    rig.commit(CLUSTER);
    await t.rejects(rig.sync(), /RPC_S_CALL_FAILED/);
    const { full, quarantined } = await rig.sync();
    t.same([full, quarantined, await rig.difference()], [true, [], []], fault);
  }
});

/** On an HNS that does not modify: a load balancer is deleted before the one that takes its place is created. */
async function replacing(...faults: readonly HnsFault[]): Promise<Rig> {
  const world = new HnsWorld();
  world.hns.version = { major: 13, minor: 0 };
  const rig = await started(CLUSTER, new Rig(world));
  // The endpoint comes first.
  world.hns.faults.planned.push(null, ...faults);
  rig.commit([pods('web', '10.0.1.1', '10.0.1.3')]);
  return rig;
}

t.test('a refused change keeps the Service where HNS cannot modify', async (t) => {
  const rig = await replacing({ errno: 'E_INVALIDARG', operation: 1 });
  const before = loadBalancers(rig);
  const [quarantined, ...others] = (await rig.sync()).quarantined;
  t.match(quarantined, { frontend: '10.96.0.10:80/TCP', reason: /E_INVALIDARG.*; the former state was restored/ });
  t.same([quarantined?.absent, others], [undefined, []]);
  t.same(loadBalancers(rig), before);
  t.same(await costs(rig, () => rig.sync()), { reads: 0, changes: 0 }, 'it is not tried again before its time');
  rig.now = 1000;
  t.same([(await rig.sync()).quarantined, await rig.difference()], [[], []]);
});

t.test('a Service is reported as absent if HNS refuses its old load balancer too', async (t) => {
  const rig = await replacing({ errno: 'E_INVALIDARG', operation: 1 }, { errno: 'E_FAIL', operation: 0 });
  const { quarantined } = await rig.sync();
  t.match(quarantined, [{ absent: true, reason: /E_INVALIDARG.*; nor can the former state be restored: .*E_FAIL/ }]);
  t.same(loadBalancers(rig), {});
  rig.now = 1000;
  t.same([(await rig.sync()).quarantined, await rig.difference()], [[], []]);
});

t.test('a Service with more endpoints than HNS supports is served by as many as it supports', async (t) => {
  const many = Array.from({ length: 70 }, (_, index) => `10.0.1.${index + 1}`);
  const rig = await started([service('web'), pods('web', ...many)]);
  t.equal(loadBalancers(rig)['10.96.0.10:80']?.HostComputeEndpoints?.length, 64);
  t.same([(await rig.sync()).quarantined, await rig.difference()], [[], []]);
});
