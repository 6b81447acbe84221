import t from 'tap';
import { serviceObject, sliceObject, type ApiObject } from '../support/api-objects.js';
import { DRAINING_CASES, type DrainingCase, type DrainingStep, type Place } from '../support/draining-cases.js';
import { NODE_NAME, until, WindowsNode } from './node.js';

const PLACES: readonly Place[] = ['here', 'there'];
const PODS = { here: '10.0.0', there: '10.0.1' } as const;
const NODES = { here: NODE_NAME, there: 'other' } as const;
const CONDITIONS = {
  ready: { ready: true, serving: true, terminating: false },
  'not ready': { ready: false, serving: false, terminating: false },
  terminating: { ready: false, serving: false, terminating: true },
} as const;

/** The Service of a case, by the case's index. */
function objectsOf({ externalTrafficPolicy }: DrainingCase, { state }: DrainingStep, index: number): ApiObject[] {
  const spec = {
    type: 'LoadBalancer',
    clusterIP: `10.96.0.${100 + index}`,
    externalTrafficPolicy,
    ports: [{ port: 80, nodePort: 30_100 + index }],
  };
  const status = { loadBalancer: { ingress: [{ ip: `198.51.100.${100 + index}` }] } };
  const endpoints = PLACES.map((place) => ({
    addresses: [`${PODS[place]}.${100 + index}`],
    nodeName: NODES[place],
    conditions: CONDITIONS[state[place]],
  }));
  return [
    serviceObject(`web-${index}`, spec, { status }),
    sliceObject(`web-${index}`, `web-${index}`, [], { endpoints }),
  ];
}

t.test('load balancers without a ready endpoint stay in HNS for connections under way', async (t) => {
  const node = await WindowsNode.make(t);
  const { hns } = node;
  const [network = ''] = hns.networks.keys();
  for (const index of DRAINING_CASES.keys()) hns.addEndpoint(network, [`${PODS.here}.${100 + index}`]);
  const endpointsOf = (vip: string | undefined, port: number): readonly Place[] => {
    const found = [...hns.loadBalancers.values()].find(
      ({ FrontendVIPs = [], PortMappings = [] }) => FrontendVIPs[0] === vip && PortMappings[0]?.ExternalPort === port,
    );
    const addresses = (found?.HostComputeEndpoints ?? []).flatMap((id) => hns.addressesOf(id));
    return PLACES.filter((place) => addresses.some((each) => each.startsWith(`${PODS[place]}.`)));
  };
  let rounds = 0;
  /** Puts a state of every case, and waits until the process has programmed another Service that came with it. */
  const put = async (stepOf: (each: DrainingCase) => DrainingStep): Promise<void> => {
    const mark = `10.96.1.${++rounds}`;
    const objects = DRAINING_CASES.flatMap((each, index) => objectsOf(each, stepOf(each), index));
    node.put('all', ...objects, serviceObject('mark', { clusterIP: mark }), sliceObject('mark', 'mark', ['10.0.2.1']));
    await until(`round ${rounds}`, () => node.held().includes(`${mark} to 10.0.2.1`));
    for (const [index, each] of DRAINING_CASES.entries()) {
      const held = {
        clusterIP: endpointsOf(`10.96.0.${100 + index}`, 80),
        ingress: endpointsOf(`198.51.100.${100 + index}`, 80),
        nodePort: endpointsOf(undefined, 30_100 + index),
      };
      t.same(held, stepOf(each).held, `round ${rounds}: ${each.title}`);
    }
  };
  const last = ({ steps, again }: DrainingCase): DrainingStep => steps.at(-1) ?? again;
  const ended = { status: 0, stdout: /limitation of IPv4: load balancers .* only for connections under way: 17, of / };
  node.start(...node.fromManifests);
  const longest = Math.max(...DRAINING_CASES.map(({ steps }) => steps.length));
  for (let index = 0; index < longest; index++) await put((each) => each.steps[index] ?? last(each));
  t.match(await node.status(), ended);
  await node.kill();
  node.server.calls.length = 0;
  node.start(...node.fromManifests);
  await node.healthy();
  t.same(node.server.changes(), [], 'a restart changes nothing');
  t.match(await node.status(), ended);
  await put(last);
  await put(({ again }) => again);
  t.notMatch((await node.status()).stdout, /only for connections under way/);
});
