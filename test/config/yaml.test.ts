import t from 'tap';
import { YamlError } from '../../src/base/yaml.js';
import { Mapping, parseDocuments } from '../../src/config/yaml.js';
import { cpuTime } from '../support/cpu-time.js';
import { rounds } from '../support/extent.js';

function only(text: string): Mapping {
  const [document] = parseDocuments(text);
  if (!(document instanceof Mapping)) throw new Error('expected a mapping');
  return document;
}

t.test('YAML scalars are read as Kubernetes reads them', (t) => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['yes', true],
    ['off', false],
    ['True', true],
    ['"yes"', 'yes'],
    ['010', 8],
    ['0x10', 16],
    ['0o17', 15],
    ['0b11', 3],
    ['9223372036854775807', 2 ** 63 - 1024],
    ['9223372036854775808', 2 ** 63],
    ['-9223372036854775808', -(2 ** 63)],
    ['-0b11', -3],
    ['-7', -7],
    ['1_000', 1000],
    ['089', 89],
    ['14.5', 14.5],
    ['~', null],
    ['null', null],
    ['2020-01-01', '2020-01-01'],
    ['1:30', '1:30'],
    ['"::"', '::'],
    ['::1', '::1'],
    ['0.0.0.0:10256', '0.0.0.0:10256'],
    ['30s', '30s'],
  ];
  for (const [text, value] of rows) t.equal(only(`a: ${text}`).entries.get('a'), value, text);
  t.end();
});

t.test('YAML: duplicate keys are remembered and the last one wins', (t) => {
  const mapping = only('a: 1\nb: 2\na: 3\na: 4\n');
  t.same(
    [...mapping.entries],
    [
      ['a', 4],
      ['b', 2],
    ],
  );
  t.same(mapping.duplicates, ['a', 'a']);
  t.end();
});

t.test('YAML merge keys: own keys win, then earlier sources', (t) => {
  const mapping = only('x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\n').entries.get('z');
  t.ok(mapping instanceof Mapping);
  if (mapping instanceof Mapping) {
    t.same(
      new Map(mapping.entries),
      new Map([
        ['a', 1],
        ['b', 1],
        ['c', 3],
      ]),
    );
    t.same(mapping.duplicates, []);
  }
  t.end();
});

t.test('YAML: JSON, several documents and keys named like object members are read', (t) => {
  t.equal(only('{\n\t"a": {\n\t\t"b": [1, 2]\n\t}\n}').entries.size, 1);
  t.equal(parseDocuments('---\n---\na: 1\n---\n# nothing\n---\nb: 1\n').length, 2);
  t.same([...only('__proto__: 1\nconstructor: 2\n').entries.keys()], ['__proto__', 'constructor']);
  t.end();
});

t.test('merge() lays one mapping over another, in a copy', (t) => {
  const below = only('a: {b: {c: 1, d: 2}, list: [1, 2]}\nkept: 1\nsection: {x: 1}\ntext: t\n');
  const over = only('a: {b: {d: 3, e: 4}, list: [3]}\nsection: ~\ntext: {u: 1}\nnew: {z: 1}\n');
  const plain = (value: unknown): unknown =>
    value instanceof Mapping ? Object.fromEntries([...value.entries].map(([key, part]) => [key, plain(part)])) : value;
  t.same(plain(below.merge(over)), {
    a: { b: { c: 1, d: 3, e: 4 }, list: [3] },
    kept: 1,
    section: null,
    text: { u: 1 },
    new: { z: 1 },
  });
  t.same(plain(below), { a: { b: { c: 1, d: 2 }, list: [1, 2] }, kept: 1, section: { x: 1 }, text: 't' });
  t.end();
});

t.test('has() tests whether a path exists', (t) => {
  const mapping = only('a: {b: ~}\nc: 1\n');
  for (const path of [[], ['a'], ['a', 'b'], ['c']]) t.ok(mapping.has(path), path.join('.'));
  for (const path of [['b'], ['a', 'c'], ['a', 'b', 'c'], ['c', 'd']]) t.notOk(mapping.has(path), path.join('.'));
  t.end();
});

t.test('hostile and broken YAML is refused with a line, and in little time', async (t) => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghijklmn'.split('').map((name, index) => `${name}: &${name} [${`*${'abcdefghijklm'[index]},`.repeat(9)}]`),
  ];
  const keys = Array.from({ length: 2500 }, (_, index) => `k${index}: 1`).join();
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ['unclosed', 'a: 1\nb: [1,\n', /^line \d+: /],
    ['bad indentation', 'a: 1\n  b: 2\n', /^line 2: /],
    ['deep lists', '['.repeat(60_000), /maxDepth/],
    ['deep mappings', '{"a":'.repeat(12_000), /maxDepth/],
    ['deep blocks', Array.from({ length: 300 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join(''), /maxDepth/],
    ['alias bomb', bomb.join('\n'), /alias/i],
    ['merges', `a: &a {${keys}}\nb:\n${'- {<<: *a}\n'.repeat(3000)}`, /merge keys/],
    ['a long text in many places', `a: &a ${'x'.repeat(30_000)}\nb:\n${'- *a\n'.repeat(6000)}`, /aliases repeat/],
    ['too large', `a: ${'x'.repeat(1 << 16)}`, /larger than 65536 bytes/],
    ['a mapping as a key', '? {a: 1}\n: 2\n', /must be text/],
    ['control characters', 'a: \u0000\u0001', /^line 1: /],
    ['an unknown tag', 'a: !!js/function "x"', /tag/],
  ];
  for (const [name, text, pattern] of rows) {
    const ms = await cpuTime(() => {
      t.throws(() => parseDocuments(text), { name: 'YamlError', message: pattern }, name);
    });
    t.ok(ms < 2000, `${name}: no hang`, { ms });
  }
});

t.test('random bytes give YAML documents or a YamlError, nothing else', (t) => {
  // A fixed linear congruential generator: a failure can be repeated.
  let seed = 42;
  const next = (bound: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed % bound;
  };
  const alphabet = 'ab:-[]{},&*!|>\'"%@`#?\n\t  01<~\u00e9\ufffd';
  let refused = 0;
  for (let round = 0; round < rounds(2000); round++) {
    const bytes = Uint8Array.from({ length: next(200) }, () => next(256));
    const text =
      round % 2 === 0
        ? Buffer.from(bytes).toString()
        : Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join('');
    try {
      parseDocuments(text);
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      refused++;
    }
  }
  t.ok(refused > 0);
  t.end();
});
