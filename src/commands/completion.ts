import { FLAGS } from '../config/flag-table.js';
import type { Flag } from '../config/flag.js';
import type { CommandSpec } from './command.js';

export const SHELLS = ['bash', 'zsh', 'fish', 'kubectl'] as const;
type Shell = (typeof SHELLS)[number];

/** What a command line may have: of a command, or of the proxy itself. */
interface Completed {
  /** Null: no command. */
  readonly name: string | null;
  readonly flags: readonly Flag[];
  readonly operands: readonly string[];
  readonly takesFiles: boolean;
}

/** Of `--help`, which every command has and no table. */
const HELP = 'print help';

/** A script that completes command lines. */
export function printCompletion(shell: Shell, commands: readonly CommandSpec[]): string {
  const names = commands.map(({ name }) => name);
  const all: readonly Completed[] = [
    { name: null, flags: FLAGS, operands: names, takesFiles: false },
    ...commands.map(({ name, flags, proxyFlags, operands, words }) => ({
      name,
      flags: [...flags, ...(proxyFlags?.taken ?? [])],
      operands: words ?? (name === 'help' || name === 'man' ? [...names, 'flags'] : []),
      takesFiles: operands.includes('FILE'),
    })),
  ];
  switch (shell) {
    case 'bash':
      return bash(all, names);
    case 'zsh':
      return zsh(all, commands);
    case 'fish':
      return fish(all, commands);
    case 'kubectl':
      // As a plugin the program is no proxy.
      return kubectl(
        all.map((each) => (each.name === null ? { ...each, flags: [] } : each)),
        names,
      );
  }
}

/** What a value may be, where its name in the help is a choice. */
function choices({ value = '', type }: Flag): readonly string[] | null {
  if (type === 'bool' || !value.includes('|')) return null;
  const words = value.split('|').filter((word) => /^[a-zA-Z-]+$/.test(word));
  return words.length > 0 ? words : null;
}

/** Whether the value is a file, a folder or a socket. */
function isPath({ value = '' }: Flag): boolean {
  return ['file', 'directory', 'path', 'source'].includes(value);
}

function spellings({ name, short }: Flag): readonly string[] {
  return [`--${name}`, ...(short === undefined || short === name ? [] : [`-${short}`])];
}

function bash(all: readonly Completed[], names: readonly string[]): string {
  return `# Completes pointsman in bash: source <(pointsman completion bash)
${bashFunction(all, names, 'COMPREPLY+=($(compgen -f -- "$cur"))')}complete -F _pointsman pointsman
`;
}

/**
 * A program that kubectl starts with the words behind the plugin's name, in every shell that kubectl completes. It answers as cobra does: a word a line, and
 * a number that says whether there may be files in place of words (0) or nothing else (4).
 */
function kubectl(all: readonly Completed[], names: readonly string[]): string {
  return `#!/usr/bin/env bash
# Completes kubectl pointsman: to be called kubectl_complete-pointsman, on the PATH
${bashFunction(all, names, 'directive=0')}directive=4
COMP_WORDS=(pointsman)
for word; do
  if [[ $word == --*=* ]]; then COMP_WORDS+=("\${word%%=*}" = "\${word#*=}"); else COMP_WORDS+=("$word"); fi
done
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_pointsman
printf '%s\\n' "\${COMPREPLY[@]}" ":$directive"
`;
}

/** @param files what offers files. */
function bashFunction(all: readonly Completed[], names: readonly string[], files: string): string {
  const values = all.flatMap(({ name, flags }) =>
    flags
      .filter(({ type }) => type !== 'bool')
      .map((flag) => {
        const patterns = spellings(flag).map((spelling) => `'${name ?? ''} ${spelling}'`);
        const words = choices(flag);
        const list = words === null ? '' : ` COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"));`;
        const reply = words === null && isPath(flag) ? ` ${files};` : list;
        return `    ${patterns.join(' | ')})${reply} return ;;`;
      }),
  );
  const words = all.map(({ name, flags, operands, takesFiles }) => {
    const list = [...flags.flatMap(spellings), '--help'].join(' ');
    const ofFiles = takesFiles ? ` ${files};` : '';
    // Hundreds of flags would hide the commands: where there are words, flags begin with a dash.
    const isFlag = operands.length === 0 && !takesFiles ? '' : '[[ $cur == -* ]] && ';
    const others =
      isFlag === '' ? '' : ` || { COMPREPLY=($(compgen -W '${operands.join(' ')}' -- "$cur"));${ofFiles} }`;
    return `    '${name ?? ''}') ${isFlag}COMPREPLY=($(compgen -W '${list}' -- "$cur"))${others} ;;`;
  });
  return `_pointsman() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command= i
  COMPREPLY=()
  # Bash takes an equals sign for a word.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      ${names.join(' | ')}) command=\${COMP_WORDS[i]}; break ;;
    esac
  done
  case "$command $prev" in
${values.join('\n')}
  esac
  case $command in
${words.join('\n')}
  esac
}
`;
}

