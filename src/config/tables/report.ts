/** One thing that is wrong in a document, or worth a warning. Never holds a secret. */
export interface Report {
  readonly severity: 'error' | 'warning';
  /** Short and stable, such as `unknown-field`: what machines sort by. */
  readonly rule: string;
  /** `Kind.field.field[index]`; empty when it concerns the whole document. */
  readonly path: string;
  /** As it is shown; null where there is none or it is not for showing. */
  readonly value: string | null;
  readonly problem: string;
  /** What it should be; empty where the problem says it. */
  readonly expected: string;
}

/** `path: value: problem: should be …`. */
export function printReport({ path, value, problem, expected }: Report): string {
  return [path, value ?? '', problem, expected === '' ? '' : `should be ${expected}`]
    .filter((part) => part !== '')
    .join(': ');
}

/** In whose place a document of this program's own is refused: the words of Kubernetes' validation, by rule. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['type', 'Invalid value'],
  ['value', 'Invalid value'],
  ['required', 'Required value'],
  ['forbidden', 'Forbidden'],
  ['unsupported', 'Unsupported value'],
]);

/** As kube-proxy prints it: `path: Invalid value: value: problem`. */
export function printProblem({ rule, path, value, problem }: Report): string {
  return [path, REASONS.get(rule) ?? '', value ?? '', problem].filter((part) => part !== '').join(': ');
}

/** The rule of a warning that only another program can compile an expression: for this program's own use it is an error. */
export const UNCOMPILED = 'function';
