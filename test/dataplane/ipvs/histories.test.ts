import t from 'tap';
import type { Row, ServiceRow } from '../../../src/state/rows.js';
import { SeededRandom } from '../../support/random.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/**
 * Whatever happened, and whatever failed on the way, the end is that of a process that knows the last state alone. External IPs that the node has itself are left
 * out: nothing says of a virtual service there that it was ours once its Service and its elements are gone.
 */

/**
 * The last left virtual services of nobody while their addresses were noted too late, or not at all, or let go of too early; or addresses while those whose
 * connections were waited for had gone in another way.
 */
const SEEDS = [...Array.from({ length: 20 }, (_, index) => index + 1), 81, 102, 139, 217, 247, 951, 1587, 1926];
const SERVICES = 5;
const STEPS = 12;
const DAY_MS = 24 * 3_600_000;

const REF = (index: number) => ({ kind: 'Service', namespace: 'default', name: `web-${index}` }) as const;

function someService(random: SeededRandom, index: number): ServiceRow {
  const one = <T>(values: readonly T[]): T => random.pick(values);
  return service(`web-${index}`, {
    clusterIPs: [`10.96.0.${index}`],
    ports: one([
      [{ port: 80 }],
      [{ port: 80, nodePort: 30_000 + index }],
      [{ port: 53, protocol: 'UDP', nodePort: 30_053 + index }],
      [{ port: 9, protocol: 'SCTP' }],
    ]),
    externalIPs: one([[], ['192.0.2.9']]),
    balancer: one([[], [`192.0.2.1${index}`]]),
    sourceRanges: one([[], ['198.18.0.0/15']]),
    affinitySeconds: one([null, 100]),
  });
}

function someEndpoints(random: SeededRandom, index: number, { ports }: ServiceRow): Row {
  const addresses = [1, 2, 3].filter(() => random.chance(0.5)).map((last) => `10.${index}.0.${last}`);
  return slice(
    `web-${index}`,
    addresses.map((address) => ({ address, node: random.pick(['me', 'other']) })),
    { ports: ports.map(({ port, protocol }) => ({ port, protocol })) },
  );
}

for (const seed of SEEDS) {
  t.test(`seed ${seed}`, async (t) => {
    const random = new SeededRandom(seed);
    const rig = new Rig();
    const rows = new Map<string, readonly Row[]>();
    rig.commit(NODE_ROWS);
    await rig.sync();
    for (let step = 0; step < STEPS; step++) {
      const index = random.below(SERVICES);
      if (random.chance(0.25)) {
        rows.delete(`web-${index}`);
        rig.commit([], [REF(index)]);
      } else {
        const made = someService(random, index);
        const both = [made, someEndpoints(random, index, made)];
        rows.set(`web-${index}`, both);
        rig.commit(both);
      }
      for (const { destinations } of rig.kernel.addon.ipvs.services.values())
        for (const destination of destinations.values()) destination.connections = random.chance(0.3) ? 1 : 0;
      if (random.chance(0.2)) rig.restart();
      if (random.chance(0.2)) damage(random, rig);
      rig.kernel.failAtRandom(random);
      await rig.sync(random.chance(0.1)).catch(() => undefined);
      await rig.dataplane.glance().catch(() => undefined);
      rig.kernel.failNoMore();
      rig.now += random.pick([1, 1000, 60_000]);
    }
    for (const { destinations } of rig.kernel.addon.ipvs.services.values())
      for (const destination of destinations.values()) destination.connections = 0;
    for (let round = 0; round < 3; round++) {
      await rig.sync(true);
      rig.now += DAY_MS;
    }
    const fresh = new Rig();
    fresh.commit([...NODE_ROWS, ...[...rows.values()].flat()]);
    await fresh.sync();
    t.same(sorted(rig), sorted(fresh));
    t.same(await rig.difference(), []);
    t.equal(await rig.dataplane.audit(), false);
  });
}

function sorted({ kernel }: Rig): readonly string[] {
  return [...kernel.contents()].sort();
}

function damage(random: SeededRandom, { kernel: { addon } }: Rig): void {
  const services = [...addon.ipvs.services];
  const [key] = services.length === 0 ? [''] : random.pick(services);
  if (random.chance(0.5)) addon.ipvs.services.delete(key);
  else addon.ipvs.services.get(key)?.destinations.clear();
  if (random.chance(0.3)) addon.ipset.sets.get('KUBE-CLUSTER-IP')?.elements.clear();
  if (random.chance(0.3)) addon.route.links.get('kube-ipvs0')?.clear();
}
