import { endpointSize, type EndpointList } from '../base/endpoint-list.js';
import { sortedDifference } from '../base/sorted-endpoints.js';
import { printBy, slotCounts } from './balance.js';
import type { Balance, ClientKeys, FrontendPlan, Shares } from './types.js';
import { isUniform } from './uniform-weights.js';

/** Fields that the kernel does not hold, with what stands for them in a frontend that was read back. */
export const UNHELD = {
  clientKeys: null,
  clientRoom: null,
  flowEndpoints: null,
  draining: null,
  loadBalancerFlags: 0,
} as const satisfies Partial<FrontendPlan>;

/** The lines of a list of endpoints. */
export type ListPrinter = (head: string, list: EndpointList) => readonly string[];

type Text = (frontend: FrontendPlan, head: string, print: ListPrinter) => readonly string[];

interface Field<Value> {
  /** Whether a change from one to the other changes nothing. */
  readonly same: (one: Value, other: Value) => boolean;
  /** Its lines in plan/text.ts, which `dump` prints from the kernel; null: the kernel does not hold it. */
  readonly text: Text | null;
  /** Whether the change may leave attempts without an answer: see {@link TableChange.attempts}. */
  readonly strands?: (before: Value, after: Value) => boolean;
}

type Fields = { readonly [Name in keyof FrontendPlan]: Field<FrontendPlan[Name]> };

/** Fields that the kernel holds are printed, and no others. */
type Printed = { readonly [Name in keyof typeof UNHELD]: { readonly text: null } } & {
  readonly [Name in Exclude<keyof FrontendPlan, keyof typeof UNHELD>]: { readonly text: Text };
};

/** Fields of the key: two frontends that are compared have the same, and each line begins with it. */
const OF_KEY = { same: (): boolean => true, text: (): readonly string[] => [] };
/** Printed with another field. */
const beside: Text = () => [];

/** All that follows from a field of {@link FrontendPlan}, but for the decision what its value is. */
export const FRONTEND_FIELDS: Fields & Printed = {
  key: OF_KEY,
  family: OF_KEY,
  address: OF_KEY,
  protocol: OF_KEY,
  port: OF_KEY,
  kind: {
    same: Object.is,
    text: ({ kind, servicePort }, head) => [`${head} service ${printServicePort(servicePort)} ${kind}`],
  },
  servicePort: { same: Object.is, text: beside },
  masquerade: {
    same: Object.is,
    // Without endpoints nothing is masqueraded, and not every mode writes to the kernel how it would be.
    text: (frontend, head) => (isServed(frontend) ? [`${head} masquerade ${frontend.masquerade}`] : []),
  },
  whenEmpty: {
    same: Object.is,
    text: ({ endpoints, localEndpoints, whenEmpty }, head) =>
      (localEndpoints ?? endpoints).count === 0 ? [`${head} empty ${whenEmpty}`] : [],
  },
  affinitySeconds: {
    same: Object.is,
    text: (frontend, head) =>
      isServed(frontend) && frontend.affinitySeconds !== null ? [`${head} affinity ${frontend.affinitySeconds}s`] : [],
  },
  retrySeconds: {
    same: Object.is,
    text: (frontend, head) =>
      isServed(frontend) && frontend.retrySeconds !== null
        ? [`${head} retry ${frontend.retrySeconds === 0 ? 'off' : `${frontend.retrySeconds}s`}`]
        : [],
  },
  clientRoom: { same: Object.is, text: null },
  loadBalancerFlags: { same: Object.is, text: null },
  clientKeys: { same: sameClientKeys, text: null },
  endpoints: {
    same: sameList,
    text: ({ endpoints }, head, print) => print(`${head} endpoint`, endpoints),
    strands: losesSome,
  },
  localEndpoints: {
    same: sameList,
    text: ({ localEndpoints }, head, print) =>
      localEndpoints === null ? [] : print(`${head} local-endpoint`, localEndpoints),
    strands: losesSome,
  },
  flowEndpoints: { same: sameList, text: null },
  draining: { same: sameList, text: null },
  balance: { same: sameBalance, text: printBalance },
  sourceRanges: {
    same: (one, other) => one?.join() === other?.join(),
    text: ({ sourceRanges }, head) => (sourceRanges ?? []).map((range) => `${head} admit ${range}`),
  },
};

const fields: Fields = FRONTEND_FIELDS;
const NAMES = Object.keys(FRONTEND_FIELDS) as (keyof FrontendPlan)[];

export function sameFrontend(one: FrontendPlan | undefined, other: FrontendPlan | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return NAMES.every((name) => sameField(name, one, other));
}

function sameField<Name extends keyof FrontendPlan>(
  name: Name,
  one: Pick<FrontendPlan, Name>,
  other: Pick<FrontendPlan, Name>,
): boolean {
  return one[name] === other[name] || fields[name].same(one[name], other[name]);
}

