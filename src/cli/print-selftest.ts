import type { OutputForm } from '../commands/shared-flags.js';
import { formatted } from '../serve/formatted.js';
import { columns } from './print-services.js';

/** What came of one thing that was tried, or why it was not. */
export interface SelftestRow {
  /** Such as `cluster IP`. */
  readonly what: string;
  /** `client`: in a network namespace of its own; `node`. */
  readonly from: string;
  readonly to: string;
  readonly protocol: 'TCP' | 'UDP' | null;
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly text: string;
  /** By which address the server sees the client; null: not known. */
  readonly source: string | null;
  readonly milliseconds: number | null;
  /** Whether it is what `explain` says; null: it was not asked. */
  readonly agrees: boolean | null;
}

/** In the form asked for. */
export function printSelftest(rows: readonly SelftestRow[], output: OutputForm | 'junit'): string {
  return output === 'junit' ? junit(rows) : formatted(rows, output, table);
}

const HEADER = ['RESULT', 'WHAT', 'FROM', 'TO', 'SOURCE SEEN', 'MS', ''];

function table(rows: readonly SelftestRow[]): readonly string[] {
  const count = (wanted: SelftestRow['result']): string =>
    `${rows.filter(({ result }) => result === wanted).length} ${wanted}`;
  return [...columns([HEADER, ...rows.map(cells)]), `${count('passed')}, ${count('failed')}, ${count('skipped')}`];
}

function cells(row: SelftestRow): readonly string[] {
  const { result, what, from, source, milliseconds, text } = row;
  return [result, what, from, destination(row), source ?? '', milliseconds?.toFixed(1) ?? '', text];
}

function destination({ to, protocol }: SelftestRow): string {
  return protocol === null ? '' : `${to}/${protocol}`;
}

/** As continuous integration reads it. */
function junit(rows: readonly SelftestRow[]): string {
  const failed = rows.filter(({ result }) => result === 'failed').length;
  const skipped = rows.filter(({ result }) => result === 'skipped').length;
  const head = `<testsuite name="pointsman selftest" tests="${rows.length}" failures="${failed}" skipped="${skipped}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', head, ...rows.map(testcase), '</testsuite>', ''].join('\n');
}

function testcase(row: SelftestRow): string {
  const { what, from, milliseconds, result, text } = row;
  const name = [what, destination(row), from === '' ? '' : `from ${from}`].filter((part) => part !== '').join(' ');
  const open = ` <testcase classname="selftest" name="${escaped(name)}" time="${((milliseconds ?? 0) / 1000).toFixed(4)}"`;
  if (result === 'passed') return `${open}/>`;
  const element = result === 'failed' ? 'failure' : 'skipped';
  return `${open}><${element} message="${escaped(text)}"/></testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** XML knows no control characters, escaped or not. */
function escaped(text: string): string {
  return text
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, '?');
}
