import type { NftTransaction } from '../../native/contract.js';
import type { ModeDefinition } from '../mode.js';
import { NftablesFamily } from './family.js';
import { Generation } from './generation.js';
import { TABLE } from './names.js';
import { printTransaction } from './print.js';
import { renderTable } from './render.js';
import { tryKernel } from './trial.js';
import { watchTables } from './watch.js';

export const NFTABLES: ModeDefinition<'nftables'> = {
  name: 'nftables',
  platforms: ['linux'],
  traits: () => ({ guardsClusterAddresses: true, servesLocalhost: false }),
  footprint: { nftTables: [TABLE], chains: null, ipvs: null },
  metrics: {
    syncFailures: { name: 'sync_proxy_rules_nftables_sync_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: {
      name: 'sync_proxy_rules_nftables_cleanup_failures_total',
      help: 'Syncs that could not remove all that was in the way.',
    },
    rules: null,
    packets: [],
  },
  open({ addon: { nftables }, now, onTransaction }, families) {
    const generation = new Generation(nftables);
    const note = (transaction: NftTransaction): void => {
      onTransaction(() => printTransaction(transaction));
    };
    return Promise.resolve({
      families,
      dataplane: (family) => new NftablesFamily(nftables, family, generation, note, now),
      own: { footprint: NFTABLES.footprint, flavor: null },
      watch: watchTables(nftables),
      packetCounts: () => Promise.resolve(null),
    });
  },
  async tryKernel({ addon: { nftables } }, nodes) {
    const trials = await Promise.allSettled(nodes.map((node) => tryKernel(nftables, node)));
    return trials.flatMap((trial) => (trial.status === 'rejected' ? [trial.reason as unknown] : []));
  },
  render({ addon }, tables) {
    const nftables = tables.flatMap((table) => renderTable(addon.nftables, table));
    return Promise.resolve(`${JSON.stringify({ nftables }, null, 1)}\n`);
  },
};
