import '../support/namespace.js';

import t from 'tap';
import type {
  NftablesAddon,
  NftCommandsOperation,
  NftElementsOperation,
  NftOperation,
} from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';
import { loadAddon } from '../../src/native/load.js';
import { NftablesFamily } from '../../src/dataplane/nftables/family.js';
import { Planner } from '../../src/plan/planner.js';
import { printTable } from '../../src/plan/text.js';
import { Store } from '../../src/state/store.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { planSettings } from '../support/plan-settings.js';
import { node, service, serviceCIDR, slice } from '../support/rows.js';

/** Small transactions on the fake kernel and on this one: both must take them or refuse them alike, and list the same afterwards. */

const addon = loadAddon().nftables;
const TABLE = 'kube-proxy';
const where = { family: 'ip', table: TABLE } as const;

type Body = Readonly<Record<string, unknown>>;

function run(...commands: readonly (readonly [verb: string, kind: string, body: Body])[]): NftCommandsOperation {
  const list = commands.map(([verb, kind, body]) => ({
    [verb]: { [kind]: kind === 'table' ? { family: 'ip', name: TABLE, ...body } : { ...where, ...body } },
  }));
  return { type: 'commands', commands: list };
}

const chain = (name: string, hook: Body = {}): readonly ['add', 'chain', Body] => ['add', 'chain', { name, ...hook }];
const rule = (to: string, ...expr: readonly Body[]): readonly ['add', 'rule', Body] => [
  'add',
  'rule',
  { chain: to, expr },
];
const set = (name: string, more: Body = {}): readonly ['add', 'set', Body] => [
  'add',
  'set',
  { name, type: ['ipv4_addr', 'inet_service'], ...more },
];
const map = (name: string, to: unknown, more: Body = {}): readonly ['add', 'map', Body] => [
  'add',
  'map',
  { name, type: 'ipv4_addr', map: to, ...more },
];
const del = (kind: string, name: string): readonly ['delete', string, Body] => ['delete', kind, { name }];
const flush = (kind: string, name: string): readonly ['flush', string, Body] => ['flush', kind, { name }];

const filterHook = { type: 'filter', hook: 'input', prio: 0, policy: 'accept' };
const laterHook = { type: 'filter', hook: 'input', prio: 7, policy: 'accept' };
const jump = (target: string): Body => ({ jump: { target } });
const inSet = (name: string): Body => ({
  match: {
    op: '==',
    left: {
      concat: [{ payload: { protocol: 'ip', field: 'daddr' } }, { payload: { protocol: 'th', field: 'dport' } }],
    },
    right: `@${name}`,
  },
});
const vmapOf = (name: string): Body => ({
  vmap: { key: { payload: { protocol: 'ip', field: 'daddr' } }, data: `@${name}` },
});

/** Rows of bytes: keys, and their ends, values or chains. */
function elements(
  verb: 'add' | 'delete',
  name: string,
  keys: readonly (readonly number[])[],
  more: {
    readonly ends?: readonly (readonly number[])[];
    readonly data?: readonly (readonly number[])[];
    readonly chains?: readonly string[];
  } = {},
): NftElementsOperation {
  return {
    type: 'elements',
    verb,
    set: name,
    count: keys.length,
    keyLength: keys[0]?.length ?? 4,
    keys: Uint8Array.from(keys.flat()),
    keyEnds: more.ends === undefined ? null : Uint8Array.from(more.ends.flat()),
    dataLength: more.data?.[0]?.length ?? 0,
    data: more.data === undefined ? null : Uint8Array.from(more.data.flat()),
    gotoChains: more.chains ?? null,
    comments: null,
  };
}

const key = (last: number, port = 80): readonly number[] => [10, 0, 0, last, 0, port, 0, 0];
const host = (last: number): readonly number[] => [10, 0, 0, last];

const plainSet = run(['add', 'table', {}], set('s'));
const dataMap = run(['add', 'table', {}], map('m', 'ipv4_addr'));
const verdictMap = run(['add', 'table', {}], chain('one'), chain('two'), map('v', 'verdict'));
const ranges = run(['add', 'table', {}], set('r', { flags: ['interval'] }));
const range = (first: number, last: number): NftElementsOperation =>
  elements('add', 'r', [key(first)], { ends: [key(last)] });
const withoutRange = (first: number, last: number): NftElementsOperation =>
  elements('delete', 'r', [key(first)], { ends: [key(last)] });

