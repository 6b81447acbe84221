import t from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { blameFrontend } from '../../src/dataplane/contract.js';
import { planSettings } from '../support/plan-settings.js';
import type { EndpointSliceRow } from '../../src/state/rows.js';
import { node, service, slice } from '../support/rows.js';
import { replaceMode, WEB, world, taken } from './sync-cycle-world.js';

t.test('a change is planned, applied in both families, and its flows checked', async (t) => {
  const made = world();
  const { cycle, dataplanes, conntrack } = made;
  made.upsert(WEB);
  t.same(taken(made), ['trigger']);
  await cycle.run({ full: true });
  t.same(taken(made), ['guarded', 'takeover', 'complete']);
  t.same([dataplanes.IPv4.calls, dataplanes.IPv6.calls], [['full'], ['full']], 'by themselves they compare at first');
  t.same(conntrack.passes.splice(0), ['IPv4 all', 'IPv6 all']);
  t.equal(made.health.healthy(), true);
  made.upsert({ ...WEB, clusterIPs: [parseAddress('10.96.0.11')!, parseAddress('fd00::10')!] });
  await cycle.run({ full: false });
  t.same(dataplanes.IPv4.calls.slice(1), ['10.96.0.10:53/UDP,10.96.0.11:53/UDP']);
  t.same(dataplanes.IPv6.calls.slice(1), ['']);
  t.same(conntrack.passes, ['IPv4 10.96.0.10:53/UDP,10.96.0.11:53/UDP']);
  t.same(taken(made), ['trigger'], 'nothing that only a comparison of everything brings');
  t.equal(made.clock.waiting, 0);
});

t.test('one family fails: the other is synced, and the pass counts as incomplete', async (t) => {
  const made = world();
  const { cycle, dataplanes, health, clock } = made;
  made.upsert(WEB);
  dataplanes.IPv4.failures.push(new Error('EBUSY'), new Error('EBUSY'));
  await t.rejects(cycle.run({ full: true }), { errors: [{ message: 'EBUSY' }] });
  await t.rejects(cycle.run({ full: true }), { message: 'sync failed' });
  t.same(taken(made), ['trigger']);
  t.equal(made.log.lines[0], 'error sync failed, will be retried: EBUSY');
  t.ok(made.log.lines.includes('info 2 sync failed again'));
  await clock.advance(60_000);
  t.match(health.families(), [
    { family: 'IPv4', healthy: false, stuck: true },
    { family: 'IPv6', healthy: true },
  ]);
  await cycle.run({ full: true });
  t.ok(made.log.lines.includes('info 0 sync works again'));
  t.same(taken(made), ['guarded', 'takeover', 'complete']);
  t.equal(health.healthy(), true);
});

t.test('a difference that cannot be repaired is logged once, and again when it returns', async (t) => {
  const { cycle, dataplanes, log } = world();
  const problem = 'could not remove foreign objects (x): EBUSY';
  const reported = (): number => log.lines.splice(0).filter((line) => line === `warn ${problem}`).length;
  await cycle.run({ full: true });
  for (const [problems, times] of [
    [[problem], 1],
    [[problem], 0],
    [[], 0],
    [[problem], 1],
  ] as const) {
    dataplanes.IPv4.next = { problems, full: true };
    await cycle.run({ full: true });
    t.equal(reported(), times);
  }
});

t.test('a Service that the kernel keeps refusing gets an event', async (t) => {
  const made = world();
  made.upsert(service('web', { clusterIPs: ['10.96.0.10'] }));
  const { failures } = made.dataplanes.IPv4;
  failures.push(
    ...['10.96.0.10:80/TCP', '10.96.0.10:80/TCP'].map((key) => blameFrontend(new Error('EEXIST'), key)),
    ...['10.96.0.99:80/TCP', '10.96.0.99:80/TCP'].map((key) => blameFrontend(new Error('ENOENT'), key)),
    ...[new Error('ENOBUFS'), new Error('ENOBUFS')],
  );
  const reported: number[] = [];
  while (failures.length > 0) {
    await t.rejects(made.cycle.run({ full: false }));
    reported.push(made.events.length);
  }
  t.same(
    reported,
    [0, 1, 1, 1, 1, 1],
    'not of the first failure, not of what no Service asked for, not of other failures',
  );
  t.match(made.events, [
    {
      type: 'Warning',
      reason: 'ProgrammingFailed',
      regarding: { kind: 'Service', namespace: 'default', name: 'web' },
      note: /10\.96\.0\.10:80\/TCP .*EEXIST/,
    },
  ]);
});

