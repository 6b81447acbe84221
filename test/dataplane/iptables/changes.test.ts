import t from 'tap';
import { jumpTarget } from '../../support/fake-iptables/rule-text.js';
import type { IptablesFault } from '../../support/fake-iptables/fake-iptables.js';
import { node, service, slice } from '../../support/rows.js';
import type { Row } from '../../../src/state/rows.js';
import { NODE_ROWS, Rig } from './rig.js';
import { web, endpoints, cluster } from './cluster.js';

/** What a change writes, what large clusters look like, and what becomes of failures, damage, restarts and unsynced sources. */

const UDP = [{ port: 53, protocol: 'UDP' }] as const;
const DNS = [
  service('dns', { clusterIPs: ['10.96.0.53'], ports: UDP }),
  slice('dns', [{ address: '10.0.2.1', node: 'other' }], { ports: UDP }),
];
const DNS_REFS = [
  { kind: 'Service', namespace: 'default', name: 'dns' },
  { kind: 'EndpointSlice', namespace: 'default', name: 'dns' },
] as const;

t.test('a plain Service costs a rule for dispatch, one for masquerading, and one per endpoint', async (t) => {
  const counts = await Promise.all(
    [
      [10, 3],
      [11, 3],
      [11, 4],
    ].map(async ([services = 0, each = 0]) => {
      const rig = await cluster(services, each);
      return rig.kernel.chains('nat').reduce((sum, name) => sum + (rig.kernel.rules('nat', name)?.length ?? 0), 0);
    }),
  );
  t.equal((counts[1] ?? 0) - (counts[0] ?? 0), 2 + 3);
  t.equal((counts[2] ?? 0) - (counts[1] ?? 0), 11);
});

t.test('an endpoint changes one chain, a Service its chain and one of the dispatch', async (t) => {
  const rig = await cluster(300, 2);
  t.same(await rig.difference(), []);
  rig.commit([endpoints(7, 3)]);
  const [only = '', ...others] = await rig.during(() => rig.sync());
  t.match(only, /^chain nat KUBE-SVC-[A-Z2-7]{16}$/);
  t.same(others, []);
  rig.commit([web(300), endpoints(300, 1)]);
  const added = await rig.during(() => rig.sync());
  t.equal(added.length, 2, added.join());
  t.ok(added.includes('chain nat KUBE-SVC-IP-C2'), 'the leaf of 10.96.1.44');
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'web-300' }]);
  const removed = await rig.during(() => rig.sync());
  t.match([...removed].sort(), ['chain nat KUBE-SVC-IP-C2', /^delete-chain nat KUBE-SVC-/]);
  t.same(await rig.difference(), []);
  t.same(await rig.during(() => rig.sync()), [], 'nothing changed, nothing sent');
});

t.test('a frontend that refuses less is translated first, one that refuses more is filtered first', async (t) => {
  const rig = new Rig();
  const loadBalancer = (sourceRanges: readonly string[]): Row =>
    service('balancer', { clusterIPs: ['10.96.0.9'], loadBalancer: ['192.0.2.3'], sourceRanges });
  rig.commit([...NODE_ROWS, web(1), web(2), endpoints(2, 1), loadBalancer(['203.0.113.0/24']), slice('balancer', [])]);
  await rig.sync();
  t.equal(rig.kernel.rules('filter', 'KUBE-SERVICES')?.length, 2);
  const first = /^chain filter KUBE-(SERVICES|PROXY-FIREWALL)$/;
  const tables = async (rows: readonly Row[]): Promise<readonly string[]> => {
    rig.commit(rows);
    const sent = await rig.during(() => rig.sync());
    t.same(await rig.difference(), []);
    return sent.map((line) => (first.test(line) ? line.replace('chain ', '') : (line.split(' ')[1] ?? '')));
  };
  t.same(await tables([endpoints(1, 1)]), ['nat', 'nat', 'filter KUBE-SERVICES'], 'first endpoint');
  t.same(await tables([endpoints(1, 0)]), ['filter KUBE-SERVICES', 'nat', 'nat'], 'last endpoint');
  t.same(
    await tables([endpoints(1, 1), endpoints(2, 0)]),
    ['filter KUBE-SERVICES', 'nat', 'nat', 'nat', 'filter KUBE-SERVICES'],
    'both at once',
  );
  const served = await tables([slice('balancer', [{ address: '10.0.3.1', node: 'other' }])]);
  t.equal(served[0], 'nat');
  t.same(served.slice(-2).sort(), ['filter KUBE-PROXY-FIREWALL', 'filter KUBE-SERVICES']);
  t.same((await tables([loadBalancer([])])).at(-1), 'filter KUBE-PROXY-FIREWALL', 'source ranges taken away');
  t.same(await tables([loadBalancer(['203.0.113.0/24'])]), ['filter KUBE-PROXY-FIREWALL', 'nat', 'nat'], 'and back');
  t.same(await tables([loadBalancer(['203.0.114.0/24'])]), ['nat'], 'others: the rest is refused all along');
});

