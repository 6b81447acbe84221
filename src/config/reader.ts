import { durationFromNanoseconds, parseDuration, type GoDuration } from './duration.js';
import { clip, invalid } from './errors.js';
import { isFloat32, isQuantity, OUT_OF_FLOAT32 } from './quantity.js';
import { Mapping } from './yaml.js';

/** What decoding found: `strict` problems are passed over leniently with a warning, `fatal` ones are not. */
export interface Findings {
  readonly strict: string[];
  readonly fatal: string[];
}

/**
 * Reads the fields of one section by name. Null and absent are the same and give the fallback. What has the wrong type is noted with
 * its path and value and gives the fallback too, so that one pass finds every problem.
 */
export class FieldReader {
  readonly #entries: ReadonlyMap<string, unknown>;
  readonly #duplicates: readonly string[];
  readonly #path: string;
  readonly #findings: Findings;
  readonly #known = new Set<string>();

  constructor(value: unknown, path: string, findings: Findings) {
    const mapping = value instanceof Mapping ? value : new Mapping([]);
    if (value !== null && !(value instanceof Mapping)) findings.fatal.push(invalid(path, value, 'must be a mapping'));
    this.#entries = mapping.entries;
    this.#duplicates = mapping.duplicates;
    this.#path = path;
    this.#findings = findings;
  }

  /** Whether it is there, and not null. */
  isSet(name: string): boolean {
    return this.#take(name) !== null;
  }

  section(name: string): FieldReader {
    return new FieldReader(this.#take(name), this.#pathOf(name), this.#findings);
  }

  sections(name: string): readonly FieldReader[] {
    return (
      this.#list(name)?.map(
        (item, index) => new FieldReader(item, `${this.#pathOf(name)}[${index}]`, this.#findings),
      ) ?? []
    );
  }

  text(name: string, fallback = ''): string {
    const value = this.#take(name) ?? fallback;
    return typeof value === 'string' ? value : this.#refuse(name, value, 'must be a string', fallback);
  }

  /** Empty text is the fallback too. */
  filledText(name: string, fallback: string): string {
    return this.text(name) || fallback;
  }

  truth(name: string, fallback = false): boolean {
    const value = this.#take(name) ?? fallback;
    return typeof value === 'boolean' ? value : this.#refuse(name, value, 'must be true or false', fallback);
  }

  /** A 32-bit integer: signed, or unsigned on request. */
  integer(name: string, fallback = 0, kind: 'int32' | 'uint32' = 'int32'): number {
    const value = this.#take(name) ?? fallback;
    const [min, max] = kind === 'int32' ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    return this.#refuse(name, value, `must be an integer in the range [${min}, ${max}]`, fallback);
  }

  float32(name: string, fallback = 0): number {
    const value = this.#take(name) ?? fallback;
    if (typeof value !== 'number' || !Number.isFinite(value))
      return this.#refuse(name, value, 'must be a number', fallback);
    return isFloat32(value) ? value : this.#refuse(name, value, OUT_OF_FLOAT32, fallback);
  }

  /** Text in Go's syntax; with `integers` also a whole number of nanoseconds. Null when unset. */
  duration(name: string, integers: 'integers' | 'strings' = 'strings'): GoDuration | null {
    const value = this.#take(name);
    if (value === null) return null;
    if (integers === 'integers' && typeof value === 'number' && Number.isSafeInteger(value))
      return durationFromNanoseconds(BigInt(value));
    const parsed = typeof value === 'string' ? parseDuration(value) : null;
    return parsed ?? this.#refuse(name, value, 'must be a duration such as "30s", "1h5m" or "500ms"', null);
  }

  /** A Kubernetes resource quantity, such as `64Ki`, as text. */
  quantity(name: string): string {
    const value = this.#take(name) ?? '0';
    const text = typeof value === 'number' ? String(value) : value;
    if (typeof text === 'string' && isQuantity(text)) return text;
    return this.#refuse(name, value, 'must be a quantity such as "64Ki"', '0');
  }

  /** Null when unset, which is not the same as empty. */
  texts(name: string): readonly string[] | null {
    return (
      this.#list(name)?.map((item, index) =>
        typeof item === 'string' ? item : this.#refuse(`${name}[${index}]`, item, 'must be a string', ''),
      ) ?? null
    );
  }

  /** A map of names to truths; names set to null are left out. */
  truths(name: string): Readonly<Record<string, boolean>> {
    const reader = this.section(name);
    const entries = [...reader.#entries].filter(([, value]) => value !== null);
    const result = Object.fromEntries(entries.map(([key]): [string, boolean] => [key, reader.truth(key)]));
    for (const key of reader.#entries.keys()) reader.#known.add(key);
    reader.finish();
    return result;
  }

  /** Notes the fields nobody asked for, and those given twice. */
  finish(): void {
    for (const name of this.#entries.keys()) {
      if (!this.#known.has(name)) this.#findings.strict.push(`${this.#pathOf(name)}: unknown field`);
    }
    for (const name of this.#duplicates)
      this.#findings.strict.push(`${this.#pathOf(name)}: field is set twice, the last one counts`);
  }

  #list(name: string): readonly unknown[] | null {
    const value = this.#take(name);
    if (value === null || Array.isArray(value)) return value;
    return this.#refuse(name, value, 'must be a list', null);
  }

  #take(name: string): unknown {
    this.#known.add(name);
    return this.#entries.get(name) ?? null;
  }

  #refuse<T>(name: string, value: unknown, detail: string, fallback: T): T {
    this.#findings.fatal.push(invalid(this.#pathOf(name), value, detail));
    return fallback;
  }

  #pathOf(name: string): string {
    return `${this.#path}.${clip(name)}`;
  }
}
