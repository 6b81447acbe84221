// What the tables of commands come to: help, man pages, completion, the command reference. What parses and what is printed are one table.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { mostSimilar } from '../../src/base/similar.js';
import { about as aboutCommands } from '../../src/commands/about.js';
import { helpOf } from '../../src/commands/entry.js';
import { flagGroups } from '../../src/commands/groups.js';
import { flagNames } from '../../src/commands/help.js';
import { commandNamed, COMMAND_NAMES, COMMANDS } from '../../src/commands/table.js';
import { FLAGS } from '../../src/config/flag-table.js';
import { parseWords } from '../../src/config/flags.js';
import type { Flag } from '../../src/config/flag.js';
import { projectFile } from '../support/lab/agent.js';

type Outcome = ReturnType<typeof aboutCommands>;

const about = (name: 'help' | 'completion' | 'man', argv: readonly string[]): Outcome => {
  const spec = commandNamed(name);
  if (spec === null) throw new Error(name);
  return aboutCommands(spec, argv, COMMANDS);
};

const printed = (command: 'help' | 'completion' | 'man', ...argv: readonly string[]): string => {
  const { stdout, stderr, status } = about(command, argv);
  t.same([stderr, status], ['', 0], [command, ...argv].join(' '));
  return stdout;
};

const flagsOf = ({ flags, proxyFlags }: (typeof COMMANDS)[number]): readonly Flag[] => [
  ...flags,
  ...(proxyFlags?.taken ?? []),
];

/** A value that a flag takes. */
function valueOf({ type, value = '' }: Flag): string {
  if (type === 'bool') return 'true';
  if (type === 'int32' || type === 'float32') return '1';
  if (type === 'duration') return '1s';
  if (type === 'address' || type === 'address-port') return '127.0.0.1';
  if (type === 'gates') return 'A=true';
  if (type === 'vmodule') return 'a=1';
  if (type === 'quantity') return '1Ki';
  return value.split('|')[0] ?? '';
}

t.test('every command has help of at most 80 columns, with examples first, and every flag in it parses', (t) => {
  for (const command of COMMANDS) {
    const text = helpOf(command.name);
    t.equal(text, printed('help', command.name));
    t.match(
      text,
      new RegExp(`^Usage: pointsman ${command.name} [^]*\nExamples:\n[^]*\nFlags:\n[^]*\nExit status:\n  0 `),
    );
    t.same(
      text.split('\n').filter((line) => line.length > 80),
      [],
      command.name,
    );
    t.ok(text.split('\n').length <= 60, `${command.name} is short`);
    for (const flag of command.flags) t.ok(text.includes(flagNames(flag)), flag.name);
    for (const flag of flagsOf(command)) {
      const argv = [`--${flag.name}=${valueOf(flag)}`];
      t.ok(parseWords(flagsOf(command), argv, command.name).given.has(flag.name), `${command.name} ${argv.join(' ')}`);
    }
    for (const { line } of command.examples) t.match(line, /pointsman/, line);
  }
  t.end();
});

t.test('the flags of the proxy are grouped, each in one group that has a name', (t) => {
  const groups = flagGroups();
  t.notOk(groups.some(({ title }) => title === 'Other'));
  t.same(groups.flatMap(({ flags }) => flags.map(({ name }) => name)).sort(), FLAGS.map(({ name }) => name).sort());
  const text = printed('help', 'flags');
  for (const flag of FLAGS) t.ok(text.includes(flagNames(flag)), flag.name);
  const all = helpOf(null);
  for (const { name } of COMMANDS) t.match(all, `\n  ${name} `);
  t.ok(all.includes(text), '--help without a command has them all');
  t.same(
    all.split('\n').filter((line) => line.length > 80),
    [],
  );
  t.end();
});

t.test('the overview names every command, and an unknown command gets a suggestion', (t) => {
  const overview = printed('help');
  for (const { name } of COMMANDS) t.match(overview, `\n  ${name} `);
  t.ok(overview.split('\n').length < 45, 'on one screen');
  t.match(about('help', ['explian']), {
    status: 2,
    stdout: '',
    stderr: /there is no command "explian"; did you mean "explain"\?/,
  });
  t.match(about('completion', ['tcsh']), { status: 2, stderr: /completion is for bash, zsh, fish, kubectl/ });
  t.match(about('help', ['--all']), { status: 2, stderr: /^unknown flag: --all/ });
  t.match(printed('help', 'exit-status'), /^status\n {2}0 {2}/);
  t.equal(mostSimilar('stauts', COMMAND_NAMES), 'status', 'swapped letters');
  t.equal(mostSimilar('ui', COMMAND_NAMES), 'ui');
  t.equal(mostSimilar('xy', COMMAND_NAMES), null);
  t.equal(mostSimilar('p'.repeat(100_000), COMMAND_NAMES), null);
  t.end();
});

t.test('docs/commands.md matches the flag tables', (t) => {
  const page = readFileSync(projectFile('docs/commands.md'), 'utf8');
  t.equal(page, printed('man', '-o', 'markdown'), 'run `pointsman man -o markdown > docs/commands.md`');
  t.end();
});

