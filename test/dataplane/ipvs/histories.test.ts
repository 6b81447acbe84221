import t from 'tap';
import type { Row, ServiceRow } from '../../../src/state/rows.js';
import { usually } from '../../support/extent.js';
import { goThrough } from '../../support/histories.js';
import { SeededRandom } from '../../support/random.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

// External IPs that the node has itself are left out: nothing says of a virtual service there that it was ours once its Service and its elements are gone.

/**
 * The last left virtual services of nobody while their addresses were noted too late, or not at all, or let go of too early; or addresses while those whose
 * connections were waited for had gone in another way.
 */
const SEEDS = [...Array.from({ length: 20 }, (_, index) => index + 1), 81, 102, 139, 217, 247, 951, 1587, 1926];

function someService(random: SeededRandom, name: string, index: number): ServiceRow {
  const one = <T>(values: readonly T[]): T => random.pick(values);
  return service(name, {
    clusterIPs: [`10.96.0.${index}`],
    ports: one([
      [{ port: 80 }],
      [{ port: 80, nodePort: 30_000 + index }],
      [{ port: 53, protocol: 'UDP', nodePort: 30_053 + index }],
      [{ port: 9, protocol: 'SCTP' }],
    ]),
    externalIPs: one([[], ['192.0.2.9']]),
    loadBalancer: one([[], [`192.0.2.1${index}`]]),
    sourceRanges: one([[], ['198.18.0.0/15']]),
    affinitySeconds: one([null, 100]),
  });
}

function someEndpoints(random: SeededRandom, name: string, index: number, { ports }: ServiceRow): Row {
  const addresses = [1, 2, 3].filter(() => random.chance(0.5)).map((last) => `10.${index}.0.${last}`);
  return slice(
    name,
    addresses.map((address) => ({ address, node: random.pick(['me', 'other']) })),
    { ports: ports.map(({ port, protocol }) => ({ port, protocol })) },
  );
}

for (const seed of usually(
  SEEDS.filter((_, index) => index % 4 === 0),
  SEEDS,
)) {
  t.test(`random history of ipvs mode, seed ${seed}`, async (t) => {
    const random = new SeededRandom(seed);
    const rig = new Rig();
    await goThrough(t, random, {
      rig,
      fresh: new Rig(),
      nodeRows: NODE_ROWS,
      service: (name, index) => someService(random, name, index),
      endpoints: (name, index, made) => someEndpoints(random, name, index, made),
      stir: () => {
        connect(rig, () => random.chance(0.3));
      },
      damage: () => {
        damage(random, rig);
      },
      calm: () => {
        connect(rig, () => false);
      },
      contents: ({ kernel }) => [...kernel.contents()].sort(),
    });
  });
}

/** Which destinations have a connection. */
function connect({ kernel: { addon } }: Rig, isConnected: () => boolean): void {
  for (const { destinations } of addon.ipvs.services.values())
    for (const destination of destinations.values()) destination.connections = isConnected() ? 1 : 0;
}

function damage(random: SeededRandom, { kernel: { addon } }: Rig): void {
  const services = [...addon.ipvs.services];
  const [key] = services.length === 0 ? [''] : random.pick(services);
  if (random.chance(0.5)) addon.ipvs.services.delete(key);
  else addon.ipvs.services.get(key)?.destinations.clear();
  if (random.chance(0.3)) addon.ipset.sets.get('KUBE-CLUSTER-IP')?.elements.clear();
  if (random.chance(0.3)) addon.route.links.get('kube-ipvs0')?.clear();
}
