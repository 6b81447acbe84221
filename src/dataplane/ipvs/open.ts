import { familyOf, type Family } from '../../base/ip.js';
import type { Log } from '../../base/log.js';
import type { IpvsConfig } from '../../config/config.js';
import type { IptablesTransaction } from '../../native/contract.js';
import type { NodePlan, FamilyTable } from '../../plan/types.js';
import { countsRefused, tryToOpen, type ModeParts, type OpenMode } from '../mode.js';
import { prepareFlavor } from '../xtables/flavor.js';
import { tryParts } from '../xtables/parts.js';
import { printTransaction } from '../xtables/print.js';
import { Reconciler } from '../reconciler.js';
import { IpvsDriver, type Look } from './driver.js';
import { IPVS_FOOTPRINT } from './footprint.js';
import { printMessage, type IpvsMessage } from './print.js';
import { renderTables } from './render.js';
import { Timeouts } from './timeouts.js';
import { lackingSchedulers, requireMatches, tryScheduler, trySetsAndLink } from './trial.js';
import { watchAddresses, type Looked } from './watch.js';

function settingsOf({ ipvs }: ModeParts['config']): IpvsConfig {
  if (ipvs === null) throw new TypeError('the configuration is of another mode');
  return ipvs;
}

/** @throws ModeError when none of the families can be served, or not with this scheduler. */
export async function open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode> {
  const { config, addon, log, now, onTransaction } = parts;
  const settings = settingsOf(config);
  const { flavor, served } = await prepareFlavor(addon.iptables, families, config.iptablesFlavor, log);
  warnOfExcluded(settings, served, log);
  await requireMatches(addon, served);
  await tryScheduler(addon, settings.scheduler, served);
  const lacking = await lackingSchedulers(addon, settings.scheduler, served);
  const onRules = (transaction: IptablesTransaction): void => {
    onTransaction(() => printTransaction(addon.iptables, transaction));
  };
  const onMessage = (message: IpvsMessage): void => {
    onTransaction(() => printMessage(message));
  };
  const { scheduler, excludeCIDRs: excluded } = settings;
  const timeouts = new Timeouts(addon.ipvs, settings, onMessage);
  const made = new Map<Family, Looked>();
  const dataplane = (family: Family): Reconciler<Look> => {
    const driver = new IpvsDriver({
      addon,
      family,
      flavor,
      scheduler,
      lacking,
      excluded,
      now,
      onRules,
      onMessage,
      countsRefused: countsRefused(config),
      timeouts: family === served[0] ? timeouts : null,
    });
    const reconciler = new Reconciler(driver, now);
    made.set(family, { family, addressesDiffer: () => driver.addressesDiffer(() => reconciler.quiet()) });
    return reconciler;
  };
  return {
    families: served,
    dataplane,
    own: { footprint: IPVS_FOOTPRINT, flavor },
    remove: null,
    watch: watchAddresses(addon.route, () => made.values()),
    modeCounts: () => Promise.resolve(null),
    attempts: null,
  };
}

/** Behaviour ST-32. */
function warnOfExcluded({ excludeCIDRs }: IpvsConfig, [only, ...others]: readonly Family[], log: Log): void {
  if (only === undefined || others.length > 0 || excludeCIDRs.length === 0) return;
  if (excludeCIDRs.every((prefix) => familyOf(prefix) !== only))
    log.warn(`ipvs.excludeCIDRs has nothing of ${only}, and this node is ${only}-only`);
}

export function render(
  { config, addon }: Pick<ModeParts, 'config' | 'addon'>,
  tables: readonly FamilyTable[],
): Promise<string> {
  return renderTables(addon, tables, settingsOf(config), config);
}

/** See {@link ModeDefinition.tryKernel}. */
export async function tryKernel(parts: ModeParts, nodes: readonly NodePlan[]): Promise<readonly unknown[]> {
  const lacking = await tryToOpen(open, parts, nodes);
  if (lacking.length > 0) return lacking;
  const refused = await trySetsAndLink(
    parts.addon,
    nodes.map(({ family }) => family),
  );
  return [...refused, ...(await tryParts('ipvs', parts, nodes, false))];
}
