// Names of a slice's pods in one text: what was packed comes back, and is found.
import t from 'tap';
import { PackedNames } from '../../src/base/packed-names.js';
import { hasName, unpackNames } from '../../src/base/unpacked-names.js';

function pack(names: readonly (string | null)[], packed = new PackedNames()): string {
  packed.clear();
  for (const name of names) {
    packed.none();
    if (name !== null) packed.nextText(name);
    packed.add();
  }
  return packed.text();
}

t.test('packed names are unpacked and found', (t) => {
  const packed = new PackedNames();
  for (const names of [
    [],
    [null, null],
    ['a'],
    ['web-7d4b9-abcde', 'web-7d4b9-fghij', null, 'web-7d4b9-abcdf'],
    ['web', 'web-1', 'we'],
    ['x', null, 'y'],
    ['same', 'same'],
    Array.from({ length: 1000 }, (_, index) => `${'long'.repeat(50)}-${index}`),
  ]) {
    const text = pack(names, packed);
    const back = unpackNames(text);
    t.strictSame(
      names.every((name) => name === null) ? [] : [...back],
      names.every((name) => name === null) ? [] : names,
    );
    for (const name of names) if (name !== null) t.ok(hasName(text, name), name.slice(0, 20));
    for (const other of ['', 'b', 'web-7d4b9-', 'web-7d4b9-abcd', 'web-7d4b9-abcdeg', 'sam', 'samesame'])
      t.equal(hasName(text, other), (names as readonly (string | null)[]).includes(other), other);
  }
  t.end();
});

t.test('pods of a ReplicaSet take six characters each', (t) => {
  const names = Array.from({ length: 50 }, (_, index) => `web-7d4b9c6f5d-${String(10_000 + index * 7919).slice(0, 5)}`);
  t.ok(pack(names).length <= 20 + 6 * names.length, `${pack(names).length}`);
  t.end();
});

t.test('a text that no pod can have as its name is no name', (t) => {
  t.strictSame(
    [...unpackNames(pack(['a', 'b\nc', 'd e', 'é', 'x'.repeat(254), 'f']))],
    ['a', null, null, null, null, 'f'],
  );
  t.end();
});
