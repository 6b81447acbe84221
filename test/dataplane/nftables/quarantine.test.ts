import t from 'tap';
import { blamedNodeFaults } from '../../../src/dataplane/contract.js';
import type { FrontendKey } from '../../../src/plan/types.js';
import type { Row, RowRef } from '../../../src/state/rows.js';
import { FakeKernel } from '../../support/fake-kernel/fake-kernel.js';
import { usually } from '../../support/extent.js';
import { SeededRandom } from '../../support/random.js';
import { node, type ServiceText } from '../../support/rows.js';
import {
  quarantined,
  gone,
  keyOf,
  others,
  refuse,
  rowsOf,
  settle,
  started,
  STILL_TO_REMOVE,
  UDP,
} from './quarantine-scene.js';
import { compiler, elementLines, NODE_ROWS, Rig } from './rig.js';

/** Frontends that the kernel refuses: they are quarantined, and nobody else waits for them. */

t.test('a refused frontend among a thousand is quarantined by the first sync', async (t) => {
  const rig = new Rig(new FakeKernel(compiler));
  rig.commit([...NODE_ROWS, ...Array.from({ length: 1000 }, (_, number) => rowsOf(number, 1)).flat()]);
  refuse(rig, [keyOf(500)]);
  const report = await rig.sync();
  t.match(report.quarantined, [{ frontend: keyOf(500), reason: /EINVAL/, since: 0, retryAt: 1000 }]);
  t.same(await others(rig, [keyOf(500)]), []);
  t.same([report.full, report.repairs, report.problems], [true, [], []]);

  const listings = rig.kernel.listed.length;
  rig.commit(rowsOf(3, 4));
  const sent = await rig.during(async () => {
    t.match(await rig.sync(), { full: false, transactions: 2, quarantined: [{ frontend: keyOf(500) }] });
  });
  t.same(elementLines(sent), ['delete frontends 1', 'add frontends 1', 'add endpoints 3', 'add hairpin-pairs 3']);
  t.same(await rig.during(() => rig.sync()), [], 'before its time nothing is tried');
  rig.now = 1000;
  t.match((await rig.sync()).quarantined, [{ since: 0, retryAt: 3000 }], 'refused again it waits for longer');
  t.equal(await rig.dataplane.audit(), false);
  t.equal(rig.kernel.listed.length, listings, 'nothing was listed for it');
  rig.kernel.touch();
  t.equal(await rig.dataplane.audit(), false, 'it is no loss');
  t.match(await rig.sync(true), { full: true, repairs: [], quarantined: [{ retryAt: 3000 }] });

  rig.kernel.faults.refuses = null;
  t.match((await rig.sync()).quarantined, [{ retryAt: 3000 }]);
  rig.now = 3000;
  const accepted = await rig.sync();
  t.match(accepted, { full: false, transactions: 1, quarantined: [] });
  t.same(await rig.difference(), []);
  t.same(await rig.during(() => rig.sync()), []);
});

for (const { name, module, isVital } of [
  { name: 'numgen', module: 'nft_numgen', isVital: true },
  { name: 'jhash', module: 'nft_hash', isVital: false },
])
  t.test(`${name}, which the kernel lacks, is a fault of the node that is named once`, async (t) => {
    const lacking = new Set([name]);
    const rig = new Rig(new FakeKernel(compiler, { lacking }));
    const numbers = Array.from({ length: 300 }, (_, number) => number);
    const needs = (number: number): boolean => isVital || number % 3 === 0;
    const balance = { by: 'address', unreadable: [] } as const;
    const rows = (number: number): readonly Row[] => rowsOf(number, 2, !isVital && needs(number) ? { balance } : {});
    rig.commit([...NODE_ROWS, ...numbers.flatMap(rows)]);
    const report = await rig.sync();
    t.match(report.nodeFaults, [{ remedy: new RegExp(`^modprobe -a ${module},`), isVital }]);
    const [{ text } = { text: '' }] = report.nodeFaults ?? [];
    t.match(text, new RegExp(`lacks ${name} .*no module ${module}$`));
    t.same(report.quarantined.map(({ frontend }) => frontend).sort(), numbers.filter(needs).map(keyOf).sort());
    t.ok(report.quarantined.every(({ reason, ofNode }) => reason === text && ofNode === true));
    t.same(await others(rig, numbers.filter(needs).map(keyOf)), [], 'the others are served');
    t.same(await rig.during(() => rig.sync()), [], 'parts are not tried again while nothing else is');
    lacking.clear();
    for (let round = 0; round < 30 && (await rig.sync()).quarantined.length > 0; round++) rig.now += 60_000;
    t.same((await rig.sync()).nodeFaults ?? [], []);
    t.same(await rig.difference(), []);
  });

