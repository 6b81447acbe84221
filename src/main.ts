#!/usr/bin/env -S node --max-semi-space-size=2
// A small young generation: after a start the process only sees changes, and what a large one saves in time it keeps in memory.
import { messageOf } from './base/error-message.js';
import { handleSignals } from './cli/signals.js';
import { writeFileSync } from 'node:fs';
import { ConfigError } from './config/errors.js';
import { systemFiles } from './config/files.js';
import { printChange } from './config/compare.js';
import { loadConfig, type Loaded, type LoadedConfig } from './config/load.js';
import { KUBERNETES_VERSION } from './config/version.js';
import { ConfigWatch, type ConfigOutcome } from './control/config-watch.js';
import { AskError } from './cli/ask.js';
import type { Output } from './cli/commands.js';
import { limitHeapGrowth, limitInlining } from './cli/memory.js';
import { ModeError } from './dataplane/mode.js';
import { logTransactions, prepareMode, type Machine } from './control/mode.js';
import { NodeProxy } from './cli/node-proxy.js';
import { LINUX_HOST } from './host/linux/host.js';
import { loadAddon } from './native/load.js';
import { goPlatform } from './base/platform.js';
import { printableText } from './base/printable.js';
import { QuestionError } from './plan/question.js';
import { KubeconfigError } from './sources/kubernetes/auth/errors.js';
import { createLogger, type Logger } from './observe/log.js';
import { logStreams } from './observe/log-streams.js';
import { sourceStack } from './observe/source-places.js';

type Configured = Exclude<LoadedConfig, { readonly command: 'help' | 'version' | 'write-config' }>;

async function main(argv: readonly string[]): Promise<number> {
  const loaded = loadConfig(argv, systemFiles);
  switch (loaded.command) {
    case 'help':
      process.stdout.write(loaded.text);
      return 0;
    case 'version':
      process.stdout.write(versionText(loaded.format));
      return 0;
    case 'write-config':
      return writeConfig(loaded);
    case 'run':
    case 'init':
    case 'plan':
    case 'render':
    case 'dump':
    case 'diff':
    case 'cleanup':
    case 'explain':
    case 'status':
      return await runConfigured(loaded, argv);
  }
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

async function runConfigured(loaded: Configured, argv: readonly string[]): Promise<number> {
  const { config } = loaded;
  const log = await createLogger(config.logging, logStreams);
  for (const { name, value } of loaded.flags) log.info(1, `FLAG: --${name}=${JSON.stringify(value)}`);
  // Asking another process is not the place to warn of this one's settings.
  const asks = loaded.command === 'status' || (loaded.command === 'explain' && config.manifests.length === 0);
  for (const warning of asks ? [] : loaded.warnings) log.warn(warning);
  if (loaded.command === 'run') return await run(loaded, argv, log);
  // Loaded only here: a node that starts waits for nothing that it does not need.
  const commands = await import('./cli/commands.js');
  switch (loaded.command) {
    case 'plan':
      return print(await commands.plan(config), log);
    case 'render':
      return print(await commands.render(config, machine()), log);
    case 'dump':
      return print(await commands.dump(config, machine(), log), log);
    case 'diff': {
      const { diff } = await import('./cli/diff.js');
      return await printDiff(await diff(config, loaded.version, machine(), log), log);
    }
    case 'explain':
      return print(await commands.explain(config, LINUX_HOST, loaded.from, loaded.to, loaded.output), log);
    case 'status':
      return print(await commands.status(config, loaded.output, loaded.heapSnapshot), log);
    case 'cleanup':
      return print(await commands.cleanup(loadAddon()), log);
    case 'init':
      return print(await commands.init(config, loaded.version, machine(), log), log);
  }
}

/** This one; what needs no kernel does without the addon. */
function machine(): Machine {
  return { host: LINUX_HOST, addon: loadAddon() };
}

/** Writes a command's output; problems go to the log and errors make the exit status 1. */
async function print({ text, errors, warnings }: Output, log: Logger): Promise<number> {
  for (const warning of warnings) log.warn(warning);
  for (const error of errors) log.error(null, error);
  // A reader that has seen enough, such as head(1), is no error.
  process.stdout.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    process.stdout.write(printableText(text), () => {
      resolve();
    });
  });
  return errors.length === 0 ? 0 : 1;
}

