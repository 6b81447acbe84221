import t from 'tap';
import { BUILT_IN_TIMEOUTS, NO_RETRIES, type RetryTimes } from '../../../src/base/conntrack-timeouts.js';
import { POLICY_NAME } from '../../../src/dataplane/iptables/names.js';
import { policyName } from '../../../src/dataplane/iptables/policy-names.js';
import { StaleFlows } from '../../../src/control/stale-flows.js';
import { CycleObservers } from '../../../src/observe/cycle-observer.js';
import { FakeClock } from '../../support/fake-clock.js';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { RecordingLog } from '../../support/recording-log.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

const TIMES = { tcp: 1, dns: 2 };
const { tcp: TCP, udp: UDP } = BUILT_IN_TIMEOUTS;
const PORTS = [
  { name: 'web', port: 80, nodePort: 30080 },
  { name: 'dns', port: 53, protocol: 'UDP' as const, nodePort: 30053 },
];
const TARGETS = PORTS.map(({ name, port, protocol }) => ({
  name,
  port: 8000 + port,
  protocol: protocol ?? ('TCP' as const),
}));
const ROWS = [
  ...NODE_ROWS,
  service('web', { clusterIPs: ['10.96.0.10'], type: 'NodePort', ports: PORTS }),
  slice('web', [{ address: '10.0.1.1', node: 'me' }], { ports: TARGETS }),
];

async function started(kernel = new FakeIptables(), retryTimes: RetryTimes = TIMES, rows = ROWS): Promise<Rig> {
  const rig = new Rig(kernel, 'IPv4', { retryTimes });
  rig.commit(rows);
  await rig.sync();
  return rig;
}

function policies({ kernel }: Rig): readonly string[] {
  return [...(kernel.policies?.keys() ?? [])].sort();
}

function raw({ kernel, family }: Rig, chain: string): readonly string[] | undefined {
  return kernel.rules('raw', chain, family);
}

const JUMP = '-m comment --comment "kubernetes unanswered attempts" -j KUBE-RETRY';

t.test('new flows of Services get their own conntrack timeouts in table raw', async (t) => {
  const rig = await started();
  t.same(raw(rig, 'PREROUTING'), [JUMP]);
  t.same(raw(rig, 'OUTPUT'), [JUMP]);
  t.same(raw(rig, 'KUBE-RETRY'), [
    '-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j KUBE-RETRY-TCP',
    '-p udp -j KUBE-RETRY-UDP',
  ]);
  t.match(raw(rig, 'KUBE-RETRY-TCP'), [
    '-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j CT --timeout Kt01',
    /RETURN/,
    /NP$/,
  ]);
  t.match(raw(rig, 'KUBE-RETRY-UDP'), [
    '-d 10.96.0.10/32 -p udp -m udp --dport 53 -j CT --timeout Ku02',
    /RETURN/,
    /NP$/,
  ]);
  t.same(raw(rig, 'KUBE-RETRY-TCP-NP'), ['-p tcp -m tcp --dport 30080 -j CT --timeout Kt01']);
  t.same(raw(rig, 'KUBE-RETRY-UDP-NP'), ['-p udp -m udp --dport 30053 -j CT --timeout Ku02']);
  t.same(
    [...(rig.kernel.policies?.values() ?? [])],
    [
      { name: 'Kt01', family: 'IPv4', protocol: 6, seconds: Object.values({ ...TCP, syn_sent: 1 }) },
      { name: 'Ku02', family: 'IPv4', protocol: 17, seconds: Object.values({ ...UDP, unreplied: 2 }) },
    ],
  );
  t.same(await rig.difference(), [], 'which is what the plan says');
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'a restart changes nothing');
  t.same(await rig.difference(), []);
});

t.test("annotations of a Service override the node's retry times, and may change", async (t) => {
  const rig = await started();
  const web = (connectRetry: number | null, udpRetry: number | null) =>
    service('web', { clusterIPs: ['10.96.0.10'], type: 'NodePort', ports: PORTS, connectRetry, udpRetry });
  rig.commit([web(5, 0)]);
  t.match(await rig.sync(), { full: false });
  t.match(raw(rig, 'KUBE-RETRY-TCP')?.[0], /Kt05$/);
  t.same(raw(rig, 'KUBE-RETRY-UDP'), []);
  t.equal(raw(rig, 'KUBE-RETRY-UDP-NP')?.length, 0);
  t.same(await rig.difference(), []);
  t.same(policies(rig), ['Kt01', 'Kt05', 'Ku02'], 'those that rules name no more');
  await rig.sync(true);
  t.same(policies(rig), ['Kt05'], 'go when everything is compared');
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
  t.same(await rig.difference(), []);
  rig.commit([web(null, null)]);
  await rig.sync();
  t.match(raw(rig, 'KUBE-RETRY-TCP')?.[0], /Kt01$/);
  t.same(await rig.difference(), []);
});

