import type { Family } from '../base/ip.js';
import { systemClock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import type { ModeParts, OpenMode } from '../dataplane/mode.js';
import { modeDefinition } from '../dataplane/modes.js';
import type { Host } from '../host/host.js';
import type { NativeAddon } from '../native/contract.js';
import type { Logger } from '../observe/log.js';

/** What a mode works on. */
export interface Machine {
  readonly host: Host;
  readonly addon: NativeAddon;
}

/** The configured mode on this host. @throws ModeError when none of the families can be served. */
export function prepareMode(
  config: Config,
  machine: Machine,
  families: readonly Family[],
  log: Log,
  onTransaction: ModeParts['onTransaction'] = () => undefined,
): Promise<OpenMode> {
  return modeDefinition(config.mode).open({ ...modeParts(config, machine, log), onTransaction }, families);
}

export function modeParts(config: Config, { host, addon }: Machine, log: Log): ModeParts {
  const { isTcpBeLiberal } = host;
  return { config, addon, log, isTcpBeLiberal, onTransaction: () => undefined, now: () => systemClock.now() };
}

const TRANSACTION_VERBOSITY = 4;

/** Logs what is sent to the kernel, a line for each object, where lines of this verbosity are written. */
export function logTransactions(log: Logger): ModeParts['onTransaction'] {
  return (print) => {
    if (!log.enabled(TRANSACTION_VERBOSITY)) return;
    for (const operation of print()) log.info(TRANSACTION_VERBOSITY, 'sending', { operation });
  };
}
