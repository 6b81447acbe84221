import { NO_FOOTPRINT } from '../removal/footprint.js';
import { defineMode } from '../mode.js';
import { FAILED_LOAD_BALANCERS } from './failure-metrics.js';

/** Most endpoints of a load balancer whose answers come back through this node. */
const RELAYED = 64;

export const KERNELSPACE = defineMode({
  name: 'kernelspace',
  load: () => import('./open.js'),
  platforms: ['win32'],
  traits: ({ kernelspace }) => ({
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    retriesAttempts: 'none',
    prefersLocal: false,
    servesLocalhost: false,
    listensOnLocalhost: false,
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
    counted: Object.values(FAILED_LOAD_BALANCERS),
  },
  sysctls: () => [],
  deprecation: null,
});
