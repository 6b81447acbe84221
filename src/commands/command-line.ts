import { mostSimilar } from '../base/similar.js';
import { COMMAND_NAMES, SUBCOMMANDS, type CommandFlagName, type Subcommand } from '../config/command-names.js';
import { ConfigError, invalid } from '../config/errors.js';
import { FLAGS, type FlagName } from '../config/flag-table.js';
import { bool, int, text, type Flag } from '../config/flag.js';
import type { FlagValue } from '../config/flag-values.js';
import { hiddenWords, parseWords, type CommandLine } from '../config/flags.js';

/** How a command prints: `table` and `text` for people, the others for programs. */
const OUTPUT = text('output', 'text|json|yaml', 'output format', 'text', { short: 'o' });

/** The same of what is listed. */
const LISTED = { ...OUTPUT, value: 'table|wide|json|yaml', initial: 'table' } as const;

/** The same of what is tested. */
const TESTED = { ...OUTPUT, value: 'table|json|yaml|junit', initial: 'table' } as const;

const SECONDS = int('seconds', 'timeout of an answer, 1 to 60', '2');

const TOP_OUTPUT = { ...OUTPUT, value: 'table|json|yaml', initial: 'table' } as const;
const INTERVAL = { ...SECONDS, help: 'refresh interval, 1 to 60' } as const;

const COUNT = int('count', 'number of tables to print; 0: until interrupted', '0');

const SORT = text('sort', 'connections|bytes|refused', 'sort order', 'connections');

const ENDPOINTS = bool('endpoints', 'include endpoints, which the process must count (--service-telemetry-endpoints)');

const FILE = text(
  'file',
  'file',
  'output file, which must not exist; -: standard output; empty: standard output, or on a terminal a file in this folder, named after node and time',
);

const PROBLEMS = bool('problems', 'only those with problems');

const LIMIT = int('limit', 'number of rows; 0: all', '500');

const TOP_LIMIT = { ...LIMIT, initial: '20' } as const;

const WATCH = bool('watch', 'print again every two seconds, until interrupted', { short: 'w' });

const NODE = [
  text(
    'node',
    'name',
    'ask the proxy of that node, through the API server of --kubeconfig; empty: that of this machine',
  ),
  text('namespace', 'name', 'with --node: namespace of the proxy pods; empty: kube-system', '', { short: 'n' }),
  text('selector', 'labels', 'with --node: labels of the proxy pods; empty: as for pointsman nodes', '', {
    short: 'l',
  }),
] as const;

const CONTEXT = text('context', 'name', 'with --node: context of the kubeconfig');

const OF_CLUSTER = [
  bool('all', 'ask the proxies of all nodes, through the API server', { short: 'a' }),
  text('kubeconfig', 'file', 'with --node or --all: kubeconfig; empty: as kubectl finds it'),
  { ...CONTEXT, help: 'with --node or --all: context of the kubeconfig; empty: its current one' },
  ...NODE,
] as const;

const FROM = text(
  'from',
  'sender',
  'external, node, an IP address, a pod, an interface, or address%interface',
  'external',
);

const TRACED_FROM = { ...FROM, help: `${FROM.help}; empty: any sender`, initial: '' } as const;
const TRACED_SECONDS = { ...SECONDS, help: 'how long to wait for connections, 1 to 60', initial: '30' } as const;
const TRACED_COUNT = { ...COUNT, help: 'number of connections to follow, 1 to 100', initial: '1' } as const;

const LISTEN = text('listen', 'IP:port', 'loopback address of the page; port 0: any free one', '127.0.0.1:0');

const HEAP_SNAPSHOT = text(
  'heap-snapshot',
  'file',
  "write a snapshot of the process's memory, which holds every credential, to a new file; pauses the process",
);

interface ConfiguredCommand {
  /** Flags of its own. */
  readonly flags: readonly (Flag & { readonly name: CommandFlagName })[];
  /** Which of the proxy's flags it takes as well: those that make its configuration, or those by which a running process is asked. */
  readonly takes: 'configuration' | 'process';
  readonly operand: 'required' | 'optional' | 'several' | 'none';
}

/** Commands that are configured as the proxy is, or ask the running one. What they are for is in `proxy-commands.ts`. */
export const CONFIGURED_COMMANDS = {
  plan: { flags: [OUTPUT], takes: 'configuration', operand: 'none' },
  render: { flags: [], takes: 'configuration', operand: 'none' },
  dump: { flags: [OUTPUT], takes: 'configuration', operand: 'none' },
  diff: { flags: [OUTPUT], takes: 'configuration', operand: 'none' },
  status: { flags: [OUTPUT, WATCH, HEAP_SNAPSHOT], takes: 'process', operand: 'none' },
  services: { flags: [LISTED, WATCH, PROBLEMS, LIMIT], takes: 'process', operand: 'optional' },
  explain: { flags: [FROM, OUTPUT, WATCH, CONTEXT, ...NODE], takes: 'configuration', operand: 'required' },
  trace: { flags: [TRACED_FROM, OUTPUT, TRACED_SECONDS, TRACED_COUNT], takes: 'process', operand: 'required' },
  selftest: { flags: [TESTED, SECONDS], takes: 'process', operand: 'several' },
  top: { flags: [TOP_OUTPUT, INTERVAL, COUNT, SORT, ENDPOINTS, TOP_LIMIT], takes: 'process', operand: 'none' },
  bugreport: { flags: [FILE, ...OF_CLUSTER], takes: 'process', operand: 'none' },
  ui: { flags: [LISTEN], takes: 'process', operand: 'none' },
} as const satisfies Readonly<Record<Subcommand, ConfiguredCommand>>;