t.test('the order of filter and nat stays the same when the Service port is renamed too', async (t) => {
  const rig = new Rig();
  const named = (name: string): Row => service('web', { clusterIPs: ['10.96.0.10'], ports: [{ name, port: 80 }] });
  rig.commit([...NODE_ROWS, named('a')]);
  await rig.sync();
  rig.commit([named('b'), slice('web', [{ address: '10.0.1.1' }], { ports: [{ name: 'b', port: 8080 }] })]);
  const sent = await rig.during(() => rig.sync());
  t.match([sent[0], sent.at(-1)], [/^chain nat /, 'chain filter KUBE-SERVICES']);
  t.same(await rig.difference(), []);
});

/** A Service that refuses some connections, in each way there is, with these endpoints. */
function refusing(index: number, row: Parameters<typeof service>[1], ...addresses: readonly string[]): readonly Row[] {
  const ports = [{ port: 80, nodePort: 30000 + index }];
  const endpoints = addresses.map((each) => ({ address: each, node: each.startsWith('10.1.') ? 'me' : 'other' }));
  const name = `refusing-${index}`;
  return [service(name, { clusterIPs: [`10.97.0.${index}`], ports, ...row }), slice(name, endpoints)];
}

const REFUSING: readonly (readonly [number, Parameters<typeof service>[1]])[] = [
  [1, { externalIPs: ['192.0.2.11'] }],
  [2, { loadBalancer: ['192.0.2.12'], sourceRanges: ['203.0.113.0/24', '198.18.0.0/15'] }],
  [3, { loadBalancer: ['192.0.2.13'], externalTrafficPolicy: 'Local' }],
  [4, { internalTrafficPolicy: 'Local' }],
  [5, { loadBalancer: ['192.0.2.15'], sourceRanges: ['203.0.113.0/24'], externalTrafficPolicy: 'Local' }],
];

t.test('after a restart, too, a refusal is removed only after its translation is written', async (t) => {
  for (const unsynced of [false, true]) {
    for (const before of [[], ['10.0.9.1']]) {
      const rig = new Rig();
      rig.commit([...NODE_ROWS, ...REFUSING.flatMap(([index, row]) => refusing(index, row, ...before))]);
      await rig.sync();
      const refusals = (): readonly string[] =>
        rig.kernel.chains('filter').flatMap((name) => rig.kernel.rules('filter', name) ?? []);
      const held = refusals().filter((rule) => / -j (REJECT|DROP)/.test(rule) && !rule.includes('INVALID'));
      t.ok(held.length > 5);

      const late = new Rig(rig.kernel);
      late.unsynced(unsynced);
      late.commit([...NODE_ROWS, ...REFUSING.flatMap(([index, row]) => refusing(index, row, ...before))]);
      t.equal((await late.sync()).transactions, 0, 'nothing happened, nothing is sent');

      const last = new Rig(rig.kernel);
      last.unsynced(unsynced);
      last.commit([...NODE_ROWS, ...REFUSING.flatMap(([index, row]) => refusing(index, row, '10.1.9.1'))]);
      const seen: (readonly string[])[] = [];
      rig.kernel.onRestored = () => seen.push(refusals());
      t.equal((await last.sync()).transactions, 2);
      rig.kernel.onRestored = null;
      const [first = []] = seen;
      t.same(
        held.filter((rule) => !first.includes(rule)),
        [],
        'all of them while the translations are written',
      );
      t.same(await last.difference(), [], 'and none for longer');
    }
  }
});

