/** Rules of every statement and expression the compiler takes, in both families, for comparison with nft. */
import type { NftFamily } from '../../src/native/contract.js';
import { accept, concat, ct, drop, fib, frontend, jump, match, meta, numgen, payload, prefix } from './skeleton.js';
import type { Json } from './skeleton.js';

export type Rule = readonly Json[];

const MARK = { meta: { key: 'mark' } };
const mangle = (value: Json): Json => ({ mangle: { key: MARK, value } });
const vmap = (key: Json, map: string): Json => ({ vmap: { key, data: map } });
const dnat = (family: NftFamily, key: Json, map: string): Json => ({
  dnat: { family, addr: { map: { key, data: map } } },
});

const ADDRESSES = {
  ip: {
    one: '10.1.2.3',
    other: '192.168.0.1',
    mask: '255.255.0.255',
    masked: '10.1.0.3',
    lengths: [0, 1, 7, 8, 16, 20, 24, 31, 32],
  },
  ip6: {
    one: 'fd00::1',
    other: '2001:db8::2',
    mask: 'ffff::ff',
    masked: 'fd00::1',
    lengths: [0, 8, 32, 33, 64, 65, 127, 128],
  },
} as const;

const PREFIXES = { ip: '10.1.2.3', ip6: 'fd00:1:2:3::' } as const;