t.test(
  'stale flows that conntrack refuses to remove stay pending, and the removal is retried after a second',
  async (t) => {
    const made = world();
    const { cycle, conntrack, clock } = made;
    conntrack.refuses = true;
    made.upsert(WEB);
    await cycle.run({ full: true });
    taken(made);
    t.equal(cycle.flowsRefused, true);
    t.equal(made.health.healthy(), true, 'the rules are right');
    await clock.advance(999);
    t.same(taken(made), []);
    conntrack.refuses = false;
    await clock.advance(1);
    t.same(taken(made), ['trigger']);
    conntrack.passes.length = 0;
    await cycle.run({ full: false });
    t.same(conntrack.passes, ['IPv4 all', 'IPv6 all']);
    await cycle.run({ full: false });
    t.equal(conntrack.passes.length, 2, 'once');
    t.same([cycle.flowsRefused, clock.waiting], [false, 0]);
  },
);

const TCP = service('web', { clusterIPs: ['10.96.0.10', 'fd00::10'], ports: [{ port: 80 }] });

function webSlice(...addresses: readonly string[]): EndpointSliceRow {
  return slice(
    'web',
    addresses.map((address) => ({ address })),
  );
}

t.test('attempts to endpoints without new connections are removed in one pass for many changes', async (t) => {
  const made = world();
  const { cycle, conntrack, clock } = made;
  made.upsert(TCP, webSlice('10.244.1.1', '10.244.1.2', '10.244.1.3'));
  await cycle.run({ full: true });
  taken(made);
  conntrack.passes.length = 0;
  const change = async (...addresses: readonly string[]): Promise<void> => {
    made.upsert(webSlice(...addresses));
    await cycle.run({ full: false });
    taken(made);
  };
  // What the fake dataplane says of flows is not what this is about.
  const passes = (): readonly string[] => conntrack.passes.splice(0).filter((pass) => pass.startsWith('IPv4'));
  for (const dataplane of Object.values(made.dataplanes)) dataplane.reportsFlows = false;
  await change('10.244.1.1', '10.244.1.2', '10.244.1.3', '10.244.1.4');
  t.same([passes(), clock.waiting], [[], 0], 'an endpoint that comes leaves no attempts behind');
  await change('10.244.1.1', '10.244.1.2', '10.244.1.3');
  await clock.advance(60);
  await change('10.244.1.1', '10.244.1.2');
  t.same([passes(), clock.waiting], [[], 1]);
  await clock.advance(39);
  t.same(taken(made), []);
  await clock.advance(1);
  t.same(taken(made), ['trigger']);
  conntrack.refuses = true;
  await cycle.run({ full: false });
  t.same(passes(), ['IPv4 10.96.0.10:80/TCP']);
  t.equal(cycle.flowsRefused, true);
  conntrack.refuses = false;
  await clock.advance(999);
  await cycle.run({ full: false });
  t.same(passes(), [], 'not again at once');
  await clock.advance(1);
  await cycle.run({ full: false });
  t.same(passes(), ['IPv4 10.96.0.10:80/TCP'], 'what a pass failed to do is pending');
  await cycle.run({ full: false });
  t.same([passes(), cycle.flowsRefused], [[], false], 'once');

  // The kernel takes long to list its flows.
  let finish = (): void => undefined;
  conntrack.listed = new Promise((resolve) => {
    finish = resolve;
  });
  await change('10.244.1.2');
  await clock.advance(200);
  await cycle.run({ full: false });
  t.same(passes(), ['IPv4 10.96.0.10:80/TCP'], 'a run does not wait for the pass');
  await change('10.244.1.1', '10.244.1.2');
  await change('10.244.1.2');
  await clock.advance(200);
  await cycle.run({ full: false });
  t.same(passes(), [], 'there is one pass at a time');
  finish();
  await clock.advance(0);
  taken(made);
  // It has had its share of the time: 400 ms are 5 % of 8 s.
  await clock.advance(10_000);
  t.ok(taken(made).includes('trigger'));
  await cycle.run({ full: false });
  t.same(passes(), ['IPv4 10.96.0.10:80/TCP'], 'what came meanwhile is pending');

  // Its new rules are not in the kernel: attempts would come back.
  const quarantined = [{ frontend: '10.96.0.10:80/TCP', reason: 'EEXIST', since: 0, retryAt: 9_999_999 }];
  made.dataplanes.IPv4.next = { quarantined };
  await change('10.244.1.1');
  await clock.advance(200);
  made.dataplanes.IPv4.next = { quarantined };
  await cycle.run({ full: false });
  t.same(passes(), [], 'quarantined');
  await cycle.run({ full: false });
  t.same(passes(), ['IPv4 10.96.0.10:80/TCP'], 'no longer');

  made.remove(TCP);
  await cycle.run({ full: false });
  const others = replaceMode(made);
  for (const dataplane of Object.values(others)) dataplane.reportsFlows = false;
  await clock.advance(100);
  await cycle.run({ full: false });
  t.match(passes(), [/^IPv4 .*10\.96\.0\.10:80\/TCP$/], 'attempts to a Service that went in another mode');
});

