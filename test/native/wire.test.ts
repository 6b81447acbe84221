import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { NftElementsOperation, NftOperation } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { messages } from './netlink-text.js';
import type { WireMessage } from './netlink-text.js';
import {
  accept,
  add,
  concat,
  ct,
  drop,
  fib,
  frontend,
  jump,
  match,
  meta,
  numgen,
  payload,
  prefix,
} from './skeleton.js';
import type { Command, Json } from './skeleton.js';

const addon = loadAddon().nftables;

/** Numbers of nf_tables messages, and of their attributes that the two sides need not share. */
const NEW = { table: 0, chain: 3, rule: 6, set: 9, elements: 12 } as const;

function capture(name: string): Uint8Array {
  const text = readFileSync(join(process.cwd(), 'test', 'wire', name), 'utf8');
  const hex = text.split('\n').filter((line) => !line.startsWith('#'));
  return Buffer.from(hex.join(''), 'hex');
}

/**
 * What nft adds and the kernel does not need where a set is known by name: the set's number in the batch, in lookups, dynamic updates,
 * elements and the set itself; the operation of a bitwise expression when it is the default; and in a set's user data the expression that
 * `typeof` would print, of which nft writes an empty one for every concatenation.
 */
function essential(message: WireMessage): readonly string[] {
  const { lines, type } = message;
  const kept = lines.filter((line, index) => {
    if (type === NEW.set && line.startsWith('10 ')) return false;
    if (type === NEW.elements && line.startsWith('4 ')) return false;
    if (type !== NEW.rule || !line.startsWith('      ')) return true;
    const name = lines.slice(0, index).findLast((each) => each.startsWith('    1 '));
    const expression = Buffer.from(name?.trim().slice(2) ?? '', 'hex')
      .toString()
      .replace('\0', '');
    if (expression === 'lookup') return !line.startsWith('      4 ');
    if (expression === 'dynset') return !line.startsWith('      2 ');
    if (expression === 'bitwise') return line !== '      6 00000000';
    return true;
  });
  const typeofKey = '030800040d0000000100';
  const typeofContent = '040800040d0000000100';
  return kept.map((line) =>
    type === NEW.set && line.startsWith('13 ') ? line.replace(typeofKey, '').replace(typeofContent, '') : line,
  );
}

const chain = (name: string, fields: Readonly<Record<string, Json>> = {}): Command =>
  add('ip', 'chain', { name, ...fields });
const rule = (name: string, ...expr: readonly Json[]): Command => add('ip', 'rule', { chain: name, expr });
const source = payload('ip', 'saddr');
const tracked = [ct('ip daddr', 'original'), meta('l4proto'), ct('proto-dst', 'original')];
const mark = meta('mark');
const key = ['ipv4_addr', 'inet_proto', 'inet_service'];
const address = ['ipv4_addr', 'inet_service'];

/** nft-ruleset.nft in the schema, but for its elements. */
const RULESET: readonly Command[] = [
  add('ip', 'table', { comment: 'of a test' }),
  chain('x', { comment: 'plain' }),
  chain('pre', { type: 'nat', hook: 'prerouting', prio: -100, policy: 'accept' }),
  chain('r'),
  add('ip', 'set', { name: 'sources', type: address, flags: ['interval'] }),
  add('ip', 'map', { name: 'services', type: key, map: 'verdict', comment: 'of Services' }),
  add('ip', 'map', { name: 'targets', type: key, map: address }),
  add('ip', 'map', {
    name: 'affinity',
    type: ['ipv4_addr', ...key],
    map: address,
    size: 1000,
    flags: ['dynamic', 'timeout'],
    timeout: 10,
  }),
  rule('pre', { vmap: { key: concat(...frontend('ip')), data: '@services' } }),
  rule('pre', { dnat: { addr: { map: { key: concat(...frontend('ip')), data: '@targets' } } } }),
  rule('r', match(source, '==', prefix('10.0.0.0', 20)), accept),
  rule('r', { mangle: { key: mark, value: { '|': [mark, 0x4000] } } }),
  rule('r', match({ '&': [mark, 0x4000] }, '==', 0x4000), { return: null }),
  rule('r', match(ct('ip daddr', 'original'), '==', '10.0.0.1'), accept),
  rule('r', match(ct('status'), 'in', 'dnat'), jump('x')),
  rule('r', match(ct('state'), 'in', ['established', 'related']), accept),
  rule('r', match(fib('daddr'), '==', 'local'), { return: null }),
  rule('r', match(numgen(4), '==', 0), { goto: { target: 'x' } }),
  rule('r', match(mark, '>', 5), drop),
  rule('r', match(meta('iifname'), '==', 'cali*'), accept),
  rule('r', match(meta('oifname'), '==', 'lo'), accept),
  rule('r', match(concat(source, payload('tcp', 'dport')), '==', '@sources'), { reject: { type: 'tcp reset' } }),
  rule('r', { masquerade: { flags: 'fully-random' } }),
  rule('r', { reject: null }),
  add('ip', 'rule', { chain: 'r', expr: [{ counter: null }], comment: 'counted' }),
  rule('r', match(meta('l4proto'), '==', 'tcp'), {
    map: {
      op: 'update',
      elem: concat(source, ...tracked),
      data: concat(payload('ip', 'daddr'), payload('th', 'dport')),
      map: '@affinity',
    },
  }),
];

