import type { ScalarTagDefinition, Schema } from 'js-yaml';
import { yamlLibrary, type YamlLibrary } from './yaml-library.js';

/** Why a text is no YAML, or would cost more than its length allows. */
export class YamlError extends Error {
  override readonly name = 'YamlError';

  /**
   * @param reason may quote the text, after a colon, a quotation mark or `<`.
   * @param line counted from 1; null: it concerns the whole text.
   */
  constructor(
    readonly reason: string,
    readonly line: number | null = null,
  ) {
    super(line === null ? reason : `line ${line}: ${reason}`);
  }

  /** The message without anything of the text, which may hold secrets. */
  get withoutText(): string {
    const [reason = ''] = this.reason.split(/"|<|: /, 1);
    return this.line === null ? reason : `is no YAML: line ${this.line}: ${reason.trim()}`;
  }
}

/** How texts are read, which goes with the library. */
interface Schemas {
  readonly scalars: Schema;
  readonly withMerges: Schema;
}

const schemas = new WeakMap<YamlLibrary, Schemas>();

function schemasOf(library: YamlLibrary): Schemas {
  let known = schemas.get(library);
  if (known === undefined) {
    const scalars = library.CORE_SCHEMA.withTags(integerTag(library), library.boolYaml11Tag);
    schemas.set(library, (known = { scalars, withMerges: scalars.withTags(library.mergeTag) }));
  }
  return known;
}

/** Scalars as Kubernetes components read them: YAML 1.1 booleans (`yes`, `on`), octal and binary numbers (`010` is 8, `0b11` is 3). */
export function scalarsSchema(): Schema {
  return schemasOf(yamlLibrary()).scalars;
}

function integerTag(library: YamlLibrary): ScalarTagDefinition<number> {
  const { intCoreTag } = library;
  return library.defineScalarTag<number>('tag:yaml.org,2002:int', {
    implicit: true,
    implicitFirstChars: intCoreTag.implicitFirstChars,
    resolve: (source, isExplicit, tagName) => {
      const digits = source.replaceAll('_', '');
      if (/^[-+]?0[0-7]+$/.test(digits)) return parseInt(digits, 8);
      const binary = /^([-+]?)0b([01]+)$/.exec(digits);
      if (binary !== null) return parseInt(`${binary[1] ?? ''}${binary[2] ?? ''}`, 2);
      const value: unknown = intCoreTag.resolve(digits, isExplicit, tagName);
      return typeof value === 'number' ? as64Bits(value, digits) : library.NOT_RESOLVED;
    },
    identify: () => false,
  });
}

/** Text of 2^63 - 1 is the same number as 2^63, so it counts as the largest integer below. */
function as64Bits(value: number, digits: string): number {
  return value === 2 ** 63 && BigInt(digits) < value ? MAX_INT64 : value;
}

/** The largest number of JavaScript that is an integer of 64 bits. */
export const MAX_INT64 = 2 ** 63 - 1024;

/** What merge keys may copy in a text of some length: as much as is written, and not the square of it. */
export function mergeLimit(text: string): number {
  return 1000 + text.length / 8;
}

/**
 * Reads the documents of a YAML text, the empty ones as null, with merge keys. Takes time in proportion to the text, up to half a second per megabyte.
 *
 * @param firstLine of the text in its file.
 * @throws YamlError
 */
export function readYaml(
  text: string,
  budget = new ExpansionBudget(),
  schema = schemasOf(yamlLibrary()).withMerges,
  firstLine = 1,
): unknown[] {
  const documents = load(text, schema, firstLine);
  const repeats = text.includes('*');
  for (const document of documents) if (repeats) budget.charge(document, text.length);
  return documents;
}

function load(text: string, schema: Schema, firstLine: number): unknown[] {
  const { loadAll, YAMLException } = yamlLibrary();
  try {
    return loadAll(text, { schema, maxTotalMergeKeys: mergeLimit(text) });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw new YamlError(String(error), firstLine);
    throw new YamlError(error.reason, firstLine + (error.mark?.line ?? 0));
  }
}

/** What the aliases of one file may repeat beside as much as is written: a reader walks each of these values. */
const FREE_VALUES = 100_000;
/** Long texts count as several values. */
const CHARS_PER_VALUE = 64;

/**
 * Keeps the aliases of a file's documents from making them much larger than they are written: one list named in a thousand places costs its reader a thousand
 * lists. Takes time in proportion to what is written.
 */
export class ExpansionBudget {
  constructor(private free = FREE_VALUES) {}

  get remaining(): number {
    return this.free;
  }

  /**
   * @param length of the text that the document is from.
   * @throws YamlError when the document may not be read.
   */
  charge(document: unknown, length: number): void {
    const { size, written } = measure(document);
    const excess = Math.max(0, size - 2 * (written + length / CHARS_PER_VALUE));
    if (excess > this.free) throw new YamlError('its aliases repeat more than twice what is written');
    this.free -= excess;
  }
}

/** How many values a walk over the document meets, and how many values are written down. */
function measure(document: unknown): { readonly size: number; readonly written: number } {
  const sizes = new Map<object, number>();
  let written = 0;
  // As deep as the parser lets documents be.
  const sizeOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) {
      written++;
      return typeof value === 'string' ? 1 + value.length / CHARS_PER_VALUE : 1;
    }
    const known = sizes.get(value);
    if (known !== undefined) return known;
    written++;
    // What leads back into itself is endless.
    sizes.set(value, Infinity);
    let size = 1;
    if (Array.isArray(value)) for (const part of value as unknown[]) size += sizeOf(part);
    else {
      const entries = value instanceof Map ? (value as Map<string, unknown>) : Object.entries(value);
      for (const [key, part] of entries) size += key.length / CHARS_PER_VALUE + sizeOf(part);
    }
    sizes.set(value, size);
    return size;
  };
  return { size: sizeOf(document), written };
}
