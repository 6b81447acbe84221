import t from 'tap';
import { packLocal, unpackLocal } from '../../../src/dataplane/nftables/affinity/local-endpoints.js';
import {
  packEndpoint,
  packFrontend,
  packRange,
  packSlot,
  packSource,
  shardOf,
  unpackFrontend,
  unpackSlot,
  unpackSource,
} from '../../../src/dataplane/nftables/keys.js';
import { SHARDS, endpointsMap, parseEndpointsMap } from '../../../src/dataplane/nftables/names.js';
import { address, prefix } from '../../support/rows.js';
import { packedAddress, unpackAddress } from '../../../src/base/pack-address.js';

const hex = (packed: string): string => Buffer.from(packed, 'latin1').toString('hex');
const bytes = (text: string): string => Buffer.from(text.replaceAll(' ', ''), 'hex').toString('latin1');

// As the kernel (6.18) lists them after `nft add element ip x s '{ 10.96.0.10 . udp . 53 }'` and the like.
t.test('element keys are packed as in the kernel: network order, components padded to 4 bytes', (t) => {
  t.equal(hex(packFrontend('10.96.0.10:53/UDP')), '0a60000a' + '11000000' + '00350000');
  t.equal(hex(packFrontend('nodeport:30080/TCP')), '06000000' + '75800000');
  t.equal(hex(packFrontend('[fd00::1]:443/SCTP')), 'fd000000000000000000000000000001' + '84000000' + '01bb0000');
  t.equal(hex(packedAddress(address('192.0.2.1'))), 'c0000201');
  t.equal(hex(packRange(prefix('10.1.0.0/16'))), '0a010000' + '0a01ffff');
  t.equal(hex(packEndpoint(bytes('0a000001 1f90'))), '0a000001' + '1f900000');
  t.end();
});

t.test('prefixes of sources have one key each, by which they are read back', (t) => {
  t.equal(hex(packSource(packRange(prefix('203.0.113.0/24'))) ?? ''), 'cb007100' + '00180000');
  t.equal(hex(packSource(packRange(prefix('10.0.0.0/9'))) ?? ''), '0a000000' + '00090000');
  t.equal(packSource(packRange(prefix('10.0.0.1/32'))), null, 'a single address');
  t.equal(packSource(packRange(prefix('fd00::1/128'))), null);
  for (const unknown of ['0a000001 00180000', '0a000000 00200000', '0a000000 00210000', '0a000000 00180001'])
    t.equal(unpackSource(bytes(unknown)), null, unknown);
  for (const [address, bits] of [
    ['0.0.0.0', 32],
    ['255.255.255.255', 32],
    ['::', 128],
    ['fd00:ffff::ffff', 128],
  ] as const) {
    const keys = new Set<string>();
    for (let length = 0; length < bits; length++) {
      const range = packRange(prefix(`${address}/${length}`));
      const key = packSource(range) ?? '';
      t.equal(unpackSource(key), range, `${address}/${length}`);
      keys.add(key);
    }
    t.equal(keys.size, bits);
  }
  t.end();
});

t.test('slots in element keys are in host order', (t) => {
  for (const slot of [0, 1, 255, 256, 65_535, 1_000_000]) {
    const packed = Buffer.from(`xx${packSlot(slot)}`, 'latin1');
    t.equal(unpackSlot(packed, 2), slot);
    t.equal(new Uint32Array(Uint8Array.from(packed.subarray(2)).buffer)[0], slot);
  }
  t.end();
});

t.test('frontends parse back from element keys', (t) => {
  for (const key of ['10.96.0.10:53/UDP', 'nodeport:1/SCTP', '255.255.255.255:65535/TCP']) {
    t.equal(unpackFrontend('IPv4', packFrontend(key)), key);
  }
  for (const key of ['[fd00::1]:443/TCP', 'nodeport:65535/UDP'])
    t.equal(unpackFrontend('IPv6', packFrontend(key)), key);
  t.equal(unpackAddress(packedAddress(address('2001:db8::5'))), '2001:db8::5');
  t.end();
});

t.test('element keys of endpoints name their frontend, with its address combined with theirs', (t) => {
  const local = bytes('0a000101 1f90');
  t.equal(
    hex(packLocal('IPv4', local, '10.96.0.10:80/TCP')),
    '0a000101' + '1f900000' + '0060010b' + '06000000' + '00500000',
  );
  t.equal(
    hex(packLocal('IPv4', local, 'nodeport:30080/UDP')),
    '0a000101' + '1f900000' + '0a000101' + '11000000' + '75800000',
  );
  const local6 = bytes('fd000000000000000000000000000001 0050');
  for (const key of ['10.96.0.10:80/TCP', 'nodeport:30080/UDP'])
    t.same(unpackLocal('IPv4', packLocal('IPv4', local, key)), { endpoint: local, key });
  for (const key of ['[fd00::1]:80/SCTP', 'nodeport:30080/TCP']) {
    const packed = packLocal('IPv6', local6, key);
    t.equal(packed.length, 44);
    t.same(unpackLocal('IPv6', packed), { endpoint: local6, key });
  }
  t.equal(unpackLocal('IPv4', bytes('0a000101 1f900001 0a60000a 06000000 00500000')), null, 'bytes between');
  t.equal(unpackLocal('IPv4', bytes('0a000101 1f900000 0a60000a 06000000 00000000')), null, 'no frontend');
  t.end();
});

t.test('element keys that are no frontend are recognised', (t) => {
  const strange: readonly (readonly [string, string])[] = [
    ['port 0', '0a60000a 11000000 00000000'],
    ['no such protocol', '0a60000a 01000000 00350000'],
    ['too short', '11000000 0035'],
    ['empty', ''],
    ['the other family', 'fd000000000000000000000000000001 84000000 01bb0000'],
    ['one byte more', '0a60000a 11000000 00350000 00'],
  ];
  for (const [name, text] of strange) t.equal(unpackFrontend('IPv4', bytes(text)), null, name);
  t.end();
});

t.test('frontends are divided evenly over shards, and always alike', (t) => {
  const counts = new Array<number>(SHARDS).fill(0);
  for (let index = 0; index < 8000; index++) {
    const shard = shardOf(packFrontend(`10.96.${index >> 8}.${index & 255}:80/TCP`));
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  t.ok(Math.max(...counts) < (8000 / SHARDS) * 1.3, 'no shard has a third more than its share', { counts });
  t.ok(Math.min(...counts) > (8000 / SHARDS) * 0.7, 'none has a third less', { counts });
  t.equal(shardOf(packFrontend('10.96.0.10:53/UDP')), shardOf(packFrontend('10.96.0.10:53/UDP')));
  t.end();
});

t.test('names of endpoint maps parse back', (t) => {
  for (const local of [true, false]) {
    for (const shard of [null, 0, SHARDS - 1]) t.same(parseEndpointsMap(endpointsMap(shard, local)), { shard, local });
  }
  for (const name of [
    'endpoints',
    `endpoints-${SHARDS}`,
    'endpoints-01',
    'nodeport-endpoints-1',
    'my-endpoints-1',
    '',
  ]) {
    t.equal(parseEndpointsMap(name), null, name);
  }
  t.end();
});
