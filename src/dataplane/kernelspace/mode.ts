import { NO_FOOTPRINT } from '../footprint.js';
import type { ModeDefinition } from '../mode.js';

// What works is loaded where it is used.

export const KERNELSPACE: ModeDefinition<'kernelspace'> = {
  name: 'kernelspace',
  platforms: ['win32'],
  traits: () => ({
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    prefersLocal: false,
    servesLocalhost: false,
    balancesOnly: true,
  }),
  footprint: NO_FOOTPRINT,
  metrics: {
    tellsFullSyncs: false,
    syncFailures: { name: 'sync_proxy_rules_hns_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: null,
    rules: null,
    packets: [],
  },
  sysctls: () => [],
  deprecation: null,
  open: async (parts, families) => (await import('./open.js')).open(parts, families),
  async tryKernel(parts, nodes) {
    const { tryToOpen } = await import('../mode.js');
    const { open } = await import('./open.js');
    return await tryToOpen(open, parts, nodes);
  },
  render: async (parts, tables) => (await import('./open.js')).render(parts, tables),
};
