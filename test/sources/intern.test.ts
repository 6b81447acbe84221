// Texts of objects that are gone are not kept, whatever users who may write Services put into them.
import t from 'tap';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Interner } from '../../src/sources/translate/intern.js';
import { translate } from '../../src/sources/translate/object.js';
import { nodeObject, serviceObject, sliceObject, type ApiObject } from '../support/api-objects.js';
import { usually } from '../support/extent.js';

const MIB = 1 << 20;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function usedBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    await new Promise(setImmediate);
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

type Kind = Parameters<typeof translate>[0];

interface Attack {
  readonly what: string;
  readonly kind: Kind;
  /** The object of a round, of which no text was in an earlier round. */
  readonly object: (round: number) => ApiObject;
  readonly rounds: number;
  /** Texts of all rounds; what is kept of them is a small part. */
  readonly mib: number;
}

const LONG = 1_400_000;

function fresh(round: number, length: number): string {
  return `${round}-`.padEnd(length, 'x');
}

function endpointWith(round: number, rest: ApiObject): ApiObject {
  return sliceObject('web-a', 'web', [], {
    endpoints: [{ addresses: ['10.0.0.1'], ...rest }],
    metadata: metadata(round),
  });
}

function metadata(round: number): ApiObject {
  return { name: 'web-a', labels: { 'kubernetes.io/service-name': 'web' }, annotations: { round: `${round}` } };
}

function names(round: number, count: number, length: number): readonly ApiObject[] {
  return Array.from({ length: count }, (_, index) => ({ name: fresh(round * count + index, length) }));
}

const ATTACKS: readonly Attack[] = [
  {
    what: 'a long zone',
    kind: 'EndpointSlice',
    object: (round) => endpointWith(round, { zone: fresh(round, LONG) }),
    rounds: 30,
    mib: 40,
  },
  {
    what: 'a long node name',
    kind: 'EndpointSlice',
    object: (round) => endpointWith(round, { nodeName: fresh(round, LONG) }),
    rounds: 30,
    mib: 40,
  },
  {
    what: 'a long zone of a Node',
    kind: 'Node',
    object: (round) =>
      nodeObject('n', { metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': fresh(round, LONG) } } }),
    rounds: 30,
    mib: 40,
  },
  {
    what: 'long names of ports, which are refused',
    kind: 'Service',
    object: (round) => serviceObject('web', { ports: [{ name: fresh(round, LONG), port: 80 }] }),
    rounds: 30,
    mib: 40,
  },
  {
    what: 'many hints',
    kind: 'EndpointSlice',
    object: (round) => endpointWith(round, { hints: { forNodes: names(round, 900, 253) } }),
    rounds: usually(200, 1000),
    mib: usually(44, 220),
  },
  {
    what: 'endpoints in zones of their own, on nodes of their own',
    kind: 'EndpointSlice',
    object: (round) =>
      sliceObject('web-a', 'web', [], {
        endpoints: names(round, 1000, 200).map(({ name }, index) => ({
          addresses: [`10.0.${index >> 8}.${index & 255}`],
          nodeName: name,
          zone: fresh(round * 1000 + index, 63),
        })),
      }),
    rounds: usually(100, 1000),
    mib: usually(25, 250),
  },
  {
    what: 'lists of named ports',
    kind: 'Service',
    object: (round) =>
      serviceObject('web', {
        ports: names(round, 900, 63).map(({ name }, index) => ({ name, port: 1 + index })),
      }),
    rounds: usually(400, 2000),
    mib: usually(20, 100),
  },
  {
    what: 'columns of every length',
    kind: 'EndpointSlice',
    object: (round) => {
      const ready = (round & 1) === 1;
      const terminating = (round & 2) === 2;
      const endpoints = Array.from({ length: 500 + ((round >> 2) % 500) }, (_, index) => ({
        addresses: [`10.0.${index >> 8}.${index & 255}`],
        conditions: { ready, terminating },
      }));
      return sliceObject('web-a', 'web', [], { endpoints });
    },
    rounds: 2000,
    mib: 1.8,
  },
];

/** The most that is kept of an attack: two tables, each with its bound. */
const MOST_KEPT = 8 * MIB;

for (const { what, kind, object, rounds, mib } of ATTACKS)
  t.test(`of ${what} little is kept when the object is gone`, async (t) => {
    const shared = new Interner();
    const take = (round: number): void => {
      try {
        translate(kind, object(round), shared);
      } catch {
        // Refused.
      }
    };
    take(0);
    const before = await usedBytes();
    for (let round = 1; round <= rounds; round++) take(round);
    const kept = (await usedBytes()) - before;
    t.comment(`${(kept / MIB).toFixed(1)} MiB of ${mib}`);
    t.ok(kept < Math.min(MOST_KEPT, (mib * MIB) / 2), `${kept} bytes`);
    t.ok(shared.text('web'));
  });

t.test('a large slice leaves nothing in the buffers that the next one fills', async (t) => {
  const shared = new Interner(1000);
  const take = (object: ApiObject): unknown => translate('EndpointSlice', object, shared).ref;
  const small = sliceObject('web-b', 'web', ['10.0.0.1']);
  take(small);
  const before = await usedBytes();
  const endpoints = (): readonly ApiObject[] =>
    names(1, 60_000, 250).map(({ name }, index) => ({
      addresses: [`10.0.${index >> 8}.${index & 255}`],
      nodeName: name,
      targetRef: { kind: 'Pod', name },
      hints: { forNodes: [{ name }] },
    }));
  take(sliceObject('web-a', 'web', [], { endpoints: endpoints() }));
  take(small);
  const kept = (await usedBytes()) - before;
  t.comment(`${kept} bytes`);
  t.ok(kept < 2 * MIB, `${kept} bytes`);
});

t.test('an interner keeps names in use, and forgets others', (t) => {
  const shared = new Interner(10_000);
  const hot = shared.list(['hot']);
  const cold = shared.list(['cold']);
  for (let index = 0; index < 1000; index++) {
    t.equal(shared.text(`name-${index}`), `name-${index}`);
    t.strictSame(shared.list([`a${index}`]), [`a${index}`]);
    t.strictSame(shared.list(['=x', `["a${index}"]`]), ['=x', `["a${index}"]`]);
    t.equal(shared.list(['hot']), hot);
  }
  t.not(shared.list(['cold']), cold);
  t.end();
});

t.test('an interner bounds its lists, and keeps no long ones', (t) => {
  const ports = (count: number, first = 1) =>
    Array.from({ length: count }, (_, index) => ({
      name: `p${first + index}`,
      protocol: 'TCP' as const,
      port: first + index,
      nodePort: 0,
      targetPort: 0,
    }));
  const few = new Interner(1000);
  const many = new Interner();
  for (const kind of ['ports', 'servicePorts'] as const) {
    const held = few[kind](ports(3));
    t.equal(few[kind](ports(3)), held, 'shared');
    for (let first = 7; first < 20; first++) few[kind](ports(3, first));
    t.not(few[kind](ports(3)), held, 'forgotten');
    t.equal(many[kind](ports(1000)), many[kind](ports(1000)));
    const long = many[kind](ports(1001));
    t.not(many[kind](ports(1001)), long, 'not kept');
    t.same(many[kind](ports(1001)), long);
  }
  const texts = Array.from({ length: 1001 }, (_, index) => `${index}`);
  t.not(many.list(texts), many.list(texts));
  t.same(many.list(texts), texts);
  t.end();
});
