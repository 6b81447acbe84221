/*
 * A table of slots maps each slot to an endpoint: a connection draws a slot, or its client's address is hashed to one.
 * Each endpoint has slots in proportion to its weight. A table depends on endpoints and weights alone, so every node has
 * the same one. An endpoint that comes or goes moves few slots beyond its own.
 */

import { endpointSize, type EndpointList } from '../base/endpoint-list.js';
import { MOST_SLOTS } from './types.js';

/**
 * Numbers of slots: primes, each the last below a power of two. A number that followed every endpoint would move nearly all
 * slots each time, as hashes are taken modulo it.
 */
const SIZES: readonly number[] = [251, 509, 1021, 2039, 4093];
/** So many slots for an endpoint keep equal shares within 5 % of each other. */
const SLOTS_EACH = 20;
/** Ten slots each, at the least. Making a table takes time in proportion to slots × endpoints: 20 ms for the largest. */
export const MOST_TABLE_ENDPOINTS = 819;

/** The size of a table for a number of endpoints: one slot is enough for one; null when there are too many of them. */
export function tableSize(endpoints: number): number | null {
  if (endpoints <= 1) return 1;
  if (endpoints > MOST_TABLE_ENDPOINTS) return null;
  return SIZES.find((size) => size >= SLOTS_EACH * endpoints) ?? MOST_SLOTS;
}

/** A table, and what the next one of the same port is made from. */
export interface SlotTable {
  readonly endpoints: EndpointList;
  readonly weights: readonly number[];
  /** For each slot the index of its endpoint in the list. */
  readonly slots: Uint16Array;
  /** Slots before some were moved from endpoints with too many. */
  readonly winners: Uint16Array;
}

/** Steps of making a table. Each returns how many endpoints were compared for slots. */
export type TableSteps = Generator<number, SlotTable>;

export interface Compared {
  pairs: number;
}

/** A step compares so many, which takes 2 ms. */
const PAIRS_A_STEP = 1 << 19;

/**
 * {@link slotTable} in steps.
 *
 * @param before saves comparisons; the result does not depend on it.
 * @param compared counts comparisons since the last step, of several tables.
 */
export function* tableSteps(
  endpoints: EndpointList,
  weights: readonly number[],
  size: number,
  before: SlotTable | null,
  compared: Compared = { pairs: 0 },
): TableSteps {
  const contest = new Contest(endpoints, weights, compared);
  const winners = new Uint16Array(size);
  const counts = new Array<number>(weights.length).fill(0);
  const known = before?.winners.length === size ? keptOf(before, endpoints, weights) : null;
  const changed = known === null ? null : contest.ranked(known.changed);
  for (let slot = 0; slot < size; slot++) {
    const held = known === null ? -1 : (known.places[before?.winners[slot] ?? 0] ?? -1);
    // Endpoints that did not change lose to the slot's best one again.
    const winner = held < 0 || changed === null ? contest.best(slot) : contest.bestOf(slot, held, changed);
    winners[slot] = winner;
    counts[winner] = (counts[winner] ?? 0) + 1;
    if (compared.pairs >= PAIRS_A_STEP) yield* step(compared);
  }
  const slots = winners.slice();
  yield* level(slots, counts, sharesOf(weights, counts, size), contest, compared);
  return { endpoints, weights, slots, winners };
}

function* step(compared: Compared): Generator<number, void> {
  const { pairs } = compared;
  compared.pairs = 0;
  yield pairs;
}

/**
 * For each slot the index of its endpoint in the list.
 *
 * Each slot goes to the endpoint with the highest score for it, by a hash of both (rendezvous hashing): without an endpoint
 * the others keep theirs. Then endpoints with more than their share give the slots of their lowest scores to endpoints with
 * less. Maglev's turns instead move about twice as many slots.
 *
 * @param endpoints sorted. @param weights of the endpoints; one of 0 has no slots, and not all of them are 0.
 * @param size from {@link tableSize}.
 */
export function slotTable(endpoints: EndpointList, weights: readonly number[], size: number): Uint16Array {
  if (endpoints.count <= 1) return new Uint16Array(size);
  const steps = tableSteps(endpoints, weights, size, null);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value.slots;
  }
}

