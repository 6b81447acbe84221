import { endpointsAt, endpointSize, printEndpoint, type EndpointList } from '../../base/endpoint-list.js';
import type { Protocol } from '../../base/protocol.js';
import type { IptablesEndpointRules } from '../../native/contract.js';
import { commentMatch, protocolWord, type Chain } from '../xtables/rules.js';
import { clientList } from './names.js';

/** Lists above this are divided, so that a packet walks, and a change rewrites, about twice the square root of their length. */
const UNDIVIDED_ENDPOINTS = 64;

/** Two hexadecimal digits name a bucket. */
const MOST_BUCKETS = 256;

interface Spreading {
  readonly chain: string;
  readonly servicePort: string;
  readonly protocol: Protocol;
  readonly endpoints: EndpointList;
  /** In the order of the list; null: all endpoints are as likely. */
  readonly weights: readonly number[] | null;
  readonly affinitySeconds: number | null;
  /** Rules before the first pick. */
  readonly head: readonly string[];
}

/**
 * The chains that spread connections over endpoints, evenly or by weight; the first is the one to jump to. Affinity looks at every
 * endpoint's list of clients before any pick, so these lists are not divided.
 */
export function spreadChains(spreading: Spreading): readonly Chain[] {
  const { chain, servicePort, protocol, endpoints, weights, affinitySeconds, head } = spreading;
  const picks = (packed: Uint8Array): IptablesEndpointRules => ({
    type: 'endpoints',
    protocol: protocolWord(protocol),
    endpoints: packed,
    affinity: affinitySeconds === null ? null : { seconds: affinitySeconds, lists: clientLists(spreading) },
  });
  const make = (name: string, rules: Chain['rules']): Chain => ({ table: 'nat', name, rules, owner: servicePort });
  const rulesOf = (places: readonly number[] | null): Chain['rules'] => {
    const part = places === null ? endpoints : endpointsAt(endpoints, places);
    if (weights === null) return [picks(part.packed)];
    const own = places === null ? weights : places.map((place) => weights[place] ?? 1);
    return weightedRules({ ...spreading, endpoints: part }, own);
  };
  if (affinitySeconds !== null || endpoints.count <= UNDIVIDED_ENDPOINTS)
    return [make(chain, [...head, ...rulesOf(null)])];
  const weightOf = (places: readonly number[]): number =>
    weights === null ? places.length : places.reduce((sum, place) => sum + (weights[place] ?? 1), 0);
  let remaining = weightOf([...Array(endpoints.count).keys()]);
  const jumps: string[] = [];
  const chains: Chain[] = [];
  for (const [index, places] of buckets(endpoints)) {
    const name = `${chain}-${index.toString(16).toUpperCase().padStart(2, '0')}`;
    const weight = weightOf(places);
    jumps.push(weight === remaining ? `-j ${name}` : `${probabilityMatch(weight, remaining)} -j ${name}`);
    remaining -= weight;
    chains.push(make(name, rulesOf(places)));
  }
  return [make(chain, [...head, ...jumps]), ...chains];
}

/**
 * The same by weights. Each rule has its weight in a comment, so that reading back from the kernel gives the same weights.
 */
function weightedRules(spreading: Spreading, weights: readonly number[]): readonly string[] {
  const { protocol, endpoints, affinitySeconds } = spreading;
  const start = `-p ${protocolWord(protocol)}`;
  const targets = endpoints.toStrings().map((endpoint) => `-j DNAT --to-destination ${endpoint}`);
  const mask = endpoints.family === 'IPv4' ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
  const lists =
    affinitySeconds === null ? [] : clientLists(spreading).map((list) => `--name ${list} --mask ${mask} --rsource`);
  const remembered = lists.map(
    (list, place) =>
      `${start} -m recent --update --seconds ${affinitySeconds ?? 0} --reap ${list} ${targets[place] ?? ''}`,
  );
  let remaining = weights.reduce((sum, weight) => sum + weight, 0);
  const picks = targets.map((target, place) => {
    const weight = weights[place] ?? 1;
    const chance = weight === remaining ? [] : [probabilityMatch(weight, remaining)];
    remaining -= weight;
    const list = lists[place] === undefined ? [] : [`-m recent --set ${lists[place]}`];
    return [start, commentMatch(`${WEIGHT_COMMENT}${weight}`), ...chance, ...list, target].join(' ');
  });
  return [...remembered, ...picks];
}

/** Before the weight of an endpoint. */
const WEIGHT_COMMENT = 'weight ';

function clientLists({ servicePort, protocol, endpoints }: Spreading): readonly string[] {
  return Array.from({ length: endpoints.count }, (_, index) =>
    clientList(servicePort, protocol, printEndpoint(endpoints.address(index), endpoints.port(index))),
  );
}

/**
 * Places of endpoints by their hash, so that one more or less changes one bucket, or all of them when their number doubles.
 * Empty buckets are left out.
 */
function buckets(endpoints: EndpointList): readonly (readonly [number, readonly number[]])[] {
  const size = endpointSize(endpoints.family);
  const { packed, count } = endpoints;
  const wanted = Math.min(MOST_BUCKETS, 2 ** Math.round(Math.log2(count) / 2));
  const members: number[][] = Array.from({ length: wanted }, () => []);
  for (let place = 0; place < count; place++) members[hash(packed, place * size, size) & (wanted - 1)]?.push(place);
  return members.flatMap((places, index) => (places.length === 0 ? [] : [[index, places] as const]));
}

/** FNV-1a, folded: its low bits alone vary too little between neighbouring addresses. */
function hash(bytes: Uint8Array, offset: number, length: number): number {
  let value = 0x811c9dc5;
  for (let index = offset; index < offset + length; index++)
    value = Math.imul(value ^ (bytes[index] ?? 0), 0x01000193) >>> 0;
  return value ^ (value >>> 15) ^ (value >>> 23);
}

const SCALE = 0x80000000;

/** The kernel keeps probabilities as fractions of 2^31, and iptables-save prints those. */
function probabilityMatch(favourable: number, possible: number): string {
  const kept = Math.round((favourable / possible) * SCALE) / SCALE;
  return `-m statistic --mode random --probability ${kept.toFixed(11)}`;
}
