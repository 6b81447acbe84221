import { defineMode } from '../mode.js';
import { NFTABLES_FOOTPRINT } from './footprint.js';

export const NFTABLES = defineMode({
  name: 'nftables',
  load: () => import('./open.js'),
  platforms: ['linux'],
  traits: () => ({
    guardsClusterAddresses: true,
    guardsServiceAddresses: false,
    retriesAttempts: 'all',
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
      help: 'Syncs that could not remove all conflicting objects.',
    },
    rules: null,
    counted: [],
  },
  sysctls: () => [],
  deprecation: null,
});
