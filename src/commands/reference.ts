import type { CommandSpec } from './command.js';
import { printHelp, printProxyFlags, sentence } from './help.js';

/** docs/commands.md: every command, from the tables that parse. */
export function printReference(commands: readonly CommandSpec[]): string {
  return [
    '# Commands',
    '',
    '`pointsman man -o markdown` prints this page. It is generated from the tables that parse the command line.',
    '',
    '`pointsman [flags]` runs the proxy and takes the command line of kube-proxy. [Configuration](configuration.md)',
    'describes flags and fields. `pointsman COMMAND [flags]` runs a command, which rejects flags that it does not have.',
    'A flag of a command without the command is an error, too.',
    '',
    'As a kubectl plugin the program is called `kubectl-pointsman`: `kubectl pointsman nodes`.',
    '',
    '`-o wide` adds columns to the lists of `services` and `nodes`. Other tables have no more columns.',
    '',
    '## Exit status',
    '',
    '| command | 0 | 1 | 2 |',
    '|---|---|---|---|',
    '| the proxy | it was ended by a signal | it cannot go on, or the command line is wrong | |',
    ...exitRows(commands),
    '',
    '## Completion and man pages',
    '',
    '    source <(pointsman completion bash)',
    '    pointsman completion zsh > "${fpath[1]}/_pointsman"',
    '    pointsman completion fish > ~/.config/fish/completions/pointsman.fish',
    '    pointsman completion kubectl | install -m 755 /dev/stdin ~/.local/bin/kubectl_complete-pointsman',
    '    pointsman man explain | man -l -',
    '    pointsman man --all /usr/local/share/man/man1',
    ...commands.flatMap((command) => section(command.name, sentence(command.summary), printHelp(command))),
    ...section('Flags of the proxy', 'What `pointsman help flags` prints.', printProxyFlags()),
  ].join('\n');
}

/** What `pointsman help exit-status` prints. */
export function printExitStatuses(commands: readonly CommandSpec[]): string {
  return commands
    .flatMap(({ name, exits }) => [
      name,
      ...([0, 1, 2] as const).flatMap((status) => {
        const means = exits[status];
        return means === null ? [] : [`  ${status}  ${means}`];
      }),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

function exitRows(commands: readonly CommandSpec[]): readonly string[] {
  return commands.map(({ name, exits }) =>
    `| \`${name}\` | ${exits[0]} | ${exits[1] ?? ''} | ${exits[2] ?? ''} |`.replaceAll('|  |', '| |'),
  );
}

function section(title: string, text: string, block: string): readonly string[] {
  return ['', `## ${title}`, '', text, '', '```text', block.trimEnd(), '```', ...(title.includes(' ') ? [''] : [])];
}
