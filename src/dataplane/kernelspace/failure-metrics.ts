import type { ModeMetrics } from '../mode.js';

/** Since 1.37 (kubernetes/kubernetes#137767). */
const failures = (what: string): ModeMetrics['counted'][number] => ({
  name: `sync_proxy_rules_winkernel_lb_${what}_failures_total`,
  help: `Load balancers that HNS refused to ${what}.`,
  labels: ['ip_family', 'lb_type', 'error'],
});

/** By operation of HNS. */
export const FAILED_LOAD_BALANCERS = {
  create: failures('create'),
  modify: failures('update'),
  delete: failures('delete'),
};
