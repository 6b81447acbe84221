import type { Family } from '../../base/ip.js';
import type { NftFamily } from '../../native/contract.js';
import { isNodePortKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { parseClientKey, type ClientKeyName } from './affinity/key-names.js';

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
  checkConnections: 'check-connections',
  checkSources: 'check-sources',
  admitSources: 'admit-sources',
  dispatch: 'dispatch',
  retry: 'connect-retry',
  checkFrontends: 'check-frontends',
  checkNodePorts: 'check-nodeports',
  checkClusterAddresses: 'check-cluster-addresses',
  refuse: 'refuse',
  refuseOnLoopback: 'refuse-on-loopback',
  resetConnections: 'reset-connections',
  rememberClients: 'remember-clients',
  noRoomForClient: 'no-room-for-client',
  findClients: 'find-clients',
  findClientsOfNodePorts: 'find-clients-of-nodeports',
  findLocalClients: 'find-local-clients',
  findLocalClientsOfNodePorts: 'find-local-clients-of-nodeports',
  masquerade: 'masquerade-sources',
} as const;

export const SET = {
  /** Verdict maps: frontend → class chain. */
  frontends: 'frontends',
  nodePortFrontends: 'nodeport-frontends',
  /** Frontends without an endpoint to use. */
  rejected: 'rejected-frontends',
  rejectedNodePorts: 'rejected-nodeports',
  /** Node ports of UDP and SCTP, which no listener on loopback serves; the protocols of packets to them there, counted. */
  datagramNodePorts: 'datagram-nodeports',
  rejectedOnLoopback: 'rejected-on-loopback',
  dropped: 'dropped-frontends',
  droppedNodePorts: 'dropped-nodeports',
  /** Verdict maps: frontend with session affinity → chain that finds its clients; the same for its local endpoints. */
  sticky: 'sticky-frontends',
  stickyNodePorts: 'sticky-nodeports',
  localSticky: 'local-sticky-frontends',
  localStickyNodePorts: 'local-sticky-nodeports',
  /** Verdict maps: frontend with session affinity → chain that remembers its clients. */
  remembering: 'remembering-frontends',
  rememberingNodePorts: 'remembering-nodeports',
  /** Which local endpoints a key stands for where a Service port has two lists: see affinity/README.md. */
  stickyLocals: 'sticky-local-endpoints',
  /** Addresses and ports that clients asked for lately as a node port with session affinity. */
  askedNodePorts: 'asked-nodeports',
  /** First packets of clients that are looked for: one that comes again soon was not answered. */
  recentAttempts: 'recent-attempts',
  /** Frontends with clients that were not remembered, as there was no room. */
  unremembered: 'unremembered-clients',
  /** Connections to endpoints that are gone, by client and destination; and those of them that sent a packet and were reset. */
  resetting: 'connections-to-reset',
  wereReset: 'connections-reset',
  /** Source ranges: frontends that have some, and source . frontend that they admit, single addresses apart: see {@link packSource}. */
  restricted: 'restricted-frontends',
  admitted: 'admitted-sources',
  admittedAddresses: 'admitted-addresses',
  clusterAddresses: 'cluster-addresses',
  hairpin: 'hairpin-pairs',
  /** Frontends that are gone and whose conntrack flows still have to be removed: survives a crash in between. */
  staleFlows: 'stale-flows',
  staleNodePortFlows: 'stale-nodeport-flows',
} as const;

/** The verdict on packets to the frontends of a set, which are counted if that is configured. */
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

/** Client → endpoint, for each frontend that remembers clients. No name of this form was a set of an earlier version. */
export const clientsMap = (key: ClientKeyName): string => `clients-${key}`;

const CLIENTS_MAP = /^clients-(.+)$/;

/** Client and frontend, for Services whose ports share room: a client that is not in it is not remembered. */
export const clientRoom = (key: ClientKeyName): string => `room-for-clients-${key}`;

/** The frontend by which a map's clients are remembered; null for any other name. */
export function parseClientsMap(name: string): FrontendKey | null {
  const found = CLIENTS_MAP.exec(name);
  return found === null ? null : parseClientKey(found[1] ?? '');
}

/**
 * Whether packets write to a set of this name, or we for a moment, in this or an earlier version: comparisons leave its
 * elements out.
 */
export function isWrittenByPackets(set: string): boolean {
  return (
    set.startsWith(clientsMap('')) ||
    set.startsWith(clientRoom('')) ||
    set.startsWith(countedSet('')) ||
    set === SET.askedNodePorts ||
    set === SET.recentAttempts ||
    set === SET.resetting ||
    set === SET.wereReset ||
    set === SET.unremembered ||
    set === SET.rejectedOnLoopback
  );
}

/** The set that remembers a gone frontend. */
export function staleSet(key: FrontendKey): string {
  return isNodePortKey(key) ? SET.staleNodePortFlows : SET.staleFlows;
}