/** See {@link TableChange.attempts}. */
export function strandsAttempts(before: FrontendPlan | undefined, after: FrontendPlan | undefined): boolean {
  if (before === after || (after ?? before)?.protocol === 'UDP') return false;
  if (before === undefined || after === undefined) return true;
  return NAMES.some((name) => strandedBy(name, before, after));
}

function strandedBy<Name extends keyof FrontendPlan>(
  name: Name,
  before: Pick<FrontendPlan, Name>,
  after: Pick<FrontendPlan, Name>,
): boolean {
  return fields[name].strands?.(before[name], after[name]) ?? false;
}

/** The lines of {@link printTable} for one frontend. */
export function printFields(frontend: FrontendPlan, print: ListPrinter): string[] {
  const head = `${frontend.family} frontend ${frontend.key}`;
  const lines: string[] = [];
  for (const name of NAMES) for (const line of fields[name].text?.(frontend, head, print) ?? []) lines.push(line);
  return lines;
}

function isServed({ endpoints, localEndpoints }: FrontendPlan): boolean {
  return endpoints.count > 0 || (localEndpoints?.count ?? 0) > 0;
}

/** Room for a name beside the longest kind in the 127 characters that a comment on an nftables element has. */
const SERVICE_PORT_LIMIT = 114;

/** `namespace/name:port`, cut at the length that the kernel can return: plan and dump have to read the same. */
export function printServicePort(servicePort: string): string {
  return servicePort.slice(0, SERVICE_PORT_LIMIT);
}

function printBalance(frontend: FrontendPlan, head: string): readonly string[] {
  const { endpoints, localEndpoints, balance } = frontend;
  if (balance === null || !isServed(frontend)) return [];
  // A choice by chance without tables has nothing but weights.
  const isNamed = balance.endpoints.slots !== null || balance.by !== 'random';
  return [
    ...(isNamed ? [`${head} balance ${printBy(balance.by)}`] : []),
    ...printShares(`${head} `, endpoints, balance.endpoints),
    ...(localEndpoints === null || balance.localEndpoints === null
      ? []
      : printShares(`${head} local-`, localEndpoints, balance.localEndpoints)),
  ];
}

/** The part of connections that each endpoint of a list gets, and which of the slots are its own, as one number. */
function printShares(head: string, list: EndpointList, { weights, slots }: Shares): string[] {
  if (slots === null && isUniform(weights)) return [];
  if (slots === null)
    return list.toStrings().map((endpoint, place) => `${head}share ${endpoint} weight ${weights[place] ?? 0}`);
  const counts = slotCounts(list.count, slots);
  const shares = list
    .toStrings()
    .map((endpoint, place) => `${head}share ${endpoint} ${counts[place] ?? 0}/${slots.length}`);
  return list.count === 0 ? [] : [...shares, `${head}table ${digestOf(list, slots)}`];
}

/** FNV-1a of each slot's endpoint. */
function digestOf({ family, packed }: EndpointList, slots: Uint16Array): string {
  const size = endpointSize(family);
  let hash = 0x811c9dc5;
  for (const place of slots)
    for (let at = place * size; at < (place + 1) * size; at++) hash = Math.imul(hash ^ (packed[at] ?? 0), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/** Beyond this number of differences their identity does not matter: a pass over attempts that finds none does no harm. */
const MANY_DIFFERENCES = 64;

function losesSome(before: EndpointList | null, after: EndpointList | null): boolean {
  if (before === null || before === after) return false;
  if (after === null || after.count < before.count) return true;
  const size = endpointSize(before.family);
  const difference = sortedDifference(before.packed, after.packed, size, MANY_DIFFERENCES);
  return difference === null || difference.gone.length > 0;
}

function sameClientKeys(one: ClientKeys | null, other: ClientKeys | null): boolean {
  return (
    one?.cluster === other?.cluster &&
    one?.local?.key === other?.local?.key &&
    sameList(one?.local?.endpoints ?? null, other?.local?.endpoints ?? null) &&
    sameList(one?.local?.apart ?? null, other?.local?.apart ?? null)
  );
}

function sameBalance(one: Balance | null, other: Balance | null): boolean {
  if (one === null || other === null) return one === other;
  const { by, endpoints, localEndpoints } = other;
  return one.by === by && sameShares(one.endpoints, endpoints) && sameShares(one.localEndpoints, localEndpoints);
}

function sameShares(one: Shares | null, other: Shares | null): boolean {
  if (one === null || other === null || one === other) return one === other;
  return sameNumbers(one.weights, other.weights) && sameNumbers(one.slots ?? [], other.slots ?? []);
}

function sameNumbers(one: ArrayLike<number>, other: ArrayLike<number>): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}

function sameList(one: EndpointList | null, other: EndpointList | null): boolean {
  return one === null || other === null ? one === other : one.equals(other);
}