/** Each story is a list of transactions on a kernel without a table. */
const STORIES: Readonly<Record<string, readonly (readonly NftOperation[])[]>> = {
  'nothing without a table': [
    [run(chain('c'))],
    [run(set('s'))],
    [run(['delete', 'table', {}])],
    [elements('add', 's', [key(1)])],
    [run(flush('chain', 'c'))],
    [run(del('set', 's'))],
  ],
  'a table added twice, deleted once': [
    [run(['add', 'table', {}], ['add', 'table', {}])],
    [run(['delete', 'table', {}])],
    [run(['delete', 'table', {}])],
    [run(['add', 'table', {}], ['delete', 'table', {}])],
  ],
  'a table deleted and made anew': [
    [plainSet, elements('add', 's', [key(1)])],
    [run(['add', 'table', {}], ['delete', 'table', {}], ['add', 'table', {}], set('s', { type: 'ipv4_addr' }))],
    [elements('add', 's', [key(1)])],
    [elements('add', 's', [host(1)])],
  ],
  'all or nothing': [
    [plainSet],
    [elements('add', 's', [key(1)]), run(chain('c')), elements('delete', 's', [key(2)])],
    [elements('delete', 's', [key(1)])],
    [run(del('chain', 'c'))],
  ],
  'a chain added again': [
    [run(['add', 'table', {}], chain('c'), chain('b', filterHook))],
    [run(chain('c'))],
    [run(chain('b', filterHook))],
    [run(chain('b'))],
    [run(chain('b', laterHook))],
    [run(chain('b', { ...filterHook, hook: 'forward' }))],
    [run(chain('b', { ...filterHook, type: 'nat' }))],
    [run(chain('c', filterHook))],
  ],
  'chains that rules lead to': [
    [run(['add', 'table', {}], chain('one'), chain('two'), rule('one', jump('two')))],
    [run(del('chain', 'two'))],
    [run(del('chain', 'missing'))],
    [run(rule('one', jump('missing')))],
    [run(rule('missing', jump('one')))],
    [run(flush('chain', 'one'), del('chain', 'two'))],
    [run(del('chain', 'one'))],
  ],
  'a chain deleted with its own rules': [
    [run(['add', 'table', {}], chain('one'), chain('two'), rule('one', jump('two')))],
    [run(del('chain', 'one'), del('chain', 'two'))],
  ],
  'base chains are not jumped to': [
    [run(['add', 'table', {}], chain('b', filterHook), chain('one'))],
    [run(rule('one', jump('b')))],
    [run(map('v', 'verdict')), elements('add', 'v', [host(1)], { chains: ['b'] })],
  ],
  'a loop': [
    [run(['add', 'table', {}], chain('b', filterHook), chain('one'), chain('two'), rule('b', jump('one')))],
    [run(rule('one', jump('two')), rule('two', jump('one')))],
  ],
  'a loop without a hook': [
    [run(['add', 'table', {}], chain('one'), chain('two'))],
    [run(rule('one', jump('two')), rule('two', jump('one')))],
    [run(rule('one', jump('one')))],
  ],
  'a loop through a map': [
    [verdictMap, run(chain('b', filterHook), rule('b', vmapOf('v')), rule('one', vmapOf('v')))],
    [elements('add', 'v', [host(1)], { chains: ['two'] })],
    [elements('add', 'v', [host(2)], { chains: ['one'] })],
  ],
  'sets that rules use': [
    [plainSet, run(chain('c'), rule('c', inSet('s'), { drop: null }))],
    [run(del('set', 's'))],
    [run(rule('c', inSet('missing'), { drop: null }))],
    [run(del('set', 'missing'))],
    [run(flush('set', 'missing'))],
    [run(flush('chain', 'c'), del('set', 's'))],
  ],
  'a set deleted with its elements': [[plainSet, elements('add', 's', [key(1)])], [run(del('set', 's'))]],
  'a set declared again': [
    [plainSet],
    [run(set('s'))],
    [run(set('s', { type: 'ipv4_addr' }))],
    [run(map('s', 'verdict'))],
    [run(set('s', { flags: ['interval'] }))],
  ],
  'a timeout declared again': [
    [run(['add', 'table', {}], set('d', { flags: ['timeout', 'dynamic'], timeout: 100, size: 10 }))],
    [run(set('d', { flags: ['timeout', 'dynamic'], timeout: 100, size: 10 }))],
  ],
  'elements of a set': [
    [plainSet],
    [elements('add', 's', [key(1), key(2)])],
    [elements('add', 's', [key(2), key(3)])],
    [elements('delete', 's', [key(3), key(4)])],
    [elements('delete', 's', [key(3)])],
    [elements('delete', 's', [key(3)])],
    [elements('delete', 's', [key(2)]), elements('add', 's', [key(2)])],
    [elements('add', 's', [key(7)]), elements('delete', 's', [key(7)])],
    [elements('delete', 'missing', [key(7)])],
    [elements('add', 'missing', [key(7)])],
  ],
  'a flushed set': [
    [plainSet, elements('add', 's', [key(1)])],
    [run(flush('set', 's')), elements('add', 's', [key(1)])],
    [run(flush('set', 's')), elements('delete', 's', [key(1)])],
    [run(flush('set', 's'))],
  ],
  'elements of a map': [
    [dataMap, elements('add', 'm', [host(1)], { data: [host(101)] })],
    [elements('add', 'm', [host(1)], { data: [host(101)] })],
    [elements('add', 'm', [host(1)], { data: [host(102)] })],
    [elements('delete', 'm', [host(1)]), elements('add', 'm', [host(1)], { data: [host(102)] })],
    [elements('add', 'm', [host(2), host(2)], { data: [host(1), host(1)] })],
    [elements('add', 'm', [host(3), host(3)], { data: [host(1), host(2)] })],
  ],
  'elements of another shape': [
    [plainSet, run(map('m', 'ipv4_addr'), chain('one'), map('v', 'verdict'))],
    [elements('add', 's', [host(1)])],
    [elements('delete', 's', [host(1)])],
    [elements('add', 's', [key(1)], { ends: [key(2)] })],
    [elements('add', 'm', [host(1)])],
    [elements('add', 'm', [host(1)], { data: [key(1)] })],
    [elements('add', 'm', [host(1)], { chains: ['one'] })],
    [elements('add', 'v', [host(1)], { data: [host(1)] })],
    [elements('add', 'v', [host(1)])],
    [elements('add', 's', [key(1)], { data: [host(1)] })],
  ],
  verdicts: [
    [verdictMap, elements('add', 'v', [host(1)], { chains: ['one'] })],
    [elements('add', 'v', [host(1)], { chains: ['one'] })],
    [elements('add', 'v', [host(1)], { chains: ['two'] })],
    [elements('add', 'v', [host(2)], { chains: ['missing'] })],
    [run(del('chain', 'one'))],
    [
      elements('delete', 'v', [host(1)]),
      elements('add', 'v', [host(1)], { chains: ['two'] }),
      run(del('chain', 'one')),
    ],
    [run(flush('map', 'v'), del('chain', 'two'))],
  ],
  'verdicts of a map that goes': [
    [verdictMap, elements('add', 'v', [host(1)], { chains: ['one'] })],
    [run(del('map', 'v'), del('chain', 'one'))],
  ],
  ranges: [
    [ranges, range(10, 20)],
    [range(10, 20)],
    [range(15, 17)],
    [range(15, 25)],
    [range(5, 10)],
    [range(20, 20)],
    [range(21, 30)],
    [withoutRange(10, 20), range(12, 18)],
    [withoutRange(10, 20)],
    [withoutRange(12, 18)],
    [withoutRange(12, 18)],
    [elements('add', 'r', [key(40)])],
    [range(40, 40)],
    [elements('delete', 'r', [key(40)], { ends: [key(40)] })],
  ],
  'a range around another': [[ranges, range(10, 20)], [range(5, 30)]],
  'a range upside down': [[ranges, range(20, 10)]],
  'ranges of several fields': [
    [ranges],
    [elements('add', 'r', [key(1, 1)], { ends: [key(9, 5)] })],
    [elements('add', 'r', [key(1, 6)], { ends: [key(9, 9)] })],
    [elements('add', 'r', [key(5, 5)], { ends: [key(5, 7)] })],
  ],
  'more than fit': [
    [run(['add', 'table', {}], set('d', { size: 2 }))],
    [elements('add', 'd', [key(1), key(2)])],
    [elements('add', 'd', [key(2)])],
    [elements('add', 'd', [key(3)])],
  ],
};

