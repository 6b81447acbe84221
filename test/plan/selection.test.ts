import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import type { NodeFacts } from '../../src/plan/facts.js';
import type { PolicyUse, Selection } from '../../src/plan/selection-rules.js';
import { selectEndpoints } from '../../src/plan/selection.js';
import type { EndpointSliceRow } from '../../src/state/rows.js';
import { SelectionMemory } from '../../src/plan/selection-memory.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';
import { port, slice, type EndpointText } from '../support/rows.js';
import { categorizeEndpoints, endpointsOfPort, type OracleInput } from './selection-oracle.js';

const BOTH: PolicyUse = { cluster: true, local: true, onePort: false };

function facts(zone: string | null = null): NodeFacts {
  return { name: 'me', zone, addresses: { IPv4: null, IPv6: null }, ranges: null };
}

function printed(selection: Selection): Readonly<Record<string, unknown>> {
  return {
    cluster: selection.cluster.toStrings().sort(),
    local: selection.local.toStrings().sort(),
    any: selection.any,
    serving: selection.serving.toStrings().sort(),
    hairpin: [...selection.hairpin].sort(),
    own: [...selection.own].sort(),
  };
}

/** Hints that cover all endpoints, some of them or none: only the first kind makes a topology. */
function randomHints(random: SeededRandom, names: readonly string[]): () => readonly string[] {
  const probability = random.pick([0, 0.7, 1, 1]);
  return () => (random.chance(probability) ? [random.pick(names), ...random.some(names, 0.2)] : []);
}

function randomSlices(random: SeededRandom): readonly EndpointSliceRow[] {
  const states = random.pick([['rs'], ['rs', 'st', 't', '', 's', 'rst'], ['st', 't', 's'], ['rs', 'rs', 'rs', 'st']]);
  const zones = randomHints(random, ['a', 'b', 'c']);
  const nodes = randomHints(
    random,
    random.pick([
      ['me', 'other', 'third'],
      ['other', 'third'],
    ]),
  );
  return Array.from({ length: random.below(4) }, (_, number) => {
    const family: Family = random.chance(0.85) ? 'IPv4' : 'IPv6';
    const endpoints = Array.from({ length: random.below(6) }, (): EndpointText => {
      const host = random.below(7);
      return {
        address: family === 'IPv4' ? `10.0.${host}.1` : `fd00::${host}`,
        state: random.pick(states),
        node: random.pick(['me', 'other', 'third', null]),
        zones: zones(),
        nodes: nodes(),
      };
    });
    const ports = random.pick([
      [{}],
      [{ name: 'web' }],
      [{}, { name: 'web', port: 8080 }],
      [{ port: 80 }, { port: 81 }],
      [{ protocol: 'UDP' as const }, {}],
      [],
    ]);
    return slice('svc', endpoints, { name: `svc-${number}`, family, ports });
  });
}

t.test('endpoints are selected as in the pseudo code of behaviour §4.3', (t) => {
  const random = new SeededRandom(1);
  const seen = new Map<string, number>();
  for (let round = 0; round < rounds(20_000); round++) {
    const slices = randomSlices(random);
    const input: OracleInput = {
      family: random.chance(0.85) ? 'IPv4' : 'IPv6',
      port: { name: random.pick(['', '', 'web']), protocol: random.pick(['TCP', 'TCP', 'UDP']) },
      slices,
      nodeName: 'me',
      zone: random.pick(['a', 'b', null]),
      ...random.pick([
        { usesCluster: true, usesLocal: true },
        { usesCluster: true, usesLocal: false },
        { usesCluster: false, usesLocal: true },
      ]),
    };
    const { mode, ...expected } = categorizeEndpoints(input);
    const uses = { cluster: input.usesCluster, local: input.usesLocal, onePort: false };
    const selection = selectEndpoints(input.family, port(input.port), slices, facts(input.zone), uses);
    if (JSON.stringify(printed(selection)) !== JSON.stringify(expected)) {
      t.same(printed(selection), expected, JSON.stringify({ round, uses, zone: input.zone }));
      break;
    }
    for (const list of [selection.cluster, selection.local, selection.serving]) {
      const keys = list.toStrings().map((_, index) => list.key(index));
      if (keys.some((key, index) => index > 0 && key <= (keys[index - 1] ?? '')))
        t.fail(`not sorted: ${list.toStrings().join()}`);
    }
    const readyLocal = endpointsOfPort(input).filter((endpoint) => endpoint.ready && endpoint.node === 'me');
    const count = selection.readyHere.size;
    if (count !== new Set(readyLocal.map((endpoint) => endpoint.address)).size)
      t.fail(`round ${round}: ${count} ready local`);

    const kind = `${mode} ${expected.any ? (expected.local.length > 0 ? 'local' : 'elsewhere') : 'nothing'}`;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }
  for (const kind of ['SameNode local', 'SameNode elsewhere', 'SameZone local', 'SameZone elsewhere', 'none nothing'])
    t.ok((seen.get(kind) ?? 0) > rounds(20_000) / 200, `${kind}: ${seen.get(kind) ?? 0} times`);
  t.end();
});

