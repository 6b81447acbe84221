import { isMapping, type Mapping } from '../../base/mapping.js';
import { FieldProblem, problemAt, TranslateError } from './errors.js';

/** An object may have as many problems as bytes. */
const MAX_PROBLEMS = 10;

/** Problems of one object: the first of them, and how many there are. */
class Problems {
  private readonly first: FieldProblem[] = [];
  private count = 0;

  add(make: () => FieldProblem): void {
    this.count++;
    if (this.first.length < MAX_PROBLEMS) this.first.push(make());
  }

  /** The count comes first, because the text about an object is cut at its end. */
  all(): readonly FieldProblem[] {
    const { count, first } = this;
    if (count === first.length) return first;
    return [new FieldProblem('', null, `${count} problems, of which these are the first`), ...first];
  }
}

/** What reading one object found. */
interface Findings {
  /** The object cannot be used. */
  readonly errors: Problems;
  /** An entry of it was left out. */
  readonly warnings: Problems;
  /** What stands in place of a text, list or mapping is not shown: it may be a credential in the wrong place. */
  readonly secret: boolean;
}

/**
 * Reads the fields of one mapping by name. Null and absent are the same. A field of the wrong type is noted with its path and value and
 * then counts as absent, so that one pass finds every problem. Paths are put together only when there is something to report.
 */
export class Fields {
  private constructor(
    private readonly mapping: Mapping,
    private readonly parent: Fields | null,
    private readonly segment: string,
    private readonly index: number | null,
    readonly findings: Findings,
  ) {}

  /** @throws TranslateError when the object is no mapping. */
  static of(object: unknown): Fields {
    if (!isMapping(object)) throw new TranslateError([problemAt('object', object ?? null, 'must be a mapping')]);
    return new Fields(object, null, '', null, { errors: new Problems(), warnings: new Problems(), secret: false });
  }

  /** The fields of an object that holds credentials. @throws TranslateError when the object is no mapping. */
  static ofSecret(object: unknown): Fields {
    if (!isMapping(object)) throw new TranslateError([new FieldProblem('', null, 'must be a mapping')]);
    return new Fields(object, null, '', null, { errors: new Problems(), warnings: new Problems(), secret: true });
  }

  /** @throws TranslateError when anything was wrong. @param service as there. */
  check(service: string | null = null): void {
    const problems = this.findings.errors.all();
    if (problems.length > 0) throw new TranslateError(problems, service);
  }

  /** Notes that the object cannot be used because of a field. */
  refuse(path: string, value: unknown, detail: string): void {
    this.findings.errors.add(() => problemAt(this.path(path), value, detail));
  }

  /** Notes that something else stands in place of a text, list or mapping. */
  private refuseType(path: string, value: unknown, detail: string): void {
    if (this.findings.secret) this.refuseSecret(path, detail);
    else this.refuse(path, value, detail);
  }

  /** Notes that an entry is left out. */
  warn(path: string, value: unknown, detail: string): void {
    this.findings.warnings.add(() => problemAt(this.path(path), value, detail));
  }

  /** Notes that the object cannot be used because of a field whose value must not be shown. */
  refuseSecret(path: string, detail: string): void {
    this.findings.errors.add(() => new FieldProblem(this.path(path), null, detail));
  }

  /** The names of the fields that are there. */
  names(): readonly string[] {
    return Object.keys(this.mapping);
  }

  /** The value as it was parsed; null when it is absent. */
  raw(name: string): unknown {
    return this.mapping[name] ?? null;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.mapping, name);
  }

  /** Whether the field is absent, null or an empty list. */
  lacks(name: string): boolean {
    const value = this.mapping[name] ?? null;
    return value === null || (Array.isArray(value) && value.length === 0);
  }

  string(name: string): string | null {
    const value = this.mapping[name] ?? null;
    if (value === null || typeof value === 'string') return value;
    this.refuseType(name, value, 'must be a string');
    return null;
  }

  /** Text that no message may show. */
  secretString(name: string): string | null {
    const value = this.mapping[name] ?? null;
    if (value === null || typeof value === 'string') return value;
    this.refuseSecret(name, 'must be a string');
    return null;
  }

  /** Text that must be there and not be empty; empty text after noting the problem otherwise. */
  requiredString(name: string): string {
    const value = this.string(name);
    if ((value === null && this.lacks(name)) || value === '') this.refuse(name, value, 'is required');
    return value ?? '';
  }

  /** One of `values`; absent and empty text are the fallback. */
  choice<T extends string>(name: string, values: readonly T[], fallback: T): T {
    const text = this.string(name);
    if (text === null || text === '') return fallback;
    for (const value of values) if (value === text) return value;
    this.refuse(name, text, `must be one of ${values.join(', ')}`);
    return fallback;
  }

  boolean(name: string): boolean | null {
    const value = this.mapping[name] ?? null;
    if (value === null || typeof value === 'boolean') return value;
    this.refuse(name, value, 'must be true or false');
    return null;
  }

  /** A whole number from `min` to `max`. */
  integer(name: string, min: number, max: number): number | null {
    const value = this.mapping[name] ?? null;
    if (value === null) return null;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    const kind = typeof value === 'number' && Number.isInteger(value) ? 'must be' : 'must be a whole number';
    this.refuse(name, value, `${kind} between ${min} and ${max}`);
    return null;
  }

  /** The mapping at `name`; an empty one when it is absent. */
  section(name: string): Fields {
    const value = this.mapping[name] ?? null;
    if (isMapping(value)) return new Fields(value, this, name, null, this.findings);
    if (value !== null) this.refuseType(name, value, 'must be a mapping');
    return new Fields(EMPTY, this, name, null, this.findings);
  }

  /** The mappings of a list; none when it is absent. */
  sections(name: string): readonly Fields[] {
    const list = this.list(name);
    const sections: Fields[] = [];
    for (let index = 0; index < list.length; index++) {
      const section = this.item(name, list, index);
      if (section !== null) sections.push(section);
    }
    return sections;
  }

  /** One mapping of the list at `name`; null when it is something else, which is noted. */
  item(name: string, list: readonly unknown[], index: number): Fields | null {
    const item = list[index];
    if (isMapping(item)) return new Fields(item, this, name, index, this.findings);
    this.refuseType(`${name}[${index}]`, item, 'must be a mapping');
    return null;
  }

  /** The texts of a list, each with its place in it; none when it is absent. */
  strings(name: string): readonly { readonly text: string; readonly at: string }[] {
    const list = this.list(name);
    const texts: { text: string; at: string }[] = [];
    for (let index = 0; index < list.length; index++) {
      const text = this.textAt(name, list, index);
      if (text !== null) texts.push({ text, at: `${name}[${index}]` });
    }
    return texts;
  }

  /** One text of the list at `name`; null when it is something else, which is noted. */
  textAt(name: string, list: readonly unknown[], index: number): string | null {
    const item = list[index];
    if (typeof item === 'string') return item;
    this.refuseType(`${name}[${index}]`, item, 'must be a string');
    return null;
  }

  list(name: string): readonly unknown[] {
    const value: unknown = this.mapping[name] ?? null;
    if (value === null) return NONE;
    if (Array.isArray(value)) return value;
    this.refuseType(name, value, 'must be a list');
    return NONE;
  }

  private path(name: string): string {
    const own = this.index === null ? this.segment : `${this.segment}[${this.index}]`;
    if (this.parent === null) return name;
    return this.parent.path(name === '' ? own : `${own}.${name}`);
  }
}

const EMPTY: Mapping = {};
const NONE: readonly unknown[] = [];
