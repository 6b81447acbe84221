import t from 'tap';
import { JSON_CODEC } from '../../../src/sources/kubernetes/codec/json.js';
import { PROTOBUF_CODEC } from '../../../src/sources/kubernetes/codec/protobuf.js';
import type { RowKind } from '../../../src/state/rows.js';
import { POD, READY, SERVING, TERMINATING } from '../../../src/state/rows.js';
import { usually } from '../../support/extent.js';
import { fixture } from '../../support/api-server/fixtures.js';
import { decodeList, decodeWatch } from './decoded.js';

const KINDS: readonly (readonly [plural: string, kind: RowKind])[] = [
  ['services', 'Service'],
  ['endpointslices', 'EndpointSlice'],
  ['nodes', 'Node'],
];

t.test('recorded lists: JSON and protobuf give the same rows', (t) => {
  const counts: Record<string, number> = { services: 8, endpointslices: 7, nodes: 1 };
  for (const [plural, kind] of KINDS) {
    const json = decodeList(JSON_CODEC, kind, fixture(`${plural}.list.json`));
    t.equal(json.objects.length, counts[plural], `${plural} in the list`);
    t.same(
      json.objects.filter(({ problem }) => problem !== null),
      [],
    );
    t.strictSame(decodeList(PROTOBUF_CODEC, kind, fixture(`${plural}.list.pb`)), json, plural);
  }
  const page = decodeList(JSON_CODEC, 'Service', fixture('services.page.json'));
  t.strictSame(decodeList(PROTOBUF_CODEC, 'Service', fixture('services.page.pb')), page);
  t.equal(page.objects.length, 3);
  t.not(page.meta.continue, '');
  t.end();
});

