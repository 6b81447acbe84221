import t from 'tap';
import { digestPart, DIGEST_PARTS, VersionDigest } from '../../src/base/version-digest.js';
import { usually } from '../support/extent.js';

function sums(versions: Readonly<Record<string, string>>): readonly number[] {
  const digest = new VersionDigest();
  for (const [key, version] of Object.entries(versions)) digest.add(key, version);
  return digest.sums;
}

function differing(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): readonly number[] {
  const theirs = sums(other);
  return sums(one).flatMap((sum, part) => (sum === theirs[part] ? [] : [part]));
}

t.test('a version digest differs in the part of the object that differs', (t) => {
  const held = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`default/web-${n}`, String(8_000_000 + n)]));
  t.same(differing(held, Object.fromEntries(Object.entries(held).reverse())), [], 'in any order');
  for (let n = 0; n < 3000; n += usually(35, 7)) {
    const key = `default/web-${n}`;
    t.same(differing(held, { ...held, [key]: String(8_000_001 + n) }), [digestPart(key)], key);
  }
  const fewer = Object.entries(held).filter(([key]) => key !== 'default/web-5');
  t.same(differing(held, Object.fromEntries(fewer)), [digestPart('default/web-5')]);
  t.end();
});

t.test('two versions that differ by one each do not cancel out in a digest', (t) => {
  // Of one part, and next to each other, as versions are that were given out in a row.
  const keys = Array.from({ length: usually(2000, 4000) }, (_, n) => `default/web-${n}`).filter(
    (key) => digestPart(key) === 3,
  );
  let same = 0;
  for (const [index, one] of keys.entries())
    for (const other of keys.slice(index + 1))
      same += differing({ [one]: '1000', [other]: '1003' }, { [one]: '1001', [other]: '1002' }).length === 0 ? 1 : 0;
  t.ok(keys.length > 20);
  t.equal(same, 0);
  t.end();
});

t.test('version digests spread objects evenly over their parts', (t) => {
  const counts = new Array<number>(DIGEST_PARTS).fill(0);
  for (let n = 0; n < 44_000; n++) {
    const part = digestPart(`namespace-${n % 50}/service-${n}`);
    counts[part] = (counts[part] ?? 0) + 1;
  }
  t.ok(Math.max(...counts) < 1000 && Math.min(...counts) > 400, counts.join());
  t.end();
});
