import t from 'tap';
import { addressFromBytes } from '../../src/base/ip.js';
import { translateEndpointSlice } from '../../src/sources/translate/endpoint-slice.js';
import { TranslateError } from '../../src/sources/translate/errors.js';
import { Interner } from '../../src/sources/translate/intern.js';
import type { Translation } from '../../src/sources/translate/metadata.js';
import { POD, READY, SERVING, TERMINATING, type EndpointSliceRow } from '../../src/state/rows.js';
import { sliceObject, type ApiObject } from '../support/api-objects.js';
import { cpuTime } from '../support/cpu-time.js';

const translate = (object: unknown): Translation<EndpointSliceRow> => translateEndpointSlice(object, new Interner());

function rowOf(rest: ApiObject, addresses: readonly string[] = []): EndpointSliceRow {
  const { row } = translate(sliceObject('web-a', 'web', addresses, rest));
  if (row === null) throw new Error('no row');
  return row;
}

function addressesOf(row: EndpointSliceRow): string[] {
  const size = row.family === 'IPv4' ? 4 : 16;
  return Array.from({ length: row.count }, (_, index) =>
    addressFromBytes(Buffer.from(row.addresses.slice(index * size, (index + 1) * size), 'latin1')),
  );
}

function problemsOf(object: unknown): readonly string[] {
  try {
    translate(object);
  } catch (error) {
    if (error instanceof TranslateError) return error.problems.map(String);
    throw error;
  }
  return [];
}

t.test('endpoints with targetRef Pod are pods', (t) => {
  const targets = [{ kind: 'Pod', name: 'a' }, { kind: 'VirtualMachine' }, {}, null, 'Pod', ['Pod'], { kind: 7 }];
  const endpoints = targets.map((targetRef, index) => ({ addresses: [`10.0.0.${index + 1}`], targetRef }));
  const { row, warnings } = translate(sliceObject('web-a', 'web', [], { endpoints }));
  const ready = READY | SERVING;
  t.strictSame([...(row?.conditions ?? [])], [POD | ready, ...targets.slice(1).map(() => ready)]);
  t.same(warnings, [], 'what is no reference of the kind counts as none');
  t.end();
});

