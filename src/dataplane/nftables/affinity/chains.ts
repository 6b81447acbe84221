import { addressFromBytes, addressLength, type Family } from '../../../base/ip.js';
import type { NftFamily } from '../../../native/contract.js';
import { parseFrontendKey } from '../../../plan/frontend-key.js';
import type { FrontendKey, NodePlan } from '../../../plan/types.js';
import {
  address,
  back,
  concat,
  countBy,
  deleteFromMap,
  differs,
  dnatTo,
  dport,
  goto,
  jump,
  lasting,
  match,
  meta,
  original,
  sport,
  update,
  updateMap,
  vmap,
  type Chain,
  type Expression,
  type Rule,
  type SetDeclaration,
  type Statement,
} from '../json.js';
import { CHAIN, NFT_FAMILY, SET, clientRoom, clientsMap } from '../names.js';
import { clientRoomOf, clientsMapOf } from '../schema.js';
import { nameClientKey, parseClientKey } from './key-names.js';
import { localOf } from './local-endpoints.js';

/** The chains of session affinity. The README of this folder draws them. */

const PROTOCOLS = ['tcp', 'udp', 'sctp'] as const;

/** The chains that all Services share: a connection meets the same number of rules in them for any Services with affinity. */
export function affinityChains(family: NftFamily): readonly Chain[] {
  const frontend = concat(address(family, 'daddr'), meta('l4proto'), dport);
  const nodePort = concat(meta('l4proto'), dport);
  const asked = concat(original(`${family} daddr`), meta('l4proto'), original('proto-dst'));
  const askedPort = concat(meta('l4proto'), original('proto-dst'));
  const noteAsked: Rule = [update(SET.askedNodePorts, frontend)];
  return [
    chain(CHAIN.findClients, [[vmap(frontend, SET.sticky)]]),
    chain(CHAIN.findLocalClients, [[vmap(frontend, SET.localSticky)]]),
    chain(CHAIN.findClientsOfNodePorts, [noteAsked, [vmap(nodePort, SET.stickyNodePorts)]]),
    chain(CHAIN.findLocalClientsOfNodePorts, [noteAsked, [vmap(nodePort, SET.localStickyNodePorts)]]),
    chain(
      CHAIN.noRoomForClient,
      PROTOCOLS.map((protocol) => [match(meta('l4proto'), protocol), countBy(SET.unremembered, asked)]),
    ),
    chain(
      CHAIN.rememberClients,
      PROTOCOLS.flatMap((protocol): readonly Rule[] => [
        [match(meta('l4proto'), protocol), vmap(asked, SET.remembering)],
        // Another Service's address may have the same port: it has to be a node port that the client asked for.
        [
          match(meta('l4proto'), protocol),
          match(asked, `@${SET.askedNodePorts}`),
          vmap(askedPort, SET.rememberingNodePorts),
        ],
      ]),
    ),
  ];
}

/** The chain of all Services by which a class finds the clients of its frontends. */
export function findChain(nodePort: boolean, local: boolean): string {
  if (nodePort) return local ? CHAIN.findLocalClientsOfNodePorts : CHAIN.findClientsOfNodePorts;
  return local ? CHAIN.findLocalClients : CHAIN.findClients;
}

/** The chain that sends a client to the endpoint at which it is remembered, and goes back where it is not. */
export function findChainOf(key: FrontendKey): string {
  return `find-clients-${nameClientKey(key)}`;
}

/** The part of the plan's `ClientKeys` that names chains. */
interface KeysOfLists {
  readonly cluster: FrontendKey;
  readonly local: { readonly key: FrontendKey } | null;
}

/**
 * The chain that remembers a frontend's clients.
 *
 * @param keys those of its Service port; null when it remembers them alone.
 * @param room where its clients need a place; null: a map has room of its own.
 */