/** Rules that nft takes as JSON, too. */
export function rulesOfNft(family: NftFamily): readonly Rule[] {
  const { one, other, mask, masked, lengths } = ADDRESSES[family];
  const source = payload(family, 'saddr');
  const destination = payload(family, 'daddr');
  const port = payload('th', 'dport');
  const tcp = match(meta('l4proto'), '==', 'tcp');
  return [
    ...lengths.flatMap((len) => [
      [match(source, '==', prefix(PREFIXES[family], len)), accept],
      [match(ct(`${family} daddr`, 'original'), '==', prefix(PREFIXES[family], len)), accept],
    ]),
    [match(destination, '!=', prefix(PREFIXES[family], 8)), drop],
    [match(destination, '!=', prefix(PREFIXES[family], 9)), drop],
    [match(destination, '==', one), drop],
    [match(destination, '!=', one), drop],
    [match(destination, '>', one), drop],
    [match(destination, '<=', one), drop],
    [match(source, '==', one), match(destination, '==', other), accept],
    [match({ '&': [source, mask] }, '==', masked), accept],
    [match(payload('tcp', 'dport'), '==', 80), accept],
    [match({ '&': [payload('tcp', 'flags'), 'syn'] }, '==', 0), accept],
    [tcp, match({ '&': [payload('tcp', 'flags'), ['syn', 'ack']] }, '!=', 0), accept],
    [match(payload('udp', 'sport'), '!=', 53), accept],
    [match(payload('sctp', 'dport'), '==', 5060), accept],
    [match(port, '==', 80), accept],
    [match(port, '<', 1024), accept],
    [match(port, '>=', 1024), accept],
    [match(payload('tcp', 'sport'), '==', 1), match(payload('tcp', 'dport'), '==', 2), accept],
    [
      match(payload('tcp', 'dport'), '==', 2),
      match(source, '==', one),
      match(payload('tcp', 'sport'), '==', 1),
      accept,
    ],
    [match(payload('th', 'dport'), '==', 2), { counter: null }, match(payload('th', 'sport'), '==', 1), accept],
    [match(payload('tcp', 'dport'), '!=', 2), match(payload('tcp', 'sport'), '==', 1), accept],
    [tcp, match(payload('tcp', 'dport'), '==', 80), accept],
    [match(meta('l4proto'), '!=', 'udp'), match(payload('tcp', 'dport'), '==', 80), accept],
    [match(meta('l4proto'), '==', 'udp'), accept],
    [match(meta('l4proto'), '==', 'sctp'), accept],
    [match(meta('l4proto'), '!=', 6), accept],
    [match(meta('mark'), '==', 0x4000), accept],
    [match(meta('mark'), '!=', 0x4000), accept],
    [match(meta('mark'), '>', 5), accept],
    [match({ '&': [meta('mark'), 0x4000] }, '==', 0x4000), accept],
    [match({ '&': [meta('mark'), 0x4000] }, '!=', 0), accept],
    [match({ '&': [meta('mark'), 0x4000] }, '==', 0), accept],
    [match({ '|': [{ '&': [meta('mark'), 0xff] }, 0x10] }, '==', 5), accept],
    [match(meta('iifname'), '==', 'eth0'), accept],
    [match(meta('oifname'), '!=', 'lo'), accept],
    [match(meta('iifname'), '==', 'cali*'), accept],
    [match(meta('iifname'), '!=', 'cali*'), accept],
    [match(meta('iifname'), '==', 'abcdefghijklmno'), accept],
    [match(ct('state'), 'in', 'invalid'), drop],
    [match(ct('state'), 'in', ['established', 'related']), accept],
    [match(ct('state'), '==', 'new'), accept],
    [match(ct('state'), '!=', 'new'), accept],
    [match(ct('state'), '==', ['established', 'related']), accept],
    [match(ct('state'), '!=', ['established', 'related']), accept],
    [match({ '&': [ct('state'), 'new'] }, '!=', 0), accept],
    [match(ct('status'), 'in', 'dnat'), accept],
    [match(ct('status'), 'in', ['snat', 'dnat']), accept],
    [match({ '&': [ct('status'), 'confirmed'] }, '==', 0), accept],
    [match(ct('direction'), '==', 'reply'), accept],
    [tcp, match(payload('tcp', 'flags'), 'in', ['syn', 'rst']), accept],
    [match(ct(`${family} saddr`, 'reply'), '==', one), accept],
    [match(ct(`${family} daddr`, 'original'), '!=', one), accept],
    [tcp, match(ct('proto-dst', 'original'), '==', 80), accept],
    [tcp, match(ct('proto-src', 'reply'), '!=', 80), accept],
    [match(fib('daddr'), '==', 'local'), jump('x')],
    [match(fib('saddr'), '!=', 'local'), { goto: { target: 'x' } }],
    [match({ fib: { result: 'type', flags: ['daddr'] } }, '==', 'local'), { return: null }],
    [match(numgen(4), '==', 0), accept],
    [match({ numgen: { mode: 'inc', mod: 10, offset: 5 } }, '<', 7), accept],
    [match(destination, '==', '@addresses'), accept],
    [match(destination, '!=', '@addresses'), accept],
    [match(source, '==', '@networks'), accept],
    [match(source, 'in', '@networks'), accept],
    [match(meta('iifname'), '==', '@interfaces'), accept],
    [match(meta('l4proto'), '!=', '@protocols'), accept],
    [match(meta('mark'), '==', '@marks'), accept],
    [match(concat(...frontend(family)), '==', '@frontends'), { reject: null }],
    [match(concat(...frontend(family)), '!=', '@frontends'), accept],
    [match(concat(...frontend(family), source), '==', '@sources'), accept],
    [match(concat(destination, payload('tcp', 'dport')), '==', '@ports'), accept],
    [
      tcp,
      match(
        concat(ct(`${family} daddr`, 'original'), meta('l4proto'), ct('proto-dst', 'original')),
        '==',
        '@frontends',
      ),
      jump('x'),
    ],
    [vmap(concat(...frontend(family)), '@services')],
    [vmap(payload('tcp', 'dport'), '@by-port')],
    [mangle({ '|': [meta('mark'), 0x4000] })],
    [mangle({ '^': [meta('mark'), 0x4000] })],
    [mangle({ '&': [meta('mark'), 0xffffbfff] })],
    [mangle({ '|': [{ '&': [meta('mark'), 0xff] }, 0x4000] })],
    [mangle(5)],
    [{ mangle: { key: { meta: { key: 'nftrace' } }, value: 1 } }],
    [tcp, { limit: { rate: 20, per: 'second', burst: 40 } }, accept],
    [{ limit: { rate: 3, per: 'minute', burst: 1 } }, drop],
    [dnat(family, destination, '@hosts')],
    [{ masquerade: null }],
    [{ masquerade: { flags: 'fully-random' } }],
    [{ masquerade: { flags: ['random', 'persistent'] } }],
    [{ reject: null }],
    [{ reject: { type: 'tcp reset' } }],
    [match(source, '==', one), { reject: { type: 'tcp reset' } }],
    [match(payload('tcp', 'dport'), '==', 80), { reject: { type: 'tcp reset' } }],
    [{ reject: { type: family === 'ip' ? 'icmp' : 'icmpv6', expr: 'admin-prohibited' } }],
    [{ reject: { type: family === 'ip' ? 'icmp' : 'icmpv6', expr: 'port-unreachable' } }],
    [{ 'ct timeout': 'unanswered' }],
    [match(meta('l4proto'), '==', 'udp'), { 'ct timeout': 'asked' }, accept],
    [{ counter: null }, accept],
    [{ counter: { packets: 3, bytes: 180 } }, drop],
    [{ set: { op: 'add', elem: concat(source, ...frontend(family)), set: '@seen' } }],
    [
      {
        set: { op: 'update', elem: { elem: { val: concat(source, ...frontend(family)), timeout: 30 } }, set: '@seen' },
      },
    ],
    [{ set: { op: 'delete', elem: concat(source, ...frontend(family)), set: '@seen' } }],
    [
      {
        set: { op: 'update', elem: concat(source, ...frontend(family)), set: '@seen', stmt: [{ counter: null }] },
      },
      drop,
    ],
  ];
}

