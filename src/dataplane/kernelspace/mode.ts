import { NO_FOOTPRINT } from '../removal/footprint.js';
import { loadWorking, tryToOpen, type ModeDefinition } from '../mode.js';

// The mode's code is loaded where it is used.

const working = (): Promise<typeof import('./open.js')> => loadWorking('kernelspace', () => import('./open.js'));

/** Most endpoints of a load balancer whose answers come back through this node. */
const RELAYED = 64;

export const KERNELSPACE: ModeDefinition<'kernelspace'> = {
  name: 'kernelspace',
  platforms: ['win32'],
  traits: ({ kernelspace }) => ({
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    retriesAttempts: 'none',
    dividesChanges: true,
    prefersLocal: false,
    servesLocalhost: false,
    balancesOnly: true,
    // HNS answers E_INVALIDARG, "invalid number of destinations", to more of them without direct server return (kubernetes/kubernetes#98680).
    endpointLimits: { internal: kernelspace?.enableDSR === true ? Infinity : RELAYED, external: RELAYED },
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
