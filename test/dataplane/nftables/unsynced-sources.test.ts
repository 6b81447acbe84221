import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** A process that starts with a source it cannot read in full must not take its predecessor's rules away. */

function rowsOf(name: string, clusterIP: string, fields: ServiceText = {}): readonly Row[] {
  return [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }], affinitySeconds: 60, ...fields }),
    slice(name, [{ address: '10.0.1.1', node: 'me' }], { ports: [{ port: 8080 }] }),
  ];
}

const A = rowsOf('a', '10.96.0.10');
const B = rowsOf('b', '10.96.0.11', { affinitySeconds: 90 });
const LOST_OF_B = /^\+ IPv4 (cluster-address 10\.96\.0\.11|frontend 10\.96\.0\.11:80)/;

/** A kernel that a process filled with both Services, and a new process that can only read the first. */
async function restarted(): Promise<Rig> {
  const before = new Rig(new FakeKernel(compiler));
  before.commit([...NODE_ROWS, ...A, ...B]);
  await before.sync();
  const rig = new Rig(before.kernel);
  rig.unsynced(true);
  rig.commit([...NODE_ROWS, ...A]);
  return rig;
}

t.test('frontends that the plan does not name stay until all sources are synced', async (t) => {
  const rig = await restarted();
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 0, 'nothing was touched');
  const kept = await rig.difference();
  t.ok(kept.length > 0);
  t.ok(
    kept.every((line) => LOST_OF_B.test(line)),
    kept.join('\n'),
  );
  await rig.sync(true);
  t.same(await rig.difference(), kept, 'a full check leaves it alone too');
  rig.unsynced(false);
  await rig.sync();
  t.same(await rig.difference(), []);
});

t.test('rules of a source that is read later are adopted unchanged', async (t) => {
  const rig = await restarted();
  await rig.sync();
  rig.commit(B);
  rig.unsynced(false);
  const sent = await rig.during(() => rig.sync());
  t.equal(sent.length, 0);
  t.same(await rig.difference(), []);
});

t.test('a removal that this process received is applied although sources are unsynced', async (t) => {
  const rig = await restarted();
  await rig.sync();
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'a' }]);
  await rig.sync();
  t.ok((await rig.difference()).every((line) => LOST_OF_B.test(line)));
});