/** Which endpoints of a list were in an earlier one with the same weight. */
interface Kept {
  /** For each endpoint of the earlier list its place now; -1: it is gone or has another weight. */
  readonly places: Int32Array;
  /** Places of the others. */
  readonly changed: readonly number[];
}

/** Null where most changed. */
function keptOf(before: SlotTable, endpoints: EndpointList, weights: readonly number[]): Kept | null {
  const { count } = before.endpoints;
  const held = new Map(Array.from({ length: count }, (_, place) => [before.endpoints.key(place), place]));
  const places = new Int32Array(count).fill(-1);
  const changed: number[] = [];
  for (let place = 0; place < endpoints.count; place++) {
    const earlier = held.get(endpoints.key(place));
    if (earlier !== undefined && before.weights[earlier] === weights[place]) places[earlier] = place;
    else changed.push(place);
  }
  return changed.length > endpoints.count / 2 ? null : { places, changed };
}

const RANGE = 2 ** 32 + 1;

/**
 * Compares endpoints for slots. An endpoint of weight w has the higher score of two w times as often (weighted rendezvous
 * hashing). Endpoints are compared by falling weight. So the hash that the best one so far requires of an endpoint also
 * excludes later ones, and a logarithm is seldom computed.
 */
class Contest {
  /** Places of endpoints with weight, by falling weight. */
  private readonly order: readonly number[];
  /** By place. */
  private readonly seeds: Int32Array;
  private readonly all: Ranked;

  constructor(
    endpoints: EndpointList,
    private readonly weights: readonly number[],
    private readonly compared: Compared,
  ) {
    this.seeds = Int32Array.from(hashesOf(endpoints), (hash) => Math.imul(hash ^ 0x9e3779b9, 0x85ebca6b));
    const places = weights.flatMap((weight, place) => (weight === 0 ? [] : [place]));
    this.order = places.sort((one, other) => (weights[other] ?? 0) - (weights[one] ?? 0) || one - other);
    this.all = new Ranked(this.order, this.seeds, weights);
  }

  /** Some endpoints, in the order in which they are compared. */
  ranked(places: readonly number[]): Ranked {
    const wanted = new Set(places);
    return new Ranked(
      this.order.filter((place) => wanted.has(place)),
      this.seeds,
      this.weights,
    );
  }

  /** The place of the best of all endpoints for a slot. */
  best(slot: number): number {
    return this.bestFrom(this.all, slot);
  }

  /** The best of one endpoint and some others. */
  bestOf(slot: number, place: number, others: Ranked): number {
    const other = this.bestFrom(others, slot);
    if (other < 0) return place;
    const [score, offer] = [this.score(place, slot), this.score(other, slot)];
    return offer > score || (offer === score && other < place) ? other : place;
  }

  score(place: number, slot: number): number {
    return scoreOf(mix(this.seeds[place] ?? 0, seedOf(slot)), this.weights[place] ?? 1);
  }

  /** As {@link Ranked.best}. */
  bestFrom(some: Ranked, slot: number): number {
    this.compared.pairs += some.size;
    return some.best(slot);
  }
}

/** Endpoints by falling weight. */
class Ranked {
  private readonly places: Uint16Array;
  private readonly seeds: Int32Array;
  private readonly weights: Float64Array;
  private count: number;

  constructor(order: readonly number[], seeds: Int32Array, weights: readonly number[]) {
    this.count = order.length;
    this.places = Uint16Array.from(order);
    this.seeds = Int32Array.from(order, (place) => seeds[place] ?? 0);
    this.weights = Float64Array.from(order, (place) => weights[place] ?? 0);
  }

  get size(): number {
    return this.count;
  }

  remove(place: number): void {
    const rank = this.places.indexOf(place);
    for (const column of [this.places, this.seeds, this.weights]) column.copyWithin(rank, rank + 1);
    this.count--;
  }

  /** The place of the best one for a slot; -1: there is none. */
  best(slot: number): number {
    const { places, seeds, weights, count } = this;
    const seed = seedOf(slot);
    let [winner, best, required] = [-1, Number.NEGATIVE_INFINITY, -1];
    for (let rank = 0; rank < count; rank++) {
      const hash = mix(seeds[rank] ?? 0, seed);
      if (hash < required) continue;
      const weight = weights[rank] ?? 1;
      const score = scoreOf(hash, weight);
      const place = places[rank] ?? 0;
      if (score > best || (score === best && place < winner)) [winner, best] = [place, score];
      // Rounding errors are smaller.
      required = RANGE * Math.exp(best * weight) - 2;
    }
    return winner;
  }
}

