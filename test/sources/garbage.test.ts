import t from 'tap';
import type { RowKind } from '../../src/state/rows.js';
import { TranslateError } from '../../src/sources/translate/errors.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { identify } from '../../src/sources/translate/metadata.js';
import { translate } from '../../src/sources/translate/object.js';
import { nodeObject, serviceCIDRObject, serviceObject, sliceObject } from '../support/api-objects.js';
import { rounds } from '../support/extent.js';

const VALID: readonly [RowKind, unknown][] = [
  [
    'Service',
    serviceObject(
      'web',
      {
        type: 'LoadBalancer',
        clusterIPs: ['10.96.0.10', 'fd00::1'],
        ipFamilies: ['IPv4', 'IPv6'],
        externalIPs: ['192.0.2.1'],
        loadBalancerSourceRanges: ['10.0.0.0/8'],
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 3 } },
        ports: [
          { name: 'a', port: 80, nodePort: 30_000 },
          { name: 'b', port: 80, protocol: 'UDP' },
        ],
      },
      { status: { loadBalancer: { ingress: [{ ip: '1.2.3.4', ipMode: 'VIP' }, { hostname: 'x' }] } } },
    ),
  ],
  [
    'EndpointSlice',
    sliceObject('web-a', 'web', [], {
      endpoints: [
        { addresses: ['10.0.0.1'], nodeName: 'n1', conditions: { ready: true }, hints: { forZones: [{ name: 'z' }] } },
        { addresses: ['10.0.0.2'], hints: { forNodes: [{ name: 'n' }] } },
      ],
    }),
  ],
  [
    'Node',
    nodeObject('n', {
      metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': 'z' } },
      spec: { podCIDRs: ['10.0.0.0/24'], taints: [{ key: 'x' }] },
      status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
    }),
  ],
  ['ServiceCIDR', serviceCIDRObject('k', ['10.96.0.0/12'])],
];

function generator(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 0x1_0000_0000) * below);
  };
}

const RUBBISH: readonly unknown[] = [
  null,
  undefined,
  true,
  false,
  0,
  -1,
  1.5,
  NaN,
  Infinity,
  65_536,
  2 ** 53,
  '',
  ' ',
  'constructor',
  '__proto__',
  'None',
  '10.0.0.1',
  'fd00::1',
  '::',
  ':::',
  '1.2.3.4.5',
  '10.0.0.0/8',
  '/',
  '\u0000',
  '\ud800',
  'é'.repeat(300),
  [],
  [[]],
  [null],
  {},
  { a: 1 },
  { length: 3 },
  new Date(0),
  10n,
  Symbol.iterator,
  () => 1,
  new Uint8Array(3),
  new Map([['a', 1]]),
  Object.create(null),
  [undefined],
];

/** A copy with one place, chosen at random, replaced, removed, doubled or wrapped. */
function mutate(value: unknown, random: (below: number) => number): unknown {
  if (random(6) === 0 || typeof value !== 'object' || value === null) {
    return random(8) === 0 ? [value] : RUBBISH[random(RUBBISH.length)];
  }
  if (Array.isArray(value)) {
    const copy: unknown[] = [...(value as readonly unknown[])];
    const place = random(copy.length);
    const action = random(4);
    if (action === 0) copy.splice(place, 1);
    else if (action === 1) copy.push(copy[place]);
    else copy[place] = mutate(copy[place], random);
    return copy;
  }
  const entries = Object.entries(value);
  const place = random(entries.length);
  if (random(8) === 0) entries.splice(place, 1);
  else entries[place] = [entries[place]?.[0] ?? 'x', mutate(entries[place]?.[1], random)];
  return Object.fromEntries(entries);
}

t.test('mutated objects are translated or refused with TranslateError, nothing else', (t) => {
  const random = generator(20_250_131);
  const outcomes = { fine: 0, refused: 0 };
  const names = new Interner(5000);
  for (let round = 0; round < rounds(40_000); round++) {
    const [kind, valid] = VALID[round % VALID.length]!;
    let object = valid;
    for (let times = 1 + random(4); times > 0; times--) object = mutate(object, random);
    try {
      identify(object, kind);
      const { row } = translate(kind, object, names);
      outcomes.fine++;
      if (row?.kind !== 'EndpointSlice') continue;
      if (row.conditions.length !== row.count || row.nodeNames.length !== row.count)
        t.fail('columns of unequal length');
    } catch (error) {
      if (!(error instanceof TranslateError) || error.problems.length === 0) {
        t.fail('another error', { kind, round, error });
        break;
      }
      outcomes.refused++;
    }
  }
  t.ok(outcomes.fine > rounds(40_000) / 20, `${outcomes.fine} were fine`);
  t.ok(outcomes.refused > rounds(40_000) / 20, `${outcomes.refused} were refused`);
  for (const [kind, valid] of VALID) t.not(translate(kind, valid, names).row, null, `${kind} is valid unmutated`);
  t.end();
});

t.test('a mutated object differs from a valid one by a field path', (t) => {
  const random = generator(3);
  for (let round = 0; round < rounds(2000); round++) {
    const [kind, valid] = VALID[round % VALID.length]!;
    try {
      translate(kind, mutate(valid, random), new Interner());
    } catch (error) {
      if (!(error instanceof TranslateError)) throw error;
      if (!error.problems.every((problem) => /^[a-zA-Z[\]0-9./-]+: .*: .+/s.test(String(problem))))
        t.fail('no path', { problems: error.problems });
    }
  }
  t.pass('every problem has path, value and reason');
  t.end();
});
