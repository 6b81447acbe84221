import { text } from '../config/flag.js';
import type { CommandSpec } from './command.js';

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
  words: ['bash', 'zsh', 'fish', 'kubectl'],
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
