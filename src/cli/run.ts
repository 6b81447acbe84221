import { isKnownNode } from '../base/heap-options.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/errors.js';
import type { Loaded } from '../config/load.js';
import { OWN_VERSION, ownVersion } from '../config/version.js';
import { ConfigWatch } from '../control/config-watch.js';
import { logTransactions, prepareMode, type Machine } from '../control/mode.js';
import type { NativeAddon } from '../native/contract.js';
import type { Logger } from '../observe/log.js';
import { isCompiledCodeRejected } from './compiled-code.js';
import { openEvents } from './events.js';
import { prepareLoad } from './memory.js';
import { NodeProxy } from './node-proxy.js';
import { handleSignals } from './signals.js';
import { becomeSoleProxy } from './sole-proxy.js';
import type { OpenTracing } from './tracing.js';

/** Runs until a signal or a fatal error; the exit status. */
export async function run(loaded: Loaded, argv: readonly string[], machine: Machine, log: Logger): Promise<number> {
  const { host } = machine;
  host.nameProcess('pointsman', argv);
  const { config } = loaded;
  const sole = await becomeSoleProxy(config, machine, log);
  if ('other' in sole) {
    log.error(null, 'another proxy serves this node: stop it first', { other: sole.other });
    return 1;
  }
  try {
    return await serve(loaded, argv, machine, log);
  } finally {
    await sole.release();
  }
}

async function serve(loaded: Loaded, argv: readonly string[], machine: Machine, log: Logger): Promise<number> {
  const { host } = machine;
  const { config, version } = loaded;
  const traced = await openTraces(config, machine.addon, log);
  const addon = traced?.addon ?? machine.addon;
  const events = await openEvents(config, log);
  const mode = await prepareMode(config, { host, addon }, host.families(), log, logTransactions(log));
  // Not before the mode is there: V8 takes what was compiled of its file with the options only that it had then.
  prepareLoad({ host, addon });
  warnAboutNode(log);
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
    events,
    tracing: traced?.tracing ?? null,
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
  log.info(0, 'starting', {
    version,
    release: ownVersion(),
    mode: config.mode,
    node: config.nodeName,
    manifests,
    families: families.join(),
  });
  let watch: ConfigWatch | null = null;
  try {
    await proxy.start();
    watch = proxy.reconfiguration.watch(argv);
    return await ended;
  } finally {
    watch?.stop();
    await proxy.stop();
    await traced?.stop();
  }
}

/** What of this Node keeps the program from starting as fast and staying as small as it can. */
function warnAboutNode(log: Logger): void {
  if (!isKnownNode())
    log.warn('memory is not tuned: Node.js is not of version 20, 22 or 24', { node: process.version });
  if (isCompiledCodeRejected())
    log.info(0, 'V8 rejected the compiled code: it is for another version or other options of Node', {
      node: process.version,
      options: [process.env['NODE_OPTIONS'] ?? '', ...process.execArgv].join(' ').trim(),
      cost: 'each start takes 0.1 s and 10 MB more',
    });
}

/** @throws ConfigError when the file cannot be used. */
async function openTraces(config: Config, addon: NativeAddon, log: Log): Promise<OpenTracing | null> {
  const { tracingFile } = config;
  if (tracingFile === null) return null;
  // Loaded only where it is used: it is a file of its own.
  const { openTracing } = await import('./tracing.js');
  const opened = openTracing({ file: tracingFile, config, version: OWN_VERSION, addon, log });
  if ('problem' in opened) throw new ConfigError('CONFIG_INVALID', null, [opened.problem]);
  return opened;
}
