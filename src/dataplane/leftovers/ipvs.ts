import { addressFromBytes, FAMILIES } from '../../base/ip.js';
import type { IpsetAddon, IpvsAddon, IpvsService, RouteAddon } from '../../native/contract.js';
import type { NativeError } from '../../native/errors.js';
import type { IpvsFootprint } from '../footprint.js';
import type { Removal } from './removal.js';

export interface IpvsParts {
  readonly ipvs: Pick<IpvsAddon, 'ipvsServices' | 'ipvsDestinations' | 'ipvsApply'>;
  readonly ipset: Pick<IpsetAddon, 'ipsetNames' | 'ipsetApply'>;
  readonly route: Pick<RouteAddon, 'linkAddresses' | 'linkDelete'>;
}

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
  const listed = await Promise.all(FAMILIES.map((family) => addon.ipvs.ipvsServices(family)));
  const services = listed.flat().filter((service) => isOurs(service, held));
  const idle = drain ? await withoutConnections(addon, services) : services;
  const refused = await addon.ipvs.ipvsApply(
    idle.map((service) => ({ type: 'service', verb: 'delete', service, state: null })),
  );
  if (idle.length > refused.length) report.removed.push(`ipvs: ${idle.length - refused.length} virtual services`);
  if (toldUnless('ESRCH', refused, report)) return;
  if (idle.length < services.length) report.waiting.push('ipvs: virtual services that still have connections');
  else if (await addon.route.linkDelete(link)) report.removed.push(`link ${link}`);
}

async function withoutConnections(addon: IpvsParts, services: readonly IpvsService[]): Promise<readonly IpvsService[]> {
  const destinations = await addon.ipvs.ipvsDestinations(services);
  return services.filter((_, index) => destinations[index]?.connections.every((count) => count === 0) ?? true);
}

/** Whether something was refused for another reason than that it is gone already. */
function toldUnless(gone: string, refused: readonly NativeError[], report: Removal): boolean {
  const problems = refused.filter(({ errno }) => errno !== gone);
  report.problems.push(...problems);
  return problems.length > 0;
}

function isOurs({ address, port }: IpvsService, held: ReadonlySet<string>): boolean {
  if (address === null) return false;
  return held.has(addressFromBytes(address)) || (port >= NODE_PORTS.first && port <= NODE_PORTS.last);
}

async function removeSets(addon: IpvsParts, sets: ReadonlySet<string>, report: Removal): Promise<void> {
  const names = (await addon.ipset.ipsetNames()).filter((name) => sets.has(name));
  if (names.length === 0) return;
  const refused = await addon.ipset.ipsetApply(names.map((name) => ({ type: 'destroy', name })));
  toldUnless('ENOENT', refused, report);
  if (names.length > refused.length) report.removed.push(`ipset: ${names.length - refused.length} sets`);
}