t.test('frontends without endpoints or with affinity have no retry rules', async (t) => {
  const rig = await started();
  rig.commit([slice('web', [], { ports: TARGETS })]);
  await rig.sync();
  t.same(raw(rig, 'KUBE-RETRY-TCP'), []);
  rig.commit([
    service('web', { clusterIPs: ['10.96.0.10'], affinitySeconds: 600, ports: PORTS }),
    slice('web', [{ address: '10.0.1.1' }], { ports: TARGETS }),
  ]);
  const { limitations } = await rig.sync();
  t.same(raw(rig, 'KUBE-RETRY-TCP'), []);
  t.match(limitations, [
    { of: 'mode', text: /Services with session affinity wait/ },
    { of: 'mode', text: /clients of a removed endpoint learn of it by their own timeouts/ },
  ]);
  t.same(await rig.difference(), []);
});

t.test('long chains of retry rules are divided, and read back', async (t) => {
  const names = Array.from({ length: 80 }, (_, index) => `s${index}`);
  const rows = names.flatMap((name, index) => [
    service(name, {
      clusterIPs: [`10.96.1.${index}`],
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 30_000 + index }],
    }),
    slice(name, [{ address: '10.0.1.1' }]),
  ]);
  const rig = await started(undefined, TIMES, [...NODE_ROWS, ...rows]);
  t.match(raw(rig, 'KUBE-RETRY-TCP')?.[0], /^-d 0\.0\.0\.0\/0\.0\.0\.15 -j KUBE-RETRY-TCP-IP-0$/);
  t.ok((raw(rig, 'KUBE-RETRY-TCP')?.length ?? 99) <= 18);
  t.same(raw(rig, 'KUBE-RETRY-TCP-IP-00'), ['-d 10.96.1.0/32 -p tcp -m tcp --dport 80 -j CT --timeout Kt01']);
  t.same(await rig.difference(), []);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
});

t.test('external changes to timeout policies and retry rules are repaired', async (t) => {
  const rig = await started();
  t.equal(await rig.dataplane.audit(), false);
  const policy = rig.kernel.policies?.get('Kt01');
  if (policy === undefined) throw new Error('there is no policy');
  rig.kernel.policies?.set('Kt01', { ...policy, seconds: [9] });
  t.equal(await rig.dataplane.audit(), true);
  t.match((await rig.sync(true)).repairs, ['timeout policy Kt01 had other seconds']);
  t.same(rig.kernel.policies?.get('Kt01'), policy);
  rig.kernel.tamper('raw', (chains) => {
    for (const name of [...chains.keys()]) {
      if (name.startsWith('KUBE-')) chains.delete(name);
      else chains.set(name, []);
    }
  });
  rig.kernel.policies?.clear();
  t.equal(await rig.dataplane.probe(), true, 'a flush is found at once');
  const { repairs } = await rig.sync(true);
  t.ok(repairs.includes('timeout policy Kt01 was missing'));
  t.ok(repairs.includes('chain raw KUBE-RETRY was missing'));
  t.ok(repairs.some((line) => line.startsWith('rule of raw PREROUTING was missing')));
  t.same(policies(rig), ['Kt01', 'Ku02']);
  t.same(await rig.difference(), []);
});

const DECISIONS: readonly (readonly [string, readonly string[]])[] = [
  ['takes packets out of tracking', ['-d 10.96.0.10/32 -p udp -m udp --dport 53 -j CT --notrack']],
  ['does so in the former spelling', ['-d 10.96.0.10/32 -p udp -m udp --dport 53 -j NOTRACK']],
  ['gives a helper', ['-p tcp -m tcp --dport 21 -j CT --helper ftp']],
  ['calls a chain of others', ['-i cali+ -j cali-PREROUTING']],
  ['goes on in a chain of others', ['-i cali+ -g cali-PREROUTING']],
];
for (const [what, rules] of DECISIONS) {
  t.test(`the jump to the retry rules stands behind a rule that ${what}`, async (t) => {
    const kernel = new FakeIptables();
    const others = ['-p tcp -j TRACE', ...rules];
    kernel.tamper('raw', (chains) => chains.set('cali-PREROUTING', []).set('PREROUTING', [...others]));
    const rig = await started(kernel);
    t.same(raw(rig, 'PREROUTING'), [...others, JUMP], 'at the start');
    const later = async (chain: readonly string[]): Promise<void> => {
      rig.kernel.tamper('raw', (chains) => chains.set('PREROUTING', [...chain]));
      t.equal(await rig.dataplane.probe(), true);
      t.match((await rig.difference()).join('\n'), /lacks: .* -j KUBE-RETRY$/m);
      const { repairs } = await rig.sync(true);
      t.match(repairs, [`rule of raw PREROUTING was missing or not last: ${JUMP}`]);
      t.same(raw(rig, 'PREROUTING'), [...chain.filter((rule) => rule !== JUMP), JUMP]);
      t.same(await rig.difference(), []);
    };
    await later([JUMP, ...others]);
    await later([JUMP, '-p tcp -j TRACE', ...rules, JUMP, ...rules]);
  });
}

