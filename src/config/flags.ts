import { Command, CommanderError } from 'commander';
import { ConfigError, invalid } from './errors.js';

type FlagType = 'bool' | 'int32' | 'string' | 'list';

/** One row of the command line. */
export interface Flag {
  /** With dashes; underscores are accepted in their place. */
  readonly name: string;
  readonly aliases?: readonly string[];
  /** One letter. */
  readonly short?: string;
  readonly type: FlagType;
  /** What stands for the value in the usage text. */
  readonly value: string;
  readonly help: string;
  /** The field of KubeProxyConfiguration it sets; absent for flags that set none. */
  readonly field?: readonly string[];
  /** Whether it counts beside --config; flags without a field always do. */
  readonly overridesFile?: boolean;
}

/** The rows whose values the code asks for by name, kept literal so that a misspelt name does not compile. */
const TABLE = [
  {
    name: 'config',
    type: 'string',
    value: 'file',
    help: 'KubeProxyConfiguration file, YAML or JSON; it replaces every flag but those that say otherwise',
  },
  {
    name: 'manifests',
    type: 'list',
    value: 'source',
    help: 'file, directory or URL to read Services, EndpointSlices and Nodes from; may be repeated',
  },
  {
    name: 'manifests-header',
    type: 'list',
    value: "'Name: value'",
    help: 'header for requests to manifest URLs; may be repeated',
  },
  {
    name: 'mode',
    aliases: ['proxy-mode'],
    type: 'string',
    value: 'mode',
    help: 'proxy mode: nftables (the default); also --proxy-mode',
    field: ['mode'],
  },
  {
    name: 'hostname-override',
    type: 'string',
    value: 'name',
    help: 'node name instead of the hostname; counts beside --config',
    field: ['hostnameOverride'],
    overridesFile: true,
  },
  {
    name: 'v',
    short: 'v',
    type: 'int32',
    value: 'level',
    help: 'log verbosity; counts beside --config',
    field: ['logging', 'verbosity'],
    overridesFile: true,
  },
  {
    name: 'cleanup',
    type: 'bool',
    value: 'bool',
    help: 'remove everything this program owns in the kernel, then exit',
  },
  {
    name: 'version',
    type: 'string',
    value: 'true|raw|vX.Y.Z',
    help: 'print the version, all of it with raw, and exit; vX.Y.Z…: report that version instead and go on',
  },
  {
    name: 'write-config-to',
    type: 'string',
    value: 'file',
    help: 'write the effective configuration to a file, then exit',
  },
] as const satisfies readonly Flag[];

export type FlagName = (typeof TABLE)[number]['name'];

export const FLAGS: readonly Flag[] = TABLE;

export const SUBCOMMANDS = ['plan', 'render', 'dump'] as const;
export type Subcommand = (typeof SUBCOMMANDS)[number];

const SUBCOMMAND_HELP = [
  '',
  'Commands, with the same flags:',
  '  plan    print the forwarding table of this node',
  '  render  print the ruleset as nftables JSON; needs no privileges',
  '  dump    print what the kernel holds, in the terms of plan',
  '',
].join('\n');

/** The command line taken apart. */
export interface CommandLine {
  readonly subcommand: Subcommand | null;
  /** Set when help was asked for: the text to print. */
  readonly help: string | null;
  /** Flags that were given, by name. */
  readonly given: ReadonlyMap<string, FlagValue>;
}

export type FlagValue = string | number | boolean | readonly string[];

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
    .usage('[plan|render|dump] [flags]')
    .argument('[command...]')
    .helpOption('-h, --help', 'print this text')
    .addHelpText('after', SUBCOMMAND_HELP)
    .exitOverride()
    .configureHelp({ visibleArguments: () => [], helpWidth: 120 })
    .configureOutput({ writeOut: (text) => (output += text), writeErr: () => undefined })
    .showSuggestionAfterError(false);
  for (const flag of FLAGS) {
    const names = `${flag.short === undefined ? '' : `-${flag.short}, `}--${flag.name} <${flag.value}>`;
    program.option(names, flag.help, (text: string, previous: FlagValue | undefined) =>
      parseValue(flag, text, previous, usage),
    );
  }
  const usage = (): string => program.helpInformation() + SUBCOMMAND_HELP;
  try {
    program.parse(normalise(argv), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { subcommand: null, help: output, given: new Map() };
    throw new ConfigError('CONFIG_USAGE', null, [describe(error)], usage());
  }
  const subcommand = SUBCOMMANDS.find((name) => name === program.args[0]) ?? null;
  if (program.args.length > (subcommand === null ? 0 : 1)) {
    const unexpected = program.args.slice(subcommand === null ? 0 : 1).filter((argument) => argument !== '');
    if (unexpected.length > 0) {
      throw new ConfigError(
        'CONFIG_USAGE',
        null,
        [`"pointsman" does not take any arguments, got ${JSON.stringify(unexpected)}`],
        usage(),
      );
    }
  }
  const options: Record<string, FlagValue> = program.opts();
  const given = FLAGS.map((flag): [string, FlagValue | undefined] => [flag.name, options[camelCase(flag.name)]]);
  return {
    subcommand,
    help: null,
    given: new Map(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  };
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

const TRUE_WORDS = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE_WORDS = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

function parseValue(flag: Flag, text: string, previous: FlagValue | undefined, usage: () => string): FlagValue {
  const refuse = (detail: string): never => {
    throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${flag.name}`, text, detail)], usage());
  };
  switch (flag.type) {
    case 'string':
      return text;
    case 'list':
      return [...(typeof previous === 'object' ? previous : []), text];
    case 'bool':
      return TRUE_WORDS.includes(text) || (FALSE_WORDS.includes(text) ? false : refuse('must be true or false'));
    case 'int32': {
      const value = /^[-+]?\d{1,10}$/.test(text) ? Number(text) : NaN;
      return value >= -(2 ** 31) && value < 2 ** 31 ? value : refuse('must be a 32-bit integer');
    }
  }
}

function describe(error: CommanderError): string {
  const flag = /'(-[^']*?)(?: <.*>)?'/.exec(error.message)?.[1] ?? '';
  if (error.code === 'commander.unknownOption') return `unknown flag: ${flag}`;
  if (error.code === 'commander.optionMissingArgument')
    return `flag needs an argument: ${flag.split(', ').at(-1) ?? flag}`;
  return error.message.replace(/^error: /, '');
}

function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