interface Case {
  readonly name: string;
  readonly endpoints: readonly EndpointText[];
  readonly zone?: string;
  readonly cluster: string;
  readonly local: string;
  readonly any?: boolean;
}

const hinted = (host: number, zones: readonly string[], nodes: readonly string[] = [], rest = {}): EndpointText => ({
  address: `10.0.0.${host}`,
  zones,
  nodes,
  ...rest,
});

/** Addresses are 10.0.0.x:80; cluster and local name the x. */
const CASES: readonly Case[] = [
  { name: 'no endpoints', endpoints: [], cluster: '', local: '', any: false },
  {
    name: 'all hinted, zone matches',
    zone: 'a',
    endpoints: [hinted(1, ['a']), hinted(2, ['b']), hinted(3, ['b', 'a'])],
    cluster: '1 3',
    local: '',
  },
  { name: 'one hint missing: all', zone: 'a', endpoints: [hinted(1, ['a']), hinted(2, [])], cluster: '1 2', local: '' },
  { name: 'zone label missing: all', endpoints: [hinted(1, ['a']), hinted(2, ['b'])], cluster: '1 2', local: '' },
  {
    name: 'no endpoint for the zone: all',
    zone: 'c',
    endpoints: [hinted(1, ['a']), hinted(2, ['b'])],
    cluster: '1 2',
    local: '',
  },
  {
    name: 'node hints before zone hints',
    zone: 'a',
    endpoints: [hinted(1, ['a'], ['other']), hinted(2, ['b'], ['me'])],
    cluster: '2',
    local: '',
  },
  {
    name: 'node hints without a zone',
    endpoints: [hinted(1, [], ['other']), hinted(2, [], ['third', 'me'])],
    cluster: '2',
    local: '',
  },
  {
    name: 'node hints for others only: zone',
    zone: 'a',
    endpoints: [hinted(1, ['a'], ['other']), hinted(2, ['b'], ['third'])],
    cluster: '1',
    local: '',
  },
  {
    name: 'one node hint missing: zone',
    zone: 'a',
    endpoints: [hinted(1, ['a'], ['me']), hinted(2, ['a']), hinted(3, ['b'], ['me'])],
    cluster: '1 2',
    local: '',
  },
  {
    name: 'hints of unready endpoints do not count, nor does their lack of one',
    zone: 'a',
    endpoints: [
      hinted(1, ['a']),
      hinted(2, ['b']),
      hinted(3, [], [], { state: 's' }),
      hinted(4, ['a'], ['me'], { state: 'st' }),
    ],
    cluster: '1',
    local: '',
  },
  {
    name: 'topology does not apply to local',
    zone: 'a',
    endpoints: [hinted(1, ['a'], ['other']), hinted(2, ['b'], ['other'], { node: 'me' })],
    cluster: '1',
    local: '2',
  },
  {
    name: 'topology does not apply to terminating endpoints',
    zone: 'a',
    endpoints: [hinted(1, ['a'], [], { state: 'st' }), hinted(2, ['b'], [], { state: 'st' })],
    cluster: '1 2',
    local: '',
  },
  {
    name: 'cluster and local fall back to terminating endpoints each by itself',
    endpoints: [
      hinted(1, []),
      hinted(2, [], [], { state: 'st', node: 'me' }),
      hinted(3, [], [], { state: 't', node: 'me' }),
    ],
    cluster: '1',
    local: '2',
  },
  {
    name: 'serving but neither ready nor terminating is never used',
    endpoints: [hinted(1, [], [], { state: 's', node: 'me' })],
    cluster: '',
    local: '',
    any: false,
  },
  {
    name: 'ready and terminating counts as ready',
    endpoints: [hinted(1, [], [], { state: 'rst', node: 'me' }), hinted(2, [], [], { state: 'st', node: 'me' })],
    cluster: '1',
    local: '1',
  },
  {
    name: 'endpoints elsewhere only',
    endpoints: [hinted(1, [], [], { node: 'other' })],
    cluster: '1',
    local: '',
    any: true,
  },
];