t.test('an expression of the skeleton that the kernel lacks fails the sync and is named', async (t) => {
  const lacking = new Set(['fib', 'masquerade']);
  const rig = new Rig(new FakeKernel(compiler, { lacking }));
  rig.commit([...NODE_ROWS, ...rowsOf(1)]);
  const error: unknown = await rig.sync().then(
    () => null,
    (error: unknown) => error,
  );
  t.match(blamedNodeFaults(error), [
    { text: /lacks fib, masquerade .*no module nft_fib_ipv4, nft_masq$/, isVital: true },
  ]);
  lacking.clear();
  await rig.sync();
  t.same(await rig.difference(), []);
});

t.test("a reason that nearly all frontends have is the node's, and not one of few", async (t) => {
  const rig = await started(20);
  const all = Array.from({ length: 20 }, (_, number) => number);
  refuse(rig, all.map(keyOf));
  rig.commit(all.flatMap((number) => rowsOf(number, 4)));
  await rig.sync().catch(() => null);
  const { nodeFaults, quarantined } = await rig.sync();
  t.equal(quarantined.length, 20);
  t.match(nodeFaults, [{ text: /refuses nearly all frontends for one reason: .*EINVAL/, isVital: true }]);
  t.ok(quarantined.every(({ ofNode }) => ofNode === true));
  refuse(rig, all.slice(10).map(keyOf));
  for (let round = 0; round < 10 && (await rig.sync()).quarantined.length > 10; round++) rig.now += 60_000;
  const fewer = await rig.sync();
  t.equal(fewer.quarantined.length, 10);
  t.same(fewer.nodeFaults ?? [], [], "a half of them may be a tenant's");
});

t.test('a refused frontend is quarantined in a sync of many transactions', async (t) => {
  const rig = new Rig(new FakeKernel(compiler));
  rig.kernel.maxBatch = 40 * 1024;
  const refused = [keyOf(50), keyOf(150)];
  rig.commit([...NODE_ROWS, ...Array.from({ length: 200 }, (_, number) => rowsOf(number, 1)).flat()]);
  refuse(rig, refused);
  const report = await rig.sync();
  t.match(report, { full: true, quarantined: refused.map((frontend) => ({ frontend })) });
  t.ok(report.transactions > 1);
  t.same(await others(rig, refused), []);
});

t.test('a frontend that is refused in a change is quarantined by the next sync, which compares', async (t) => {
  const rig = await started(3);
  refuse(rig, [keyOf(1)]);
  rig.commit([...rowsOf(1, 5), ...rowsOf(2, 5)]);
  await t.rejects(rig.sync(), /EINVAL/);
  t.match(await rig.sync(), { full: true, repairs: [], quarantined: [{ frontend: keyOf(1) }] });
  t.same(await others(rig, [keyOf(1)]), []);
  t.match((await rig.difference())[0], /^- IPv4 .*10\.96\.0\.1:80\/TCP/, 'it has what it had');

  const sent = await rig.during(() => rig.sync());
  t.same(sent, []);
  rig.commit(rowsOf(1, 6));
  const listings = rig.kernel.listed.length;
  t.match((await rig.sync()).quarantined, [{ retryAt: 1000 }], 'its plan changed: tried at once, and waits anew');
  rig.commit(rowsOf(1, 2));
  t.same((await rig.sync()).quarantined, [], 'what the kernel has is wanted again');
  t.equal(rig.kernel.listed.length, listings);
  t.same(await rig.difference(), []);
});

t.test('a refusal that a full comparison explains quarantines no frontend', async (t) => {
  const rig = await started(3);
  await rig.kernel.nftTransact({
    family: 'ip',
    table: 'kube-proxy',
    operations: [
      { type: 'commands', commands: [{ flush: { map: { family: 'ip', table: 'kube-proxy', name: 'frontends' } } }] },
    ],
  });
  rig.commit([], [gone(1)]);
  await t.rejects(rig.sync(), /ENOENT/);
  t.same((await rig.sync()).quarantined, []);
  t.same(await rig.difference(), []);
});

t.test('a frontend that is accepted when sent alone is not quarantined', async (t) => {
  const rig = await started(3);
  refuse(rig, [keyOf(1)]);
  rig.commit([...rowsOf(1, 5), ...rowsOf(2, 5)]);
  await t.rejects(rig.sync());
  const transact = rig.kernel.nftTransact.bind(rig.kernel);
  rig.kernel.nftTransact = async (transaction) => {
    try {
      return await transact(transaction);
    } finally {
      rig.kernel.faults.refuses = null;
    }
  };
  t.match(await rig.sync(), { full: true, transactions: 2, quarantined: [] });
  t.same(await rig.difference(), []);
});

