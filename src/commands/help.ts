import type { Flag } from '../config/flag.js';
import { WORDS } from '../config/flags.js';
import type { CommandSpec } from './command.js';
import { flagGroups } from './groups.js';
import { synopsis } from './usage.js';

/** Where the text about a flag begins, in its own line where the flag is longer. */
const FLAG_COLUMN = 28;

/** What a command is for, with examples first. */
export function printHelp(spec: CommandSpec): string {
  const { summary, about, examples, flags, proxyFlags, exits } = spec;
  const shown = proxyFlags?.taken.filter(({ name }) => proxyFlags.shown.includes(name)) ?? [];
  const more = (proxyFlags?.taken.length ?? 0) - shown.length;
  return [
    `Usage: ${synopsis(spec)}`,
    '',
    ...wrapped(sentence(summary), 0),
    '',
    'Examples:',
    ...examples.flatMap(({ line, says }) => printExample(line, says)),
    ...about.flatMap((paragraph) => ['', ...wrapped(paragraph, 0)]),
    '',
    'Flags:',
    ...flags.flatMap(printFlag),
    ...HELP_FLAG,
    ...(shown.length === 0 ? [] : ['', 'Of the proxy:', ...shown.flatMap(printFlag)]),
    ...(more === 0 ? [] : [`  and ${more} more, see \`pointsman help flags\``]),
    '',
    'Exit status:',
    ...([0, 1, 2] as const).flatMap((status) => printExit(status, exits[status])),
    '',
  ].join('\n');
}

/** What there is. */
export function printOverview(commands: readonly CommandSpec[]): string {
  return [
    'Usage: pointsman [flags]            run the proxy of this node',
    '       pointsman COMMAND [flags]    look at it, or do something once',
    '',
    'Node service proxy for Kubernetes.',
    '',
    'Examples:',
    ...printExample('pointsman status', 'how the running proxy is doing'),
    ...printExample('pointsman explain 10.96.0.1:443', 'what happens to a packet, and why'),
    ...printExample('pointsman --config config.conf', 'run the proxy'),
    '',
    'Commands:',
    ...commands.flatMap(({ name, summary }) => columns(`  ${name}`, summary, 14)),
    '',
    '`pointsman help COMMAND` has the flags of a command and examples, and',
    '`pointsman help flags` those of the proxy.',
    '',
  ].join('\n');
}

/** The flags of the proxy. */
export function printProxyFlags(): string {
  return flagGroups()
    .flatMap(({ title, flags }) => [`${title}:`, ...flags.flatMap(printFlag), ''])
    .join('\n');
}

/** What `--help` without a command prints. */
export function printProxyHelp(commands: readonly CommandSpec[]): string {
  const [help = ''] = HELP_FLAG;
  return `${printOverview(commands)}\n${printProxyFlags()}\n${help}\n`;
}

const HELP_FLAG = ['  -h, --help                print this text'];

function printExample(line: string, says: string): readonly string[] {
  return [`  ${line}`, ...wrapped(says, 6)];
}

function printExit(status: number, means: string | null): readonly string[] {
  return means === null ? [] : columns(`  ${status}`, means, 5);
}

function printFlag(flag: Flag): readonly string[] {
  return columns(`  ${flagNames(flag)}`, describeFlag(flag), FLAG_COLUMN);
}

/** `-o, --output <text|json>`; a switch has no value. */
export function flagNames({ short, name, value, type }: Flag): string {
  const names = `${short === undefined || short === name ? '    ' : `-${short}, `}--${name}`;
  return type === 'bool' ? names : `${names} <${value ?? WORDS[type]}>`;
}

/** The flag's help with what it counts as when it is not given, as long as that says something. */
export function describeFlag({ help, initial, remark }: Flag): string {
  const text = remark === undefined ? help : `${help}; ${remark}`;
  return ['', '[]', '0', '0s', 'false'].includes(initial) ? text : `${text} (default ${initial})`;
}

/** Two columns, the second in lines of its own where the first is too wide. */
function columns(left: string, right: string, column: number): readonly string[] {
  const lines = wrapped(right, column);
  if (left.length + 2 > column) return [left, ...lines];
  const [first = '', ...rest] = lines;
  return [left.padEnd(column) + first.slice(column), ...rest];
}

export function sentence(phrase: string): string {
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
}

export { WIDTH };

/** Terminals are at least as wide. */
const WIDTH = 80;

/** Text in lines of at most {@link WIDTH} characters; a longer word has a line of its own. */
function wrapped(text: string, indent: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => ' '.repeat(indent) + each);
}
