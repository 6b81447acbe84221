// What a command does not need it does not load. This first, so that signals are heard from the beginning:
import { handleSignals } from './cli/signals.js';
import { messageOf } from './base/error-message.js';
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ConfigError } from './config/errors.js';
import { readConfigPipe, systemFiles } from './config/files.js';
import { subcommandOf } from './config/flags.js';
import { loadConfig, loadLine, type LoadedConfig } from './config/load.js';
import type { NodeQuestion, ReportedNodes } from './cli/run-command.js';
import type { Output } from './cli/commands.js';
import type { Machine } from './control/mode.js';
import type { Host } from './host/host.js';
import type { LogFile } from './host/windows/log-file.js';
import { printableText } from './base/printable.js';
import type { Logger } from './observe/log.js';
import { sourceStack } from './observe/source-places.js';

type Configured = Exclude<LoadedConfig, { readonly command: 'help' | 'version' | 'write-config' }>;

/** As a plugin of kubectl, on a machine that is often no node, the program only runs commands. */
const IS_PLUGIN = basename(process.argv[1] ?? '').startsWith('kubectl-');

async function main(argv: readonly string[]): Promise<number> {
  const [first = IS_PLUGIN ? 'help' : undefined, ...rest] = argv;
  if (first === 'check') {
    const { check } = await import('../packages/check/src/command.js');
    const { stdout, stderr, status } = await check(rest);
    process.stderr.write(stderr);
    await write(stdout);
    return status;
  }
  if (first === 'webhook') {
    const { webhook } = await import('../packages/webhook/src/command.js');
    return await webhook(rest, handleSignals);
  }
  if (first === 'nodes') {
    const { nodes } = await nodesPackage();
    return await nodes(rest, { write, complain, isTerminal: process.stdout.isTTY });
  }
  if (first === 'help' || first === 'completion' || first === 'man') {
    const { about } = await import('./commands/entry.js');
    const { stdout, stderr, status } = about(first, rest);
    process.stderr.write(printableText(stderr));
    await write(stdout);
    return status;
  }
  await readConfigPipe(argv);
  const loaded = await load(argv);
  if (loaded.command === 'help') {
    await write((await import('./commands/entry.js')).helpOf(loaded.of));
    return 0;
  }
  if (loaded.command === 'version') {
    process.stdout.write((await import('./commands/entry.js')).versionText(loaded.format));
    return 0;
  }
  if (IS_PLUGIN && subcommandOf(argv) === null) {
    complain('kubectl pointsman runs commands, not the proxy: see `kubectl pointsman help`');
    return 2;
  }
  return loaded.command === 'write-config' ? writeConfig(loaded) : await runConfigured(loaded, argv);
}

async function load(argv: readonly string[]): Promise<LoadedConfig> {
  const command = subcommandOf(argv);
  if (command === null) return loadConfig(argv, systemFiles);
  const { parseCommand, commandSettings } = await import('./commands/entry.js');
  return loadLine(parseCommand(command, argv), systemFiles, commandSettings);
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
async function openLog(loaded: Configured, isService: boolean): Promise<Logger> {
  const { config, command } = loaded;
  const { createLogger } = await import('./observe/log.js');
  const { logStreams } = await import('./observe/log-streams.js');
  const file = isService ? await logFile() : await fileWithoutStandardError();
  lastWords = file;
  const log = await createLogger(
    config.logging,
    file === null ? logStreams : (logging) => logStreams(logging, file, file),
  );
  for (const { name, value } of loaded.flags) log.info(1, `FLAG: --${name}=${JSON.stringify(value)}`);
  // Asking another process is not the place to warn of this one's settings.
  const asks =
    ['status', 'services', 'trace', 'selftest', 'top', 'bugreport', 'ui'].includes(command) ||
    (command === 'explain' && config.manifests.length === 0);
  for (const warning of asks ? [] : loaded.warnings) log.warn(warning);
  return log;
}

async function runConfigured(loaded: Configured, argv: readonly string[]): Promise<number> {
  const isService = process.platform === 'win32' && loaded.command === 'run' && loaded.document.windowsRunAsService;
  const log = await openLog(loaded, isService);
  if (loaded.command === 'run') {
    const { run } = await import('./cli/run.js');
    const { host, addon } = await machine();
    const toEnd = (): Promise<number> => run(loaded, argv, { host, addon }, log);
    if (!isService) return await toEnd();
    const { runAsService } = await import('./cli/service.js');
    return await runAsService(addon.service, toEnd);
  }
  const { runCommand } = await import('./cli/run-command.js');
  return await runCommand(loaded, log, { machine, host, write, explainOn, bugreportOf });
}

/** Of other nodes. */
async function bugreportOf(asked: ReportedNodes): Promise<number> {
  const nodes = await nodesPackage();
  return await nodes.bugreportOf(asked, { write, complain });
}

async function explainOn(question: NodeQuestion): Promise<Output> {
  const nodes = await nodesPackage();
  return await nodes.explainOn(question);
}

const nodesPackage = async () => await import('../packages/nodes/src/command.js');

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
    complain(await describe(error), lastWords === undefined ? await fileWithoutStandardError() : lastWords);
    // The proxy ends with 1, as its peer does; a command that could not tell with 2.
    process.exitCode = subcommandOf(process.argv.slice(2)) === null && !IS_PLUGIN ? 1 : 2;
  },
);

function complain(text: string, to: Pick<LogFile, 'write'> | null = null): void {
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
