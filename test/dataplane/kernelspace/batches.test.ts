import t from 'tap';
import type { HcnOperation } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { loadBalancers, costs } from './scene.js';

/** A first start on a slow HNS: what comes first, and what a process that ends waits for. */

const SERVICES = 100;
const ENDPOINTS = 10;
/** No process that ends waits for more, which is 0.3 s where HNS takes 10 ms for each. */
const BATCH = 32 + ENDPOINTS;

/** Each Service with endpoints of its own, and the one of DNS among the last. */
function cluster(): readonly Row[] {
  const rows = Array.from({ length: SERVICES }, (_, index) => {
    const name = `s${index}`;
    const addresses = Array.from({ length: ENDPOINTS }, (_, at) => `10.${1 + (index >> 8)}.${index & 255}.${at + 1}`);
    const endpoints = addresses.map((address) => ({ address, node: 'other' }));
    return [service(name, { clusterIPs: [`10.96.${index >> 8}.${index & 255}`] }), slice(name, endpoints)];
  });
  const dns = service('dns', { clusterIPs: ['10.96.9.10'], ports: [{ port: 53, protocol: 'UDP' }] });
  const pods = slice('dns', [{ address: '10.9.0.1', node: 'other' }], { ports: [{ port: 53, protocol: 'UDP' }] });
  return [...NODE_ROWS, ...rows.flat(), dns, pods];
}

/** A process that has nothing in HNS yet; hears of each operation before HNS does it. */
function starting(received: (operation: HcnOperation, done: number) => void): Rig {
  const rig = new Rig();
  let done = 0;
  rig.kernel.hns.beforeOperation = (operation) => {
    received(operation, done++);
  };
  rig.commit(cluster());
  return rig;
}

t.test('the first start writes Service by Service, DNS first', async (t) => {
  const first: number[] = [];
  const rig = starting(({ kind }, done) => kind === 'loadBalancer' && first.push(done));
  await rig.sync();
  t.equal(first.length, SERVICES + 1);
  t.ok((first[0] ?? 0) <= BATCH, `the first load balancer after ${first[0]} operations`);
  t.same(Object.keys(loadBalancers(rig))[0], '10.96.9.10:53');
  // Whatever the size of the cluster: a Service waits for those before it alone.
  for (const [index, done] of first.entries()) t.ok(done <= BATCH + index * (ENDPOINTS + 1), `load balancer ${index}`);
  t.same(await rig.difference(), []);
});

t.test('a process that ends waits for one batch, and the next process continues there', async (t) => {
  let after = 0;
  const rig: Rig = starting((_, done) => {
    if (done === 300) rig.dataplane.end();
    if (done > 300) after++;
  });
  await t.rejects(rig.sync(), /the process ends/);
  t.ok(after > 0 && after <= BATCH, `${after} operations after the end`);
  const { hns } = rig.kernel;
  const made = hns.loadBalancers.size;
  t.ok(made > 0 && made < SERVICES);
  hns.beforeOperation = null;
  rig.restart();
  const { changes } = await costs(rig, () => rig.sync());
  t.equal(changes, SERVICES + 1 + SERVICES * ENDPOINTS + 1 - 301 - after, 'nothing is done again');
  t.same(await rig.difference(), []);
});

t.test('a process that ends stops reading HNS', async (t) => {
  const rig = starting(() => undefined);
  await rig.sync();
  rig.restart();
  const { hns } = rig.kernel;
  hns.looks = 0;
  hns.afterList = () => {
    rig.dataplane.end();
  };
  await t.rejects(rig.sync(), /the process ends/);
  t.ok(hns.looks <= 64, `${hns.looks} objects were asked for`);
});