t.test('man pages exist for the proxy and each command, with every flag', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'man-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  printed('man', '--all', folder);
  t.same(readdirSync(folder).sort(), ['pointsman.1', ...COMMANDS.map(({ name }) => `pointsman-${name}.1`)].sort());
  const hyphens = (text: string): string => text.replaceAll('-', '\\-');
  for (const command of COMMANDS) {
    const text = readFileSync(join(folder, `pointsman-${command.name}.1`), 'utf8');
    t.equal(text, printed('man', command.name));
    t.match(text, /^\.TH POINTSMAN-[A-Z]+ 1 /);
    for (const { name } of flagsOf(command)) t.ok(text.includes(hyphens(`--${name}`)), `${command.name} --${name}`);
  }
  const proxy = readFileSync(join(folder, 'pointsman.1'), 'utf8');
  for (const { name } of FLAGS) t.ok(proxy.includes(hyphens(`--${name}`)), name);
  t.match(about('man', ['--all', join(folder, 'gone')]), { status: 2, stderr: /^--all: ENOENT/ });
  if (!existsSync('/usr/bin/groff')) return void t.end();
  const { stderr } = spawnSync(
    'groff',
    ['-man', '-ww', '-Tutf8', ...readdirSync(folder).map((name) => join(folder, name))],
    {
      encoding: 'utf8',
    },
  );
  t.equal(stderr, '', 'troff has nothing to say about them');
  t.end();
});

/** What bash offers at the end of a line of words. */
function completed(...words: readonly string[]): readonly string[] {
  const script = `${printed('completion', 'bash')}
COMP_WORDS=(pointsman "$@"); COMP_CWORD=$#; _pointsman; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8', cwd: '/' });
  t.equal(stderr, '');
  return stdout.split('\n').filter((line) => line !== '');
}

t.test('completion works in bash', (t) => {
  for (const name of COMMAND_NAMES) t.ok(completed('').includes(name), name);
  t.same(completed('stat'), ['status']);
  t.same(completed('--conntrack-m'), ['--conntrack-max-per-core', '--conntrack-min']);
  t.same(completed('status', '-'), [
    '--output',
    '-o',
    '--watch',
    '-w',
    '--heap-snapshot',
    '--logging-format',
    '--status-socket',
    '--v',
    '--vmodule',
    '--help',
  ]);
  t.same(completed('status', '--output', ''), ['text', 'json', 'yaml']);
  t.same(completed('status', '--output', '=', 'j'), ['json'], 'bash takes an equals sign for a word');
  t.same(completed('status', '-o', 'y'), ['yaml']);
  t.same(completed('nodes', '-o', ''), ['table', 'wide', 'json', 'yaml']);
  t.same(completed('--logging-format', ''), ['text', 'json']);
  t.ok(completed('plan', '--config', '/et').includes('/etc'), 'files');
  t.ok(completed('check', '/et').includes('/etc'));
  t.same(completed('help', 'expl'), ['explain']);
  t.same(completed('completion', ''), ['bash', 'zsh', 'fish', 'kubectl']);
  t.same(completed('completion', '-'), ['--help'], 'flags begin with a dash');
  t.match(completed(''), ['status', 'services']);
  t.notMatch(completed('').join(' '), '--', 'the commands are not lost among hundreds of flags');
  t.same(completed('explain', '--from', ''), [], 'nothing is known of such values');
  t.end();
});

t.test('kubectl completes the commands of the plugin', (t) => {
  const program = join(t.testdir({ script: printed('completion', 'kubectl') }), 'script');
  const offered = (...words: readonly string[]): readonly string[] => {
    const { stdout, stderr } = spawnSync('bash', [program, ...words], { encoding: 'utf8', cwd: '/' });
    t.equal(stderr, '');
    return stdout.trimEnd().split('\n');
  };
  for (const name of COMMAND_NAMES) t.ok(offered('').includes(name), name);
  t.same(offered('nod'), ['nodes', ':4']);
  t.same(offered('--'), ['--help', ':4'], 'the plugin is no proxy');
  t.same(offered('nodes', '-o', ''), ['table', 'wide', 'json', 'yaml', ':4']);
  t.same(offered('nodes', '--output='), ['table', 'wide', 'json', 'yaml', ':4'], 'kubectl gives both in one word');
  t.same(offered('nodes', '--output=w'), ['wide', ':4']);
  t.same(offered('nodes', '--output=wide', '--wat'), ['--watch', ':4']);
  t.same(offered('explain', '--from', ''), [':4'], 'nothing is known of such values');
  t.same(offered('nodes', '--kubeconfig', ''), [':0'], 'the shell offers files');
  t.same(offered('check', '/et'), [':0']);
  t.end();
});

t.test('completion has every flag for each shell, and the installed shells parse it', (t) => {
  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const text = printed('completion', shell);
    for (const { name } of FLAGS.filter(({ name }) => name.length > 1))
      t.ok(text.includes(shell === 'fish' ? `-l ${name}` : `--${name}`), `${shell} ${name}`);
    // fish reads no program from a socket, which is what `input` is.
    const file = join(t.testdir({ [shell]: text }), shell);
    const { error, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    if (error === undefined) t.equal(stderr, '', shell);
  }
  t.end();
});
