import type { FlagRow } from '../flag.js';
import { BASIC, type BasicFormat, type ScalarValue, type Spelling } from './spelling.js';
import type { Section } from './section.js';

declare const held: unique symbol;

/** Carries the type of the values that a table's type stands for; nothing is there when it runs. */
export interface Typed<V> {
  readonly [held]?: V;
}

/** Of a type or a field: what reading it by `settings.ts` gives. */
export type ValueOf<T> = T extends Typed<infer V> ? V : never;

/** The language of field tables. A table says everything about a kind: the engine (`read.ts`) has no code for any of them. */
export type Type = ScalarType | EnumType | ListType | MapType | StructType | EmbeddedType | AnyType;

export interface ScalarType {
  readonly is: 'scalar';
  /** Its name. */
  readonly format: string;
  readonly spelling: Spelling;
  /** Bounds of a number, both included. */
  readonly min?: number;
  readonly max?: number;
  /** Bounds of a duration, both included. */
  readonly least?: string;
  readonly most?: string;
  /** Of a number or a duration: 0 counts as nothing written. */
  readonly zeroIsUnset?: boolean;
  /** Null is refused, as Kubernetes parses it at once, and does not count as nothing written. */
  readonly refusesNull?: boolean;
}

export interface EnumType {
  readonly is: 'enum';
  readonly values: readonly string[];
}

export interface ListType {
  readonly is: 'list';
  readonly of: Type;
  readonly min: number;
  readonly max: number;
  /** Field of the entries that each of them has of its own; empty text: the entries themselves; null: they may repeat. */
  readonly unique: string | null;
  /** Whether nothing written means an empty list; absent: it means null, which is not the same. */
  readonly isNeverNull?: true;
}

export interface MapType {
  readonly is: 'map';
  readonly of: Type;
}

export interface StructType {
  readonly is: 'struct';
  readonly fields: Readonly<Record<string, Type | Field>>;
  /** What single fields cannot say. */
  readonly rules: readonly Rule[];
  /** Whether fields that the table does not have are passed over. */
  readonly lenient: boolean;
}

/** A document within a document, checked by the table of its own kind where that is known. */
export interface EmbeddedType {
  readonly is: 'embedded';
  /** What it is where it does not say so itself; null: anything. */
  readonly kindOf: ((parent: Section) => TypeMeta | null) | null;
  /** Which it may be, as `group kind`; empty: any. */
  readonly kinds: (parent: Section) => readonly string[];
}

interface AnyType {
  readonly is: 'any';
}

export interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

/** What a field of this program's own configuration is beside its type. */
interface Setting {
  /** The flag that sets it, too. Several fields may share one: it sets that which acts in the mode, else the first. */
  readonly flag?: FlagRow;
  /** Modes in which it acts; absent: all. */
  readonly modes?: readonly string[];
  /** What is wrong with a value, whatever other fields say: looked at only in its modes, unless `isAlwaysChecked`. */
  readonly checks?: readonly Check[];
  readonly isAlwaysChecked?: true;
  /** In other modes it counts as its default, as there it would look as if it acted. */
  readonly isCleared?: true;
  /** Left out of what is written when it says nothing. */
  readonly isOptional?: true;
  /** Written as 0 by programs that cannot leave it out: by every one, or only in a document that has all fields. */
  readonly unsetAsZero?: 'where something is unset' | 'in a whole document';
}

/** What is wrong with a value; null: nothing. Text is about the field itself. */
export type Check<V = never> = (value: V) => string | null | readonly Flaw[];

/** One thing that is wrong with a part of a value. */
export interface Flaw {
  /** Path of the part within the field, such as `[0]`. */
  readonly at: string;
  readonly rule: 'value' | 'required';
  /** Null: not shown. */
  readonly value: string | number | null;
  readonly problem: string;
}

export interface Field extends Setting {
  readonly is: 'field';
  readonly type: Type;
  readonly required?: boolean;
  /** Of a section: nothing written is null, not its defaults. */
  readonly isNullable?: true;
  /** Of a text: nothing is a value, too, of whatever format others are. */
  readonly mayBeEmpty?: boolean;
  /** Its value, and everything in it, is shown nowhere. */
  readonly secret?: boolean;
  readonly default?: string | number | boolean;
  /** What to use instead. */
  readonly deprecated?: string;
  /** API versions that have it; all where it is not given. */
  readonly versions?: readonly string[];
  /** Minor release of Kubernetes that first has it, and first has it no more. */
  readonly since?: number;
  readonly removed?: number;
}

/** A condition on several fields. */
export interface Rule {
  readonly name: string;
  readonly check: (section: Section) => void;
}

