import type { NamesText } from './packed-names.js';

const NEWLINE = 0x0a;

/** The names, null for none; empty where none has one. */
export function unpackNames(packed: NamesText): readonly (string | null)[] {
  if (packed === '') return NO_NAMES;
  const [shared = '', ...rest] = packed.split('\n');
  return rest.map((own) => (own === '' ? null : shared + own));
}

/** The first of them. */
export function firstNames(packed: NamesText, count: number): readonly (string | null)[] {
  const [shared = '', ...rest] = packed.split('\n', count + 1);
  return rest.map((own) => (own === '' ? null : shared + own));
}

const NO_NAMES: readonly null[] = [];

/** Whether one of the names is this. Makes nothing but, where it may be, a text. */
export function hasName(packed: NamesText, name: string): boolean {
  const shared = packed.indexOf('\n');
  if (shared < 0 || name.length <= shared || !packed.startsWith(name.slice(0, shared))) return false;
  const own = `\n${name.slice(shared)}`;
  for (let at = packed.indexOf(own, shared); at >= 0; at = packed.indexOf(own, at + 1)) {
    const end = at + own.length;
    if (end === packed.length || packed.charCodeAt(end) === NEWLINE) return true;
  }
  return false;
}