t.test('a refused removal of a frontend is quarantined, and its flows are noted when it goes', async (t) => {
  const key = '10.96.0.9:53/UDP';
  const rig = await started(3, rowsOf(9, 2, { ports: UDP }));
  refuse(rig, [key]);
  rig.commit(rowsOf(2, 3), [gone(9)]);
  t.equal(await settle(rig), 1);
  t.same(await quarantined(rig), [key]);
  t.same(await others(rig, [key]), []);
  t.same(
    (await rig.difference()).filter((line) => /^\+.* (?:10\.96\.0\.9|10\.7\.9\.\d+)$/.test(line)).length,
    3,
    'so do the addresses that go with it',
  );
  t.same([...rig.dataplane.goneFlows()], []);
  rig.commit(rowsOf(1, 3));
  t.match(await rig.sync(), { full: false, flows: new Set() });
  t.match(await rig.sync(true), { full: true, quarantined: [{ frontend: key }] });
  rig.kernel.faults.refuses = null;
  rig.now = 60_000;
  t.match(await rig.sync(), { full: false, quarantined: [], flows: new Set([key]) });
  t.match(await rig.difference(), [STILL_TO_REMOVE]);
  t.same([...rig.dataplane.goneFlows()], [key]);

  refuse(rig, [key]);
  await t.rejects(rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows()));
  await rig.sync();
  await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows());
  t.same(await quarantined(rig), [key], 'the note of its flows does not go');
  t.same([...rig.dataplane.goneFlows()], [], 'and they are not searched for any more');
  rig.commit(rowsOf(1, 2));
  t.match(await rig.sync(), { full: false, quarantined: [{ frontend: key }] });
  rig.kernel.faults.refuses = null;
  rig.now = 120_000;
  t.same(await quarantined(rig), []);
  t.same(await rig.difference(), []);
});

t.test('many refused frontends are quarantined at once', async (t) => {
  const rig = await started(60);
  const refused = Array.from({ length: 40 }, (_, index) => keyOf(index + 10)).sort();
  refuse(rig, refused);
  rig.commit(Array.from({ length: 60 }, (_, number) => rowsOf(number, 3)).flat());
  t.equal(await settle(rig), 1, 'the first may have been anything');
  t.same(await quarantined(rig), refused);
  t.same(await others(rig, refused), []);
  const { kernel } = rig;
  rig.now = 60_000;
  rig.commit(rowsOf(1, 4));
  // Class chains that only they need are made anew, each before the first that needs it is refused.
  await rig.sync();
  const listings = kernel.listed.length;
  for (let round = 0; round < 2; round++) await rig.sync();
  t.ok(
    (await rig.sync()).quarantined.every(({ retryAt }) => retryAt > rig.now),
    'all of them were tried, 16 by each sync',
  );
  t.equal(kernel.listed.length, listings);
  kernel.faults.refuses = null;
  rig.now = 120_000;
  for (let round = 0; round < 2; round++) await rig.sync();
  t.same(await quarantined(rig), []);
  t.same(await rig.difference(), []);
});

t.test('a refused chain or affinity map quarantines the frontends that use it', async (t) => {
  for (const refused of [
    / remember-clients-30-10\.96\.0\.7-tcp-80$/,
    / find-clients-10\.96\.0\.7-tcp-80$/,
    /add map clients-10\.96\.0\.7-tcp-80$/,
    / external-.*-sticky$/,
  ]) {
    const rig = await started(3);
    rig.kernel.faults.refuses = (what) => refused.test(what);
    const sticky = { type: 'NodePort', affinitySeconds: 30 } as const;
    rig.commit([
      ...rowsOf(7, 2, { ...sticky, ports: [{ port: 80, nodePort: 30007 }], externalIPs: ['192.0.2.7'] }),
      ...rowsOf(8, 3),
      ...rowsOf(2, 5),
    ]);
    t.ok((await settle(rig)) <= 1, String(refused));
    const set = await quarantined(rig);
    t.ok(set.length > 0 && set.every((key) => /10\.96\.0\.7:|192\.0\.2\.7:|nodeport:30007/.test(key)), set.join());
    t.same(await others(rig, set), []);
    rig.kernel.faults.refuses = null;
    rig.now = 60_000;
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  }
});

