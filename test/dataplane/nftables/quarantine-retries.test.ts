import t from 'tap';
import { packFrontend, packSlot } from '../../../src/dataplane/nftables/keys.js';
import { TABLE } from '../../../src/dataplane/nftables/names.js';
import type { FrontendKey } from '../../../src/plan/types.js';
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
import { usually } from '../../support/extent.js';

/** What becomes of frontends that are quarantined: how many are tried again, what is found out of whom, what others do to them. */

const QUARANTINED = usually(400, 2000);

t.test('of many quarantined frontends that are due, each sync retries some, and changes do not wait', async (t) => {
  const rig = await started(1);
  const sticky = Array.from({ length: QUARANTINED }, (_, index) =>
    rowsOf(index + 10, 1, { affinitySeconds: 30 }),
  ).flat();
  rig.kernel.faults.refuses = (what) => / pick-1-shard-\d-sticky$/.test(what);
  rig.commit(sticky);
  t.ok((await settle(rig)) <= 1);
  let attempts = 0;
  const transact = rig.kernel.nftTransact.bind(rig.kernel);
  rig.kernel.nftTransact = (transaction) => {
    // Parts of the mode are tried in a table of their own.
    if (transaction.table === TABLE) attempts++;
    return transact(transaction);
  };
  rig.now = 100_000;
  rig.commit(rowsOf(3, 4));
  const [report] = await rig.during(async () => {
    t.equal((await rig.sync()).quarantined.length, QUARANTINED);
  });
  t.equal(attempts, 1 + 16);
  t.ok(JSON.stringify(report).includes('endpoints'), 'the change goes first');
  const tried = new Set<FrontendKey>();
  for (const round of [2, 3, 4, 5]) {
    for (const { frontend, retryAt } of (await rig.sync()).quarantined) if (retryAt > rig.now) tried.add(frontend);
    t.equal(tried.size, 16 * round, 'each time others');
  }
  t.equal(attempts, 1 + 16 * 5);
  const newest = (QUARANTINED * 3) / 4;
  rig.commit(rowsOf(newest, 2, { affinitySeconds: 30 }));
  rig.kernel.faults.refuses = null;
  rig.now += 100_000;
  t.notOk(
    (await rig.sync()).quarantined.some(({ frontend }) => frontend === keyOf(newest)),
    'first the one of which something is new',
  );
});

t.test('a flow note that cannot be removed does not block a frontend that has returned', async (t) => {
  const key = '10.96.0.9:53/UDP';
  const rows = rowsOf(9, 2, { ports: UDP });
  const rig = await started(3, rows);
  rig.commit([], [gone(9)]);
  await rig.sync();
  t.same([...rig.dataplane.goneFlows()], [key]);
  const { faults } = rig.kernel;
  faults.refuses = (what) => /^delete element stale-flows/.test(what);
  await t.rejects(rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows()));
  await rig.sync();
  await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows());
  t.same(await quarantined(rig), [key]);
  const served = async (): Promise<readonly string[]> =>
    (await rig.difference()).filter((line) => !STILL_TO_REMOVE.test(line));
  rig.commit(rows);
  t.match(await rig.sync(), { full: false, quarantined: [{ frontend: key }], flows: new Set([key]) });
  t.same(await served(), []);
  rig.commit(rowsOf(9, 5, { ports: UDP }));
  await rig.sync();
  t.same(await served(), [], 'it goes on as others do');
  rig.restart();
  rig.commit(rowsOf(9, 3, { ports: UDP }));
  await settle(rig);
  t.same(await quarantined(rig), [key]);
  t.same(await served(), [], 'in another process too');
  rig.commit([], [gone(9)]);
  t.match(await rig.sync(), { flows: new Set([key]) });
  t.same([...rig.dataplane.goneFlows()], [key], 'gone again, its flows are to be removed once more');
  faults.refuses = null;
  await rig.dataplane.clearGoneFlows(rig.dataplane.goneFlows());
  t.same(await quarantined(rig), []);
  t.same(await rig.difference(), []);
});