/** Flags that have the proxy do something else, each of which is what a command is. */
const ONCE: readonly FlagName[] = ['cleanup', 'init-only', 'version', 'write-config-to'];
const OF_PROCESS: readonly string[] = ['status-socket', 'v', 'vmodule', 'logging-format'];

/** Flags of a command, in alphabetical order. */
export function flagsOf(command: Subcommand): readonly Flag[] {
  const { flags, takes } = CONFIGURED_COMMANDS[command];
  const taken = FLAGS.filter(({ name }) =>
    takes === 'process'
      ? OF_PROCESS.includes(name)
      : !(ONCE as readonly string[]).includes(name) && name !== 'windows-service',
  );
  return [...taken, ...flags].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Parses the arguments of a command, which is among them. A flag that the command does not have is refused.
 *
 * @throws ConfigError
 */
export function parseCommand(subcommand: Subcommand, argv: readonly string[]): CommandLine {
  const flags = flagsOf(subcommand);
  const { help, given, operands } = parseWords(flags, argv, subcommand);
  if (help) return { subcommand, operand: null, operands: [], help, given: new Map() };
  const rest = operands.filter((word, index) => word !== '' && index !== operands.indexOf(subcommand));
  const { operand: takes } = CONFIGURED_COMMANDS[subcommand];
  const several = takes === 'several' ? rest.splice(0) : [];
  const operand = takes === 'none' ? null : (rest.shift() ?? null);
  const problem = operandProblem(subcommand, operand, hiddenWords(rest, flags, given), rest.length);
  if (problem !== null) throw new ConfigError('CONFIG_USAGE', null, [problem], subcommand);
  const own: readonly Flag[] = CONFIGURED_COMMANDS[subcommand].flags;
  const output = own.find(({ name }) => name === 'output');
  const wrong = output === undefined ? null : choiceProblem(output, given.get('output'));
  if (wrong !== null) throw new ConfigError('CONFIG_USAGE', null, [wrong], subcommand);
  const initial = own.flatMap((flag): [string, FlagValue][] => {
    if (flag.type === 'bool') return [];
    return [[flag.name, flag.type === 'int32' ? Number(flag.initial) : flag.initial]];
  });
  return { subcommand, operand, operands: several, help, given: new Map([...initial, ...given]) };
}

/** What is wrong with a form of output; null: nothing. `text` and `table` are the same. */
function choiceProblem({ value: choices = '' }: Flag, value: FlagValue | undefined): string | null {
  const words = choices.split('|');
  if (value === undefined || value === 'text' || value === 'table' || words.includes(String(value))) return null;
  return invalid('--output', value, `must be one of ${words.join(', ')}`);
}

/** What is wrong with the words beside the flags; null: nothing. @param more how many there are that are not used, as `got` prints them. */
function operandProblem(name: Subcommand, operand: string | null, got: string, more: number): string | null {
  if (CONFIGURED_COMMANDS[name].operand === 'none')
    return more === 0 ? null : `${name} does not take any arguments, got ${got}`;
  if (operand === null && CONFIGURED_COMMANDS[name].operand === 'required')
    return `${name} needs an argument: address:port/protocol, or a Service`;
  return more === 0 ? null : `${name} takes one argument, got ${got} as well`;
}

/** What the user may have meant by a wrong command line; null: nothing comes to mind. */
export function adviceOn({ usage, unknown }: ConfigError): string | null {
  if (unknown === null || usage === null) return null;
  if (!unknown.startsWith('-')) {
    const command = usage === 'pointsman' ? mostSimilar(unknown, COMMAND_NAMES) : null;
    return command === null ? null : `Did you mean \`pointsman ${command}\`?`;
  }
  const all = SUBCOMMANDS.flatMap((command): readonly Flag[] => CONFIGURED_COMMANDS[command].flags);
  const name = unknown.startsWith('--')
    ? unknown.slice(2)
    : ([...all, ...FLAGS].find(({ short }) => unknown === `-${short ?? ''}`)?.name ?? '');
  const commands = SUBCOMMANDS.filter((command) =>
    CONFIGURED_COMMANDS[command].flags.some((flag) => flag.name === name),
  );
  if (commands.length > 0)
    return `It is a flag of ${commands.map((command) => `\`pointsman ${command}\``).join(', ')}.`;
  if (usage !== 'pointsman' && FLAGS.some((flag) => flag.name === name)) return 'It is a flag of the proxy itself.';
  const own = SUBCOMMANDS.find((command) => command === usage);
  const similar = mostSimilar(
    name,
    (own === undefined ? FLAGS : flagsOf(own)).map((flag) => flag.name),
  );
  return similar === null ? null : `Did you mean --${similar}?`;
}