interface Outcome {
  readonly errno: string | null;
  readonly index: number | null;
  readonly element: number | null;
}

async function outcome(kernel: NftablesAddon, operations: readonly NftOperation[]): Promise<Outcome> {
  try {
    await kernel.nftTransact({ ...where, operations });
    return { errno: null, index: null, element: null };
  } catch (error) {
    if (!isNativeError(error)) throw error;
    return { errno: error.errno, index: error.index, element: error.element };
  }
}

/** The elements of a listing have no order. */
async function listing(kernel: NftablesAddon): Promise<unknown> {
  const table = await kernel.nftList('ip', TABLE, null);
  return table?.sets.map(({ elements: listed, ...rest }) => {
    const size = rest.keyLength;
    const rows = Array.from({ length: listed?.count ?? 0 }, (_, index) =>
      [
        listed?.keys.subarray(index * size, (index + 1) * size).join('.'),
        listed?.keyEnds?.subarray(index * size, (index + 1) * size).join('.'),
        listed?.data?.subarray(index * rest.dataLength, (index + 1) * rest.dataLength).join('.'),
        listed?.verdicts?.[index],
      ].join(' '),
    );
    return { ...rest, elements: rows.sort(), chains: table.chains };
  });
}

for (const [name, transactions] of Object.entries(STORIES)) {
  t.test(name, async (t) => {
    const fake = new FakeKernel(addon);
    t.teardown(() => outcome(addon, [run(['add', 'table', {}], ['delete', 'table', {}])]));
    for (const [index, operations] of transactions.entries()) {
      const before = [await addon.nftGeneration(), await fake.nftGeneration()] as const;
      const real = await outcome(addon, operations);
      const faked = await outcome(fake, operations);
      const steps = [(await addon.nftGeneration()) - before[0], (await fake.nftGeneration()) - before[1]] as const;
      const where = `transaction ${index + 1}: ${real.errno ?? 'taken'}`;
      t.equal(faked.errno, real.errno, where);
      t.equal(faked.index, real.index, `${where}, operation`);
      // The kernel does not always say which element it was.
      if (real.element !== null) t.equal(faked.element, real.element, `${where}, element`);
      t.equal(steps[1], steps[0], `${where}, generation`);
      t.same(await listing(fake), await listing(addon), `${where}, listing`);
    }
  });
}

