import { printEndpoint } from '../../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family } from '../../base/ip.js';
import type { NftablesAddon, NftAck, NftCommand, NftFamily, NftSetListing } from '../../native/contract.js';
import type { AttemptCounter, EndpointAttempts } from '../contract.js';
import { ATTEMPTS_TABLE as TABLE } from './footprint.js';

type Addon = Pick<NftablesAddon, 'nftTransact' | 'nftElements' | 'nftList'>;

const NFT_FAMILY: Readonly<Record<Family, NftFamily>> = { IPv4: 'ip', IPv6: 'ip6' };

/** Read in this order: an answer that comes meanwhile makes no attempt look unanswered. */
const SETS = ['attempts', 'answers', 'refusals'] as const;
type Counted = (typeof SETS)[number];

/** An endpoint is forgotten when nothing was counted of it for so long. */
const SECONDS = 3600;

/**
 * Before conntrack confirms a flow, and before kube-proxy's rules and ours translate sources: those end a packet's way
 * through nat chains.
 */
const BEFORE_SOURCES = 99;
/** After conntrack has found the flow, and before the destinations of replies are translated. */
const BEFORE_DESTINATIONS = -110;

/** @param send sends a transaction, for callers that count them. */
export function attemptCounter(
  addon: Addon,
  families: readonly Family[],
  send: (transact: () => Promise<NftAck>) => Promise<NftAck>,
): AttemptCounter {
  const transact = (family: Family, commands: readonly NftCommand[]): Promise<NftAck> =>
    send(() =>
      addon.nftTransact({ family: NFT_FAMILY[family], table: TABLE, operations: [{ type: 'commands', commands }] }),
    );
  return {
    open: async () => {
      for (const family of families) await transact(family, [...removal(NFT_FAMILY[family]), ...table(family)]);
    },
    close: async () => {
      for (const family of families) {
        const nft = NFT_FAMILY[family];
        if ((await addon.nftList(nft, TABLE, [])) !== null) await transact(family, removal(nft));
      }
    },
    read: async () => {
      const rows: EndpointAttempts[] = [];
      for (const family of families) {
        const sets: NftSetListing[] = [];
        for (const name of SETS) sets.push(...(await addon.nftElements(NFT_FAMILY[family], TABLE, [name])));
        if (sets.length !== SETS.length) return null;
        rows.push(...joined(family, sets));
      }
      return rows;
    },
  };
}

/** Adding the table first makes the deletion succeed where there is none. */
function removal(family: NftFamily): readonly NftCommand[] {
  const table = { family, name: TABLE };
  return [{ add: { table } }, { delete: { table } }];
}

/**
 * Chains of type nat see the first packet of each connection, so an attempt counts once even if its client repeats it.
 * These rules decide nothing: if there is no room to count a packet, it goes on.
 */
function table(family: Family): readonly NftCommand[] {
  const nft = NFT_FAMILY[family];
  const where = { family: nft, table: TABLE };
  const tcp = match({ meta: { key: 'l4proto' } }, 'tcp');
  const translated = match({ ct: { key: 'status' } }, 'dnat', 'in');
  const flags = { payload: { protocol: 'tcp', field: 'flags' } };
  const endpoint = (address: 'saddr' | 'daddr', port: 'sport' | 'dport'): Json => ({
    concat: [{ payload: { protocol: nft, field: address } }, { payload: { protocol: 'th', field: port } }],
  });
  const count = (set: Counted, elem: Json): Json => ({
    set: { op: 'update', elem, set: `@${set}`, stmt: [{ counter: null }] },
  });
  const attempt: Rule = [tcp, translated, count('attempts', endpoint('daddr', 'dport'))];
  const reply: Rule = [
    tcp,
    match(flags, ['syn', 'rst'], 'in'),
    match({ ct: { key: 'direction' } }, 'reply'),
    translated,
    { jump: { target: REPLIES } },
  ];
  // A reset of a connection that both sides had known before is no refusal.
  const notAssured = match({ '&': [{ ct: { key: 'status' } }, 'assured'] }, 0);
  const replies: readonly Rule[] = [
    [match(flags, 'syn', 'in'), count('answers', endpoint('saddr', 'sport'))],
    [match(flags, 'rst', 'in'), notAssured, count('refusals', endpoint('saddr', 'sport'))],
  ];
  const base = (hook: string, type: 'nat' | 'filter', prio: number): Json => ({
    type,
    hook,
    prio,
    policy: 'accept',
  });
  const chains: readonly (readonly [string, Json, readonly Rule[]])[] = [
    [REPLIES, {}, replies],
    ['postrouting', base('postrouting', 'nat', BEFORE_SOURCES), [attempt]],
    // To an endpoint on an address of the node itself.
    ['input', base('input', 'nat', BEFORE_SOURCES), [attempt]],
    ['prerouting', base('prerouting', 'filter', BEFORE_DESTINATIONS), [reply]],
    ['output', base('output', 'filter', BEFORE_DESTINATIONS), [reply]],
  ];
  const type = [family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr', 'inet_service'];
  return [
    { add: { table: { family: nft, name: TABLE, comment: 'counts connection attempts, decides nothing' } } },
    ...SETS.map((name) => ({
      add: { set: { ...where, name, type, flags: ['timeout', 'dynamic'], timeout: SECONDS } },
    })),
    ...chains.map(([name, hook]) => ({ add: { chain: { ...where, name, ...hook } } })),
    ...chains.flatMap(([chain, , rules]) => rules.map((expr) => ({ add: { rule: { ...where, chain, expr } } }))),
  ];
}

const REPLIES = 'replies';

type Json = Readonly<Record<string, unknown>>;
type Rule = readonly Json[];

function match(left: Json, right: string | number | readonly string[], op: '==' | 'in' = '=='): Json {
  return { match: { op, left, right } };
}

/** One row of each endpoint with attempts. */
function joined(family: Family, sets: readonly NftSetListing[]): readonly EndpointAttempts[] {
  const rows = new Map<string, Record<Counted, number>>();
  for (const { name, keyLength, elements } of sets) {
    const set = SETS.find((each) => each === name);
    if (set === undefined || elements === null || elements.packets === null) continue;
    for (const [row, packets] of elements.packets.entries()) {
      const endpoint = endpointOf(family, elements.keys.subarray(row * keyLength, (row + 1) * keyLength));
      const counts = rows.get(endpoint) ?? (set === 'attempts' ? { attempts: 0, answers: 0, refusals: 0 } : null);
      if (counts === null) continue;
      counts[set] = packets;
      rows.set(endpoint, counts);
    }
  }
  return [...rows].map(([endpoint, counts]) => ({ family, endpoint, ...counts }));
}

/** The port is in two bytes of four. */
function endpointOf(family: Family, key: Uint8Array): string {
  const length = addressLength(family);
  return printEndpoint(addressFromBytes(key.subarray(0, length)), ((key[length] ?? 0) << 8) | (key[length + 1] ?? 0));
}