t.test('a new connection walks few rules of a large dispatch chain', async (t) => {
  const rig = await cluster(1000, 1);
  const rules = (name: string): readonly string[] => rig.kernel.rules('nat', name) ?? [];
  const longest = Math.max(...rig.kernel.chains('nat').map((name) => rules(name).length));
  t.equal(rules('KUBE-SERVICES').length, 18);
  t.equal(rules('KUBE-SERVICES')[0], '-d 0.0.0.0/0.0.0.15 -j KUBE-SVC-IP-0');
  t.equal(rules('KUBE-SVC-IP-A')[15], '-d 0.0.0.240/0.0.0.240 -j KUBE-SVC-IP-AF');
  t.ok(longest <= 18, `${longest} rules in the longest chain`);
});

t.test('node port chains are divided by range, and merged when few remain', async (t) => {
  const rig = new Rig();
  const of = (index: number): Row =>
    service(`web-${index}`, { clusterIPs: [`10.96.0.${index}`], ports: [{ port: 80, nodePort: 30000 + index }] });
  rig.commit([...NODE_ROWS, ...Array.from({ length: 80 }, (_, index) => of(index))]);
  await rig.sync();
  t.equal(
    rig.kernel.rules('filter', 'KUBE-EXTERNAL-NP')?.[0],
    '-p tcp -m tcp --dport 29952:30015 -j KUBE-EXTERNAL-NP-T1D4',
  );
  t.ok(rig.kernel.chains('filter').includes('KUBE-SERVICES-00'));
  t.same(await rig.difference(), []);
  rig.commit(
    [],
    Array.from({ length: 20 }, (_, index) => ({ kind: 'Service', namespace: 'default', name: `web-${index}` })),
  );
  await rig.sync();
  t.notOk(rig.kernel.chains('filter').some((name) => /^KUBE-(SERVICES|EXTERNAL-NP)-/.test(name)));
  t.same(await rig.difference(), []);
});

/** The probability with which each endpoint is drawn from a chain. */
function shares(rig: Rig, chain: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const walk = (name: string, reaching: number): void => {
    let left = reaching;
    for (const rule of rig.kernel.rules('nat', name) ?? []) {
      const share = left * Number(/--probability (\S+)/.exec(rule)?.[1] ?? 1);
      const endpoint = /--to-destination (\S+)/.exec(rule)?.[1];
      const target = jumpTarget(rule);
      if (target === 'KUBE-MARK-MASQ') continue;
      if (endpoint !== undefined) found.set(endpoint, (found.get(endpoint) ?? 0) + share);
      else if (target !== null) walk(target, share);
      left -= share;
    }
  };
  walk(chain, 1);
  return found;
}

t.test('every endpoint of a long list has the same probability, and a change rewrites little', async (t) => {
  for (const count of [1, 2, 64, 65, 250, 1000]) {
    const rig = await cluster(1, count);
    const [chain = ''] = rig.kernel.chains('nat').filter((name) => /^KUBE-SVC-[A-Z2-7]{16}$/.test(name));
    const found = shares(rig, chain);
    t.equal(found.size, count);
    t.ok(
      [...found.values()].every((share) => Math.abs(share * count - 1) < 1e-4),
      `1/${count} each`,
    );
    t.same(await rig.difference(), []);
  }
  const rig = await cluster(1, 1000);
  rig.commit([endpoints(0, 1001)]);
  const changed = await rig.during(() => rig.sync());
  t.equal(changed.length, 2, changed.join());
});

