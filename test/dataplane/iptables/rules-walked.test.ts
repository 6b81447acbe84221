// How many rules of dispatch chains the first packet of a connection walks, counted exactly, and what another Service's frontends add to that.
import t from 'tap';
import { inFull, usually } from '../../support/extent.js';
import { crowdAround } from '../../support/crowded-addresses.js';
import { jumpTarget } from '../../support/fake-iptables/rule-text.js';
import { service, slice } from '../../support/rows.js';
import { MOST_WALKED, walk } from '../../support/rules-walked.js';
import type { Row } from '../../../src/state/rows.js';
import { cluster } from './cluster.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Web-10 of the cluster. */
const VICTIM = '10.96.0.10';
const PORT = 80;

function toVictim(rig: Rig, address = VICTIM): number {
  const rulesOf = (chain: string): readonly string[] => rig.kernel.rules('nat', chain, rig.family) ?? [];
  const { rules, end } = walk(rulesOf, 'KUBE-SERVICES', { address, port: PORT }, ['KUBE-SVC-IP-']);
  if (end === null) throw new Error(`no rule selects ${address}`);
  return rules;
}

/** One Service with as many frontends. */
function other(addresses: readonly string[], ports = 1): readonly Row[] {
  const all = Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: PORT + index }));
  return [
    service('other', { clusterIPs: ['10.96.200.1'], loadBalancer: addresses, ports: all }),
    slice('other', [{ address: '10.0.0.1' }], { ports: all }),
  ];
}

async function withOther(rows: readonly Row[]): Promise<readonly [before: number, after: number]> {
  const rig = await cluster(200, 1);
  const before = toVictim(rig);
  rig.commit(rows);
  await rig.sync();
  t.same(await rig.difference(), []);
  return [before, toVictim(rig)];
}

t.test('200 Services: a connection walks two short chains, and the frontends with the same last byte', async (t) => {
  const [before, after] = await withOther(other(['203.0.113.1']));
  t.same([before, after], [11 + 1 + 1, 11 + 1 + 1], 'of another last byte it costs nothing');
});

t.test('1,000 frontends of another Service are spread over the chains of 256 last bytes', async (t) => {
  const spread = Array.from({ length: 1000 }, (_, at) => `1.0.${at >> 8}.${at & 255}`);
  const [before, after] = await withOther(other(spread));
  t.same([before, after], [13, 17]);
});

t.test('of 1,000 frontends with the last byte of a Service, its connections walk few', async (t) => {
  const same = Array.from({ length: 1000 }, (_, at) => `1.${at >> 8}.${at & 255}.10`);
  const [before, after] = await withOther(other(same));
  t.same([before, after], [13, 19]);
  const [, beside] = await withOther(other(same.map((address) => address.replace(/10$/, '11'))));
  t.equal(beside, 13, 'those of another last byte cost nothing');
});

t.test('1,000 ports on one address cost the connections of others one rule', inFull, async (t) => {
  const [before, after] = await withOther(other(['203.0.113.10'], 1000));
  t.same([before, after], [13, 14]);
});

t.test('addresses chosen against one IPv4 address add 16 jumps for each nibble', async (t) => {
  const [before, after] = await withOther(other(crowdAround(VICTIM, 8), 3));
  t.equal(before, 13);
  t.ok(after <= MOST_WALKED, `${after} rules`);
  t.ok(after >= 30, 'it is a test of something');
  const rig = new Rig();
  const last = service('last', { clusterIPs: ['223.255.255.255'] });
  rig.commit([...NODE_ROWS, last, slice('last', [{ address: '10.0.0.2' }])]);
  rig.commit(other(crowdAround('223.255.255.255', 8), 3));
  await rig.sync();
  const most = toVictim(rig, '223.255.255.255');
  t.ok(most <= MOST_WALKED, `${most} rules where all branches are walked`);
  t.ok(most > 100);
});

t.test(
  'addresses chosen against an IPv6 Service leave its connections a bounded number of rules',
  inFull,
  async (t) => {
    const victim = 'fd00:96::a';
    const rig = new Rig(undefined, 'IPv6');
    const crowd = crowdAround(victim, 8);
    // They differ from the Service's address beyond all nibbles that divide.
    const beyond = Array.from({ length: 1000 }, (_, index) => `2001:${(index + 1).toString(16)}::a`);
    rig.commit([
      ...NODE_ROWS,
      service('web', { clusterIPs: [victim] }),
      slice('web', [{ address: 'fd00::2' }]),
      service('other', { clusterIPs: ['fd00:96::c8'], externalIPs: [...crowd, ...beyond] }),
      slice('other', [{ address: 'fd00::1' }]),
    ]);
    await rig.sync();
    t.same(await rig.difference(), []);
    const rules = toVictim(rig, victim);
    t.ok(rules <= MOST_WALKED, `${rules} rules`);
  },
);

