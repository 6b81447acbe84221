import { NO_FOOTPRINT } from '../footprint.js';
import { loadWorking, tryToOpen, type ModeDefinition } from '../mode.js';

// What works is loaded where it is used.

const working = (): Promise<typeof import('./open.js')> => loadWorking('kernelspace', () => import('./open.js'));

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
  open: async (parts, families) => (await working()).open(parts, families),
  tryKernel: async (parts, nodes) => tryToOpen((await working()).open, parts, nodes),
  render: async (parts, tables) => (await working()).render(parts, tables),
};
