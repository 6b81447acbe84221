import type { ZoneSpill } from '../state/rows.js';

/** The facts of an endpoint that a node needs to share connections between zones. */
export interface Placed {
  readonly weight: number;
  /** Null: it is in no zone that we know of; it takes what is over from all zones. */
  readonly zone: string | null;
}

/** The number for all connections of a node, so that shares are whole numbers and the same on every node of a zone. */
const WHOLE = 1_000_000;

/**
 * Each endpoint's share of the connections of a node in a zone. Its own zone gets as much as that zone's endpoints can take
 * if every client's zone did the same. The rest goes to zones that have more endpoints than clients, in proportion to what
 * they have left. So no endpoint gets more than its share of all connections, and as many as possible stay in their zone.
 */
export function spilledWeights(endpoints: readonly Placed[], own: string, { clients }: ZoneSpill): readonly number[] {
  const capacity = new Map<string | null, number>();
  for (const { zone, weight } of endpoints) capacity.set(zone, (capacity.get(zone) ?? 0) + weight);
  const all = endpoints.reduce((sum, { weight }) => sum + weight, 0);
  const demands = demandOf(capacity, own, clients);
  const room = (zone: string | null): number => (capacity.get(zone) ?? 0) / all;
  const demand = (zone: string | null): number => (zone === null ? 0 : (demands.get(zone) ?? 0));
  const stays = demand(own) > room(own) ? room(own) / demand(own) : room(own) > 0 ? 1 : 0;
  const surplus = new Map<string | null, number>();
  for (const zone of capacity.keys()) if (zone !== own) surplus.set(zone, Math.max(0, room(zone) - demand(zone)));
  const left = [...surplus.values()].reduce((sum, each) => sum + each, 0);
  const partOf = (zone: string | null): number => {
    if (zone === own) return left > 0 ? stays : 1;
    return left > 0 ? ((1 - stays) * (surplus.get(zone) ?? 0)) / left : 0;
  };
  const hasAny = left > 0 || room(own) > 0;
  return endpoints.map(({ zone, weight }) => {
    // If no zone has anything left, all zones are equally full, and equal shares are best.
    const part = hasAny ? partOf(zone) : room(zone);
    return Math.round((WHOLE * part * weight) / (capacity.get(zone) ?? 1));
  });
}

/** Each zone's part of all clients; together 1. */
function demandOf(
  capacity: ReadonlyMap<string | null, number>,
  own: string,
  clients: ZoneSpill['clients'],
): ReadonlyMap<string, number> {
  if (clients !== null) {
    const all = clients.reduce((sum, { share }) => sum + share, 0);
    return new Map(clients.map(({ zone, share }) => [zone, share / all]));
  }
  const zones = new Set([own, ...[...capacity.keys()].filter((zone) => zone !== null)]);
  return new Map([...zones].map((zone) => [zone, 1 / zones.size]));
}
