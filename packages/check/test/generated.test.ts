// Mutations of right documents and command lines, made from the tables: each row and each rule refuses what it should, and takes its neighbours.
import t from 'tap';
import { printValue } from '../../../src/config/errors.js';
import { joinApiVersion, splitApiVersion } from '../../../src/config/tables/api-version.js';
import { readByTable } from '../../../src/config/tables/document.js';
import type { Section } from '../../../src/config/tables/section.js';
import { fieldOf, type Field, type Rule, type StructType, type Type } from '../../../src/config/tables/types.js';
import { Mapping, readMappings } from '../../../src/config/yaml.js';
import { usually } from '../../../test/support/extent.js';
import { check } from '../src/command.js';
import { KINDS as TABLES, tableFor } from '../src/kinds.js';
import { API_SERVER_FLAGS, CONTROLLER_MANAGER_FLAGS, SCHEDULER_FLAGS } from '../src/tables/control-plane-flags.js';
import { KUBELET_FLAGS } from '../src/tables/kubelet-flags.js';
import { KUBELET_SYNTAXES } from '../src/tables/kubelet-syntax.js';
import { RELEASE, SECRET, type Golden } from './golden/golden.js';
import { KINDS } from './golden/kinds.js';
import { isIn, placesOf, sample, wrongValues } from './walk.js';

interface Found {
  readonly severity: string;
  readonly rule: string;
  readonly path: string;
  readonly problem: string;
}

async function findings(text: string, release = RELEASE): Promise<readonly Found[]> {
  const { stdout } = await check([`--kubernetes-version=1.${release}`, '-o', 'json', 'f'], () => text);
  return (JSON.parse(stdout) as { readonly findings: readonly Found[] }).findings;
}

