import type { ModeTraits, PlanSettings } from '../../src/plan/facts.js';
import { DEFAULT_SERVICE_LIMITS } from '../../src/base/service-limits.js';
import { NO_RETRIES } from '../../src/base/conntrack-timeouts.js';
import { address, prefix } from './rows.js';

/** Of a mode that guards cluster addresses and has no tables of slots. */
export const PLAIN_TRAITS: ModeTraits = {
  guardsClusterAddresses: true,
  guardsServiceAddresses: false,
  prefersLocal: false,
  retriesAttempts: 'none',
  servesLocalhost: false,
  listensOnLocalhost: false,
  balancesOnly: false,
};

/** Settings as an unconfigured nftables proxy has them on `me`, pods being in 10.0.0.0/8 and fd00:10::/64. */
export function planSettings(fields: Partial<PlanSettings> = {}): PlanSettings {
  return {
    nodeName: 'me',
    bindAddress: address('0.0.0.0'),
    allowExternalIPs: true,
    localDetection: { type: 'ClusterCIDR', prefixes: [prefix('10.0.0.0/8'), prefix('fd00:10::/64')] },
    masqueradeAll: false,
    masqueradeBit: 14,
    affinityIPv6Prefix: 128,
    nodePortAddresses: ['primary'],
    retryTimes: NO_RETRIES,
    limits: DEFAULT_SERVICE_LIMITS,
    traits: { ...PLAIN_TRAITS, retriesAttempts: 'all', shares: 'slots' },
    ...fields,
  };
}
