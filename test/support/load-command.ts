import { commandOf, manifestsProblems, parseCommand } from '../../src/commands/command-line.js';
import { Given } from '../../src/commands/given.js';
import type { ConfigFiles } from '../../src/config/files.js';
import type { FlagValue } from '../../src/config/flag-values.js';
import { loadConfig, loadLine, type Loaded, type LoadedConfig, type Target } from '../../src/config/load.js';

/** What the command line of a command comes to. */
type LoadedCommand =
  | { readonly command: 'help'; readonly of: string }
  | (Loaded & {
      readonly command: 'dump' | 'explain' | 'plan' | 'render' | 'status';
      readonly given: Readonly<Record<string, FlagValue>>;
      readonly operands: readonly string[];
    });

/** What the program makes of a command line, be it that of the proxy or of a command. */
export function loadCommand(
  argv: readonly string[],
  files: ConfigFiles,
  hostname?: () => string,
  target?: Target,
): LoadedConfig | LoadedCommand {
  const command = commandOf(argv);
  if (command === null || command.needs === null) return loadConfig(argv, files, hostname, target);
  const line = parseCommand(command, argv);
  if (line.help) return { command: 'help', of: command.name };
  const loaded = loadLine(line, files, manifestsProblems(command, line), hostname, target);
  command.prepare(new Given(command.flags, line), loaded);
  const name = command.name as 'dump' | 'explain' | 'plan' | 'render' | 'status';
  return { command: name, given: Object.fromEntries(line.given), operands: line.operands, ...loaded };
}
