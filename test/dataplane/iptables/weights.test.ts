import t from 'tap';
import { EndpointList } from '../../../src/base/endpoint-list.js';
import { spreadChains } from '../../../src/dataplane/iptables/spread.js';
import type { Chain } from '../../../src/dataplane/xtables/rules.js';
import type { EndpointSliceRow, Row } from '../../../src/state/rows.js';
import { address, service, slice, type ServiceText } from '../../support/rows.js';
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

/** Each rule's chance, and what it leads to. */
function steps(chain: Chain): readonly { readonly chance: number; readonly target: string }[] {
  return chain.rules.map((rule) => {
    const text = typeof rule === 'string' ? rule : t.fail('endpoints without weights');
    const [, target = ''] = /-j (?:DNAT --to-destination )?(\S+)$/.exec(String(text)) ?? [];
    const [, chance = '1'] = /--probability (\S+)/.exec(String(text)) ?? [];
    return { chance: Number(chance), target };
  });
}

t.test('with weights a new connection walks some square root of the rules, and each endpoint has its share', (t) => {
  const count = 5000;
  const endpoints = EndpointList.of(
    'IPv4',
    Array.from({ length: count }, (_, index) => ({ address: address(`10.1.${index >> 8}.${index & 255}`), port: 80 })),
  );
  const weights = Array.from({ length: count }, (_, place) => 1 + (place % 5));
  const made = spreadChains({
    chain: 'KUBE-SVC-X',
    servicePort: 'default/web',
    protocol: 'TCP',
    endpoints,
    weights,
    affinitySeconds: null,
    head: [],
  });
  const chains = new Map(made.map((chain) => [chain.name, steps(chain)]));
  const shares = new Map<string, number>();
  const walk = (name: string, likely: number): number => {
    let [left, longest] = [likely, 0];
    for (const [index, { chance, target }] of (chains.get(name) ?? []).entries()) {
      const here = left * chance;
      left -= here;
      if (!chains.has(target)) shares.set(target, here);
      longest = Math.max(longest, index + 1 + (chains.has(target) ? walk(target, here) : 0));
    }
    return longest;
  };
  const walked = walk('KUBE-SVC-X', 1);
  t.comment(`${walked} rules for ${count} endpoints`);
  t.ok(walked < 4 * Math.sqrt(count), `${walked} rules`);
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const wrong = endpoints.toStrings().filter((endpoint, place) => {
    const share = (weights[place] ?? 0) / all;
    return Math.abs((shares.get(endpoint) ?? 0) - share) > share / 100;
  });
  t.same(wrong, []);
  t.end();
});

t.test('a list of endpoints with weights that is divided is read back and stays after a restart', async (t) => {
  const rig = await started(web(), pods('a', 150, 1), pods('b', 150, 3));
  t.same(await rig.difference(), []);
  rig.restart();
  t.equal((await rig.sync(true)).ruleOperations, 0);
  rig.commit([pods('b', 149, 3)]);
  await rig.sync();
  t.same(await rig.difference(), []);
});
