import type { Family, IPAddress } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import type { NftCommand, NftFamily } from '../../native/contract.js';

/** Tables of this and a number: several may trace at once. */
export const TRACE_TABLE = 'pointsman-trace-';

/** Which packets are followed: the first of each connection. */
export interface TracedFlow {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly destination: IPAddress;
  readonly port: number;
  /** Null: any. */
  readonly source: IPAddress | null;
  readonly input: string | null;
  /** Whether those that come in are, and those that this node sends. */
  readonly incoming: boolean;
  readonly outgoing: boolean;
}

export const HOOKS = ['prerouting', 'input', 'forward', 'output', 'postrouting'] as const;
export type TraceHook = (typeof HOOKS)[number];

/** Chains of the table by what they are for: the kernel reports headers for each chain that it calls. */
export const chainOf = {
  begin: (hook: TraceHook): string => `begin-${hook}`,
  end: (hook: TraceHook): string => `end-${hook}`,
  answers: (hook: TraceHook): string => `answers-${hook}`,
} as const;

const NFT_FAMILY: Readonly<Record<Family, NftFamily>> = { IPv4: 'ip', IPv6: 'ip6' };
/** Before and after nearly all chains of others. */
const FIRST = -1000;
const LAST = 1000;
/** After conntrack has found the flow (-200), and before the destinations of replies are translated. */
const AFTER_CONNTRACK = -190;
/** Reports cost the kernel some microseconds each. */
const LIMIT = { limit: { rate: 20, per: 'second', burst: 40 } } as const;

type Json = Readonly<Record<string, unknown>>;

/**
 * A table that has packets traced and decides nothing. For a traced packet the kernel reports every rule that applies to
 * it, in all tables, and the end of each base chain. The chains without rules show how far the packet got.
 */
export function traceTable(flow: TracedFlow, name: string): readonly NftCommand[] {
  const family = NFT_FAMILY[flow.family];
  const where = { family, table: name };
  const chain = (of: string, hook: TraceHook, prio: number): NftCommand => ({
    add: { chain: { ...where, name: of, type: 'filter', hook, prio, policy: 'accept' } },
  });
  const rule = (of: string, expr: readonly Json[]): NftCommand => ({ add: { rule: { ...where, chain: of, expr } } });
  return [
    { add: { table: { family, name, flags: 'owner', comment: 'traces one flow, decides nothing' } } },
    ...HOOKS.flatMap((hook) => [chain(chainOf.begin(hook), hook, FIRST), chain(chainOf.end(hook), hook, LAST)]),
    ...(['prerouting', 'output'] as const).flatMap((hook) => [
      chain(chainOf.answers(hook), hook, AFTER_CONNTRACK),
      rule(chainOf.answers(hook), answersOf(flow, family)),
    ]),
    ...(flow.incoming ? [rule(chainOf.begin('prerouting'), packetsOf(flow, family))] : []),
    ...(flow.outgoing ? [rule(chainOf.begin('output'), packetsOf({ ...flow, input: null }, family))] : []),
  ];
}

const FLAGS = { payload: { protocol: 'tcp', field: 'flags' } } as const;
const TRACE = { mangle: { key: { meta: { key: 'nftrace' } }, value: 1 } } as const;

function packetsOf({ protocol, destination, port, source, input }: TracedFlow, family: NftFamily): readonly Json[] {
  const field = (name: string): Json => ({ payload: { protocol: family, field: name } });
  return [
    ofProtocol(protocol),
    match(field('daddr'), destination),
    match({ payload: { protocol: 'th', field: 'dport' } }, port),
    ...(source === null ? [] : [match(field('saddr'), source)]),
    ...(input === null ? [] : [match({ meta: { key: 'iifname' } }, input)]),
    ...(protocol === 'TCP' ? [match({ '&': [FLAGS, ['syn', 'ack']] }, 'syn')] : []),
    LIMIT,
    TRACE,
  ];
}

/** The replies, by conntrack's flow: their addresses are not yet translated back here. */
function answersOf({ protocol, destination, port }: TracedFlow, family: NftFamily): readonly Json[] {
  const original = (key: string): Json => ({ ct: { key, dir: 'original' } });
  return [
    ofProtocol(protocol),
    ...(protocol === 'TCP' ? [{ match: { op: 'in', left: FLAGS, right: ['syn', 'rst'] } }] : []),
    match({ ct: { key: 'direction' } }, 'reply'),
    match(original(`${family} daddr`), destination),
    match(original('proto-dst'), port),
    LIMIT,
    TRACE,
  ];
}

function ofProtocol(protocol: Protocol): Json {
  return match({ meta: { key: 'l4proto' } }, protocol.toLowerCase());
}

function match(left: Json, right: string | number): Json {
  return { match: { op: '==', left, right } };
}