for (const { name, endpoints, zone, cluster, local, any } of CASES) {
  t.test(`endpoint selection: ${name}`, (t) => {
    const selection = selectEndpoints('IPv4', port(), [slice('svc', endpoints, { family: 'IPv4' })], facts(zone), BOTH);
    const hosts = (hosts: string): readonly string[] =>
      hosts === '' ? [] : hosts.split(' ').map((x) => `10.0.0.${x}:80`);
    t.same(selection.cluster.toStrings(), hosts(cluster), 'cluster');
    t.same(selection.local.toStrings(), hosts(local), 'local');
    t.equal(selection.any, any ?? true, 'any');
    t.end();
  });
}

t.test('only endpoint lists that policies use are made', (t) => {
  const slices = [slice('svc', [hinted(1, [], [], { node: 'me' })])];
  const clusterOnly = selectEndpoints('IPv4', port(), slices, facts(), { cluster: true, local: false, onePort: false });
  t.same(clusterOnly.local.toStrings(), []);
  const localOnly = selectEndpoints('IPv4', port(), slices, facts(), { cluster: false, local: true, onePort: false });
  t.same(localOnly.cluster.toStrings(), []);
  t.same(localOnly.local.toStrings(), ['10.0.0.1:80']);
  t.end();
});

const first = (state: string, node = 'me'): EndpointText => ({ address: '10.0.0.1', state, node });

t.test('of one address in two slices one counts', (t) => {
  const rows: readonly (readonly [string, string, string, readonly string[]])[] = [
    ['the later slice counts', 'rs', 'rs other', []],
    ['unless it is terminating', 'rs', 'st other', ['10.0.0.1:80']],
    ['a terminating first one gives way', 'st other', 'rs', ['10.0.0.1:80']],
    ['of two terminating ones the first stays', 'st', 'st other', ['10.0.0.1:80']],
  ];
  for (const [name, one, other, local] of rows) {
    const slices = [one, other].map((text, index) => {
      const [state = '', node = 'me'] = text.split(' ');
      return slice('svc', [first(state, node)], { name: `svc-${index}` });
    });
    const selection = selectEndpoints('IPv4', port(), slices, facts(), BOTH);
    t.same(selection.cluster.toStrings(), ['10.0.0.1:80'], `${name}: once`);
    t.same(selection.local.toStrings(), local, name);
  }
  t.end();
});

t.test('ports of Service and slice are joined by name and protocol, not by number', (t) => {
  const slices = [
    slice('svc', [first('rs')], {
      name: 'a',
      ports: [
        { name: 'web', port: 8080 },
        { name: 'web', protocol: 'UDP', port: 9 },
      ],
    }),
    slice('svc', [{ address: '10.0.0.2' }], {
      name: 'b',
      ports: [
        { name: 'web', port: 9090 },
        { name: 'other', port: 1 },
      ],
    }),
    slice('svc', [{ address: 'fd00::1' }], { name: 'c', ports: [{ name: 'web', port: 7070 }] }),
  ];
  const select = (family: Family, fields: Parameters<typeof port>[0]): readonly string[] =>
    selectEndpoints(family, port(fields), slices, facts(), BOTH).cluster.toStrings();
  t.same(
    select('IPv4', { name: 'web' }),
    ['10.0.0.1:8080', '10.0.0.2:9090'],
    'a named target port may differ per slice',
  );
  t.same(select('IPv4', { name: 'web', protocol: 'UDP' }), ['10.0.0.1:9']);
  t.same(select('IPv4', {}), [], 'the unnamed port is a name like others');
  t.same(select('IPv6', { name: 'web' }), ['[fd00::1]:7070'], 'families do not mix');
  t.end();
});

