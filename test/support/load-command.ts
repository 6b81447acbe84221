import { commandSettings } from '../../src/config/command-settings.js';
import { parseCommand } from '../../src/commands/command-line.js';
import type { ConfigFiles } from '../../src/config/files.js';
import { subcommandOf } from '../../src/config/flags.js';
import { loadConfig, loadLine, type LoadedConfig, type Target } from '../../src/config/load.js';

/** What the program makes of a command line, be it that of the proxy or of a command. */
export function loadCommand(
  argv: readonly string[],
  files: ConfigFiles,
  hostname?: () => string,
  target?: Target,
): LoadedConfig {
  const command = subcommandOf(argv);
  if (command === null) return loadConfig(argv, files, hostname, target);
  return loadLine(parseCommand(command, argv), files, commandSettings, hostname, target);
}
