/** An API object that cannot be used: every problem found, each naming its field path and value. */
export class TranslateError extends Error {
  override readonly name = 'TranslateError';
  readonly code = 'SOURCE_INVALID_OBJECT';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

const MAX_VALUE_LENGTH = 100;

/** `path: value: detail`, the value cut to a bearable length and containers named only. */
export function problemAt(path: string, value: unknown, detail: string): string {
  return `${path}: ${printValue(value)}: ${detail}`;
}

function printValue(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value);
  }
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a mapping' : String(value);
}
