import t from 'tap';
import { addressBytes, addressLength, FAMILIES, familyOf, parseAddress } from '../../src/base/ip.js';
import { packAddress } from '../../src/base/pack-address.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';

/** Accepted, and the bytes written, must be what parseAddress says; a refused text writes nothing. */
function disagreement(text: string): string | null {
  const parsed = parseAddress(text);
  for (const family of FAMILIES) {
    const target = new Uint8Array(20).fill(0xee);
    const expected = Uint8Array.from(target);
    const right = parsed !== null && familyOf(parsed) === family;
    if (right) expected.set(addressBytes(parsed), 3);
    const accepted = packAddress(text, family, target, 3);
    if (accepted !== right || Buffer.compare(target, expected) !== 0) {
      return `${JSON.stringify(text)} as ${family}: ${String(accepted)} ${target.join()}`;
    }
  }
  return null;
}

t.test('packAddress() accepts exactly what parseAddress() accepts', (t) => {
  const texts = [
    ...['1.2.3.4', '255.255.255.255', '0.0.0.0', '010.001.000.009', '1.2.3.0004', '256.1.1.1', '1.2.3', '1.2.3.4.5'],
    ...[
      '1.2.3.',
      '.1.2.3',
      '1..2.3',
      '',
      '1.2.3.4 ',
      '1.2.3./',
      '1.2.3.:',
      'a.b.c.d',
      '::1',
      'fd00::1',
      '::ffff:1.2.3.4',
    ],
    ...['1.2.3.４', '-1.2.3.4', '1.2.3.4\0', '1:2'],
  ];
  for (const text of texts) t.equal(disagreement(text), null, JSON.stringify(text));
  const random = new SeededRandom(1);
  for (let round = 0; round < rounds(20_000); round++) {
    const dotted = Array.from({ length: 4 }, () => String(random.below(300)).padStart(random.below(5), '0')).join('.');
    const characters = Array.from(dotted);
    if (random.chance(0.5))
      characters.splice(random.below(characters.length), random.below(2), random.pick(Array.from('.:/0a')));
    const found = disagreement(characters.join(''));
    if (found !== null) t.fail(found);
  }
  t.end();
});

t.test('packAddress() writes at the offset only', (t) => {
  const target = new Uint8Array(addressLength('IPv6') * 2).fill(7);
  t.ok(packAddress('fd00::1', 'IPv6', target, 16));
  t.same(target.subarray(0, 16), new Uint8Array(16).fill(7));
  t.same(target.subarray(16), addressBytes(parseAddress('fd00::1')!));
  t.end();
});