t.test('connection attempts that the kernel ends within a second need no pass', async (t) => {
  for (const [seconds, lacksTimeouts, expected] of [
    [1, false, []],
    [1, true, ['IPv4 10.96.0.10:80/TCP']],
    [2, false, ['IPv4 10.96.0.10:80/TCP']],
    [null, false, ['IPv4 10.96.0.10:80/TCP']],
  ] as const) {
    const made = world({ ...planSettings(), retryTimes: { tcp: seconds, dns: null } });
    const { cycle, conntrack, clock } = made;
    for (const dataplane of Object.values(made.dataplanes))
      Object.assign(dataplane, { reportsFlows: false, lacksTimeouts });
    made.upsert(TCP, webSlice('10.244.1.1', '10.244.1.2'));
    await cycle.run({ full: true });
    conntrack.passes.length = 0;
    made.upsert(webSlice('10.244.1.1'));
    await cycle.run({ full: false });
    await clock.advance(1000);
    await cycle.run({ full: false });
    t.same(
      conntrack.passes.filter((pass) => pass.startsWith('IPv4')),
      expected,
      `retried after ${seconds ?? 'no'} s, ${lacksTimeouts ? 'without' : 'with'} timeouts`,
    );
  }
});

t.test('leftovers of other modes are searched for at every periodic run', async (t) => {
  const made = world();
  made.upsert(WEB);
  await made.cycle.run({ full: true });
  taken(made);
  await made.cycle.run({ full: false });
  t.same(taken(made), []);
  await made.cycle.run({ full: true });
  t.same(taken(made), ['takeover']);
});

t.test('a frontend that the kernel refuses is reported, and retried when due', async (t) => {
  const made = world();
  const { cycle, clock, dataplanes, events, log, health } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  taken(made);
  const frontend = '10.96.0.10:53/UDP';
  const since = clock.now();
  const quarantined = (reason: string, ms: number) => ({
    quarantined: [{ frontend, reason, since, retryAt: clock.now() + ms }],
  });
  const warnings = (): number => log.lines.filter((line) => line.includes('refuses a frontend')).length;
  dataplanes.IPv4.next = quarantined('ENOENT', 1000);
  await cycle.run({ full: false });
  t.equal(health.healthy(), true, 'the others are served');
  t.same(health.quarantined(), [{ family: 'IPv4', frontend, servicePort: 'default/web', reason: 'ENOENT', since }]);
  t.same(
    events.map(({ reason, note }) => [reason, note]),
    [['ProgrammingFailed', `${frontend} cannot be programmed and is retried: ENOENT`]],
  );
  await clock.advance(999);
  t.same(taken(made), []);
  await clock.advance(1);
  t.same(taken(made), ['trigger']);
  dataplanes.IPv4.next = quarantined('ENOENT', 2000);
  await cycle.run({ full: false });
  t.same([warnings(), events.length], [1, 1], 'once for each reason');
  dataplanes.IPv4.next = quarantined('EINVAL', 4000);
  await cycle.run({ full: false });
  t.same([warnings(), events.length], [2, 2]);
  await cycle.run({ full: false });
  t.same([health.quarantined(), clock.waiting], [[], 0]);
  t.ok(log.lines.some((line) => line.includes('no longer quarantined')));
  dataplanes.IPv4.next = quarantined('EINVAL', 4000);
  await cycle.run({ full: false });
  cycle.stop();
  t.equal(clock.waiting, 0);
});