/** Everything that a Service can ask for, in one family. */
function planned(family: 'IPv4' | 'IPv6'): Planner['tables']['IPv4'] {
  const four = family === 'IPv4';
  const pod = (last: number): string => (four ? `10.0.1.${last}` : `fd00:10::${last}`);
  const store = new Store();
  const rows = [
    node('me', [four ? '192.168.0.2' : '2001:db8::1']),
    serviceCIDR('kubernetes', [four ? '10.96.0.0/12' : 'fd00:96::/112']),
    service('all', {
      clusterIPs: [four ? '10.96.0.1' : 'fd00:96::1'],
      externalIPs: [four ? '198.51.100.1' : '2001:db8:1::1'],
      balancer: [four ? '198.51.100.2' : '2001:db8:1::2'],
      sourceRanges: four ? ['203.0.113.0/24', '10.0.0.0/8'] : ['2001:db8:2::/64', '2001:db8::1/128'],
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 32000,
      affinitySeconds: 10_800,
      ports: [
        { name: 'a', port: 80, nodePort: 30080 },
        { name: 'b', port: 53, protocol: 'UDP', nodePort: 30053 },
        { name: 'c', port: 9, protocol: 'SCTP' },
      ],
    }),
    slice(
      'all',
      [6, 7, 8].map((last) => ({ address: pod(last), node: last === 6 ? 'me' : 'other' })),
      {
        ports: [
          { name: 'a', port: 8080 },
          { name: 'b', port: 5353, protocol: 'UDP' },
        ],
      },
    ),
  ];
  store.register('test').apply(rows.map((row) => ({ type: 'upsert', row })));
  const planner = new Planner(planSettings());
  planner.update(store.snapshot, store.takeChanges());
  return planner.tables[family];
}

for (const family of ['IPv4', 'IPv6'] as const) {
  t.test(`${family}: the proxy's whole table lists alike, and is adopted`, async (t) => {
    const nft = family === 'IPv4' ? 'ip' : 'ip6';
    const table = planned(family);
    const fake = new FakeKernel(addon);
    const change = table.takeChange();
    for (const kernel of [fake, addon]) {
      await new NftablesFamily(kernel, family).apply(table, change, { full: true });
      const dataplane = new NftablesFamily(kernel, family);
      t.match(await dataplane.apply(table, change, { full: true }), { transactions: 0, repairs: [], problems: [] });
      t.same(await dataplane.dump(table.node), printTable(table));
    }
    const rules = (listed: Awaited<ReturnType<NftablesAddon['nftList']>>): unknown => [
      listed?.chains,
      listed?.sets.map(({ elements: held, ...rest }) => ({ ...rest, count: held?.count })),
    ];
    t.same(rules(await fake.nftList(nft, TABLE, null)), rules(await addon.nftList(nft, TABLE, null)));
    const names = ['hairpin-pairs', 'no-such-set', 'restricted-frontends'];
    const counts = async (kernel: NftablesAddon): Promise<unknown> =>
      (await kernel.nftElements(nft, TABLE, names)).map(({ elements: held, ...rest }) => ({
        ...rest,
        count: held?.count,
      }));
    t.same(await counts(fake), await counts(addon));
    const has = async (kernel: NftablesAddon): Promise<unknown> => {
      const [set] = await addon.nftElements(nft, TABLE, ['hairpin-pairs']);
      const keys = Buffer.concat([set?.elements?.keys ?? Buffer.alloc(0), Buffer.alloc(set?.keyLength ?? 0)]);
      return await kernel.nftHas(nft, TABLE, 'hairpin-pairs', set?.keyLength ?? 0, keys);
    };
    t.same(await has(fake), await has(addon));
    await new NftablesFamily(addon, family).cleanup();
    t.equal(await addon.nftList(nft, TABLE, null), null);
  });
}