t.test('the jump to the retry rules stays where no rule behind it decides on tracking', async (t) => {
  const rig = await started();
  rig.kernel.tamper('raw', (chains) =>
    chains.set('PREROUTING', [JUMP, '-p tcp -j TRACE', '-p icmp -j DROP', '-j ACCEPT']),
  );
  t.equal(await rig.dataplane.probe(), false);
  t.same(await rig.during(() => rig.sync(true)), []);
  // As an administrator has it who wants no rule behind to be met.
  rig.kernel.tamper('raw', (chains) => chains.set('PREROUTING', ['-j ACCEPT', JUMP]));
  t.equal(await rig.dataplane.probe(), false);
  t.same(await rig.during(() => rig.sync(true)), []);
});

t.test('there are no retry rules while a table of others decides on tracking behind table raw', async (t) => {
  const rig = await started();
  rig.decider = 'table inet firewall';
  rig.kernel.tamper('filter', () => undefined);
  t.equal(await rig.dataplane.probe(), true, 'it is found at once');
  const { repairs, limitations } = await rig.sync(true);
  t.same(repairs, [], 'no rule of ours was lost');
  t.match(limitations, [{ of: 'kernel', text: /table inet firewall decides which packets are tracked/ }]);
  t.same(rig.kernel.chains('raw'), []);
  t.same(policies(rig), []);
  rig.commit([slice('web', [{ address: '10.0.1.2' }], { ports: TARGETS })]);
  t.match(await rig.sync(), { full: false });
  t.equal(await rig.dataplane.probe(), false);
  rig.restart();
  t.same(await rig.during(() => rig.sync()), []);
  rig.decider = null;
  rig.kernel.tamper('filter', () => undefined);
  t.equal(await rig.dataplane.probe(), true);
  await rig.sync(true);
  t.same(raw(rig, 'PREROUTING'), [JUMP]);
  t.same(await rig.difference(), []);
});

t.test('changed sysctls change the seconds of timeout policies, and no rule', async (t) => {
  const rig = await started();
  rig.timeouts = { ...BUILT_IN_TIMEOUTS, tcp: { ...TCP, established: 86_400 } };
  t.equal(await rig.dataplane.audit(), true, 'an audit finds it');
  t.same(await rig.during(() => rig.sync(true)), []);
  t.equal(rig.kernel.policies?.get('Kt01')?.seconds[2], 86_400);
  t.equal(await rig.dataplane.audit(), false);
  rig.restart();
  rig.timeouts = BUILT_IN_TIMEOUTS;
  const report = await rig.sync();
  t.same(report.repairs, [], 'what a start finds is no loss');
  t.equal(rig.kernel.policies?.get('Kt01')?.seconds[2], 432_000);
});

t.test("without retry times, all retry rules and pointsman's timeout policies are removed", async (t) => {
  const rig = await started();
  rig.kernel.policies?.set('other', { name: 'other', family: 'IPv4', protocol: 6, seconds: [1] });
  rig.kernel.policies?.set('KT01', { name: 'KT01', family: 'IPv6', protocol: 6, seconds: [1] });
  rig.configure({ retryTimes: NO_RETRIES });
  await rig.sync(true);
  t.same(rig.kernel.chains('raw'), []);
  t.same(raw(rig, 'PREROUTING'), []);
  t.same(policies(rig), ['KT01', 'other']);
  t.same(await rig.difference(), []);
  rig.configure({ retryTimes: TIMES });
  await rig.sync();
  t.same(raw(rig, 'PREROUTING'), [JUMP]);
  t.same(await rig.difference(), []);
});

