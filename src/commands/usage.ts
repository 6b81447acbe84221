import type { CommandSpec } from './command.js';

/** How a command is called, and where its flags are. */
export function usageLine({ name, operands }: Pick<CommandSpec, 'name' | 'operands'>): string {
  return `Usage: ${synopsis({ name, operands })}\n\`pointsman help ${name}\` has its flags and examples.`;
}

export function synopsis({ name, operands }: Pick<CommandSpec, 'name' | 'operands'>): string {
  return `pointsman ${name} [flags]${operands === '' ? '' : ` ${operands}`}`;
}
