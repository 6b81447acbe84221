import type { BalanceBy } from '../../base/balance.js';
import type { NftFamily } from '../../native/contract.js';
import { MOST_SLOTS, type NodePlan } from '../../plan/types.js';
import {
  address,
  concat,
  dnatTo,
  dport,
  goto,
  jump,
  match,
  meta,
  sport,
  type Chain,
  type Expression,
  type Rule,
} from './json.js';
import { findChain } from './affinity/chains.js';
import { NFT_FAMILY, endpointsMap } from './names.js';
import { parseRetryClass, retryChainNames, retryRules, type RetryClass } from './retry.js';
import { fibType, fromPod, markForMasquerade } from './skeleton.js';

/**
 * A class chain handles every Service of one kind and size: `pick-8` chooses among up to 8 endpoints of any frontend. Kinds multiply by
 * size and by whether there is session affinity.
 */
export interface ServiceClass {
  /** Which map has the endpoints; null for node ports. */
  readonly shard: number | null;
  /** `pick` alone; after marking for masquerade; or by where the connection comes from. */
  readonly kind: 'pick' | 'external' | 'external-local';
  /** How an endpoint is picked: slot after slot until one is filled, or from a full table, by chance or by a hash of the client. */
  readonly draw: 'even' | BalanceBy;
  /** Power of two, at least the number of endpoints; of a table the number of its slots. */
  readonly size: number;
  /** The same for the local endpoints; only with `external-local`, otherwise 0. */
  readonly localSize: number;
  /** When unanswered attempts go to another endpoint; null: as the node has it. */
  readonly retry: RetryClass | null;
  /** Whether clients that are remembered at an endpoint are looked up first. */
  readonly sticky: boolean;
}

/** Draws before a class falls back to half its slots, and in each smaller half. */
const DRAWS = 8;
const DRAWS_IN_HALF = 4;
const DRAWS_IN_SMALLER = 2;

/** A Service keeps its class while it fills at least this part of it, so that small changes of its size cost no verdict. */
const KEEP_FRACTION = 4;
const ALWAYS_KEPT = 8;

export function className(service: ServiceClass): string {
  const sizes = service.kind === 'external-local' ? `${service.size}-${service.localSize}` : `${service.size}`;
  const shard = service.shard === null ? '' : `-shard-${service.shard}`;
  const sticky = service.sticky ? STICKY : '';
  return `${service.shard === null ? 'nodeport-' : ''}${service.kind}-${DRAW_WORDS[service.draw]}${sizes}${shard}${retrySuffix(service)}${sticky}`;
}

function retrySuffix({ retry }: ServiceClass): string {
  return retry === null ? '' : `-retry-${retry}`;
}

const DRAW_WORDS: Readonly<Record<ServiceClass['draw'], string>> = {
  even: '',
  random: 'table-',
  address: 'hash-address-',
  'address-port': 'hash-address-port-',
};

const DRAWS_BY_WORD = new Map(
  (['even', 'random', 'address', 'address-port'] as const).map((draw) => [DRAW_WORDS[draw], draw]),
);

const STICKY = '-sticky';

const CLASS_NAME =
  /^(?:nodeport-)?(pick|external|external-local)-(table-|hash-address-|hash-address-port-)?(\d+)(?:-(\d+))?(?:-shard-(\d+))?(?:-retry-(off|(?:tcp|udp)-\d+))?(-sticky)?$/;

/** The class of a chain name made by {@link className}; null for any other name. */
export function parseClassName(name: string): ServiceClass | null {
  const found = CLASS_NAME.exec(name);
  if (found === null) return null;
  const service: ServiceClass = {
    shard: found[5] === undefined ? null : Number(found[5]),
    kind: found[1] as ServiceClass['kind'],
    draw: DRAWS_BY_WORD.get(found[2] ?? '') ?? 'even',
    size: Number(found[3]),
    localSize: Number(found[4] ?? 0),
    retry: parseRetryClass(found[6] ?? '') ?? null,
    sticky: found[7] !== undefined,
  };
  const isSize = service.draw === 'even' ? isPowerOfTwo : isTableSize;
  const localSize = service.kind === 'external-local' ? service.localSize : 1;
  return className(service) === name && isSize(service.size) && isSize(localSize) ? service : null;
}

/** The size for `count` endpoints, given the size in use (0: none). */
export function classSize(count: number, current: number): number {
  if (current > 0 && count <= current && (current <= ALWAYS_KEPT || count * KEEP_FRACTION >= current || count === 0))
    return current;
  let size = 1;
  while (size < count) size *= 2;
  return size;
}

