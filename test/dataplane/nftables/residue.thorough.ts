import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

const WAVES = 11;
const SERVICES = 300;
const MOST_BYTES = 3 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heap(): number {
  for (let round = 0; round < 4; round++) collect();
  return process.memoryUsage().heapUsed;
}

t.test('3,000 Services with affinity and a load balancer that came and went leave no memory', async (t) => {
  const kernel = new FakeKernel(compiler);
  const rig = new Rig(kernel);
  rig.commit(NODE_ROWS);
  await rig.sync();
  const chains = kernel.table('ip')?.chains.size;
  let before: number | null = null;
  for (let wave = 0; wave < WAVES; wave++) {
    const numbers = Array.from({ length: SERVICES }, (_, index) => wave * SERVICES + index);
    const address = (net: string, number: number): string => `${net}.${number >> 8}.${number & 255}`;
    const rows = numbers.flatMap((number) => [
      service(`s${number}`, {
        clusterIPs: [address('10.96', number)],
        affinitySeconds: 60 + number,
        balancer: [address('198.51', number)],
      }),
      slice(`s${number}`, [{ address: address('10.0', number) }]),
    ]);
    rig.commit(rows);
    await rig.sync();
    rig.commit(
      [],
      rows.map(({ kind, namespace, name }) => ({ kind, namespace, name })),
    );
    await rig.sync();
    rig.now += LINGER_MS;
    for (let { dueAt } = await rig.sync(); dueAt !== undefined; { dueAt } = await rig.sync());
    t.equal(kernel.table('ip')?.chains.size, chains);
    kernel.committed.length = 0;
    kernel.listed.length = 0;
    // The first wave has code compiled.
    before ??= heap();
  }
  const grown = heap() - (before ?? 0);
  t.ok(grown < MOST_BYTES, `${grown} bytes`);
});
