/** An API object that cannot be used: every problem found, each naming its field path and value. */
export class TranslateError extends Error {
  override readonly name = 'TranslateError';
  readonly code = 'SOURCE_INVALID_OBJECT';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    // It is about the object, not about where in the code it was read; and a list may hold a thousand such objects, whose stacks would take most of the time.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(problems.join('; '));
    Error.stackTraceLimit = stackTraceLimit;
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
