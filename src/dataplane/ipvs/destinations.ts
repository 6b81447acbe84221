import { EndpointIndex, endpointsWithout } from '../../base/endpoint-index.js';
import { endpointsAt, endpointSize, type EndpointList } from '../../base/endpoint-list.js';
import type { Family } from '../../base/ip.js';
import type { IpvsDestinations, IpvsOperation, IpvsService } from '../../native/contract.js';
import { noEndpoints, sortEndpoints, unite } from './frontends.js';

/** The destinations of a virtual service. Lists are sorted and have no endpoint in common. */
export interface Destinations {
  /** Take connections. */
  readonly active: EndpointList;
  /** The weights of those, in their order; absent: 1 each. */
  readonly weights?: readonly number[];
  /**
   * They take no new connections, and go when the last has ended (behaviour IV-04). Those of UDP and SCTP also go when they do
   * not serve any more.
   */
  readonly draining: EndpointList;
  /** Have another way of forwarding, or bounds on their connections: not by us. */
  readonly odd: EndpointList;
}

export function destinations(
  active: EndpointList,
  draining = noEndpoints(active.family),
  weights: readonly number[] | null = null,
): Destinations {
  const odd = noEndpoints(active.family);
  return weights === null || isPlain(weights) ? { active, draining, odd } : { active, draining, odd, weights };
}

function isPlain(weights: readonly number[]): boolean {
  return weights.every((weight) => weight === WEIGHT);
}

export function sameDestinations(one: Destinations, other: Destinations): boolean {
  return (
    one === other ||
    (one.active.equals(other.active) &&
      one.draining.equals(other.draining) &&
      one.odd.equals(other.odd) &&
      sameWeights(one.weights, other.weights))
  );
}

function sameWeights(one: readonly number[] | undefined, other: readonly number[] | undefined): boolean {
  return one === other || (one !== undefined && one.every((weight, place) => weight === other?.[place]));
}

export function allOf(family: Family, held: Destinations | undefined): EndpointList {
  return held === undefined ? noEndpoints(family) : unite(family, [held.active, held.draining, held.odd]);
}

/**
 * What there should be of these endpoints, after what there is.
 *
 * @param serving endpoints that connections to which are waited for; null: any.
 * @param weights of the endpoints; null: 1 each.
 */
export function follow(
  endpoints: EndpointList,
  held: Destinations | undefined,
  serving: EndpointList | null,
  weights: readonly number[] | null = null,
): Destinations {
  const none = noEndpoints(endpoints.family);
  if (held === undefined) return destinations(endpoints, none, weights);
  if (held.draining.count + held.odd.count === 0 && held.active.equals(endpoints))
    return destinations(endpoints, none, weights);
  const leaving = endpointsWithout(allOf(endpoints.family, held), endpoints);
  const gone = serving === null ? none : endpointsWithout(leaving, serving);
  return destinations(endpoints, endpointsWithout(leaving, gone), weights);
}

const MASQUERADING = 0;
const WEIGHT = 1;

export function listedDestinations(
  family: Family,
  { endpoints, weights, methods, bounded }: IpvsDestinations,
): Destinations {
  const size = endpointSize(family);
  const parts: Record<'active' | 'draining' | 'odd', Uint8Array[]> = { active: [], draining: [], odd: [] };
  for (let index = 0; index < weights.length; index++) {
    const usual = methods[index] === MASQUERADING && bounded[index] === 0;
    const place = !usual ? 'odd' : weights[index] === 0 ? 'draining' : 'active';
    parts[place].push(endpoints.subarray(index * size, (index + 1) * size));
  }
  const list = (each: readonly Uint8Array[]): EndpointList =>
    each.length === 0 ? noEndpoints(family) : sortEndpoints(family, Buffer.concat(each));
  const [active, draining, odd] = [list(parts.active), list(parts.draining), list(parts.odd)];
  // Most virtual services have none.
  if (weights.every((weight) => weight <= WEIGHT)) return { active, draining, odd };
  const places = new EndpointIndex(active);
  const found = new Array<number>(active.count).fill(WEIGHT);
  for (const [index, weight] of weights.entries()) {
    const place = places.find(endpoints, index * size, (index + 1) * size - 2);
    if (place >= 0) found[place] = weight;
  }
  return isPlain(found) ? { active, draining, odd } : { active, draining, odd, weights: found };
}

/** The endpoints of each weight. */
function byWeight({ active, weights }: Destinations): ReadonlyMap<number, EndpointList> {
  if (weights === undefined) return new Map([[WEIGHT, active]]);
  const places = new Map<number, number[]>();
  for (const [place, weight] of weights.entries()) {
    const same = places.get(weight);
    if (same === undefined) places.set(weight, [place]);
    else same.push(place);
  }
  return new Map([...places].map(([weight, each]) => [weight, endpointsAt(active, each)]));
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
  const heavy = byWeight(before);
  const activated = [...byWeight(wanted)].map(([weight, list]) => {
    const changed = endpointsWithout(list, heavy.get(weight) ?? noEndpoints(family));
    return { weight, changed, fresh: endpointsWithout(changed, all) };
  });
  const quieted = endpointsWithout(wanted.draining, before.draining);
  const freshQuiet = endpointsWithout(quieted, all);
  return [
    ...activated.flatMap(({ weight, fresh }) => operation('new', fresh, weight)),
    ...activated.flatMap(({ weight, changed, fresh }) => operation('set', endpointsWithout(changed, fresh), weight)),
    ...operation('new', freshQuiet, 0),
    ...operation('set', endpointsWithout(quieted, freshQuiet), 0),
    ...operation('delete', endpointsWithout(all, unite(family, [wanted.active, wanted.draining])), 0),
  ];
}
