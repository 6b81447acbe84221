import t from 'tap';
import { lossesOf, lossesOfAll, type ForeignQuestion } from '../../src/dataplane/foreign/losses.js';
import type { ForeignReading } from '../../src/dataplane/foreign/read.js';
import type { IptablesChainListing } from '../../src/native/contract.js';
import { KernelError } from '../support/fake-kernel/kernel-error.js';
import { address } from '../support/rows.js';

/** Chains of which each calls the next one four times: there are 4^15 ways to the last. */
const LEVELS = Array.from({ length: 16 }, (_, level) => `L${level}`);
const CALLING = LEVELS.map((name, level): IptablesChainListing => ({
  ...({ table: 'filter', name, policy: null, ruleCount: 0, digest: '' } as const),
  rules: level + 1 < LEVELS.length ? new Array<string>(4).fill(`-j L${level + 1}`) : [],
}));

function legacy(...forward: readonly string[]): ForeignReading {
  const base = {
    table: 'filter',
    name: 'FORWARD',
    policy: 'ACCEPT',
    ruleCount: 0,
    digest: '',
    rules: forward,
  } as const;
  return {
    nftables: {
      nftBaseChains: () => Promise.resolve([]),
      nftList: () => Promise.resolve(null),
      nftElements: () => Promise.resolve([]),
    },
    iptables: {
      iptablesList: () => Promise.resolve([base, ...CALLING]),
      iptablesSizes: () => Promise.resolve(''),
    },
  };
}

const QUESTION: ForeignQuestion = {
  family: 'IPv4',
  protocol: 'TCP',
  source: null,
  inputInterface: null,
  isSentHere: false,
  isSentOn: false,
  destination: address('10.96.0.10'),
  isToNode: false,
  port: 80,
  masquerade: false,
  endpoints: ['10.244.1.1', '10.244.1.2'].map((each) => ({ address: address(each), port: 80, isOwn: false })),
};

t.test('chains that call each other too many times are reported once, in little time', async (t) => {
  const { losses, unread } = await lossesOf(legacy('-j L0', '-j DROP'), QUESTION);
  t.same(losses, []);
  t.same(unread, [
    'chain FORWARD of legacy iptables table filter cannot be evaluated, as its chains call each other too many times',
  ]);
  t.same((await lossesOfAll(legacy('-j L0', '-j DROP'))).losses, [], 'nothing is certain');
  t.end();
});

t.test('a table with too many rules is named, and the others are evaluated', async (t) => {
  const { iptables, nftables } = legacy('-j DROP');
  const asked: (number | undefined)[] = [];
  const tooLarge: ForeignReading['nftables'] = {
    ...nftables,
    nftBaseChains: () =>
      Promise.resolve([
        {
          family: 'ip',
          table: 'raw',
          chain: 'PREROUTING',
          hook: 'type filter hook prerouting priority -300 policy accept',
        },
      ]),
    nftList: (...[, , , mostRules]) => {
      asked.push(mostRules);
      return Promise.reject(new KernelError('E2BIG', 'nft list', { object: null, index: null, element: null }));
    },
  };
  const { losses, unread } = await lossesOf({ nftables: tooLarge, iptables }, QUESTION);
  t.same(unread, ['table ip raw has more than 20000 rules, which are not evaluated']);
  t.equal(losses.length, 1);
  t.same(asked, [20_000], 'the rest of the table is not read');
  t.end();
});

t.test('a drop in an earlier rule of another owner is found', async (t) => {
  const { losses, unread } = await lossesOf(legacy('-j DROP', '-j L0'), QUESTION);
  t.same(
    losses.map(({ outcome, certain, all }) => ({ outcome, certain, all })),
    [{ outcome: 'drop', certain: true, all: true }],
  );
  t.same(unread, []);
  t.end();
});

t.test('a legacy table raw with too many rules is not listed', async (t) => {
  const { nftables, iptables } = legacy('-j DROP');
  const listed: string[] = [];
  const reading = (rules: number): ForeignReading => ({
    nftables,
    iptables: {
      iptablesList: (family, flavor, tables, textOf) => {
        listed.push(tables.join());
        return iptables.iptablesList(family, flavor, tables, textOf);
      },
      iptablesSizes: () => Promise.resolve(`filter 5 800 0 0\nraw ${rules} 176000 0 0\n`),
    },
  });
  t.same((await lossesOf(reading(20_000), QUESTION)).unread, []);
  t.match(await lossesOf(reading(20_001), QUESTION), {
    losses: [{ outcome: 'drop', families: ['IPv4'] }],
    unread: ['legacy iptables table raw has more than 20000 rules, which are not evaluated'],
  });
  t.same(listed, ['filter,nat,mangle,raw,security', 'filter,nat,mangle,security']);
});

