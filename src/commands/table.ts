import { COMMAND_NAMES } from '../config/command-names.js';
import { COMPLETION, HELP, MAN } from './about.js';
import { CHECK } from './check.js';
import type { CommandSpec } from './command.js';
import { NODES } from './nodes.js';
import { PROXY_COMMANDS } from './proxy-commands.js';
import { WEBHOOK } from './webhook.js';

export const COMMANDS: readonly CommandSpec[] = [...PROXY_COMMANDS, CHECK, NODES, WEBHOOK, HELP, COMPLETION, MAN].sort(
  (a, b) => COMMAND_NAMES.indexOf(a.name) - COMMAND_NAMES.indexOf(b.name),
);

export function commandNamed(name: string): CommandSpec | null {
  return COMMANDS.find((command) => command.name === name) ?? null;
}
