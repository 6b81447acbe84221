import { Command, CommanderError } from 'commander';
import { printUrlText, REDACTED } from '../base/url-text.js';
import { ConfigError, invalid } from './errors.js';
import { FLAGS, type FlagName } from './flag-table.js';
import { printFlagValue, readFlagValue, Refusal, type FlagType, type FlagValue } from './flag-values.js';
import type { Flag } from './flag.js';

const SUBCOMMANDS = ['plan', 'render', 'dump', 'diff', 'status', 'explain', 'ui'] as const;
export type Subcommand = (typeof SUBCOMMANDS)[number];

const SUBCOMMAND_HELP = [
  '',
  'Commands, with the same flags:',
  '  plan    print the forwarding table of this node',
  '  render  print the ruleset as nftables JSON, or as iptables-restore takes it; needs no privileges',
  '  dump    print what the kernel holds, in the terms of plan',
  '  diff    print what a start would change on this node, and change nothing; exits with 1 when there is something',
  '  status  print how the running process is doing',
  '  explain address:port/protocol',
  '          say what becomes of a packet and why, by the running process or by --manifests',
  '  ui      serve a page about the running process to browsers on this machine',
  '',
  'Commands with flags of their own:',
  '  check FILE…',
  '          say what is wrong with configuration files of the cluster; `pointsman check --help` has the flags',
  '  webhook answer an API server whether Services may be stored; `pointsman webhook --help` has the flags',
  '  nodes   ask the proxies of all nodes, and say which lag, differ or give no answer; `pointsman nodes --help` has the flags',
  '',
].join('\n');

/** The command line taken apart. */
export interface CommandLine {
  readonly subcommand: Subcommand | null;
  /** What the subcommand is to work on: for explain the destination; null for the others. */
  readonly operand: string | null;
  /** Set when help was asked for: the text to print. */
  readonly help: string | null;
  /** Flags that were given, by name. */
  readonly given: ReadonlyMap<string, FlagValue>;
}

/** Flags that mean something without a value. */
const IMPLIED_VALUES: ReadonlyMap<string, string> = new Map(
  FLAGS.filter((flag) => flag.type === 'bool' || flag.name === 'version').map((flag) => [flag.name, 'true']),
);

/**
 * Parses arguments (without the program's own path) in the style of the Kubernetes components.
 *
 * @throws ConfigError with the usage text.
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const program = new Command('pointsman');
  let output = '';
  program
    .description('Node service proxy for Kubernetes.')
    .usage('[plan|render|dump|diff|status|explain|ui] [flags], check [flags] FILE…, webhook [flags], or nodes [flags]')
    .argument('[command...]')
    .helpOption('-h, --help', 'print this text')
    .addHelpText('after', SUBCOMMAND_HELP)
    .exitOverride()
    .configureHelp({ visibleArguments: () => [], helpWidth: 120 })
    .configureOutput({ writeOut: (text) => (output += text), writeErr: () => undefined })
    .showSuggestionAfterError(false);
  for (const flag of FLAGS) {
    const names = `${flag.short === undefined ? '' : `-${flag.short}, `}--${flag.name} <${flag.value ?? WORDS[flag.type]}>`;
    program.option(names, describeFlag(flag), (text: string, previous: FlagValue | undefined) =>
      parseValue(flag, text, previous, usage),
    );
  }
  const usage = (): string => program.helpInformation() + SUBCOMMAND_HELP;
  try {
    program.parse(normalise(argv), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed')
      return { subcommand: null, operand: null, help: output, given: new Map() };
    throw new ConfigError('CONFIG_USAGE', null, [describe(error)], usage());
  }
  const subcommand = SUBCOMMANDS.find((name) => name === program.args[0]) ?? null;
  const operands = program.args.slice(subcommand === null ? 0 : 1).filter((argument) => argument !== '');
  const operand = subcommand === 'explain' ? (operands.shift() ?? null) : null;
  const options: Record<string, FlagValue> = program.opts();
  const hidden = FLAGS.some(({ name, secret }) => secret === true && camelCase(name) in options);
  const problem = operandProblem(subcommand, operand, operands, hidden);
  if (problem !== null) throw new ConfigError('CONFIG_USAGE', null, [problem], usage());
  const given = FLAGS.map((flag): [string, FlagValue | undefined] => [flag.name, options[camelCase(flag.name)]]);
  return {
    subcommand,
    operand,
    help: null,
    given: new Map(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  };
}

/**
 * What is wrong with the words beside the flags; null: nothing.
 *
 * @param hidden whether they may be credentials: the rest of a value whose quotes were forgotten.
 */
