import type { IPPrefix } from '../../base/ip.js';
import type { IptablesFlavorChoice } from '../../config/config.js';
import type { IptablesChainListing, NativeAddon } from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import { everything } from '../table-view.js';
import { IpvsFamily } from './family.js';
import type { Scheduling } from './frontends.js';
import { LINK } from './names.js';
import { printMessage } from './print.js';

/**
 * What a first sync sends to a kernel without any of it, in its order, in the words of the tools of the field. Needs no privileges. Node ports are shown for
 * the addresses that this host has.
 */
export async function renderTables(
  addon: NativeAddon,
  tables: readonly FamilyTable[],
  { scheduler, excludeCIDRs: excluded }: Scheduling & { readonly excludeCIDRs: readonly IPPrefix[] },
  choice: IptablesFlavorChoice,
): Promise<string> {
  const flavor = choice === 'legacy' ? 'legacy' : 'nft';
  const lines: string[] = [];
  for (const table of tables) {
    const { family } = table;
    lines.push(`# ${family}`);
    const dataplane = new IpvsFamily({
      ...{ addon: emptied(addon), family, flavor, scheduler, excluded, now: () => 0 },
      onRules: (transaction) => lines.push(addon.iptables.iptablesEncode(transaction).trimEnd()),
      onMessage: (message) => lines.push(...printMessage(message)),
    });
    lines.push(`ip link add ${LINK} type dummy`);
    const change = { ...everything(table), clusterAddresses: new Set(table.clusterAddresses) };
    await dataplane.apply(table, change, { full: true });
  }
  return `${lines.join('\n')}\n`;
}

/** A kernel that holds nothing and takes everything. Only what costs no privileges is asked of the real one. */
function emptied({ iptables, ipvs, ipset, route, ...others }: NativeAddon): NativeAddon {
  return {
    ...others,
    iptables: {
      ...iptables,
      iptablesList: () => Promise.resolve(NO_CHAINS),
      iptablesRestore: () => Promise.resolve({ rules: 0, bytes: 0 }),
    },
    ipvs: { ...ipvs, ipvsApply: nothingRefused, ipvsServices: nothingRefused, ipvsDestinations: nothingRefused },
    ipset: {
      ...ipset,
      ipsetApply: nothingRefused,
      ipsetList: (names) => Promise.resolve(names.map(() => null)),
    },
    route: {
      ...route,
      addressApply: nothingRefused,
      linkAddresses: () => Promise.resolve(null),
      linkEnsureDummy: () => Promise.resolve(true),
    },
  };
}

function nothingRefused(): Promise<readonly []> {
  return Promise.resolve([]);
}

const NO_CHAINS: readonly IptablesChainListing[] = [];
