import { isLoopback, parseAddress, type IPAddress } from '../base/ip.js';
import type { Host, NetworkFacts } from '../host/host.js';
import { bridgeProblem, bridgeState, carries } from '../observe/bridges.js';
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
  found.push(...(await reversePathOf(host, facts, explanation)), ...bridgesOf(facts, explanation, endpoints));
  return found;
}

/** A strict rp_filter drops packets by an interface that does not lead back to their sender (fib_validate_source). IPv6 has none. */
async function reversePathOf(
  host: Pick<Host, 'routeInterface'>,
  { strictReversePath }: NetworkFacts,
  { family, source }: Explanation,
): Promise<readonly Observation[]> {
  const { address, interface: name } = source;
  if (name === null || family !== 'IPv4' || !strictReversePath.includes(name)) return [];
  const back = address === null ? null : await host.routeInterface(address);
  if (back === name) return [];
  const isCertain = address !== null;
  const text = isCertain
    ? `net.ipv4.conf.${name}.rp_filter is 1, and ${back === null ? 'no route leads' : `the route leads by ${back}`} back to ${address}: the kernel drops its packets that come in by ${name}`
    : `net.ipv4.conf.${name}.rp_filter is 1: packets are dropped whose sender is not reached by ${name}`;
  return [
    {
      kind: 'reverse-path',
      severity: isCertain ? 'warning' : 'note',
      text,
      remedy: `see ip route get ${address ?? 'ADDRESS'}; correct the route, or sysctl -w net.ipv4.conf.${name}.rp_filter=2`,
    },
  ];
}

/** Answers of an endpoint that go straight over the bridge of the sender, past the rules that translate them back. */
function bridgesOf(
  { bridges }: NetworkFacts,
  { family, source, verdict }: Explanation,
  endpoints: readonly (IPAddress | null)[],
): readonly Observation[] {
  const { address } = source;
  // Masqueraded packets are answered to the node.
  if (address === null || source.kind === 'node' || verdict.type !== 'forward' || verdict.masquerade) return [];
  return bridges.flatMap((bridge) => {
    if (bridge.filters[family] === true || !carries(bridge, address)) return [];
    const beside = verdict.endpoints.filter((endpoint, place) => {
      const other = endpoints[place] ?? null;
      return other !== null && other !== address && !verdict.hairpin.includes(endpoint) && carries(bridge, other);
    });
    if (beside.length === 0) return [];
    const which = beside.length === verdict.endpoints.length ? 'the endpoints' : beside.join(', ');
    return [
      {
        ...bridgeProblem(bridge, family),
        text: `${bridgeState(bridge, family)}: ${address} and ${which} are on bridge ${bridge.name}, so that answers reach the sender untranslated, and it drops them`,
      },
    ];
  });
}

/** Of `address:port`. */
function addressOf(endpoint: string): IPAddress | null {
  return parseAddress(endpoint.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
}