/** One chain of type nat or filter beside ours, which is second in the kernel's list. */
function beside(
  { type = 'nat', priority = -100, before = false, ours = true }: Beside,
  ...rules: readonly string[]
): ForeignReading {
  const { iptables } = legacy();
  const hook = (priority: number): string => `type ${type} hook prerouting priority ${priority} policy accept`;
  const other = { family: 'ip', table: 'wall', chain: 'f', hook: hook(priority) } as const;
  const own = {
    family: 'ip',
    table: 'kube-proxy',
    chain: 'nat-prerouting',
    hook: 'type nat hook prerouting priority -100 policy accept',
  } as const;
  const all = [...(before ? [other] : []), ...(ours ? [own] : []), ...(before ? [] : [other])];
  return {
    iptables: { ...iptables, iptablesList: () => Promise.resolve([]) },
    nftables: {
      nftBaseChains: () => Promise.resolve(all),
      nftList: () =>
        Promise.resolve({
          chains: [
            { name: 'f', hook: other.hook, rules },
            { name: 'g', hook: null, rules: [DNAT] },
            { name: 'raw', hook: null, rules: [NOTRACK] },
          ],
          sets: [],
          objects: [],
        } as unknown as Awaited<ReturnType<ForeignReading['nftables']['nftList']>>),
      nftElements: () => Promise.resolve([]),
    },
  };
}

interface Beside {
  readonly type?: 'nat' | 'filter';
  readonly priority?: number;
  /** Whether it was made before ours. */
  readonly before?: boolean;
  readonly ours?: boolean;
}

const DNAT = '[immediate dreg 1 value 0x0a010101] [nat type dnat family ip address 1]';
const NOTRACK = '[unknown(notrack) 0x]';
const LIMIT = '[limit rate 1 unit 3600 burst 5 type packets flags 0]';

t.test(
  'others that translate a packet, exempt it from tracking or divert it are found by the order of calls',
  async (t) => {
    const raw = { type: 'filter', priority: -300 } as const;
    const cases: readonly (readonly [what: string, reading: ForeignReading, found: string])[] = [
      ['made after ours, so called before', beside({}, DNAT), 'translate certain'],
      ['made before ours, so called after', beside({ before: true }, DNAT), 'translate possible'],
      ['where ours is unknown', beside({ ours: false }, DNAT), 'translate possible'],
      ['a smaller priority', beside({ before: true, priority: -110 }, DNAT), 'translate certain'],
      ['a greater priority', beside({ priority: -99 }, DNAT), ''],
      ['a source', beside({}, DNAT.replace('dnat', 'snat')), ''],
      ['behind the jump to ours', beside({}, '[immediate dreg 0 value jump KUBE-SERVICES]', DNAT), ''],
      ['before the jump to ours', beside({}, DNAT, '[immediate dreg 0 value jump KUBE-SERVICES]'), 'translate certain'],
      ['in a chain', beside({}, '[immediate dreg 0 value jump g]'), 'translate certain'],
      ['perhaps in a chain', beside({}, `${LIMIT} [immediate dreg 0 value jump g]`), 'translate possible'],
      ['untracked', beside(raw, NOTRACK), 'untrack certain'],
      ['perhaps untracked in a chain', beside(raw, `${LIMIT} [immediate dreg 0 value jump raw]`), 'untrack possible'],
      ['untracked too late', beside({ ...raw, priority: -200 }, NOTRACK), ''],
      ['dropped after it is untracked', beside(raw, NOTRACK, '[immediate dreg 0 value drop]'), 'drop certain'],
      ['diverted', beside({ ...raw, priority: -150 }, '[unknown(tproxy) 0x]'), 'divert certain'],
      [
        'of a local address alone',
        beside({}, `[fib flags daddr result type dreg 1] [cmp sreg 1 op eq value 0x02000000] ${DNAT}`),
        '',
      ],
    ];
    for (const [what, reading, found] of cases) {
      const { losses } = await lossesOf(reading, QUESTION);
      const of = losses.filter((loss) => loss.of === 'packet');
      t.equal(of.map(({ outcome, certain }) => `${outcome} ${certain ? 'certain' : 'possible'}`).join(), found, what);
    }
  },
);