t.test('endpoints are ordered by their packed bytes, in any order of slices', (t) => {
  const one = slice('svc', [{ address: '10.0.0.9' }, { address: '9.0.0.1' }], { name: 'a' });
  const two = slice('svc', [{ address: '10.0.0.10' }], { name: 'b', ports: [{ port: 443 }, { port: 80 }] });
  const expected = ['9.0.0.1:80', '10.0.0.9:80', '10.0.0.10:80', '10.0.0.10:443'];
  for (const slices of [
    [one, two],
    [two, one],
  ])
    t.same(selectEndpoints('IPv4', port(), slices, facts(), BOTH).cluster.toStrings(), expected);
  t.end();
});

t.test('hairpin: reachable endpoints are here, or on no node', (t) => {
  const slices = [
    slice('svc', [
      { address: '10.0.0.1', node: 'me' },
      { address: '10.0.0.2', node: 'other' },
      { address: '10.0.0.3', node: null },
      { address: '10.0.0.4', node: 'me', state: 't' },
    ]),
  ];
  const hairpin = (uses: PolicyUse): readonly string[] =>
    [...selectEndpoints('IPv4', port(), slices, facts(), uses).hairpin].sort();
  t.same(hairpin(BOTH), ['10.0.0.1', '10.0.0.3']);
  t.same(hairpin({ cluster: false, local: true, onePort: false }), ['10.0.0.1']);
  t.end();
});

t.test('ready local addresses count once over all ports', (t) => {
  const ports = [port({ name: 'a' }), port({ name: 'b', port: 81 })];
  const local = (host: number, state: string, node = 'me'): EndpointText => ({
    address: `10.0.0.${host}`,
    state,
    node,
  });
  const slices = [
    slice('svc', [local(1, 'rs'), local(2, 'rs'), local(4, 'st'), local(5, 'rs', 'other')], {
      name: 'x',
      ports: [{ name: 'a' }, { name: 'b' }],
    }),
    slice('svc', [local(2, 'rs'), local(3, 'rs')], { name: 'y', ports: [{ name: 'b' }] }),
    slice('svc', [local(9, 'rs')], { name: 'z', ports: [{ name: 'unused' }] }),
  ];
  const count = (family: Family): number =>
    new Set(ports.flatMap((each) => [...selectEndpoints(family, each, slices, facts(), BOTH).readyHere])).size;
  t.same([count('IPv4'), count('IPv6')], [3, 0]);
  t.end();
});

t.test('endpoint lists with the same endpoints are shared', (t) => {
  const plain = slice('svc', [{ address: '10.0.0.1' }, { address: '10.0.0.2', node: 'other' }]);
  const select = (row: EndpointSliceRow, uses = BOTH): Selection =>
    selectEndpoints('IPv4', port(), [row], facts(), uses);
  const { cluster, serving, local } = select(plain, { ...BOTH, local: false });
  t.equal(serving, cluster);
  t.equal(local.count, 0);
  const own = select(slice('svc', [{ address: '10.0.0.1', node: 'me' }]));
  t.equal(own.local, own.cluster);
  const draining = select(slice('svc', [{ address: '10.0.0.1' }, { address: '10.0.0.2', state: 'st' }]));
  t.same([draining.cluster.count, draining.serving.count], [1, 2]);
  t.end();
});

t.test('endpoints of weight 0 get no new connections, and keep theirs', (t) => {
  const none = { ...slice('svc', [{ address: '10.0.0.1', node: 'me' }], { name: 'a' }), weight: 0 };
  const { cluster, local, serving, any } = selectEndpoints('IPv4', port(), [none], facts(), BOTH);
  t.same([cluster.count, local.count, serving.count, any], [0, 0, 1, true]);
  t.end();
});

