// What a command does not need it does not load. This first, so that signals are heard from the beginning:
import { handleSignals } from './cli/signals.js';
import { messageOf } from './base/error-message.js';
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigError } from './config/errors.js';
import { readConfigPipe, systemFiles } from './config/files.js';
import { bareWords } from './config/flags.js';
import { loadConfig, loadLine, type Loaded, type LoadedConfig } from './config/load.js';
import type { ProxyCommand } from './commands/definition.js';
import type { Machine } from './control/mode.js';
import type { Host } from './host/host.js';
import type { LogFile } from './host/windows/log-file.js';
import { printableText } from './base/printable.js';
import type { Logger } from './observe/log.js';
import { sourceStack } from './observe/source-places.js';

/** As a plugin of kubectl, on a machine that is often no node, the program only runs commands. */
const IS_PLUGIN = basename(process.argv[1] ?? '').startsWith('kubectl-');

/** The exit status of an error: the proxy ends with 1, as its peer does; a command that could not tell with 2. */
let failure: 1 | 2 = IS_PLUGIN ? 2 : 1;

const TERMINAL = { write, complain, isTerminal: process.stdout.isTTY, handleSignals };

async function main(argv: readonly string[]): Promise<number> {
  if (IS_PLUGIN && argv.length === 0) return await main(['help']);
  if (bareWords(argv).length > 0) {
    const entry = await import('./commands/entry.js');
    const command = entry.commandOf(argv);
    if (command?.needs === null) return await command.run(argv.slice(1), TERMINAL);
    if (command !== null) return await runCommand(command, argv, entry);
  }
  await readConfigPipe(argv);
  const loaded = loadConfig(argv, systemFiles);
  if (loaded.command === 'help') {
    await write((await import('./commands/entry.js')).helpOf(null));
    return 0;
  }
  if (loaded.command === 'version') {
    process.stdout.write((await import('./commands/entry.js')).versionText(loaded.format));
    return 0;
  }
  if (IS_PLUGIN) {
    complain('kubectl pointsman runs commands, not the proxy: see `kubectl pointsman help`');
    return 2;
  }
  if (loaded.command === 'write-config') return writeConfig(loaded);
  if (loaded.command === 'run') return await runProxy(loaded, argv);
  return await runOnce(loaded.command, loaded);
}

async function runCommand(
  command: ProxyCommand,
  argv: readonly string[],
  { Given, helpOf, manifestsProblems, parseCommand }: typeof import('./commands/entry.js'),
): Promise<number> {
  failure = 2;
  await readConfigPipe(argv);
  const line = parseCommand(command, argv);
  if (line.help) {
    await write(helpOf(command.name));
    return 0;
  }
  const loaded = loadLine(line, systemFiles, manifestsProblems(command, line));
  const run = command.prepare(new Given(command.flags, line), loaded);
  // Asking another process is not the place to warn of this one's settings.
  const asks =
    command.needs === 'process' || (command.needs === 'process or manifests' && loaded.config.manifests.length === 0);
  const log = await openLog(asks ? { ...loaded, warnings: [] } : loaded, false);
  return await run({ ...TERMINAL, log, machine, host });
}

function writeConfig({ path, text, warnings }: Extract<LoadedConfig, { readonly command: 'write-config' }>): number {
  for (const warning of warnings) complain(warning);
  try {
    writeFileSync(path, text);
    return 0;
  } catch (error) {
    complain(`--write-config-to: ${messageOf(error)}`);
    return 1;
  }
}

/** The log of a process, and what it has to say about its settings. */
async function openLog(loaded: Loaded, isService: boolean): Promise<Logger> {
  const { config, warnings } = loaded;
  const { createLogger } = await import('./observe/log.js');
  const { logStreams } = await import('./observe/log-streams.js');
  const file = isService ? await logFile() : await fileWithoutStandardError();
  lastWords = file;
  const log = await createLogger(
    config.logging,
    file === null ? logStreams : (logging) => logStreams(logging, file, file),
  );
  for (const { name, value } of loaded.flags) log.info(1, `FLAG: --${name}=${JSON.stringify(value)}`);
  for (const warning of warnings) log.warn(warning);
  return log;
}

async function runProxy(loaded: Loaded, argv: readonly string[]): Promise<number> {
  const isService = process.platform === 'win32' && loaded.document.windowsRunAsService;
  const log = await openLog(loaded, isService);
  const { run } = await import('./cli/run.js');
  const { host, addon } = await machine();
  const toEnd = (): Promise<number> => run(loaded, argv, { host, addon }, log);
  if (!isService) return await toEnd();
  const { runAsService } = await import('./cli/service.js');
  return await runAsService(addon.service, toEnd);
}

/** A run of the proxy that a flag asks for, which ends by itself. */
async function runOnce(command: 'cleanup' | 'init', loaded: Loaded): Promise<number> {
  const { config, version } = loaded;
  const log = await openLog(loaded, false);
  const { cleanup, init, printOutput } = await import('./cli/commands.js');
  const once =
    command === 'cleanup' ? cleanup(config, await machine(), log) : init(config, version, await machine(), log);
  return await printOutput(await once, { log, write });
}

/** Where to say why the process cannot go on, once that is known; null: to standard error. */
let lastWords: LogFile | null | undefined;

/** This one. */
async function machine(): Promise<Machine> {
  const { loadAddon } = await import('./native/load.js');
  return { host: await host(), addon: loadAddon() };
}

/** What needs no kernel does without the addon. */
async function host(): Promise<Host> {
  if (process.platform === 'win32') return (await import('./host/windows/host.js')).WINDOWS_HOST;
  return (await import('./host/linux/host.js')).LINUX_HOST;
}

/** What a process of Windows that has no standard error writes to instead; null: it has one. */
async function fileWithoutStandardError(): Promise<LogFile | null> {
  if (process.platform !== 'win32') return null;
  const { hasStandardError } = await import('./host/windows/log-file.js');
  return hasStandardError() ? null : await logFile();
}

async function logFile(): Promise<LogFile> {
  const { LogFile, logFilePath } = await import('./host/windows/log-file.js');
  return new LogFile(logFilePath(process.env));
}

/** Writes to the standard output. A reader that has seen enough, such as head(1), is no error. */
async function write(text: string): Promise<void> {
  process.stdout.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    process.stdout.write(text, () => {
      resolve();
    });
  });
}

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  async (error: unknown) => {
    complainTo(await describe(error), lastWords === undefined ? await fileWithoutStandardError() : lastWords);
    process.exitCode = failure;
  },
);

function complain(text: string): void {
  complainTo(text, null);
}

function complainTo(text: string, to: Pick<LogFile, 'write'> | null): void {
  (to ?? process.stderr).write(`${printableText(text)}\n`);
}

/** By name: what is loaded on demand has a class of its own of the same name. */
const EXPECTED: readonly string[] = ['KubeconfigError', 'ModeError', 'QuestionError', 'AskError'];

/** Problems with flags and files in words, with the usage where it helps; anything else with its stack. */
async function describe(error: unknown): Promise<string> {
  if (error instanceof ConfigError) {
    if (error.usage === null) return error.message;
    const { describeUsage } = await import('./commands/entry.js');
    return describeUsage(error);
  }
  if (error instanceof Error && EXPECTED.includes(error.name)) return error.message;
  return error instanceof Error ? sourceStack(error.stack ?? error.message) : String(error);
}
