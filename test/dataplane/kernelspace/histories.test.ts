import t from 'tap';
import { HCN_ENDPOINT_FLAGS } from '../../../src/native/contract.js';
import { KEEPS_DESTINATION, REPLACED_WHOLE, type Row, type ServiceRow } from '../../../src/state/rows.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { goThrough } from '../../support/histories.js';
import { SeededRandom } from '../../support/random.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** In every other history HNS cannot modify load balancers. */
const SEEDS = Array.from({ length: 24 }, (_, index) => index + 1);

function someService(random: SeededRandom, name: string, index: number): ServiceRow {
  const one = <T>(values: readonly T[]): T => random.pick(values);
  return service(name, {
    clusterIPs: [`10.96.0.${index}`],
    ports: one([
      [{ port: 80 }],
      [{ port: 80, nodePort: 30_000 + index }],
      [{ port: 53, protocol: 'UDP', nodePort: 30_053 + index }],
    ]),
    externalIPs: one([[], ['192.0.2.9']]),
    loadBalancer: one([[], [`192.0.2.1${index}`]]),
    affinitySeconds: one([null, 100]),
    externalTrafficPolicy: one(['Cluster', 'Local']),
    loadBalancerFlags: one([0, KEEPS_DESTINATION, REPLACED_WHOLE]),
  });
}

/** Addresses are shared by Services, and pods come back on other nodes. */
function someEndpoints(random: SeededRandom, name: string, index: number, { ports }: ServiceRow): Row {
  const addresses = [1, 2, 3, 4].filter(() => random.chance(0.5)).map((last) => `10.0.${index & 1}.${last}`);
  return slice(
    name,
    addresses.map((address) => ({ address, node: address.endsWith('.1') ? 'me' : 'other' })),
    { ports: ports.map(({ port, protocol }) => ({ port: port + random.below(2), protocol })) },
  );
}

for (const seed of SEEDS) {
  t.test(`random history of mode kernelspace, seed ${seed}`, async (t) => {
    const random = new SeededRandom(seed);
    const [world, wanted] = [new HnsWorld(), new HnsWorld()];
    if (seed % 2 === 0) for (const { hns } of [world, wanted]) hns.version = { major: 13, minor: 0 };
    const rig = new Rig(world);
    const foreign = addForeign(world);
    await goThrough(t, random, {
      rig,
      fresh: new Rig(wanted),
      nodeRows: NODE_ROWS,
      service: (name, index) => someService(random, name, index),
      endpoints: (name, index, made) => someEndpoints(random, name, index, made),
      damage: () => {
        damage(random, world);
      },
      contents: ({ kernel }) => ours(kernel),
    });
    const before = world.hns.changes;
    await rig.sync(true);
    t.equal(world.hns.changes, before, 'nothing is left to do');
    t.ok(
      foreign.every((id) => world.hns.loadBalancers.has(id)),
      'what is of others is there',
    );
    rig.restart();
    rig.plan();
    await rig.remove();
    t.same(ours(world), [], 'and a cleanup leaves nothing of ours');
  });
}

function ours(world: HnsWorld): readonly string[] {
  return world.contents().filter((line) => !line.includes('"isOurs":false'));
}

/** Of another network, and of ours at an address that is no Service's. */
function addForeign({ hns, network }: HnsWorld): readonly string[] {
  const other = hns.addNetwork('nat');
  const endpoints = [hns.addEndpoint(other, ['172.16.0.2']), hns.addEndpoint(network, ['10.0.9.9'])];
  return endpoints.map((endpoint, index) => {
    const id = `0000000${index}-0000-0000-0000-000000000000`;
    const PortMappings = [{ Protocol: 6, InternalPort: 80, ExternalPort: 80 }];
    hns.loadBalancers.set(id, {
      ID: id,
      HostComputeEndpoints: [endpoint],
      FrontendVIPs: [`172.31.0.${index}`],
      PortMappings,
    });
    return id;
  });
}

function damage(random: SeededRandom, { hns }: HnsWorld): void {
  const own = [...hns.loadBalancers.keys()].filter((id) => id.startsWith('706f'));
  if (own.length > 0 && random.chance(0.5)) hns.loadBalancers.delete(random.pick(own));
  const remote = [...hns.endpoints]
    .filter(([, { Flags = 0 }]) => Flags === HCN_ENDPOINT_FLAGS.remote)
    .map(([id]) => id);
  if (remote.length > 0 && random.chance(0.5)) hns.removeEndpoint(random.pick(remote));
}
