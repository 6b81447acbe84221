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