const original = (family: NftFamily): readonly Json[] => [
  ct(`${family} daddr`, 'original'),
  meta('l4proto'),
  ct('proto-dst', 'original'),
];

const update = (family: NftFamily): Rule => [
  match(meta('l4proto'), '==', 'tcp'),
  match(concat(...original(family)), '==', '@frontends'),
  {
    map: {
      op: 'update',
      elem: concat(payload(family, 'saddr'), ...original(family)),
      data: concat(payload(family, 'daddr'), payload('th', 'dport')),
      map: '@affinity',
    },
  },
];

/** Rules that nft 1.0.6 takes only in its own language (as JSON it refuses them or crashes), and that language. */
export function rulesOfNftText(family: NftFamily): readonly { readonly text: string; readonly rule: Rule }[] {
  const key = `${family} daddr . meta l4proto . th dport`;
  const source = payload(family, 'saddr');
  const rules = [
    { text: `dnat to ${key} map @targets`, rule: [dnat(family, concat(...frontend(family)), '@targets')] },
    {
      text: `dnat to ${family} saddr . ${key} map @affinity`,
      rule: [dnat(family, concat(source, ...frontend(family)), '@affinity')],
    },
  ];
  if (family === 'ip6') return rules;
  const tracked = 'ct original ip daddr . meta l4proto . ct original proto-dst';
  const text = `meta l4proto tcp ${tracked} @frontends update @affinity { ip saddr . ${tracked} : ip daddr . th dport }`;
  return [...rules, { text, rule: update(family) }];
}

/** Rules that nft 1.0.6 refuses, or crashes on when it loads them, although it lists them and the kernel takes them. */
export function rulesOfOurs(family: NftFamily): readonly Rule[] {
  return [
    [dnat(family, concat(numgen(4), ...frontend(family)), '@endpoints')],
    ...[payload(family, 'saddr'), concat(payload(family, 'saddr'), payload('th', 'sport'))].map((expr) => [
      dnat(family, concat({ jhash: { mod: 251, seed: 7, expr } }, ...frontend(family)), '@endpoints'),
    ]),
    [match(meta('nfproto'), '==', family === 'ip' ? 'ipv4' : 'ipv6'), accept],
    [match(ct('proto-dst', 'original'), '==', 80), accept],
    update(family),
  ];
}
