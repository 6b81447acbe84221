// How the documentation, and the texts in code that users see, are written: what can be counted. Budgets only fall; a text that needs more is written in other words.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import ts from 'typescript';
import { parsedSource } from './support/parsed-source.js';
import { projectFile } from './support/lab/agent.js';

const ROOT = projectFile('.');
const COLUMNS = 120;
const WORDS = 25;
const CELL = 30;

/** Terms of this project's past, in place of which the field has a word. */
const TERMS: Readonly<Record<string, RegExp>> = {
  'pending, not owed': /\b(?:owed|owes|debt)\b/gi,
  'quarantined, not set aside': /\bset aside\b/gi,
  'a noun, not somebody': /\b(?:some|no|any|every)body\b|\bwhoever\b/gi,
  'reported or notified, not told': /\b(?:is|are|was|were) told\b|\btells of\b|\bhears\b/gi,
  'unknown, not in doubt': /\b(?:in doubt|doubts?)\b/gi,
  'unexpected, not stray': /\bstrays?\b/gi,
  'observers, not followers': /\bfollowers\b/gi,
  'limitation, not shortfall': /\bshortfalls?\b/gi,
  'probe, not glance': /\bglances?\b/gi,
  'offending, not culprit': /\bculprits?\b/gi,
  'access control, not door': /\bdoors?\b/gi,
  'load balancer, not balancer': /(?<!\bload[ -])(?<!^\s*)\bbalancers?\b/gi,
};

/** Of texts in code: a program does not speak, it reports. */
const SPEECH: Readonly<Record<string, RegExp>> = {
  'quarantined, not aside': /\baside\b/gi,
  'reports or receives, not says, tells or hears': /\b(?:says?|said|tells?|told|heard|hears)\b/gi,
};

const BUDGET = {
  cells: 0,
  lines: 0,
  terms: 0,
  sentences: 0,
  textTerms: 0,
  textSentences: 0,
};

/** Begins that refer to a title before, or to nothing, or are a clause: a failure is read alone in a log. */
const DEPENDENT =
  /^(?:so (?:is|are|was|does|do|it)|its?(?!-\d)|they|them|their|nor|neither|and|also|then|the same|one (?:that|of)|(?:some|no|any|every)body|what|who|whoever)\b/i;

/** Words that make a title a riddle in a log: those of this project alone, and persons where a thing acts. */
const RIDDLES: readonly RegExp[] = [
  ...Object.values(TERMS),
  /\b(?:told|tells?|said|hears?|whom|ours|let go of|made up for|looked at)\b/i,
  /\b(?:what|who) (?:is|are|was|were)\b/i,
];

interface Line {
  readonly at: string;
  readonly text: string;
}

/** What Markdown pages say: code and pictures are left out, tables are in it if asked for. */
function lines({ tables }: { readonly tables: boolean }): readonly Line[] {
  const find = [
    '.',
    '-name',
    '*.md',
    '-not',
    '-path',
    '*/node_modules/*',
    '-not',
    '-path',
    './.*/*',
    '-not',
    '-path',
    './build/*',
  ];
  const pages = execFileSync('find', find, { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '');
  return pages.sort().flatMap((page) => {
    let isFenced = false;
    return readFileSync(join(ROOT, page), 'utf8')
      .split('\n')
      .flatMap((text, index): readonly Line[] => {
        if (text.trimStart().startsWith('```')) isFenced = !isFenced;
        const isTable = /^\s*\|/.test(text);
        const isProse = !isFenced && (isTable ? tables : !/^(?: {4}|!|<|```)/.test(text));
        return isProse ? [{ at: `${page.slice(2)}:${index + 1}`, text }] : [];
      });
  });
}

const LINES = lines({ tables: false });

/** No more than the budget, which is lowered when there are fewer. */
function holds(t: Test, found: readonly string[], budget: number): void {
  t.ok(found.length <= budget, `${found.length} of ${budget}`, { found: found.slice(0, 40) });
}

t.test('Lines of prose end at 120 columns', (t) => {
  holds(
    t,
    LINES.filter(({ text }) => text.length > COLUMNS).map(({ at }) => at),
    BUDGET.lines,
  );
  t.end();
});

t.test('Prose and tables use the terms of the field', (t) => {
  const found = lines({ tables: true }).flatMap(({ at, text }) => {
    const words = text.replaceAll(/`[^`]*`/g, '').replaceAll(/\]\([^)]*\)/g, ']');
    return Object.entries(TERMS).flatMap(([rule, term]) =>
      (words.match(term) ?? []).map((word) => `${at}: ${word} (${rule})`),
    );
  });
  holds(t, found, BUDGET.terms);
  t.end();
});

t.test('Sentences have at most 25 words', (t) => {
  const paragraphs: Line[] = [];
  let isOpen = false;
  for (const { at, text } of LINES) {
    const begins = /^\s*(?:[-*]|\d+\.)\s/.test(text);
    const last = paragraphs.at(-1);
    if (text.trim() === '' || text.startsWith('#')) isOpen = false;
    else if (isOpen && !begins && last !== undefined)
      paragraphs[paragraphs.length - 1] = { at: last.at, text: `${last.text} ${text.trim()}` };
    else {
      paragraphs.push({ at, text: text.replace(/^\s*(?:[-*]|\d+\.)\s+/, '') });
      isOpen = true;
    }
  }
  const found = paragraphs.flatMap(({ at, text }) =>
    longSentences(text.replaceAll(/`[^`]*`/g, 'code').replaceAll(/\]\([^)]*\)/g, ']')).map(
      (words) => `${at}: ${words} words`,
    ),
  );
  holds(t, found, BUDGET.sentences);
  t.end();
});

t.test('Cells of tables have at most 30 words', (t) => {
  const found = lines({ tables: true })
    .filter(({ text }) => /^\s*\|/.test(text))
    .flatMap(({ at, text }) =>
      text
        .replaceAll(/`[^`]*`/g, 'code')
        .replaceAll(/\]\([^)]*\)/g, ']')
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().split(/\s+/).length)
        .filter((words) => words > CELL)
        .map((words) => `${at}: ${words} words`),
    );
  holds(t, found, BUDGET.cells);
  t.end();
});