function operandProblem(
  subcommand: Subcommand | null,
  operand: string | null,
  rest: readonly string[],
  hidden: boolean,
): string | null {
  const got = hidden
    ? `${rest.length} that are not shown: they may belong to a header`
    : JSON.stringify(rest.map(printUrlText));
  if (subcommand !== 'explain') return rest.length === 0 ? null : `"pointsman" does not take any arguments, got ${got}`;
  if (operand === null) return 'explain needs an argument: address:port/protocol';
  return rest.length === 0 ? null : `explain takes one argument, got ${got} as well`;
}

/** Rewrites pflag's spellings into the one commander reads: `--name=value` or `--name value`, with dashes and without aliases. */
function normalise(argv: readonly string[]): string[] {
  const result: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? '';
    if (argument === '--') return [...result, ...argv.slice(index)];
    const match = /^(?:--([^=]+)|-(\w)(?==))(?:=([^]*))?$/.exec(argument);
    if (match === null) {
      result.push(argument);
      if (FLAGS.some(({ short }) => short !== undefined && argument === `-${short}`))
        result.push(...argv.slice(++index, index + 1));
      continue;
    }
    const spelling = (match[1] ?? match[2] ?? '').replaceAll('_', '-');
    const flag = FLAGS.find(({ name, aliases }) => name === spelling || aliases?.includes(spelling));
    const name = flag?.name ?? spelling;
    const value = match[3] ?? IMPLIED_VALUES.get(name);
    result.push(value === undefined ? `--${name}` : `--${name}=${value}`);
    // The value of a flag is taken as it is, even when it looks like a flag.
    if (flag !== undefined && value === undefined) result.push(...argv.slice(++index, index + 1));
  }
  return result;
}

/** What stands for the value in the usage text. */
const WORDS: Readonly<Record<FlagType, string>> = {
  bool: 'bool',
  int32: 'int',
  float32: 'number',
  string: 'text',
  duration: 'duration',
  quantity: 'quantity',
  address: 'IP',
  'address-port': 'IP:port',
  list: 'text',
  words: 'list',
  gates: 'Name=bool,…',
  vmodule: 'pattern=N,…',
};

/** The flag's help with what it counts as when it is not given, as long as that says something. */
function describeFlag({ help, initial, remark }: Flag): string {
  const text = remark === undefined ? help : `${help}; ${remark}`;
  return ['', '[]', '0', '0s', 'false'].includes(initial) ? text : `${text} (default ${initial})`;
}

/** A flag and its value as text, whether given or not. */
export interface FlagSetting {
  readonly name: string;
  readonly value: string;
}

/** Every flag as it counts, in alphabetical order, for the log and /flagz. Values that may be credentials are left out. */
export function flagSettings({ given }: CommandLine): readonly FlagSetting[] {
  return FLAGS.map((flag) => {
    const value = given.get(flag.name);
    if (value === undefined) return { name: flag.name, value: flag.initial };
    return { name: flag.name, value: flag.secret === true ? REDACTED : printFlagValue(flag.type, shown(flag, value)) };
  });
}

function shown({ url }: Flag, value: FlagValue): FlagValue {
  if (url !== true) return value;
  if (typeof value === 'string') return printUrlText(value);
  return typeof value === 'object' ? value.map(printUrlText) : value;
}

function parseValue(flag: Flag, text: string, previous: FlagValue | undefined, usage: () => string): FlagValue {
  const value = readFlagValue(flag.type, text, previous);
  if (!(value instanceof Refusal)) return value;
  throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${flag.name}`, text, value.detail)], usage());
}

function describe(error: CommanderError): string {
  // What is written behind an equals sign may be a credential.
  const flag = /'(-[^'=]*?)(?: <.*>|=.*)?'/s.exec(error.message)?.[1] ?? '';
  if (error.code === 'commander.unknownOption') return `unknown flag: ${flag}`;
  if (error.code === 'commander.optionMissingArgument')
    return `flag needs an argument: ${flag.split(', ').at(-1) ?? flag}`;
  return error.message.replace(/^error: /, '');
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The text of a flag; empty when it was not given. */
export function textFlag({ given }: CommandLine, name: FlagName): string {
  const value = given.get(name);
  return typeof value === 'string' ? value : '';
}

/** The text of a flag that counts when it is not given, too. */
export function settingOf({ given }: CommandLine, name: FlagName): string {
  const value = given.get(name) ?? FLAGS.find((flag) => flag.name === name)?.initial;
  return typeof value === 'string' ? value : '';
}

export function numberFlag({ given }: CommandLine, name: FlagName): number | null {
  const value = given.get(name);
  return typeof value === 'number' ? value : null;
}

export function listFlag({ given }: CommandLine, name: FlagName): readonly string[] {
  const value = given.get(name);
  return typeof value === 'object' ? value : [];
}

export function isFlagSet({ given }: CommandLine, name: FlagName): boolean {
  return given.get(name) === true;
}
