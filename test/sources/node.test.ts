import t from 'tap';
import type { NodeRow } from '../../src/state/rows.js';
import { TranslateError } from '../../src/sources/translate/errors.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { translateNode } from '../../src/sources/translate/node.js';
import { translateServiceCIDR } from '../../src/sources/translate/service-cidr.js';
import { nodeObject, serviceCIDRObject, type ApiObject } from '../support/api-objects.js';

function rowOf(rest: ApiObject): NodeRow {
  const { row } = translateNode(nodeObject('worker-1.example', rest), new Interner());
  if (row === null) throw new Error('no row');
  return row;
}

function problemsOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof TranslateError) return error.problems.map(String);
    throw error;
  }
  return [];
}

t.test('a Node with a name only is translated', (t) => {
  t.strictSame(rowOf({}), {
    kind: 'Node',
    name: 'worker-1.example',
    addresses: [],
    podCIDRs: [],
    zone: null,
    eligible: true,
  });
  t.end();
});

t.test('ST-14 InternalIPs come before ExternalIPs, and invalid ones are left out', (t) => {
  const addresses = [
    { type: 'Hostname', address: 'worker-1' },
    { type: 'ExternalIP', address: '192.0.2.1' },
    { type: 'InternalIP', address: '10.0.0.1' },
    { type: 'InternalIP', address: 'nonsense' },
    { type: 'constructor', address: '10.0.0.7' },
    { type: 'InternalIP', address: 'fd00::1' },
    { type: 'ExternalIP', address: '10.0.0.1' },
  ];
  const { row, warnings } = translateNode(nodeObject('n', { status: { addresses } }), new Interner());
  t.strictSame(row?.addresses, ['10.0.0.1', 'fd00::1', '192.0.2.1']);
  t.match(warnings.map(String), [/^status\.addresses\[3\]\.address: "nonsense": /]);
  t.end();
});

t.test('pod CIDRs of a Node are read from either field', (t) => {
  t.strictSame(rowOf({ spec: { podCIDR: '10.244.1.7/24' } }).podCIDRs, ['10.244.1.0/24']);
  t.strictSame(rowOf({ spec: { podCIDR: '::ffff:10.244.1.7/120' } }).podCIDRs, ['10.244.1.0/24'], 'mapped');
  t.strictSame(rowOf({ spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:1::/64'] } }).podCIDRs, [
    '10.244.1.0/24',
    'fd00:1::/64',
  ]);
  t.end();
});

t.test('WA-13 the zone is the label of the Node, empty means none', (t) => {
  const labelled = (zone: unknown): NodeRow =>
    rowOf({ metadata: { name: 'n', labels: { 'topology.kubernetes.io/zone': zone } } });
  t.equal(labelled('eu-1').zone, 'eu-1');
  t.equal(labelled('').zone, null);
  t.equal(labelled(null).zone, null);
  t.end();
});

t.test('HZ-07 a Node being deleted or tainted by the autoscaler is not eligible', (t) => {
  const taint = (key: string): ApiObject => ({ spec: { taints: [{ key: 'other' }, { key, effect: 'NoSchedule' }] } });
  t.equal(rowOf(taint('ToBeDeletedByClusterAutoscaler')).eligible, false);
  t.equal(rowOf(taint('DeletionCandidateOfClusterAutoscaler')).eligible, true);
  t.equal(rowOf({ metadata: { name: 'n', deletionTimestamp: '2025-01-31T12:00:00.123456Z' } }).eligible, false);
  t.equal(rowOf({ metadata: { name: 'n', deletionTimestamp: null } }).eligible, true);
  t.end();
});

t.test('problems of a Node are found with path and value', (t) => {
  const table: [ApiObject, readonly string[]][] = [
    [
      { metadata: { name: 'UPPER' } },
      ['metadata.name: "UPPER": must be a DNS subdomain: at most 253 of a-z, 0-9, - and .'],
    ],
    [{ spec: { podCIDR: 'x' } }, ['spec.podCIDR: "x": must be a prefix such as "192.0.2.0/24"']],
    [
      { spec: { podCIDR: '::ffff:10.244.0.0/16' } },
      ['spec.podCIDR: "::ffff:10.244.0.0/16": must be a prefix such as "192.0.2.0/24"'],
    ],
    [{ spec: { podCIDRs: ['10.0.0.0/8', 5] } }, ['spec.podCIDRs[1]: 5: must be a string']],
    [{ spec: { taints: [{ key: 1 }] } }, ['spec.taints[0].key: 1: must be a string']],
    [{ status: { addresses: [{ type: 1 }] } }, ['status.addresses[0].type: 1: must be a string']],
    [{ status: 'up' }, ['status: "up": must be a mapping']],
  ];
  for (const [rest, expected] of table) {
    t.strictSame(
      problemsOf(() => translateNode(nodeObject('n', rest), new Interner())),
      expected,
    );
  }
  t.end();
});

t.test('WA-04 a ServiceCIDR is translated', (t) => {
  const { row, ref } = translateServiceCIDR(
    serviceCIDRObject('kubernetes', ['10.96.0.1/12', 'fd00::/108']),
    new Interner(),
  );
  t.strictSame(row, { kind: 'ServiceCIDR', name: 'kubernetes', cidrs: ['10.96.0.0/12', 'fd00::/108'] });
  t.strictSame(ref, { kind: 'ServiceCIDR', namespace: '', name: 'kubernetes' });
  const special = [
    '0.0.0.0/0',
    '127.0.0.0/8',
    '127.1.0.0/16',
    '224.0.0.0/3',
    '::/0',
    '::1/128',
    'ff02::/16',
    '::ffff:127.0.0.0/104',
  ];
  const cut = translateServiceCIDR(serviceCIDRObject('k', [...special, '169.254.20.0/24']), new Interner());
  t.strictSame(cut.row, { kind: 'ServiceCIDR', name: 'k', cidrs: ['169.254.20.0/24'] });
  t.equal(cut.warnings.length, special.length);
  t.equal(String(cut.warnings[1]), 'spec.cidrs[1]: "127.0.0.0/8": takes in addresses of 127.0.0.0/8, and is left out');
  t.strictSame(
    problemsOf(() => translateServiceCIDR(serviceCIDRObject('k', ['10.0.0.0', '::/0']), new Interner())),
    ['spec.cidrs[0]: "10.0.0.0": must be a prefix such as "192.0.2.0/24"'],
  );
  t.end();
});
