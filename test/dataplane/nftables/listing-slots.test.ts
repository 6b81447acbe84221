import t from 'tap';
import { endpointSize } from '../../../src/base/endpoint-list.js';
import type { Family } from '../../../src/base/ip.js';
import { packFrontend, packSlot, type PackedKey } from '../../../src/dataplane/nftables/keys.js';
import { ListedSlots } from '../../../src/dataplane/nftables/listing-slots.js';
import { frontendKey } from '../../../src/plan/frontend-key.js';
import { SeededRandom } from '../../support/random.js';
import { address } from '../../support/rows.js';

interface Element {
  readonly frontend: PackedKey;
  readonly slot: number;
  readonly endpoint: string;
}

function listed(family: Family, elements: readonly Element[]): ListedSlots {
  const size = endpointSize(family);
  const keys = Buffer.from(elements.map(({ slot, frontend }) => packSlot(slot) + frontend).join(''), 'latin1');
  // As map data the port is padded.
  const data = Buffer.from(elements.map(({ endpoint }) => `${endpoint}\0\0`).join(''), 'latin1');
  const [count, dataLength] = [elements.length, size + 2];
  return new ListedSlots({ count, keys, keyLength: count === 0 ? 16 : keys.length / count, data, dataLength, size });
}

function frontend(family: Family, number: number): PackedKey {
  const [high, low] = [number >> 8, number & 0xff];
  const at = address(family === 'IPv4' ? `10.96.${high}.${low}` : `fd00::${high}:${low + 1}`);
  return packFrontend(frontendKey(at, 80 + (number % 3), number % 2 === 0 ? 'TCP' : 'UDP'));
}

for (const family of ['IPv4', 'IPv6'] as const) {
  t.test(`${family}: a listing has every endpoint in the slot of its frontend, in any order`, (t) => {
    const random = new SeededRandom(3);
    const size = endpointSize(family);
    const wanted = new Map<PackedKey, Buffer>();
    const elements: Element[] = [];
    for (let number = 0; number < 300; number++) {
      const key = frontend(family, number);
      const slots = Array.from({ length: 1 + random.below(20) }, () =>
        String.fromCharCode(...Array.from({ length: size }, () => random.below(256))),
      );
      wanted.set(key, Buffer.from(slots.join(''), 'latin1'));
      elements.push(...slots.map((endpoint, slot) => ({ frontend: key, slot, endpoint })));
    }
    const found = new Map(
      [...listed(family, random.shuffled(elements)).frontends()].map((each) => [each.frontend, each]),
    );
    t.equal(found.size, wanted.size);
    for (const [key, slots] of wanted) t.equal(Buffer.compare(found.get(key)?.slots ?? Buffer.alloc(0), slots), 0);
    t.end();
  });
}

t.test('a listing may have missing slots, and gaps between them', (t) => {
  const [one, other] = [frontend('IPv4', 1), frontend('IPv4', 2)];
  const elements = listed('IPv4', [
    { frontend: one, slot: 2, endpoint: 'abcdef' },
    { frontend: other, slot: 0, endpoint: 'ghijkl' },
    { frontend: one, slot: 1 << 20, endpoint: 'mnopqr' },
    { frontend: one, slot: 0, endpoint: 'stuvwx' },
    { frontend: frontend('IPv4', 3), slot: 0xffff_ffff, endpoint: 'yzabcd' },
  ]);
  const all = [...elements.frontends()];
  t.same(
    all.map((each) => each.frontend),
    [one, other],
  );
  t.same(
    all.map(({ slots }) => Buffer.from(slots).toString('latin1')),
    ['stuvwx\0\0\0\0\0\0abcdef', 'ghijkl'],
  );
  t.same(elements.elementsOf(all[0]?.owner ?? -2), [packSlot(2) + one, packSlot(0) + one]);
  t.same(elements.beyondLimit(), [packSlot(1 << 20) + one, packSlot(0xffff_ffff) + frontend('IPv4', 3)]);
  t.same([...listed('IPv4', []).frontends()], []);
  t.end();
});
