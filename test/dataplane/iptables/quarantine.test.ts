import t from 'tap';
import { blamedNodeFaults } from '../../../src/dataplane/contract.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';
import type { Row } from '../../../src/state/rows.js';
import { usually } from '../../support/extent.js';
import { SeededRandom } from '../../support/random.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Service ports that the kernel refuses: others do not wait for them. */

function web(index: number): Row {
  return service(`web-${index}`, { clusterIPs: [`10.96.0.${index}`] });
}

function endpoints(index: number, count: number): Row {
  const addresses = Array.from({ length: count }, (_, number) => ({
    address: `10.1.${index}.${number}`,
    node: 'other',
  }));
  return slice(`web-${index}`, addresses);
}

function frontend(index: number): string {
  return `10.96.0.${index}:80/TCP`;
}

function gone(index: number) {
  return (['Service', 'EndpointSlice'] as const).map((kind) => ({ kind, namespace: 'default', name: `web-${index}` }));
}

async function cluster(flavor: IptablesFlavor, services: number): Promise<Rig> {
  const rig = new Rig(undefined, 'IPv4', {}, flavor);
  const indexes = Array.from({ length: services }, (_, index) => index);
  rig.commit([...NODE_ROWS, ...indexes.flatMap((index) => [web(index), endpoints(index, 2)])]);
  await rig.sync();
  return rig;
}

/** The kernel takes no rule that translates to more than so many endpoints of these Services. */
function refuse(rig: Rig, indexes: readonly number[], most = 0): void {
  const refused = indexes.map((index) => new RegExp(` --to-destination 10\\.1\\.${index}\\.(\\d+):`));
  rig.kernel.refuses = (rule) => refused.some((each) => Number(each.exec(rule)?.[1] ?? -1) >= most);
}

/** What differs from the plan, of Services that the kernel takes. The node is told as planned only where all chains are. */
async function others(rig: Rig, refused: readonly number[]): Promise<readonly string[]> {
  const theirs = refused.map((index) => new RegExp(`10\\.(96\\.0|1)\\.${index}\\b`));
  const isTheirs = (line: string): boolean => line.startsWith('- IPv4 node ') || theirs.some((each) => each.test(line));
  return (await rig.difference()).filter((line) => refused.length === 0 || !isTheirs(line));
}

/** `iptables -F`. */
function flush(chains: Map<string, string[]>): void {
  for (const name of chains.keys()) chains.set(name, []);
}

/** `iptables -F`, then `-X` of all that is ours. */
function remove(chains: Map<string, string[]>): void {
  flush(chains);
  for (const name of chains.keys()) if (name.startsWith('KUBE-')) chains.delete(name);
}