t.test('recorded watches: JSON and protobuf give the same rows', (t) => {
  for (const [plural, kind] of KINDS) {
    const json = decodeWatch(JSON_CODEC, kind, fixture(`${plural}.watchlist.json`));
    t.strictSame(decodeWatch(PROTOBUF_CODEC, kind, fixture(`${plural}.watchlist.pb`)), json, `${plural} watch list`);
    t.strictSame(json.at(-1), { type: 'BOOKMARK', version: '219', initialEventsEnd: true });
    const refused = decodeWatch(JSON_CODEC, kind, fixture(`${plural}.watchlist-refused.json`));
    t.strictSame(decodeWatch(PROTOBUF_CODEC, kind, fixture(`${plural}.watchlist-refused.pb`)), refused);
    t.match(refused, [{ type: 'ERROR', status: { code: 500, reason: 'InternalError' } }]);
  }
  for (const [plural, kind, types] of [
    ['services', 'Service', ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']],
    ['endpointslices', 'EndpointSlice', ['MODIFIED', 'ADDED', 'DELETED', 'BOOKMARK']],
  ] as const) {
    const json = decodeWatch(JSON_CODEC, kind, fixture(`${plural}.watch.json`));
    t.same(
      json.map(({ type }) => type),
      types,
    );
    t.strictSame(decodeWatch(PROTOBUF_CODEC, kind, fixture(`${plural}.watch.pb`)), json, `${plural} watch`);
    t.match(json.at(-1), { initialEventsEnd: false });
  }
  t.end();
});

t.test('recorded errors of a real server are decoded', (t) => {
  for (const [code, expected] of [
    ['400', { code: 400, reason: 'BadRequest' }],
    ['401', { code: 401, reason: 'Unauthorized' }],
    ['403', { code: 403, reason: 'Forbidden' }],
    ['404', { code: 404, reason: 'NotFound' }],
    ['future', { code: 504, retryAfterSeconds: 1, causes: ['ResourceVersionTooLarge'] }],
  ] as const) {
    const json = JSON_CODEC.status(fixture(`error.${code}.json`));
    t.match(json, expected, code);
    t.strictSame(PROTOBUF_CODEC.status(fixture(`error.${code}.pb`)), json, code);
  }
  const expired = decodeWatch(JSON_CODEC, 'EndpointSlice', fixture('error.410.watch.json'));
  t.strictSame(decodeWatch(PROTOBUF_CODEC, 'EndpointSlice', fixture('error.410.watch.pb')), expired);
  t.match(expired, [{ type: 'ERROR', status: { code: 410, reason: 'Expired' } }]);
  for (const codec of [JSON_CODEC, PROTOBUF_CODEC]) {
    for (const body of ['', 'upstream connect error', '{"kind":"Service"}', 'k8s\0']) {
      t.equal(codec.status(Buffer.from(body)), null, JSON.stringify(body));
    }
  }
  t.end();
});

t.test('the rows equal the recorded objects', (t) => {
  const { objects } = decodeList(PROTOBUF_CODEC, 'Service', fixture('services.list.pb'));
  const rows = new Map(objects.map(({ name, row }) => [name, row]));
  t.match(rows.get('dual'), {
    clusterIPs: ['10.99.95.245', 'fd00:96::ae84'],
    affinitySeconds: 600,
    internalTrafficPolicy: 'Local',
    creationTime: Date.parse('2026-11-20T09:49:06Z'),
  });
  t.match(rows.get('lb'), {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 31399,
    externalIPs: ['198.51.100.1'],
    loadBalancerSourceRanges: ['203.0.113.0/24', '198.51.100.7/32'],
    loadBalancerIngress: [
      { address: '192.0.2.10', ipMode: 'VIP' },
      { address: '192.0.2.11', ipMode: 'Proxy' },
    ],
    ports: [
      { name: 'a', protocol: 'TCP', port: 80, nodePort: 30080 },
      { name: 's', protocol: 'SCTP', port: 9999 },
    ],
  });
  t.equal(rows.get('otherproxy'), null);
  const slices = decodeList(PROTOBUF_CODEC, 'EndpointSlice', fixture('endpointslices.list.pb'));
  const web = slices.objects.find(({ name }) => name === 'web-1')?.row;
  t.match(web, {
    count: 3,
    conditions: Uint8Array.of(READY | SERVING | POD, SERVING | TERMINATING | POD, POD),
    nodeNames: ['node-1', 'node-2', 'node-2'],
    zoneHints: [[], [], ['z1', 'z2']],
    nodeHints: [[], [], ['node-2']],
  });
  const nilconds = slices.objects.find(({ name }) => name === 'nilconds')?.row;
  t.match(nilconds, { conditions: Uint8Array.of(READY | SERVING), nodeNames: [null] });
  const [node] = decodeList(PROTOBUF_CODEC, 'Node', fixture('nodes.list.pb')).objects;
  t.match(node?.row, {
    addresses: ['10.200.0.2', 'fd00:200::2'],
    podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
    zone: 'z1',
    eligible: false,
  });
  t.end();
});

t.test('decoding does not depend on how the bytes are split', (t) => {
  for (const [suffix, codec] of [
    ['json', JSON_CODEC],
    ['pb', PROTOBUF_CODEC],
  ] as const) {
    const list = fixture(`services.list.${suffix}`);
    const watch = fixture(`endpointslices.watch.${suffix}`);
    const wholeList = decodeList(codec, 'Service', list);
    const wholeWatch = decodeWatch(codec, 'EndpointSlice', watch);
    const everywhere = (bytes: Buffer): readonly number[] =>
      Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
    const some = (bytes: Buffer): readonly number[] => everywhere(bytes).filter((cut) => cut % usually(11, 1) === 0);
    t.strictSame(decodeList(codec, 'Service', list, everywhere(list)), wholeList, `${suffix} list byte by byte`);
    t.strictSame(decodeWatch(codec, 'EndpointSlice', watch, everywhere(watch)), wholeWatch, `${suffix} watch`);
    const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
    const badList = some(list).filter((cut) => !same(decodeList(codec, 'Service', list, [cut]), wholeList));
    t.same(badList, [], `${suffix} list cut once, at each place`);
    const badWatch = some(watch).filter((cut) => !same(decodeWatch(codec, 'EndpointSlice', watch, [cut]), wholeWatch));
    t.same(badWatch, [], `${suffix} watch cut once, at each place`);
  }
  t.end();
});
