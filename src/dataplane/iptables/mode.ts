import { loadWorking, tryToOpen, type ModeDefinition } from '../mode.js';
import { IPTABLES_FOOTPRINT } from './names.js';
import { PACKET_METRICS } from './packet-metrics.js';

// The mode's code is loaded where it is used: while another mode is in force this one is no more than its footprint.

const working = (): Promise<typeof import('./open.js')> => loadWorking('iptables', () => import('./open.js'));

export const IPTABLES: ModeDefinition<'iptables'> = {
  name: 'iptables',
  platforms: ['linux'],
  traits: ({ localhostNodePorts }) => ({
    guardsClusterAddresses: false,
    guardsServiceAddresses: false,
    retriesAttempts: 'without-affinity',
    dividesChanges: false,
    prefersLocal: false,
    servesLocalhost: localhostNodePorts,
    balancesOnly: false,
    shares: 'weights',
  }),
  footprint: IPTABLES_FOOTPRINT,
  metrics: {
    tellsFullSyncs: true,
    syncFailures: { name: 'sync_proxy_rules_iptables_restore_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: {
      name: 'sync_proxy_rules_iptables_partial_restore_failures_total',
      help: 'Syncs of what had changed that failed; a full one follows.',
    },
    cleanupFailures: null,
    rules: {
      held: { name: 'sync_proxy_rules_iptables_total', help: 'Rules there are.' },
      written: { name: 'sync_proxy_rules_iptables_last', help: 'Rules that the last sync wrote.' },
    },
    packets: PACKET_METRICS,
  },
  sysctls: () => [],
  deprecation: null,
  open: async (parts, families) => (await working()).open(parts, families),
  tryKernel: async (parts, nodes) => tryToOpen((await working()).open, parts, nodes),
  render: async (parts, tables) => (await working()).render(parts, tables),
};
