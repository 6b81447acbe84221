import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';
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
  for (const { start, end } of splitYaml(content)) {
    for (const document of parseYaml(content, start, end, number)) {
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

function parseYaml(text: string, start: number, end: number, number: number): readonly ParsedDocument[] {
  try {
    const values = loadAll(text.slice(start, end), { schema: SCHEMA });
    return values.map((value, index) => ({ number: number + index, type: 'value', value }));
  } catch (error) {
    return [{ number, type: 'error', message: `is no YAML: ${describe(error, text, start)}` }];
  }
}

function describe(error: unknown, text: string, start: number): string {
  if (!(error instanceof YAMLException)) return messageOf(error);
  if (error.mark === undefined) return error.reason;
  const line = text.slice(0, start).split('\n').length + error.mark.line;
  return `line ${line}: ${error.reason}`;
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
  const close = (end: number): void => {
    if (start < end && !isPreamble(text, start, end)) {
      ranges.push({ start, end });
      start = end;
    }
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
