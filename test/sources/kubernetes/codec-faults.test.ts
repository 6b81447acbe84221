import t from 'tap';
import { CodecError, TruncatedError } from '../../../src/sources/kubernetes/codec/errors.js';
import type { Codec } from '../../../src/sources/kubernetes/codec/events.js';
import { MAX_FRAME_BYTES } from '../../../src/sources/kubernetes/codec/frames.js';
import { JSON_CODEC } from '../../../src/sources/kubernetes/codec/json.js';
import { PROTOBUF_CODEC } from '../../../src/sources/kubernetes/codec/protobuf.js';
import type { RowKind } from '../../../src/state/rows.js';
import { fixture } from '../../support/api-server/fixtures.js';
import { bytesField, encodeList, encodeWatchEvent } from '../../support/api-server/protobuf.js';
import type { ApiObject } from '../../support/api-objects.js';
import { rounds, usually } from '../../support/extent.js';
import { SeededRandom } from '../../support/random.js';
import { brokenService } from './broken-object.js';
import { decodeList, decodeWatch } from './decoded.js';

interface Sample {
  readonly name: string;
  readonly codec: Codec;
  readonly kind: RowKind;
  readonly decode: typeof decodeList | typeof decodeWatch;
}

const SAMPLES: readonly Sample[] = (
  [
    ['services', 'Service'],
    ['endpointslices', 'EndpointSlice'],
    ['nodes', 'Node'],
  ] as const
).flatMap(([plural, kind]) =>
  (
    [
      ['json', JSON_CODEC],
      ['pb', PROTOBUF_CODEC],
    ] as const
  ).flatMap(([suffix, codec]) => [
    { name: `${plural}.list.${suffix}`, codec, kind, decode: decodeList },
    { name: `${plural}.watchlist.${suffix}`, codec, kind, decode: decodeWatch },
  ]),
);

/** The error of a decoding; null when there was none. Anything but a CodecError is a crash. */
function problemOf(sample: Sample, bytes: Buffer, cuts: readonly number[] = []): CodecError | null {
  try {
    sample.decode(sample.codec, sample.kind, bytes, cuts);
    return null;
  } catch (error) {
    if (error instanceof CodecError) return error;
    throw error;
  }
}

t.test('a truncated answer is distinguished from a complete one', (t) => {
  for (const sample of SAMPLES) {
    const bytes = fixture(sample.name);
    const isList = sample.decode === decodeList;
    // A watch may end between events; a protobuf list only lacks its empty tail when four bytes or fewer are missing.
    const tail = sample.name.endsWith('list.pb') && isList ? 4 : 1;
    const accepted: number[] = [];
    for (let length = 0; length < bytes.length - tail; length += usually(77, 7)) {
      if (problemOf(sample, bytes.subarray(0, length)) === null) accepted.push(length);
    }
    if (isList) t.same(accepted, [], sample.name);
    const cut = problemOf(sample, bytes.subarray(0, bytes.length - (isList ? tail + 1 : 3)));
    t.ok(cut instanceof TruncatedError, `${sample.name}: ${String(cut)}`);
  }
  t.end();
});

t.test('decoding mutated answers never crashes', (t) => {
  const random = new SeededRandom(42);
  for (const sample of SAMPLES) {
    const original = fixture(sample.name);
    let refused = 0;
    for (let round = 0; round < rounds(400); round++) {
      const bytes = Buffer.from(original);
      for (let count = 1 + random.below(4); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256);
      const cut = random.chance(0.3) ? bytes.subarray(0, random.below(bytes.length)) : bytes;
      if (problemOf(sample, cut, [Math.min(cut.length, random.below(bytes.length))]) !== null) refused++;
    }
    t.ok(refused > 0 && refused < 400, `${sample.name}: ${refused} of 400 refused`);
  }
  t.end();
});

