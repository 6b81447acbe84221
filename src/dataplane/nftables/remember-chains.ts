import type { NftFamily } from '../../native/contract.js';
import type { ClientKeys, FrontendKey } from '../../plan/types.js';
import { clientOf, localOf, nameClientKey, parseClientKey, type ClientKeyName } from './client-keys.js';
import {
  address,
  concat,
  differs,
  dport,
  jump,
  match,
  meta,
  original,
  update,
  updateMap,
  vmap,
  type Chain,
  type Expression,
  type Rule,
  type Statement,
} from './json.js';
import {
  CHAIN,
  CLIENT_PARTS,
  clientEndpointsSet,
  clientsMap,
  nodePortClientsSet,
  rememberChain,
  sharingMap,
  sharingNodePortMap,
  stickyLocalsSet,
  stickyNodePortSet,
  stickySet,
} from './names.js';

/** The chains that remember where clients went. The README of this folder says how. */

const PROTOCOLS = ['tcp', 'udp', 'sctp'] as const;

/** The chain that every translated connection goes through, and those that it leads to but for {@link sharedRememberChain}. */
export function rememberChains(family: NftFamily, affinityTimeouts: readonly number[]): readonly Chain[] {
  const rules = affinityTimeouts.flatMap((seconds) => toRemember(family, seconds));
  return [
    { name: CHAIN.rememberClients, hook: null, rules },
    ...affinityTimeouts.map((seconds) => ({
      name: rememberChain(seconds),
      hook: null,
      rules: rememberClients(family, seconds),
    })),
  ];
}

/** Picks connections to frontends with affinity, by what the client asked for: the original tuple. */
function toRemember(family: NftFamily, seconds: number): readonly Rule[] {
  const port = original('proto-dst');
  const frontend = concat(original(`${family} daddr`), meta('l4proto'), port);
  const nodePort = concat(meta('l4proto'), port);
  const remember = jump(rememberChain(seconds));
  return PROTOCOLS.flatMap((protocol): readonly Rule[] => {
    const ofProtocol = match(meta('l4proto'), protocol);
    return [
      [ofProtocol, match(frontend, `@${stickySet(seconds)}`), remember],
      [ofProtocol, match(nodePort, `@${stickyNodePortSet(seconds)}`), remember],
      [ofProtocol, vmap(frontend, sharingMap(seconds))],
      // Another Service's address may have the same port: it has to be a node port that the client asked for.
      [ofProtocol, match(frontend, `@${nodePortClientsSet(seconds)}`), vmap(nodePort, sharingNodePortMap(seconds))],
    ];
  });
}

/** Notes where a connection went, by the key of the frontend that the client asked for. Runs before the source is rewritten. */
function rememberClients(family: NftFamily, seconds: number): readonly Rule[] {
  const client = concat(
    original(`${family} saddr`),
    original(`${family} daddr`),
    meta('l4proto'),
    original('proto-dst'),
  );
  return PROTOCOLS.flatMap((protocol) =>
    rememberBy(family, seconds, [], client).map((rule) => [match(meta('l4proto'), protocol), ...rule]),
  );
}

/**
 * A rule for each part of the clients. The endpoint is noted first, by the same rule: where there is no room for it the client is not remembered
 * either, so that every client's endpoint can be asked for.
 */
function rememberBy(
  family: NftFamily,
  seconds: number,
  conditions: readonly Statement[],
  client: Expression,
): readonly Rule[] {
  const data = concat(address(family, 'daddr'), dport);
  const endpoint = concat(address(family, 'daddr'), meta('l4proto'), dport);
  return Array.from({ length: CLIENT_PARTS }, (_, part): Rule => [
    clientIn(family, part),
    ...conditions,
    update(clientEndpointsSet(seconds), endpoint),
    updateMap(clientsMap(seconds, part), client, data),
  ]);
}

/** That the source address belongs to a part of the clients. */
export function clientIn(family: NftFamily, part: number): Statement {
  const zeros = family === 'ip' ? '0.0.0.' : '::';
  // The address of all zeros is spelled so in both families' canonical text.
  return match(
    { '&': [address(family, 'saddr'), `${zeros}${CLIENT_PARTS - 1}`] },
    part === 0 && family === 'ip6' ? '::' : `${zeros}${part}`,
  );
}

/** Which chain remembers a frontend's clients by keys that all of its Service port's frontends go by; null where that is its own and no other. */
export function sharedRememberChain(key: FrontendKey, seconds: number, { cluster, local }: ClientKeys): string | null {
  if (local === null && isOwnKey(key, cluster)) return null;
  return sharedChainName({ seconds, cluster: nameClientKey(cluster), local: local && nameClientKey(local.key) });
}

/** Whether a frontend's clients are remembered by the key just as they are when it shares them with nobody: node ports go by the address asked for. */
export function isOwnKey(frontend: FrontendKey, key: FrontendKey): boolean {
  return frontend === key && !key.startsWith('nodeport:');
}

export function sharedChainName({ seconds, cluster, local }: SharedRemembering): string {
  return `${rememberChain(seconds)}-as-${cluster}${local === null ? '' : `-local-as-${local}`}`;
}

const SHARED_CHAIN = /^remember-clients-(\d+)-as-([\w.]+-\d+)(?:-local-as-([\w.]+-\d+))?$/;

/** {@link ClientKeys} by name. */
interface SharedRemembering {
  readonly seconds: number;
  readonly cluster: ClientKeyName;
  readonly local: ClientKeyName | null;
}

/** The inverse of {@link sharedRememberChain}; null for any other name. */
export function parseSharedChain(name: string): SharedRemembering | null {
  const found = SHARED_CHAIN.exec(name);
  if (found === null) return null;
  const shared = { seconds: Number(found[1]), cluster: found[2] ?? '', local: found[3] ?? null };
  const isKey = (key: ClientKeyName | null): boolean => key === null || parseClientKey(key) !== null;
  return isKey(shared.cluster) && isKey(shared.local) && sharedChainName(shared) === name ? shared : null;
}

/**
 * Notes where a connection went, by the key of every list that has the endpoint, whatever frontend the client asked for. A set knows the lists apart
 * by their local endpoints, of which there are few: all of the local list's, and of the cluster-wide one's those that it lacks.
 */
export function sharedChain(family: NftFamily, shared: SharedRemembering): Chain {
  const { seconds, cluster, local } = shared;
  const name = sharedChainName(shared);
  const client = (key: ClientKeyName): Expression => clientOf(family, original(`${family} saddr`), key);
  if (local === null) return { name, hook: null, rules: rememberBy(family, seconds, [], client(cluster)) };
  const locals = `@${stickyLocalsSet(seconds)}`;
  const rules = [
    ...rememberBy(family, seconds, [differs(localOf(family, cluster), locals)], client(cluster)),
    ...rememberBy(family, seconds, [match(localOf(family, local), locals)], client(local)),
  ];
  return { name, hook: null, rules };
}