/** @param compares whether the next call lists everything before it sends what is pending. */
const FAULTS: readonly { readonly fault: IptablesFault; readonly full: boolean; readonly compares: boolean }[] = [
  // Jumps of built-in chains may be there or not.
  { fault: 'lose-ack', full: true, compares: true },
  { fault: 'fail-list', full: true, compares: true },
  // Chains are replaced as a whole, whatever they are.
  { fault: 'lose-ack', full: false, compares: false },
  { fault: 'fail-digests', full: false, compares: false },
];

for (const { fault, full, compares } of FAULTS) {
  t.test(
    `${fault}, ${full ? 'full' : 'a change'}: pending rules are sent again, and no repair is reported`,
    async (t) => {
      const rig = await cluster(3, 2);
      rig.commit(DNS);
      await rig.sync();
      rig.kernel.faults.push(fault);
      rig.commit([endpoints(1, 3)], DNS_REFS);
      await t.rejects(rig.sync(full));
      rig.commit([endpoints(2, 4)]);
      const listings = rig.kernel.listed.length;
      const report = await rig.sync();
      t.equal(report.full, compares);
      t.equal(rig.kernel.listed.length > listings, compares);
      t.equal(report.transactions, 1);
      t.same(report.repairs, [], 'its own failure is no damage');
      t.same(report.flows, compares ? 'all' : new Set(['10.96.0.53:53/UDP']), 'of the failed change too');
      t.same(await rig.difference(), []);
      t.same(await rig.during(() => rig.sync()), [], 'and it trusts itself again');
    },
  );
}

for (const fault of ['refuse', 'refuse-last'] as const) {
  for (const full of [false, true]) {
    t.test(
      `${fault} once, ${full ? 'full' : 'a change'}: rules are sent again in the same sync, after a comparison`,
      async (t) => {
        const rig = await cluster(3, 2);
        rig.kernel.faults.push(fault);
        rig.commit([endpoints(1, 3), web(5)]);
        const report = await rig.sync(full);
        t.same([report.full, report.repairs, report.quarantined, report.flows], [true, [], [], 'all']);
        t.same(await rig.difference(), []);
        t.same(await rig.during(() => rig.sync()), []);
      },
    );
  }
}

t.test('after a lost answer only the lost and the changed chains are sent', async (t) => {
  const rig = await cluster(300, 2);
  const before = await rig.sync();
  rig.kernel.faults.push('lose-ack');
  rig.commit([endpoints(1, 3)]);
  await t.rejects(rig.sync());
  rig.commit([endpoints(1, 2), endpoints(2, 4)]);
  let report = before;
  const sent = await rig.during(async () => (report = await rig.sync()));
  t.match(sent, [/^chain nat KUBE-SVC-[A-Z2-7]{16}$/, /^chain nat KUBE-SVC-[A-Z2-7]{16}$/], 'what it was before, too');
  t.same(report.rules?.held, { ...before.rules?.held, nat: (before.rules?.held['nat'] ?? 0) + 2 });
  t.same(report.rules?.written, { filter: 0, nat: 3 + 5 });
  t.same(await rig.difference(), []);
});

t.test('a refusal whose stream was lost is removed only after its translation', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, web(1), endpoints(1, 1)]);
  await rig.sync();
  rig.kernel.faults.push('lose-ack');
  rig.commit([endpoints(1, 0)]);
  await t.rejects(rig.sync());
  t.equal(rig.kernel.rules('filter', 'KUBE-SERVICES')?.length, 1);
  rig.commit([endpoints(1, 1)]);
  const refusals: unknown[] = [];
  rig.kernel.onRestored = () => refusals.push(rig.kernel.rules('filter', 'KUBE-SERVICES')?.length);
  await rig.sync();
  t.same(refusals, [1, 0]);
  t.same(await rig.difference(), []);
});

