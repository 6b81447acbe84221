// Completion in zsh and fish: they load the script, and complete commands, flags and values.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { about, COMPLETION } from '../../src/commands/about.js';
import { COMMAND_NAMES, COMMANDS } from '../../src/commands/table.js';
import { needs } from '../support/needs.js';

type Complete = (line: string) => readonly string[];

/** What every shell offers at the end of a line. */
function offers(t: Test, complete: Complete): void {
  const commands = complete('pointsman ');
  for (const name of COMMAND_NAMES) t.ok(commands.includes(name), name);
  t.same(complete('pointsman stat'), ['status']);
  t.same(complete('pointsman --conntrack-m'), ['--conntrack-max-per-core', '--conntrack-min']);
  t.same(complete('pointsman status --outp'), ['--output']);
  t.same(complete('pointsman status --output '), ['json', 'text', 'yaml']);
  t.same(complete('pointsman status -o y'), ['yaml']);
  for (const command of ['', 'status ', 'completion ', 'check '])
    t.same(complete(`pointsman ${command}--hel`), ['--help'], command);
  t.same(complete('pointsman help expl'), ['explain']);
  t.same(complete('pointsman completion '), ['bash', 'fish', 'kubectl', 'zsh']);
  t.ok(
    complete('pointsman plan --config /et').some((path) => path.startsWith('/etc') || path === 'etc'),
    'files',
  );
  t.same(complete('pointsman explain --from '), [], 'nothing is known of such values');
}

t.test('completion works in fish', needs('fish'), (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'fish-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const script = join(folder, 'pointsman.fish');
  writeFileSync(script, about(COMPLETION, ['fish'], COMMANDS).stdout);
  offers(t, (line) => {
    const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    const args = ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script, line];
    const { stdout, stderr } = spawnSync('fish', args, { encoding: 'utf8', cwd: folder, env });
    t.equal(stderr, '');
    const words = stdout.split('\n').map((each) => each.split('\t', 1)[0] ?? '');
    return words.filter((word) => word !== '').sort();
  });
  t.end();
});

/** Of a zsh that a person would use. What is offered goes into a file as well; the completion ends it. */
const ZSHRC = `
PROMPT=
fpath=($ZDOTDIR $fpath)
autoload -U compinit
compinit -u -D
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
compadd() {
  # These only fill arrays.
  if [[ "\${@[1,(i)(-|--)]}" == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  local -a offered
  builtin compadd -A offered "$@"
  (( $#offered )) && print -rl -- $offered >> $ZDOTDIR/offered
  builtin compadd "$@"
}
comppostfuncs=(exit)
precmd() { print READY; }
`;
/** Types a line and a tab on a terminal. */
const TYPE = `
zmodload zsh/zpty
zpty shell zsh -i
zpty -r shell line '*READY*'
zpty -w -n shell "$1"$'\\t'
while zpty -r shell line; do :; done
`;

t.test('completion works in zsh', needs('zsh'), (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'zsh-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  writeFileSync(join(folder, '_pointsman'), about(COMPLETION, ['zsh'], COMMANDS).stdout);
  writeFileSync(join(folder, '.zshenv'), '[[ -z $ZSH_MODULES ]] || module_path=($ZSH_MODULES)\n');
  writeFileSync(join(folder, '.zshrc'), ZSHRC);
  writeFileSync(join(folder, 'type'), TYPE);
  const offered = join(folder, 'offered');
  offers(t, (line) => {
    rmSync(offered, { force: true });
    const env = { ...process.env, ZDOTDIR: folder, TERM: 'xterm' };
    execFileSync('zsh', [join(folder, 'type'), line], { cwd: folder, env });
    return existsSync(offered) ? [...new Set(readFileSync(offered, 'utf8').trimEnd().split('\n'))].sort() : [];
  });
  t.end();
});
