import { printReport, type Report } from '../config/tables/report.js';

/** A report and where it is of. */
export interface Finding extends Report {
  readonly file: string;
  /** Counted from 1; null when it concerns the whole file. */
  readonly document: number | null;
  /** Counted from 1; null where it is not known. */
  readonly line: number | null;
}

/** Nobody reads more of one document, and a list of a million wrong entries is not to become a million lines. */
const MAX_FINDINGS = 200;

/** The findings of one document: the first of them, errors and warnings apart, and how many more there are. */
export class FindingList {
  readonly #shown: Finding[] = [];
  readonly #counts = { error: 0, warning: 0 };

  constructor(
    private readonly file: string,
    private readonly document: number | null,
  ) {}

  add(report: Report): void {
    if (++this.#counts[report.severity] <= MAX_FINDINGS)
      this.#shown.push({ ...report, file: this.file, document: this.document, line: null });
  }

  all(): readonly Finding[] {
    const more = (['error', 'warning'] as const).flatMap((severity): readonly Finding[] => {
      const count = this.#counts[severity] - MAX_FINDINGS;
      const problem = `and ${count} more ${severity}s in this document`;
      const { file, document } = this;
      return count <= 0
        ? []
        : [{ severity, rule: 'more', file, document, line: null, path: '', value: null, problem, expected: '' }];
    });
    return [...this.#shown, ...more];
  }
}

/** The first of many, and how many more there are. */
export function firstOf(findings: readonly Finding[], max: number, file: string): readonly Finding[] {
  const more = findings.slice(max);
  if (more.length === 0) return findings;
  const severity = more.some((finding) => finding.severity === 'error') ? 'error' : 'warning';
  const problem = `and ${more.length} more findings`;
  const place = { file, document: null, line: null, path: '' };
  const rest: Finding = { severity, rule: 'more', ...place, value: null, problem, expected: '' };
  return [...findings.slice(0, max), rest];
}

/** `file:line: document 1: error: path: value: problem: should be …`. */
export function printFinding({ file, document, line, ...report }: Finding): string {
  return [
    line === null ? file : `${file}:${line}`,
    ...(document === null ? [] : [`document ${document}`]),
    report.severity,
    printReport(report),
  ].join(': ');
}
