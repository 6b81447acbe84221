import { messageOf } from '../../base/error-message.js';
import { ExpansionBudget, readYaml, YamlError } from '../../base/yaml.js';
import { yamlLibrary, type YamlLibrary } from '../../base/yaml-library.js';
import type { Pacer } from './pacer.js';
import { YamlThread } from './yaml-thread.js';

/** One document of a file, counted from 1: its value, or why there is none. Empty documents have the value null. */
type ParsedDocument =
  | { readonly number: number; readonly type: 'value'; readonly value: unknown }
  | { readonly number: number; readonly type: 'error'; readonly message: string };

/** Up to here a text that looks like JSON and is none may still be YAML; beyond, finding out would take seconds. */
const YAML_RETRY_CHARS = 1 << 20;
/** YAML takes ten to fifty times as long as JSON. */
const MAX_YAML_CHARS = 16 << 20;
/** As many documents as this holds are parsed in one go: a call of the parser costs as much as some hundred characters. */
const TOGETHER_CHARS = 1 << 15;
/** Finding out what is wrong with a document takes far longer than reading it: after so many the rest of a file is not looked at. */
const MAX_BROKEN = 1000;
/** A larger document is parsed in a thread of its own: this one takes a tenth of a second at worst. */
const MAX_CHARS_HERE = 1 << 17;

/**
 * Parses JSON or a stream of YAML documents, one by one, so that an error in one document leaves the others readable.
 *
 * @throws Error when it was stopped.
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
  if (content.length > MAX_YAML_CHARS) {
    yield refusal(1, `is YAML of more than ${MAX_YAML_CHARS} characters: give it as JSON, or in several files`);
    return;
  }
  const parser = new YamlParser(content, pacer);
  try {
    yield* parser.documents();
  } finally {
    await parser.close();
  }
}

function parseJson(text: string): ParsedDocument {
  try {
    return { number: 1, type: 'value', value: JSON.parse(text) as unknown };
  } catch (error) {
    return refusal(1, `is no JSON: ${messageOf(error)}`);
  }
}

/** Manifests that were YAML once are so again when they change, which is not the time to load it anew: from the first on it stays. */
let kept: YamlLibrary | null = null;

/** Parses the documents of one file. */
class YamlParser {
  private budget = new ExpansionBudget();
  private readonly thread: YamlThread;
  /** The number of the next document. */
  private number = 1;
  /** The line of the file, at `counted`. */
  private line = 1;
  private counted = 0;
  private broken = 0;

  constructor(
    private readonly content: string,
    private readonly pacer: Pacer,
  ) {
    kept ??= yamlLibrary();
    this.thread = new YamlThread(pacer.stopped);
  }

  async *documents(): AsyncGenerator<ParsedDocument, void, void> {
    // The last is the next one.
    const groups = [...grouped(this.content, splitYaml(this.content))].reverse();
    for (let ranges = groups.pop(); ranges !== undefined; ranges = groups.pop()) {
      if (this.pacer.due()) await this.pacer.rest();
      const parsed = ranges.length > 1 ? this.parseTogether(ranges) : await this.parse(ranges);
      if (parsed === null) {
        // One of them is broken: finding it by halves reads the others a few times, not each on its own.
        const middle = ranges.length >> 1;
        groups.push(ranges.slice(middle), ranges.slice(0, middle));
        continue;
      }
      for (const document of parsed) {
        this.number = document.number + 1;
        yield document;
      }
      if (this.broken < MAX_BROKEN) continue;
      yield refusal(this.number, `is not read, like all after it: ${MAX_BROKEN} documents before it are no YAML`);
      return;
    }
  }

  /** What stands in these ranges, without aliases; null where something is wrong with one. */
  private parseTogether(ranges: readonly Range[]): readonly ParsedDocument[] | null {
    try {
      const values = readYaml(this.textOf(ranges), this.budget);
      return values.length === ranges.length ? this.numbered(values) : null;
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      return null;
    }
  }

  /** The documents of one range. */
  private async parse(ranges: readonly Range[]): Promise<readonly ParsedDocument[]> {
    const start = ranges[0]?.start ?? 0;
    this.line += countNewlines(this.content, this.counted, start);
    this.counted = start;
    try {
      return this.numbered(await this.read(this.textOf(ranges), this.line));
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      this.broken++;
      return [refusal(this.number, error.line === null ? error.message : `is no YAML: ${error.message}`)];
    }
  }

  private textOf(ranges: readonly Range[]): string {
    return this.content.slice(ranges[0]?.start, ranges.at(-1)?.end);
  }

  private numbered(values: readonly unknown[]): readonly ParsedDocument[] {
    return values.map((value, index) => ({ number: this.number + index, type: 'value', value }));
  }

  close(): Promise<void> {
    return this.thread.close();
  }

  private async read(text: string, firstLine: number): Promise<readonly unknown[]> {
    if (text.length <= MAX_CHARS_HERE) return readYaml(text, this.budget, undefined, firstLine);
    const { values, free } = await this.thread.parse({ text, firstLine, free: this.budget.remaining });
    this.budget = new ExpansionBudget(free);
    return values;
  }
}

function refusal(number: number, message: string): ParsedDocument {
  return { number, type: 'error', message };
}

function countNewlines(text: string, start: number, end: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', start); at >= 0 && at < end; at = text.indexOf('\n', at + 1)) count++;
  return count;
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

/** Neighbours that are parsed together: small ones without aliases, whose repetitions are judged document by document. */
function* grouped(text: string, ranges: readonly Range[]): Generator<readonly Range[], void, void> {
  let group: Range[] = [];
  let star = text.indexOf('*');
  for (const range of ranges) {
    if (star >= 0 && star < range.start) star = text.indexOf('*', range.start);
    const mayJoin = star < 0 || star >= range.end;
    const start = group[0]?.start ?? range.start;
    if (group.length > 0 && (!mayJoin || range.end - start > TOGETHER_CHARS)) {
      yield group;
      group = [];
    }
    group.push(range);
    if (mayJoin) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
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
