import { defineMode } from '../mode.js';
import { NFTABLES_FOOTPRINT } from './footprint.js';
import { REJECTED_ON_LOOPBACK } from './packet-metrics.js';

export const NFTABLES = defineMode({
  name: 'nftables',
  load: () => import('./open.js'),
  platforms: ['linux'],
  traits: ({ localhostNodePorts }) => ({
    guardsClusterAddresses: true,
    guardsServiceAddresses: false,
    retriesAttempts: 'all',
    prefersLocal: false,
    servesLocalhost: false,
    listensOnLocalhost: localhostNodePorts,
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
    counted: [REJECTED_ON_LOOPBACK],
    listeners: {
      open: { name: 'nftables_localhost_nodeport_listeners', help: 'Listeners for node ports on loopback.' },
      failures: {
        name: 'nftables_localhost_nodeport_listener_creation_failures_total',
        help: 'Attempts to listen for a node port on loopback that failed.',
      },
    },
  },
  sysctls: () => [],
  deprecation: null,
});
