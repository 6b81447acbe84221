import type { RE2JS } from 're2js';

/**
 * A regular expression that configuration names. Syntax and meaning are RE2's (https://github.com/google/re2/wiki/Syntax), as CEL requires, and its time grows
 * linearly with the text. JavaScript's own engine backtracks, and reads `\A` as the letter A.
 */
export interface RegularExpression {
  /** Whether a part of the text matches. @throws Error when that takes too many steps. */
  matches(text: string): boolean;
}

/** A pattern was met before {@link loadRegularExpressions} was called. */
export class RegularExpressionsNeeded extends Error {}

/** Instructions of the pattern times units of the text: some 50 ms of CPU time at most. */
const MAX_STEPS = 1 << 21;
/** Instructions, at most, of a pattern that comes with a request: compiling it costs in proportion. */
const MAX_UNKNOWN_SIZE = 1024;

let engine: typeof RE2JS | null = null;

/** Loads the library, which is a file of its own: only a process whose configuration has such an expression holds it. */
export async function loadRegularExpressions(): Promise<void> {
  engine ??= (await import('re2js')).RE2JS;
}

/** Reads a configuration file, and again with the library loaded if it needs that. @param warn gets each warning once. */
export async function withRegularExpressions<T>(
  read: (warn: (problem: string) => void) => T,
  warn: (problem: string) => void,
): Promise<T> {
  if (engine !== null) return read(warn);
  const warnings: string[] = [];
  try {
    const made = read((problem) => warnings.push(problem));
    warnings.forEach(warn);
    return made;
  } catch (error) {
    if (error instanceof RegularExpressionsNeeded) await loadRegularExpressions();
    // Read again, it warns and fails as it would have.
    return read(warn);
  }
}

/** @throws Error that says what is wrong with the pattern; RegularExpressionsNeeded. */
export function compileRegularExpression(pattern: string): RegularExpression {
  if (engine === null) throw new RegularExpressionsNeeded('regular expressions are not loaded');
  const compiled = engine.compile(pattern);
  const size = compiled.programSize();
  return {
    matches: (text) => {
      if (size * text.length > MAX_STEPS) throw new Error('the regular expression takes too many steps for this text');
      return compiled.test(text);
    },
  };
}

/** The same for a pattern that a client may have written: one that could be large is refused before it is compiled. */
export function compileUnknown(pattern: string): RegularExpression {
  if (sizeAtMost(pattern) > MAX_UNKNOWN_SIZE) throw new Error('the regular expression is too large');
  return compileRegularExpression(pattern);
}

/** Repetitions may be nested, so their counts multiply. */
function sizeAtMost(pattern: string): number {
  let size = pattern.length;
  for (const [, least = '', most = ''] of pattern.matchAll(/\{(\d{1,9})(?:,(\d{0,9}))?\}/g))
    size *= Math.max(1, Number(least), Number(most));
  return size;
}
