import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import type { OutputForm } from '../commands/shared-flags.js';
import { prepareMode, type Machine } from '../control/mode.js';
import { kernelSettings, planSettings } from '../control/settings.js';
import { readOnce } from '../control/sources.js';
import { footprintsOn } from '../dataplane/modes.js';
import type { Host } from '../host/host.js';
import { readOnly } from '../native/read-only.js';
import { formatted } from '../serve/formatted.js';
import { Store } from '../state/store.js';
import { planned, plannedState, type Output, type Planned } from './commands.js';

/**
 * The changes that a start of the process would make on this node: a first sync that reads the kernel as usual, and writes
 * nothing. A line for each object, sorted within a transaction; empty without a difference.
 */
export async function diff(
  config: Config,
  version: string,
  machine: Machine,
  log: Log,
  output: OutputForm = 'text',
): Promise<Output> {
  return differences(config, await wanted(config, version, log), machine, log, output);
}

export type Wanted = Omit<Planned, 'snapshot' | 'complete'>;

/** The same, of what is wanted. */
export async function differences(
  config: Config,
  { planner, problems }: Wanted,
  machine: Machine,
  log: Log,
  output: OutputForm = 'text',
): Promise<Output> {
  const changes: string[] = [];
  const { host } = machine;
  const addon = readOnly(machine.addon);
  const mode = await prepareMode(config, { host, addon }, host.families(), log, (print) => {
    for (const line of print()) changes.push(line);
  });
  for (const family of mode.families) {
    const table = planner.tables[family];
    await mode.dataplane(family).apply(table, table.takeChange(), { full: true });
  }
  const values = await kernelDifferences(config, host);
  const { removeLeftovers } = await import('../dataplane/removal/remove.js');
  const leftovers = await removeLeftovers(addon, mode.families, footprintsOn(host.platform), mode.own);
  const remains = leftovers.removed.map((what) => `leftover ${what}`);
  const found = [...values, ...changes, ...remains];
  return {
    text: formatted({ changes: found }, output, () => found),
    well: found.length === 0,
    errors: [...problems.errors, ...leftovers.problems.map(({ message }) => message)],
    warnings: problems.warnings,
  };
}

/** The state of the sources of a configuration. @param withinMs how long to wait for them. */
export async function wanted(config: Config, version: string, log: Log, withinMs?: number): Promise<Wanted> {
  if (config.kubernetes === null) return await planned(config);
  const store = new Store();
  await readOnce(config, version, store, log, withinMs);
  const { planner, failures } = plannedState(config, store);
  return { planner, problems: { errors: failures, warnings: [] } };
}

/** Sysctls that would be set; those that cannot be read are for the process to report. */
async function kernelDifferences(config: Config, host: Host): Promise<readonly string[]> {
  const written = await host.compareKernelValues(host.kernelValues(kernelSettings(config, planSettings(config))));
  return written.map(({ path, found, value }) => `sysctl ${path} ${found} becomes ${value}`);
}
