// What a command does not need it does not load. This first, so that signals are heard from the beginning:
import { handleSignals } from './cli/signals.js';
import { messageOf } from './base/error-message.js';
import { writeFileSync } from 'node:fs';
import { ConfigError } from './config/errors.js';
import { readConfigPipe, systemFiles } from './config/files.js';
import { subcommandOf } from './config/flags.js';
import { loadConfig, loadLine, type LoadedConfig } from './config/load.js';
import { BUILD, KUBERNETES_VERSION, ownVersion, treeState } from './config/version.js';
import { AskError } from './cli/ask.js';
import type { Output } from './cli/commands.js';
import { ModeError } from './dataplane/mode.js';
import type { Machine } from './control/mode.js';
import type { Host } from './host/host.js';
import type { LogFile } from './host/windows/log-file.js';
import { goPlatform } from './base/platform.js';
import { printableText } from './base/printable.js';
import { QuestionError } from './plan/question.js';
import { KubeconfigError } from './sources/kubernetes/auth/errors.js';
import type { Logger } from './observe/log.js';
import { sourceStack } from './observe/source-places.js';

type Configured = Exclude<LoadedConfig, { readonly command: 'help' | 'version' | 'write-config' }>;

async function main(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv;
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
    const { nodes } = await import('../packages/nodes/src/command.js');
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
    process.stdout.write(versionText(loaded.format));
    return 0;
  }
  return loaded.command === 'write-config' ? writeConfig(loaded) : await runConfigured(loaded, argv);
}

async function load(argv: readonly string[]): Promise<LoadedConfig> {
  const command = subcommandOf(argv);
  if (command === null) return loadConfig(argv, systemFiles);
  const { parseCommand } = await import('./commands/entry.js');
  return loadLine(parseCommand(command, argv), systemFiles);
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
  const { config } = loaded;
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
  const commands = await import('./cli/commands.js');
  switch (loaded.command) {
    case 'plan':
      return print(await commands.plan(config, loaded.output), log);
    case 'render':
      return print(await commands.render(config, await machine()), log);
    case 'dump':
      return print(await commands.dump(config, await machine(), log, loaded.output), log);
    case 'diff': {
      const { diff } = await import('./cli/diff.js');
      return await printDiff(await diff(config, loaded.version, await machine(), log, loaded.output), log);
    }
    case 'explain':
      return print(await explain(loaded), log);
    case 'ui':
    case 'services':
    case 'trace':
    case 'selftest':
    case 'top':
    case 'bugreport':
    case 'status':
      return await askProcess(loaded, log);
    case 'cleanup':
      return print(await commands.cleanup(config, await machine(), log), log);
    case 'init':
      return print(await commands.init(config, loaded.version, await machine(), log), log);
  }
}

type AskingCommand = 'ui' | 'services' | 'trace' | 'selftest' | 'top' | 'bugreport' | 'status';

/** Of commands that ask the running process. */
async function askProcess(
  loaded: Extract<Configured, { readonly command: AskingCommand }>,
  log: Logger,
): Promise<number> {
  const { config } = loaded;
  switch (loaded.command) {
    case 'ui': {
      const { servePage } = await import('./cli/page.js');
      await write(await servePage(config.statusSocket, loaded.listen));
      return 0;
    }
    case 'services': {
      const { services } = await import('./cli/services.js');
      return await services(loaded, process.stdout.isTTY, write);
    }
    case 'trace': {
      const { trace } = await import('./cli/trace.js');
      return await trace(loaded, await machine(), write);
    }
    case 'selftest': {
      const { selftest } = await import('./cli/selftest.js');
      return await selftest(loaded, await machine(), write);
    }
    case 'top': {
      const { top } = await import('./cli/top.js');
      return await top(loaded, process.stdout.isTTY, write);
    }
    case 'bugreport': {
      const { bugreport } = await import('./cli/bugreport.js');
      return await bugreport(loaded, (await machine()).addon, write);
    }
    case 'status':
      if (loaded.watch) {
        const { watchStatus } = await import('./cli/watch-status.js');
        return await watchStatus(config.statusSocket, loaded.output, process.stdout.isTTY, write);
      }
      return print(await (await import('./cli/commands.js')).status(config, loaded.output, loaded.heapSnapshot), log);
  }
}

async function explain(loaded: Extract<Configured, { readonly command: 'explain' }>): Promise<Output> {
  const { config, node, namespace, selector, from, to, output } = loaded;
  if (node !== '') {
    const { explainOn } = await import('../packages/nodes/src/command.js');
    const kubeconfig = config.kubernetes?.kubeconfig ?? '';
    return await explainOn({ kubeconfig, node, namespace, selector, from, to, output });
  }
  const commands = await import('./cli/commands.js');
  return await commands.explain(config, await host(), from, to, output);
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

/** Writes a command's output; problems go to the log. The exit status: 0 all is well, 1 it is not, or there were errors. */
async function print({ text, errors, warnings, well }: Output, log: Logger): Promise<number> {
  for (const warning of warnings) log.warn(warning);
  for (const error of errors) log.error(null, error);
  await write(printableText(text));
  if (errors.length > 0) return text === '' && well !== undefined ? 2 : 1;
  return well === false ? 1 : 0;
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

/** As diff(1): 0 when nothing would change, 1 when something would, 2 when that cannot be said. */
async function printDiff(output: Output, log: Logger): Promise<number> {
  const status = await print(output, log);
  return output.errors.length > 0 ? 2 : status;
}

function versionText(format: 'short' | 'raw'): string {
  if (format === 'short') return `Kubernetes ${KUBERNETES_VERSION} (${ownVersion()})\n`;
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.');
  // kube-proxy prints its structure as Go source (behaviour CL-03); the commit and the date of the build are ours, and what is of Go is empty or Node's.
  const fields = {
    Major: major,
    Minor: minor,
    EmulationMajor: '',
    EmulationMinor: '',
    MinCompatibilityMajor: '',
    MinCompatibilityMinor: '',
    GitVersion: KUBERNETES_VERSION,
    GitCommit: BUILD.commit.replace(/-dirty$/, ''),
    GitTreeState: treeState(),
    BuildDate: BUILD.date,
    GoVersion: process.version,
    Compiler: 'node',
    Platform: goPlatform(),
  };
  const parts = Object.entries(fields).map(([name, value]) => `${name}:${JSON.stringify(value)}`);
  return `version.Info{${parts.join(', ')}}\n`;
}

main(process.argv.slice(2)).then(
  (status) => {
    process.exitCode = status;
  },
  async (error: unknown) => {
    complain(await describe(error), lastWords === undefined ? await fileWithoutStandardError() : lastWords);
    // The proxy ends with 1, as its peer does; a command that could not tell with 2.
    process.exitCode = subcommandOf(process.argv.slice(2)) === null ? 1 : 2;
  },
);

function complain(text: string, to: Pick<LogFile, 'write'> | null = null): void {
  (to ?? process.stderr).write(`${printableText(text)}\n`);
}

/** Problems with flags and files in words, with the usage where it helps; anything else with its stack. */
async function describe(error: unknown): Promise<string> {
  if (error instanceof ConfigError) {
    if (error.usage === null) return error.message;
    const { describeUsage } = await import('./commands/entry.js');
    return describeUsage(error);
  }
  const expected = [KubeconfigError, ModeError, QuestionError, AskError];
  if (error instanceof Error && expected.some((kind) => error instanceof kind)) return error.message;
  return error instanceof Error ? sourceStack(error.stack ?? error.message) : String(error);
}
