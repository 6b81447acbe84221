import { printUrlText } from '../../base/url-text.js';
import { durationNanoseconds, parseDuration } from '../duration.js';
import { clip, printValue } from '../errors.js';
import { Mapping } from '../yaml.js';
import type { Report } from './report.js';
import { Section, type Entry, type Read } from './section.js';
import {
  fieldOf,
  type EmbeddedType,
  type EnumType,
  type Field,
  type ListType,
  type MapType,
  type ScalarType,
  type StructType,
  type Type,
} from './types.js';

/** In what a document is read. */
export interface Reading {
  /** Its API version, without the group. */
  readonly version: string;
  /** Minor release of Kubernetes that it is for. */
  readonly release: number;
  readonly report: (report: Report) => void;
  /** What to say of a value that its type does not take; absent: what check says of it. */
  readonly refusal?: (type: Type, value: unknown) => Omit<Report, 'severity' | 'path'>;
  /** Reads a document within this one by the table of its own kind. */
  readonly readEmbedded: (type: EmbeddedType, mapping: Mapping, path: string, parent: Section) => Read | null;
}

/** The fields that every document has. */
const TYPE_META = ['apiVersion', 'kind'];

/**
 * Reads a mapping by its table: types, bounds, fields that are missing, unknown or given twice, then the rules on several fields. What is wrong is reported
 * and left out, so that one pass finds all of it.
 *
 * @param isDocument whether it has the fields apiVersion and kind as well.
 */
export function readStruct(
  type: StructType,
  mapping: Mapping,
  path: string,
  reading: Reading,
  isDocument = false,
): Section {
  const entries = new Map<string, Entry>();
  const section = new Section(path, reading.version, reading.release, entries, reading.report);
  for (const [name, of] of Object.entries(type.fields)) {
    const field = fieldOf(of);
    if (isInVersion(field, reading))
      entries.set(name, readField(field, mapping.entries.get(name), `${path}.${name}`, section, reading));
  }
  reportUnknown(type, mapping, path, reading, isDocument);
  for (const rule of type.rules) rule.check(section);
  return section;
}

/** A section of which nothing is written, for its defaults. */
function absentStruct(type: StructType, path: string, reading: Reading): Section {
  const entries = new Map(
    Object.entries(type.fields).map(([name, of]): [string, Entry] => [
      name,
      absent(fieldOf(of), `${path}.${name}`, reading),
    ]),
  );
  return new Section(path, reading.version, reading.release, entries, reading.report);
}

function absent({ type, default: initial }: Field, path: string, reading: Reading): Entry {
  const read = type.is === 'struct' ? absentStruct(type, path, reading) : (initial ?? null);
  return { read, given: false, shown: initial === undefined ? null : printValue(initial) };
}

function isInVersion({ versions }: Field, { version }: Reading): boolean {
  return versions?.includes(version) ?? true;
}

/** @param value undefined where the mapping does not have the field. */
function readField(field: Field, value: unknown, path: string, parent: Section, reading: Reading): Entry {
  if (value === null && field.type.is === 'scalar' && field.type.refusesNull === true) {
    say(reading, 'error', 'type', path, printValue(null), WRONG_TYPE, shouldBe(field.type));
    return { ...absent(field, path, reading), given: true };
  }
  if (value === '' && field.mayBeEmpty === true) return { read: '', given: true, shown: printValue('') };
  if (isNothing(value, field.type)) {
    if (field.required === true) say(reading, 'error', 'required', path, null, 'is missing', shouldBe(field.type));
    return absent(field, path, reading);
  }
  reportAge(field, value, path, reading);
  const shown = isShown(field, field.type) ? show(value) : null;
  return { read: readValue(field.type, field, value, path, parent, reading), given: true, shown };
}

/** Whether a value counts as nothing written. Empty text does not where there is to be a number, a list or a mapping, nor where it would be parsed at once. */
function isNothing(value: unknown, type: Type): boolean {
  if (value === undefined || value === null) return true;
  if (type.is === 'scalar' && type.zeroIsUnset === true && isZero(value))
    return type.spelling.in.includes(typeof value);
  if (value !== '') return false;
  if (type.is === 'scalar') return type.spelling.in === 'string' && !NEVER_EMPTY.includes(type.format);
  return type.is === 'enum' || type.is === 'any';
}

function isZero(value: unknown): boolean {
  if (typeof value !== 'string') return value === 0;
  const duration = parseDuration(value);
  return duration !== null && durationNanoseconds(duration) === 0n;
}

const NEVER_EMPTY: readonly string[] = ['duration', 'duration, not negative', 'duration above 0', 'timestamp'];

function reportAge(
  { since, removed, deprecated, versions }: Field,
  value: unknown,
  path: string,
  reading: Reading,
): void {
  const { release } = reading;
  const isUnset = value === false || isZero(value) || (value instanceof Mapping && value.entries.size === 0);
  if (since !== undefined && release < since)
    say(reading, 'error', 'version', path, null, `exists since Kubernetes 1.${since} only`, '');
  else if (removed !== undefined && release >= removed)
    say(reading, 'error', 'version', path, null, `is gone since Kubernetes 1.${removed}`, deprecated ?? '');
  // A field of old versions alone is as old as they are, which is said of the document.
  else if (deprecated !== undefined && versions === undefined && !isUnset)
    say(reading, 'warning', 'deprecated', path, null, 'is deprecated', deprecated);
}

