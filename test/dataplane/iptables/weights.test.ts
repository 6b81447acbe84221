import t from 'tap';
import type { EndpointSliceRow, Row } from '../../../src/state/rows.js';
import { service, slice, type ServiceText } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Weights by probabilities. */

function pods(name: string, count: number, weight: number, node = 'other'): EndpointSliceRow {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    address: `10.0.${name.charCodeAt(0)}.${index + 1}`,
    node,
  }));
  return { ...slice('web', endpoints, { name, ports: [{ port: 8080 }] }), weight };
}

function web(fields: ServiceText = {}): Row {
  return service('web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }], ...fields });
}

async function started(...rows: readonly Row[]): Promise<Rig> {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, ...rows]);
  await rig.sync();
  return rig;
}

/** Weights of the cluster IP's endpoints, as the kernel has them. */
async function shares(rig: Rig): Promise<readonly string[]> {
  const lines = await rig.dataplane.dump(rig.table);
  return lines.flatMap((line) => / 10\.96\.0\.10:80\/TCP share (.*)/.exec(line)?.[1] ?? []);
}

t.test('weights of endpoints are probabilities, and dump reads them back', async (t) => {
  const rig = await started(web(), pods('a', 1, 1), pods('b', 2, 3));
  t.same(await rig.difference(), []);
  t.same(await shares(rig), ['10.0.97.1:8080 weight 1', '10.0.98.1:8080 weight 3', '10.0.98.2:8080 weight 3']);
  const rules = rig.table.frontend('10.96.0.10:80/TCP');
  t.equal(rules?.balance?.endpoints.slots, null);
});

t.test('weights that come, change and go rewrite their chain, and a restart rewrites none', async (t) => {
  const rig = await started(web({ externalTrafficPolicy: 'Local' }), pods('a', 2, 1, 'me'), pods('b', 2, 3));
  rig.restart();
  const report = await rig.sync(true);
  t.equal(report.ruleOperations, 0);
  const steps: readonly (readonly Row[])[] = [
    [pods('b', 2, 5)],
    [web({ affinitySeconds: 60 })],
    [web({ internalTrafficPolicy: 'Local' })],
    [web()],
    [pods('a', 100, 1)],
    [pods('b', 2, 0)],
    [pods('b', 2, 1)],
  ];
  for (const rows of steps) {
    rig.commit(rows);
    await rig.sync();
    t.same(await rig.difference(), []);
  }
  t.same(await shares(rig), [], 'equal weights are no weights');
});

t.test('hashing is a limitation of iptables mode', async (t) => {
  const rig = await started(web({ balance: { by: 'address', unreadable: [] } }), pods('a', 2, 1));
  const [limitation] = [...rig.table.limitations()];
  t.match(limitation, { cause: 'mode', text: /balance hash=address without effect/ });
  t.same(await rig.difference(), []);
});
