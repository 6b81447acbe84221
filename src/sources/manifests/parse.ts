import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';
import { ExpansionBudget } from './expansion.js';
import type { Pacer } from './pacer.js';

/** One document of a file, counted from 1: its value, or why there is none. Empty documents have the value null. */
export type ParsedDocument =
  | { readonly number: number; readonly type: 'value'; readonly value: unknown }
  | { readonly number: number; readonly type: 'error'; readonly message: string };

/** Up to here a text that looks like JSON and is none may still be YAML; beyond, finding out would take seconds. */
const YAML_RETRY_CHARS = 1 << 20;

/** As kubectl reads manifests: merge keys, and `yes` and `on` are booleans. */
const SCHEMA = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag);

/**
 * Parses JSON or a stream of YAML documents, one by one, so that an error in one document leaves the others readable. Never throws.
 */
export async function* parseDocuments(text: string, pacer: Pacer): AsyncGenerator<ParsedDocument, void, void> {
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (/^\s*[{[]/.test(content)) {
    const parsed = parseJson(content);
    if (parsed.type === 'value' || content.length > YAML_RETRY_CHARS) {
      yield parsed;
      return;
    }
  }
  let number = 1;
  const budget = new ExpansionBudget();
  let line = 1;
  let counted = 0;
  for (const { start, end } of splitYaml(content)) {
    line += countNewlines(content, counted, start);
    counted = start;
    for (const document of parseYaml(content.slice(start, end), line, number, budget)) {
      number = document.number + 1;
      yield document;
    }
    if (pacer.due()) await pacer.rest();
  }
}

function parseJson(text: string): ParsedDocument {
  try {
    return { number: 1, type: 'value', value: JSON.parse(text) as unknown };
  } catch (error) {
    return { number: 1, type: 'error', message: `is no JSON: ${messageOf(error)}` };
  }
}

/** @param line of the text in its file. */
function parseYaml(text: string, line: number, number: number, budget: ExpansionBudget): readonly ParsedDocument[] {
  try {
    const values = loadAll(text, { schema: SCHEMA, maxTotalMergeKeys: 1000 + text.length / CHARS_PER_MERGED_KEY });
    const repeats = text.includes('*');
    return values.map((value, index) =>
      repeats && !budget.admits(value)
        ? { number: number + index, type: 'error', message: 'its aliases repeat more than twice what is written' }
        : { number: number + index, type: 'value', value },
    );
  } catch (error) {
    return [{ number, type: 'error', message: `is no YAML: ${describe(error, line)}` }];
  }
}

/** What merge keys copy is bounded by what is written, not by the square of it. */
const CHARS_PER_MERGED_KEY = 8;

function describe(error: unknown, line: number): string {
  if (!(error instanceof YAMLException)) return messageOf(error);
  return error.mark === undefined ? error.reason : `line ${line + error.mark.line}: ${error.reason}`;
}

function countNewlines(text: string, start: number, end: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', start); at >= 0 && at < end; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Lines that cannot be content of a document, wherever they are (YAML 1.2.2 §9.1.2): a document's start, and its end. */
const MARKER = /^(?:---|\.\.\.)(?=[ \t\r\n]|$)/gm;
const NO_CONTENT = /^(?:[ \t]*(?:#.*)?(?:\r?\n|$)|%.*(?:\r?\n|$)|\.\.\.[ \t]*(?:\r?\n|$))*$/;

/** Cuts a stream before each `---`. Comments and directives before a document's `---` belong to it. */
function splitYaml(text: string): readonly Range[] {
  const ranges: Range[] = [];
  let start = 0;
  /** Up to here there is nothing but preamble since `start`: not looked at again. */
  let seen = 0;
  const close = (end: number): void => {
    if (seen < end && !isPreamble(text, seen, end)) {
      ranges.push({ start, end });
      start = end;
    }
    seen = end;
  };
  for (const match of text.matchAll(MARKER)) {
    if (match[0] === '---') close(match.index);
    else close(endOfLine(text, match.index));
  }
  close(text.length);
  return ranges;
}

function endOfLine(text: string, from: number): number {
  const newline = text.indexOf('\n', from);
  return newline < 0 ? text.length : newline + 1;
}

const PREAMBLE_CHARS = 4096;

/** Whether there is no document between the two places. Long runs of comments count as one, which parses to nothing. */
function isPreamble(text: string, start: number, end: number): boolean {
  return end - start <= PREAMBLE_CHARS && NO_CONTENT.test(text.slice(start, end));
}
