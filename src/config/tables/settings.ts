import { isMapping } from '../../base/mapping.js';
import { printValue } from '../errors.js';
import type { Flag } from '../flag.js';
import type { FlagType, FlagValue } from '../flag-values.js';
import { KUBERNETES_MINOR } from '../version.js';
import type { Mapping } from '../yaml.js';
import { holdsSecret, readStruct } from './read.js';
import type { Report } from './report.js';
import type { Spelling } from './spelling.js';
import { Section, type Read } from './section.js';
import { fieldOf, type Check, type Field, type StructType, type Type, type Typed } from './types.js';

/** What follows from the table of a configuration that this program itself obeys: values, flags, validation, what is written. */

/**
 * Reads a document by its table, in the words of Kubernetes' validation. Null and absent are the same and give the default. So does what is wrong, which is
 * reported, so that one pass finds every problem. Fields that are unknown or given twice are reported by rules of {@link STRICT}. No value of a document
 * that may hold secrets is reported: it may be one in the wrong place.
 */
export function readSettings<V>(
  table: StructType & Typed<V>,
  mapping: Mapping,
  path: string,
  report: (report: Report) => void,
): V {
  const isShown = !holdsSecret(table);
  const refusal = (type: Type, value: unknown): Omit<Report, 'severity' | 'path'> => {
    const problem = `must be ${wanted(type, value)}`;
    return { rule: 'type', value: isShown ? printValue(value) : null, problem, expected: '' };
  };
  const reading = { version: '', release: KUBERNETES_MINOR, report, readEmbedded: () => null, refusal };
  return values(table, readStruct(table, mapping, path, reading, true)) as V;
}

/** Rules of reports that a lenient reader passes over. */
export const STRICT: readonly string[] = ['unknown-field', 'case', 'duplicate-field'];

function wanted(type: Type, value: unknown): string {
  if (type.is === 'list') return 'a list';
  if (type.is === 'enum') return type.values.join(' or ');
  if (type.is !== 'scalar') return 'a mapping';
  if (type.format === 'string') return 'a string';
  if (type.format === 'int') return `an integer in the range [${type.min ?? 0}, ${type.max ?? 0}]`;
  const isTooLarge = type.format === 'float32' && typeof value === 'number' && Number.isFinite(value);
  return isTooLarge ? 'a number of 32 bits' : type.spelling.should;
}

function values({ fields }: StructType, section: Section | null): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, of]) => {
      const isNull = fieldOf(of).isNullable === true && section?.isGiven(name) !== true;
      return [name, isNull ? null : valueOf(fieldOf(of), section?.read(name) ?? null)];
    }),
  );
}

function valueOf({ type, default: initial }: Pick<Field, 'type' | 'default'>, read: Read | null): unknown {
  const section = read instanceof Section ? read : null;
  const items = Array.isArray(read) ? (read as readonly Read[]) : [];
  switch (type.is) {
    case 'struct':
      return values(type, section);
    case 'map':
      return Object.fromEntries(
        (section?.names() ?? []).flatMap((name) => {
          const value = section?.read(name) ?? null;
          return value === null ? [] : [[name, valueOf({ type: type.of }, value)]];
        }),
      );
    case 'list':
      return read === null && type.isNeverNull !== true ? null : items.map((item) => valueOf({ type: type.of }, item));
    case 'scalar':
      return scalarOf(type.spelling, read ?? initial ?? null);
    case 'enum':
    case 'any':
    case 'embedded':
      return read ?? initial ?? '';
  }
}

function scalarOf({ in: kind, canonical, zero }: Spelling, value: unknown): unknown {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    return zero ?? (kind === 'boolean' ? false : kind === 'number' ? 0 : '');
  return canonical?.(value) ?? value;
}

/** A field that is no section, and where it is. */
export interface Leaf {
  readonly path: readonly string[];
  readonly field: Field;
}

/** Every field that is no section, in the table's order. */
export function leaves({ fields }: StructType, above: readonly string[] = []): readonly Leaf[] {
  return Object.entries(fields).flatMap(([name, of]): readonly Leaf[] => {
    const field = fieldOf(of);
    const path = [...above, name];
    return field.type.is === 'struct' ? leaves(field.type, path) : [{ path, field }];
  });
}

/** What is at a path of values; undefined: nothing. */
function valueAt(values: unknown, path: readonly string[]): unknown {
  return path.reduce((at, name) => (isMapping(at) ? at[name] : undefined), values);
}

/** The values with another one at a path. */
export function withValue<D extends object>(values: D, [name = '', ...rest]: readonly string[], value: unknown): D {
  const held = valueAt(values, [name]);
  return { ...values, [name]: rest.length === 0 || !isMapping(held) ? value : withValue(held, rest, value) };
}

export function isActive({ modes }: Field, mode: string): boolean {
  return modes?.includes(mode) ?? true;
}