t.test('an EndpointSlice becomes columns', (t) => {
  const row = rowOf({
    ports: [
      { name: 'http', port: 8080 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
    endpoints: [
      { addresses: ['10.0.0.1'], nodeName: 'n1', zone: 'ignored' },
      { addresses: ['10.0.0.2', '10.0.0.99'], conditions: { ready: false, serving: true, terminating: true } },
    ],
  });
  t.equal(row.serviceName, 'web');
  t.equal(row.family, 'IPv4');
  t.equal(row.count, 2);
  t.strictSame(addressesOf(row), ['10.0.0.1', '10.0.0.2']);
  t.strictSame([...row.conditions], [READY | SERVING, SERVING | TERMINATING]);
  t.strictSame(row.nodeNames, ['n1', null]);
  t.equal(row.zoneHints, null);
  t.equal(row.nodeHints, null);
  t.strictSame(row.ports, [
    { name: 'http', protocol: 'TCP', port: 8080 },
    { name: 'dns', protocol: 'UDP', port: 53 },
  ]);
  t.end();
});

t.test('EP-01 a slice that names no Service is absent', (t) => {
  for (const labels of [undefined, null, {}, { 'kubernetes.io/service-name': '' }]) {
    const { row, warnings } = translate(sliceObject('s', 'web', [], { metadata: { name: 's', labels } }));
    t.equal(row, null);
    t.match(warnings.map(String), [/^metadata\.labels\.kubernetes\.io\/service-name: null: /]);
  }
  t.end();
});

t.test('EP-02 slices of host names are absent with a warning, and addressType is required', (t) => {
  const { row, warnings } = translate(sliceObject('s', 'web', ['example.org'], { addressType: 'FQDN' }));
  t.equal(row, null);
  t.match(warnings.map(String), [/^addressType: "FQDN": /]);
  t.strictSame(problemsOf(sliceObject('s', 'web', [], { addressType: undefined })), ['addressType: null: is required']);
  t.strictSame(problemsOf(sliceObject('s', 'web', [], { addressType: 'ipv4' })), [
    'addressType: "ipv4": must be one of IPv4, IPv6, FQDN',
  ]);
  t.end();
});

t.test('EP-02 slices of IPv6 are translated', (t) => {
  const row = rowOf({ addressType: 'IPv6' }, ['fd00::1', 'FD00:0:0::2']);
  t.equal(row.family, 'IPv6');
  t.equal(row.addresses.length, 32);
  t.strictSame(addressesOf(row), ['fd00::1', 'fd00::2']);
  t.end();
});

t.test('EP-03 ports without a number are left out, names and protocols filled in', (t) => {
  t.strictSame(rowOf({ ports: null }).ports, []);
  t.strictSame(rowOf({ ports: [{}] }).ports, []);
  t.strictSame(
    rowOf({
      ports: [
        { name: 'a', port: 0 },
        { name: 'b', port: null },
        { name: null, port: 5 },
      ],
    }).ports,
    [{ name: '', protocol: 'TCP', port: 5 }],
  );
  t.end();
});

t.test('EP-04 endpoints without a usable first address are left out with a warning', (t) => {
  const endpoints = [
    { addresses: [], nodeName: 'a' },
    { addresses: ['10.0.0.1'], nodeName: 'b' },
    { nodeName: 'c' },
    { addresses: ['fd00::1'], nodeName: 'd' },
    { addresses: ['nonsense', '10.0.0.9'], nodeName: 'e' },
    { addresses: ['0.0.0.0'], nodeName: 'f' },
    { addresses: ['10.0.0.2'], nodeName: 'g' },
  ];
  const { row, warnings } = translate(sliceObject('s', 'web', [], { endpoints }));
  t.strictSame(addressesOf(row!), ['10.0.0.1', '10.0.0.2']);
  t.strictSame(row?.nodeNames, ['b', 'g']);
  t.match(warnings.map(String), [
    /^endpoints\[0\]\.addresses: null: /,
    /^endpoints\[2\]\.addresses: null: /,
    /^endpoints\[3\]\.addresses\[0\]: "fd00::1": is not an IPv4 address/,
    /^endpoints\[4\]\.addresses\[0\]: "nonsense": /,
    /^endpoints\[5\]\.addresses\[0\]: "0.0.0.0": /,
  ]);
  t.end();
});

t.test('EP-04 endpoints at addresses that the API forbids are left out with a warning, the others stay', (t) => {
  const v4 = { '::ffff:127.0.0.1': 'a loopback', '169.254.169.254': 'a link-local', '239.1.2.3': 'a multicast' };
  const v6 = { '::1': 'a loopback', 'fe80::1': 'a link-local', 'ff01::1': 'a multicast', '::': 'the unspecified' };
  for (const [addressType, good, bad] of [
    ['IPv4', '10.0.0.1', v4],
    ['IPv6', 'fd00::1', v6],
  ] as const) {
    for (const [text, kind] of Object.entries(bad)) {
      // With hints and without them, as these are read by different code.
      for (const more of [{}, { hints: { forZones: [{ name: 'z' }] } }]) {
        const endpoints = [{ addresses: [good] }, { addresses: [text], ...more }];
        const { row, warnings } = translate(sliceObject('s', 'web', [], { addressType, endpoints }));
        t.strictSame(addressesOf(row!), [good]);
        t.strictSame(warnings.map(String), [
          `endpoints[1].addresses[0]: "${text}": is ${kind} address: the endpoint is left out`,
        ]);
      }
    }
  }
  t.end();
});

t.test('PF-124 addresses with leading zeros, and IPv4 mapped into IPv6, are normalised', (t) => {
  const row = rowOf({}, ['10.180.00.001', '010.0.0.08', '::ffff:10.1.2.3', '255.255.255.254']);
  t.strictSame(addressesOf(row), ['10.180.0.1', '10.0.0.8', '10.1.2.3', '255.255.255.254']);
  const { warnings } = translate(
    sliceObject('s', 'web', ['10.0.0', '10.0.0.256', '10.0.0.1.', '1..2.3', '10.0.0.1 ', '-1.0.0.0', '']),
  );
  t.equal(warnings.length, 7);
  t.end();
});

t.test('EP-05 absent conditions mean ready, serving, not terminating', (t) => {
  const table: [unknown, number][] = [
    [undefined, READY | SERVING],
    [null, READY | SERVING],
    [{}, READY | SERVING],
    [{ ready: null, serving: null, terminating: null }, READY | SERVING],
    [{ ready: false }, SERVING],
    [{ serving: false }, READY],
    [{ ready: true, terminating: true }, READY | SERVING | TERMINATING],
    [{ ready: false, serving: false, terminating: false }, 0],
  ];
  for (const [conditions, expected] of table) {
    const row = rowOf({ endpoints: [{ addresses: ['10.0.0.1'], conditions }] });
    t.equal(row.conditions[0], expected, JSON.stringify(conditions));
  }
  t.end();
});

t.test('EP-05 a slice has a column of hints once an endpoint has some', (t) => {
  const row = rowOf({
    endpoints: [
      { addresses: ['10.0.0.1'], hints: { forZones: [{ name: 'z1' }, { name: 'z2' }] } },
      { addresses: ['10.0.0.2'] },
      { addresses: ['10.0.0.3'], hints: { forZones: [] } },
      { addresses: ['bad'], hints: { forNodes: [{ name: 'n9' }] } },
    ],
  });
  t.strictSame(row.zoneHints, [['z1', 'z2'], [], []]);
  t.equal(row.nodeHints, null);
  const nodes = rowOf({ endpoints: [{ addresses: ['10.0.0.1'], hints: { forNodes: [{ name: 'n1' }] } }] });
  t.strictSame(nodes.nodeHints, [['n1']]);
  t.equal(nodes.zoneHints, null);
  t.end();
});

t.test('WA-03, WA-11 slices of headless Services are absent', (t) => {
  const labels = { 'kubernetes.io/service-name': 'web', 'service.kubernetes.io/headless': '' };
  const { row, warnings, ref } = translate(sliceObject('s', 'web', ['10.0.0.1'], { metadata: { name: 's', labels } }));
  t.equal(row, null);
  t.strictSame(warnings.map(String), []);
  t.strictSame(ref, { kind: 'EndpointSlice', namespace: 'default', name: 's' });
  t.end();
});

t.test('every problem of an EndpointSlice is found, with path and value', (t) => {
  const endpoint = (fields: ApiObject): ApiObject => ({ endpoints: [{ addresses: ['10.0.0.1'], ...fields }] });
  const table: [string, ApiObject, readonly string[]][] = [
    ['port', { ports: [{ port: 65_536 }] }, ['ports[0].port: 65536: must be between 0 and 65535']],
    ['port text', { ports: [{ port: 'http' }] }, ['ports[0].port: "http": must be a whole number between 0 and 65535']],
    [
      'protocol',
      { ports: [{ port: 1, protocol: 'ICMP' }] },
      ['ports[0].protocol: "ICMP": must be one of TCP, UDP, SCTP'],
    ],
    [
      'same name',
      { ports: [{ port: 1 }, { port: 2 }] },
      ['ports[1].name: "": must not be used by two ports of one slice'],
    ],
    [
      'port name',
      { ports: [{ port: 1, name: 'a/TCP/1,b' }] },
      ['ports[0].name: "a/TCP/1,b": must be a DNS label: at most 63 of a-z, 0-9 and -'],
    ],
    ['endpoints', { endpoints: {} }, ['endpoints: a mapping: must be a list']],
    ['endpoint', { endpoints: ['10.0.0.1'] }, ['endpoints[0]: "10.0.0.1": must be a mapping']],
    ['address', { endpoints: [{ addresses: [7] }] }, ['endpoints[0].addresses[0]: 7: must be a string']],
    ['node name', endpoint({ nodeName: 5 }), ['endpoints[0].nodeName: 5: must be a string']],
    [
      'condition',
      endpoint({ conditions: { ready: 'yes' } }),
      ['endpoints[0].conditions.ready: "yes": must be true or false'],
    ],
    ['conditions', endpoint({ conditions: [] }), []],
    ['conditions text', endpoint({ conditions: 'ready' }), ['endpoints[0].conditions: "ready": must be a mapping']],
    [
      'hint',
      endpoint({ hints: { forZones: [{ name: '' }] } }),
      ['endpoints[0].hints.forZones[0].name: "": is required'],
    ],
    [
      'hint without a name',
      endpoint({ hints: { forNodes: [{ name: 'n' }, {}, { name: 5 }] } }),
      [
        'endpoints[0].hints.forNodes[2].name: 5: must be a string',
        'endpoints[0].hints.forNodes[1].name: null: is required',
      ],
    ],
    ['hints', endpoint({ hints: { forNodes: 'n' } }), ['endpoints[0].hints.forNodes: "n": must be a list']],
    [
      'service name',
      { metadata: { name: 'a', labels: { 'kubernetes.io/service-name': 5 } } },
      ['metadata.labels.kubernetes.io/service-name: 5: must be a string'],
    ],
    [
      'name',
      { metadata: { name: 'a..b', labels: { 'kubernetes.io/service-name': 'x' } } },
      ['metadata.name: "a..b": must be a DNS subdomain: at most 253 of a-z, 0-9, - and .'],
    ],
    [
      'several',
      {
        ports: [{ port: -1 }],
        endpoints: [
          { addresses: ['10.0.0.1'], nodeName: [] },
          { addresses: ['10.0.0.1'], conditions: { serving: 1 } },
        ],
      },
      [
        'ports[0].port: -1: must be between 0 and 65535',
        'endpoints[0].nodeName: a list: must be a string',
        'endpoints[1].conditions.serving: 1: must be true or false',
      ],
    ],
  ];
  for (const [name, rest, expected] of table)
    t.strictSame(problemsOf(sliceObject('s', 'web', [], rest)), expected, name);
  t.end();
});

t.test('the trigger time of an EndpointSlice is read if it is valid', (t) => {
  const timeOf = (annotations: unknown): number | null =>
    rowOf({ metadata: { name: 'web-a', labels: { 'kubernetes.io/service-name': 'web' }, annotations } })
      .lastChangeTriggerTime;
  const annotation = 'endpoints.kubernetes.io/last-change-trigger-time';
  t.equal(timeOf({ [annotation]: '2026-11-20T08:00:00Z' }), Date.UTC(2026, 10, 20, 8));
  t.equal(timeOf({ [annotation]: '2026-11-20T10:00:00.123456789+02:00' }), Date.UTC(2026, 10, 20, 8, 0, 0, 123));
  for (const annotations of [
    undefined,
    {},
    [],
    'x',
    { other: '2026-11-20T08:00:00Z' },
    { [annotation]: 'yesterday' },
    { [annotation]: 5 },
    { [annotation]: '' },
  ])
    t.equal(timeOf(annotations), null, JSON.stringify(annotations));
  t.end();
});

t.test('names and lists are shared between rows, and a refused object does not damage the sharing', (t) => {
  const names = new Interner();
  const object = (name: string): ApiObject =>
    sliceObject(name, 'web', [], {
      ports: [{ name: 'http', port: 80 }],
      endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'node-1', hints: { forZones: [{ name: 'z' }] } }],
    });
  t.throws(
    () => translateEndpointSlice(sliceObject('x', 'web', [], { ports: [{ name: 'a/TCP/1,b', port: 2 }] }), names),
    TranslateError,
  );
  const two = translateEndpointSlice(
    sliceObject('y', 'web', [], {
      ports: [
        { name: 'a', port: 1 },
        { name: 'b', port: 2 },
      ],
    }),
    names,
  );
  t.equal(two.row?.ports.length, 2);
  const one = translateEndpointSlice(object('a'), names).row!;
  const other = translateEndpointSlice(object('b'), names).row!;
  t.equal(one.ports, other.ports);
  t.equal(one.zoneHints?.[0], other.zoneHints?.[0]);
  t.end();
});