/** Jumps from a chain on to the end of the longest way. */
function depthOf(rig: Rig, chain: string): number {
  const targets = (rig.kernel.rules('nat', chain, rig.family) ?? []).map((rule) => jumpTarget(rule));
  return 1 + Math.max(0, ...targets.map((target) => (target === null ? 0 : depthOf(rig, target))));
}

t.test("dispatch chains nest less deep than the kernel's limit of 15 jumps", async (t) => {
  for (const family of usually(['IPv4'] as const, ['IPv4', 'IPv6'] as const)) {
    const rig = new Rig(undefined, family);
    const victim = family === 'IPv4' ? '203.0.113.10' : '2001:db8::a';
    const endpoints = Array.from({ length: 100 }, (_, index) => ({
      address: family === 'IPv4' ? `10.0.1.${index + 1}` : `fd00::1:${index + 1}`,
    }));
    const ports = Array.from({ length: 3000 }, (_, index) => ({ name: `p${index}`, port: PORT + index }));
    rig.commit([
      ...NODE_ROWS,
      service('one', {
        clusterIPs: [family === 'IPv4' ? '10.96.0.7' : 'fd00:96::7'],
        loadBalancer: [...crowdAround(victim, 8)],
        sourceRanges: ['198.51.100.0/24', '2001:db8:1::/48'],
        ports: ports.slice(0, 3),
      }),
      service('many', {
        clusterIPs: [family === 'IPv4' ? '10.96.0.8' : 'fd00:96::8'],
        loadBalancer: [victim],
        sourceRanges: ['198.51.100.0/24', '2001:db8:1::/48'],
        ports,
      }),
      slice('one', endpoints, { ports: ports.slice(0, 3) }),
      slice('many', endpoints, { ports: ports.slice(0, 3) }),
      slice('many', endpoints.slice(0, 1), { name: 'rest', ports: ports.slice(3) }),
    ]);
    await rig.sync();
    t.same(await rig.difference(), []);
    const depth = depthOf(rig, 'KUBE-SERVICES');
    t.ok(depth <= 15, `${depth} jumps`);
    t.ok(depth >= 12);
  }
});

function chainsOf(rig: Rig): readonly (readonly [string, readonly string[]])[] {
  return [...rig.kernel.every('nat', 'IPv4')].sort(([one], [other]) => (one < other ? -1 : 1));
}

t.test('chains are divided and merged as frontends come and go, and changes rewrite few', async (t) => {
  const rig = await cluster(200, 1);
  const addresses = Array.from({ length: 100 }, (_, at) => `1.${at % 3}.${at}.10`);
  for (const count of usually([31, 33, 100, 30, 0], [20, 31, 32, 33, 100, 99, 33, 30, 31, 70, 0])) {
    rig.commit(other(addresses.slice(0, count)));
    await rig.sync();
    t.same(await rig.difference(), [], `${count} frontends`);
    const fresh = await cluster(200, 1);
    fresh.commit(other(addresses.slice(0, count)));
    await fresh.sync();
    t.same(chainsOf(rig), chainsOf(fresh), `${count} frontends: as after a start`);
  }
  rig.commit(other(addresses));
  await rig.sync();
  const sent = await rig.during(async () => {
    rig.commit(other([...addresses, '1.7.7.10']));
    await rig.sync();
  });
  t.ok(sent.length <= 4, sent.join());
});

t.test('source ranges of a Service without endpoints cost connections that it refuses, and no others', async (t) => {
  const rig = await cluster(200, 1);
  const ranged = (count: number, ...addresses: readonly string[]): readonly Row[] => [
    service('ranged', {
      clusterIPs: ['10.96.200.2'],
      loadBalancer: ['192.0.2.10'],
      sourceRanges: Array.from({ length: count }, (_, index) => `198.51.${index}.0/24`),
    }),
    slice(
      'ranged',
      [...addresses].map((address) => ({ address })),
      { family: 'IPv4' },
    ),
  ];
  const firewall = (): readonly string[] => rig.kernel.rules('filter', 'KUBE-PROXY-FIREWALL') ?? [];
  const own = (): readonly string[] => rig.kernel.chains('filter').filter((name) => /^KUBE-REF-FW-/.test(name));
  for (const [count, rules, chains] of [
    [2, 3, 0],
    [100, 1, 1],
    [3, 1, 1],
    [1, 2, 0],
    [200, 1, 1],
  ] as const) {
    rig.commit(ranged(count));
    await rig.sync();
    t.equal(firewall().length, rules, `${count} ranges`);
    t.equal(own().length, chains);
    t.same(await rig.difference(), []);
  }
  t.equal(rig.kernel.rules('filter', own()[0] ?? '')?.length, 201);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart finds it');
  rig.commit(ranged(200, '10.0.0.1'));
  await rig.sync();
  t.same(own(), [], 'with endpoints nothing has to be refused');
  t.equal(firewall().length, 1);
  t.same(await rig.difference(), []);
});