t.test('one Service with an annotation brings the retry rules, and its removal removes them', async (t) => {
  const rig = await started(undefined, NO_RETRIES);
  t.same(rig.kernel.chains('raw'), []);
  t.same(policies(rig), []);
  const web = (connectRetry: number | null) =>
    service('web', { clusterIPs: ['10.96.0.10'], type: 'NodePort', ports: PORTS, connectRetry });
  rig.commit([web(3)]);
  t.same((await rig.sync()).repairs, [], 'no rule was lost');
  t.same(raw(rig, 'OUTPUT'), [JUMP]);
  t.match(raw(rig, 'KUBE-RETRY-TCP')?.[0], /Kt03$/);
  t.same(await rig.difference(), []);
  rig.commit([web(null)]);
  await rig.sync(true);
  t.same(rig.kernel.chains('raw'), []);
  t.same(policies(rig), []);
});

const LACKING: readonly (readonly [string, Partial<FakeIptables>, RegExp])[] = [
  ['the kernel has no policies', { policies: null }, /CONFIG_NF_CT_NETLINK_TIMEOUT/],
  ['the kernel has no table raw', { hasRaw: false }, /iptables \(nft\) does not take .*: no table: raw/],
  ['the programs do not know the target', { programsTime: false }, /iptables \(nft\) does not take -j CT --timeout/],
  ['table raw refuses the rules', { refuses: (rule) => rule.startsWith('raw KUBE-RETRY-TCP') }, /table raw is refused/],
];
for (const [why, fields, reason] of LACKING) {
  t.test(`${why}: there are no retry rules, and the report says why`, async (t) => {
    const rig = new Rig(Object.assign(new FakeIptables(), fields), 'IPv4', { retryTimes: TIMES });
    rig.commit(ROWS);
    t.match((await rig.sync()).limitations, [{ of: 'kernel', text: reason }]);
    t.same(rig.kernel.chains('raw'), []);
    t.same(raw(rig, 'PREROUTING'), []);
    t.match(rig.kernel.rules('nat', 'KUBE-SERVICES')?.[0], /^-d 10\.96\.0\.10/, 'Services are translated');
    t.same(
      (await rig.difference()).filter((line) => !/retry /.test(line)),
      [],
    );
    rig.commit([slice('web', [{ address: '10.0.1.2' }], { ports: TARGETS })]);
    t.match(await rig.sync(), { full: false, limitations: [{ text: reason }] });
    t.equal(await rig.dataplane.audit(), false);
    rig.restart();
    t.same((await rig.sync()).repairs, []);
  });
}

t.test('a kernel short of memory is asked again for timeout policies', async (t) => {
  const kernel = new FakeIptables();
  const rig = new Rig(kernel, 'IPv4', { retryTimes: TIMES });
  rig.commit(ROWS);
  kernel.policyFault = 'ENOMEM';
  await t.rejects(rig.sync(), /ENOMEM/);
  kernel.policyFault = null;
  t.match(await rig.sync(), { limitations: [{ of: 'mode' }] });
  t.same(policies(rig), ['Kt01', 'Ku02']);
});

t.test('attempts that a timeout policy ends within a second need no pass over conntrack', async (t) => {
  const passed = ['10.96.0.10:80/TCP', 'nodeport:30080/TCP'];
  for (const [what, tcp, kernel, expected] of [
    ['within a second', 1, new FakeIptables(), []],
    ['later', 2, new FakeIptables(), passed],
    ['without policies', 1, Object.assign(new FakeIptables(), { policies: null }), passed],
  ] as const) {
    const rig = await started(kernel, { tcp, dns: null });
    const clock = new FakeClock();
    const passes: (readonly string[])[] = [];
    const flows = new StaleFlows({
      table: rig.table,
      conntrack: {
        reconcile: ({ changed }) => {
          passes.push([...changed].sort());
          return Promise.resolve({ flows: 0, deleted: 0, errors: [] });
        },
      },
      localAddresses: () => [],
      observers: new CycleObservers(),
      log: new RecordingLog(),
      clock,
      onDue: () => undefined,
    });
    rig.commit([slice('web', [{ address: '10.0.1.2', node: 'me' }], { ports: TARGETS })]);
    rig.plan();
    const change = rig.table.takeChange();
    t.ok(change.attempts.size > 0, 'an endpoint has gone');
    flows.changed(change);
    await rig.dataplane.apply(rig.table, change, { full: false });
    await clock.advance(100);
    await flows.reconcile(rig.dataplane);
    t.same(passes.flat(), expected, what);
  }
});

t.test('names of timeout policies have four characters, as many as a listed rule has', (t) => {
  for (const family of ['IPv4', 'IPv6'] as const)
    for (const protocol of ['TCP', 'UDP'] as const)
      for (const seconds of [1, 60]) {
        const name = policyName(family, protocol, seconds);
        t.equal(name.length, 4);
        t.match(name, POLICY_NAME);
      }
  for (const other of ['Kt1', 'kt01', 'Kx01', 'Kt001', '']) t.notMatch(other, POLICY_NAME);
  t.end();
});
