// Commands in the documentation: each is extracted from its page and checked against the program that runs it. Those that
// need no cluster are run by test/kernel/documented-commands.thorough.ts.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandOf, parseCommand } from '../src/commands/command-line.js';
import { parseGiven } from '../src/commands/given.js';
import { messageOf } from '../src/base/error-message.js';
import { parseCommandLine } from '../src/config/flags.js';
import { documentedCommands, type DocumentedCommand } from './support/documented-commands.js';
import { projectFile } from './support/lab/agent.js';

const ROOT = projectFile('.');
const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};
const ALL = documentedCommands();
const of = (program: string): readonly DocumentedCommand[] => ALL.filter(({ words }) => words[0] === program);

/** What the program would say to the command line; null: it would take it. */
function problemOf(argv: readonly string[]): string | null {
  try {
    const command = commandOf(argv);
    if (command?.needs === null) {
      const given = parseGiven(command, argv.slice(1));
      return typeof given === 'string' ? given : null;
    }
    if (command === null) parseCommandLine(argv);
    else parseCommand(command, argv);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

t.test('Command lines of pointsman in the documentation parse', (t) => {
  const lines = of('pointsman').filter(({ words }) => !/^[\d—]/.test(words[1] ?? '') && !words.includes('flags'));
  const wrong = lines.flatMap(({ at, isWhole, words: [, ...argv] }) => {
    const forms = [argv, argv.filter((word) => word !== '…'), ...(isWhole ? [] : [[...argv, 'VALUE']])];
    return forms.some((form) => problemOf(form) === null)
      ? []
      : [`${at}: pointsman ${argv.join(' ')}: ${problemOf(argv) ?? ''}`];
  });
  t.ok(lines.length > 100, `${lines.length} command lines`);
  t.same(wrong, []);
  t.ok(problemOf(['status', '--form', 'json']), 'an unknown flag is found');
  t.ok(problemOf(['stats']), 'an unknown command is found');
  t.end();
});

t.test('npm scripts in the documentation exist', (t) => {
  const runs = of('npm').filter(({ words: [, verb, name] }) => verb === 'run' && name !== undefined);
  const wrong = runs.filter(({ words: [, , name = ''] }) => scripts[name] === undefined);
  t.ok(runs.length > 20, `${runs.length} scripts`);
  t.same(wrong, []);
  t.end();
});

t.test('Files that commands in the documentation name exist', (t) => {
  const named = ALL.flatMap(({ at, words }) =>
    words
      .filter((word) => /^(?:\.build|deploy|demo|test|bench|src|packages)\/[\w./-]+$/.test(word))
      .map((word) => ({ at, file: word.replace(/^\.build\/(.*)\.js$/, '$1.ts') })),
  );
  t.ok(named.length > 20, `${named.length} files`);
  t.same(
    named.filter(({ file }) => !existsSync(join(ROOT, file))),
    [],
  );
  t.end();
});

t.test('Pages that curl asks for in the documentation are served', (t) => {
  const sources = ['healthz', 'metrics-server'].map((name) =>
    readFileSync(projectFile(`src/serve/${name}.ts`), 'utf8'),
  );
  const paths = of('curl').flatMap(({ at, words }) =>
    words.flatMap((word) => {
      const [, path] = /:102(?:49|56)(\/[^\s?'"]*)/.exec(word) ?? [];
      return path === undefined ? [] : [{ at, path }];
    }),
  );
  t.ok(paths.length > 8, `${paths.length} requests`);
  t.same(
    paths.filter(({ path }) => !sources.some((source) => source.includes(`'${path}'`))),
    [],
  );
  t.end();
});
