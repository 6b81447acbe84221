import t from 'tap';
import { ChainWriter } from '../../../src/dataplane/iptables/chain-writer.js';
import { GroupWriter } from '../../../src/dataplane/iptables/group-writer.js';
import { Ruleset } from '../../../src/dataplane/iptables/ruleset.js';
import { ServiceGroups } from '../../../src/dataplane/iptables/service-groups.js';
import { everything } from '../../../src/dataplane/table-view.js';
import { ChainLedger } from '../../../src/dataplane/xtables/chain-ledger.js';
import { Tables } from '../../../src/dataplane/xtables/tables.js';
import type { FrontendKey } from '../../../src/plan/types.js';
import { service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

t.test('of 2,000 quarantined frontends that are due, each sync retries some, and changes do not wait', async (t) => {
  const rig = new Rig();
  const { kernel } = rig;
  const [numbers, ports] = [Array.from({ length: 2000 }, (_, index) => index), 1000];
  const web = (index: number): FrontendKey => `10.96.0.${index % 250}:${ports + index}/TCP`;
  rig.commit([
    ...NODE_ROWS,
    ...numbers.map((index) =>
      service(`s${index}`, { clusterIPs: [`10.96.0.${index % 250}`], ports: [{ port: ports + index }] }),
    ),
  ]);
  rig.plan();
  let time = 0;
  const now = (): number => time;
  const [groups, chains] = [new ServiceGroups(now), new ChainLedger(now)];
  const ruleset = new Ruleset(rig.table, () => ({ dropInvalid: false, countsPackets: false, retries: false }));
  const tables = new Tables({ addon: kernel, family: 'IPv4', flavor: 'legacy', now });
  const writer = new ChainWriter({ addon: kernel, tables, ruleset, chains, followsIpvs: () => false });
  const all = new GroupWriter({ groups, ruleset, chains, writer, lacking: () => Promise.resolve([]) });
  all.follow(groups.follow(rig.table, { frontends: new Set(numbers.map(web)), node: true }));
  ruleset.update(everything(rig.table));
  for (const hash of groups.ledger.pending()) groups.ledger.quarantine(hash, 'refused');
  await all.bringPending(true, []);
  let attempts = 0;
  const restore = kernel.iptablesRestore.bind(kernel);
  kernel.iptablesRestore = (transaction) => {
    attempts++;
    return restore(transaction);
  };
  kernel.refuses = (rule) => rule.includes('REJECT');
  time = 1000;
  const tried = (): number => all.quarantined().filter(({ retryAt }) => retryAt > time).length;
  for (const before of [0, 2, 4]) {
    t.equal(tried(), before);
    attempts = 0;
    await all.bringDue();
    t.equal(attempts, 5);
  }
  kernel.refuses = null;
  attempts = 0;
  const taken = await all.bringDue();
  t.ok(attempts <= 10, 'and lets go of refusals in between');
  t.equal(taken.size, 8 * (2 ** 5 - 1));
  for (let round = 0; round < 20 && all.quarantined().length > 0; round++) {
    time += 10_000;
    await all.bringDue();
  }
  t.same(all.quarantined(), []);
});
