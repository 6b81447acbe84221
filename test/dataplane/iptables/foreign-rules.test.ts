import t from 'tap';
import { NODE_ROWS, Rig } from './rig.js';
import { cluster, endpoints } from './cluster.js';

/** What is ours and what is not: damage, others' rules in the same chains, and what goes at the end. */

t.test('external damage of rules is found, named and repaired', async (t) => {
  const rig = await cluster(2, 2);
  rig.kernel.tamper('nat', (chains) => {
    chains.set('KUBE-MARK-MASQ', []);
    chains.get('PREROUTING')?.pop();
    chains.set('KUBE-SVC-FOREIGN', []);
  });
  const report = await rig.sync(true);
  t.match(report.repairs, [
    'chain nat KUBE-MARK-MASQ had other rules',
    /^rule of nat PREROUTING was missing: .* -j KUBE-SERVICES$/,
  ]);
  t.notOk(rig.kernel.chains('nat').includes('KUBE-SVC-FOREIGN'));
  t.same(await rig.difference(), []);
  rig.kernel.tamper('nat', (chains) => {
    for (const [name, rules] of chains) {
      if (name.startsWith('KUBE-')) chains.delete(name);
      else rules.length = 0;
    }
  });
  t.ok((await rig.sync(true)).repairs.length > 5, 'after a flush everything is missing');
  t.same(await rig.difference(), []);
  t.same((await rig.sync(true)).repairs, []);
});

t.test("foreign rules in built-in chains stay, and pointsman's jumps are moved before them", async (t) => {
  const rig = new Rig();
  rig.commit(NODE_ROWS);
  await rig.sync();
  rig.kernel.tamper('filter', (chains) => {
    chains.get('INPUT')?.unshift('-i lo -j ACCEPT');
    chains.get('FORWARD')?.unshift('-j ACCEPT');
    chains.get('OUTPUT')?.push(chains.get('OUTPUT')?.[0] ?? '');
  });
  await rig.sync(true);
  t.equal(rig.kernel.rules('filter', 'INPUT')?.[0], '-i lo -j ACCEPT');
  t.equal(rig.kernel.rules('filter', 'FORWARD')?.at(-1), '-j ACCEPT');
  t.equal(rig.kernel.rules('filter', 'FORWARD')?.length, 5);
  t.equal(rig.kernel.rules('filter', 'OUTPUT')?.length, 4, 'a jump twice is one too many');
});

t.test("KUBE-FIREWALL is shared: kubelet's rules there stay", async (t) => {
  const rig = new Rig();
  rig.kernel.tamper('filter', (chains) => chains.set('KUBE-FIREWALL', ['-m mark --mark 0x8000/0x8000 -j DROP']));
  rig.commit(NODE_ROWS);
  await rig.sync();
  t.equal(rig.kernel.rules('filter', 'KUBE-FIREWALL')?.length, 2);
});

t.test('a chain that cannot be removed is reported, and the sync succeeds', async (t) => {
  const rig = await cluster(1, 1);
  const audit = (): Promise<boolean> => {
    rig.wait(3_600_000);
    return rig.dataplane.audit();
  };
  // Where packets cannot be counted, a check lists everything to ask once more.
  rig.kernel.accounts = new Map();
  t.equal(await audit(), true);
  await rig.sync(true);
  rig.kernel.tamper('nat', (chains) => {
    chains.set('KUBE-SEP-OLD', []);
    chains.set('MINE', ['-j KUBE-SEP-OLD']);
  });
  t.equal(await audit(), true);
  const report = await rig.sync(true);
  t.match(report.problems, [/^cannot remove chains that are no longer used: .*KUBE-SEP-OLD/]);
  t.equal(await audit(), true, 'the next full sync tries again, though nothing has changed');
  rig.kernel.tamper('nat', (chains) => chains.set('MINE', []));
  t.same((await rig.sync(true)).problems, []);
  t.notOk(rig.kernel.chains('nat').includes('KUBE-SEP-OLD'));
  t.equal(await audit(), false);
});

