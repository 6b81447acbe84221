import { messageOf } from '../base/error-message.js';
import type { Family } from '../base/ip.js';
import { systemClock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { ModeError, type ModeDefinition, type ModeParts, type OpenMode } from '../dataplane/mode.js';
import { modeDefinition } from '../dataplane/modes.js';
import type { Host } from '../host/host.js';
import type { NativeAddon } from '../native/contract.js';
import type { Logger } from '../observe/log.js';
import type { CountedMode } from '../observe/metrics.js';
import { planNode } from '../plan/node-plan.js';
import { planSettings } from './settings.js';

/** What a mode works on. */
export interface Machine {
  readonly host: Host;
  readonly addon: NativeAddon;
}

/** The configured mode on this host. @throws ModeError when it is for other platforms, or none of the families can be served. */
export async function prepareMode(
  config: Config,
  machine: Machine,
  families: readonly Family[],
  log: Log,
  onTransaction: ModeParts['onTransaction'] = () => undefined,
): Promise<OpenMode> {
  return await definitionFor(config, machine.host).open(
    { ...modeParts(config, machine, log), onTransaction },
    families,
  );
}

function definitionFor({ mode }: Config, { platform }: Host): ModeDefinition {
  const definition = modeDefinition(mode);
  if (definition.platforms.includes(platform)) return definition;
  throw new ModeError(`mode: ${mode} is for ${definition.platforms.join(' and ')}, and this host is ${platform}`);
}

export function countedMode(config: Config, { modeCounts }: OpenMode): CountedMode {
  return { metrics: modeDefinition(config.mode).metrics, modeCounts };
}

export function modeParts(config: Config, { host, addon }: Machine, log: Log): ModeParts {
  const { isTcpBeLiberal, conntrackTimeouts, interfaceMac } = host;
  return {
    config,
    addon,
    log,
    isTcpBeLiberal,
    conntrackTimeouts,
    interfaceMac,
    onTransaction: () => undefined,
    now: () => systemClock.now(),
  };
}

/** What this kernel, or what this process may do, lacks for the configured mode, a sentence each; tried, and nothing stays changed. */
export async function modeProblems(
  config: Config,
  machine: Machine,
  families: readonly Family[],
  log: Log,
): Promise<readonly string[]> {
  const nodes = families.map((family) => planNode(family, planSettings(config), undefined, []));
  const refused = await definitionFor(config, machine.host).tryKernel(modeParts(config, machine, log), nodes);
  return refused.map((reason) => {
    return `the kernel or the privileges of this process are not enough for mode ${config.mode}: ${messageOf(reason)}`;
  });
}

/**
 * The configured mode in the place of one that serves these families.
 *
 * @throws ModeError when it cannot be had on this host, or serves others here.
 */
export async function replacementMode(
  config: Config,
  machine: Machine,
  families: readonly Family[],
  log: Logger,
): Promise<OpenMode> {
  const mode = await prepareMode(config, machine, machine.host.families(), log, logTransactions(log));
  if (mode.families.join() !== families.join())
    throw new ModeError(
      `mode ${config.mode} serves ${mode.families.join(' and ')} on this host, and the one in force ${families.join(' and ')}: that needs a restart`,
    );
  const [problem] = await modeProblems(config, machine, families, log);
  if (problem !== undefined) throw new ModeError(problem);
  return mode;
}

const TRANSACTION_VERBOSITY = 4;

/** Logs what is sent to the kernel, a line for each object, where lines of this verbosity are written. */
export function logTransactions(log: Logger): ModeParts['onTransaction'] {
  return (print) => {
    if (!log.enabled(TRANSACTION_VERBOSITY)) return;
    for (const operation of print()) log.info(TRANSACTION_VERBOSITY, 'sending', { operation });
  };
}