t.test('a restart sends only what changed meanwhile', async (t) => {
  const rig = await cluster(100, 2);
  rig.restart();
  const report = await rig.sync();
  t.equal(report.full, true);
  t.equal(report.transactions, 0);
  rig.restart();
  rig.commit([endpoints(4, 5)]);
  t.equal((await rig.during(() => rig.sync())).length, 1);
  t.same(await rig.difference(), []);
});

t.test('removed UDP frontends are reported until their flows are deleted', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, ...DNS]);
  await rig.sync();
  rig.commit([], DNS_REFS);
  const { flows } = await rig.sync();
  t.same(flows, new Set(['10.96.0.53:53/UDP']));
  t.same(rig.dataplane.goneFlows(), new Set(['10.96.0.53:53/UDP']));
  rig.commit(DNS);
  await rig.sync();
  t.same(rig.dataplane.goneFlows(), new Set(), 'it is back');
  rig.commit([], DNS_REFS);
  rig.restart();
  await rig.sync();
  t.same(rig.dataplane.goneFlows(), new Set(['10.96.0.53:53/UDP']), 'a restart reads what its predecessor had');
  await rig.dataplane.clearGoneFlows(new Set(['10.96.0.53:53/UDP']));
  t.same(rig.dataplane.goneFlows(), new Set());
});

t.test('with unsynced sources, rules that the plan lacks stay until all sources are synced', async (t) => {
  const rig = await cluster(70, 2);
  const held = rig.kernel.chains('nat').length;
  const late = new Rig(rig.kernel);
  late.unsynced(true);
  late.commit([...NODE_ROWS, web(1), endpoints(1, 3)]);
  const first = await late.sync();
  t.equal(first.transactions, 1);
  t.equal(rig.kernel.chains('nat').length, held);
  late.commit([], [{ kind: 'Service', namespace: 'default', name: 'web-1' }]);
  await late.sync();
  t.equal(
    rig.kernel.chains('nat').length,
    held - 2,
    'its chain and its leaf: what the plan did name goes when it says so',
  );
  late.unsynced(false);
  await late.sync(true);
  t.same(await late.difference(), []);
  t.notOk(rig.kernel.chains('nat').some((name) => /^KUBE-SVC-[A-Z2-7]{16}$/.test(name)));
});

t.test('changed settings of iptables mode are applied by the next full sync', async (t) => {
  const rig = new Rig();
  rig.commit([node('me', ['192.168.0.2'])]);
  await rig.sync();
  rig.settings = { dropInvalid: false };
  await rig.sync(true);
  t.notOk(rig.kernel.rules('filter', 'KUBE-FORWARD')?.some((rule) => rule.includes('INVALID')));
});

t.test('node ports on loopback always have a guard, however often they are switched', async (t) => {
  const rig = new Rig();
  rig.commit(NODE_ROWS);
  await rig.sync();
  const rule = (): string => rig.kernel.rules('nat', 'KUBE-SERVICES')?.at(-1) ?? '';
  t.match(rule(), /^-m comment/);
  const traits = {
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    prefersLocal: false,
    retriesAttempts: 'without-affinity' as const,
    servesLocalhost: false,
    listensOnLocalhost: false,
    balancesOnly: false,
  };
  rig.configure({ traits });
  t.same(await rig.during(() => rig.sync()), ['chain filter KUBE-EXTERNAL-SERVICES', 'chain nat KUBE-SERVICES']);
  t.match(rule(), /^! -d 127/);
  t.same(await rig.difference(), []);
  t.match(rig.kernel.rules('filter', 'KUBE-FIREWALL'), [/^! -s 127/], 'kubelet wants it as well');
  await rig.sync(true);
  rig.kernel.tamper('filter', (chains) => chains.set('KUBE-FIREWALL', []));
  rig.configure({});
  const { full } = await rig.sync();
  t.ok(full, 'so that who waits for the guard knows that it is there');
  t.match(rule(), /^-m comment/);
  t.match(rig.kernel.rules('filter', 'KUBE-FIREWALL'), [/^! -s 127/]);
});