t.test('a dataplane is called again at its due time, once, unless a sync came first', async (t) => {
  const made = world();
  const { cycle, clock, dataplanes } = made;
  made.upsert(WEB);
  dataplanes.IPv4.next = { dueAt: clock.now() + 1000 };
  await cycle.run({ full: true });
  taken(made);
  await clock.advance(999);
  t.same(taken(made), []);
  await clock.advance(1);
  t.same(taken(made), ['trigger']);
  dataplanes.IPv4.next = { dueAt: clock.now() + 1000 };
  await cycle.run({ full: false });
  await cycle.run({ full: false });
  t.equal(clock.waiting, 0, 'the last run decides');
});

t.test('nothing is programmed before the Node has what the rules depend on', async (t) => {
  const made = world(planSettings({ localDetection: { type: 'NodeCIDR' } }));
  const { cycle, dataplanes, health } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  t.match(health.held(), /there is no Node me/);
  t.same([...dataplanes.IPv4.calls, ...taken(made)], ['trigger']);
  made.upsert(node('me', ['192.168.0.2'], { podCIDRs: ['10.244.1.0/24'] }));
  await cycle.run({ full: true });
  t.equal(health.held(), null);
  t.same(dataplanes.IPv4.calls, ['full']);
  t.equal(health.nodeEligible, true);
});

t.test('changed settings plan everything anew, and guards are reported once the kernel has them', async (t) => {
  const made = world();
  const { cycle, dataplanes } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  const before = cycle.guardedBy;
  taken(made);
  const settings = {
    ...planSettings({ masqueradeAll: true }),
    kubernetes: null,
    healthz: null,
    resetRemovedEndpoints: false,
  };
  cycle.follow({ ...settings, metrics: { address: parseAddress('::1')!, port: 0 } });
  t.equal(cycle.guardedBy, before);
  cycle.changed(null);
  dataplanes.IPv4.next = { full: true };
  await cycle.run({ full: false });
  t.same(taken(made), ['trigger', 'guarded', 'takeover', 'complete']);
  t.equal(cycle.planner.tables.IPv4.node.masqueradeAll, true);
  t.equal(cycle.guardedBy?.masqueradeAll, true);
});

t.test('a dataplane without kernel notifications is probed every second, until the mode changes', async (t) => {
  const made = world();
  const { cycle, dataplanes, clock, health, log } = made;
  const looks: number[] = [];
  let answer = (): Promise<boolean> => Promise.resolve(false);
  dataplanes.IPv4.polls = true;
  dataplanes.IPv6.probe = () => Promise.resolve(false);
  dataplanes.IPv4.probe = () => {
    looks.push(clock.now());
    return answer();
  };
  made.upsert(WEB);
  await cycle.run({ full: true });
  taken(made);
  await cycle.run({ full: true });
  await clock.advance(2000);
  t.same(looks, [1800, 2700]);
  answer = () => Promise.reject(new Error('ENOBUFS'));
  await clock.advance(1000);
  t.same(health.drift(), []);
  t.ok(log.lines.some((line) => line.includes('cannot check for external changes')));
  answer = () => Promise.resolve(true);
  await clock.advance(1003);
  t.match(health.drift(), [{ family: 'IPv4', process: null }]);
  t.same(taken(made).at(-1), 'now');
  await cycle.run({ full: false });
  t.equal(dataplanes.IPv4.calls.at(-1), 'full');
  cycle.stop();
  t.equal(clock.waiting, 0);
  await clock.advance(5000);
  t.equal(looks.length, 4);
});