t.test('refused rules of an existing chain stay as they were, and are retried by the next check', async (t) => {
  const me = (prefix: string): Row => node('me', ['192.168.0.2'], { podCIDRs: [prefix] });
  const rig = new Rig(new FakeKernel(compiler), 'IPv4', { localDetection: { type: 'NodeCIDR' } });
  const local = { type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ port: 80, nodePort: 30007 }] } as const;
  rig.commit([...NODE_ROWS, me('10.7.0.0/24'), ...rowsOf(7, 2, local), ...rowsOf(8)]);
  await rig.sync();
  rig.kernel.faults.refuses = (what) => /rule nodeport-external-local/.test(what);
  rig.commit([me('10.8.0.0/24'), ...rowsOf(8, 4)]);
  await t.rejects(rig.sync());
  await rig.sync();
  t.match(await rig.difference(), [/chain nodeport-external-local/]);
  t.equal(await rig.dataplane.audit(), true, 'has everything compared');
  rig.plan();
  const check = (): Promise<unknown> => rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
  const refusedChains = [/^the kernel refuses the rules of chain nodeport-external-local.*EINVAL/];
  t.match(await check(), { full: true, quarantined: [], problems: [], refusedChains });
  rig.kernel.faults.refuses = null;
  t.match(await check(), { full: true, problems: [], refusedChains: [] });
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('refused rules of many chains do not stop a sync', async (t) => {
  const me = (prefix: string): Row => node('me', ['192.168.0.2'], { podCIDRs: [prefix] });
  const rig = new Rig(new FakeKernel(compiler), 'IPv4', { localDetection: { type: 'NodeCIDR' } });
  const services = Array.from({ length: usually(30, 80) }, (_, index) =>
    rowsOf(index, 1 + (index % 5), { externalIPs: [`192.0.2.${index}`], externalTrafficPolicy: 'Local' }),
  ).flat();
  rig.commit([...NODE_ROWS, me('10.7.0.0/24'), ...services]);
  await rig.sync();
  rig.kernel.faults.refuses = (what) => /rule external-local/.test(what);
  rig.commit([me('10.8.0.0/24'), ...rowsOf(90, 2)]);
  await t.rejects(rig.sync());
  const { refusedChains = [], quarantined } = await rig.sync();
  t.ok(refusedChains.length > 16, `${refusedChains.length} chains`);
  t.same(quarantined, []);
  t.match(
    await rig.difference(),
    refusedChains.map(() => /chain external-local/),
  );
  rig.kernel.faults.refuses = null;
  t.equal(await rig.dataplane.audit(), true);
  rig.plan();
  await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
  t.same(await rig.difference(), []);
});

t.test('random histories with refused frontends converge', async (t) => {
  for (const seed of usually([1], [1, 2, 3])) {
    const random = new SeededRandom(seed);
    const rig = await started(2);
    const numbers = Array.from({ length: 8 }, (_, index) => index + 10);
    let refused: readonly FrontendKey[] = [];
    const ever = new Set<FrontendKey>();
    for (let round = 0; round < usually(12, 40); round++) {
      const [rows, removed]: [Row[], RowRef[]] = [[], []];
      for (const number of random.some(numbers, 0.3)) {
        const fields: ServiceText = {
          affinitySeconds: random.pick([null, null, 30, 60]),
          externalIPs: random.chance(0.3) ? [`192.0.2.${number}`] : [],
          sourceRanges: random.chance(0.2) ? ['10.1.0.0/16', '10.3.0.0/16'] : [],
          loadBalancer: random.chance(0.2) ? [`198.51.100.${number}`] : [],
          externalTrafficPolicy: random.pick(['Cluster', 'Local']),
          type: 'LoadBalancer',
          ports: number % 2 === 0 ? UDP : [{ port: 80, nodePort: 30000 + number }],
        };
        if (random.chance(0.3)) removed.push(gone(number));
        else rows.push(...rowsOf(number, random.below(10), fields));
      }
      rig.commit(rows, removed);
      rig.plan();
      if (random.chance(0.3)) {
        const all = [...rig.table.frontends()].map(({ key }) => key);
        refused = random.some([...all, ...refused], 0.2);
        for (const key of refused) ever.add(key);
        refuse(rig, refused);
      }
      rig.now += random.below(3000);
      if (random.chance(0.05)) rig.restart();
      if (random.chance(0.2)) rig.kernel.touch();
      if (seed === 2) rig.kernel.faults.atRandom(random, 0.1);
      await settle(rig);
      rig.kernel.faults.clear();
      const { quarantined, problems } = await rig.sync(true);
      t.same(problems, []);
      const set = quarantined.map(({ frontend }) => frontend);
      t.same(
        set.filter((key) => !ever.has(key)),
        [],
        'only who was refused',
      );
      t.same(await others(rig, [...refused, ...set]), [], `seed ${seed}, round ${round}`);
      if (random.chance(0.3)) {
        await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows()).catch(() => undefined);
        await settle(rig);
      }
    }
    rig.kernel.faults.refuses = null;
    rig.now += 120_000;
    await settle(rig);
    t.same(await quarantined(rig), []);
    await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows());
    t.same(await rig.difference(), [], `seed ${seed}`);
    await rig.sync(true);
    t.same((await rig.during(() => rig.sync(true))).length, 0, 'and the kernel holds nothing else');
  }
});
