import type { Family } from '../../base/ip.js';
import type { NftTransaction } from '../../native/contract.js';
import type { FamilyTable, NodePlan } from '../../plan/types.js';
import { countsRefused, type ModeParts, type OpenMode } from '../mode.js';
import { nftablesDataplane } from './driver.js';
import { Generation } from '../generation.js';
import { NFTABLES_FOOTPRINT } from './footprint.js';
import { printTransaction } from './print.js';
import { rejectedOnLoopback } from './refused-packets.js';
import { renderTable } from './render.js';
import { watchTables } from './watch.js';

/** The mode at work on this host. */
export function open(
  { config, addon: { nftables }, now, onTransaction, conntrackTimeouts }: ModeParts,
  families: readonly Family[],
): OpenMode {
  const generation = new Generation(nftables);
  const note = (transaction: NftTransaction): void => {
    onTransaction(() => printTransaction(transaction));
  };
  return {
    families,
    dataplane: (family) =>
      nftablesDataplane(nftables, family, generation, note, now, countsRefused(config), conntrackTimeouts),
    own: { footprint: NFTABLES_FOOTPRINT, flavor: null },
    remove: null,
    watch: watchTables(nftables),
    modeCounts: () => rejectedOnLoopback(nftables, families),
    attempts: async () => {
      const { attemptCounter } = await import('../attempts/counter.js');
      return attemptCounter(nftables, families, (transact) => generation.count(transact));
    },
  };
}

/** The ruleset of these tables as `nft -j` prints it. */
export function render(
  { config, addon, conntrackTimeouts }: Pick<ModeParts, 'config' | 'addon' | 'conntrackTimeouts'>,
  tables: readonly FamilyTable[],
): string {
  const timeouts = conntrackTimeouts();
  const nftables = tables.flatMap((table) => renderTable(addon.nftables, table, countsRefused(config), timeouts));
  return `${JSON.stringify({ nftables }, null, 1)}\n`;
}

/** See {@link ModeDefinition.tryKernel}. */
export async function tryKernel(
  { config, addon: { nftables } }: ModeParts,
  nodes: readonly NodePlan[],
): Promise<readonly unknown[]> {
  return (await import('./faults.js')).tryKernel(nftables, nodes, countsRefused(config));
}
