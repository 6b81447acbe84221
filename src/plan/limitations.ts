import type { Family } from '../base/ip.js';
import type { ServicePortRow, ServiceRow } from '../state/rows.js';
import type { InternalAddress } from './cluster-ranges.js';
import type { FrontendLimit } from './frontend-limit.js';
import { KIND_NAMES } from './text.js';
import type { FrontendPlan } from './types.js';

export const RANGES_WITHOUT_EFFECT = 'loadBalancerSourceRanges have no effect: this platform admits every source';

/**
 * The limitations for a Service port on a platform that only balances, as text for people.
 *
 * @param frontends the port's.
 * @param otherPorts of endpoints that are left out.
 * @param unlimited the port's frontends with all endpoints that would serve, in the same order.
 */
export function limitationsOf(
  { loadBalancerSourceRanges }: Pick<ServiceRow, 'loadBalancerSourceRanges'>,
  { protocol }: Pick<ServicePortRow, 'protocol'>,
  frontends: readonly FrontendPlan[],
  otherPorts: ReadonlySet<number>,
  unlimited: readonly FrontendPlan[],
): readonly string[] {
  if (protocol === 'SCTP') return ['SCTP is not served: this platform balances TCP and UDP'];
  const isRanged = loadBalancerSourceRanges.length > 0 && frontends.some(({ kind }) => kind === 'LoadBalancer');
  const ports = [...otherPorts].sort((one, other) => one - other).join(' and ');
  const limited = frontends.flatMap(({ endpoints }, index) => {
    const all = unlimited[index]?.endpoints.count ?? 0;
    return endpoints.count < all ? [{ all, used: endpoints.count }] : [];
  });
  return [
    ...(isRanged ? [RANGES_WITHOUT_EFFECT] : []),
    ...(ports === ''
      ? []
      : [
          `endpoints on port ${ports} get no connections: this platform has one port for all of an address, that of most`,
        ]),
    ...limited
      .slice(0, 1)
      .map(
        ({ all, used }) =>
          `of ${all} endpoints ${used} get connections: this platform has no more for an address without direct server return`,
      ),
  ];
}

/** For people: behaviour SV-06, a list without any range of the family admits every client of it. */
export function printNoRange(family: Family): string {
  return `loadBalancerSourceRanges have none of ${family}, so every client is admitted over ${family}`;
}

/** For people: what of a Service is beyond the limits. */
export function printLeftOut({ asked, kept }: Pick<FrontendLimit, 'asked' | 'kept'>): string {
  return `${asked - kept} of ${asked} frontends (ports × addresses) are left out: over the limits of one Service`;
}

/** For people: addresses of a Service within the cluster's own ranges. */
export function printInternal([first, ...others]: readonly InternalAddress[]): string {
  if (first === undefined) return '';
  const { kind, address, of, range } = first;
  const more = others.length === 0 ? '' : ` (one of ${others.length + 1} such addresses)`;
  return `${KIND_NAMES[kind]} ${address} is not served: it is within the range of ${of} ${range}${more}`;
}