/** What is wrong with single values, each by itself. */
export function checkSettings(table: StructType, values: object, kind: string, mode: string): readonly Report[] {
  return leaves(table)
    .filter(({ field }) => field.isAlwaysChecked === true || isActive(field, mode))
    .flatMap(({ path, field }) => {
      const value = valueAt(values, path);
      return (field.checks ?? []).flatMap((check) => {
        const found = (check as Check<unknown>)(value);
        if (found === null) return [];
        const at = `${kind}.${path.join('.')}`;
        if (typeof found === 'string') return [refused(at, 'value', printValue(value), found)];
        return found.map((flaw) =>
          refused(at + flaw.at, flaw.rule, flaw.value === null ? null : printValue(flaw.value), flaw.problem),
        );
      });
    });
}

export function refused(path: string, rule: string, value: string | null, problem: string): Report {
  return { severity: 'error', rule, path, value, problem, expected: '' };
}

/** A warning that is no reason to refuse anything. */
export function remarked(path: string, rule: string, problem: string): Report {
  return { severity: 'warning', rule, path, value: null, problem, expected: '' };
}

/** Paths of fields that are not as they are by default and do not act in the mode. */
export function inactive(table: StructType, values: object, defaults: object, mode: string): readonly string[] {
  const text = (value: unknown): string => JSON.stringify(value ?? []);
  return leaves(table)
    .filter(
      ({ path, field }) => !isActive(field, mode) && text(valueAt(values, path)) !== text(valueAt(defaults, path)),
    )
    .map(({ path }) => path.join('.'));
}

/** The values with the defaults of those that do not act in the mode but would look as if they did. */
export function withoutInactive<D extends object>(table: StructType, values: D, mode: string): D {
  return leaves(table)
    .filter(({ field }) => field.isCleared === true && !isActive(field, mode))
    .reduce((below, { path, field }) => withValue(below, path, valueOf(field, null)), values);
}

/** The values as they are written: fields that are optional only where they say something. */
export function written({ fields }: StructType, values: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]: [string, unknown]) => {
      const field = fieldOf(fields[name] ?? { is: 'any' });
      if (field.isOptional === true && JSON.stringify(value) === JSON.stringify(valueOf({ type: field.type }, null)))
        return [];
      return [[name, field.type.is === 'struct' && isMapping(value) ? written(field.type, value) : value]];
    }),
  );
}

/** The flags that set fields, in the table's order. */
export function flagsOf(table: StructType): readonly Flag[] {
  const rows = leaves(table).filter(({ field }) => field.flag !== undefined);
  return rows.flatMap((first, index): readonly Flag[] => {
    const { field } = first;
    const { flag } = field;
    if (flag === undefined || rows.findIndex((row) => row.field.flag === flag) !== index) return [];
    const { ignoresEmpty, spell, ...row } = flag;
    const type = flag.type ?? flagType(field.type);
    const fields = rows.filter((row) => row.field.flag === flag);
    return [
      {
        ...row,
        type,
        initial: flag.initial ?? initialOf(field),
        set: (document, value) => {
          if (value === '' && ignoresEmpty === true) return document;
          const mode = valueAt(document, ['mode']);
          const { path } = fields.find((row) => isActive(row.field, String(mode))) ?? first;
          const text = typeof value === 'string' && spell !== undefined ? spell(value) : value;
          return withValue(document, path, fromFlag(type, text, valueAt(document, path)));
        },
      },
    ];
  });
}

function flagType(type: Type): FlagType {
  if (type.is === 'map') return 'gates';
  if (type.is === 'list') return type.of.is === 'struct' ? 'vmodule' : 'words';
  const format = type.is === 'scalar' ? type.format : 'string';
  if (format === 'bool' || format === 'float32' || format === 'quantity' || format === 'string') return format;
  return format === 'int' ? 'int32' : 'duration';
}

function initialOf(field: Field): string {
  if (field.type.is === 'list') return field.type.of.is === 'struct' ? '' : '[]';
  return field.type.is === 'scalar' ? String(valueOf(field, null)) : '';
}

/** A flag's value as its field has it. Entries of vmodule are put before those there are, as of several that match the first counts. */
function fromFlag(type: FlagType, value: FlagValue, held: unknown): unknown {
  if (typeof value !== 'object' || (type !== 'gates' && type !== 'vmodule')) return value;
  const pairs = value.map((entry): readonly [string, string] => {
    const [name = '', setting = ''] = entry.split('=');
    return [name, setting];
  });
  if (type === 'gates') return Object.fromEntries(pairs.map(([name, setting]) => [name, setting === 'true']));
  const given = pairs.map(([filePattern, verbosity]) => ({ filePattern, verbosity: Number(verbosity) }));
  return [...given, ...(Array.isArray(held) ? (held as readonly unknown[]) : [])];
}
