import { addressFromBytes } from '../../base/ip.js';
import type { IpvsListedService, NativeAddon } from '../../native/contract.js';
import type { IpvsFootprint } from '../footprint.js';
import type { Removal } from './removal.js';

export type IpvsParts = Pick<NativeAddon, 'ipvs' | 'ipset' | 'route'>;

/** The API server's default for --service-node-port-range. */
const NODE_PORTS = { first: 30_000, last: 32_767 } as const;

/**
 * Removes the ipvs mode's virtual services, its link and its sets; its chains are gone by then, and with them what used the sets.
 *
 * A virtual service is a proxy's when its address is on the mode's link, or when it listens on a node port; without that link nothing is. Others, such as
 * those of a load balancer on the same node, stay. (kube-proxy's own cleanup flushes them all.)
 *
 * @param drain leave virtual services with connections to the next pass: the kernel drops packets of connections whose service is gone. New connections
 *   do not reach them, because ours are translated before ip_vs sees them.
 */
export async function removeIpvs(
  addon: IpvsParts,
  { link, sets }: IpvsFootprint,
  drain: boolean,
  report: Removal,
): Promise<void> {
  const addresses = await addon.route.linkAddresses(link);
  if (addresses !== null) await removeServices(addon, link, new Set(addresses.map(addressFromBytes)), drain, report);
  await removeSets(addon, sets, report);
}

async function removeServices(
  addon: IpvsParts,
  link: string,
  held: ReadonlySet<string>,
  drain: boolean,
  report: Removal,
): Promise<void> {
  const services = (await addon.ipvs.ipvsList()).filter((service) => isOurs(service, held));
  const busy = drain ? services.filter(({ connections }) => connections > 0) : [];
  let deleted = 0;
  for (const service of services) {
    if (!busy.includes(service) && (await addon.ipvs.ipvsDelete(service))) deleted++;
  }
  if (deleted > 0) report.removed.push(`ipvs: ${deleted} virtual services`);
  if (busy.length > 0) report.waiting.push('ipvs: virtual services that still have connections');
  else if (await addon.route.linkDelete(link)) report.removed.push(`link ${link}`);
}

function isOurs({ address, port }: IpvsListedService, held: ReadonlySet<string>): boolean {
  if (address === null) return false;
  return held.has(addressFromBytes(address)) || (port >= NODE_PORTS.first && port <= NODE_PORTS.last);
}

async function removeSets(addon: IpvsParts, sets: ReadonlySet<string>, report: Removal): Promise<void> {
  let destroyed = 0;
  for (const name of await addon.ipset.ipsetNames()) {
    if (!sets.has(name)) continue;
    if (await report.attempt(false, () => addon.ipset.ipsetDestroy(name))) destroyed++;
  }
  if (destroyed > 0) report.removed.push(`ipset: ${destroyed} sets`);
}
