import { messageOf } from '../../base/error-message.js';
import { addressFromBytes, type Family } from '../../base/ip.js';
import type { IpvsConfig } from '../../config/config.js';
import type { IptablesTransaction, IpvsOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { FamilyTable } from '../../plan/types.js';
import { ModeError, type ModeParts, type OpenMode } from '../mode.js';
import { prepareFlavor } from '../xtables/flavor.js';
import { printTransaction } from '../xtables/print.js';
import { IpvsFamily } from './family.js';
import { IPVS_FOOTPRINT } from './footprint.js';
import { printMessage, type IpvsMessage } from './print.js';
import { renderTables } from './render.js';
import { watchKernel } from './watch.js';
import { nameService } from './wire.js';

const DEFAULTS: IpvsConfig = {
  ...{ scheduler: 'rr', excludeCIDRs: [], strictARP: false },
  ...{ tcpTimeout: 0, tcpFinTimeout: 0, udpTimeout: 0 },
};

function settingsOf({ ipvs }: ModeParts['config']): IpvsConfig {
  return ipvs ?? DEFAULTS;
}

/** @throws ModeError when none of the families can be served, or not with this scheduler. */
export async function open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode> {
  const { config, addon, log, now, onTransaction } = parts;
  const settings = settingsOf(config);
  const { flavor, served } = await prepareFlavor(addon.iptables, families, config.iptablesFlavor);
  log.info(0, 'iptables', { flavor, families: served.join() });
  for (const family of families)
    if (!served.includes(family)) log.warn(`no iptables-${flavor} programs that work for ${family}, it is not served`);
  await tryScheduler(parts, settings.scheduler, served);
  await setTimeouts(parts, settings);
  const onRules = (transaction: IptablesTransaction): void => {
    onTransaction(() => printTransaction(addon.iptables, transaction));
  };
  const onMessage = (message: IpvsMessage): void => {
    onTransaction(() => printMessage(message));
  };
  const { scheduler, excludeCIDRs: excluded } = settings;
  return {
    families: served,
    dataplane: (family) => new IpvsFamily({ addon, family, flavor, scheduler, excluded, now, onRules, onMessage }),
    own: { footprint: IPVS_FOOTPRINT, flavor },
    watch: watchKernel(addon.route),
    packetCounts: () => Promise.resolve(null),
  };
}

export function render(
  { config, addon }: Pick<ModeParts, 'config' | 'addon'>,
  tables: readonly FamilyTable[],
): Promise<string> {
  return renderTables(addon, tables, settingsOf(config), config.iptablesFlavor);
}

/** In a network that is for documentation alone (behaviour ST-36). */
const TRIAL = nameService({
  address: addressFromBytes(Uint8Array.of(198, 51, 100, 0)),
  port: 20_000,
  protocol: 'TCP',
});

/** @throws ModeError when the kernel has no ip_vs or no such scheduler. Nothing stays changed. */
async function tryScheduler(
  { addon: { ipvs } }: Pick<ModeParts, 'addon'>,
  scheduler: string,
  families: readonly Family[],
): Promise<void> {
  const remove: IpvsOperation = { type: 'service', verb: 'delete', service: TRIAL, state: null };
  const state = { scheduler, flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  let refused: unknown;
  try {
    const held = await Promise.all(families.map((family) => ipvs.ipvsServices(family)));
    if (held.flat().some((service) => service.scheduler === scheduler)) return;
    [refused] = await ipvs.ipvsApply([{ type: 'service', verb: 'new', service: TRIAL, state }]);
    if (refused === undefined || (isNativeError(refused) && refused.errno === 'EEXIST')) {
      await ipvs.ipvsApply([remove]);
      return;
    }
  } catch (error) {
    refused = error;
  }
  if (isNativeError(refused) && refused.errno === 'ENOENT')
    throw new ModeError(`ipvs.scheduler: this kernel has no scheduler ${JSON.stringify(scheduler)}`);
  throw new ModeError(`this kernel, or what this process may do, is not enough for mode ipvs: ${messageOf(refused)}`);
}

/** Behaviour ST-46: 0 keeps one as it is, and a failure is only told. */
async function setTimeouts({ addon: { ipvs }, log }: ModeParts, settings: IpvsConfig): Promise<void> {
  const seconds = (milliseconds: number): number =>
    milliseconds === 0 ? 0 : Math.max(1, Math.floor(milliseconds / 1000));
  const timeouts = {
    tcp: seconds(settings.tcpTimeout),
    tcpFin: seconds(settings.tcpFinTimeout),
    udp: seconds(settings.udpTimeout),
  };
  if (Object.values(timeouts).every((each) => each === 0)) return;
  try {
    await ipvs.ipvsSetTimeouts(timeouts);
  } catch (error) {
    log.error(error, 'cannot set the timeouts of ipvs');
  }
}
