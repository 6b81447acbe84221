import t from 'tap';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Which rules count packets, and where none can (behaviour IT-22, IT-26, IT-47). */

const DROPPED = '-m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP';
const PLAIN = '-m conntrack --ctstate INVALID -j DROP';
const LOOPBACK =
  '-m conntrack --ctstate DNAT --ctorigdst 127.0.0.0/8 -m nfacct --nfacct-name localhost_nps_accepted_pkts';
const ROWS = [
  ...NODE_ROWS,
  service('web', { clusterIPs: ['10.96.0.10'], ports: [{ port: 80, nodePort: 30080 }] }),
  slice('web', [{ address: '10.0.1.1', node: 'me' }]),
];

function counting({ kernel, family }: Rig): readonly string[] {
  const rules = [
    ...(kernel.rules('filter', 'KUBE-FORWARD', family) ?? []),
    ...(kernel.rules('nat', 'KUBE-POSTROUTING', family) ?? []),
  ];
  return rules.filter((rule) => /INVALID|nfacct/.test(rule));
}

function kernel(fields: Partial<Pick<FakeIptables, 'accounts' | 'programsCount'>>): FakeIptables {
  return Object.assign(new FakeIptables(), fields);
}

function counts(invalidDropped: number, localhostAccepted: number): Readonly<Record<string, number>> {
  return {
    iptables_ct_state_invalid_dropped_packets_total: invalidDropped,
    iptables_localhost_nodeports_accepted_packets_total: localhostAccepted,
  };
}

t.test('packet counters work where the kernel and the programs have them', async (t) => {
  const rig = new Rig(kernel({ accounts: new Map() }));
  rig.commit(ROWS);
  t.equal(await rig.counters.read(), null, 'nothing is known before the first sync');
  await rig.sync();
  t.same(counting(rig), [DROPPED, LOOPBACK]);
  t.same(await rig.difference(), []);
  t.same(await rig.counters.read(), counts(0, 0));
  rig.kernel.accounts?.set('ct_state_invalid_dropped_pkts', 7).set('localhost_nps_accepted_pkts', 3);
  t.same(await rig.counters.read(), counts(7, 3));

  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'rules that count already show that they can');
  t.same(await rig.counters.read(), counts(7, 3), 'and the count goes on');
});

t.test('accounting objects deleted with all rules are restored with them', async (t) => {
  const rig = new Rig(kernel({ accounts: new Map() }));
  rig.commit(ROWS);
  await rig.sync();
  for (const table of ['filter', 'nat', 'mangle'] as const)
    rig.kernel.tamper(table, (chains) => {
      for (const [name, rules] of chains)
        if (name.startsWith('KUBE-')) chains.delete(name);
        else rules.length = 0;
    });
  rig.kernel.accounts?.clear();
  await rig.sync(true);
  t.same(counting(rig), [DROPPED, LOOPBACK]);
});

t.test('IPv6 has no counter of node ports on loopback, nor a node without them', async (t) => {
  const v6 = new Rig(kernel({ accounts: new Map() }), 'IPv6');
  v6.commit(ROWS);
  await v6.sync();
  t.same(counting(v6), [DROPPED]);
  const primary = new Rig(kernel({ accounts: new Map() }), 'IPv4', { nodePortAddresses: ['primary'] });
  primary.commit(ROWS);
  primary.settings = { ...primary.settings, dropInvalid: false };
  await primary.sync();
  t.same(counting(primary), []);
  t.same(await primary.difference(), []);
});

for (const [what, fields] of [
  ['the kernel has no accounting', { accounts: null }],
  ['the programs do not know the match', { accounts: new Map<string, number>(), programsCount: false }],
] as const) {
  t.test(`${what}: rules have no counters`, async (t) => {
    const rig = new Rig(kernel(fields));
    rig.commit(ROWS);
    const report = await rig.sync();
    t.same(counting(rig), [PLAIN]);
    t.same(report.problems, []);
    t.notOk(rig.kernel.chains('filter').includes('KUBE-PROXY-PROBE'));
    t.same(await rig.difference(), []);
    t.equal(await rig.counters.read(), null);
    t.same(await rig.during(() => rig.sync(true)), [], 'nor does it matter later');
  });
}

t.test('a kernel that is short of memory for a moment counts from the next check', async (t) => {
  const rig = new Rig(kernel({ accounts: null }));
  rig.commit(ROWS);
  await rig.sync();
  t.same(counting(rig), [PLAIN]);
  Object.assign(rig.kernel, { accounts: new Map() });
  rig.wait(3_600_000);
  t.equal(await rig.dataplane.audit(), true, 'which says that rules differ');
  await rig.sync(true);
  t.same(counting(rig), [DROPPED, LOOPBACK]);
  t.same(await rig.difference(), []);
});

t.test('a kernel without accounting is asked once more, and not at every check', async (t) => {
  const rig = new Rig(kernel({ accounts: null }));
  rig.commit(ROWS);
  await rig.sync();
  let asked = 0;
  rig.kernel.accountCreate = () => Promise.reject(new Error(`asked ${++asked} times`));
  for (let check = 0; check < 3; check++) {
    rig.wait(3_600_000);
    t.equal(await rig.dataplane.audit(), false);
  }
  t.equal(asked, 1);
});

t.test('the test chain of a killed process is removed', async (t) => {
  const rig = new Rig();
  rig.commit(ROWS);
  await rig.sync();
  rig.kernel.tamper('filter', (chains) => chains.set('KUBE-PROXY-PROBE', []));
  rig.restart();
  t.same(await rig.during(() => rig.sync()), ['delete-chain filter KUBE-PROXY-PROBE']);
});

for (const fault of ['lose-ack', 'refuse'] as const) {
  t.test(`${fault} while counters are tried: no test chain stays`, async (t) => {
    const rig = new Rig();
    rig.kernel.accounts = new Map();
    const restore = rig.kernel.iptablesRestore.bind(rig.kernel);
    rig.kernel.iptablesRestore = (transaction) => {
      const isRemoval = transaction.operations.some(({ type }) => type === 'delete-chain');
      if (isRemoval === (fault === 'refuse')) {
        rig.kernel.faults.push(fault);
        rig.kernel.iptablesRestore = restore;
      }
      return restore(transaction);
    };
    rig.commit(NODE_ROWS);
    await t.rejects(rig.sync());
    await rig.sync();
    t.notOk(rig.kernel.chains('filter').includes('KUBE-PROXY-PROBE'));
    t.same(await rig.difference(), []);
  });
}
