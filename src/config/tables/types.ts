import type { Format } from './formats.js';
import type { Section } from './section.js';

/** The language of field tables. A table says everything about a kind: the engine (`read.ts`) has no code for any of them. */
export type Type = ScalarType | EnumType | ListType | MapType | StructType | EmbeddedType | AnyType;

export interface ScalarType {
  readonly is: 'scalar';
  readonly format: Format;
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
}

export interface AnyType {
  readonly is: 'any';
}

export interface TypeMeta {
  readonly apiVersion: string;
  readonly kind: string;
}

export interface Field {
  readonly is: 'field';
  readonly type: Type;
  readonly required?: boolean;
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

export function scalar(format: Format, min?: number, max?: number): ScalarType {
  return { is: 'scalar', format, ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

export const text = scalar('string');
export const bool = scalar('bool');
export const int32 = scalar('int', -(2 ** 31), 2 ** 31 - 1);
export const int64 = scalar('int', -(2 ** 63), 2 ** 63);
export const duration = scalar('duration');
export const path = text;
export const any: AnyType = { is: 'any' };

/** An integer of 32 bits with bounds of its own. */
export function int(min: number, max: number = 2 ** 31 - 1): ScalarType {
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

export function oneOf(...values: readonly string[]): EnumType {
  return { is: 'enum', values };
}

export function list(
  of: Type,
  { min = 0, max = Infinity, unique = null }: Partial<Pick<ListType, 'min' | 'max' | 'unique'>> = {},
): ListType {
  return { is: 'list', of, min, max, unique };
}

export function map(of: Type): MapType {
  return { is: 'map', of };
}

export function struct(fields: StructType['fields'], ...rules: readonly Rule[]): StructType {
  return { is: 'struct', fields, rules, lenient: false };
}

/** As {@link struct}, of which only the fields of interest are listed. */
export function partial(fields: StructType['fields'], ...rules: readonly Rule[]): StructType {
  return { is: 'struct', fields, rules, lenient: true };
}

export function embedded(kindOf: EmbeddedType['kindOf'] = null): EmbeddedType {
  return { is: 'embedded', kindOf };
}

export function field(type: Type, rest: Omit<Field, 'is' | 'type'>): Field {
  return { is: 'field', type, ...rest };
}

export function required(type: Type, rest: Omit<Field, 'is' | 'type' | 'required'> = {}): Field {
  return { is: 'field', type, required: true, ...rest };
}

export function fieldOf(entry: Type | Field): Field {
  return entry.is === 'field' ? entry : { is: 'field', type: entry };
}