/** As diff(1): 0 when nothing would change, 1 when something would, 2 when that cannot be said. */
async function printDiff(output: Output, log: Logger): Promise<number> {
  if ((await print(output, log)) !== 0) return 2;
  return output.text === '' ? 0 : 1;
}

/** Runs until a signal or a fatal error; the exit status. */
async function run(loaded: Loaded, argv: readonly string[], log: Logger): Promise<number> {
  limitHeapGrowth();
  limitInlining();
  const { host, addon } = machine();
  host.nameProcess('pointsman', argv);
  const { config, version } = loaded;
  const mode = await prepareMode(config, { host, addon }, host.families(), log, logTransactions(log));
  const { families } = mode;
  let end: (status: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  const proxy = new NodeProxy({
    loaded,
    machine: { host, addon },
    mode,
    log,
    onFatal: (error) => {
      log.error(error, 'cannot go on');
      end(1);
    },
  });
  handleSignals((signal) => {
    log.info(0, 'stopping, rules stay in place', { signal });
    end(0);
  });
  log.info(0, 'starting', {
    version,
    mode: config.mode,
    node: config.nodeName,
    manifests: config.manifests.map(({ name }) => name).join(),
    families: families.join(),
  });
  let watch: ConfigWatch | null = null;
  try {
    await proxy.start();
    watch = new ConfigWatch({
      argv,
      inForce: () => proxy.inForce,
      onOutcome: (outcome) => followConfig(outcome, proxy, log),
    });
    return await ended;
  } finally {
    watch?.stop();
    await proxy.stop();
  }
}

/** What the process does about changed configuration files; false: nothing yet, and trying again may help. */
async function followConfig(outcome: ConfigOutcome, proxy: NodeProxy, log: Logger): Promise<boolean> {
  const refuse = (error: unknown): false => {
    const why = messageOf(error);
    // It was tried again.
    if (why === proxy.refusal) return false;
    log.error(error, 'changed configuration refused, the one in force stays');
    proxy.configRefused(why);
    return false;
  };
  switch (outcome.type) {
    case 'refused':
      return refuse(outcome.error);
    case 'unchanged':
    case 'apply': {
      const { warnings } = proxy.inForce;
      try {
        await proxy.reconfigure(outcome);
      } catch (error) {
        return refuse(error);
      }
      for (const warning of outcome.warnings) if (!warnings.includes(warning)) log.warn(warning);
      if (outcome.type === 'apply')
        log.info(0, 'configuration changed', { changes: outcome.changes.map(printChange).join('; ') });
      return true;
    }
  }
}

function versionText(format: 'short' | 'raw'): string {
  if (format === 'short') return `Kubernetes ${KUBERNETES_VERSION}\n`;
  const [major, minor] = KUBERNETES_VERSION.slice(1).split('.');
  // The peer prints its structure as Go source (behaviour CL-03); what it says of a build in Go is empty or Node's here.
  const fields = {
    Major: major,
    Minor: minor,
    EmulationMajor: '',
    EmulationMinor: '',
    MinCompatibilityMajor: '',
    MinCompatibilityMinor: '',
    GitVersion: KUBERNETES_VERSION,
    GitCommit: '',
    GitTreeState: '',
    BuildDate: '',
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
  (error: unknown) => {
    complain(describe(error));
    process.exitCode = 1;
  },
);

function complain(text: string): void {
  process.stderr.write(`${printableText(text)}\n`);
}

/** Problems with flags and files in words, with the usage where it helps; anything else with its stack. */
function describe(error: unknown): string {
  if (error instanceof ConfigError) return [error.message, error.usage].filter((part) => part !== null).join('\n\n');
  const expected = [KubeconfigError, ModeError, QuestionError, AskError];
  if (error instanceof Error && expected.some((kind) => error instanceof kind)) return error.message;
  return error instanceof Error ? sourceStack(error.stack ?? error.message) : String(error);
}
