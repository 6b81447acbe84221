import { addressFromBytes, addressLength, FAMILIES } from '../../base/ip.js';
import { protocolNumber } from '../../base/protocol.js';
import type { IpsetAddon, IpvsAddon, IpvsService, RouteAddon } from '../../native/contract.js';
import type { NativeError } from '../../native/errors.js';
import { isUsualNodePort, type IpvsFootprint } from './footprint.js';
import { addressesBeside } from '../link-addresses.js';
import type { Removal } from './removal.js';

export interface IpvsParts {
  readonly ipvs: Pick<IpvsAddon, 'ipvsServices' | 'ipvsDestinations' | 'ipvsApply'>;
  readonly ipset: Pick<IpsetAddon, 'ipsetNames' | 'ipsetList' | 'ipsetApply'>;
  readonly route: Pick<RouteAddon, 'linkAddresses' | 'linkDelete' | 'allAddresses'>;
}

/**
 * Removes the ipvs mode's virtual services, its link and its sets. Its chains are gone by then, and so are the rules that
 * used the sets.
 *
 * A virtual service is a proxy's when its address is on the mode's link, when a set names it, or when it is on a node port of
 * the node. A set has the node port or, if there is that link, it is in the usual range. Others, such as those of a load
 * balancer on the same node, stay. (kube-proxy's own cleanup flushes them all.)
 *
 * @param drain leave virtual services with connections to the next pass: the kernel drops packets of connections whose service
 *   is gone. New connections do not reach them, because ours are translated before ip_vs sees them.
 */
export async function removeIpvs(
  addon: IpvsParts,
  footprint: IpvsFootprint,
  drain: boolean,
  report: Removal,
): Promise<void> {
  const { link } = footprint;
  const names = (await addon.ipset.ipsetNames()).filter((name) => footprint.sets.has(name));
  const addresses = await addon.route.linkAddresses(link);
  if (addresses === null && names.length === 0) return;
  const held = new Set(addresses?.map(addressFromBytes));
  const { ports, frontends } = await named(addon, names, footprint);
  const links = await addon.route.allAddresses();
  const own = new Set(FAMILIES.flatMap((family) => [...addressesBeside(link, family, links)]));
  const isNodePort = ({ protocol, port }: IpvsService): boolean =>
    ports.has(portKey(protocol, port)) || (addresses !== null && isUsualNodePort(port));
  const isOurs = (service: IpvsService): boolean => {
    if (service.address === null) return false;
    const address = addressFromBytes(service.address);
    return held.has(address) || frontends.has(packed(service)) || (own.has(address) && isNodePort(service));
  };
  // Until then the sets show whose the rest is.
  if (await removeServices(addon, link, isOurs, drain, report)) await removeSets(addon, names, report);
}

function portKey(protocol: number, port: number): string {
  return `${port}/${protocol}`;
}

/** A virtual service at an address as an element of a set. */
function packed({ address, port, protocol }: IpvsService): string {
  return Buffer.from([...(address ?? []), port >> 8, port & 0xff, protocol]).toString('latin1');
}

/** The content of the sets: node ports, and packed frontends. */
async function named(
  { ipset }: IpvsParts,
  there: readonly string[],
  { portSets, frontendSets }: IpvsFootprint,
): Promise<{ readonly ports: ReadonlySet<string>; readonly frontends: ReadonlySet<string> }> {
  const ports = new Set<string>();
  const frontends = new Set<string>();
  for (const listing of await ipset.ipsetList(there.filter((name) => portSets.has(name) || frontendSets.has(name)))) {
    if (listing === null || listing.elements === null) continue;
    const { name, type, family } = listing;
    const elements = Buffer.from(listing.elements);
    const protocol = portSets.get(name);
    if (protocol !== undefined && type === 'bitmap:port')
      for (let at = 0; at < elements.length; at += 2)
        ports.add(portKey(protocolNumber(protocol), elements.readUInt16BE(at)));
    if (!frontendSets.has(name) || type !== 'hash:ip,port' || family === null) continue;
    const size = addressLength(family) + 3;
    for (let at = 0; at < elements.length; at += size) frontends.add(elements.toString('latin1', at, at + size));
  }
  return { ports, frontends };
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
  if (reportUnless('ESRCH', refused, report)) return false;
  if (idle.length < services.length) {
    report.waiting.push('ipvs: virtual services that still have connections');
    return false;
  }
  if (!(await addon.route.linkDelete(link))) return true;
  report.removed.push(`link ${link}`);
  report.freesSysctls = listed.flat().length === services.length;
  // With a mode in force its sysctls are its own matter.
  if (!drain && !report.freesSysctls) report.kept.push('sysctls of ip_vs, which virtual services of others use');
  return true;
}

async function withoutConnections(addon: IpvsParts, services: readonly IpvsService[]): Promise<readonly IpvsService[]> {
  const destinations = await addon.ipvs.ipvsDestinations(services);
  return services.filter((_, index) => destinations[index]?.connections.every((count) => count === 0) ?? true);
}

/** Whether something was refused for another reason than that it is gone already. */
function reportUnless(gone: string, refused: readonly NativeError[], report: Removal): boolean {
  const problems = refused.filter(({ errno }) => errno !== gone);
  report.problems.push(...problems);
  return problems.length > 0;
}

async function removeSets(addon: IpvsParts, names: readonly string[], report: Removal): Promise<void> {
  if (names.length === 0) return;
  const { refused } = await addon.ipset.ipsetApply(names.map((name) => ({ type: 'destroy', name })));
  reportUnless('ENOENT', refused, report);
  if (names.length > refused.length) report.removed.push(`ipset: ${names.length - refused.length} sets`);
}
