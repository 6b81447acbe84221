const OF_PROCESS = ['status', 'services', 'explain', 'trace', 'selftest', 'top', 'bugreport'] as const;
const OF_PLAN = ['diff', 'plan', 'dump', 'render', 'ui'] as const;

/** Commands that are configured as the proxy is, or ask the running one. */
export const SUBCOMMANDS = [...OF_PROCESS, ...OF_PLAN] as const;
export type Subcommand = (typeof SUBCOMMANDS)[number];

/** Every command, what asks a process first. */
export const COMMAND_NAMES = [
  ...OF_PROCESS,
  'nodes',
  ...OF_PLAN,
  'check',
  'webhook',
  'help',
  'completion',
  'man',
] as const;
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