t.test('an endpoint takes 5 bytes of columns (IPv4) or 17 (IPv6), and one pointer', (t) => {
  const count = 1000;
  const slice = (family: string, address: (index: number) => string): EndpointSliceRow =>
    rowOf({
      addressType: family,
      endpoints: Array.from({ length: count }, (_, index) => ({
        addresses: [address(index)],
        nodeName: `n${index % 7}`,
      })),
    });
  const four = slice('IPv4', (index) => `10.0.${index >> 8}.${index & 255 || 1}`);
  t.equal(four.addresses.length, count * 4);
  t.equal(four.conditions.buffer.byteLength, count, 'nothing beyond the column');
  t.equal(new Set(four.nodeNames).size, 7);
  const six = slice('IPv6', (index) => `fd00::${(index + 1).toString(16)}`);
  t.equal(six.addresses.length + six.conditions.buffer.byteLength, count * 17);
  t.end();
});

t.test('5,000 slices of 50 endpoints: time of translation, and memory', async (t) => {
  const objects = Array.from({ length: 5000 }, (_, service) =>
    sliceObject(`svc-${service}-x`, `svc-${service}`, [], {
      endpoints: Array.from({ length: 50 }, (_, endpoint) => ({
        addresses: [`10.${service >> 8}.${service & 255}.${endpoint + 1}`],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${(service * 50 + endpoint) % 300}`,
      })),
    }),
  );
  const names = new Interner();
  let rows: readonly ReturnType<typeof translateEndpointSlice>['row'][] = [];
  const took = await cpuTime(() => {
    rows = objects.map((object) => translateEndpointSlice(object, names).row);
  });
  t.comment(`${Math.round(took)} ms`);
  t.ok(took < 4000, 'no more than a coarse bound: 0.15 s was measured');
  t.equal(
    rows.reduce((sum, row) => sum + (row?.addresses.length ?? 0), 0),
    250_000 * 4,
  );
  t.equal(new Set(rows.map((row) => row?.conditions)).size, 1, 'equal bytes, so one column for all');
  t.equal(new Set(rows.map((row) => row?.ports)).size, 1);
});

t.test('weights of endpoints are read from annotations', (t) => {
  const read = (annotations: unknown): Pick<EndpointSliceRow, 'weight' | 'unreadable'> => {
    const labels = { 'kubernetes.io/service-name': 'web' };
    const { weight, unreadable } = rowOf({ metadata: { name: 'web-a', labels, annotations } });
    return { ...(weight === undefined ? {} : { weight }), ...(unreadable === undefined ? {} : { unreadable }) };
  };
  t.same(read({}), {});
  t.same(read({ 'pointsman.dev/weight': '5' }), { weight: 5 });
  t.same(read({ 'service.cilium.io/weight': '0' }), { weight: 0 });
  t.same(read({ 'pointsman.dev/weight': '65535', 'service.cilium.io/weight': '0' }), { weight: 65_535 });
  for (const value of ['', '-1', '65536', '1.5', ' 1', '1e3', '999999', 5, null])
    t.equal(read({ 'pointsman.dev/weight': value }).weight, undefined, JSON.stringify(value));
  t.match(
    read({ 'service.cilium.io/weight': 'much' }).unreadable,
    /^annotation service\.cilium\.io\/weight is "much", must be/,
  );
  t.end();
});

t.test('zones of endpoints are read', (t) => {
  const endpoints = ['a', 'b', undefined, 'a'].map((zone, index) => ({ addresses: [`10.0.0.${index}`], zone }));
  const { zoneNames, zones } = rowOf({ endpoints });
  t.same([zoneNames, zones], [['a', 'b'], '\u0001\u0002\u0000\u0001']);
  const without = rowOf({ endpoints: [{ addresses: ['10.0.0.1'] }] });
  t.same([without.zoneNames, without.zones], [[], '']);
  t.end();
});

t.test('a zone or node name that is longer than any counts as none, and a longer hint is refused', (t) => {
  const of = (endpoint: ApiObject) =>
    sliceObject('web-a', 'web', [], { endpoints: [{ addresses: ['10.0.0.1'], ...endpoint }] });
  const longest = rowOf({ endpoints: [{ addresses: ['10.0.0.1'], zone: 'z'.repeat(63), nodeName: 'n'.repeat(253) }] });
  t.same([longest.zoneNames, longest.nodeNames], [['z'.repeat(63)], ['n'.repeat(253)]]);
  const { row, warnings } = translate(of({ zone: 'z'.repeat(64), nodeName: 'n'.repeat(254) }));
  t.same([row?.zoneNames, row?.zones, row?.nodeNames], [[], '', [null]]);
  t.match(warnings.map(String), [
    /^endpoints\[0\]\.nodeName: "n+…": has more than 253 characters: it counts as none$/,
    /^endpoints\[0\]\.zone: "z+": has more than 63 characters: it counts as none$/,
  ]);
  const hints = (zone: number, node: number) => ({
    hints: { forZones: [{ name: 'z'.repeat(zone) }], forNodes: [{ name: 'n'.repeat(node) }] },
  });
  t.same(problemsOf(of(hints(63, 253))), []);
  t.match(problemsOf(of(hints(64, 253))), [/forZones\[0\]\.name: "z+": must have at most 63 characters$/]);
  t.match(problemsOf(of(hints(63, 254))), [/forNodes\[0\]\.name: "n+…": must have at most 253 characters$/]);
  t.end();
});

t.test('the time of reading a slice grows with its zones, not with their square', async (t) => {
  const slice = (zones: number): ApiObject =>
    sliceObject('web-a', 'web', [], {
      endpoints: Array.from({ length: 50_000 }, (_, index) => ({
        addresses: [`10.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`],
        zone: `zone-${index % zones}`,
      })),
    });
  const [few, many] = [slice(3), slice(50_000)];
  const least = async (object: ApiObject): Promise<number> => {
    const times: number[] = [];
    for (let round = 0; round < 3; round++) times.push(await cpuTime(() => translate(object)));
    return Math.min(...times);
  };
  const [calm, attack] = [await least(few), await least(many)];
  t.comment(`${calm} ms with 3 zones, ${attack} ms with 50,000`);
  t.ok(attack < 10 * calm, `${attack} ms with 50,000 zones, ${calm} ms with 3`);
  const { row } = translate(many);
  t.equal(row?.zoneNames?.length, 50_000);
  t.equal(row?.zones?.charCodeAt(49_999), 50_000);
});

t.test('beyond 65,535 zones of a slice endpoints are in none', (t) => {
  const endpoints = Array.from({ length: 65_540 }, (_, index) => ({
    addresses: [`10.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`],
    zone: `zone-${index}`,
  }));
  const { zoneNames, zones } = rowOf({ endpoints });
  t.equal(zoneNames?.length, 65_535);
  t.same([zones?.charCodeAt(65_534), zones?.charCodeAt(65_535)], [65_535, 0]);
  t.end();
});
