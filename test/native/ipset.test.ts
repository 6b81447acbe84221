// needs: iptables, ip
import '../support/namespace.js';

import t from 'tap';
import type { IpsetOperation } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { sendDatagram } from '../support/datagram.js';
import { HASH, ipsetRoundTrip, join, saved, type IpsetCase, type IpsetElementCase } from '../support/ipset-cases.js';
import { run } from '../support/run.js';
import { packed } from '../support/virtual-services.js';

const { ipset } = loadAddon();

const PORTS = {
  family: null,
  hashSize: 0,
  maxElements: 0,
  comments: true,
  counters: false,
  ports: { first: 0, last: 65535 },
} as const;

function element(
  text: string,
  comment: string | null,
  ...parts: readonly (readonly number[] | Uint8Array)[]
): IpsetElementCase {
  return { bytes: join(...parts), text, comment };
}

const CASES: readonly IpsetCase[] = [
  {
    set: { name: 'KUBE-IPVS-IPS', type: 'hash:ip', family: 'IPv4', ...HASH },
    elements: [
      element('10.96.0.1', null, packed('10.96.0.1')),
      element('10.96.0.10', 'kube-system/dns:dns', packed('10.96.0.10')),
    ],
  },
  {
    set: { name: 'KUBE-6-CLUSTER-IP', type: 'hash:ip,port', family: 'IPv6', ...HASH },
    elements: [
      element('fd00:10:96::1,tcp:443', 'default/kubernetes:https', packed('fd00:10:96::1'), [0x01, 0xbb, 6]),
      element('fd00:10:96::a,udp:53', null, packed('fd00:10:96::a'), [0, 53, 17]),
    ],
  },
  {
    set: { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port', family: 'IPv4', ...HASH, maxElements: 3 },
    elements: [element('10.96.0.2,sctp:9', 'x'.repeat(255), packed('10.96.0.2'), [0, 9, 132])],
  },
  {
    set: { name: 'KUBE-LOOP-BACK', type: 'hash:ip,port,ip', family: 'IPv4', ...HASH, comments: false },
    elements: [element('10.0.0.1,tcp:8080,10.0.0.2', null, packed('10.0.0.1'), [0x1f, 0x90, 6], packed('10.0.0.2'))],
  },
  {
    set: { name: 'KUBE-LOAD-BALANCER-SOURCE-CIDR', type: 'hash:ip,port,net', family: 'IPv4', ...HASH },
    elements: [
      element('192.0.2.1,tcp:80,10.0.0.0/8', 'a b', packed('192.0.2.1'), [0, 80, 6], packed('10.0.0.0'), [8]),
      element('192.0.2.1,tcp:80,128.0.0.0/1', null, packed('192.0.2.1'), [0, 80, 6], packed('128.0.0.0'), [1]),
    ],
  },
  {
    set: { name: 'KUBE-6-LOAD-BALANCER-SOURCE-CI', type: 'hash:ip,port,net', family: 'IPv6', ...HASH },
    elements: [
      element('2001:db8::1,tcp:80,fd00::/8', null, packed('2001:db8::1'), [0, 80, 6], packed('fd00::'), [8]),
      // ipset leaves out the length of a single address.
      element('2001:db8::1,tcp:80,fd00::1', null, packed('2001:db8::1'), [0, 80, 6], packed('fd00::1'), [128]),
    ],
  },
  {
    set: { name: 'KUBE-NODE-PORT-TCP', type: 'bitmap:port', ...PORTS },
    elements: [element('30000', 'default/web:http', [0x75, 0x30]), element('32767', null, [0x7f, 0xff])],
  },
];

t.test('every set type is made, filled, listed and emptied as ipset does', async (t) => {
  for (const each of CASES) await ipsetRoundTrip(t, ipset, each);
  t.same(await ipset.ipsetNames(), []);
});

t.test('a refused ipset entry is named, and the others are applied', async (t) => {
  const set = { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port', family: 'IPv4', ...HASH, maxElements: 4 } as const;
  const port = (number: number): Uint8Array => join(packed('10.96.0.1'), [number >> 8, number & 0xff, 6]);
  const refusals = (
    await ipset.ipsetApply([
      { type: 'create', set },
      { type: 'create', set: { ...set, type: 'hash:ip' } },
      {
        type: 'add',
        set,
        elements: join(port(1), port(2), port(3), port(4), port(5), port(2), port(6)),
        comments: null,
      },
      { type: 'add', set: { ...set, name: 'missing' }, elements: port(1), comments: null },
      { type: 'flush', name: 'missing' },
      { type: 'destroy', name: 'missing' },
      { type: 'delete', set, elements: port(1) },
      { type: 'add', set, elements: port(7), comments: null },
    ])
  ).refused;
  t.same(
    refusals.map(({ index, element, errno }) => [index, element, errno]),
    [
      [1, null, 'EEXIST'],
      [2, 4, 'ENOSPC'],
      [2, 6, 'ENOSPC'],
      [3, 0, 'ENOENT'],
      [4, null, 'ENOENT'],
      [5, null, 'ENOENT'],
    ],
  );
  t.match(
    refusals[1]?.message,
    /^ipset apply: add to set KUBE-CLUSTER-IP: 10\.96\.0\.1:5 tcp: the set is full: ENOSPC/,
  );
  t.same(
    saved('KUBE-CLUSTER-IP'),
    [2, 3, 4, 7].map((number) => `10.96.0.1,tcp:${number}`),
  );
  const range = { name: 'PORTS', type: 'bitmap:port', ...PORTS, ports: { first: 30000, last: 30010 } } as const;
  const outside = (
    await ipset.ipsetApply([
      { type: 'create', set: range },
      { type: 'add', set: range, elements: Uint8Array.of(0, 80, 0x75, 0x30), comments: null },
    ])
  ).refused;
  t.same(
    outside.map(({ element, errno, object }) => [element, errno, object]),
    [[0, 'ERANGE', 'add to set PORTS: 80']],
  );
  t.same(saved('PORTS'), ['30000']);
  run('iptables-nft -A INPUT -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT');
  t.match((await ipset.ipsetApply([{ type: 'destroy', name: 'KUBE-CLUSTER-IP' }])).refused, [
    { errno: 'EBUSY', operation: 'ipset apply' },
  ]);
  t.equal((await ipset.ipsetList(['KUBE-CLUSTER-IP']))[0]?.references, 1);
  run('iptables-nft -F INPUT');
  run('ipset destroy');
});

t.test('thousands of set elements take few messages, and all are listed', async (t) => {
  const set = { name: 'MANY', type: 'hash:ip,port', family: 'IPv4', ...HASH } as const;
  const count = 5000;
  const elements = new Uint8Array(count * 7);
  for (let at = 0; at < count; at++) elements.set([10, 96, at >> 8, at & 0xff, 0, 80, 6], at * 7);
  t.same(
    (
      await ipset.ipsetApply([
        { type: 'create', set },
        { type: 'add', set, elements, comments: Array.from({ length: count }, (_, at) => `default/web-${at}:http`) },
      ])
    ).refused,
    [],
  );
  const [listing] = await ipset.ipsetList(['MANY']);
  t.equal(listing?.elements?.length, elements.length);
  t.equal(saved('MANY').length, count);
  const { refused, bytes } = await ipset.ipsetApply([{ type: 'delete', set, elements }]);
  t.same(refused, []);
  t.ok(bytes > elements.length && bytes < 10 * elements.length, `${bytes} bytes were sent`);
  t.same(saved('MANY'), []);
  run('ipset destroy');
});

t.test('set digests ignore the order of elements, and differ after every change', async (t) => {
  const digests = async (): Promise<readonly (number | undefined)[]> => [
    ...(await ipset.ipsetDigests(['digests', 'none'], 'whole')),
    ...(await ipset.ipsetDigests(['digests', 'none'], 'headers')),
  ];
  const create = 'create digests hash:ip,port comment';
  const first = 'add digests 10.0.0.1,tcp:80 comment "a"';
  const second = 'add digests 10.0.0.2,tcp:80 comment "b"';
  const restored = async (...lines: readonly string[]): Promise<readonly (number | undefined)[]> => {
    run('ipset destroy');
    run('ipset restore', [...lines, ''].join('\n'));
    return await digests();
  };
  const full = await restored(create, first, second);
  t.same([full[1], full[3]], [0, 0], 'what is not there has none');
  t.same(await restored(create, second, first), full);
  const recommented = await restored(create, first, second.replace('b', 'c'));
  t.not(recommented[0], full[0]);
  t.equal(recommented[2], full[2], 'of a header only the number of elements counts');
  const replaced = await restored(create, first, second.replace('.2', '.3'));
  t.not(replaced[0], full[0]);
  t.equal(replaced[2], full[2]);
  for (const others of [
    [create, first],
    [create.replace('comment', 'maxelem 3 comment'), first, second],
  ]) {
    const found = await restored(...others);
    t.not(found[0], full[0]);
    t.not(found[2], full[2]);
  }
});

t.test('packets that match a set element are counted', async (t) => {
  const set = {
    name: 'COUNTED',
    type: 'hash:ip,port',
    family: 'IPv4',
    ...HASH,
    comments: false,
    counters: true,
  } as const;
  t.same((await ipset.ipsetApply([{ type: 'create', set }])).refused, []);
  run('ip link set lo up');
  for (const match of [
    '-m set --match-set COUNTED dst,dst',
    '-m set ! --match-set COUNTED dst,dst ! --update-counters -j SET --add-set COUNTED dst,dst',
  ])
    run(`iptables-nft -A INPUT -p udp --dport 9 ${match}`);
  const counted = async (): Promise<readonly unknown[]> => {
    const [listing] = await ipset.ipsetList(['COUNTED']);
    t.equal(listing?.counters, true);
    return [[...(listing?.elements ?? [])], [...(listing?.elementPackets ?? [])]];
  };
  t.same(await counted(), [[], []]);
  for (let packet = 0; packet < 3; packet++) await sendDatagram('127.0.0.5', 9);
  t.same(await counted(), [[127, 0, 0, 5, 0, 9, 17], [3]]);
  run('iptables-nft -F INPUT');
  run('ipset destroy');
});

t.test('foreign sets are listed with their type, and special ones are marked', async (t) => {
  run('ipset create OTHER list:set');
  run('ipset create TIMED hash:ip timeout 60');
  run('ipset create MASKED hash:ip netmask 24');
  run('ipset create EXCEPT hash:ip,port,net');
  run('ipset add EXCEPT 10.0.0.1,tcp:80,10.0.0.0/8 nomatch');
  run('ipset create PLAIN hash:ip counters');
  const bare = { name: 'PLAIN', type: 'hash:ip', family: 'IPv4' } as const;
  const commented = { type: 'add', set: bare, elements: packed('10.0.0.1'), comments: ['no'] } as const;
  t.match((await ipset.ipsetApply([commented])).refused, [{ errno: 'EINVAL', message: /the set takes no comments/ }]);
  const listings = await ipset.ipsetList(['OTHER', 'TIMED', 'MASKED', 'EXCEPT', 'PLAIN', 'missing']);
  t.same(
    listings.map((listing) => listing && [listing.type, listing.plain, listing.elements?.length ?? null]),
    [
      ['list:set', true, null],
      ['hash:ip', false, 0],
      ['hash:ip', false, 0],
      ['hash:ip,port,net', false, 12],
      ['hash:ip', true, 0],
      null,
    ],
  );
  run('ipset destroy');
});

t.test('ipset: wrong arguments are named with their paths', (t) => {
  const set = { name: 'S', type: 'hash:ip', family: 'IPv4', ...HASH } as const;
  const cases: readonly (readonly [RegExp, IpsetOperation])[] = [
    [
      /operations\[0\]\.set\.name: expected a string of 1 to 31 bytes/,
      { type: 'create', set: { ...set, name: 'x'.repeat(32) } },
    ],
    [
      /operations\[0\]\.set\.family: expected "IPv4" or "IPv6", found null/,
      { type: 'create', set: { ...set, family: null } },
    ],
    [/operations\[0\]\.set\.ports: expected null/, { type: 'create', set: { ...set, ports: { first: 1, last: 2 } } }],
    [
      /operations\[0\]\.elements: expected whole elements of 4 bytes/,
      { type: 'add', set, elements: new Uint8Array(5), comments: null },
    ],
  ];
  for (const [message, operation] of cases)
    t.throws(() => ipset.ipsetApply([operation]), { name: 'TypeError', message });
  t.end();
});