/** In which minor releases of Kubernetes a version of a kind is served. */
export interface Served {
  readonly since?: number;
  readonly deprecated?: number;
  readonly removed?: number;
  /** False: no component takes it. */
  readonly isServed?: boolean;
}

export interface KindTable {
  readonly kind: string;
  /** API group; empty: the core group. */
  readonly group: string;
  readonly versions: Readonly<Record<string, Served>>;
  readonly table: StructType;
}

export function spelled(format: string, spelling: Spelling, min?: number, max?: number): ScalarType {
  const bounds = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
  return { is: 'scalar', format, spelling, ...bounds };
}

/** Of one of the basic formats; `formats.ts` has all. */
export function scalar<F extends BasicFormat>(
  format: F,
  min?: number,
  max?: number,
): ScalarType & Typed<ScalarValue<F, (typeof BASIC)[F]['in']>> {
  return spelled(format, BASIC[format], min, max);
}

export const text = scalar('string');
export const bool = scalar('bool');
export const int32 = scalar('int', -(2 ** 31), 2 ** 31 - 1);
/** Its maximum is that of `base/yaml.ts`. */
export const int64 = scalar('int', -(2 ** 63), 2 ** 63 - 1024);
export const duration = scalar('duration');
export const path = text;
export const any: AnyType & Typed<unknown> = { is: 'any' };

/** An integer of 32 bits with bounds of its own. */
export function int(min: number, max: number = 2 ** 31 - 1): ScalarType & Typed<number> {
  return scalar('int', min, max);
}

/** As {@link int}, for what Kubernetes replaces by a default where it is 0 before it looks whether it is right. */
export function intOrZero(min: number, max?: number): ScalarType {
  return orZero(int(min, max));
}

/** A duration with bounds, both included. */
export function durationWithin(least: string, most?: string): ScalarType {
  return { ...scalar('duration'), least, ...(most === undefined ? {} : { most }) };
}

/** As the type given, for what Kubernetes replaces by a default where it is 0 before it looks whether it is right. */
export function orZero(type: ScalarType): ScalarType {
  return { ...type, zeroIsUnset: true };
}

/** As the type given, of a field that cannot be null: Kubernetes parses whatever is written. */
export function parsed(type: ScalarType): ScalarType {
  return { ...type, refusesNull: true };
}

export function oneOf(...values: readonly string[]): EnumType & Typed<string> {
  return { is: 'enum', values };
}

export function list<T extends Type>(
  of: T,
  { min = 0, max = Infinity, unique = null }: Partial<Pick<ListType, 'min' | 'max' | 'unique'>> = {},
): ListType & Typed<readonly ValueOf<T>[] | null> {
  return { is: 'list', of, min, max, unique };
}

/** As {@link list}, where nothing written means no entries. */
export function entries<T extends Type>(
  of: T,
  rest: Partial<Pick<ListType, 'unique'>> = {},
): ListType & Typed<readonly ValueOf<T>[]> {
  const plain: ListType = list(of, rest);
  return { ...plain, isNeverNull: true };
}

export function map<T extends Type>(of: T): MapType & Typed<Readonly<Record<string, ValueOf<T>>>> {
  return { is: 'map', of };
}

export function struct<F extends StructType['fields']>(
  fields: F,
  ...rules: readonly Rule[]
): StructType & Typed<{ readonly [K in keyof F]: ValueOf<F[K]> }> {
  return { is: 'struct', fields, rules, lenient: false };
}

/** As {@link struct}, of which only the fields of interest are listed. */
export function partial(fields: StructType['fields'], ...rules: readonly Rule[]): StructType {
  return { is: 'struct', fields, rules, lenient: true };
}

export function embedded(kindOf: EmbeddedType['kindOf'] = null, kinds: EmbeddedType['kinds'] = () => []): EmbeddedType {
  return { is: 'embedded', kindOf, kinds };
}

export function field<T extends Type>(type: T, rest: FieldOf<T>): Field & Typed<ValueOf<T>> {
  return { is: 'field', type, ...rest };
}

type FieldOf<T> = Omit<Field, 'is' | 'type' | 'checks'> & { readonly checks?: readonly Check<ValueOf<T>>[] };

export function required<T extends Type>(
  type: T,
  rest: Omit<Field, 'is' | 'type' | 'required'> = {},
): Field & Typed<ValueOf<T>> {
  return { is: 'field', type, required: true, ...rest };
}

/** A section that means something even where nothing is in it; null: it is not there. */
export function optional<T extends Type>(type: T): Field & Typed<ValueOf<T> | null> {
  return { is: 'field', type, isNullable: true };
}

export function fieldOf(entry: Type | Field): Field {
  return entry.is === 'field' ? entry : { is: 'field', type: entry };
}