t.test('IPv6 endpoints are ordered by all their bytes, each once', (t) => {
  const random = new SeededRandom(6);
  const group = (): string => random.below(3 ** random.below(10)).toString(16);
  for (let round = 0; round < rounds(100); round++) {
    const addresses = Array.from({ length: 30 }, () => Array.from({ length: 8 }, group).join(':'));
    const rows = [0, 1].map((part) =>
      slice(
        'svc',
        addresses.filter((_, index) => index % 3 >= part).map((each) => ({ address: each })),
        { name: `svc-${part}`, family: 'IPv6', ports: [{ port: 80 + part }, { port: 443 }] },
      ),
    );
    const { cluster } = selectEndpoints('IPv6', port(), rows, facts(), BOTH);
    const keys = Array.from({ length: cluster.count }, (_, index) => cluster.key(index));
    t.same(keys, [...new Set(keys)].sort(), `round ${round}`);
    const input = { family: 'IPv6', port: port(), slices: rows, nodeName: 'me', zone: null } as const;
    t.equal(cluster.count, endpointsOfPort({ ...input, usesCluster: true, usesLocal: true }).length);
  }
  t.end();
});

t.test('an endpoint that loses its node is not local any more', (t) => {
  const memory = new SelectionMemory('IPv4', 1);
  const select = (nodeName: string | null): Selection => {
    const slices = [
      slice('svc', [
        { address: '10.0.0.1', node: nodeName },
        { address: '10.0.0.2', node: 'other' },
      ]),
    ];
    return memory.planning('default/svc')('IPv4', port(), slices, facts(), { ...BOTH, local: false });
  };
  t.same([...select('me').own], ['10.0.0.1']);
  const next = select(null);
  t.same([[...next.own], [...next.hairpin]], [[], ['10.0.0.1']]);
  t.end();
});

/** Histories of a few slices: endpoints that come, go, move and change, in one slice or several at once. */
t.test('an incremental selection equals a selection from scratch, after any history', (t) => {
  const random = new SeededRandom(7);
  let shared = 0;
  for (let history = 0; history < rounds(150); history++) {
    const memory = new SelectionMemory('IPv4', 1);
    const use = random.pick<PolicyUse>([BOTH, { ...BOTH, local: false }, { ...BOTH, cluster: false }]);
    let slices: readonly EndpointSliceRow[] = [];
    let held: Selection | null = null;
    let zone: string | null = 'a';
    for (let step = 0; step < 25; step++) {
      const fresh = randomSlices(random);
      slices = [...slices.filter(() => random.chance(0.7)), ...fresh.filter(() => random.chance(0.5))]
        .map((row, index) => ({ ...row, name: random.chance(0.9) ? row.name : `svc-${index}` }))
        .filter((row, index, all) => all.findIndex(({ name }) => name === row.name) === index)
        .sort((one, other) => (one.name < other.name ? -1 : 1))
        .map((row) => (random.chance(0.4) && row.count > 0 ? withChange(random, row) : row));
      if (random.chance(0.05)) zone = random.pick(['a', 'b', null]);
      const arguments_ = ['IPv4', port(), slices, facts(zone), use] as const;
      const selected: Selection = memory.planning('default/svc')(...arguments_);
      const judge = selectEndpoints(...arguments_);
      const all = (selection: Selection): string =>
        JSON.stringify([printed(selection), [...selection.readyHere].sort()]);
      if (all(selected) !== all(judge)) t.equal(all(selected), all(judge), `history ${history}, step ${step}`);
      if (!selected.cluster.equals(judge.cluster) || !selected.serving.equals(judge.serving))
        t.fail('in the same order');
      if (held?.readyHere === selected.readyHere) shared++;
      held = selected;
    }
  }
  t.ok(shared > 3 * rounds(150), 'mostly it was followed', { shared });
  t.end();
});

function withChange(random: SeededRandom, row: EndpointSliceRow): EndpointSliceRow {
  const at = random.below(row.count);
  if (random.chance(0.6)) {
    const conditions = row.conditions.slice();
    conditions[at] = random.below(8);
    return { ...row, conditions };
  }
  if (random.chance(0.3)) return { ...row, nodeNames: row.nodeNames.with(at, random.pick(['me', 'other', null])) };
  if (row.family === 'IPv6') return row;
  const addresses = Buffer.from(row.addresses, 'latin1');
  addresses[at * 4 + 2] = random.below(12);
  return { ...row, addresses: addresses.toString('latin1') };
}
