import t from 'tap';
import { parseAddress, type Family } from '../../src/base/ip.js';
import type { FrontendKey } from '../../src/plan/types.js';
import { service } from '../support/rows.js';
import { WEB, world, replaceMode, taken } from './sync-cycle-world.js';

/** Another mode takes the place of the one in force. */

t.test('a new mode is written by the next run; the current run completes the old mode', async (t) => {
  const made = world();
  const { cycle, dataplanes, counted, progress } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  taken(made);
  counted.length = 0;
  const updated = progress.of('IPv4')?.lastUpdated;
  await made.clock.advance(1);
  made.upsert({ ...WEB, clusterIPs: [parseAddress('10.96.0.11')!, parseAddress('fd00::10')!] });
  dataplanes.IPv4.next = { full: true };
  dataplanes.IPv6.failures.push(new Error('EPERM'));
  await cycle.retireMode();
  const underWay = cycle.run({ full: false });
  const others = replaceMode(made);
  await t.rejects(underWay);
  t.same(taken(made), ['trigger', 'retired', 'unwatched']);
  t.same(others.IPv4.calls, []);
  t.same(counted, [], 'it says nothing of the mode in force');
  t.equal(progress.of('IPv4')?.lastUpdated, updated);
  t.same(
    progress.families.map(({ failure, pendingFrontends }) => [failure, pendingFrontends]),
    [
      [null, 2],
      [null, 0],
    ],
  );
  others.IPv6.failures.push(new Error('EBUSY'));
  await t.rejects(cycle.run({ full: false }));
  t.same(taken(made), [], 'nothing of the former mode goes before the other one is complete');
  await cycle.run({ full: false });
  t.same(
    [others.IPv4.calls, others.IPv6.calls],
    [
      ['full', ''],
      ['full', 'full'],
    ],
  );
  t.same(taken(made), ['the other takeover', 'complete']);
  t.equal(made.log.lines.filter((line) => line === 'info 0 rules complete').length, 4, 'by each mode');
  t.equal(progress.of('IPv4')?.pendingFrontends, 0);
  t.equal(dataplanes.IPv4.calls.length, 2);
});

t.test('flows of frontends removed during a mode change are deleted, whatever fails', async (t) => {
  const made = world();
  const { cycle, dataplanes, conntrack } = made;
  const others = ['dns', 'tcp'].map((name, index) =>
    service(name, {
      clusterIPs: [`10.96.0.2${index}`],
      ports: [{ port: 53, protocol: index === 0 ? 'UDP' : 'TCP' }],
    }),
  );
  made.upsert(WEB, ...others);
  await cycle.run({ full: true });
  conntrack.passes.length = 0;
  for (const row of others) made.remove(row);
  dataplanes.IPv4.failures.push(new Error('EBUSY'));
  await t.rejects(cycle.run({ full: false }));
  t.same(conntrack.passes.splice(0), [], 'rules first');
  dataplanes.IPv4.gone.add('10.96.0.99:53/UDP');
  await cycle.retireMode();
  const next = replaceMode(made);
  made.remove(WEB);
  next.IPv6.failures.push(new Error('EBUSY'));
  await t.rejects(cycle.run({ full: false }));
  t.same(conntrack.passes.splice(0), [
    'IPv4 all,10.96.0.20:53/UDP,10.96.0.99:53/UDP,10.96.0.10:53/UDP,10.96.0.21:53/TCP',
  ]);
  await cycle.run({ full: false });
  t.same(conntrack.passes, ['IPv6 all,[fd00::10]:53/UDP']);
});

t.test('flows that rules of the old mode may have created are checked once those rules are gone', async (t) => {
  const made = world();
  const { cycle, conntrack } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  made.remove(WEB);
  await cycle.run({ full: false });
  taken(made);
  conntrack.passes.length = 0;
  const early = ['IPv4 all,10.96.0.10:53/UDP', 'IPv6 all,[fd00::10]:53/UDP'];
  made.removals.push({ removed: true, finished: false, goneFlows: new Map() });
  await cycle.run({ full: true });
  await made.clock.advance(0);
  t.same(taken(made), ['takeover', 'trigger']);
  conntrack.passes.length = 0;
  await cycle.run({ full: false });
  t.same(conntrack.passes.splice(0), early, 'and what is left may bring them back once more');
  made.removals.push({ removed: false, finished: false, goneFlows: new Map() });
  await cycle.run({ full: true });
  await made.clock.advance(0);
  taken(made);
  const goneFlows = new Map<Family, FrontendKey[]>([['IPv4', ['10.96.0.77:53/UDP']]]);
  made.removals.push(
    { removed: true, finished: true, goneFlows },
    { removed: false, finished: true, goneFlows: new Map() },
  );
  await cycle.run({ full: true });
  await made.clock.advance(0);
  t.same(taken(made), ['takeover', 'trigger']);
  conntrack.passes.length = 0;
  await cycle.run({ full: false });
  t.same(
    conntrack.passes.splice(0),
    ['IPv4 all,10.96.0.77:53/UDP,10.96.0.10:53/UDP', 'IPv6 all,[fd00::10]:53/UDP'],
    'and what the mode that went had noted as still to do',
  );
  await cycle.run({ full: true });
  await made.clock.advance(0);
  t.same(taken(made), ['takeover'], 'nothing was left');
  conntrack.passes.length = 0;
  await cycle.run({ full: false });
  t.same(conntrack.passes, []);
});
