import { familyOf, type Family, type IPAddress } from '../base/ip.js';
import type { ServiceRow } from '../state/rows.js';

/**
 * Frontends that a Service asks for in a family, counted before it is planned. The cost grows with its ports and addresses
 * alone, not with their product. An address that it names twice counts once.
 */
export function frontendCount(
  family: Family,
  { ports, externalIPs, loadBalancerIngress }: Pick<ServiceRow, 'ports' | 'externalIPs' | 'loadBalancerIngress'>,
): number {
  const external = new Set<IPAddress>();
  const add = (address: IPAddress): void => {
    if (familyOf(address) === family) external.add(address);
  };
  for (const address of externalIPs) add(address);
  for (const { address, ipMode } of loadBalancerIngress) if (ipMode === 'VIP') add(address);
  const nodePorts = ports.filter(({ nodePort }) => nodePort !== 0).length;
  return ports.length * (1 + external.size) + nodePorts;
}
