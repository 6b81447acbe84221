import { BALANCE_WORDS, DEFAULT_BALANCE, type BalanceBy } from '../base/balance.js';
import { endpointsAt, type EndpointList } from '../base/endpoint-list.js';
import type { Family } from '../base/ip.js';
import { DEFAULT_WEIGHT, type EndpointSliceRow, type ServiceRow, type ZoneSpill } from '../state/rows.js';
import { collect, type Candidate, type PortName } from './candidates.js';
import type { ModeTraits, NodeFacts, PlanSettings } from './facts.js';
import { frontendCount } from './frontend-count.js';
import { endpointWeight } from './frontend-limit.js';
import { MOST_TABLE_ENDPOINTS, tableSize } from './slot-table.js';
import type { Tables } from './slot-tables.js';
import type { Steps, Warming } from './slow-start.js';
import { isUniform, type Balance, type Shares } from './types.js';
import { spilledWeights, type Placed } from './zone-shares.js';

type Slices = readonly EndpointSliceRow[];

/** How the connections of a Service are shared; null: equally and at random, which needs no table. */
export function askedBalance(
  family: Family,
  { balance }: Pick<ServiceRow, 'balance'>,
  slices: Slices,
  { balance: settings = DEFAULT_BALANCE }: Pick<PlanSettings, 'balance'>,
): BalanceBy | null {
  const by = balance?.by ?? settings.by;
  const isUnequal =
    hasWeights(family, slices) || (balance?.spill ?? null) !== null || balance?.slowStartSeconds !== undefined;
  return by === 'random' && !isUnequal ? null : by;
}

/** Whether the endpoints of a family that get connections have different weights. */
function hasWeights(family: Family, slices: Slices): boolean {
  let first: number | null = null;
  for (const slice of slices) {
    const weight = slice.weight ?? DEFAULT_WEIGHT;
    if (slice.family !== family || weight === 0) continue;
    if (first !== null && first !== weight) return true;
    first ??= weight;
  }
  return false;
}

/**
 * The most slots that a Service that asks for tables may have in a family: from the Service and the size of its slices, so
 * all nodes agree. None where it does not ask, or asks for too many.
 */
export function slotDemand(
  family: Family,
  service: ServiceRow,
  slices: Slices,
  settings: Pick<PlanSettings, 'balance' | 'limits' | 'traits'>,
): number {
  if (settings.traits.shares !== 'slots' || askedBalance(family, service, slices, settings) === null) return 0;
  const demand = unlimitedDemand(family, service, slices, settings);
  return demand === null || demand > settings.limits.entries ? 0 : demand;
}

/** Comparing so many endpoints for slots takes as long as an entry does. */
const PAIRS_AN_ENTRY = 3000;

/** How many entries slots count as, with the time of making their tables. */
export function slotEntries(slots: number, endpoints: number): number {
  return slots + Math.ceil((slots * endpoints) / PAIRS_AN_ENTRY);
}

function unlimitedDemand(
  family: Family,
  service: ServiceRow,
  slices: Slices,
  { limits }: Pick<PlanSettings, 'limits'>,
): number | null {
  const size = tableSize(endpointWeight(family, slices));
  return size === null ? null : size * Math.min(frontendCount(family, service), limits.frontends);
}

/** Why a Service does not get the balancing that it configures, as text; null: it does. */
export function balanceLimitation(
  family: Family,
  service: ServiceRow,
  slices: Slices,
  settings: Pick<PlanSettings, 'balance' | 'limits' | 'traits'>,
  hasSlots: boolean,
): { readonly cause: 'mode' | 'slots'; readonly text: string } | null {
  const by = askedBalance(family, service, slices, settings);
  if (by === null) return null;
  const { traits, limits } = settings;
  if (traits.shares === 'slots') {
    const text = slotLimitation(unlimitedDemand(family, service, slices, settings), limits.entries, hasSlots);
    return text === null ? null : { cause: 'slots', text: `${text}, so endpoints get equal shares by chance` };
  }
  if (traits.shares === 'schedulers') return null;
  const hasShares = traits.shares === 'weights';
  const what = [
    ...(by === 'random' ? [] : [`balance ${printBy(by)}`]),
    ...(hasWeights(family, slices) && !hasShares ? ['weights other than 0'] : []),
    ...((service.balance?.spill ?? null) !== null && !hasShares ? ['zone spill'] : []),
    ...(service.balance?.slowStartSeconds !== undefined && !hasShares ? ['slow start'] : []),
  ];
  if (what.length === 0) return null;
  return { cause: 'mode', text: `${what.join(' and ')} without effect: this mode has no tables of slots` };
}

function slotLimitation(demand: number | null, most: number, hasSlots: boolean): string | null {
  if (demand === null) return `no table of slots has more than ${MOST_TABLE_ENDPOINTS} endpoints`;
  if (demand > most) return `its frontends would have ${demand} slots, and a Service has at most ${most} entries`;
  return hasSlots ? null : 'other Services have the slots of this node';
}

/** Annotations of slices that cannot be read: the first one, and how many there are. */
export function unreadableWeights(family: Family, slices: Slices): readonly string[] {
  const found = slices.filter((slice) => slice.family === family && slice.unreadable !== undefined);
  const [first] = found;
  if (first === undefined) return [];
  const more = found.length === 1 ? '' : `, and so in ${found.length - 1} more`;
  return [`EndpointSlice ${first.name}: ${first.unreadable ?? ''}${more}`];
}

/** As the annotation spells it. */
export function printBy(by: BalanceBy): string {
  for (const [word, each] of BALANCE_WORDS) if (each === by) return word;
  return by;
}