function readValue(
  type: Type,
  field: Field,
  value: unknown,
  path: string,
  parent: Section,
  reading: Reading,
): Read | null {
  const refuse = (rule: string, problem: string, expected: string): null => {
    if (reading.refusal !== undefined) {
      reading.report({ severity: 'error', path, ...reading.refusal(type, value) });
      return null;
    }
    const shown = isShown(field, type) ? show(value) : null;
    const found = rule === 'type' && shown === null ? `${problem}, ${typeName(value)}` : problem;
    say(reading, 'error', rule, path, shown, found, expected);
    return null;
  };
  switch (type.is) {
    case 'any':
      return null;
    case 'scalar':
      return readScalar(type, value, refuse);
    case 'enum':
      return readEnum(type, value, refuse);
    case 'list':
      return Array.isArray(value)
        ? readList(type, field, value, path, parent, reading)
        : refuse('type', WRONG_TYPE, shouldBe(type));
    case 'map':
      return value instanceof Mapping
        ? readMap(type, field, value, path, parent, reading)
        : refuse('type', WRONG_TYPE, shouldBe(type));
    case 'struct':
      return value instanceof Mapping
        ? readStruct(type, value, path, reading)
        : refuse('type', WRONG_TYPE, shouldBe(type));
    case 'embedded':
      return value instanceof Mapping
        ? reading.readEmbedded(type, value, path, parent)
        : refuse('type', WRONG_TYPE, shouldBe(type));
  }
}

const WRONG_TYPE = 'has the wrong type';

/** Type of a value that is not shown. */
function typeName(value: unknown): string {
  if (value instanceof Mapping) return 'a mapping';
  if (Array.isArray(value)) return 'a list';
  return { string: 'text', number: 'a number', boolean: 'true or false' }[typeof value as string] ?? 'null';
}

type Refuse = (rule: string, problem: string, expected: string) => null;

function readScalar(type: ScalarType, value: unknown, refuse: Refuse): Read | null {
  const { in: wanted, test } = type.spelling;
  const { min = -Infinity, max = Infinity } = type;
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    return refuse('type', WRONG_TYPE, shouldBe(type));
  if (!wanted.split(' or ').includes(typeof value)) return refuse('type', WRONG_TYPE, shouldBe(type));
  if (typeof value === 'number' && (!Number.isFinite(value) || (type.format === 'int' && !Number.isInteger(value))))
    return refuse('type', WRONG_TYPE, shouldBe(type));
  if (typeof value === 'number' && (value < min || value > max))
    return refuse('range', 'is out of range', shouldBe(type));
  if (!test(String(value), value)) return refuse('format', 'cannot be read', shouldBe(type));
  return isWithin(type, value) ? value : refuse('range', 'is out of range', shouldBe(type));
}

/** Whether a duration is within its bounds; numbers have theirs. */
function isWithin({ least, most }: ScalarType, value: unknown): boolean {
  if (typeof value !== 'string' || (least === undefined && most === undefined)) return true;
  const amount = nanoseconds(value);
  return amount >= nanoseconds(least ?? value) && amount <= nanoseconds(most ?? value);
}

function nanoseconds(text: string): bigint {
  const duration = parseDuration(text);
  return duration === null ? 0n : durationNanoseconds(duration);
}

function readEnum(type: EnumType, value: unknown, refuse: Refuse): Read | null {
  if (typeof value !== 'string') return refuse('type', WRONG_TYPE, shouldBe(type));
  if (type.values.includes(value)) return value;
  const other = type.values.find((known) => known.toLowerCase() === value.toLowerCase());
  return other === undefined
    ? refuse('value', 'is not known', shouldBe(type))
    : refuse('case', 'has the wrong case', printValue(other));
}

function readList(
  type: ListType,
  field: Field,
  items: readonly unknown[],
  path: string,
  parent: Section,
  reading: Reading,
): readonly Read[] {
  const range = (problem: string): void => {
    say(reading, 'error', 'range', path, null, problem, shouldBe(type));
  };
  if (items.length < type.min) range(items.length === 0 ? 'is empty' : `has ${items.length} entries`);
  if (items.length > type.max) range(`has ${items.length} entries`);
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const at = `${path}[${index}]`;
    const read = readValue(type.of, field, item, at, parent, reading);
    const key = read === null || type.unique === null ? '' : keyOf(read, type.unique);
    if (key !== '' && seen.size === seen.add(key).size) {
      const shown = isShown(field, type.of) ? printValue(key) : null;
      say(reading, 'error', 'unique', type.unique === '' ? at : `${at}.${type.unique ?? ''}`, shown, 'is given twice');
    }
    return read ?? [];
  });
}

function keyOf(read: Read, unique: string): string {
  if (read instanceof Section) return read.text(unique);
  return typeof read === 'string' ? read : '';
}