function zsh(all: readonly Completed[], commands: readonly CommandSpec[]): string {
  const argumentsOf = ({ flags }: Completed): readonly string[] =>
    flags.map((flag) => {
      const [long = '', short] = spellings(flag);
      const text = `[${zshText(flag.help)}]`;
      const words = choices(flag);
      const values = words !== null ? `:value:(${words.join(' ')})` : isPath(flag) ? ':file:_files' : ':value:';
      const names = flag.type === 'bool' ? long : `${long}=`;
      const rest = `${text}${flag.type === 'bool' ? '' : values}`;
      return short === undefined ? `'*${names}${rest}'` : `'*'{${short},${names}}'${rest}'`;
    });
  const cases = all.map((each) => {
    const { name, operands, takesFiles } = each;
    const rest = takesFiles ? ["'*:file:_files'"] : operands.length > 0 ? [`'*:word:(${operands.join(' ')})'`] : [];
    const list = [...(name === null ? ["'1:command:->command'"] : ["'1: :'", ...rest]), `'--help[${HELP}]'`];
    return `    '${name ?? ''}')\n      _arguments -s \\\n${[...list, ...argumentsOf(each)].map((line) => `        ${line}`).join(' \\\n')}\n      ;;`;
  });
  return `#compdef pointsman
# Completes pointsman in zsh: pointsman completion zsh > "\${fpath[1]}/_pointsman"
_pointsman() {
  local command= word state
  local -a commands=(
${commands.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`).join('\n')}
  )
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case $word in
      ${commands.map(({ name }) => name).join('|')}) command=$word; break ;;
    esac
  done
  case $command in
${cases.join('\n')}
  esac
  [[ $state == command ]] && _describe command commands
}
_pointsman "$@"
`;
}

function zshText(text: string): string {
  return text.replace(/[[\]:\\]/g, '\\$&').replaceAll("'", "'\\''");
}

function fish(all: readonly Completed[], commands: readonly CommandSpec[]): string {
  const names = commands.map(({ name }) => name).join(' ');
  const lines = [
    `complete -c pointsman -l help -d ${fishText(HELP)}`,
    ...commands.map(
      ({ name, summary }) => `complete -c pointsman -n __fish_use_subcommand -f -a ${name} -d ${fishText(summary)}`,
    ),
  ];
  for (const { name, flags, operands, takesFiles } of all) {
    const condition =
      name === null ? `not __fish_seen_subcommand_from ${names}` : `__fish_seen_subcommand_from ${name}`;
    const head = `complete -c pointsman -n '${condition}'`;
    if (name !== null && !takesFiles)
      lines.push(`${head} -f${operands.length > 0 ? ` -a '${operands.join(' ')}'` : ''}`);
    for (const flag of flags) {
      const short = flag.short === undefined ? '' : ` -s ${flag.short}`;
      const words = choices(flag);
      const value =
        flag.type === 'bool' ? '' : words !== null ? ` -x -a '${words.join(' ')}'` : isPath(flag) ? ' -r -F' : ' -x';
      // A name of one letter is a short one alone.
      const long = flag.name.length > 1 ? ` -l ${flag.name}` : '';
      lines.push(`${head}${long}${short}${value} -d ${fishText(flag.help)}`);
    }
  }
  return `# Completes pointsman in fish\n${lines.join('\n')}\n`;
}

function fishText(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}