/** Facts that select endpoints: where connections spill over, zone hints exclude no endpoint, and shares decide the rest. */
export function selectionFacts(
  node: NodeFacts,
  { balance }: Pick<ServiceRow, 'balance'>,
  { traits }: Pick<PlanSettings, 'traits'>,
): NodeFacts {
  const spills = (balance?.spill ?? null) !== null && traits.shares !== undefined;
  return spills ? { ...node, zone: null } : node;
}

/** The shares of each list of endpoints of one Service port, made once for all frontends with the list. */
export class PortBalance {
  private readonly weights = new Map<EndpointList, readonly number[]>();
  private readonly made = new Map<EndpointList, Shares | null>();
  private candidates: ReadonlyMap<string, Candidate> | null = null;
  private steps: Steps | null = null;

  constructor(
    private readonly family: Family,
    private readonly port: PortName,
    private readonly slices: Slices,
    private readonly by: BalanceBy,
    private readonly means: NonNullable<ModeTraits['shares']>,
    private readonly warming: Warming | null,
    private readonly tables: Tables,
  ) {}

  /** Null: equally and by chance. */
  of(endpoints: EndpointList, localEndpoints: EndpointList | null): Balance | null {
    const lists = localEndpoints === null ? [endpoints] : [endpoints, localEndpoints];
    const isEqual = lists.every((list) => isUniform(this.weightsOf(list)));
    // Shares change with every new endpoint. While they are equal the table stays.
    const isLasting = this.warming !== null && this.means === 'slots';
    if (this.by === 'random' && isEqual && !isLasting) return null;
    const all = this.sharesOf(endpoints);
    if (all === null) return null;
    return { by: this.by, endpoints: all, localEndpoints: localEndpoints && this.sharesOf(localEndpoints) };
  }

  /** Endpoints of a list that get connections of a node in a zone; their weights are known from then on. */
  spilled(list: EndpointList, own: string, spill: ZoneSpill): EndpointList {
    if (list.count === 0) return list;
    const weights = spilledWeights(this.placed(list), own, spill);
    const kept = weights.flatMap((weight, place) => (weight === 0 ? [] : [place]));
    const used = kept.length === list.count ? list : endpointsAt(list, kept);
    this.noteWeights(
      used,
      weights.filter((weight) => weight > 0),
    );
    return used;
  }

  private weightsOf(list: EndpointList): readonly number[] {
    const known = this.weights.get(list);
    if (known !== undefined) return known;
    return this.noteWeights(
      list,
      this.placed(list).map(({ weight }) => weight),
    );
  }

  private noteWeights(list: EndpointList, exact: readonly number[]): readonly number[] {
    const weights = this.means === 'schedulers' ? smallWeights(exact) : exact;
    this.weights.set(list, weights);
    return weights;
  }

  /** Null: there are too many endpoints for a table. */
  private sharesOf(list: EndpointList): Shares | null {
    const known = this.made.get(list);
    if (known !== undefined) return known;
    const shares = this.makeShares(list, this.weightsOf(list));
    this.made.set(list, shares);
    return shares;
  }

  private makeShares(list: EndpointList, weights: readonly number[]): Shares | null {
    if (this.means !== 'slots') return { weights, slots: null };
    const size = tableSize(list.count);
    if (size === null) return null;
    if (list.count <= 1) return { weights, slots: new Uint16Array(list.count) };
    const { name, protocol } = this.port;
    return { weights, slots: this.tables(`${protocol} ${name} ${this.made.size}`, list, weights, size) };
  }

  private placed(list: EndpointList): readonly Placed[] {
    const candidates = (this.candidates ??= new Map(
      collect(this.family, this.port, this.slices).map((candidate) => [candidate.key, candidate]),
    ));
    const { name, protocol } = this.port;
    const steps = (this.steps ??= this.warming?.(`${protocol} ${name}`, candidates.values()) ?? null);
    return Array.from({ length: list.count }, (_, place) => {
      const key = list.key(place);
      const { weight, zone } = candidates.get(key) ?? { weight: DEFAULT_WEIGHT, zone: null };
      return { weight: steps === null ? weight : weight * steps(key), zone };
    });
  }
}

/** The greatest weight of a scheduler. A weighted round robin gives the heaviest at most so many connections in a row. */
const MOST_SCHEDULED = 100;

/** In the same proportion, as far as whole numbers up to {@link MOST_SCHEDULED} allow it; all of them 1 if they are equal. */
function smallWeights(weights: readonly number[]): readonly number[] {
  const divided = withoutDivisor(weights);
  const most = Math.max(...divided);
  if (most <= MOST_SCHEDULED) return divided;
  return withoutDivisor(divided.map((weight) => Math.max(1, Math.round((weight * MOST_SCHEDULED) / most))));
}

function withoutDivisor(weights: readonly number[]): readonly number[] {
  const divisor = weights.reduce(greatestDivisor, 0);
  return divisor <= 1 ? weights : weights.map((weight) => weight / divisor);
}

function greatestDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestDivisor(other, one % other);
}

/** Each endpoint's percentage of all connections, in the order of the list. */
export function percentages({ weights, slots }: Shares): readonly number[] {
  if (slots === null) {
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => (weight * 100) / all);
  }
  return slotCounts(weights.length, slots).map((count) => (count * 100) / slots.length);
}

/** The number of slots of each endpoint. */
export function slotCounts(endpoints: number, slots: Uint16Array): readonly number[] {
  const counts = new Array<number>(endpoints).fill(0);
  for (const place of slots) counts[place] = (counts[place] ?? 0) + 1;
  return counts;
}