export function rememberChainOf(
  key: FrontendKey,
  seconds: number,
  keys: KeysOfLists | null,
  room: FrontendKey | null,
): string {
  const { cluster = key, local = null } = keys ?? {};
  return rememberName(seconds, room, local === null ? [cluster] : [cluster, local.key]);
}

function rememberName(seconds: number, room: FrontendKey | null, keys: readonly FrontendKey[]): string {
  const name = `remember-clients-${seconds}-${keys.map(nameClientKey).join('-local-')}`;
  return room === null ? name : `${name}-room-${nameClientKey(room)}`;
}

/** A chain of one Service port's own, by its name. */
type AffinityChain =
  | { readonly does: 'find'; readonly key: FrontendKey }
  | ({ readonly does: 'remember'; readonly key: FrontendKey } & Remembering)
  /** Clients of two lists of endpoints, by the key of each. */
  | ({ readonly does: 'remember-both'; readonly cluster: FrontendKey; readonly local: FrontendKey } & Remembering);

interface Remembering {
  readonly seconds: number;
  /** As {@link FrontendPlan.clientRoom}. */
  readonly room: FrontendKey | null;
}

const FIND = /^find-clients-(.+)$/;
const REMEMBER = /^remember-clients-([1-9]\d*)-(.+)$/;

/** The parts of a name made by {@link findChainOf} or {@link rememberChainOf}; null for any other name. */
export function parseAffinityChain(name: string): AffinityChain | null {
  const [, found] = FIND.exec(name) ?? [];
  if (found !== undefined) {
    const key = parseClientKey(found);
    return key === null ? null : { does: 'find', key };
  }
  const [, digits = '', rest = ''] = REMEMBER.exec(name) ?? [];
  const [keys = '', roomName, ...afterRoom] = rest.split('-room-');
  const [first = '', second, ...afterSecond] = keys.split('-local-');
  if (afterRoom.length + afterSecond.length > 0) return null;
  const [seconds, key] = [Number(digits), parseClientKey(first)];
  const room = roomName === undefined ? null : parseClientKey(roomName);
  if (key === null || (roomName !== undefined && room === null)) return null;
  if (second === undefined) return { does: 'remember', key, seconds, room };
  const local = parseClientKey(second);
  return local === null ? null : { does: 'remember-both', cluster: key, local, seconds, room };
}

/** The timeout in the name of a chain that remembers clients; null for any other name. */
export function secondsOf(name: string): number | null {
  const parsed = parseAffinityChain(name);
  return parsed === null || parsed.does === 'find' ? null : parsed.seconds;
}

/** The frontends by whose keys a chain finds or remembers clients. */
export function clientKeysOf(parsed: AffinityChain): readonly FrontendKey[] {
  return parsed.does === 'remember-both' ? [parsed.cluster, parsed.local] : [parsed.key];
}

/** A chain and those that it leads to, which come before it. */
export function chainsOf(
  parsed: AffinityChain,
  node: Pick<NodePlan, 'family' | 'clientPrefix' | 'retryTimes'>,
): readonly Chain[] {
  const family = NFT_FAMILY[node.family];
  switch (parsed.does) {
    case 'find':
      return [findIn(parsed.key, node)];
    case 'remember':
      return [rememberIn(parsed.key, parsed, node)];
    case 'remember-both': {
      const { cluster, local, seconds, room } = parsed;
      const both = [cluster, local].map((key) => rememberIn(key, parsed, node));
      const locals = `@${SET.stickyLocals}`;
      const rules: readonly Rule[] = [
        [differs(localOf(family, cluster), locals), jump(rememberName(seconds, room, [cluster]))],
        [match(localOf(family, local), locals), goto(rememberName(seconds, room, [local]))],
      ];
      return [...both, chain(rememberName(seconds, room, [cluster, local]), rules)];
    }
  }
}