/** How many words each sentence has that has too many. */
function longSentences(text: string): readonly number[] {
  return text
    .split(/(?<=[.:;?!])\s+/)
    .map((sentence) => sentence.split(/\s+/).length)
    .filter((words) => words > WORDS);
}

/** A literal or a template, or several that are added up; what is filled in counts as a word. Undefined: something else. */
function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) return node.text;
  if (ts.isParenthesizedExpression(node)) return textOf(node.expression);
  if (ts.isTemplateExpression(node)) {
    const spans = node.templateSpans.map(
      ({ expression, literal }) => `${textOf(expression) ?? 'value'}${literal.text}`,
    );
    return `${node.head.text}${spans.join('')}`;
  }
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  return left === undefined && right === undefined ? undefined : `${left ?? 'value'}${right ?? 'value'}`;
}

/** Texts in the code of the product: literals and templates with a space between words, which leaves out names and keys. */
function codeTexts(): readonly Line[] {
  const files = execFileSync('find', ['src', 'packages', '-name', '*.ts', '-o', '-name', '*.tsx'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => /^(?:src|packages\/[^/]+\/(?:src|browser))\//.test(path) && !path.includes('/node_modules/'));
  return files.sort().flatMap((file) => {
    const source = parsedSource(file, readFileSync(join(ROOT, file), 'utf8'));
    const found: Line[] = [];
    const visit = (node: ts.Node, isInText: boolean): void => {
      const text = textOf(node);
      if (!isInText && text !== undefined && /\S\s+\S/.test(text)) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        found.push({ at: `${file}:${line + 1}`, text });
      }
      ts.forEachChild(node, (child) => {
        visit(child, text !== undefined && textOf(child) !== undefined);
      });
    };
    visit(source, false);
    return found;
  });
}

t.test('Texts in code use the terms of the field, in sentences of at most 25 words', (t) => {
  const texts = codeTexts();
  t.ok(texts.length > 2000, `${texts.length} texts`);
  const terms = texts.flatMap(({ at, text }) =>
    Object.entries({ ...TERMS, ...SPEECH }).flatMap(([rule, term]) =>
      (text.match(term) ?? []).map((word) => `${at}: ${word} (${rule})`),
    ),
  );
  holds(t, terms, BUDGET.textTerms);
  const sentences = texts.flatMap(({ at, text }) =>
    longSentences(text.replaceAll(/`[^`]*`/g, 'code').replaceAll(/\n\s*/g, '. ')).map(
      (words) => `${at}: ${words} words`,
    ),
  );
  holds(t, sentences, BUDGET.textSentences);
  t.end();
});

/** Titles of tests, also of those in another test. */
function titles(): readonly Line[] {
  const find = [
    'test',
    'packages',
    '-name',
    '*.ts',
    '-not',
    '-path',
    '*/node_modules/*',
    '-not',
    '-path',
    '*/browser/*',
  ];
  const files = execFileSync('find', find, { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '');
  return files.sort().flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    return [...text.matchAll(/^ *(?:await |void )?t\.(?:test|skip)\(\s*(['"`])(.+?)\1,/gm)].map(
      ({ 2: title = '' }) => ({
        at: file,
        text: title,
      }),
    );
  });
}

t.test('Titles of tests stand alone in a log', (t) => {
  const all = titles();
  t.ok(all.length > 1000, `${all.length} titles`);
  const isRiddle = (text: string): boolean =>
    DEPENDENT.test(text) || RIDDLES.some((riddle) => text.search(riddle) >= 0);
  t.same(
    all.filter(({ text }) => isRiddle(text)).map(({ at, text }) => `${at}: ${text}`),
    [],
  );
  t.end();
});
