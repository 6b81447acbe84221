import type { Sysctl } from '../../base/sysctl.js';
import { defineMode } from '../mode.js';
import { IPVS_FOOTPRINT } from './footprint.js';

/** Behaviour ST-46. Those of ip_vs are there once it is loaded. */
const SYSCTLS: readonly Sysctl[] = [
  { name: 'net.ipv4.vs.conntrack', value: 1, initial: 0 },
  // Otherwise a client that uses its port again waits for a second. Older kernels do not have it, and newer ones do not wait.
  { name: 'net.ipv4.vs.conn_reuse_mode', value: 0, initial: 1, kernels: { from: [4, 1], before: [5, 9] } },
  { name: 'net.ipv4.vs.expire_nodest_conn', value: 1, initial: 0 },
  { name: 'net.ipv4.vs.expire_quiescent_template', value: 1, initial: 0 },
  { name: 'net.ipv4.ip_forward', value: 1, stays: true },
];
/** ARP: no link answers for what is on another, such as ours, and none asks in the name of it. */
const STRICT_ARP: readonly Sysctl[] = [
  { name: 'net.ipv4.conf.all.arp_ignore', value: 1 },
  { name: 'net.ipv4.conf.all.arp_announce', value: 2 },
];

export const IPVS = defineMode({
  name: 'ipvs',
  load: () => import('./open.js'),
  platforms: ['linux'],
  traits: () => ({
    guardsClusterAddresses: true,
    guardsServiceAddresses: true,
    retriesAttempts: 'none',
    prefersLocal: true,
    servesLocalhost: false,
    listensOnLocalhost: false,
    balancesOnly: false,
    shares: 'schedulers',
  }),
  footprint: IPVS_FOOTPRINT,
  metrics: {
    tellsFullSyncs: false,
    syncFailures: { name: 'sync_proxy_rules_iptables_restore_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: null,
    cleanupFailures: null,
    rules: null,
    counted: [],
  },
  sysctls: ({ ipvs }) => [...SYSCTLS, ...(ipvs?.strictARP === true ? STRICT_ARP : [])],
  deprecation: {
    reason: 'IPVSDeprecation',
    note: 'mode ipvs is deprecated: Kubernetes turns it off by default in 1.40 and removes it in 1.43; use mode nftables if the kernel is 5.13 or later',
  },
});
