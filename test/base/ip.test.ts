import { BlockList, isIPv4, isIPv6 } from 'node:net';
import t from 'tap';
import {
  addressBytes,
  addressFromBytes,
  familyOf,
  hostPrefix,
  isLoopback,
  isUnspecified,
  parseAddress,
  parsePrefix,
  prefixAddress,
  prefixContains,
  prefixesOverlap,
  prefixLength,
  prefixRange,
  type Family,
  type IPAddress,
} from '../../src/base/ip.js';
import { specialAddress } from '../../src/base/special-address.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';
import { address, prefix } from '../support/rows.js';

t.test('addresses are printed as their canonical text', (t) => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['1.2.3.4', '1.2.3.4'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['172.30.0.041', '172.30.0.41'],
    ['1.2.3.004', '1.2.3.4'],
    ['192.168.099.022', '192.168.99.22'],
    ['10.180.00.001', '10.180.0.1'],
    ['010.010.010.010', '10.10.10.10'],
    ['1.2.3.0000000004', '1.2.3.4'],
    ['1.2.3.256', null],
    ['1.2.3.99999999999999999999', null],
    ['1.2.3', null],
    ['1.2.3.4.5', null],
    ['1.2..4', null],
    ['1.2.3.', null],
    ['.1.2.3', null],
    ['1.2.3.+4', null],
    ['1.2.3.-4', null],
    ['1.2.3.4 ', null],
    [' 1.2.3.4', null],
    ['1.2.3.4\n', null],
    ['1.2.3.0x4', null],
    ['1.2.3.1e1', null],
    ['1.2.3.４', null],
    ['16909060', null],
    ['', null],
    ['None', null],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8::A', '2001:db8::a'],
    ['2001:0db8:0000:0000:0000:0000:0000:000a', '2001:db8::a'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['0:1:1:1:1:1:1:1', '0:1:1:1:1:1:1:1'],
    ['1:1:1:1:1:1:1:0', '1:1:1:1:1:1:1:0'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['1:2:3:4:5:6:7.8.9.10', '1:2:3:4:5:6:708:90a'],
    ['::1.2.3.4', '::102:304'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:01.002.003.4', '1.2.3.4'],
    ['::FFFF:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:102:304', '1.2.3.4'],
    ['::ffff:0:1.2.3.4', '::ffff:0:102:304'],
    ['1::ffff:1.2.3.4', '1::ffff:102:304'],
    [':', null],
    [':::', null],
    ['::1::', null],
    ['1:2:3:4:5:6:7:8::', null],
    ['::1:2:3:4:5:6:7:8', null],
    ['1:2:3:4::5:6:7:8', null],
    ['1:2:3:4:5:6:7', null],
    ['1:2:3:4:5:6:7:8:9', null],
    ['1:2:3:4:5:6:7:', null],
    [':1:2:3:4:5:6:7', null],
    ['12345::', null],
    ['g::', null],
    ['1.2.3.4::', null],
    ['1:2:3:4:5:6:7:1.2.3.4', null],
    ['::1.2.3', null],
    ['::1.2.3.256', null],
    ['fe80::1%eth0', null],
    ['[::1]', null],
    ['::1/128', null],
  ];
  for (const [text, expected] of cases) t.equal(parseAddress(text), expected, JSON.stringify(text));
  t.end();
});

/** Eight groups with many zeros among them, so that runs to compress are common. */
function randomGroups(random: SeededRandom): string[] {
  return Array.from({ length: 8 }, () =>
    random.chance(0.5) ? '0' : random.below(random.pick([16, 256, 65_536])).toString(16),
  );
}

/** A way of writing the groups: padded, upper case, any one run of zeros left out, the tail dotted. */
function writeLoosely(random: SeededRandom, groups: readonly string[]): string {
  const written = groups.map((group) => {
    const padded = random.chance(0.3) ? group.padStart(4, '0') : group;
    return random.chance(0.3) ? padded.toUpperCase() : padded;
  });
  if (random.chance(0.2)) {
    const [high = 0, low = 0] = groups.slice(6).map((group) => parseInt(group, 16));
    written.splice(6, 2, [high >> 8, high & 255, low >> 8, low & 255].join('.'));
  }
  const start = random.below(6);
  let end = start;
  while (end < 6 && groups[end] === '0') end++;
  if (end === start || random.chance(0.3)) return written.join(':');
  return `${written.slice(0, start).join(':')}::${written.slice(end).join(':')}`;
}

t.test('any IPv6 text is read and printed as the URL standard does', (t) => {
  const random = new SeededRandom(1);
  for (let round = 0; round < rounds(20_000); round++) {
    const text = writeLoosely(random, randomGroups(random));
    const parsed = parseAddress(text);
    // The standard keeps an IPv4-mapped address IPv6.
    const six = parsed !== null && familyOf(parsed) === 'IPv4' ? `::ffff:${parsed}` : (parsed ?? '');
    if (new URL(`http://[${six}]`).host !== new URL(`http://[${text}]`).host) t.fail(`${text} is read as ${six}`);
    else if (six === parsed && `[${six}]` !== new URL(`http://[${text}]`).host) t.fail(`${text} is printed as ${six}`);
  }
  t.end();
});

/** Strings near addresses: right and wrong ones. */
function mangle(random: SeededRandom, text: string): string {
  const characters = Array.from(text);
  const edits = random.below(3);
  for (let edit = 0; edit < edits; edit++) {
    const added = random.chance(0.7) ? [random.pick(Array.from('0123456789abfg:.: ::..'))] : [];
    characters.splice(random.below(characters.length + 1), random.below(2), ...added);
  }
  return characters.join('');
}

t.test('addresses are the ones that node:net accepts', (t) => {
  const random = new SeededRandom(2);
  let right = 0;
  for (let round = 0; round < rounds(40_000); round++) {
    const dotted = Array.from({ length: 4 }, () => random.below(260)).join('.');
    const text = mangle(random, random.chance(0.3) ? dotted : writeLoosely(random, randomGroups(random)));
    // Leading zeros of dotted decimals are the one thing that node:net refuses and we take (behaviour CF-52).
    const plain = text.replace(/(?<=^|[.:])0+(?=\d+\.)|(?<=\.)0+(?=\d)/g, '');
    const expected = isIPv4(plain) || isIPv6(plain);
    if ((parseAddress(text) !== null) !== expected) t.fail(`${JSON.stringify(text)}: expected ${String(expected)}`);
    if (expected) right++;
  }
  const all = rounds(40_000);
  t.ok(right > 0.2 * all && right < 0.8 * all, `${right} of ${all} are addresses`);
  t.end();
});

t.test('addresses survive conversion from bytes to text and back', (t) => {
  const random = new SeededRandom(3);
  for (let round = 0; round < rounds(5_000); round++) {
    const bytes = Uint8Array.from({ length: random.pick([4, 16]) }, () => (random.chance(0.5) ? 0 : random.below(256)));
    const printed = addressFromBytes(bytes);
    if (Buffer.compare(addressBytes(printed), bytes) !== 0) t.fail(`${bytes.join()} became ${printed}`);
  }
  const mapped = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 1, 2, 3, 4]);
  t.same(addressBytes(addressFromBytes(mapped)), mapped, 'an IPv4-mapped address off the wire stays what it is');
  const fresh = addressBytes(address('1.2.3.4'));
  fresh[0] = 9;
  t.same(addressBytes(address('1.2.3.4')), Uint8Array.of(1, 2, 3, 4));
  for (const length of [0, 3, 5, 15, 17]) t.throws(() => addressFromBytes(new Uint8Array(length)), TypeError);
  t.end();
});