t.test('a chain that cannot be removed does not keep the others, nor those that it leads to', async (t) => {
  const rig = await cluster(1, 1);
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const named = (kind: string): readonly string[] => numbers.map((number) => `KUBE-${kind}-OLD${number}`);
  const leave = (used: number): void => {
    rig.kernel.tamper('nat', (chains) => {
      for (const number of numbers) {
        chains.set(`KUBE-SVC-OLD${number}`, [`-j KUBE-SEP-OLD${number}`]);
        chains.set(`KUBE-SEP-OLD${number}`, []);
      }
      chains.set(
        'MINE',
        numbers.slice(0, used).map((number) => `-j KUBE-SVC-OLD${number}`),
      );
    });
  };
  const left = (kind: string): readonly string[] =>
    rig.kernel.chains('nat').filter((name) => named(kind).includes(name));
  leave(3);
  rig.restart();
  const { problems } = await rig.sync();
  t.equal(problems.length, 3);
  t.same(left('SVC'), named('SVC').slice(0, 3));
  t.same(left('SEP'), []);
  t.same(rig.kernel.rules('nat', 'KUBE-SVC-OLD0'), []);
  leave(numbers.length);
  const many = (await rig.sync(true)).problems;
  t.ok(many.length < numbers.length, 'very many are not tried one by one');
  rig.kernel.tamper('nat', (chains) => chains.set('MINE', []));
  t.same((await rig.sync(true)).problems, []);
  t.same([...left('SVC'), ...left('SEP')], []);
  t.same(await rig.difference(), []);
});

const SETTING = 'another setting of conntrack';
const DAMAGE: Readonly<Record<string, (rig: Rig) => void>> = {
  'an altered chain': (rig) => {
    rig.kernel.tamper('nat', (chains) => chains.set('KUBE-MARK-MASQ', []));
  },
  'a missing jump': (rig) => {
    rig.kernel.tamper('nat', (chains) => chains.get('PREROUTING')?.pop());
  },
  'an unexpected chain': (rig) => {
    rig.kernel.tamper('nat', (chains) => chains.set('KUBE-SVC-FOREIGN', []));
  },
  [SETTING]: (rig) => {
    rig.settings = { dropInvalid: !rig.settings.dropInvalid };
  },
};

for (const [reported, harm] of Object.entries(DAMAGE)) {
  t.test(`${reported}: an audit finds it, and the next full sync repairs it`, async (t) => {
    const rig = await cluster(2, 2);
    const audit = (): Promise<boolean> => {
      rig.wait(3_600_000);
      return rig.dataplane.audit();
    };
    t.equal(await audit(), false);
    harm(rig);
    const isFound = await rig.dataplane.audit();
    t.equal(isFound, reported === SETTING, 'listing takes no more than a share of the time, and a setting needs none');
    t.equal(await audit(), true);
    const { full } = await rig.dataplane.apply(rig.table, rig.table.takeChange(), { full: true });
    t.equal(full, true, 'although everything was listed a moment ago');
    t.equal(await audit(), false);
    t.same(await rig.difference(), []);
  });
}

t.test('iptables audits list only tables that may have changed', async (t) => {
  for (const [flavor, expected] of [
    ['nft', 0],
    ['legacy', 3],
  ] as const) {
    const rig = await cluster(2, 2, flavor);
    // An audit asks once more whether packets can be counted.
    rig.wait(3_600_000);
    await rig.dataplane.audit();
    rig.commit([endpoints(1, 3)]);
    await rig.sync();
    rig.kernel.forgetCalls();
    for (let count = 0; count < 3; count++) {
      rig.wait(3_600_000);
      t.equal(await rig.dataplane.audit(), false);
    }
    t.equal(rig.kernel.listed.length, expected, flavor);
  }
});

t.test('an audit reports no difference for changes by a sync meanwhile', async (t) => {
  const rig = await cluster(2, 2);
  rig.wait(3_600_000);
  const audit = rig.dataplane.audit();
  rig.commit([endpoints(1, 3)]);
  await rig.sync();
  t.equal(await audit, false);
});