t.test('decoding random bytes never crashes', (t) => {
  const random = new SeededRandom(7);
  for (const sample of SAMPLES) {
    for (let round = 0; round < rounds(100); round++) {
      const bytes = Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256)));
      problemOf(sample, bytes);
      if (sample.name.endsWith('.pb')) problemOf(sample, Buffer.concat([Buffer.from('k8s\0'), bytes]));
    }
  }
  t.pass('no crash');
  t.end();
});

t.test('a watch frame has at most 16 MB', (t) => {
  const huge = Buffer.alloc(4);
  huge.writeUInt32BE(MAX_FRAME_BYTES);
  const watch = PROTOBUF_CODEC.watch('Service', () => undefined);
  t.throws(
    () => {
      watch.push(huge);
    },
    CodecError,
    'refused from its length alone',
  );
  const header = Buffer.concat([Buffer.from('k8s\0'), bytesField(1, bytesField(2, Buffer.from('ServiceList')))]);
  const list = PROTOBUF_CODEC.list('Service', () => undefined);
  // Field 2 of 100 MB, and in it an item of 50 MB.
  list.push(Buffer.concat([header, Buffer.from([0x12, 0x80, 0xc2, 0xd7, 0x2f])]));
  t.throws(() => {
    list.push(Buffer.from([0x12, 0x80, 0xe1, 0xeb, 0x17]));
  }, CodecError);
  const line = JSON_CODEC.watch('Service', () => undefined);
  const spaces = Buffer.alloc(1024 * 1024, 0x20);
  t.throws(() => {
    for (let count = 0; count < 18; count++) line.push(spaces);
  }, CodecError);
  const items = JSON_CODEC.list('Service', () => undefined);
  items.push(Buffer.from('{"items":['));
  t.throws(() => {
    for (let count = 0; count < 18; count++) items.push(spaces);
  }, CodecError);
  t.end();
});

const SERVICE: ApiObject = {
  kind: 'Service',
  apiVersion: 'v1',
  metadata: { name: 'web', namespace: 'default', resourceVersion: '7' },
  spec: { clusterIP: '10.96.0.10', ports: [{ port: 80 }] },
};

t.test('one invalid event does not affect the next', (t) => {
  const good = encodeWatchEvent('ADDED', SERVICE);
  const bad = Buffer.from(good);
  bad.fill(0xff, 20, 40);
  t.match(decodeWatch(PROTOBUF_CODEC, 'Service', Buffer.concat([bad, good])), [
    { type: 'undecodable' },
    { type: 'ADDED', object: { name: 'web', problem: null } },
  ]);
  const line = JSON.stringify({ type: 'ADDED', object: SERVICE });
  const wrong = [
    '{"type":"ADDED",',
    '[]',
    '{"type":"ADDED"}',
    '{"type":"GONE","object":{"kind":"Service","metadata":{}}}',
    '{"type":"ADDED","object":{"kind":"Pod","metadata":{}}}',
    '{"type":"ERROR","object":{"kind":"Service"}}',
  ];
  for (const text of wrong) {
    const events = decodeWatch(JSON_CODEC, 'Service', Buffer.from(`${text}\n${line}\n`));
    t.match(events, [{ type: 'undecodable' }, { type: 'ADDED', object: { name: 'web' } }], text);
  }
  t.end();
});

