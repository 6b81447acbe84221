import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../base/error-message.js';
import { mostSimilar } from '../base/similar.js';
import { COMMAND_NAMES, type CommandName } from '../config/command-names.js';
import type { ConfigError } from '../config/errors.js';
import { COMPLETION, MAN } from './about.js';
import { adviceOn } from './command-line.js';
import { printCompletion, SHELLS } from './completion.js';
import { parseGiven, refusal, type Given } from './given.js';
import { printHelp, printOverview, printProxyFlags, printProxyHelp } from './help.js';
import { printManPage, printProxyManPage } from './man.js';
import { printExitStatuses, printReference } from './reference.js';
import { commandNamed, COMMANDS } from './table.js';
import { usageLine } from './usage.js';

/** What a command about commands prints, and its exit status. */
interface About {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 2;
}

/** The commands `help`, `completion` and `man`. */
export function about(command: 'help' | 'completion' | 'man', argv: readonly string[]): About {
  const spec = commandNamed(command);
  if (spec === null) return failed(command);
  const given = parseGiven(spec, argv);
  if (typeof given === 'string') return failed(refusal(given, spec).trimEnd());
  if (given.help) return printed(printHelp(spec));
  const [word, ...more] = given.operands;
  if (more.length > 0) return failed(refusal(`${command} takes one word`, spec).trimEnd());
  if (command === 'help') return help(word);
  return command === 'completion' ? completion(word) : man(word, given);
}

/** What `--help` prints. @param of null: without a command. */
export function helpOf(of: CommandName | null): string {
  const spec = of === null ? null : commandNamed(of);
  return spec === null ? printProxyHelp(COMMANDS) : printHelp(spec);
}

/** What is printed about a wrong command line: for the proxy with all its flags, as its peer does. */
export function describeUsage(error: ConfigError): string {
  const { message, usage } = error;
  const spec = usage === null ? null : commandNamed(usage);
  const text = [message, adviceOn(error)].filter((line) => line !== null).join('\n');
  if (usage === null) return text;
  return `${text}\n\n${spec === null ? printProxyHelp(COMMANDS).trimEnd() : usageLine(spec)}`;
}

export { commandSettings } from '../config/command-settings.js';
export { parseCommand } from './command-line.js';
export { versionText } from './version.js';

function help(word: string | undefined): About {
  if (word === undefined) return printed(printOverview(COMMANDS));
  if (word === 'flags' || word === 'proxy') return printed(printProxyFlags());
  if (word === 'exit-status') return printed(printExitStatuses(COMMANDS));
  const spec = commandNamed(word);
  return spec === null ? unknown(word) : printed(printHelp(spec));
}

function completion(word: string | undefined): About {
  const shell = SHELLS.find((each) => each === word);
  if (shell !== undefined) return printed(printCompletion(shell, COMMANDS));
  return failed(refusal(`completion is for ${SHELLS.join(', ')}`, COMPLETION).trimEnd());
}

function man(word: string | undefined, given: Given): About {
  const folder = given.text('all');
  const output = given.text('output');
  if (folder !== '') return writeAll(folder);
  if (output === 'markdown') return printed(printReference(COMMANDS));
  if (output !== 'man') return failed(refusal('--output: must be man or markdown', MAN).trimEnd());
  if (word === undefined) return printed(printProxyManPage(COMMANDS));
  const spec = commandNamed(word);
  return spec === null ? unknown(word) : printed(printManPage(spec));
}

function writeAll(folder: string): About {
  const pages = [
    ['pointsman', printProxyManPage(COMMANDS)],
    ...COMMANDS.map((command) => [`pointsman-${command.name}`, printManPage(command)]),
  ];
  try {
    for (const [name = '', text = ''] of pages) writeFileSync(join(folder, `${name}.1`), text);
  } catch (error) {
    return failed(`--all: ${messageOf(error)}`);
  }
  return printed('');
}

function unknown(word: string): About {
  const similar = mostSimilar(word, COMMAND_NAMES);
  return failed(
    `there is no command ${JSON.stringify(word)}${similar === null ? '' : `; did you mean "${similar}"?`}\n\n${printOverview(COMMANDS).trimEnd()}`,
  );
}

function printed(stdout: string): About {
  return { stdout, stderr: '', status: 0 };
}

function failed(message: string): About {
  return { stdout: '', stderr: `${message}\n`, status: 2 };
}
