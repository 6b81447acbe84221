import type { Format } from '../../../src/config/tables/formats.js';
import { fieldOf, type Field, type KindTable, type StructType, type Type } from '../../../src/config/tables/types.js';
import { Mapping } from '../../../src/config/yaml.js';

/** Mappings as tables want them, made from the tables themselves, and what makes each wrong in one place. */

/** A mapping of a table. */
export interface Place {
  readonly table: KindTable;
  readonly path: string;
  readonly type: StructType;
}

/** Every mapping of some tables once, however many hold it. */
export function placesOf(tables: readonly KindTable[]): readonly Place[] {
  const found = new Map<StructType, Place>();
  const visit = (table: KindTable, type: Type, path: string): void => {
    if (type.is === 'list' || type.is === 'map') visit(table, type.of, `${path}[]`);
    if (type.is !== 'struct' || found.has(type)) return;
    found.set(type, { table, path, type });
    for (const [name, of] of Object.entries(type.fields)) visit(table, fieldOf(of).type, `${path}.${name}`);
  };
  for (const table of tables) visit(table, table.table, table.kind);
  return [...found.values()];
}

const TEXTS: Readonly<Record<string, string>> = {
  duration: '1s',
  'duration, not negative': '1s',
  'duration above 0': '1s',
  'duration or nanoseconds': '1s',
  quantity: '64Ki',
  'quantity text': '64Ki',
  amount: '64Ki',
  'eviction threshold': '10%',
  'eviction reclaim': '10%',
  percentage: '10%',
  truth: 'true',
  'eight or more': '8',
  'ascii path': '/a',
  'cpu list': '0-3',
  sysctl: 'net.*',
  'minor version': '1.35',
  'policy version': 'v1.36',
  'extended resource': 'example.com/a',
  'version or label': 'v1.36.0',
  'certificate path': '/a.crt',
  ip: '192.0.2.1',
  ips: '192.0.2.1',
  cidr: '192.0.2.0/24',
  cidrs: '192.0.2.0/24,2001:db8::/64',
  'ip:port': '192.0.2.1:1',
  'host:port': 'a.example:1',
  'proxy url': 'https://a.example',
  'https url': 'https://a.example',
  'http url': 'https://a.example',
  'absolute path': '/a',
  'unix url': 'unix:///a',
  'runtime socket': 'unix:///a',
  'bootstrap group': 'system:bootstrappers:a',
  base64: 'YQ==',
  timestamp: '2030-01-01T00:00:00Z',
  version: 'v1.36.0',
  'bootstrap token': 'abcdef.0123456789abcdef',
  'ca hash': `sha256:${'0a'.repeat(32)}`,
  'certificate key': '0a'.repeat(32),
} satisfies Partial<Record<Format, string>>;

/** A value that a type takes; what is within it is empty. */
export function sample(type: Type): unknown {
  switch (type.is) {
    case 'any':
    case 'embedded':
    case 'struct':
    case 'map':
      return new Mapping([]);
    case 'enum':
      return type.values[0];
    case 'list':
      return [type.unique === null || type.unique === '' ? sample(type.of) : named(type.unique, type.of)];
    case 'scalar': {
      const { in: wanted } = type.spelling;
      if (wanted.includes('string')) return type.least ?? TEXTS[type.format] ?? 'a';
      if (type.format === 'fraction') return 0.5;
      return wanted === 'boolean' ? true : Math.max(type.min ?? 1, Math.min(1, type.max ?? 1));
    }
  }
}

function named(name: string, type: Type): unknown {
  const of = type.is === 'struct' ? type.fields[name] : undefined;
  return new Mapping(of === undefined ? [] : [[name, sample(fieldOf(of).type)]]);
}

/** A mapping with all fields of a version. */
export function whole({ fields }: StructType, version: string): Mapping {
  return new Mapping(
    Object.entries(fields)
      .filter(([, of]) => isIn(of, version))
      .map(([name, of]) => [name, sample(fieldOf(of).type)]),
  );
}

export function isIn(of: Type | Field, version: string): boolean {
  return fieldOf(of).versions?.includes(version) ?? true;
}

/** One place in a mapping that makes it wrong. */
export interface Mutation {
  readonly what: string;
  /** Where an error is due, within the mapping. */
  readonly path: string;
  readonly mapping: Mapping;
  /** Minor release that it is for, where that is what makes it wrong. */
  readonly release?: number;
}

/** A text that has no format. */
const GARBAGE = '? ?';