/** The chain of a class and every chain it leads to, those it needs first. */
export function classChains(service: ServiceClass, node: NodePlan): readonly Chain[] {
  const family = NFT_FAMILY[node.family];
  const picks = pickChains(service, false, node);
  const pick = lastName(picks);
  if (service.kind === 'pick') return picks;
  const name = className(service);
  if (service.kind === 'external') {
    return [...picks, { name, hook: null, rules: [[markForMasquerade(node), goto(pick)]] }];
  }
  const localPicks = pickChains(service, true, node);
  const rules: Rule[] = [];
  if (node.localDetector !== null) rules.push([fromPod(node.localDetector, family), goto(pick)]);
  rules.push([match(fibType('saddr'), 'local'), markForMasquerade(node), goto(pick)]);
  rules.push([goto(lastName(localPicks))]);
  return [...picks, ...localPicks, { name, hook: null, rules }];
}

/** The names of {@link classChains} and of the retry chain, each before those that it leads to. */
export function classChainNames(service: ServiceClass): readonly string[] {
  const picks = (local: boolean): readonly string[] => {
    const pick = pickName(service, local);
    return service.sticky ? [pick + STICKY, pick] : [pick];
  };
  return [
    ...(service.kind === 'pick' ? [] : [className(service)]),
    ...(service.kind === 'external-local' ? picks(true) : []),
    ...picks(false),
    ...retryChainNames(service.retry),
  ];
}

function pickName(service: ServiceClass, local: boolean): string {
  const { shard, draw, size, localSize } = service;
  const prefix = `${shard === null ? 'nodeport-' : ''}${local ? 'local-' : ''}`;
  return `${prefix}pick-${DRAW_WORDS[draw]}${local ? localSize : size}${shard === null ? '' : `-shard-${shard}`}${retrySuffix(service)}`;
}

function pickChains(service: ServiceClass, local: boolean, node: NodePlan): readonly Chain[] {
  const family = NFT_FAMILY[node.family];
  const nodePort = service.shard === null;
  const retries = retryRules(service.retry, node);
  const name = pickName(service, local);
  const size = local ? service.localSize : service.size;
  const map = endpointsMap(service.shard, local);
  const key = nodePort ? [meta('l4proto'), dport] : [address(family, 'daddr'), meta('l4proto'), dport];
  const draw = (slot: Expression): Rule => [dnatTo(family, concat(slot, ...key), map)];
  const slots = service.draw === 'even' ? draws(size).map(byChance) : tableDraws(service.draw, size, family);
  const pick: Chain = { name, hook: null, rules: [...retries, ...slots.map(draw)] };
  if (!service.sticky) return [pick];
  const rules: readonly Rule[] = [...retries, [jump(findChain(nodePort, local))], [goto(name)]];
  return [pick, { name: name + STICKY, hook: null, rules }];
}

/**
 * The moduli drawn in turn until one hits a filled slot: slots 0 … n−1 are filled, so the last draw, of slot 0, always does when n ≥ 1. With n
 * above half the size the bias towards the lower half stays below 1/256; see the README.
 */
function draws(size: number): readonly number[] {
  const moduli: number[] = new Array<number>(size === 1 ? 1 : DRAWS).fill(size);
  for (let mod = size / 2; mod >= 1; mod /= 2) {
    const times = mod === 1 ? 1 : mod === size / 2 ? DRAWS_IN_HALF : DRAWS_IN_SMALLER;
    moduli.push(...new Array<number>(times).fill(mod));
  }
  return moduli;
}

function byChance(mod: number): Expression {
  return { numgen: { mode: 'random', mod, offset: 0 } };
}

/** Draws from a full table, and then slot 0: for packets under way while the table shrinks, and for externally removed slots. */
function tableDraws(by: BalanceBy, mod: number, family: NftFamily): readonly Expression[] {
  const client = address(family, 'saddr');
  const slot: Expression =
    by === 'random'
      ? byChance(mod)
      : { jhash: { mod, seed: SEED, expr: by === 'address' ? client : concat(client, sport) } };
  return mod === 1 ? [byChance(1)] : [slot, byChance(1)];
}

/** The same on every node, and in every release: with another one nearly all clients would go to other endpoints. */
const SEED = 0x706f696e;

function lastName(chains: readonly Chain[]): string {
  const last = chains[chains.length - 1];
  if (last === undefined) throw new RangeError('a class has at least one chain');
  return last.name;
}

function isTableSize(size: number): boolean {
  return size >= 1 && size <= MOST_SLOTS;
}

function isPowerOfTwo(size: number): boolean {
  return size >= 1 && Number.isInteger(Math.log2(size));
}
