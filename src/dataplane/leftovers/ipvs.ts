import { addressFromBytes, FAMILIES } from '../../base/ip.js';
import { protocolNumber } from '../../base/protocol.js';
import type { IpsetAddon, IpvsAddon, IpvsService, RouteAddon } from '../../native/contract.js';
import type { NativeError } from '../../native/errors.js';
import { isUsualNodePort, type IpvsFootprint } from '../footprint.js';
import { addressesBeside } from '../link-addresses.js';
import type { Removal } from './removal.js';

export interface IpvsParts {
  readonly ipvs: Pick<IpvsAddon, 'ipvsServices' | 'ipvsDestinations' | 'ipvsApply'>;
  readonly ipset: Pick<IpsetAddon, 'ipsetNames' | 'ipsetList' | 'ipsetApply'>;
  readonly route: Pick<RouteAddon, 'linkAddresses' | 'linkDelete' | 'allAddresses'>;
}

/**
 * Removes the ipvs mode's virtual services, its link and its sets; its chains are gone by then, and with them what used the sets.
 *
 * A virtual service is a proxy's when its address is on the mode's link, or when it is on a node port of the node: one that a set has, or one of the usual range.
 * Without that link nothing is. Others, such as those of a load balancer on the same node, stay. (kube-proxy's own cleanup flushes them all.)
 *
 * @param drain leave virtual services with connections to the next pass: the kernel drops packets of connections whose service is gone. New connections
 *   do not reach them, because ours are translated before ip_vs sees them.
 */
export async function removeIpvs(
  addon: IpvsParts,
  { link, sets, portSets }: IpvsFootprint,
  drain: boolean,
  report: Removal,
): Promise<void> {
  const names = (await addon.ipset.ipsetNames()).filter((name) => sets.has(name));
  const addresses = await addon.route.linkAddresses(link);
  if (addresses !== null) {
    const held = new Set(addresses.map(addressFromBytes));
    const ports = await nodePorts(addon, names, portSets);
    const links = await addon.route.allAddresses();
    const own = new Set(FAMILIES.flatMap((family) => [...addressesBeside(link, family, links)]));
    const isOurs = (service: IpvsService): boolean => {
      if (service.address === null) return false;
      const address = addressFromBytes(service.address);
      return held.has(address) || (own.has(address) && isNodePort(service, ports));
    };
    // Until then the sets tell whose the rest is.
    if (!(await removeServices(addon, link, isOurs, drain, report))) return;
  }
  await removeSets(addon, names, report);
}

function isNodePort({ protocol, port }: IpvsService, named: ReadonlySet<string>): boolean {
  return named.has(portKey(protocol, port)) || isUsualNodePort(port);
}

function portKey(protocol: number, port: number): string {
  return `${port}/${protocol}`;
}

async function nodePorts(
  { ipset }: IpvsParts,
  there: readonly string[],
  portSets: IpvsFootprint['portSets'],
): Promise<ReadonlySet<string>> {
  const ports = new Set<string>();
  const names = there.filter((name) => portSets.has(name));
  for (const listing of await ipset.ipsetList(names)) {
    const protocol = portSets.get(listing?.name ?? '');
    if (protocol === undefined || listing?.type !== 'bitmap:port' || listing.elements === null) continue;
    const { elements } = listing;
    for (let at = 0; at + 1 < elements.length; at += 2)
      ports.add(portKey(protocolNumber(protocol), ((elements[at] ?? 0) << 8) | (elements[at + 1] ?? 0)));
  }
  return ports;
}

/** Whether none of them is left. */
async function removeServices(
  addon: IpvsParts,
  link: string,
  isOurs: (service: IpvsService) => boolean,
  drain: boolean,
  report: Removal,
): Promise<boolean> {
  const listed = await Promise.all(FAMILIES.map((family) => addon.ipvs.ipvsServices(family)));
  const services = listed.flat().filter(isOurs);
  const idle = drain ? await withoutConnections(addon, services) : services;
  const { refused } = await addon.ipvs.ipvsApply(
    idle.map((service) => ({ type: 'service', verb: 'delete', service, state: null })),
  );
  if (idle.length > refused.length) report.removed.push(`ipvs: ${idle.length - refused.length} virtual services`);
  if (toldUnless('ESRCH', refused, report)) return false;
  if (idle.length < services.length) {
    report.waiting.push('ipvs: virtual services that still have connections');
    return false;
  }
  if (await addon.route.linkDelete(link)) report.removed.push(`link ${link}`);
  return true;
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

async function removeSets(addon: IpvsParts, names: readonly string[], report: Removal): Promise<void> {
  if (names.length === 0) return;
  const { refused } = await addon.ipset.ipsetApply(names.map((name) => ({ type: 'destroy', name })));
  toldUnless('ENOENT', refused, report);
  if (names.length > refused.length) report.removed.push(`ipset: ${names.length - refused.length} sets`);
}