function readMap(
  type: MapType,
  field: Field,
  mapping: Mapping,
  path: string,
  parent: Section,
  reading: Reading,
): Section {
  const isDiscreet = !isShown(field, type);
  reportDuplicates(mapping, path, reading, () => !isDiscreet);
  const entries = [...mapping.entries].map(([key, value]): [string, Entry] => {
    const at = `${path}.${showName(key, isDiscreet)}`;
    const shown = isShown(field, type.of) ? show(value) : null;
    const read = value === null ? null : readValue(type.of, field, value, at, parent, reading);
    return [key, { read, given: value !== null, shown }];
  });
  return new Section(path, reading.version, reading.release, new Map(entries), reading.report);
}

function reportUnknown(type: StructType, mapping: Mapping, path: string, reading: Reading, isDocument: boolean): void {
  const isDiscreet = holdsSecret(type);
  const fields = Object.entries(type.fields);
  const known = new Set(fields.filter(([, of]) => isInVersion(fieldOf(of), reading)).map(([name]) => name));
  if (isDocument) for (const name of TYPE_META) known.add(name);
  for (const name of mapping.entries.keys()) {
    if (known.has(name)) continue;
    const other = [...known].find((each) => each.toLowerCase() === name.toLowerCase());
    const elsewhere = fields.find(([each]) => each === name)?.[1];
    const isName = other !== undefined || elsewhere !== undefined;
    const at = `${path}.${showName(name, isDiscreet && !isName)}`;
    if (other !== undefined) say(reading, 'error', 'case', at, null, 'has the wrong case', other);
    else if (elsewhere !== undefined)
      say(reading, 'error', 'version', at, null, `is no field of ${reading.version}`, movedTo(fieldOf(elsewhere)));
    else if (!type.lenient) say(reading, 'error', 'unknown-field', at, null, 'is an unknown field');
  }
  reportDuplicates(mapping, path, reading, (name) => !isDiscreet || known.has(name));
}

function movedTo({ versions, deprecated }: Field): string {
  return deprecated ?? `used in ${(versions ?? []).join(' and ')}`;
}

function reportDuplicates(mapping: Mapping, path: string, reading: Reading, isShown: (name: string) => boolean): void {
  for (const name of mapping.duplicates)
    say(reading, 'error', 'duplicate-field', `${path}.${showName(name, !isShown(name))}`, null, 'is given twice');
}

/** A name that could be a secret at the wrong place is not shown. */
function showName(name: string, isDiscreet: boolean): string {
  return !isDiscreet || /^[A-Za-z][A-Za-z-]{0,39}$/.test(name) ? clip(name) : '…';
}

/** Whether a value may be shown at the place of a type: not where a secret belongs, at any depth. */
function isShown({ secret }: Field, type: Type): boolean {
  return secret !== true && !holdsSecret(type);
}

const secretTypes = new WeakMap<Type, boolean>();

/** Whether a value of the type, or anything in it, is shown nowhere. */
export function holdsSecret(type: Type): boolean {
  const known = secretTypes.get(type);
  if (known !== undefined) return known;
  const holds = findSecret(type);
  secretTypes.set(type, holds);
  return holds;
}

function findSecret(type: Type): boolean {
  switch (type.is) {
    case 'scalar':
    case 'enum':
      return false;
    case 'list':
    case 'map':
      return holdsSecret(type.of);
    case 'struct':
      return Object.values(type.fields)
        .map(fieldOf)
        .some((field) => field.secret === true || holdsSecret(field.type));
    // Its content is not known here.
    case 'embedded':
    case 'any':
      return true;
  }
}

function show(value: unknown): string | null {
  if (value instanceof Mapping || Array.isArray(value)) return null;
  return printValue(typeof value === 'string' ? printUrlText(value) : value);
}

/** What a value of a type is, in words. */
function shouldBe(type: Type): string {
  switch (type.is) {
    case 'scalar': {
      const { min, max, least, most, spelling } = type;
      const { should } = spelling;
      if (least !== undefined)
        return `a duration ${most === undefined ? 'of at least ' : 'from '}${least}${most === undefined ? '' : ` to ${most}`}`;
      if (most !== undefined) return `${should}, at most ${most}`;
      if (min === -(2 ** 63)) return `${should} of 64 bits`;
      if (min === undefined || max === undefined) return min === undefined ? should : `${should} of at least ${min}`;
      return max >= 2 ** 31 - 1 && min > -(2 ** 31)
        ? `${should} of at least ${min}`
        : `${should} from ${min} to ${max}`;
    }
    case 'enum':
      return type.values.map((value) => printValue(value)).join(' or ');
    case 'list':
      if (type.max !== Infinity) return `a list of ${type.min} to ${type.max} entries`;
      return type.min > 0 ? `a list of at least ${type.min}` : 'a list';
    case 'map':
    case 'struct':
    case 'embedded':
      return 'a mapping';
    case 'any':
      return 'a value';
  }
}

function say(
  reading: Reading,
  severity: Report['severity'],
  rule: string,
  path: string,
  value: string | null,
  problem: string,
  expected = '',
): void {
  reading.report({ severity, rule, path, value, problem, expected });
}