t.test('refusals without a name: the second sync finds the frontends by bisection', async (t) => {
  for (const names of usually(['nothing'] as const, ['operation', 'nothing'] as const)) {
    const rig = await started(300);
    const { faults } = rig.kernel;
    const refused = [keyOf(7), keyOf(123), keyOf(299)].sort();
    refuse(rig, refused);
    faults.names = names;
    let attempts = 0;
    const transact = rig.kernel.nftTransact.bind(rig.kernel);
    rig.kernel.nftTransact = (transaction) => {
      attempts++;
      return transact(transaction);
    };
    rig.commit(Array.from({ length: 300 }, (_, number) => rowsOf(number, 3)).flat());
    t.equal(await settle(rig), 2, 'once it may have been anything');
    t.ok(attempts <= 3 + 64, `${attempts} attempts`);
    t.same(await quarantined(rig), refused);
    t.same(await others(rig, refused), []);
    rig.commit(rowsOf(1, 4));
    attempts = 0;
    t.match(await rig.sync(), { full: false, transactions: 1 });
    t.equal(attempts, 1, 'nothing waits for them');
    rig.now = 60_000;
    t.same(await quarantined(rig), refused, 'refused again they do not fail the sync');
    for (let round = 0; round < 3; round++) await rig.sync();
    faults.refuses = null;
    rig.now = 200_000;
    t.same(await quarantined(rig), []);
    t.same(await rig.difference(), []);
  }
});

t.test('no frontend is quarantined if everything is refused and nothing is named', async (t) => {
  const rig = await started(20);
  const { faults } = rig.kernel;
  faults.refuses = () => true;
  faults.names = 'nothing';
  rig.commit(rowsOf(3, 4));
  for (let round = 0; round < 4; round++) await t.rejects(rig.sync(), /EINVAL/);
  // From some moment on, in the middle of the search.
  for (const from of [1, 2, 3]) {
    rig.restart();
    rig.commit(Array.from({ length: 20 }, (_, number) => rowsOf(number, 3 + from)).flat());
    refuse(rig, [keyOf(3)]);
    await t.rejects(rig.sync());
    let left = from;
    const transact = rig.kernel.nftTransact.bind(rig.kernel);
    rig.kernel.nftTransact = (transaction) => {
      if (left-- === 0) faults.refuses = (): boolean => true;
      return transact(transaction);
    };
    await t.rejects(rig.sync());
    rig.kernel.nftTransact = transact;
    refuse(rig, [keyOf(3)]);
    faults.names = 'element';
    t.ok((await settle(rig)) <= 1);
    t.same(await quarantined(rig), [keyOf(3)]);
    faults.names = 'nothing';
  }
});

t.test('elements of a quarantined frontend that were removed externally are restored', async (t) => {
  const rig = await started(20);
  const [third] = [packFrontend(keyOf(3))];
  const aboveTwo = [2, 3, 4].map((slot) => packSlot(slot) + third);
  rig.kernel.faults.refuses = (what, packed) => /^add element endpoints/.test(what) && aboveTwo.includes(packed);
  rig.commit([...rowsOf(3, 5), ...rowsOf(4, 5)]);
  await settle(rig);
  t.same(await quarantined(rig), [keyOf(3)]);
  const before = await rig.difference();
  const sets = [...(rig.kernel.table('ip')?.sets.keys() ?? [])].filter((name) =>
    /^(frontends|endpoints-\d)$/.test(name),
  );
  const flush = sets.map((name) => ({ flush: { map: { family: 'ip', table: 'kube-proxy', name } } }));
  rig.kernel.foreign({ family: 'ip', table: 'kube-proxy', operations: [{ type: 'commands', commands: flush }] });
  const repaired = await rig.sync(true);
  t.match(repaired.quarantined, [{ frontend: keyOf(3) }]);
  t.ok(repaired.repairs.length > 0);
  t.same(await rig.difference(), before);
  t.same((await rig.sync(true)).repairs, []);
  t.same(await rig.during(() => rig.sync()), []);

  refuse(rig, [keyOf(3)]);
  rig.kernel.foreign({ family: 'ip', table: 'kube-proxy', operations: [{ type: 'commands', commands: flush }] });
  t.match((await rig.sync(true)).quarantined, [{ frontend: keyOf(3) }]);
  t.same(await others(rig, [keyOf(3)]), [], 'if the kernel refuses that too, nothing waits for it');
  t.same(await rig.during(() => rig.sync()), []);
  rig.kernel.faults.refuses = null;
  rig.now = 60_000;
  t.same(await quarantined(rig), []);
  t.same(await rig.difference(), []);
});
