import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { service, slice } from '../../support/rows.js';
import { Rig } from './rig.js';
import { loadBalancers, REF, started } from './scene.js';

/** Connections of pods that serve no more: HNS ends them with the endpoint, and with the load balancer (kubernetes/kubernetes#113841). */

const SERVING = { node: 'other', state: 'rs' };
const DRAINING = { node: 'other', state: 't' };

const BALANCED = service('web', { loadBalancer: ['192.0.2.1'], ports: [{ port: 80, nodePort: 30_080 }] });

function endpoints(...pods: readonly { readonly address: string }[]): Row {
  return slice('web', pods);
}

function held(rig: Rig): readonly string[] {
  const { hns } = rig.kernel;
  return [...hns.endpoints.keys()].flatMap((id) => hns.addressesOf(id)).sort();
}

/** How many endpoints each load balancer has. */
function counts(rig: Rig): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(loadBalancers(rig)).map(([key, { HostComputeEndpoints = [] }]) => [
      key,
      HostComputeEndpoints.length,
    ]),
  );
}

t.test('the endpoint of a remote pod stays until it leaves its slice', async (t) => {
  const both = endpoints({ address: '10.0.1.1', ...SERVING }, { address: '10.0.1.2', ...SERVING });
  const rig = await started([service('web'), both]);
  rig.commit([endpoints({ address: '10.0.1.1', ...SERVING }, { address: '10.0.1.2', ...DRAINING })]);
  t.same(await rig.reported(() => rig.sync()), ['modify loadBalancer']);
  t.same([counts(rig), held(rig)], [{ '10.96.0.10:80': 1 }, ['10.0.1.1', '10.0.1.2']]);
  rig.restart();
  t.same(await rig.reported(() => rig.sync()), [], 'a process that comes meanwhile leaves it');
  rig.commit([endpoints({ address: '10.0.1.1', ...SERVING })]);
  t.same(await rig.reported(() => rig.sync()), ['delete endpoint']);
  t.same(held(rig), ['10.0.1.1']);
});

t.test('no HNS endpoint is made for a pod that never served', async (t) => {
  const rig = await started([service('web'), endpoints({ address: '10.0.1.1', ...DRAINING })]);
  t.same([counts(rig), held(rig)], [{}, []]);
});

t.test('the last pod that stops serving keeps its load balancers until it leaves its slice', async (t) => {
  for (const version of [
    { major: 13, minor: 0 },
    { major: 15, minor: 5 },
  ]) {
    const rig = new Rig();
    rig.kernel.hns.version = version;
    rig.restartWith({});
    const both = [{ address: '10.0.1.1' }, { address: '10.0.1.2' }];
    await started([BALANCED, endpoints(...both.map((each) => ({ ...each, ...SERVING })))], rig);
    const all = { '10.96.0.10:80': 2, '192.0.2.1:80': 2, 'node:30080': 2 };
    t.same(counts(rig), all);
    rig.commit([endpoints(...both.map((each) => ({ ...each, ...DRAINING })))]);
    t.same(await rig.reported(() => rig.sync()), []);
    t.same([counts(rig), await rig.difference(), await rig.dataplane.audit()], [all, [], false]);
    rig.restart();
    t.same(await rig.reported(() => rig.sync()), [], 'nor does the next process take them away');
    rig.commit([endpoints({ address: '10.0.1.1', ...DRAINING })]);
    await rig.sync();
    t.same([counts(rig), held(rig)], [{ '10.96.0.10:80': 1, '192.0.2.1:80': 1, 'node:30080': 1 }, ['10.0.1.1']]);
    rig.commit([endpoints()]);
    await rig.sync();
    t.same([counts(rig), held(rig)], [{}, []]);
  }
});

t.test(
  'a Service without an address of a load balancer loses its load balancer with its last endpoint, as in kube-proxy',
  async (t) => {
    const rig = await started([service('web'), endpoints({ address: '10.0.1.1', ...SERVING })]);
    rig.commit([endpoints({ address: '10.0.1.1', ...DRAINING })]);
    await rig.sync();
    t.same([counts(rig), held(rig)], [{}, ['10.0.1.1']]);
  },
);

t.test('an endpoint kept for its connections is removed with the Service', async (t) => {
  const rig = await started([BALANCED, endpoints({ address: '10.0.1.1', ...SERVING })]);
  rig.commit([endpoints({ address: '10.0.1.1', ...DRAINING })]);
  await rig.sync();
  rig.commit([], [REF]);
  await rig.sync();
  t.same([counts(rig), held(rig)], [{}, []]);
});