/** A value as JSON, which YAML is, too; of a mapping also the keys that come twice. */
function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(print).join()}]`;
  if (!(value instanceof Mapping)) return typeof value === 'number' ? exact(value) : JSON.stringify(value);
  const pair = (name: string): string => `${JSON.stringify(name)}: ${print(value.entries.get(name))}`;
  return `{${[...value.entries.keys(), ...value.duplicates].map(pair).join(', ')}}`;
}

function exact(value: number): string {
  return Number.isInteger(value) ? String(BigInt(value)) : String(value);
}

/** A mapping in a right document. */
interface Spot {
  readonly type: StructType;
  readonly value: Mapping;
  /** As findings name it. */
  readonly path: string;
  readonly version: string;
  readonly release: number;
  /** The document with another mapping there. */
  readonly rebuild: (mapping: Mapping) => Mapping;
}

/** A right document of a golden body. */
function documentOf(apiVersion: string, kind: string, body: string): Mapping | null {
  const [parsed] = readMappings(body === '' ? '{}' : body);
  if (!(parsed instanceof Mapping)) return null;
  return new Mapping([['apiVersion', apiVersion], ['kind', kind], ...parsed.entries]);
}

/** Bodies of each kind and version: those that are right, and behind them an empty one, of which every table is made up. */
const BODIES = [
  ...KINDS,
  ...TABLES.flatMap(({ kind, group, versions }) =>
    Object.keys(versions).map((version) => ({
      apiVersion: joinApiVersion({ group, version }),
      kind,
      release: RELEASE,
      right: [''],
    })),
  ),
];

/** A mapping where a document has none. */
function made(type: Type): unknown {
  if (type.is === 'struct') return new Mapping([]);
  return type.is === 'list' && type.of.is === 'struct' ? [new Mapping([])] : undefined;
}

/** Every mapping of documents; `isFilled`: also those that they could have. */
function spots(
  bodies: readonly Pick<Golden, 'apiVersion' | 'kind' | 'release' | 'right'>[],
  isFilled: boolean,
): readonly Spot[] {
  return bodies.flatMap(({ apiVersion, kind, release = RELEASE, right }) => {
    const table = tableFor({ apiVersion, kind });
    if (table === null) return [];
    return right.flatMap((body) => {
      const document = documentOf(apiVersion, kind, body);
      const { version } = splitApiVersion(apiVersion);
      const found: Spot[] = [];
      const visit = (type: Type, value: unknown, path: string, rebuild: (value: unknown) => Mapping): void => {
        if (type.is === 'struct' && value instanceof Mapping) {
          found.push({ type, value, path, version, release, rebuild });
          for (const [name, of] of Object.entries(type.fields).filter(([, each]) => isIn(each, version)))
            visit(
              fieldOf(of).type,
              value.entries.get(name) ?? (isFilled ? made(fieldOf(of).type) : undefined),
              `${path}.${name}`,
              (inner) => rebuild(new Mapping([...value.entries, [name, inner]])),
            );
        } else if (type.is === 'list' && Array.isArray(value)) {
          const items: readonly unknown[] = value;
          for (const [index, item] of items.entries())
            visit(type.of, item, `${path}[${index}]`, (inner) => rebuild(items.with(index, inner)));
        } else if (type.is === 'map' && value instanceof Mapping)
          for (const [name, item] of value.entries)
            visit(type.of, item, `${path}.${name}`, (inner) => rebuild(new Mapping([...value.entries, [name, inner]])));
      };
      if (document !== null)
        visit(table.table, document, kind, (value) => (value instanceof Mapping ? value : document));
      return found;
    });
  });
}

const SPOTS = spots(BODIES, true);

/** One mapping for each table and version. */
function firstSpots(): readonly Spot[] {
  const seen = new Map<StructType, Set<string>>();
  return SPOTS.filter(({ type, version }) => {
    const versions = seen.get(type) ?? new Set();
    seen.set(type, versions);
    return versions.size < versions.add(version).size;
  });
}

interface Mutation {
  readonly what: string;
  /** Where an error is due, or where none of its own may be. */
  readonly path: string;
  readonly text: string;
  readonly release: number;
  readonly isRight: boolean;
}

/** Rules that a single field can break by its type. */
const OF_TYPES = ['case', 'format', 'range', 'type', 'unknown-field'];

/** Fields whose type takes values that a rule refuses: sizes of ranges, multiples, and milliseconds within hours. */
const BOUND_BY_RULES = [
  'ClusterConfiguration.networking.serviceSubnet',
  'ImagePolicyWebhookConfiguration.imagePolicy.allowTTL',
  'ImagePolicyWebhookConfiguration.imagePolicy.denyTTL',
  'ImagePolicyWebhookConfiguration.imagePolicy.retryBackoff',
  'KubeletConfiguration.userNamespaces.idsPerPod',
];

function rightValues(type: Type): readonly unknown[] {
  if (type.is === 'enum') return type.values;
  if (type.is !== 'scalar' || type.spelling.in !== 'number') return [sample(type)];
  return [sample(type), type.min, type.max].filter((value) => value !== undefined && Number.isFinite(value));
}

/** Every row of a table: wrong types, values outside of it, missing, twice, of another release or name; and values at its bounds. */
function mutationsOf(spot: Spot): readonly Mutation[] {
  const { type, value, path, version, release, rebuild } = spot;
  const put = (what: string, at: string, mapping: Mapping, isRight = false, of = release): Mutation => ({
    what,
    path: `${path}.${at}`,
    text: print(rebuild(mapping)),
    release: of,
    isRight,
  });
  const withField = (name: string, held: unknown): Mapping => new Mapping([...value.entries, [name, held]]);
  const ofRow = ([name, of]: readonly [string, Type | Field]): readonly Mutation[] => {
    const { required, since, mayBeEmpty = false, type: held } = fieldOf(of);
    if (!isIn(of, version)) return [put('is of another version', name, withField(name, sample(held)))];
    const own = value.entries.get(name) ?? sample(held);
    return [
      ...wrongValues(held)
        .filter(([wrong]) => !mayBeEmpty || wrong !== '')
        .map(([wrong, at = '']) => put(`is ${print(wrong)}`, `${name}${at}`, withField(name, wrong))),
      ...rightValues(held).map((right) => put(`is ${print(right)}`, name, withField(name, right), true)),
      ...(required === true
        ? [put('is missing', name, new Mapping([...value.entries].filter(([each]) => each !== name)))]
        : []),
      ...(since === undefined
        ? []
        : [put('is too new', name, withField(name, own === '' ? sample(held) : own), false, since - 1)]),
      put('is given twice', name, new Mapping(withField(name, own).entries, [name])),
      put('has another case', name.toUpperCase(), withField(name.toUpperCase(), own)),
    ].filter(({ what, path: at }) => what !== 'has another case' || at !== `${path}.${name}`);
  };
  const unknown = type.lenient ? [] : [put('is no field', 'nobodyKnows', withField('nobodyKnows', 1))];
  return [...Object.entries(type.fields).flatMap(ofRow), ...unknown];
}

/** `npm test` takes the first of so many. */
const STEP = usually(8, 1);

t.test('every row of every table refuses mutations of right documents, and takes their neighbours', async (t) => {
  const places = placesOf(TABLES);
  const covered = new Set(SPOTS.map(({ type }) => type));
  t.same(
    places.filter(({ type }) => !covered.has(type)).map(({ path }) => path),
    ['ClusterConfiguration.proxy'],
    'tables without a document: the one of v1beta3, which only knows that v1beta4 has it',
  );
  const all = firstSpots().flatMap(mutationsOf);
  const tried = all.filter((_, index) => index % STEP === 0);
  const accepted: string[] = [];
  const refused: string[] = [];
  for (const { what, path, text, release, isRight } of tried) {
    const found = await findings(text, release);
    const own = found.filter((each) => each.severity === 'error' && each.path === path);
    if (!isRight && own.length === 0) accepted.push(`${path} ${what}: ${JSON.stringify(found)}`);
    if (isRight && !BOUND_BY_RULES.includes(path))
      for (const each of own.filter(({ rule }) => OF_TYPES.includes(rule)))
        refused.push(`${path} ${what}: ${each.problem}`);
  }
  const count = tried.filter(({ isRight }) => isRight).length;
  t.same(accepted, [], 'wrong accepts');
  t.same(refused, [], 'wrong refusals');
  t.comment(
    `${tried.length - count} invalid and ${count} valid mutations of ${all.length}, of ${places.length} tables`,
  );
  t.ok(tried.length > usually(1200, 9000), `${tried.length} mutations`);
});

/** Values that documents have in a field of a table, right or wrong. */
function corpus(): ReadonlyMap<StructType, ReadonlyMap<string, readonly unknown[]>> {
  const values = new Map<StructType, Map<string, Map<string, unknown>>>();
  const visit = (type: Type, value: unknown): void => {
    if (type.is === 'struct' && value instanceof Mapping) {
      const fields = values.get(type) ?? new Map<string, Map<string, unknown>>();
      values.set(type, fields);
      for (const [name, of] of Object.entries(type.fields)) {
        if (!value.entries.has(name)) continue;
        const held = value.entries.get(name);
        fields.set(name, (fields.get(name) ?? new Map<string, unknown>()).set(print(held), held));
        visit(fieldOf(of).type, held);
      }
    } else if (type.is === 'list' && Array.isArray(value)) for (const item of value) visit(type.of, item);
    else if (type.is === 'map' && value instanceof Mapping)
      for (const item of value.entries.values()) visit(type.of, item);
  };
  for (const { apiVersion, kind, right, wrong } of KINDS) {
    const table = tableFor({ apiVersion, kind });
    for (const body of table === null ? [] : [...right, ...wrong.map(([text]) => text)])
      visit(table?.table ?? { is: 'any' }, documentOf(apiVersion, kind, body));
  }
  return new Map(
    [...values].map(([type, fields]) => [
      type,
      new Map([...fields].map(([name, held]) => [name, [...held.values()].slice(0, 40)])),
    ]),
  );
}

t.test('every rule on several fields is broken by a change of one field of a right document', async (t) => {
  const rules = new Map<Rule, string>();
  for (const { path, type } of placesOf(TABLES))
    for (const rule of type.rules) rules.set(rule, `${path}: ${rule.name}`);
  const breaking = new Map<Rule, { readonly text: string; readonly release: number }>();
  let current: Rule | null = null;
  const originals = new Map([...rules.keys()].map((rule) => [rule, rule.check]));
  for (const [rule, original] of originals)
    Object.assign(rule, {
      check: (section: Section) => {
        current = rule;
        original(section);
        current = null;
      },
    });
  let tried = 0;
  const values = corpus();
  for (const { type, value, release, rebuild } of spots(KINDS, false)) {
    if (type.rules.length === 0 && value.entries.size > 20) continue;
    for (const [name, held] of values.get(type) ?? []) {
      const absent = new Mapping([...value.entries].filter(([each]) => each !== name));
      for (const mapping of [absent, ...held.map((each) => new Mapping([...value.entries, [name, each]]))]) {
        const document = rebuild(mapping);
        const [apiVersion, kind] = ['apiVersion', 'kind'].map((each) => String(document.entries.get(each)));
        const table = tableFor({ apiVersion: apiVersion ?? '', kind: kind ?? '' });
        if (table === null) continue;
        tried++;
        const broken = new Set<Rule>();
        readByTable(table, { apiVersion: apiVersion ?? '', kind: kind ?? '' }, document, kind ?? '', {
          report: () => {
            if (current !== null) broken.add(current);
          },
          release,
          tableFor,
          reportUnknownKind: () => undefined,
        });
        for (const rule of broken) if (!breaking.has(rule)) breaking.set(rule, { text: print(document), release });
      }
    }
  }
  for (const [rule, original] of originals) Object.assign(rule, { check: original });
  t.same(
    [...rules].filter(([rule]) => !breaking.has(rule)).map(([, name]) => name),
    [],
    'rules that nothing breaks',
  );
  for (const [rule, { text, release }] of breaking)
    t.ok((await findings(text, release)).length > 0, `${rules.get(rule) ?? ''}: ${text.slice(0, 200)}`);
  t.comment(`${tried} mutations for ${rules.size} rules`);
});

const PROGRAMS = {
  kubelet: KUBELET_FLAGS,
  'kube-apiserver': API_SERVER_FLAGS,
  'kube-controller-manager': CONTROLLER_MANAGER_FLAGS,
  'kube-scheduler': SCHEDULER_FLAGS,
};

/** Texts that a flag of a type does not take, and texts that it takes. */
function textsOf(type: Type): readonly [wrong: readonly string[], right: readonly string[]] {
  if (type.is === 'list') return textsOf(type.of);
  if (type.is === 'enum') return [['nothing-known', ...type.values.map((each) => `${each}x`)], type.values];
  if (type.is === 'map') return [['novalue'], ['']];
  if (type.is !== 'scalar') return [[], ['']];
  const { in: wanted, test } = type.spelling;
  const { min, max } = type;
  if (wanted === 'boolean')
    return [
      ['maybe', 'yes'],
      ['true', 'False', '0'],
    ];
  const right = sample(type);
  if (wanted === 'number')
    return [
      [
        'x',
        '1m',
        ...(min === undefined || min < -(2 ** 53) ? [] : [exact(min - (type.zeroIsUnset === true ? 2 : 1))]),
        ...(max === undefined ? [] : [exact(max > 2 ** 53 ? 2 ** 63 : max + 1)]),
      ],
      [
        exact(Number(right)),
        ...(min === undefined || min < -(2 ** 53) ? [] : [exact(min)]),
        ...(max === undefined ? [] : [max > 2 ** 53 ? '9223372036854775807' : exact(max)]),
      ],
    ];
  return [test('? ?', '? ?') ? [] : ['? ?'], [String(right)]];
}

t.test('every flag of a program refuses texts that its type does not take, and takes its neighbours', async (t) => {
  let tried = 0;
  const accepted: string[] = [];
  const refused: string[] = [];
  for (const [program, flags] of Object.entries(PROGRAMS))
    for (const [name, of] of Object.entries(flags)) {
      const { type, removed, secret = false } = fieldOf(of);
      const [wrong, right] =
        program === 'kubelet' && name in KUBELET_SYNTAXES ? [[secret ? SECRET : '? ?'], ['']] : textsOf(type);
      for (const [texts, isRight] of [
        [wrong, false],
        [right, true],
      ] as const)
        for (const text of removed === undefined ? texts : []) {
          tried++;
          const unit = `[Service]\nExecStart=/usr/bin/${program} ${JSON.stringify(`--${name}=${text}`)}\n`;
          const errors = (await findings(unit)).filter(
            ({ severity, rule }) => severity === 'error' && (!isRight || OF_TYPES.includes(rule)),
          );
          if (!isRight && errors.length === 0) accepted.push(`${program} --${name}=${printValue(text)}`);
          if (isRight && errors.length > 0) refused.push(`${program} --${name}=${text}: ${errors[0]?.problem ?? ''}`);
        }
    }
  t.same(accepted, [], 'wrong accepts');
  t.same(refused, [], 'wrong refusals');
  t.comment(`${tried} texts of flags`);
  t.ok(tried > 1000, `${tried} texts`);
});