/** The names that {@link chainsOf} and {@link setsOf} would give. */
export function objectsOf(parsed: AffinityChain, name: string): readonly string[] {
  const keys = clientKeysOf(parsed);
  const sets = keys.map((key) => clientsMap(nameClientKey(key)));
  if (parsed.does === 'find') return [name, ...sets];
  const { seconds, room } = parsed;
  if (room !== null) sets.push(clientRoom(nameClientKey(room)));
  if (parsed.does === 'remember') return [name, ...sets];
  return [name, ...keys.map((key) => rememberName(seconds, room, [key])), ...sets];
}

/** The maps and sets that a chain reads or writes. */
export function setsOf(parsed: AffinityChain, family: Family): readonly SetDeclaration[] {
  const maps = clientKeysOf(parsed).map((key) => clientsMapOf(family, nameClientKey(key)));
  if (parsed.does === 'find' || parsed.room === null) return maps;
  return [...maps, clientRoomOf(family, nameClientKey(parsed.room))];
}

function findIn(
  key: FrontendKey,
  { family, clientPrefix, retryTimes }: Pick<NodePlan, 'family' | 'clientPrefix' | 'retryTimes'>,
): Chain {
  const of = NFT_FAMILY[family];
  const client = clientOf(address(of, 'saddr'), family, clientPrefix);
  const map = clientsMap(nameClientKey(key));
  const isProtocol = match(meta('l4proto'), protocolOf(key));
  const retries = retryTimes.tcp !== null || retryTimes.dns !== null;
  return chain(findChainOf(key), [
    ...(retries && protocolOf(key) !== 'sctp' ? forgetUnanswered(isProtocol, of, client, map) : []),
    [isProtocol, dnatTo(of, client, map)],
  ]);
}

/**
 * A first packet that comes again soon belongs to an unanswered attempt: conntrack has forgotten it. Its client must not go
 * to the same endpoint once more.
 */
function forgetUnanswered(isProtocol: Statement, family: NftFamily, client: Expression, map: string): readonly Rule[] {
  const attempt = concat(address(family, 'saddr'), sport, address(family, 'daddr'), meta('l4proto'), dport);
  const endpoint = concat(address(family, 'daddr'), dport);
  return [
    [isProtocol, match(attempt, `@${SET.recentAttempts}`), deleteFromMap(map, client, endpoint), back],
    [isProtocol, update(SET.recentAttempts, attempt)],
  ];
}

/**
 * Notes the endpoint of a connection, which is its destination by now. If there is no room for the client, the rule ends
 * before it returns, and the next one counts the client. In a room a client has a place for each frontend that it uses, as
 * each may have a map of its own.
 */
function rememberIn(
  key: FrontendKey,
  { seconds, room }: Remembering,
  { family, clientPrefix }: Pick<NodePlan, 'family' | 'clientPrefix'>,
): Chain {
  const of = NFT_FAMILY[family];
  const client = clientOf(original(`${of} saddr`), family, clientPrefix);
  const endpoint = concat(address(of, 'daddr'), dport);
  const asked = [original(`${of} daddr`), meta('l4proto'), original('proto-dst')];
  const place =
    room === null ? [] : [update(clientRoom(nameClientKey(room)), lasting(concat(client, ...asked), seconds))];
  return chain(rememberName(seconds, room, [key]), [
    [...place, updateMap(clientsMap(nameClientKey(key)), lasting(client, seconds), endpoint), back],
    [goto(CHAIN.noRoomForClient)],
  ]);
}

/** As whom a client is remembered: its address, or the network of it that is configured. */
function clientOf(source: Expression, family: Family, prefix: number): Expression {
  const length = addressLength(family);
  if (prefix === length * 8) return source;
  const mask = Uint8Array.from({ length }, (_, index) => 0xff00 >> Math.min(Math.max(prefix - index * 8, 0), 8));
  return { '&': [source, addressFromBytes(mask)] };
}

function protocolOf(key: FrontendKey): string {
  return parseFrontendKey(key).protocol.toLowerCase();
}

function chain(name: string, rules: readonly Rule[]): Chain {
  return { name, hook: null, rules };
}
