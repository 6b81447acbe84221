import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { DRAINING_CASES, type DrainingCase, type DrainingStep, type Place } from '../../support/draining-cases.js';
import { address, service, slice } from '../../support/rows.js';
import { Rig } from './rig.js';
import { loadBalancers, REF, started } from './scene.js';

/** Connections of pods that serve no more: HNS ends them with the endpoint, and with the load balancer (kubernetes/kubernetes#113841). */

const SERVING = { node: 'other', state: 'rs' };
const DRAINING = { node: 'other', state: 't' };

const VERSIONS = [
  { major: 13, minor: 0 },
  { major: 15, minor: 4 },
  { major: 15, minor: 5 },
] as const;

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

const PODS = { here: { address: '10.0.0.1', node: 'me' }, there: { address: '10.0.1.1', node: 'other' } } as const;
const CONDITIONS = { ready: 'rs', 'not ready': '', terminating: 't' } as const;
const FRONTENDS = { clusterIP: '10.96.0.10:80', ingress: '192.0.2.1:80', nodePort: 'node:30080' } as const;

function rowsOf({ externalTrafficPolicy }: DrainingCase, { state }: DrainingStep): readonly Row[] {
  const pods = (['here', 'there'] as const).map((place) => ({ ...PODS[place], state: CONDITIONS[state[place]] }));
  return [{ ...BALANCED, externalTrafficPolicy }, slice('web', pods)];
}

/** The endpoints of each load balancer. */
function endpointsOf(rig: Rig): DrainingStep['held'] {
  const { hns } = rig.kernel;
  const of = (key: string): readonly Place[] => {
    const addresses = (loadBalancers(rig)[key]?.HostComputeEndpoints ?? []).flatMap((id) => hns.addressesOf(id));
    return (['here', 'there'] as const).filter((place) => addresses.includes(address(PODS[place].address)));
  };
  return { clusterIP: of(FRONTENDS.clusterIP), ingress: of(FRONTENDS.ingress), nodePort: of(FRONTENDS.nodePort) };
}

const ONLY_DRAINING = /exist only for connections under way: \d, of default\/web$/;

for (const each of DRAINING_CASES)
  t.test(`load balancers without a ready endpoint: ${each.title}`, async (t) => {
    for (const version of VERSIONS) {
      const rig = new Rig();
      rig.kernel.hns.version = version;
      rig.restartWith({});
      const reached = async (step: DrainingStep, what: string): Promise<boolean> => {
        rig.commit(rowsOf(each, step));
        const { limitations = [] } = await rig.sync();
        t.same([endpointsOf(rig), await rig.difference(), await rig.dataplane.audit()], [step.held, [], false], what);
        return limitations.some(({ text }) => ONLY_DRAINING.test(text));
      };
      await started([], rig);
      let drains = false;
      for (const [index, step] of each.steps.entries()) drains = await reached(step, `step ${index}`);
      t.equal(drains, each.drains, 'the status says so');
      rig.restart();
      t.same(await rig.reported(() => rig.sync()), [], 'a restart changes nothing');
      t.equal(await reached(each.steps.at(-1) ?? each.again, 'after a restart'), each.drains);
      t.equal(await reached(each.again, 'one is ready again'), false, 'the status says so no more');
    }
  });

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
  for (const version of VERSIONS) {
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

t.test('an endpoint on another port than a load balancer that stays is not added to it', async (t) => {
  const other = (state: string): Row =>
    slice('web', [{ address: '10.0.1.2', node: 'other', state }], { name: 'other', ports: [{ port: 81 }] });
  const rig = await started([
    BALANCED,
    endpoints({ address: '10.0.1.1', ...SERVING }, { address: '10.0.1.3', ...SERVING }),
    other('rs'),
  ]);
  rig.commit([endpoints({ address: '10.0.1.1', ...DRAINING }, { address: '10.0.1.3', ...DRAINING })]);
  await rig.sync();
  t.same(counts(rig), { '10.96.0.10:80': 1, '192.0.2.1:80': 1, 'node:30080': 1 }, 'the other port serves');
  rig.commit([other('')]);
  await rig.sync();
  t.same(counts(rig), { '10.96.0.10:80': 1, '192.0.2.1:80': 1, 'node:30080': 1 });
});

t.test('a load balancer that stays has no more endpoints than HNS takes', async (t) => {
  const many = (first: string, others: string): Row =>
    slice(
      'web',
      Array.from({ length: 70 }, (_, index) => ({
        address: `10.0.1.${index + 1}`,
        node: 'other',
        state: index < 35 ? first : others,
      })),
    );
  const rig = await started([BALANCED, many('rs', '')]);
  rig.commit([many('', 'rs')]);
  await rig.sync();
  rig.commit([many('', '')]);
  await rig.sync();
  t.same(counts(rig), { '10.96.0.10:80': 64, '192.0.2.1:80': 64, 'node:30080': 64 });
});

t.test('an endpoint kept for its connections is removed with the Service', async (t) => {
  const rig = await started([BALANCED, endpoints({ address: '10.0.1.1', ...SERVING })]);
  rig.commit([endpoints({ address: '10.0.1.1', ...DRAINING })]);
  await rig.sync();
  rig.commit([], [REF]);
  await rig.sync();
  t.same([counts(rig), held(rig)], [{}, []]);
});
