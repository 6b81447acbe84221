import { familyOf, prefixContains, prefixesOverlap, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import type { Bridge } from '../host/host.js';
import type { Observation } from './observations.js';

/** Bridges that carry packets from pod to pod past netfilter: answers of a Service's endpoint on the same bridge are then not translated back. */

function switchOf(family: Family): string {
  return `net.bridge.bridge-nf-call-${family === 'IPv4' ? 'ip' : 'ip6'}tables`;
}

/** Whether an address is in a network of the bridge itself. */
export function carries({ prefixes }: Bridge, address: IPAddress): boolean {
  return prefixes.some((prefix) => prefixContains(prefix, address));
}

export function bridgeState({ filters }: Bridge, family: Family): string {
  return filters[family] === null
    ? `${switchOf(family)} is missing (no module br_netfilter)`
    : `${switchOf(family)} is 0`;
}

export function bridgeProblem({ filters }: Bridge, family: Family): Omit<Observation, 'text'> {
  const load = filters[family] === null ? 'modprobe br_netfilter, and ' : '';
  return {
    kind: 'bridge',
    severity: 'warning',
    remedy: `${load}sysctl -w ${switchOf(family)}=1, and the same in /etc/sysctl.d`,
  };
}

/** Families of the pods that a bridge carries. @param pods networks of the node's pods. */
export function familiesCarried(
  { prefixes }: Bridge,
  families: readonly Family[],
  pods: readonly IPPrefix[],
): readonly Family[] {
  const own = prefixes.filter((prefix) => pods.some((each) => prefixesOverlap(prefix, each)));
  return families.filter((family) => own.some((prefix) => familyOf(prefix) === family));
}

/** @param pods networks of the node's pods. */
export function observeBridges(
  bridges: readonly Bridge[],
  families: readonly Family[],
  pods: readonly IPPrefix[],
): readonly Observation[] {
  return bridges.flatMap((bridge) =>
    familiesCarried(bridge, families, pods).flatMap((family) => {
      if (bridge.filters[family] === true) return [];
      return [
        {
          ...bridgeProblem(bridge, family),
          text: `${bridgeState(bridge, family)}, and bridge ${bridge.name} carries pods: a pod gets no answer from a Service whose endpoint is on the same bridge`,
        },
      ];
    }),
  );
}
