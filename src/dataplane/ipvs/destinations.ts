import { EndpointIndex, endpointsWithout } from '../../base/endpoint-index.js';
import { endpointSize, EndpointList } from '../../base/endpoint-list.js';
import type { Family } from '../../base/ip.js';
import type { IpvsDestinations, IpvsOperation, IpvsService } from '../../native/contract.js';
import { noEndpoints, sortEndpoints, unite } from './frontends.js';

/** The destinations of a virtual service. Lists are sorted and have no endpoint in common. */
export interface Destinations {
  /** Take connections. */
  readonly active: EndpointList;
  /** Take no new ones, and go when the last has ended (behaviour IV-04), those of UDP and SCTP also when they do not serve any more. */
  readonly draining: EndpointList;
  /** Have another weight, another way of forwarding, or bounds on their connections: not by us. */
  readonly odd: EndpointList;
}

export function destinations(active: EndpointList, draining = noEndpoints(active.family)): Destinations {
  return { active, draining, odd: noEndpoints(active.family) };
}

export function sameDestinations(one: Destinations, other: Destinations): boolean {
  return (
    one === other ||
    (one.active.equals(other.active) && one.draining.equals(other.draining) && one.odd.equals(other.odd))
  );
}

export function allOf(family: Family, held: Destinations | undefined): EndpointList {
  return held === undefined ? noEndpoints(family) : unite(family, [held.active, held.draining, held.odd]);
}

/**
 * What there should be of these endpoints, after what there is.
 *
 * @param serving endpoints that connections to which are waited for; null: any.
 */
export function follow(
  endpoints: EndpointList,
  held: Destinations | undefined,
  serving: EndpointList | null,
): Destinations {
  if (held === undefined) return destinations(endpoints);
  if (held.draining.count + held.odd.count === 0 && held.active.equals(endpoints)) return destinations(endpoints);
  const leaving = endpointsWithout(allOf(endpoints.family, held), endpoints);
  const gone = serving === null ? noEndpoints(endpoints.family) : endpointsWithout(leaving, serving);
  return destinations(endpoints, endpointsWithout(leaving, gone));
}

const MASQUERADING = 0;
const WEIGHT = 1;

export function listedDestinations(
  family: Family,
  { endpoints, weights, methods, bounded }: IpvsDestinations,
): Destinations {
  const size = endpointSize(family);
  const parts: Record<keyof Destinations, Uint8Array[]> = { active: [], draining: [], odd: [] };
  for (let index = 0; index < weights.length; index++) {
    const usual = methods[index] === MASQUERADING && bounded[index] === 0;
    const place = usual && weights[index] === WEIGHT ? 'active' : usual && weights[index] === 0 ? 'draining' : 'odd';
    parts[place].push(endpoints.subarray(index * size, (index + 1) * size));
  }
  const list = (each: readonly Uint8Array[]): EndpointList =>
    each.length === 0 ? noEndpoints(family) : sortEndpoints(family, Buffer.concat(each));
  return { active: list(parts.active), draining: list(parts.draining), odd: list(parts.odd) };
}

/** Those of `endpoints` that have connections. */
export function connected(endpoints: EndpointList, listed: IpvsDestinations): EndpointList {
  const size = endpointSize(endpoints.family);
  const busy: Uint8Array[] = [];
  const wanted = new EndpointIndex(endpoints);
  for (let index = 0; index < listed.connections.length; index++) {
    const start = index * size;
    if ((listed.connections[index] ?? 0) === 0 || wanted.find(listed.endpoints, start, start + size - 2) < 0) continue;
    busy.push(listed.endpoints.subarray(start, start + size));
  }
  return sortEndpoints(endpoints.family, Buffer.concat(busy));
}

/** From what there is to what should be: first what takes connections, then what takes none any more, then what goes. */
export function destinationOperations(
  service: IpvsService,
  held: Destinations | undefined,
  wanted: Destinations,
): readonly IpvsOperation[] {
  const { family } = wanted.active;
  const before = held ?? destinations(noEndpoints(family));
  const all = allOf(family, held);
  const operation = (verb: 'new' | 'set' | 'delete', { packed }: EndpointList, weight: number): IpvsOperation[] =>
    packed.length === 0 ? [] : [{ type: 'destinations', verb, service, endpoints: packed, weight }];
  const activated = endpointsWithout(wanted.active, before.active);
  const fresh = endpointsWithout(activated, all);
  const quieted = endpointsWithout(wanted.draining, before.draining);
  const freshQuiet = endpointsWithout(quieted, all);
  return [
    ...operation('new', fresh, WEIGHT),
    ...operation('set', endpointsWithout(activated, fresh), WEIGHT),
    ...operation('new', freshQuiet, 0),
    ...operation('set', endpointsWithout(quieted, freshQuiet), 0),
    ...operation('delete', endpointsWithout(all, unite(family, [wanted.active, wanted.draining])), 0),
  ];
}
