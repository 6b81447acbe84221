import type { Config, IpvsConfig } from '../../config/config.js';
import type { IptablesChainListing, NativeAddon } from '../../native/contract.js';
import type { Applied } from '../../native/errors.js';
import type { FamilyTable } from '../../plan/types.js';
import { countsRefused } from '../mode.js';
import { everything } from '../table-view.js';
import { Reconciler } from '../reconciler.js';
import { IpvsDriver } from './driver.js';
import { LINK } from './names.js';
import { printMessage, type IpvsMessage } from './print.js';
import { Timeouts } from './timeouts.js';

/**
 * The operations of a first sync to an empty kernel, in its order, in the syntax of the usual tools.
 * Needs no privileges. Node ports are shown for the addresses that this host has.
 */
export async function renderTables(
  addon: NativeAddon,
  tables: readonly FamilyTable[],
  settings: IpvsConfig,
  config: Pick<Config, 'iptablesFlavor' | 'serviceTelemetry'>,
): Promise<string> {
  const flavor = config.iptablesFlavor === 'legacy' ? 'legacy' : 'nft';
  const { scheduler, excludeCIDRs: excluded } = settings;
  const lines: string[] = [];
  const onMessage = (message: IpvsMessage): void => {
    for (const line of printMessage(message)) lines.push(line);
  };
  const kernel = emptied(addon);
  const now = (): number => 0;
  for (const [index, table] of tables.entries()) {
    const { family } = table;
    lines.push(`# ${family}`, ...(index === 0 ? [`ip link add ${LINK} type dummy`] : []));
    const driver = new IpvsDriver({
      addon: kernel,
      family,
      flavor,
      scheduler,
      excluded,
      onMessage,
      now,
      countsRefused: countsRefused(config),
      timeouts: index === 0 ? new Timeouts(kernel.ipvs, settings, onMessage) : null,
      onRules: (transaction) => lines.push(addon.iptables.iptablesEncode(transaction).trimEnd()),
    });
    const { clusterAddresses, ownEndpoints } = table;
    const change = {
      ...everything(table),
      attempts: new Set<string>(),
      clusterAddresses: new Set(clusterAddresses),
      ownEndpoints: new Set(ownEndpoints),
    };
    await new Reconciler(driver, now).apply(table, change, { full: true });
  }
  return `${lines.join('\n')}\n`;
}

/** A kernel that holds nothing and takes everything. Only what costs no privileges is asked of the real one. */
function emptied(addon: NativeAddon): NativeAddon {
  const { iptables, ipset, route } = addon;
  const emptied: Partial<NativeAddon> = {
    iptables: {
      ...iptables,
      iptablesList: () => Promise.resolve(NO_CHAINS),
      iptablesRestore: () => Promise.resolve({ rules: 0, bytes: 0 }),
    },
    ipvs: {
      ipvsApply: nothingRefused,
      ipvsServices: nothing,
      ipvsDestinations: nothing,
      ipvsServicesDigest: () => Promise.resolve(1),
      ipvsDestinationsDigests: () => Promise.resolve(new Float64Array()),
      ipvsRemembered: () => Promise.resolve(null),
      ipvsTimeouts: () => Promise.resolve(null),
      ipvsSetTimeouts: () => Promise.resolve(),
    },
    ipset: {
      ...ipset,
      ipsetApply: nothingRefused,
      ipsetList: (names) => Promise.resolve(names.map(() => null)),
      ipsetDigests: (names) => Promise.resolve(new Float64Array(names.length)),
    },
    route: {
      ...route,
      addressApply: nothingRefused,
      linkAddresses: () => Promise.resolve(null),
      linkEnsureDummy: () => Promise.resolve(true),
    },
  };
  // Not copied: asking for what this platform does not have throws.
  return Object.setPrototypeOf(emptied, addon) as NativeAddon;
}

function nothing(): Promise<readonly []> {
  return Promise.resolve([]);
}

function nothingRefused(): Promise<Applied> {
  return Promise.resolve({ refused: [], bytes: 0 });
}

const NO_CHAINS: readonly IptablesChainListing[] = [];
