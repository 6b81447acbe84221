import { tryToOpen, type ModeDefinition } from '../mode.js';
import { IPVS_FOOTPRINT } from './footprint.js';

// What works is loaded where it is used: while another mode is in force this one is no more than its footprint.

export const IPVS: ModeDefinition<'ipvs'> = {
  name: 'ipvs',
  platforms: ['linux'],
  traits: () => ({
    guardsClusterAddresses: true,
    guardsServiceAddresses: true,
    prefersLocal: true,
    servesLocalhost: false,
  }),
  footprint: IPVS_FOOTPRINT,
  metrics: {
    syncFailures: { name: 'sync_proxy_rules_iptables_restore_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: null,
    rules: null,
    packets: [],
  },
  open: async (parts, families) => (await import('./open.js')).open(parts, families),
  tryKernel: async (parts, nodes) => tryToOpen((await import('./open.js')).open, parts, nodes),
  render: async (parts, tables) => (await import('./open.js')).render(parts, tables),
};
