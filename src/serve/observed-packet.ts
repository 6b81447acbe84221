import { isLoopback, parseAddress, type IPAddress } from '../base/ip.js';
import type { Host } from '../host/host.js';
import { forwardingOf, type Observation } from '../observe/observations.js';
import type { Explanation } from '../plan/explain.js';
import { routeTo } from './node-routes.js';

/** Of so many endpoints the route is looked up. */
const MAX_ROUTES = 32;

/** What stands in the way of one packet beside our rules. */
export async function observedPacket(
  host: Host,
  explanation: Explanation,
  destination: IPAddress,
): Promise<readonly Observation[]> {
  const { family, source, verdict } = explanation;
  const facts = await host.networkFacts();
  if (facts === null) return [];
  const found: Observation[] = [];
  const own = new Set(host.localAddresses());
  const endpoints = verdict.type === 'forward' ? verdict.endpoints.map(addressOf) : [];
  const forwarded = endpoints.some((address) => address !== null && !own.has(address));
  const isSentHere = source.kind === 'node';
  if (forwarded && !isSentHere) found.push(...forwardingOf(facts, family));
  if (isSentHere && !own.has(destination)) found.push(...(await routeTo(host, destination, 'the Service address')));
  for (const address of new Set(endpoints.slice(0, MAX_ROUTES)))
    if (address !== null && !own.has(address)) found.push(...(await routeTo(host, address, 'endpoint')));
  if (isLoopback(destination) && verdict.type === 'forward' && !facts.routesLoopback && family === 'IPv4')
    found.push({
      kind: 'route-localnet',
      severity: 'warning',
      text: `net.ipv4.conf.all.route_localnet is 0: the kernel drops what goes from ${destination} to an endpoint`,
      remedy: 'sysctl -w net.ipv4.conf.all.route_localnet=1, or set localhostNodePorts to false',
    });
  if (source.interface !== null && facts.strictReversePath.includes(source.interface))
    found.push({
      kind: 'reverse-path',
      severity: 'note',
      text: `net.ipv4.conf.${source.interface}.rp_filter is 1: packets are dropped whose sender is not reached by ${source.interface}`,
      remedy: `if the way back is another (ip route get ADDRESS), sysctl -w net.ipv4.conf.${source.interface}.rp_filter=2`,
    });
  return found;
}

/** Of `address:port`. */
function addressOf(endpoint: string): IPAddress | null {
  return parseAddress(endpoint.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
}
