import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { projectFile } from './support/lab/agent.js';

const ROOT = projectFile('.');

/** Prose that the project has: tracked files, or all where there is no git. */
function pages(): readonly string[] {
  const list = execFileSync(
    'find',
    ['.', '-name', '*.md', '-not', '-path', '*/node_modules/*', '-not', '-path', './.*/*'],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  return list.split('\n').filter((path) => path !== '');
}

/** The anchors that a Markdown page has, as GitHub makes them of its headings. */
function anchors(text: string): ReadonlySet<string> {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}

t.test('Every relative link in the documentation leads to a file, and to a heading in it', (t) => {
  const wrong: string[] = [];
  const all = pages();
  for (const page of all) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [, path = '', anchor] of text.matchAll(/\]\(([^)#\s:]*)(?:#([^)\s]*))?\)/g)) {
      const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
      if (!existsSync(file)) wrong.push(`${page}: ${path}`);
      else if (anchor !== undefined && statSync(file).isFile() && !anchors(readFileSync(file, 'utf8')).has(anchor))
        wrong.push(`${page}: ${path}#${anchor}`);
    }
  }
  t.ok(all.length > 30, `${all.length} pages`);
  t.same(wrong, []);
  t.end();
});

t.test('Every page of docs is in its index, the pages of the runbook apart', (t) => {
  const index = readFileSync(projectFile('docs/README.md'), 'utf8');
  for (const page of pages()) {
    const [, name] = /^\.\/docs\/((?!runbook\/).+)$/.exec(page) ?? [];
    if (name !== undefined && name !== 'README.md') t.match(index, `(${name})`);
  }
  t.end();
});

t.test('The walks through the code name files that exist', (t) => {
  const text = readFileSync(projectFile('docs/develop/walks.md'), 'utf8');
  const named = [...text.matchAll(/`((?:src|packages|native|docs)\/[^`\s:]*)/g)].map(([, path = '']) => path);
  t.ok(named.length > 30, `${named.length} paths`);
  t.same(
    named.filter((path) => !existsSync(projectFile(path))),
    [],
  );
  t.end();
});
