/** One thing that is wrong with an object. As text: `path: value: detail`. */
export class FieldProblem {
  constructor(
    /** Empty where it is the whole object. */
    readonly path: string,
    /** As it is shown, cut to a bearable length and containers named only; null where there is none or it is not for showing. */
    readonly value: string | null,
    readonly detail: string,
  ) {}

  toString(): string {
    return [this.path, this.value ?? '', this.detail].filter((part) => part !== '').join(': ');
  }
}

/** An API object that cannot be used: every problem found. */
export class TranslateError extends Error {
  override readonly name = 'TranslateError';
  readonly code = 'SOURCE_INVALID_OBJECT';
  readonly problems: readonly FieldProblem[];

  /** @param service name of the Service that the object is of, in its namespace; null: none, or it is not known. */
  constructor(
    problems: readonly FieldProblem[],
    readonly service: string | null = null,
  ) {
    // It is about the object, not about where in the code it was read; and a list may hold a thousand such objects, whose stacks would take most of the time.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(problems.join('; '));
    Error.stackTraceLimit = stackTraceLimit;
    this.problems = problems;
  }
}

const MAX_VALUE_LENGTH = 100;

export function problemAt(path: string, value: unknown, detail: string): FieldProblem {
  return new FieldProblem(path, printValue(value), detail);
}

function printValue(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value);
  }
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a mapping' : String(value);
}