t.test('a family whose change is forbidden is probed every second until it is taken', async (t) => {
  const made = world();
  const { cycle, dataplanes, clock } = made;
  const forbidden = (): Error =>
    Object.assign(new Error('EPERM'), { code: 'ERR_NETLINK', operation: 'nft transaction', errno: 'EPERM' });
  const looks: number[] = [];
  let answer = false;
  dataplanes.IPv4.probe = () => {
    looks.push(clock.now());
    return Promise.resolve(answer);
  };
  made.upsert(WEB);
  const begin = clock.now();
  dataplanes.IPv4.failures.push(forbidden(), forbidden());
  await t.rejects(cycle.run({ full: true }));
  taken(made);
  await clock.advance(2500);
  t.same(
    looks.map((at) => at - begin),
    [1000, 2000],
  );
  t.notOk(taken(made).includes('now'));
  await t.rejects(cycle.run({ full: true }), 'the loop retries beside it');
  answer = true;
  await clock.advance(1000);
  t.equal(looks.length, 3, 'one probe at a time');
  t.same(taken(made).at(-1), 'now');
  await cycle.run({ full: false });
  await clock.advance(5000);
  t.equal(looks.length, 3);
  dataplanes.IPv4.failures.push(forbidden());
  await t.rejects(cycle.run({ full: true }));
  cycle.stop();
  t.equal(clock.waiting, 0);
});

t.test('a dataplane that knows when a probe can find something is not probed before', async (t) => {
  const made = world();
  const { cycle, dataplanes, clock, health } = made;
  const awaited: (() => void)[] = [];
  let ended = 0;
  let looks = 0;
  let different = false;
  for (const dataplane of [dataplanes.IPv4, dataplanes.IPv6]) {
    dataplane.polls = true;
    dataplane.awaitChange = (onChange) => {
      awaited.push(onChange);
      return () => ended++;
    };
    dataplane.probe = () => {
      looks++;
      return Promise.resolve(different);
    };
  }
  const probed = async (): Promise<readonly number[]> => {
    await clock.advance(5000);
    return [looks, awaited.length, ended];
  };
  made.upsert(WEB);
  await cycle.run({ full: true });
  t.same(await probed(), [0, 2, 0]);
  awaited[1]?.();
  t.same(await probed(), [2, 4, 2], 'both, whichever was changed');
  different = true;
  awaited[2]?.();
  t.same(await probed(), [4, 6, 4]);
  t.match(health.drift(), [{ family: 'IPv4' }, { family: 'IPv6' }]);
  dataplanes.IPv6.awaitChange = dataplanes.IPv4.awaitChange;
  awaited[4]?.();
  t.same(await probed(), [6, 7, 6], 'what both wait for is awaited once');
  dataplanes.IPv6.awaitChange = null;
  awaited[6]?.();
  t.same([await probed(), looks > 8], [[looks, 7, 7], true], 'one that does not know is probed every second');
  cycle.stop();
  t.equal(clock.waiting, 0);
});

t.test(
  'external changes are checked: immediately when the kernel reports them, otherwise by probes between syncs',
  async (t) => {
    const made = world();
    const { cycle, dataplanes, clock, health } = made;
    made.upsert(WEB);
    await cycle.run({ full: true });
    taken(made);
    made.tell({ families: ['IPv6'], missed: false, process: 'nft[7]' });
    t.match(health.drift(), [{ family: 'IPv6', process: 'nft[7]' }]);
    await clock.advance(3);
    t.same(taken(made), ['now']);
    dataplanes.IPv6.next = { repairs: ['chain a was lost'] };
    await cycle.run({ full: false });
    t.same([dataplanes.IPv4.calls.at(-1), dataplanes.IPv6.calls.at(-1)], ['', 'full']);
    t.match(made.events, [{ reason: 'RulesRepaired', note: /IPv6 .*: chain a was lost/ }]);
    t.same(health.drift(), []);
    dataplanes.IPv4.different = true;
    await cycle.run({ full: true });
    await clock.advance(3);
    t.same(
      [dataplanes.IPv4.calls.slice(-2), taken(made).at(-1)],
      [['', 'audit'], 'now'],
      'a periodic look delays nothing',
    );
    t.match(health.drift(), [{ family: 'IPv4', process: null }]);
    cycle.stop();
    t.same(taken(made), ['unwatched']);
    t.equal(clock.waiting, 0);
  },
);

