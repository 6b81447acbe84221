import { durationMilliseconds, parseDuration } from '../duration.js';
import type { Report } from './report.js';

/** What was read of a field: only what has the right type is there. */
export type Read = string | number | boolean | Section | readonly Read[];

export interface Entry {
  /** Null: it was not given, or is unreadable. */
  readonly read: Read | null;
  /** Whether something was written, be it wrong. */
  readonly given: boolean;
  /** The value as it may be shown. */
  readonly shown: string | null;
}

/** A mapping as its table reads it, defaults filled in: what rules look at. Wrong fields count as not there, as they have been reported. */
export class Section {
  constructor(
    readonly path: string,
    /** API version of the document. */
    readonly version: string,
    /** Minor release of Kubernetes that the document is for. */
    readonly release: number,
    private readonly entries: ReadonlyMap<string, Entry>,
    private readonly report: (report: Report) => void,
  ) {}

  names(): readonly string[] {
    return [...this.entries.keys()];
  }

  /** Whether the file says something of it that means something: not null, and no empty text, list or mapping. */
  has(name: string): boolean {
    const entry = this.entries.get(name);
    if (entry?.given !== true) return false;
    const { read } = entry;
    if (read === '' || (Array.isArray(read) && read.length === 0)) return false;
    return true;
  }

  /** Whether the file says something of it, be it an empty text. */
  isGiven(name: string): boolean {
    return this.entries.get(name)?.given === true;
  }

  /** What was read, of whatever type; null: it was not given, or is unreadable. */
  read(name: string): Read | null {
    return this.entries.get(name)?.read ?? null;
  }

  text(name: string): string {
    const read = this.entries.get(name)?.read;
    return typeof read === 'string' ? read : '';
  }

  /** Whether there is a text, be it empty. */
  isText(name: string): boolean {
    return typeof this.entries.get(name)?.read === 'string';
  }

  /** Of a quantity, which may be written as a number, too. */
  amount(name: string): string {
    const read = this.entries.get(name)?.read;
    return typeof read === 'string' || typeof read === 'number' ? String(read) : '';
  }

  number(name: string): number | null {
    const read = this.entries.get(name)?.read;
    return typeof read === 'number' ? read : null;
  }

  /** Whether there is true or false, be it by default. */
  isTruth(name: string): boolean {
    return typeof this.entries.get(name)?.read === 'boolean';
  }

  truth(name: string): boolean {
    return this.entries.get(name)?.read === true;
  }

  /** Of a duration, in milliseconds; null where there is none. */
  milliseconds(name: string): number | null {
    const duration = parseDuration(this.text(name));
    return duration === null ? null : durationMilliseconds(duration);
  }

  numbers(name: string): readonly number[] {
    return this.#list(name).filter((item) => typeof item === 'number');
  }

  texts(name: string): readonly string[] {
    return this.#list(name).filter((item) => typeof item === 'string');
  }

  /** Null where there is none and no default says anything of it. */
  section(name: string): Section | null {
    const read = this.entries.get(name)?.read;
    return read instanceof Section ? read : null;
  }

  /**
   * As {@link section}, where nothing was found wrong: of a mapping that the file does not have, the defaults.
   *
   * @throws TypeError when there is none.
   */
  inner(name: string): Section {
    const section = this.section(name);
    if (section === null) throw new TypeError(`${this.pathOf(name)} is no mapping`);
    return section;
  }

  sections(name: string): readonly Section[] {
    return this.#list(name).filter((item) => item instanceof Section);
  }

  /** A section within sections, by `a.b`. */
  within(names: string): Section | null {
    return names.split('.').reduce((at: Section | null, name) => at?.section(name) ?? null, this);
  }

  pathOf(name: string): string {
    return name === '' ? this.path : `${this.path}.${name}`;
  }

  refuse(rule: string, name: string, problem: string, expected = ''): void {
    this.#say('error', rule, name, problem, expected);
  }

  warn(rule: string, name: string, problem: string, expected = ''): void {
    this.#say('warning', rule, name, problem, expected);
  }

  #say(severity: Report['severity'], rule: string, name: string, problem: string, expected: string): void {
    const value = this.entries.get(name)?.shown ?? null;
    this.report({ severity, rule, path: this.pathOf(name), value, problem, expected });
  }

  #list(name: string): readonly Read[] {
    const read = this.entries.get(name)?.read;
    return Array.isArray(read) ? (read as readonly Read[]) : [];
  }
}
