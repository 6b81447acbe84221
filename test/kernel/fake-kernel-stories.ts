import type { NftCommandsOperation, NftElementsOperation, NftOperation } from '../../src/native/contract.js';

/** Small transactions for a kernel, the fake one or this one's. */

export const TABLE = 'kube-proxy';
export const where = { family: 'ip', table: TABLE } as const;

type Body = Readonly<Record<string, unknown>>;

export function run(...commands: readonly (readonly [verb: string, kind: string, body: Body])[]): NftCommandsOperation {
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
export const STORIES: Readonly<Record<string, readonly (readonly NftOperation[])[]>> = {
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
