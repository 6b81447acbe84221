import { countsRefused, loadWorking, type ModeDefinition } from '../mode.js';
import { NFTABLES_FOOTPRINT } from './footprint.js';

// The mode's code is loaded where it is used: while another mode is in force this one is no more than its footprint.

const working = (): Promise<typeof import('./open.js')> => loadWorking('nftables', () => import('./open.js'));

export const NFTABLES: ModeDefinition<'nftables'> = {
  name: 'nftables',
  platforms: ['linux'],
  traits: () => ({
    guardsClusterAddresses: true,
    guardsServiceAddresses: false,
    retriesAttempts: 'all',
    dividesChanges: true,
    prefersLocal: false,
    servesLocalhost: false,
    balancesOnly: false,
    shares: 'slots',
    resetsConnections: true,
  }),
  footprint: NFTABLES_FOOTPRINT,
  metrics: {
    tellsFullSyncs: true,
    syncFailures: { name: 'sync_proxy_rules_nftables_sync_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: {
      name: 'sync_proxy_rules_nftables_cleanup_failures_total',
      help: 'Syncs that could not remove all that was in the way.',
    },
    rules: null,
    packets: [],
  },
  sysctls: () => [],
  deprecation: null,
  open: async (parts, families) => (await working()).open(parts, families),
  async tryKernel({ config, addon: { nftables } }, nodes) {
    const { tryKernel } = await working();
    const counts = countsRefused(config);
    const trials = await Promise.allSettled(nodes.map((node) => tryKernel(nftables, node, counts)));
    return trials.flatMap((trial) => (trial.status === 'rejected' ? [trial.reason as unknown] : []));
  },
  render: async (parts, tables) => (await working()).render(parts, tables),
};
