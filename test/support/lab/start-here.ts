import { openEvents } from '../../../src/cli/events.js';
import { NodeProxy } from '../../../src/cli/node-proxy.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadConfig, type Loaded } from '../../../src/config/load.js';
import { logTransactions, prepareMode } from '../../../src/control/mode.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';
import { createLogger } from '../../../src/observe/log.js';

/** Starts the program in this process. */
export async function startHere(
  argv: readonly string[],
  receive: (text: string) => void,
  onFatal: (error: Error) => void,
): Promise<NodeProxy> {
  const loaded = loadedRun(argv);
  const { config } = loaded;
  const now = (): number => performance.timeOrigin + performance.now();
  const log = await createLogger(config.logging, () => ({ write: receive, now, flush: () => undefined }));
  const machine = { host: LINUX_HOST, addon: loadAddon() };
  const mode = await prepareMode(config, machine, LINUX_HOST.families(), log, logTransactions(log));
  const proxy = new NodeProxy({
    loaded,
    machine,
    mode,
    log,
    tracing: null,
    events: await openEvents(config, log),
    onFatal,
  });
  await proxy.start();
  return proxy;
}

export function loadedRun(argv: readonly string[]): Loaded {
  const loaded = loadConfig(argv, systemFiles);
  if (loaded.command !== 'run') throw new Error(`not a run: ${argv.join(' ')}`);
  return loaded;
}