/** The slots of each: by largest remainders, among equal ones first the endpoint that has most already, and at least one. */
function sharesOf(weights: readonly number[], counts: readonly number[], size: number): number[] {
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const exact = weights.map((weight) => (weight * size) / all);
  const shares = exact.map((share) => (share === 0 ? 0 : Math.max(1, Math.floor(share))));
  const remainder = (place: number): number => (exact[place] ?? 0) - (shares[place] ?? 0);
  const order = weights
    .flatMap((weight, place) => (weight === 0 ? [] : [place]))
    .sort(
      (one, other) => remainder(other) - remainder(one) || (counts[other] ?? 0) - (counts[one] ?? 0) || one - other,
    );
  let left = size - shares.reduce((sum, share) => sum + share, 0);
  for (let turn = 0; left > 0; turn++, left--) add(shares, order[turn % order.length] ?? 0, 1);
  // Many very small weights have one slot each: those with most give them.
  const rich = [...order].sort((one, other) => (shares[other] ?? 0) - (shares[one] ?? 0) || one - other);
  for (let turn = 0; left < 0; turn = (turn + 1) % rich.length) {
    const place = rich[turn] ?? 0;
    if ((shares[place] ?? 0) <= 1) continue;
    add(shares, place, -1);
    left++;
  }
  return shares;
}

interface Score {
  readonly score: number;
  readonly slot: number;
}

/** Moves slots from endpoints with too many to endpoints with too few, the best scores first. */
function* level(
  slots: Uint16Array,
  counts: readonly number[],
  shares: readonly number[],
  contest: Contest,
  compared: Compared,
): Generator<number, void> {
  const missing = shares.map((share, place) => share - (counts[place] ?? 0));
  const held = new Map<number, Score[]>();
  for (const [slot, place] of slots.entries()) {
    if ((missing[place] ?? 0) >= 0) continue;
    const scored = { score: contest.score(place, slot), slot };
    const own = held.get(place);
    if (own === undefined) held.set(place, [scored]);
    else own.push(scored);
  }
  const freed = [...held].flatMap(([place, own]) => own.sort(byScore).slice(missing[place] ?? 0));
  const takers = contest.ranked(missing.flatMap((count, place) => (count > 0 ? [place] : [])));
  for (const { slot } of freed.sort((one, other) => one.slot - other.slot)) {
    const taker = contest.bestFrom(takers, slot);
    if (taker < 0) return;
    slots[slot] = taker;
    add(missing, taker, -1);
    if (missing[taker] === 0) takers.remove(taker);
    if (compared.pairs >= PAIRS_A_STEP) yield* step(compared);
  }
}

/** The highest first; the order is the same everywhere. */
function byScore(one: Score, other: Score): number {
  return other.score - one.score || one.slot - other.slot;
}

function scoreOf(hash: number, weight: number): number {
  return Math.log((hash + 1) / RANGE) / weight;
}

function add(to: number[], place: number, amount: number): void {
  to[place] = (to[place] ?? 0) + amount;
}

/** One number for each endpoint's address and port (FNV-1a). */
function hashesOf({ family, packed, count }: EndpointList): Uint32Array {
  const size = endpointSize(family);
  return Uint32Array.from({ length: count }, (_, place) => {
    let hash = 0x811c9dc5;
    for (let at = place * size; at < (place + 1) * size; at++) hash = Math.imul(hash ^ (packed[at] ?? 0), 0x01000193);
    return hash >>> 0;
  });
}

function seedOf(slot: number): number {
  return Math.imul(slot + 0x7f4a7c15, 0xc2b2ae35);
}

/** A hash of an endpoint's and a slot's numbers, all of whose bits depend on all of theirs. */
function mix(endpoint: number, slot: number): number {
  let hash = endpoint ^ slot;
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
  return (hash ^ (hash >>> 16)) >>> 0;
}
