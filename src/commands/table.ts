import { COMPLETION, HELP, MAN } from './about.js';
import { CHECK } from './check.js';
import type { CommandSpec } from './command.js';
import { NODES } from './nodes.js';
import { PROXY_COMMANDS } from './proxy-commands.js';
import { WEBHOOK } from './webhook.js';

/** Every command, what asks a process first. */
const ORDER = [
  'status',
  'services',
  'explain',
  'trace',
  'selftest',
  'top',
  'bugreport',
  'nodes',
  'diff',
  'plan',
  'dump',
  'render',
  'ui',
  'check',
  'webhook',
  'help',
  'completion',
  'man',
];

export const COMMANDS: readonly CommandSpec[] = [...PROXY_COMMANDS, CHECK, NODES, WEBHOOK, HELP, COMPLETION, MAN].sort(
  (a, b) => ORDER.indexOf(a.name) - ORDER.indexOf(b.name),
);

export function commandNamed(name: string): CommandSpec | null {
  return COMMANDS.find((command) => command.name === name) ?? null;
}
