import { dump } from 'js-yaml';
import type { SeededRandom } from '../support/random.js';

/** What no field expects. */
const RUBBISH: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 53,
  1e300,
  '',
  ' ',
  '\u0000',
  '\u202e\u2066\ufeff',
  '\ud800',
  'é😀'.repeat(50),
  'x'.repeat(5000),
  '1'.repeat(400),
  '-'.repeat(100),
  '1.2.3.4/99',
  '::ffff:1.2.3.4',
  '999999999999999999999h',
  [],
  {},
  [null],
  [[[[]]]],
  { a: { b: { c: {} } } },
];
const KEYS = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '<<',
  '',
  'spec',
  'é',
  'k'.repeat(2000),
];

type Container = Record<string, unknown> | unknown[];

/** Objects and lists of a value, itself included. */
function containersOf(value: unknown): Container[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Container, ...Object.values(value).flatMap(containersOf)];
}

/**
 * How much is printed of a value where nothing is printed as a reference: a hundred characters or one value count one. What is shared is counted as often as it
 * is printed, and looked at once: lists repeated in repeated lists grow as powers.
 */
function weightOf(value: unknown, known = new Map<object, number>()): number {
  if (typeof value === 'string') return 1 + value.length / 100;
  if (typeof value !== 'object' || value === null) return 1;
  const seen = known.get(value);
  if (seen !== undefined) return seen;
  const weight = Object.entries(value).reduce((sum, [key, each]) => sum + key.length / 100 + weightOf(each, known), 1);
  known.set(value, weight);
  return weight;
}

/** Some megabytes at most: more would keep the printer busy for longer than any reader, and outgrow the longest string there is. */
const MAX_WEIGHT = 30_000;
const MAX_REPEATED_WEIGHT = 3000;

function put(container: Container, key: string, value: unknown): void {
  // An assignment to `__proto__` would set the prototype.
  Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
}

function rubbish(random: SeededRandom): unknown {
  return structuredClone(random.pick(RUBBISH));
}

/** Changes some places of a value. */
function mutateValue(value: unknown, random: SeededRandom): unknown {
  let copy = value;
  for (let change = random.below(4); change >= 0; change--) {
    const changed = structuredClone(copy);
    changeOnePlace(changed, random);
    if (weightOf(changed) > MAX_WEIGHT) break;
    copy = changed;
  }
  return copy;
}

function changeOnePlace(value: unknown, random: SeededRandom): void {
  const containers = containersOf(value);
  if (containers.length === 0) return;
  const container = random.pick(containers);
  const keys = Object.keys(container);
  const key = keys.length > 0 && random.chance(0.8) ? random.pick(keys) : random.pick(KEYS);
  if (random.chance(0.15) && !Array.isArray(container)) Reflect.deleteProperty(container, key);
  else if (Array.isArray(container)) {
    const item: unknown = random.chance(0.5) ? container[0] : rubbish(random);
    const most = Math.max(1, Math.floor(MAX_REPEATED_WEIGHT / weightOf(item)));
    container.push(...Array.from({ length: random.chance(0.1) ? most : 1 }, () => item));
  } else put(container, key, random.chance(0.2) ? structuredClone(random.pick(containers)) : rubbish(random));
}

const TOKENS = [
  ...[
    '&a ',
    '*a',
    '<<: *a\n',
    '<<: [*a, *a]\n',
    '--- ',
    '\n---\n',
    '\n...\n',
    '%YAML 1.1\n',
    '%TAG ! x\n',
    '!!binary ',
    '!!set ',
  ],
  ...[
    '? ',
    ': ',
    '- ',
    '|\n',
    '>-\n',
    '"',
    "'",
    '\t',
    '\r',
    '\u0000',
    '\ufeff',
    '\u2028',
    '\u0085',
    '#',
    '{',
    '}',
    '[',
    ']',
    ',',
  ],
  ...['0x', '0b1', '1e999', '.inf', '.nan', '-0', '~', '\\u0000', '\\', '__proto__: ', '${'.repeat(3), '9'.repeat(500)],
];

