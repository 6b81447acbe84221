import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { prepareMode } from '../control/mode.js';
import { kernelValues, planSettings } from '../control/settings.js';
import { readOnce } from '../control/sources.js';
import { removeLeftovers } from '../dataplane/leftovers/leftovers.js';
import { FOOTPRINTS } from '../dataplane/modes.js';
import { supportedFamilies } from '../host/families.js';
import { applyKernelValues, KERNEL_FILES } from '../host/linux/sysctl.js';
import type { NativeAddon } from '../native/contract.js';
import { readOnly } from '../native/read-only.js';
import { Planner } from '../plan/planner.js';
import { Store } from '../state/store.js';
import { lines, planned, type Output, type Planned } from './commands.js';

/**
 * What a start of the process would change on this node: its first sync with everything that reads the kernel as usual, and nothing that writes. A line
 * for each object, sorted within a transaction; empty when everything is as it should be.
 */
export async function diff(config: Config, version: string, addon: NativeAddon, log: Log): Promise<Output> {
  const { planner, problems } = await wanted(config, version, log);
  const changes: string[] = [];
  const mode = await prepareMode(config, readOnly(addon), supportedFamilies(), log, (print) =>
    changes.push(...print()),
  );
  for (const family of mode.families) {
    const table = planner.tables[family];
    await mode.dataplane(family).apply(table, table.takeChange(), { full: true });
  }
  const values = await kernelDifferences(config);
  const leftovers = await removeLeftovers(readOnly(addon), mode.families, FOOTPRINTS, mode.own);
  const remains = leftovers.removed.map((what) => `leftover ${what}`);
  return {
    text: lines([...values, ...changes, ...remains]),
    errors: [...problems.errors, ...leftovers.problems.map(({ message }) => message)],
    warnings: problems.warnings,
  };
}

async function wanted(config: Config, version: string, log: Log): Promise<Omit<Planned, 'snapshot'>> {
  if (config.kubernetes === null) return await planned(config);
  const store = new Store();
  await readOnce(config, version, store, log);
  const planner = new Planner(planSettings(config));
  planner.update(store.snapshot, store.takeChanges());
  return { planner, problems: { errors: [], warnings: [] } };
}

/** Sysctls that would be set; those that cannot be read are for the process to report. */
async function kernelDifferences(config: Config): Promise<readonly string[]> {
  const files = { read: (path: string) => KERNEL_FILES.read(path), write: () => Promise.resolve() };
  const { written } = await applyKernelValues(kernelValues(config, planSettings(config)), files);
  return written.map(({ path, found, value }) => `sysctl ${path} ${found} becomes ${value}`);
}
