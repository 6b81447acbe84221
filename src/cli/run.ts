import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import { printChange } from '../config/compare.js';
import type { Loaded } from '../config/load.js';
import { ConfigWatch, type ConfigOutcome } from '../control/config-watch.js';
import { logTransactions, prepareMode, type Machine } from '../control/mode.js';
import type { Logger } from '../observe/log.js';
import { limitHeapGrowth, limitInlining } from './memory.js';
import { EndingError, NodeProxy } from './node-proxy.js';
import { handleSignals } from './signals.js';

/** Runs until a signal or a fatal error; the exit status. */
export async function run(
  loaded: Loaded,
  argv: readonly string[],
  { host, addon }: Machine,
  log: Logger,
): Promise<number> {
  limitHeapGrowth();
  limitInlining();
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
  const manifests = config.manifests.map(({ name }) => name).join();
  log.info(0, 'starting', { version, mode: config.mode, node: config.nodeName, manifests, families: families.join() });
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
export async function followConfig(outcome: ConfigOutcome, proxy: NodeProxy, log: Log): Promise<boolean> {
  const refuse = (error: unknown): false => {
    // The process ends with the configuration that is in force, which is nobody's fault.
    if (error instanceof EndingError) return false;
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
