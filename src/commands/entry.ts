import type { ConfigError } from '../config/errors.js';
import { adviceOn } from './command-line.js';
import { printHelp, printProxyHelp } from './help.js';
import { commandNamed, COMMANDS } from './table.js';
import { usageLine } from './usage.js';

/** What `--help` prints. @param of null: without a command. */
export function helpOf(of: string | null): string {
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

export { commandOf, manifestsProblems, parseCommand } from './command-line.js';
export { Given } from './given.js';
export { versionText } from './version.js';
