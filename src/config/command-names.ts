/** Commands that are configured as the proxy is, or ask the running one. */
export const SUBCOMMANDS = [
  'plan',
  'render',
  'dump',
  'diff',
  'status',
  'services',
  'explain',
  'trace',
  'selftest',
  'top',
  'bugreport',
  'ui',
] as const;
export type Subcommand = (typeof SUBCOMMANDS)[number];

/** Every command. */
export const COMMAND_NAMES = [...SUBCOMMANDS, 'check', 'nodes', 'webhook', 'help', 'completion', 'man'] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

/** Flags that only commands have. */
export type CommandFlagName =
  | 'all'
  | 'context'
  | 'count'
  | 'endpoints'
  | 'file'
  | 'from'
  | 'heap-snapshot'
  | 'kubeconfig'
  | 'limit'
  | 'listen'
  | 'namespace'
  | 'node'
  | 'output'
  | 'problems'
  | 'seconds'
  | 'selector'
  | 'sort'
  | 'watch';