t.test('prefixes are printed as their canonical text', (t) => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.1.2.3/32', '10.1.2.3/32'],
    ['10.255.255.255/9', '10.128.0.0/9'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['203.0.113.000/025', '203.0.113.0/25'],
    ['2001:db8::ffff/112', '2001:db8::/112'],
    ['2001:db8::ffff/127', '2001:db8::fffe/127'],
    ['2001:db8::1/128', '2001:db8::1/128'],
    ['ffff::/0', '::/0'],
    ['10.0.0.0/33', null],
    ['::/129', null],
    ['10.0.0.0', null],
    ['10.0.0.0/', null],
    ['/8', null],
    ['10.0.0.0/-1', null],
    ['10.0.0.0/8 ', null],
    [' 10.0.0.0/8', null],
    ['10.0.0.0/255.0.0.0', null],
    ['10.0.0.0/8/8', null],
    ['10.0.0/8', null],
    ['10.0.0.0/1e1', null],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::FFFF:c000:0201/120', '192.0.2.0/24'],
    ['0:0:0:0:0:ffff:192.0.2.1/128', '192.0.2.1/32'],
    ['::ffff:192.0.2.1/96', '0.0.0.0/0'],
    ['::ffff:192.0.2.1/95', null],
    ['::ffff:10.0.0.0/8', null],
    ['::ffff:10.0.0.0/129', null],
    ['::fffe:192.0.2.1/120', '::fffe:c000:200/120'],
  ];
  for (const [text, expected] of cases) t.equal(parsePrefix(text), expected, JSON.stringify(text));
  t.equal(hostPrefix(address('1.2.3.4')), '1.2.3.4/32');
  t.equal(hostPrefix(address('fd00::1')), 'fd00::1/128');
  t.equal(prefixAddress(prefix('10.1.2.3/8')), '10.0.0.0');
  t.equal(prefixLength(prefix('fd00::/112')), 112);
  t.end();
});

/** An address that shares a random number of leading bits with another. */
function near(random: SeededRandom, bytes: Uint8Array): IPAddress {
  const copy = Uint8Array.from(bytes);
  const bit = random.below(bytes.length * 8);
  if (random.chance(0.8)) copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7));
  return addressFromBytes(copy);
}

