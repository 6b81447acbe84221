import type { Family } from '../../base/ip.js';
import type { NftFamily } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';

/**
 * Names in the kernel. The table and the base chains are kube-proxy's: other software detects a service proxy by them, and whichever proxy
 * starts takes the hooks over. Every other name is one that kube-proxy does not use, and has no "/" (kube-proxy deletes such chains).
 */
export const TABLE = 'kube-proxy';

export const NFT_FAMILY: Readonly<Record<Family, NftFamily>> = { IPv4: 'ip', IPv6: 'ip6' };

export const CHAIN = {
  preroutingBeforeDnat: 'filter-prerouting-pre-dnat',
  outputBeforeDnat: 'filter-output-pre-dnat',
  input: 'filter-input',
  forward: 'filter-forward',
  output: 'filter-output',
  natPrerouting: 'nat-prerouting',
  natOutput: 'nat-output',
  natPostrouting: 'nat-postrouting',
  checkSources: 'check-sources',
  dispatch: 'dispatch',
  checkFrontends: 'check-frontends',
  checkNodePorts: 'check-nodeports',
  checkClusterAddresses: 'check-cluster-addresses',
  refuse: 'refuse',
  rememberClients: 'remember-clients',
  masquerade: 'masquerade-sources',
} as const;

export const SET = {
  /** Verdict maps: frontend → class chain. */
  frontends: 'frontends',
  nodePortFrontends: 'nodeport-frontends',
  /** Frontends without an endpoint to use. */
  rejected: 'rejected-frontends',
  rejectedNodePorts: 'rejected-nodeports',
  dropped: 'dropped-frontends',
  droppedNodePorts: 'dropped-nodeports',
  /** Source ranges: frontends that have some, and source . frontend that they admit. */
  restricted: 'restricted-frontends',
  admitted: 'admitted-sources',
  clusterAddresses: 'cluster-addresses',
  hairpin: 'hairpin-pairs',
  /** Frontends that are gone and whose conntrack flows still have to be removed: survives a crash in between. */
  staleFlows: 'stale-flows',
  staleNodePortFlows: 'stale-nodeport-flows',
} as const;

/** What becomes of packets to the frontends of a set, which are counted where that is asked for. */
export const COUNTED = [
  { of: SET.rejected, verdict: 'refused', reason: 'no-endpoints' },
  { of: SET.rejectedNodePorts, verdict: 'refused', reason: 'no-endpoints' },
  { of: SET.dropped, verdict: 'dropped', reason: 'no-local-endpoints' },
  { of: SET.droppedNodePorts, verdict: 'dropped', reason: 'no-local-endpoints' },
  { of: SET.restricted, verdict: 'dropped', reason: 'source-range' },
] as const;

/** The chain in which they are counted before it ends with them, and the set that counts. */
export const countChain = (of: string): string => `count-${of}`;
export const countedSet = (of: string): string => `counted-${of}`;

/**
 * Endpoints of addresses are divided among this many maps. The kernel lists a set in pieces of 32 KiB and walks it from the start for every
 * piece: 250,000 elements in one map take 2.2 s to list, in eight 0.3 s.
 */
export const SHARDS = 8;

/** The map of data `slot . frontend → endpoint`. Node ports are not divided, their shard is null. */
export function endpointsMap(shard: number | null, local: boolean): string {
  const name = local ? 'local-endpoints' : 'endpoints';
  return shard === null ? `nodeport-${name}` : `${name}-${shard}`;
}

/** The inverse of {@link endpointsMap}; null for any other name. */
export function parseEndpointsMap(name: string): { readonly shard: number | null; readonly local: boolean } | null {
  const found = /^(nodeport-)?(local-)?endpoints(?:-(\d+))?$/.exec(name);
  if (found === null) return null;
  const shard = found[3] === undefined ? null : Number(found[3]);
  const local = found[2] !== undefined;
  return endpointsMap(shard, local) === name && (shard ?? 0) < SHARDS ? { shard, local } : null;
}

/**
 * Clients of an affinity timeout are divided among this many maps, by the lowest bits of their address, for the same reason: whoever looks for some
 * has to list all. A power of two.
 */
export const CLIENT_PARTS = 8;

/**
 * Client → endpoint, for each affinity timeout and part; the endpoints that have clients; and the frontends that use it. Versions without a set of
 * endpoints had other names for the maps: what is in them would not be found.
 */
export const clientsMap = (seconds: number, part: number): string => `clients-${seconds}-part-${part}`;
export const clientEndpointsSet = (seconds: number): string => `clients-${seconds}-endpoints`;
/** What clients asked for lately that was a node port. */
export const nodePortClientsSet = (seconds: number): string => `clients-${seconds}-nodeports`;
export const clientsMaps = (seconds: number): readonly string[] =>
  Array.from({ length: CLIENT_PARTS }, (_, part) => clientsMap(seconds, part));
/** The chain that remembers clients of one timeout. */
export const rememberChain = (seconds: number): string => `remember-clients-${seconds}`;
export const stickySet = (seconds: number): string => `sticky-frontends-${seconds}`;
export const stickyNodePortSet = (seconds: number): string => `sticky-nodeports-${seconds}`;
/** Which local endpoints a key stands for where a Service port has two lists: see the README. */
export const stickyLocalsSet = (seconds: number): string => `sticky-local-endpoints-${seconds}`;
/** Verdict maps: frontend whose clients are remembered by keys of others → chain that does so. */
export const sharingMap = (seconds: number): string => `sharing-frontends-${seconds}`;
export const sharingNodePortMap = (seconds: number): string => `sharing-nodeports-${seconds}`;

const AFFINITY_PREFIXES: readonly string[] = ['clients-', 'sticky-', 'sharing-'];

/** The timeout in the name of a set made by one of the above; null for any other name. */
export function affinitySecondsOf(set: string): number | null {
  // Every sync asks it of every set, and of most it is none.
  if (!AFFINITY_PREFIXES.some((prefix) => set.startsWith(prefix))) return null;
  const found =
    /^(?:clients-(\d+)-(?:part-\d+|endpoints|nodeports)|(?:(?:sticky|sharing)-(?:frontends|nodeports)|sticky-local-endpoints)-(\d+))$/.exec(
      set,
    );
  return found === null ? null : Number(found[1] ?? found[2]);
}

/** Whether packets write to a set of this name, in this or an earlier version. */
export function isWrittenByPackets(set: string): boolean {
  return set.startsWith('clients-') || set.startsWith(countedSet(''));
}

/** The set that remembers a gone frontend. */
export function staleSet(key: FrontendKey): string {
  return key.startsWith('nodeport:') ? SET.staleNodePortFlows : SET.staleFlows;
}