/** Changes some places of a text. */
function mutateText(text: string, random: SeededRandom): string {
  let result = text;
  for (let change = random.below(5); change >= 0; change--) {
    const at = random.below(result.length + 1);
    const end = Math.min(result.length, at + random.below(80));
    const part = result.slice(at, end);
    const inserted = random.pick([
      () => random.pick(TOKENS) + part,
      () => random.pick(TOKENS).repeat(random.below(200)) + part,
      () => '',
      () => part.repeat(random.below(300)),
      () => random.pick(TOKENS),
    ])();
    result = result.slice(0, at) + inserted + result.slice(random.chance(0.02) ? result.length : end);
  }
  return result;
}

/** Units that make a parser work hard for each character when they come over and over, with what is before and after them. */
const PUMPS: readonly (readonly [before: string, unit: string, after: string])[] = [
  ...[
    '- a\n',
    '- - - a\n',
    '--- 1\n',
    '--- {}\n',
    '...\n',
    '# x\n',
    '%FOO x\n',
    '? a\n',
    '? ',
    '[',
    '{a: ',
    '{"a":',
    '- ',
    '\n',
  ].map((unit) => ['', unit, ''] as const),
  ...['1,', '[],', '{},', '{a: b},', 'a: b,', '"a",', '!!str a,', 'y,', '[[[[[[]]]]]],', 'null,', '"\\u0041",'].map(
    (unit) => ['[', unit, '1]'] as const,
  ),
  ...['x', 'x ', '1_', '9', 'a:', '#', 'é', '😀', ': '].map((unit) => ['a: ', unit, ''] as const),
  ['a: "', 'x\r\n ', '"'],
  ['a: "', '\\x41', '"'],
  ["a: '", "''", "'"],
  ['a: |\n', '\n', '  x\n'],
  ['a: >\n', '  x\n\n', ''],
  ['a: &a [1, 2, 3]\nb:\n', '- *a\n', ''],
  ['a: &a {b: 1, c: 2}\nb:\n', '- {<<: *a}\n', ''],
  ['a: &a {b: 1}\nb: {<<: [', '*a,', '*a]}'],
  ['apiVersion: v1\nkind: List\nitems:\n', '- {apiVersion: v1, kind: Service}\n', ''],
  [
    '{"apiVersion":"v1","kind":"List","items":[',
    '{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":1},',
    '1]}',
  ],
  ['', '---\napiVersion: v1\nkind: Service\n', ''],
  ['', '---\n[\n', ''],
];

function pump(random: SeededRandom, maxLength: number): string {
  const [before, unit, after] = random.pick(PUMPS);
  return before + unit.repeat(1 + random.below(random.chance(0.2) ? maxLength : 4000) / unit.length) + after;
}

/** Every level names the one before it several times. */
function bomb(random: SeededRandom): string {
  const levels = 2 + random.below(40);
  const width = 1 + random.below(12);
  const merging = random.chance(0.5);
  const lines = Array.from({ length: levels }, (_, level) => {
    if (level === 0) return merging ? 'l0: &l0 {k: 1}' : 'l0: &l0 [x, x]';
    const before = `*l${level - 1}`;
    const list = Array.from({ length: width }, () => before).join(', ');
    return `l${level}: &l${level} ${merging ? `{<<: [${list}], k${level}: ${before}}` : `[${list}]`}`;
  });
  return `${lines.join('\n')}\n`;
}

/** A text made of valid documents, or of what is hostile to any parser. */
export function hostileText(documents: readonly unknown[], random: SeededRandom, maxLength: number): string {
  const kind = random.below(10);
  if (kind === 0) return pump(random, maxLength);
  if (kind === 1) return bomb(random);
  if (kind === 2) {
    const nested = random.pick(['[', '{"a":', '- ', '{a: ']);
    return nested.repeat(1 + random.below(20_000)) + random.pick(['', '1', ']'.repeat(10_000)]);
  }
  const chosen = Array.from({ length: 1 + random.below(4) }, () => mutateValue(random.pick(documents), random));
  if (random.chance(0.3)) return print(chosen[0], random);
  const text = chosen.map((document) => print(document, random)).join('\n---\n');
  return (random.chance(0.7) ? mutateText(text, random) : text).slice(0, maxLength);
}

function print(value: unknown, random: SeededRandom): string {
  return random.chance(0.5) ? JSON.stringify(value) : dump(value, { noRefs: random.chance(0.5) });
}