t.test('prefixes contain the addresses that node:net says, and have the right first and last address', (t) => {
  const random = new SeededRandom(4);
  const counts = { inside: 0, outside: 0 };
  for (let round = 0; round < rounds(4_000); round++) {
    const family: Family = random.pick(['IPv4', 'IPv6']);
    // Starts with a bit that keeps it away from IPv4-mapped addresses, which node:net treats in its own way.
    const bytes = Uint8Array.from(
      { length: family === 'IPv4' ? 4 : 16 },
      (_, index) => random.below(256) | (index === 0 ? 1 : 0),
    );
    const length = random.below(bytes.length * 8 + 1);
    const text = addressFromBytes(bytes);
    const candidate = near(random, bytes);
    const list = new BlockList();
    list.addSubnet(text, length, family === 'IPv4' ? 'ipv4' : 'ipv6');
    const expected = length === 0 || list.check(candidate, family === 'IPv4' ? 'ipv4' : 'ipv6');
    counts[expected ? 'inside' : 'outside']++;
    const parsed = prefix(`${text}/${length}`);
    if (prefixContains(parsed, candidate) !== expected) t.fail(`${candidate} in ${parsed}: ${String(expected)}`);
    const [first, last] = prefixRange(parsed);
    const within =
      Buffer.compare(first, addressBytes(candidate)) <= 0 && Buffer.compare(addressBytes(candidate), last) <= 0;
    if (within !== expected) t.fail(`${candidate} in the range of ${parsed}: ${String(expected)}`);
  }
  t.ok(Math.min(counts.inside, counts.outside) > rounds(4_000) / 8, JSON.stringify(counts));
  t.end();
});

t.test('no prefix contains the other family, and length 0 contains all of its own', (t) => {
  t.equal(prefixContains(prefix('0.0.0.0/0'), address('::1')), false);
  t.equal(prefixContains(prefix('::/0'), address('1.2.3.4')), false);
  t.equal(prefixContains(prefix('0.0.0.0/0'), address('255.1.2.3')), true);
  for (const [one, other, expected] of [
    ['10.0.0.0/8', '10.1.0.0/16', true],
    ['10.0.0.0/9', '10.128.0.0/9', false],
    ['fd00::/8', 'fd00::1/128', true],
    ['0.0.0.0/0', '::/0', false],
  ] as const) {
    t.equal(prefixesOverlap(prefix(one), prefix(other)), expected, `${one} and ${other}`);
    t.equal(prefixesOverlap(prefix(other), prefix(one)), expected, `${other} and ${one}`);
  }
  t.equal(prefixContains(prefix('::/0'), address('ffff::')), true);
  t.same(prefixRange(prefix('10.0.0.0/30')), [Uint8Array.of(10, 0, 0, 0), Uint8Array.of(10, 0, 0, 3)]);
  t.same(prefixRange(prefix('10.0.0.1/32')), [Uint8Array.of(10, 0, 0, 1), Uint8Array.of(10, 0, 0, 1)]);
  t.end();
});

t.test('loopback and unspecified addresses are recognised', (t) => {
  for (const text of ['127.0.0.1', '127.255.0.9', '::1']) t.ok(isLoopback(address(text)), text);
  for (const text of ['128.0.0.1', '12.7.0.0', '::', '::2', '1::1']) t.notOk(isLoopback(address(text)), text);
  for (const text of ['0.0.0.0', '::', '0:0::0']) t.ok(isUnspecified(address(text)), text);
  for (const text of ['0.0.0.1', '::1', '127.0.0.1']) t.notOk(isUnspecified(address(text)), text);
  t.end();
});

t.test('special address ranges are recognised at their edges', (t) => {
  const kinds: Readonly<Record<string, readonly string[]>> = {
    'the unspecified address': ['0.0.0.0', '::', '::ffff:0.0.0.0'],
    'a loopback address': ['127.0.0.0', '127.0.0.1', '127.255.255.255', '::1', '::ffff:127.0.0.1'],
    'a link-local address': ['169.254.0.0', '169.254.169.254', '169.254.255.255', 'fe80::', 'fe80::1', 'febf::1'],
    'a multicast address': ['224.0.0.1', '239.255.255.255', 'ff01::1', 'ff02::1', 'ff0e::1', '::ffff:224.0.0.1'],
    'the broadcast address': ['255.255.255.255', '::ffff:ffff:ffff'],
  };
  for (const [kind, texts] of Object.entries(kinds)) {
    for (const text of texts) t.equal(specialAddress(address(text)), kind, text);
  }
  const usual = ['0.0.0.1', '126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '223.255.255.255'];
  const usualV6 = ['::2', '::1:0', '1::1', '::7f00:1', 'fe00::1', 'fe7f::1', 'fec0::1', 'fc00::', 'feff::1'];
  for (const text of [...usual, '240.0.0.0', '255.255.255.254', '255.0.0.0', ...usualV6]) {
    t.equal(specialAddress(address(text)), null, text);
  }
  t.end();
});
