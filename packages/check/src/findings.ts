import { printReport, type Report } from '../../../src/config/tables/report.js';

/** A report and where it is of. */
export interface Finding extends Report {
  readonly file: string;
  /** Counted from 1; null when it concerns the whole file, or an object of a list that an API server gave. */
  readonly document: number | null;
  /** Counted from 1; null where it is not known. */
  readonly line: number | null;
}

/** More findings of one document are of no use to a reader, and a list of a million wrong entries must not become a million lines. */
const MAX_FINDINGS = 200;

/** The findings of one document: the first of them, errors and warnings apart, and how many more there are. */
export class FindingList {
  readonly #shown: Finding[] = [];
  readonly #counts = { error: 0, warning: 0 };

  constructor(
    readonly file: string,
    private readonly document: number | null,
  ) {}

  add(report: Report): void {
    if (++this.#counts[report.severity] <= MAX_FINDINGS)
      this.#shown.push({ ...report, file: this.file, document: this.document, line: null });
  }

  all(): readonly Finding[] {
    const more = (['error', 'warning'] as const).flatMap((severity): readonly Finding[] => {
      const count = this.#counts[severity] - MAX_FINDINGS;
      const { file, document } = this;
      const problem = `and ${count} more ${severity}s${document === null ? '' : ' in this document'}`;
      return count <= 0 ? [] : [{ ...ofFile(severity, 'more', file, problem), document }];
    });
    return [...this.#shown, ...more];
  }
}

/** The first of many, and how many more there are. */
export function firstOf(findings: readonly Finding[], max: number, file: string): readonly Finding[] {
  const more = findings.slice(max);
  if (more.length === 0) return findings;
  const severity = more.some((finding) => finding.severity === 'error') ? 'error' : 'warning';
  return [...findings.slice(0, max), ofFile(severity, 'more', file, `and ${more.length} more findings`)];
}

const WITHIN = ', ConfigMap ';

/** The name of a file that a ConfigMap in a file holds. */
export function heldFile(file: string, name: string, key: string): string {
  return `${file}${WITHIN}${name}, key ${key}`;
}

/** The file in which it is held, where it is. */
export function outerFile(file: string): string {
  return file.split(WITHIN)[0] ?? file;
}

/** A finding on the whole of a file. */
export function ofFile(severity: Finding['severity'], rule: string, file: string, problem: string): Finding {
  return { severity, rule, file, document: null, line: null, path: '', value: null, problem, expected: '' };
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
