import type { ServicePortRow, ServiceRow } from '../state/rows.js';
import type { FrontendLimit } from './frontend-limit.js';
import type { FrontendPlan } from './types.js';

export const RANGES_WITHOUT_EFFECT = 'loadBalancerSourceRanges have no effect: this platform admits every source';

/**
 * What a platform that only balances does not do for a Service port, for people.
 *
 * @param frontends the port's.
 * @param otherPorts of endpoints that are left out.
 */
export function shortfallsOf(
  { loadBalancerSourceRanges }: Pick<ServiceRow, 'loadBalancerSourceRanges'>,
  { protocol }: Pick<ServicePortRow, 'protocol'>,
  frontends: readonly FrontendPlan[],
  otherPorts: ReadonlySet<number>,
): readonly string[] {
  if (protocol === 'SCTP') return ['SCTP is not served: this platform balances TCP and UDP'];
  const isRanged = loadBalancerSourceRanges.length > 0 && frontends.some(({ kind }) => kind === 'LoadBalancer');
  const ports = [...otherPorts].sort((one, other) => one - other).join(' and ');
  return [
    ...(isRanged ? [RANGES_WITHOUT_EFFECT] : []),
    ...(ports === ''
      ? []
      : [
          `endpoints on port ${ports} get no connections: this platform has one port for all of an address, that of most`,
        ]),
  ];
}

/** For people: what of a Service is beyond the limits. */
export function printLeftOut({ asked, kept }: Pick<FrontendLimit, 'asked' | 'kept'>): string {
  return `${asked - kept} of ${asked} frontends (ports × addresses) are left out: over the limits of one Service`;
}
