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

/**
 * For each slot the index of its endpoint in the list.
 *
 * Each slot goes to the endpoint with the highest score for it, by a hash of both (rendezvous hashing): without an endpoint
 * the others keep theirs. Then endpoints with more than their share give the slots of their lowest scores to endpoints with
 * less. Maglev's turns instead move about twice as many slots.
 *
 * @param weights of the endpoints; one of 0 has no slots, and not all of them are 0. @param size from {@link tableSize}.
 */
export function slotTable(endpoints: EndpointList, weights: readonly number[], size: number): Uint16Array {
  const slots = new Uint16Array(size);
  if (endpoints.count <= 1) return slots;
  const hashes = hashesOf(endpoints);
  const counts = highestScores(hashes, weights, slots);
  level(slots, counts, sharesOf(weights, counts, size), hashes, weights);
  return slots;
}

/**
 * Gives each slot to the endpoint with the highest score. Among endpoints of one weight that is the highest hash, which
 * costs no logarithm.
 */
function highestScores(hashes: Uint32Array, weights: readonly number[], slots: Uint16Array): number[] {
  const groups = new Map<number, number[]>();
  for (const [place, weight] of weights.entries()) {
    const group = groups.get(weight);
    if (group === undefined) groups.set(weight, [place]);
    else group.push(place);
  }
  const counts = new Array<number>(weights.length).fill(0);
  for (let slot = 0; slot < slots.length; slot++) {
    let [winner, best] = [-1, Number.NEGATIVE_INFINITY];
    for (const [weight, group] of groups) {
      let [first, highest] = [-1, -1];
      for (const place of group) {
        const hash = mix(hashes[place] ?? 0, slot);
        if (hash > highest) [first, highest] = [place, hash];
      }
      const score = scoreOf(highest, weight);
      if (score > best || (score === best && first < winner)) [winner, best] = [first, score];
    }
    slots[slot] = winner;
    counts[winner] = (counts[winner] ?? 0) + 1;
  }
  return counts;
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
  readonly place: number;
  readonly slot: number;
}

/** Moves slots from endpoints with too many to endpoints with too few, the best scores first. */
function level(
  slots: Uint16Array,
  counts: readonly number[],
  shares: readonly number[],
  hashes: Uint32Array,
  weights: readonly number[],
): void {
  const missing = shares.map((share, place) => share - (counts[place] ?? 0));
  const scored = (place: number, slot: number): Score => ({
    score: scoreOf(mix(hashes[place] ?? 0, slot), weights[place] ?? 1),
    place,
    slot,
  });
  const held = new Map<number, Score[]>();
  for (const [slot, place] of slots.entries()) {
    if ((missing[place] ?? 0) >= 0) continue;
    const own = held.get(place);
    if (own === undefined) held.set(place, [scored(place, slot)]);
    else own.push(scored(place, slot));
  }
  const freed = [...held].flatMap(([place, own]) => own.sort(byScore).slice(missing[place] ?? 0));
  const takers = missing.flatMap((count, place) => (count > 0 ? [place] : []));
  for (const { slot } of freed.sort((one, other) => one.slot - other.slot)) {
    let best: Score | null = null;
    for (const place of takers) {
      if ((missing[place] ?? 0) <= 0) continue;
      const offer = scored(place, slot);
      if (best === null || byScore(offer, best) < 0) best = offer;
    }
    if (best === null) return;
    slots[slot] = best.place;
    add(missing, best.place, -1);
  }
}

/** The highest first; the order is the same everywhere. */
function byScore(one: Score, other: Score): number {
  return other.score - one.score || one.slot - other.slot || one.place - other.place;
}

/** An endpoint of weight w has the higher score of two w times as often (weighted rendezvous hashing). */
function scoreOf(hash: number, weight: number): number {
  return Math.log((hash + 1) / (2 ** 32 + 1)) / weight;
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

/** A hash of an endpoint's number and a slot, all of whose bits depend on all of theirs. */
function mix(endpoint: number, slot: number): number {
  let hash = Math.imul(endpoint ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(slot + 0x7f4a7c15, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
  return (hash ^ (hash >>> 16)) >>> 0;
}
