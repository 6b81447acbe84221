import { defineMode } from '../mode.js';
import { IPTABLES_FOOTPRINT } from './names.js';
import { PACKET_METRICS } from './packet-metrics.js';

export const IPTABLES = defineMode({
  name: 'iptables',
  load: () => import('./open.js'),
  platforms: ['linux'],
  traits: ({ localhostNodePorts }) => ({
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    retriesAttempts: 'without-affinity',
    prefersLocal: false,
    servesLocalhost: localhostNodePorts,
    listensOnLocalhost: false,
    balancesOnly: false,
    shares: 'weights',
  }),
  footprint: IPTABLES_FOOTPRINT,
  metrics: {
    tellsFullSyncs: true,
    syncFailures: { name: 'sync_proxy_rules_iptables_restore_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: {
      name: 'sync_proxy_rules_iptables_partial_restore_failures_total',
      help: 'Failed syncs of changes; a full sync follows.',
    },
    cleanupFailures: null,
    rules: {
      held: { name: 'sync_proxy_rules_iptables_total', help: 'Rules there are.' },
      written: { name: 'sync_proxy_rules_iptables_last', help: 'Rules that the last sync wrote.' },
    },
    counted: PACKET_METRICS,
  },
  sysctls: () => [],
  deprecation: null,
});