/** Values that a type does not take, and where within it an error is due. */
export function wrongValues(type: Type): readonly (readonly [value: unknown, at?: string])[] {
  const mapping = new Mapping([]);
  switch (type.is) {
    case 'any':
      return [];
    case 'enum':
      return [[1], [['a']], ['nothing-known'], ...type.values.flatMap(swapped).map((text) => [text] as const)];
    case 'scalar': {
      const { in: wanted, test } = type.spelling;
      const isParsed = /^(?:duration|quantity|timestamp)/.test(type.format);
      const { least, most, refusesNull = false } = type;
      if (wanted.includes('string'))
        return [
          [[]],
          [mapping],
          [true],
          ...(wanted === 'string' ? [[0] as const] : []),
          ...(test(GARBAGE, GARBAGE) ? [] : [[GARBAGE] as const]),
          ...(least === undefined ? [] : [['1ns'] as const]),
          ...(most === undefined ? [] : [['24h'] as const]),
          ...(refusesNull ? [[null] as const] : []),
          ...(isParsed ? [[''] as const] : []),
        ];
      if (wanted === 'boolean') return [['true'], [''], [1], [[]]];
      const { min, max, zeroIsUnset = false } = type;
      const outside = [
        ...(min === undefined ? [] : [min === -(2 ** 63) ? min * 2 : min - (zeroIsUnset ? 2 : 1)]),
        ...(max === undefined ? [] : [max > 2 ** 53 ? 2 ** 63 : max + 1]),
        ...(type.format === 'fraction' ? [0, 1.5] : []),
      ];
      return [
        ['1'],
        ['0'],
        [''],
        [true],
        [[]],
        ...[...outside, ...(type.format === 'int' ? [1.5] : [])].map((each) => [each] as const),
      ];
    }
    case 'list':
      return [['x'], [''], [mapping], ...(type.min > 0 ? [[[]] as const] : []), ...wrongEntries(type)];
    case 'map':
      return [
        ['x'],
        [''],
        [1],
        [[]],
        ...wrongValues(type.of).map(([value, at = '']) => [new Mapping([['k', value]]), `.k${at}`] as const),
      ];
    case 'struct':
    case 'embedded':
      return [['x'], [''], [1], [[]]];
  }
}

function wrongEntries(type: Type & { readonly is: 'list' }): readonly (readonly [value: unknown, at: string])[] {
  const { unique, max } = type;
  const [entry] = sample(type) as readonly unknown[];
  const again = unique === '' ? '' : `.${unique ?? ''}`;
  return [
    ...wrongValues(type.of).map(([value, at = '']) => [[value], `[0]${at}`] as const),
    ...(unique === null ? [] : [[[entry, entry], `[1]${again}`] as const]),
    ...(max === Infinity ? [] : [[Array.from({ length: max + 1 }, () => entry), ''] as const]),
  ];
}

/** The same but for the case of its first letter. */
function swapped(text: string): readonly string[] {
  const first = text.charAt(0);
  const other = first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase();
  return other === first ? [] : [`${other}${text.slice(1)}`];
}

/** Everything that a table refuses in a mapping, but for rules on several fields. */
export function mutationsOf(type: StructType, version: string): readonly Mutation[] {
  const base = whole(type, version);
  const put = (name: string, value: unknown): Mapping => new Mapping([...base.entries, [name, value]]);
  const without = (name: string): Mapping => new Mapping([...base.entries].filter(([each]) => each !== name));
  const ofFields = Object.entries(type.fields).flatMap(([name, of]): readonly Mutation[] => {
    const { required, since, mayBeEmpty = false, type: held } = fieldOf(of);
    if (!isIn(of, version)) return [{ what: 'is of another version', path: name, mapping: put(name, sample(held)) }];
    const wrong = wrongValues(held).filter(([value]) => !mayBeEmpty || value !== '');
    return [
      ...wrong.map(([value, at = '']) => ({
        what: `is ${JSON.stringify(value)}`,
        path: `${name}${at}`,
        mapping: put(name, value),
      })),
      ...(required === true ? [{ what: 'is missing', path: name, mapping: without(name) }] : []),
      ...(since === undefined ? [] : [{ what: 'is too new', path: name, mapping: base, release: since - 1 }]),
      { what: 'is given twice', path: name, mapping: new Mapping(base.entries, [name]) },
    ];
  });
  const others = Object.keys(type.fields)
    .flatMap(swapped)
    .filter((name) => !(name in type.fields));
  const unknown = type.lenient ? [] : ['nobodyKnows'];
  return [
    ...ofFields,
    ...[...others, ...unknown].map((name) => ({ what: 'is no field', path: name, mapping: put(name, 1) })),
  ];
}

/** Texts that stand where a mapping, or something in it, should be, in every shape that a mistake gives them. */
export function misplaced(secret: string): readonly unknown[] {
  const key = new Mapping([[secret, secret]]);
  return [
    secret,
    [secret],
    key,
    [key],
    [[secret]],
    new Mapping([
      ['a', key],
      ['b', [secret]],
    ]),
    `https://${secret}@a b`,
  ];
}

/** Whether a secret belongs there, or somewhere within. */
export function isSecret({ secret, type }: Field): boolean {
  if (secret === true || type.is === 'any' || type.is === 'embedded') return true;
  if (type.is === 'list' || type.is === 'map') return isSecret(fieldOf(type.of));
  return type.is === 'struct' && Object.values(type.fields).some((of) => isSecret(fieldOf(of)));
}