const NONE = { keyEnds: null, dataLength: 0, data: null, gotoChains: null, comments: null } as const;
const one = (set: string, hex: string): NftElementsOperation => {
  const keys = Buffer.from(hex, 'hex');
  return { type: 'elements', verb: 'add', set, count: 1, keyLength: keys.length, keys, ...NONE };
};

const ELEMENTS: readonly NftOperation[] = [
  { ...one('sources', '0a00000000500000'), keyEnds: Buffer.from('0affffff005a0000', 'hex') },
  { ...one('services', '0a6000010600000000500000'), gotoChains: ['x'], comments: ['web'] },
  { ...one('targets', '0a6000011100000000350000'), dataLength: 8, data: Buffer.from('0af4000714e90000', 'hex') },
];

t.test('the nft batch is the same as that of nft(8)', (t) => {
  const operations = [{ type: 'commands', commands: RULESET } as const, ...ELEMENTS];
  const ours = messages(addon.nftEncode({ family: 'ip', table: 't', operations }));
  const theirs = messages(capture('nft-ruleset.hex'));
  t.equal(ours.length, theirs.length);
  for (const [kind, type] of Object.entries(NEW)) {
    const mine = ours.filter((message) => message.type === type);
    const expected = theirs.filter((message) => message.type === type);
    t.ok(expected.length > 0, `the capture has a ${kind}`);
    t.equal(mine.length, expected.length);
    for (const [index, message] of expected.entries()) {
      const own = mine[index];
      // The kernel makes a missing table with and without NLM_F_CREATE, and nft leaves it out.
      if (type !== NEW.table) t.equal(own?.head, message.head, `${kind} ${index}: flags and family`);
      t.strictSame(own === undefined ? [] : essential(own), essential(message), `${kind} ${index}: attributes`);
    }
  }
  t.end();
});

t.test('an nft batch is framed, numbered, and acknowledged once', (t) => {
  const bytes = Buffer.from(
    addon.nftEncode({ family: 'ip6', table: 't', operations: [{ ...one('s', '00'), count: 1 }] }),
  );
  const heads: (readonly [number, number, number])[] = [];
  for (let at = 0; at < bytes.length; at += (bytes.readUInt32LE(at) + 3) & ~3) {
    heads.push([bytes.readUInt16LE(at + 4), bytes.readUInt16LE(at + 6) & 4, bytes.readUInt32LE(at + 8)]);
  }
  t.strictSame(heads, [
    [0x10, 0, 0],
    [0x0a0c, 4, 1],
    [0x11, 0, 0],
  ]);
  t.end();
});

t.test('nft elements are packed into few messages', (t) => {
  const count = 250_000;
  const elements = { ...one('endpoints', '00'.repeat(16)), count, keys: new Uint8Array(16 * count) };
  const content = { dataLength: 8, data: new Uint8Array(8 * count) };
  const batch = addon.nftEncode({ family: 'ip', table: 't', operations: [{ ...elements, ...content }] });
  t.ok(messages(batch).length <= count / 500, 'messages');
  t.ok(batch.byteLength <= 48 * count, 'bytes');
  t.end();
});
