import { Command, CommanderError } from 'commander';
import { printUrlText, REDACTED } from '../base/url-text.js';
import { ConfigError, invalid } from './errors.js';
import { FLAGS, type FlagName } from './flag-table.js';
import { printFlagValue, readFlagValue, Refusal, type FlagType, type FlagValue } from './flag-values.js';
import type { Flag } from './flag.js';

/** Words and flags of a command line. */
export interface ParsedWords {
  /** Help was asked for. */
  readonly help: boolean;
  /** Flags that were given, by name; of a command's own flags also what counts where they are not. */
  readonly given: ReadonlyMap<string, FlagValue>;
  readonly operands: readonly string[];
}

/** The command line of the proxy. */
export type CommandLine = Omit<ParsedWords, 'operands'>;

/**
 * Parses arguments of the proxy (without the program's own path) in the style of the Kubernetes components. A flag of a command is none of the proxy: a
 * forgotten word must not start one.
 *
 * @throws ConfigError
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const { help, given, operands } = parseWords(FLAGS, argv, 'pointsman');
  const rest = operands.filter((word) => word !== '');
  if (rest.length === 0 || help) return { help, given };
  const problem = `"pointsman" does not take any arguments, got ${hiddenWords(rest, FLAGS, given)}`;
  throw new ConfigError(
    'CONFIG_USAGE',
    null,
    [problem],
    'pointsman',
    rest.find((word) => !word.startsWith('-')),
  );
}

/** Words that do not belong there, as an error prints them: they may be the rest of a credential whose quotes were forgotten. */
export function hiddenWords(words: readonly string[], flags: readonly Flag[], given: CommandLine['given']): string {
  const hidden = flags.some(({ name, secret }) => secret === true && given.has(name));
  if (hidden) return `${words.length} that are not shown: they may belong to a header`;
  return JSON.stringify(words.map(printUrlText));
}

/** Words that are no flags of the proxy and no values of them, among which the name of a command may be. */
export function bareWords(argv: readonly string[]): readonly string[] {
  const words = normalise(argv, FLAGS);
  return words.filter(
    (word, index) => !word.startsWith('-') && !FLAGS.some(({ name }) => words[index - 1] === `--${name}`),
  );
}

/**
 * Parses the arguments of one command.
 *
 * @param usageOf whose flags they are, for the error.
 * @throws ConfigError
 */
export function parseWords(flags: readonly Flag[], argv: readonly string[], usageOf: string): ParsedWords {
  const program = new Command(usageOf)
    .argument('[words...]')
    .helpOption('-h, --help')
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined, stripColor: (text) => text })
    .showSuggestionAfterError(false);
  // This program prints its own help; the bundle leaves commander's out.
  program.helpInformation = () => '';
  for (const flag of flags)
    program.option(`--${flag.name} <${flag.value ?? WORDS[flag.type]}>`, '', (text: string, previous?: FlagValue) =>
      parseValue(flag, text, previous, usageOf),
    );
  try {
    program.parse(normalise(argv, flags), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { help: true, given: new Map(), operands: [] };
    throw wordError(error, usageOf);
  }
  const options: Record<string, FlagValue> = program.opts();
  const given = flags.map((flag): [string, FlagValue | undefined] => [flag.name, options[camelCase(flag.name)]]);
  return {
    help: false,
    operands: program.args,
    given: new Map(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  };
}

/** Rewrites pflag's spellings into the one commander reads: `--name=value` or `--name value`, with dashes and without single letters. */
function normalise(argv: readonly string[], flags: readonly Flag[]): string[] {
  const result: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? '';
    if (argument === '--') return [...result, ...argv.slice(index)];
    const long = /^--([^=]+)(?:=([^]*))?$/.exec(argument);
    if (long === null) {
      const letters = readLetters(argument, flags);
      result.push(...(letters?.words ?? [argument]));
      if (letters?.wantsValue === true) result.push(...argv.slice(++index, index + 1));
      continue;
    }
    const spelling = (long[1] ?? '').replaceAll('_', '-');
    const flag = flags.find(({ name }) => name === spelling);
    const value = long[2] ?? (flag === undefined ? undefined : impliedValue(flag));
    const name = flag?.name ?? spelling;
    result.push(value === undefined ? `--${name}` : `--${name}=${value}`);
    // The value of a flag is taken as it is, even when it looks like a flag.
    if (flag !== undefined && value === undefined) result.push(...argv.slice(++index, index + 1));
  }
  return result;
}

interface Letters {
  readonly words: readonly string[];
  /** The next argument is the value of the last letter. */
  readonly wantsValue: boolean;
}

/** Single letters, as in `-v4`, `-v=4` and `-aw`; null: the argument has none that is known. */
function readLetters(argument: string, flags: readonly Flag[]): Letters | null {
  const words: string[] = [];
  if (!/^-[^-]/.test(argument)) return null;
  for (let index = 1; index < argument.length; index++) {
    const flag = flags.find(({ short }) => short === argument[index]);
    if (flag === undefined)
      return words.length === 0 ? null : { words: [...words, `-${argument.slice(index)}`], wantsValue: false };
    const rest = argument.slice(index + 1);
    const implied = impliedValue(flag);
    if (rest.startsWith('=')) return { words: [...words, `--${flag.name}${rest}`], wantsValue: false };
    if (implied === undefined) {
      if (rest === '') return { words: [...words, `--${flag.name}`], wantsValue: true };
      return { words: [...words, `--${flag.name}=${rest}`], wantsValue: false };
    }
    words.push(`--${flag.name}=${implied}`);
  }
  return { words, wantsValue: false };
}

/** Of a flag that means something without a value. */
function impliedValue({ name, type }: Flag): string | undefined {
  return type === 'bool' || name === 'version' ? 'true' : undefined;
}

/** What stands for the value in the usage text. */
export const WORDS: Readonly<Record<FlagType, string>> = {
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

function parseValue(flag: Flag, text: string, previous: FlagValue | undefined, usageOf: string): FlagValue {
  const value = readFlagValue(flag.type, text, previous);
  if (!(value instanceof Refusal)) return value;
  throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${flag.name}`, text, value.detail)], usageOf);
}

function wordError({ code, message }: CommanderError, usageOf: string): ConfigError {
  // What is written behind an equals sign may be a credential.
  const flag = /'(-[^'=]*?)(?: <.*>|=.*)?'/s.exec(message)?.[1] ?? '';
  const fail = (problem: string, unknown?: string): ConfigError =>
    new ConfigError('CONFIG_USAGE', null, [problem], usageOf, unknown);
  if (code === 'commander.unknownOption') return fail(`unknown flag: ${flag}`, flag);
  if (code === 'commander.optionMissingArgument')
    return fail(`flag needs an argument: ${flag.split(', ').at(-1) ?? flag}`);
  return fail(message.replace(/^error: /, ''));
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