t.test('background work that fails leads to a full comparison', async (t) => {
  const made = world();
  const { cycle, dataplanes, clock } = made;
  made.upsert(WEB);
  await cycle.run({ full: true });
  dataplanes.IPv4.next = { background: Promise.reject(new Error('EIO')) };
  await cycle.run({ full: true });
  t.same(dataplanes.IPv4.calls, ['full', '', 'audit']);
  taken(made);
  await clock.advance(3);
  t.same(taken(made), ['now']);
  await cycle.run({ full: false });
  t.equal(dataplanes.IPv4.calls.at(-1), 'full');
});

t.test('a run that ends after the stop leaves no timer', async (t) => {
  const made = world();
  const { cycle, dataplanes, conntrack, clock } = made;
  made.upsert(WEB, service('also', { clusterIPs: ['10.96.0.10'], ports: [{ port: 53, protocol: 'UDP' }] }));
  conntrack.refuses = true;
  dataplanes.IPv4.next = {
    quarantined: [{ frontend: '10.96.0.10:53/UDP', reason: 'ENOENT', since: clock.now(), retryAt: clock.now() + 1000 }],
    background: Promise.reject(new Error('EIO')),
  };
  dataplanes.IPv6.next = { full: false };
  const underWay = cycle.run({ full: true });
  cycle.stop();
  made.tell({ families: ['IPv6'], missed: true, process: null });
  await underWay;
  await clock.advance(0);
  t.equal(clock.waiting, 0);
  taken(made);
  await cycle.run({ full: true });
  t.same([...dataplanes.IPv4.calls, ...dataplanes.IPv6.calls], ['full', 'full'], 'nothing is run or audited');
  await clock.advance(60_000);
  t.same(taken(made), [], 'no notification counts, and no run is requested');
});

t.test('a Service that cannot be planned does not block others, and is retried', async (t) => {
  const made = world();
  const { cycle, dataplanes } = made;
  let broken = true;
  const row = service('broken', { clusterIPs: ['10.96.0.20'] });
  const ports = new Proxy(row.ports, {
    get: (target, name) => {
      if (broken) throw new Error('out of order');
      return Reflect.get(target, name) as unknown;
    },
  });
  made.upsert(WEB, { ...row, ports });
  const wrong = /^error planning failed, will be retried: cannot plan Service default\/broken in IPv4: out of order/;
  for (const full of [true, false]) {
    await cycle.run({ full });
    t.equal(made.log.lines.filter((line) => wrong.test(line)).length, 1, 'said once');
  }
  t.same(dataplanes.IPv4.calls, ['full', '']);
  t.notOk(taken(made).includes('takeover'), 'what is left of another mode may forward it');
  await made.clock.advance(1000);
  t.same(taken(made), ['trigger'], 'tried again, and not as what compares everything');
  t.ok(cycle.planner.tables.IPv4.frontend('10.96.0.10:53/UDP'));
  const { unplanned } = cycle.planner.tables.IPv4;
  t.same([...unplanned], [['default/broken', 'out of order']], 'in the status');
  const { onsets } = made.health;
  const began = onsets.of('unplanned IPv4');
  t.type(began, 'bigint');
  await cycle.run({ full: false });
  t.equal(onsets.of('unplanned IPv4'), began, 'and since when');
  broken = false;
  await cycle.run({ full: false });
  t.equal(unplanned.size, 0);
  t.equal(onsets.of('unplanned IPv4'), null);
  t.equal(dataplanes.IPv4.calls.at(-1), '10.96.0.20:80/TCP');
});