t.test('an object that does not identify itself is left out alone', (t) => {
  const good = JSON.stringify(SERVICE);
  const nameless = { name: '', problem: /CodecError: (an object has no metadata|name is no text)/ };
  for (const bad of [
    '{"kind":"Service"}',
    '{"kind":"Service","metadata":7}',
    '{"kind":"Service","metadata":{"name":7}}',
  ]) {
    const list = `{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[${good},${bad},${good}]}`;
    const { objects } = decodeList(JSON_CODEC, 'Service', Buffer.from(list));
    t.match(objects, [{ name: 'web', problem: null }, nameless, { name: 'web', problem: null }], bad);
    const lines = [bad, good].map((object) => `{"type":"ADDED","object":${object}}\n`).join('');
    t.match(decodeWatch(JSON_CODEC, 'Service', Buffer.from(lines)), [
      { type: 'ADDED', object: nameless },
      { type: 'ADDED', object: { name: 'web', problem: null } },
    ]);
  }
  for (const each of ['7', 'null', '[]']) {
    const list = `{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[${each},${good}]}`;
    t.match(decodeList(JSON_CODEC, 'Service', Buffer.from(list)).objects, [nameless, { name: 'web' }], each);
  }
  const [metadata, spec] = [bytesField(1, bytesField(1, Buffer.from('web'))), bytesField(2, Buffer.alloc(0))];
  const broken = bytesField(1, Buffer.from([0x0a, 0x7f]));
  const items = [spec, metadata, broken, metadata].map((item) => bytesField(2, item));
  const list = Buffer.concat([bytesField(1, bytesField(2, Buffer.from('9'))), ...items]);
  const kind = bytesField(1, bytesField(2, Buffer.from('ServiceList')));
  const { objects } = decodeList(
    PROTOBUF_CODEC,
    'Service',
    Buffer.concat([Buffer.from('k8s\0'), kind, bytesField(2, list)]),
  );
  t.same(
    objects.map(({ name, problem }) => [name, problem?.startsWith('CodecError') ?? false]),
    [
      ['', true],
      ['web', false],
      ['', true],
      ['web', false],
    ],
  );
  t.end();
});

t.test('an invalid object is still identified by its name', (t) => {
  const [event] = decodeWatch(PROTOBUF_CODEC, 'Service', brokenService('MODIFIED', SERVICE));
  t.match(event, { type: 'MODIFIED', object: { name: 'web', version: '7', problem: /CodecError/ } });
  t.end();
});

t.test('JSON lists are decoded in any order of fields', (t) => {
  const item = JSON.stringify(SERVICE);
  const meta = '"metadata":{"resourceVersion":"9"}';
  const names = (text: string): readonly string[] =>
    decodeList(JSON_CODEC, 'Service', Buffer.from(text)).objects.map(({ name }) => name);
  t.same(names(`{"kind":"ServiceList",${meta},"items":[]}`), []);
  t.same(names(`{"kind":"ServiceList",${meta},"items":null}`), []);
  t.same(names(`{"kind":"ServiceList",${meta},"items": [ \n ] }`), []);
  t.same(names(`{"items":[${item},${item}],"kind":"ServiceList",${meta}}`), ['web', 'web']);
  t.same(names(`\n{ "kind" : "ServiceList", ${meta}, "items" :\n[\n${item} ,\n ${item}\n]\n}\n`), ['web', 'web']);
  const tricky = `{"kind":"ServiceList",${meta},"note":"\\"items\\":[","other":["]",{"items":[1]}],"items":[${item}]}`;
  t.same(names(tricky), ['web']);
  const texts = JSON.stringify({ ...SERVICE, note: 'a ] } , " \\ [ {', other: ['\\"'] });
  t.same(names(`{"kind":"ServiceList",${meta},"items":[${texts},${texts}]}`), ['web', 'web']);
  for (const bad of [
    `{"kind":"ServiceList",${meta},"items":[${item},]}`,
    `{"kind":"ServiceList",${meta},"items":[,${item}]}`,
    `{"kind":"ServiceList",${meta},"items":[${item}}`,
    `{"kind":"ServiceList",${meta},"items":[${item}]`,
    `{"kind":"ServiceList",${meta},"items":[${item}]}]`,
    `{"kind":"ServiceList",${meta},"items":[${item}]} {}`,
    `{"kind":"PodList",${meta},"items":[${item}]}`,
    `{"kind":"ServiceList","items":[${item}]}`,
    '',
    'null',
  ]) {
    t.throws(() => names(bad), CodecError, bad.slice(-40));
  }
  t.end();
});

t.test('a list of another kind is refused', (t) => {
  const nodes = encodeList({ apiVersion: 'v1', kind: 'Node', metadata: { resourceVersion: '1' }, items: [] });
  t.throws(() => decodeList(PROTOBUF_CODEC, 'Service', nodes), {
    message: 'a list of kind "NodeList", not ServiceList',
  });
  t.end();
});
