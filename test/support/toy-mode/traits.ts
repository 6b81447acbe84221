import type { ModeTraits } from '../../../src/plan/facts.js';

/** What packets notice of the toy. */
export const TOY_TRAITS: ModeTraits = {
  guardsClusterAddresses: false,
  guardsServiceAddresses: false,
  prefersLocal: false,
  retriesAttempts: 'none',
  servesLocalhost: false,
  listensOnLocalhost: false,
  balancesOnly: false,
};
