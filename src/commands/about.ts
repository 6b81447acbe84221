import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../base/error-message.js';
import { mostSimilar } from '../base/similar.js';
import { text } from '../config/flag.js';
import type { CommandSpec } from './command.js';
import { printCompletion, SHELLS } from './completion.js';
import { parseGiven, refusal, type Given } from './given.js';
import { printHelp, printOverview, printProxyFlags } from './help.js';
import { printManPage, printProxyManPage } from './man.js';
import { printExitStatuses, printReference } from './reference.js';

const PRINTED = { 0: 'it is printed', 1: null, 2: 'there is no such command' } as const;

/** Commands about commands. */
export const HELP: CommandSpec = {
  name: 'help',
  summary: 'print the help of a command, with examples and flags',
  operands: '[COMMAND]',
  about: [],
  examples: [
    { line: 'pointsman help explain', says: 'one command' },
    { line: 'pointsman help flags', says: 'the flags of the proxy' },
    { line: 'pointsman help exit-status', says: 'what the exit status of each command means' },
  ],
  flags: [],
  proxyFlags: null,
  exits: PRINTED,
};

export const COMPLETION: CommandSpec = {
  name: 'completion',
  summary: 'print a completion script for a shell, or for kubectl',
  operands: 'bash|zsh|fish|kubectl',
  words: SHELLS,
  about: [],
  examples: [
    { line: 'source <(pointsman completion bash)', says: 'in this shell' },
    { line: 'pointsman completion zsh > "${fpath[1]}/_pointsman"', says: 'in every zsh' },
    { line: 'pointsman completion fish > ~/.config/fish/completions/pointsman.fish', says: 'in every fish' },
    {
      line: 'pointsman completion kubectl > ~/.local/bin/kubectl_complete-pointsman',
      says: 'in every shell that completes kubectl, if the file is executable and on the PATH',
    },
  ],
  flags: [],
  proxyFlags: null,
  exits: { 0: 'it is printed', 1: null, 2: 'there is no such shell' },
};

export const MAN: CommandSpec = {
  name: 'man',
  summary: 'print a man page, or the command reference',
  operands: '[COMMAND]',
  about: ['Without a command: the page of the proxy itself.'],
  examples: [
    { line: 'pointsman man explain | man -l -', says: 'read one' },
    { line: 'pointsman man --all /usr/local/share/man/man1', says: 'write all of them into a folder' },
    { line: 'pointsman man -o markdown', says: 'all commands as one page' },
  ],
  flags: [
    text('output', 'man|markdown', 'output format', 'man', { short: 'o' }),
    text('all', 'directory', 'write the pages of all commands there'),
  ],
  proxyFlags: null,
  exits: PRINTED,
};

/** The output and the exit status of a command about commands. */
export interface About {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 2;
}

/** Runs one of {@link HELP}, {@link COMPLETION} and {@link MAN}. */
export function about(spec: CommandSpec, argv: readonly string[], commands: readonly CommandSpec[]): About {
  const given = parseGiven(spec, argv);
  if (typeof given === 'string') return failed(refusal(given, spec).trimEnd());
  if (given.help) return printed(printHelp(spec));
  const [word, ...more] = given.operands;
  if (more.length > 0) return failed(refusal(`${spec.name} takes one word`, spec).trimEnd());
  if (spec.name === 'help') return help(commands, word);
  return spec.name === 'completion' ? completion(commands, word) : man(commands, word, given);
}

function help(commands: readonly CommandSpec[], word: string | undefined): About {
  if (word === undefined) return printed(printOverview(commands));
  if (word === 'flags' || word === 'proxy') return printed(printProxyFlags());
  if (word === 'exit-status') return printed(printExitStatuses(commands));
  const spec = commands.find(({ name }) => name === word);
  return spec === undefined ? unknown(commands, word) : printed(printHelp(spec));
}

function completion(commands: readonly CommandSpec[], word: string | undefined): About {
  const shell = SHELLS.find((each) => each === word);
  if (shell !== undefined) return printed(printCompletion(shell, commands));
  return failed(refusal(`completion is for ${SHELLS.join(', ')}`, COMPLETION).trimEnd());
}

function man(commands: readonly CommandSpec[], word: string | undefined, given: Given): About {
  const folder = given.text('all');
  const output = given.text('output');
  if (folder !== '') return writeAll(commands, folder);
  if (output === 'markdown') return printed(printReference(commands));
  if (output !== 'man') return failed(refusal('--output: must be man or markdown', MAN).trimEnd());
  if (word === undefined) return printed(printProxyManPage(commands));
  const spec = commands.find(({ name }) => name === word);
  return spec === undefined ? unknown(commands, word) : printed(printManPage(spec));
}

function writeAll(commands: readonly CommandSpec[], folder: string): About {
  const pages = [
    ['pointsman', printProxyManPage(commands)],
    ...commands.map((command) => [`pointsman-${command.name}`, printManPage(command)]),
  ];
  try {
    for (const [name = '', text = ''] of pages) writeFileSync(join(folder, `${name}.1`), text);
  } catch (error) {
    return failed(`--all: ${messageOf(error)}`);
  }
  return printed('');
}

function unknown(commands: readonly CommandSpec[], word: string): About {
  const similar = mostSimilar(
    word,
    commands.map(({ name }) => name),
  );
  return failed(
    `there is no command ${JSON.stringify(word)}${similar === null ? '' : `; did you mean "${similar}"?`}\n\n${printOverview(commands).trimEnd()}`,
  );
}

export function printed(stdout: string): About {
  return { stdout, stderr: '', status: 0 };
}

export function failed(message: string): About {
  return { stdout: '', stderr: `${message}\n`, status: 2 };
}
