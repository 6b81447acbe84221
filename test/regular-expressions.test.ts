// Every regular expression of src/ and packages/ takes time in proportion to the text it meets, whatever that says.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { usually } from './support/extent.js';
import { parsedSource } from './support/parsed-source.js';

interface Found {
  readonly at: string;
  readonly pattern: RegExp;
}

function sources(): readonly string[] {
  return ['src', 'packages'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\/(?:test|browser)\//.test(name))
      .map((name) => join(folder, name)),
  );
}

/** The literals of the sources, each once, and the places where one is put together from text, which nobody could check here. */
function collect(): { readonly literals: readonly Found[]; readonly made: readonly string[] } {
  const literals = new Map<string, Found>();
  const made: string[] = [];
  for (const name of sources()) {
    const file = parsedSource(name, readFileSync(name, 'utf8'));
    const visit = (node: ts.Node): void => {
      const at = (): string => `${name}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`;
      if (ts.isRegularExpressionLiteral(node)) {
        const end = node.text.lastIndexOf('/');
        const pattern = new RegExp(node.text.slice(1, end), node.text.slice(end + 1).replace('g', ''));
        if (!literals.has(String(pattern))) literals.set(String(pattern), { at: at(), pattern });
      } else if (ts.isIdentifier(node) && node.text === 'RegExp' && !ts.isTypeNode(node.parent)) made.push(at());
      node.forEachChild(visit);
    };
    file.forEachChild(visit);
  }
  return { literals: [...literals.values()], made };
}

/** What a pattern is made of: its own characters and words, and some of what its classes hold. */
function piecesOf({ source }: RegExp): readonly string[] {
  const bare = source.replaceAll(/\\[dwsSDWbB]|\\x..|\\u....|\(\?[:=!]|\{[\d,]+\}/g, ' ').replaceAll('\\', '');
  const escape = source.includes('\\\\') ? ['\\'] : [];
  const words = bare.match(/[\w '"-]{3,}/g) ?? [];
  const characters = Array.from(bare).filter((character) => !words.some((word) => word.includes(character)));
  return [...new Set(['a', '0', ' ', '\n', ...escape, ...words, ...characters])].slice(0, usually(7, 14));
}

const LENGTH = 4000;
/** Of long units as well: enough for a fast processor to take several times the limit where each is looked at for each. */
const REPEATS = 1500;

/** Texts that make a pattern try the same part in many ways: a beginning, one piece or two over and over, and an end that fails. */
function* attacks(pattern: RegExp): Generator<string> {
  const pieces = piecesOf(pattern);
  const pump = (unit: string): string => unit.repeat(Math.max(REPEATS, Math.ceil(LENGTH / unit.length)));
  for (const one of pieces) {
    for (const other of ['', ...pieces]) {
      for (const body of [other + pump(one), pump(one + other)]) for (const end of ['', '\u0001']) yield body + end;
    }
  }
}

/** CPU milliseconds; the least of a few, as a test may be interrupted by a collection of garbage. */
function cost(pattern: RegExp, text: string): number {
  let least = Infinity;
  for (let round = 0; round < 4 && least > LIMIT_MS; round++) {
    const before = process.cpuUsage();
    pattern.exec(text);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** 4,000 characters take some microseconds once, and 10 ms or more if each is looked at 4,000 times. */
const LIMIT_MS = 3;

const { literals, made } = collect();

t.test('every regular expression takes linear time on any text', (t) => {
  t.ok(literals.length > 50, 'they were found');
  for (const { at, pattern } of literals) {
    let worst = { ms: 0, text: '' };
    for (const text of attacks(pattern)) {
      const ms = cost(pattern, text);
      if (ms > worst.ms) worst = { ms, text };
    }
    t.ok(worst.ms < LIMIT_MS, `${at} ${String(pattern)}`, { ms: worst.ms, text: worst.text.slice(0, 60) });
  }
  t.end();
});

t.test('the check for linear regular expressions finds others', (t) => {
  for (const pattern of [/^[\d./\s]*\d+\.\d+[\d./\s]*$/, /-----BEGIN-----[^]*?-----END-----/, /a+$/]) {
    const isFound = [...attacks(pattern)].some((text) => cost(pattern, text) > LIMIT_MS);
    t.ok(isFound, String(pattern));
  }
  t.end();
});

t.test('no regular expression is made from text at run time', (t) => {
  t.same(made, []);
  t.end();
});