for (const flavor of ['nft', 'legacy'] as const) {
  const quarantined = async (rig: Rig, full = false): Promise<readonly string[]> =>
    (await rig.sync(full)).quarantined.map(({ frontend }) => frontend).sort();

  for (const whose of ['programs', 'kernel'] as const)
    t.test(`${flavor}: a match that the ${whose} lack is the node's fault, named once`, async (t) => {
      const rig = new Rig(undefined, 'IPv4', {}, flavor);
      const { lacking } = rig.kernel;
      lacking[whose].add('-m statistic');
      const indexes = Array.from({ length: 200 }, (_, index) => index);
      const single = (index: number): boolean => index % 5 === 0;
      rig.commit([...NODE_ROWS, ...indexes.flatMap((index) => [web(index), endpoints(index, single(index) ? 1 : 2)])]);
      const sent = await rig.during(async () => {
        const { nodeFaults, quarantined } = await rig.sync();
        t.match(nodeFaults, [{ text: /match statistic of iptables/, remedy: /statistic/, isVital: true }]);
        t.match(
          nodeFaults?.[0]?.text,
          whose === 'kernel' ? /no module xt_statistic$/ : /no extension libxt_statistic\.so$/,
        );
        t.equal(quarantined.length, 160, 'all of them at once, however many they are');
        t.ok(quarantined.every(({ reason, ofNode }) => ofNode === true && reason === nodeFaults?.[0]?.text));
      });
      t.ok(sent.length < 5000, `${sent.length} operations`);
      const refused = indexes.filter((index) => !single(index));
      t.same(await others(rig, refused), [], 'what the node can program is programmed');
      t.same(await rig.during(() => rig.sync()), [], 'its parts are not tried again while nothing else is');

      rig.wait(60_000);
      t.match((await rig.sync()).nodeFaults, [{ isVital: true }]);
      lacking[whose].clear();
      for (let round = 0; round < 5 && (await rig.sync()).quarantined.length > 0; round++) rig.wait(60_000);
      const { nodeFaults = [] } = await rig.sync();
      t.same(nodeFaults, []);
      t.same(await rig.difference(), [], 'once the part is there everything is programmed');
    });

  t.test(`${flavor}: a match that one Service alone needs is the node's fault, too`, async (t) => {
    const rig = await cluster(flavor, 3);
    rig.kernel.lacking.kernel.add('-m recent');
    rig.commit([service('web-1', { clusterIPs: ['10.96.0.1'], affinitySeconds: 10 })]);
    const { nodeFaults, quarantined } = await rig.sync();
    t.match(nodeFaults, [
      { text: /match recent of iptables, which Services with sessionAffinity need/, isVital: false },
    ]);
    t.match(quarantined, [{ frontend: frontend(1), ofNode: true }]);
    t.equal(quarantined.length, 1);
    rig.kernel.refuses = (rule) => / --to-destination 10\.1\.2\./.test(rule);
    rig.commit([endpoints(2, 3)]);
    const both = (await rig.sync()).quarantined;
    t.match(
      both.find((each) => each.frontend === frontend(2)),
      { reason: /failed/ },
      'another Service has its own reason',
    );
    t.notOk(both.find((each) => each.frontend === frontend(2))?.ofNode);
  });

  t.test(`${flavor}: a target that every rule set needs fails the sync and is named`, async (t) => {
    const rig = new Rig(undefined, 'IPv4', {}, flavor);
    rig.kernel.lacking.kernel.add('-j MASQUERADE');
    rig.commit([...NODE_ROWS, web(1), endpoints(1, 2)]);
    const error: unknown = await rig.sync().then(
      () => null,
      (error: unknown) => error,
    );
    t.match(blamedNodeFaults(error), [{ text: /target MASQUERADE .*no module xt_MASQUERADE/, isVital: true }]);
    rig.kernel.lacking.kernel.clear();
    await rig.sync();
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: a refused Service is quarantined, keeps its old rules, and is retried`, async (t) => {
    const rig = await cluster(flavor, 80);
    refuse(rig, [7], 2);
    const contents = (): readonly string[] => [...rig.kernel.every('nat', 'IPv4', flavor)].flat(2).sort();
    const before = contents();
    rig.commit([endpoints(7, 3)]);
    const report = await rig.sync();
    t.match(report.quarantined, [{ frontend: frontend(7), reason: /a line:? .*failed/ }]);
    t.same(contents(), before);
    const [{ since, retryAt } = { since: NaN, retryAt: NaN }] = report.quarantined;
    t.ok(retryAt > since);
    rig.commit([endpoints(8, 3), web(90), endpoints(90, 1)], gone(9));
    const sent = await rig.during(async () => {
      t.same(await quarantined(rig), [frontend(7)]);
    });
    t.equal(sent.length, 7, 'two chains written, one removed, and the dispatch to those that come and go');
    t.same(await others(rig, [7]), []);

    rig.wait(2000);
    const [again] = (await rig.sync()).quarantined;
    t.equal(again?.since, since);
    t.ok((again?.retryAt ?? 0) - retryAt > 2000, 'longer each time');
    const checked = await rig.sync(true);
    t.same([checked.repairs, checked.quarantined.length], [[], 1], 'it is no damage');
    t.same(await rig.during(() => rig.sync()), []);

    rig.commit([endpoints(7, 1)]);
    t.same(await quarantined(rig), [], 'with another plan it is tried at once');
    t.same(await rig.difference(), []);
    rig.commit([endpoints(7, 4)]);
    t.same(await quarantined(rig), [frontend(7)]);
    rig.kernel.refuses = null;
    rig.wait(60_000);
    const last = await rig.sync();
    t.same([last.quarantined, last.full], [[], false]);
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: the first sync quarantines 20 refused Services, and no others`, async (t) => {
    const rig = new Rig(undefined, 'IPv4', {}, flavor);
    const refused = Array.from({ length: 20 }, (_, index) => 3 + 5 * index);
    refuse(rig, refused);
    const indexes = Array.from({ length: 120 }, (_, index) => index);
    rig.commit([...NODE_ROWS, ...indexes.flatMap((index) => [web(index), endpoints(index, 2)])]);
    await t.rejects(rig.sync(), /a? ?line/);
    t.same(await quarantined(rig), refused.map(frontend).sort());
    t.same(await others(rig, refused), []);
    t.notOk([...rig.kernel.every('nat', 'IPv4', flavor)].flat(2).some((rule) => rule.includes('10.96.0.3/32')));
    rig.kernel.refuses = null;
    rig.wait(60_000);
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: a start keeps a predecessor's rules of a Service that is refused now`, async (t) => {
    const rig = await cluster(flavor, 5);
    const late = new Rig(rig.kernel, 'IPv4', {}, flavor);
    refuse(late, [2], 2);
    late.commit([...NODE_ROWS, ...[1, 2, 3, 4].flatMap((index) => [web(index), endpoints(index, index + 1)])]);
    t.same(await quarantined(late), [frontend(2)]);
    t.same(await others(late, [2]), []);
    const rules = [...late.kernel.every('nat', 'IPv4', flavor)].flat(2);
    t.equal(rules.filter((rule) => /to-destination 10\.1\.2\./.test(rule)).length, 2, 'as it was');
    t.ok(rules.some((rule) => rule.includes('-d 10.96.0.2/32') && rule.includes('-j KUBE-SVC-')));
    late.wait(1e6);
    late.kernel.refuses = null;
    t.same(await quarantined(late), []);
    t.same(await late.difference(), []);
  });

  t.test(`${flavor}: a Service without endpoints whose dispatch rule is refused is quarantined`, async (t) => {
    const rig = await cluster(flavor, 70);
    rig.kernel.refuses = (rule) => rule.startsWith('filter') && rule.includes('web-5 ') && rule.includes(' REJECT ');
    rig.commit([endpoints(5, 0), endpoints(6, 0)]);
    t.same(await quarantined(rig), [frontend(5)]);
    t.same(await others(rig, [5]), []);
    rig.commit([endpoints(7, 0)], gone(5));
    t.same(await quarantined(rig), [], 'it can be removed');
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: a renamed Service port that is refused keeps the rules of the old one`, async (t) => {
    const rig = await cluster(flavor, 5);
    const named = (name: string): readonly Row[] => [
      service('named', { clusterIPs: ['10.96.0.99'], ports: [{ name, port: 80 }] }),
      slice('named', [{ address: '10.1.99.0', node: 'other' }], { ports: [{ name, port: 8080 }] }),
    ];
    rig.commit(named('a'));
    await rig.sync();
    rig.kernel.refuses = (rule) => rule.includes('named:b');
    rig.commit([...named('b'), endpoints(1, 1)]);
    t.same(await quarantined(rig), [frontend(99)]);
    const rules = [...rig.kernel.every('nat', 'IPv4', flavor)].flat(2);
    t.ok(rules.some((rule) => rule.includes('named:a')));
    t.same(await others(rig, [99]), []);
    rig.commit(named('c'));
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  });

  t.test(
    `${flavor}: no Service is quarantined if everything is refused, or external changes removed chains`,
    async (t) => {
      const rig = await cluster(flavor, 5);
      rig.kernel.tamper(
        'nat',
        (chains) => {
          for (const [name, rules] of chains) if (rules.length > 0) chains.set(name, []);
          for (const name of chains.keys()) if (name.startsWith('KUBE-SVC-')) chains.delete(name);
        },
        flavor,
      );
      rig.commit([web(9), endpoints(9, 1)]);
      const repairing = await rig.sync();
      t.same([repairing.quarantined, repairing.full], [[], true]);
      t.ok(repairing.repairs.length > 5);
      t.same(await rig.difference(), []);

      const restore = rig.kernel.iptablesRestore.bind(rig.kernel);
      rig.kernel.iptablesRestore = async (transaction) => {
        rig.kernel.faults.push('refuse');
        return await restore(transaction);
      };
      rig.commit([endpoints(1, 3), endpoints(2, 3)]);
      await t.rejects(rig.sync());
      rig.kernel.iptablesRestore = restore;
      t.same(await quarantined(rig), []);
      t.same(await rig.difference(), []);
    },
  );

  t.test(`${flavor}: damage of quarantined rules is reported once, and does not block other Services`, async (t) => {
    const rig = await cluster(flavor, 5);
    refuse(rig, [2], 2);
    rig.commit([endpoints(2, 3)]);
    await rig.sync();
    refuse(rig, [2]);
    rig.kernel.tamper(
      'nat',
      (chains) => {
        for (const [name, rules] of chains) if (name.startsWith('KUBE-') || rules.length > 0) chains.set(name, []);
        for (const name of chains.keys()) if (name.startsWith('KUBE-')) chains.delete(name);
      },
      flavor,
    );
    const found = await rig.sync(true);
    t.ok(found.repairs.length > 5);
    t.same(
      found.quarantined.map((each) => each.frontend),
      [frontend(2)],
    );
    t.same(await others(rig, [2]), []);
    t.same((await rig.sync(true)).repairs, []);
  });

  t.test(
    `${flavor}: Services whose chains were removed externally are not quarantined for a refused one`,
    async (t) => {
      const rig = await cluster(flavor, 40);
      rig.kernel.tamper(
        'nat',
        (chains) => {
          for (const name of chains.keys()) if (name.startsWith('KUBE-')) chains.set(name, []);
          for (const name of chains.keys()) if (/^KUBE-(SVC|SEP|EXT)-/.test(name)) chains.delete(name);
        },
        flavor,
      );
      refuse(rig, [2], 2);
      rig.commit([endpoints(2, 3)]);
      t.same(await quarantined(rig), [frontend(2)]);
      t.same(await others(rig, [2]), []);
    },
  );

  t.test(`${flavor}: external changes to rules of a quarantined Service are undone`, async (t) => {
    const rig = await cluster(flavor, 5);
    refuse(rig, [2], 2);
    rig.commit([endpoints(2, 3), endpoints(3, 3)]);
    t.same(await quarantined(rig), [frontend(2)]);
    const contents = (): readonly string[] => [...rig.kernel.every('nat', 'IPv4', flavor)].flat(2);
    const before = contents();
    for (const tamper of [flush, remove]) {
      rig.kernel.tamper('nat', tamper, flavor);
      const found = await rig.sync(true);
      t.match(found.quarantined, [{ frontend: frontend(2) }], tamper.name);
      t.ok(found.repairs.length > 5);
      t.same([...contents()].sort(), [...before].sort(), tamper.name);
      t.same((await rig.sync(true)).repairs, []);
      t.same(await rig.during(() => rig.sync()), []);
    }
    refuse(rig, [2]);
    rig.kernel.tamper('nat', flush, flavor);
    t.match((await rig.sync(true)).quarantined, [{ frontend: frontend(2) }]);
    const ofOthers = (rules: readonly string[]): readonly string[] =>
      rules.filter((rule) => !/10\.(1\.2\.|96\.0\.2\/)/.test(rule)).sort();
    t.same(ofOthers(contents()), ofOthers(before), 'if the kernel refuses that too, nothing waits for it');
    t.same(await rig.during(() => rig.sync()), []);
    rig.kernel.refuses = null;
    rig.wait(60_000);
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: a dispatch rule that the kernel holds but no longer accepts is removed`, async (t) => {
    const rig = await cluster(flavor, 80);
    rig.kernel.refuses = (rule) => /web-(16|32)[ :]/.test(rule);
    const entries = (): number =>
      [...rig.kernel.every('nat', 'IPv4', flavor)]
        .flat(2)
        .filter((rule) => / -d 10\.96\..* -j KUBE-SVC-/.test(` ${rule}`)).length;
    for (const index of Array.from({ length: 50 }, (_, each) => 30 + each)) rig.commit([], gone(index));
    rig.commit([endpoints(1, 0)]);
    t.same(await quarantined(rig), [frontend(16)], 'the other is gone');
    t.equal(entries(), 28);
    t.same(await others(rig, [16]), []);
    rig.kernel.refuses = null;
    rig.wait(60_000);
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  });

  t.test(`${flavor}: in a random history all Services but the refused ones are right after each sync`, async (t) => {
    for (const seed of usually([1], [1, 2, 3])) {
      const random = new SeededRandom(seed);
      const rig = new Rig(undefined, 'IPv4', {}, flavor);
      rig.commit(NODE_ROWS);
      let refused: number[] = [];
      for (let step = 0; step < usually(20, 60); step++) {
        if (random.chance(0.2)) refused = random.some([1, 2, 3, 4, 5], 0.3);
        refuse(rig, refused, 2);
        for (const index of [1, 2, 3, 4, 5, 6, 7, 8]) {
          if (random.chance(0.2)) rig.commit([], gone(index));
          else if (random.chance(0.5)) rig.commit([web(index), endpoints(index, random.below(5))]);
        }
        if (random.chance(0.2)) rig.configure({ masqueradeAll: random.chance(0.5) });
        if (random.chance(0.1)) rig.restart();
        if (random.chance(0.3)) rig.kernel.faults.push(random.pick(['lose-ack', 'refuse-last', 'fail-digests']));
        rig.wait(random.below(3000));
        const isDamaged = random.chance(0.1);
        if (isDamaged) rig.kernel.tamper('nat', remove, flavor);
        const report = await rig.sync(isDamaged || random.chance(0.1)).catch(() => null);
        if (report === null) continue;
        const names = report.quarantined.map((each) => each.frontend);
        const indexes = names.map((name) => Number(/^10\.96\.0\.(\d+):/.exec(name)?.[1]));
        t.ok(indexes.every((index) => refused.includes(index) || rig.kernel.faults.length === 0));
        t.same(await others(rig, indexes), [], `seed ${seed}, step ${step}`);
      }
      rig.kernel.refuses = null;
      rig.kernel.faults.length = 0;
      rig.wait(60_000);
      t.same(await quarantined(rig, true), []);
      t.same(await rig.difference(), [], `seed ${seed}`);
    }
  });
}

t.test('a dump does not delay the next full comparison', async (t) => {
  const rig = await cluster('nft', 3);
  rig.wait(3_600_000);
  const [, listings] = [await rig.dataplane.dump(rig.table), rig.kernel.listed.length];
  t.same(rig.kernel.listed.slice(-1)[0]?.textOf.includes('KUBE-'), true);
  rig.plan();
  t.match(await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true }), { full: true });
  t.equal(rig.kernel.listed.length, listings + 1);
});
