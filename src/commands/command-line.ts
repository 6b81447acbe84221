import { mostSimilar } from '../base/similar.js';
import { ConfigError, invalid } from '../config/errors.js';
import { FLAGS } from '../config/flag-table.js';
import type { Flag } from '../config/flag.js';
import type { FlagValue } from '../config/flag-values.js';
import { bareWords, hiddenWords, parseWords, type ParsedWords } from '../config/flags.js';
import { flagsOf, type Command, type ProxyCommand } from './definition.js';
import { COMMAND_NAMES, COMMANDS, PROXY_COMMANDS } from './table.js';

/** The command that is asked for: one of its own flags comes first, others after any flags of the proxy; null: none. */
export function commandOf(argv: readonly string[]): Command | null {
  const words = bareWords(argv);
  const isAsked = ({ needs, name }: Command): boolean => (needs === null ? argv[0] === name : words.includes(name));
  const asked = COMMANDS.filter(isAsked);
  return asked.find(({ needs }) => needs === null) ?? asked[0] ?? null;
}

/**
 * Parses the arguments of a command, which is among them. A flag that the command does not have is refused.
 *
 * @throws ConfigError
 */
export function parseCommand(command: ProxyCommand, argv: readonly string[]): ParsedWords {
  const flags = flagsOf(command);
  const parsed = parseWords(flags, argv, command.name);
  const { help, given, operands } = parsed;
  if (help) return parsed;
  const rest = operands.filter((word, index) => word !== '' && index !== operands.indexOf(command.name));
  const most = command.operand === 'several' ? rest.length : command.operand === 'none' ? 0 : 1;
  const used = rest.splice(0, most);
  const problem = operandProblem(command, used.length, hiddenWords(rest, flags, given), rest.length);
  if (problem !== null) throw new ConfigError('CONFIG_USAGE', null, [problem], command.name);
  const output = command.flags.find(({ name }) => name === 'output');
  const wrong = output === undefined ? null : choiceProblem(output, given.get('output'));
  if (wrong !== null) throw new ConfigError('CONFIG_USAGE', null, [wrong], command.name);
  const initial = command.flags.flatMap((flag): [string, FlagValue][] => {
    if (flag.type === 'bool') return [];
    return [[flag.name, flag.type === 'int32' ? Number(flag.initial) : flag.initial]];
  });
  return { operands: used, help, given: new Map([...initial, ...given]) };
}

/** What is wrong with a form of output; null: nothing. `text` and `table` are the same. */
function choiceProblem({ value: choices = '' }: Flag, value: FlagValue | undefined): string | null {
  const words = choices.split('|');
  if (value === undefined || value === 'text' || value === 'table' || words.includes(String(value))) return null;
  return invalid('--output', value, `must be one of ${words.join(', ')}`);
}

/** What is wrong with the words beside the flags; null: nothing. @param more how many there are that are not used, as `got` prints them. */
function operandProblem({ name, operand }: ProxyCommand, used: number, got: string, more: number): string | null {
  if (operand === 'none') return more === 0 ? null : `${name} does not take any arguments, got ${got}`;
  if (used === 0 && operand === 'required') return `${name} needs an argument: address:port/protocol, or a Service`;
  return more === 0 ? null : `${name} takes one argument, got ${got} as well`;
}

/** What the user may have meant by a wrong command line; null: nothing comes to mind. */
export function adviceOn({ usage, unknown }: ConfigError): string | null {
  if (unknown === null || usage === null) return null;
  if (!unknown.startsWith('-')) {
    const command = usage === 'pointsman' ? mostSimilar(unknown, COMMAND_NAMES) : null;
    return command === null ? null : `Did you mean \`pointsman ${command}\`?`;
  }
  const all = PROXY_COMMANDS.flatMap(({ flags }) => flags);
  const name = unknown.startsWith('--')
    ? unknown.slice(2)
    : ([...all, ...FLAGS].find(({ short }) => unknown === `-${short ?? ''}`)?.name ?? '');
  const commands = PROXY_COMMANDS.filter(({ flags }) => flags.some((flag) => flag.name === name));
  if (commands.length > 0)
    return `It is a flag of ${commands.map((command) => `\`pointsman ${command.name}\``).join(', ')}.`;
  if (usage !== 'pointsman' && FLAGS.some((flag) => flag.name === name)) return 'It is a flag of the proxy itself.';
  const own = PROXY_COMMANDS.find((command) => command.name === usage);
  const similar = mostSimilar(
    name,
    (own === undefined ? FLAGS : flagsOf(own)).map((flag) => flag.name),
  );
  return similar === null ? null : `Did you mean --${similar}?`;
}

/** Faults of the manifests that a command is to read. */
export function manifestsProblems({ name, needs }: ProxyCommand, { given }: ParsedWords): readonly string[] {
  const manifests = given.get('manifests');
  const isGiven = typeof manifests === 'object' && manifests.length > 0;
  if (needs === 'manifests' && !isGiven) return [`--manifests: Required value: ${name} reads no API server`];
  const node = given.get('node') ?? '';
  return isGiven && node !== '' ? ['--node: Forbidden: --manifests are asked, not a node'] : [];
}
