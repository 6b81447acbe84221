import { printableText } from '../base/printable.js';
import type { LoadedConfig } from '../config/load.js';
import type { Machine } from '../control/mode.js';
import type { Host } from '../host/host.js';
import type { Logger } from '../observe/log.js';
import { type Output, cleanup, dump, explain, init, plan, render, status } from './commands.js';

type Once = Exclude<LoadedConfig, { readonly command: 'help' | 'version' | 'write-config' | 'run' }>;
type Loaded<Command extends LoadedConfig['command']> = Extract<LoadedConfig, { readonly command: Command }>;

/** Which nodes a report is about, and how their proxies are found: as flags say. */
export type ReportedNodes = Pick<
  Loaded<'bugreport'>,
  'file' | 'node' | 'kubeconfig' | 'context' | 'namespace' | 'selector'
>;

/** What becomes of a packet on another node. */
export type NodeQuestion = Omit<Loaded<'explain'>, keyof Loaded<'run'> | 'watch'> & { readonly kubeconfig: string };

/** What commands need of the program. */
interface CommandParts {
  readonly machine: () => Promise<Machine>;
  readonly host: () => Promise<Host>;
  readonly write: (text: string) => Promise<void>;
  readonly explainOn: (question: NodeQuestion) => Promise<Output>;
  /** Writes an archive about other nodes; the exit status. */
  readonly bugreportOf: (asked: ReportedNodes) => Promise<number>;
}

/** Runs a command that is configured as the proxy is, or asks the running one. The exit status. */
export async function runCommand(loaded: Once, log: Logger, parts: CommandParts): Promise<number> {
  const { config } = loaded;
  const { machine, write, bugreportOf } = parts;
  const print = (output: Output): Promise<number> => printed(output, log, write);
  switch (loaded.command) {
    case 'plan':
      return print(await plan(config, loaded.output));
    case 'render':
      return print(await render(config, await machine()));
    case 'dump':
      return print(await dump(config, await machine(), log, loaded.output));
    case 'diff':
      return await differing(loaded, log, parts);
    case 'explain':
      if (loaded.watch) return await watched(() => explained(loaded, parts), log, write);
      return print(await explained(loaded, parts));
    case 'cleanup':
      return print(await cleanup(config, await machine(), log));
    case 'init':
      return print(await init(config, loaded.version, await machine(), log));
    case 'ui': {
      const { servePage } = await import('./page.js');
      await write(await servePage(config.statusSocket, loaded.listen));
      return 0;
    }
    case 'services': {
      const { services } = await import('./services.js');
      return await services(loaded, process.stdout.isTTY, write);
    }
    case 'trace': {
      const { trace } = await import('./trace.js');
      return await trace(loaded, await machine(), write);
    }
    case 'selftest': {
      const { selftest } = await import('./selftest.js');
      return await selftest(loaded, await machine(), write);
    }
    case 'top': {
      const { top } = await import('./top.js');
      return await top(loaded, process.stdout.isTTY, write);
    }
    case 'bugreport': {
      if (loaded.all || loaded.node !== '') return await bugreportOf(loaded);
      const { bugreport } = await import('./bugreport.js');
      return await bugreport(loaded, await machine(), write);
    }
    case 'status':
      if (loaded.watch) return await watched(() => status(config, loaded.output, ''), log, write);
      return print(await status(config, loaded.output, loaded.heapSnapshot));
  }
}

/** What becomes of a packet: here, or on another node. */
async function explained(
  { config, from, to, output, node, context, namespace, selector }: Loaded<'explain'>,
  { host, explainOn }: CommandParts,
): Promise<Output> {
  if (node === '') return await explain(config, await host(), from, to, output);
  const kubeconfig = config.kubernetes?.kubeconfig ?? '';
  return await explainOn({ kubeconfig, context, node, namespace, selector, from, to, output });
}

/** Prints what a command answers again and again. */
async function watched(look: () => Promise<Output>, log: Logger, write: CommandParts['write']): Promise<never> {
  const { watch } = await import('./watch.js');
  const answer = async (): Promise<string> => {
    const { text, errors } = await look();
    for (const error of errors) log.error(null, error);
    return printableText(text);
  };
  return await watch(answer, process.stdout.isTTY, write);
}

/** As diff(1): 0 when nothing would change, 1 when something would, 2 when that cannot be said. */
async function differing(
  loaded: Loaded<'plan' | 'dump' | 'diff'>,
  log: Logger,
  { machine, write }: CommandParts,
): Promise<number> {
  const { diff } = await import('./diff.js');
  const output = await diff(loaded.config, loaded.version, await machine(), log, loaded.output);
  const exit = await printed(output, log, write);
  return output.errors.length > 0 ? 2 : exit;
}

/** Writes a command's output; problems go to the log. The exit status: 0 all is well, 1 it is not, or there were errors. */
async function printed(
  { text, errors, warnings, well }: Output,
  log: Logger,
  write: CommandParts['write'],
): Promise<number> {
  for (const warning of warnings) log.warn(warning);
  for (const error of errors) log.error(null, error);
  await write(printableText(text));
  if (errors.length > 0) return text === '' && well !== undefined ? 2 : 1;
  return well === false ? 1 : 0;
}
