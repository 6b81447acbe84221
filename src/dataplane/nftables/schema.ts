import type { Family } from '../../base/ip.js';
import type { SetDeclaration } from './json.js';
import type { ClientKeyName } from './affinity/key-names.js';
import { COUNTED, SET, SHARDS, clientRoom, clientsMap, countedSet, endpointsMap, isWrittenByPackets } from './names.js';

/** From the prerouting hook of a packet to its postrouting hook. */
const ASKED_SECONDS = 5;
/** In this time a client whose connection is to be reset sends a packet, if it was asked to. */
const RESETTING_SECONDS = 30;

/** Longer than the pauses between a client's first SYNs, and not so long that clients use a port again. */
export const RECENT_SECONDS = 5;

/** Every set and map of the table but for the clients of Service ports with affinity. */
export function staticSets(family: Family): readonly SetDeclaration[] {
  const ip = addressType(family);
  const frontend = [ip, 'inet_proto', 'inet_service'];
  const nodePort = ['inet_proto', 'inet_service'];
  const endpoint = [ip, 'inet_service'];
  return [
    map(SET.frontends, frontend, 'verdict'),
    map(SET.nodePortFrontends, nodePort, 'verdict'),
    ...[false, true].flatMap((local) => [
      map(endpointsMap(null, local), ['integer', ...nodePort], endpoint),
      ...Array.from({ length: SHARDS }, (_, shard) =>
        map(endpointsMap(shard, local), ['integer', ...frontend], endpoint),
      ),
    ]),
    set(SET.rejected, frontend),
    set(SET.rejectedNodePorts, nodePort),
    set(SET.datagramNodePorts, nodePort),
    { ...set(SET.rejectedOnLoopback, ['inet_proto']), flags: ['dynamic'] },
    set(SET.dropped, frontend),
    set(SET.droppedNodePorts, nodePort),
    ...[SET.sticky, SET.localSticky, SET.remembering].map((name) => map(name, frontend, 'verdict')),
    ...[SET.stickyNodePorts, SET.localStickyNodePorts, SET.rememberingNodePorts].map((name) =>
      map(name, nodePort, 'verdict'),
    ),
    set(SET.stickyLocals, [ip, 'inet_service', ...frontend]),
    { ...set(SET.askedNodePorts, frontend), ...WRITTEN, timeout: ASKED_SECONDS },
    { ...set(SET.recentAttempts, [...endpoint, ...frontend]), ...WRITTEN, timeout: RECENT_SECONDS },
    { ...set(SET.unremembered, frontend), ...WRITTEN, timeout: COUNTED_SECONDS },
    { ...set(SET.resetting, [ip, 'inet_service', ...frontend]), flags: ['timeout'], timeout: RESETTING_SECONDS },
    { ...set(SET.wereReset, [ip, 'inet_service', ...frontend]), ...WRITTEN, timeout: RESETTING_SECONDS },
    set(SET.restricted, frontend),
    set(SET.admitted, [ip, 'inet_service', ...frontend]),
    set(SET.admittedAddresses, [ip, ...frontend]),
    set(SET.clusterAddresses, [ip]),
    set(SET.hairpin, [ip, ip]),
    set(SET.staleFlows, frontend),
    set(SET.staleNodePortFlows, nodePort),
  ];
}

/**
 * A set that packets write to. Without a size the kernel gives it one of 65,535 with the first rule that does so (nft_dynset_init), and a small table
 * that grows; for a set that is declared with that size it allocates 1 MiB at once (nft_rhash_init).
 */
const WRITTEN = { flags: ['timeout', 'dynamic'] } as const;

/** The kernel's listing of it, see {@link WRITTEN}. */
const KERNELS_OWN_SIZE = / size 65535\b/;

/** A declaration as it was sent, without the kernel's additions. */
export function declaredText(name: string, listed: string): string {
  return isWrittenByPackets(name) ? listed.replace(KERNELS_OWN_SIZE, '') : listed;
}

/** The most frontends of each kind that are counted at a time, so that clients cannot fill the kernel's memory. */
const COUNTED_SIZE = 4096;
/** A frontend is counted on as long as another packet comes within this time. */
const COUNTED_SECONDS = 3600;

/**
 * Sets of the frontends whose refused and dropped packets are counted. The sets that decide over packets have no counters:
 * their declarations do not mention any.
 */
export function countedSets(family: Family): readonly SetDeclaration[] {
  const counted: readonly string[] = COUNTED.map(({ of }) => of);
  return staticSets(family)
    .filter(({ name }) => counted.includes(name))
    .map(({ name, type }) => ({
      ...set(countedSet(name), type),
      ...WRITTEN,
      timeout: COUNTED_SECONDS,
      size: COUNTED_SIZE,
    }));
}

/** The map of a frontend's remembered clients. The rule that writes them has their timeout, so it can change while they stay. */
export function clientsMapOf(family: Family, key: ClientKeyName): SetDeclaration {
  const ip = addressType(family);
  return { ...map(clientsMap(key), [ip], [ip, 'inet_service']), ...WRITTEN };
}

/** The set of the clients that have a place in a room, by what they asked for. */
export function clientRoomOf(family: Family, key: ClientKeyName): SetDeclaration {
  const ip = addressType(family);
  return { ...set(clientRoom(key), [ip, ip, 'inet_proto', 'inet_service']), ...WRITTEN };
}

function addressType(family: Family): string {
  return family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr';
}

function set(name: string, type: readonly string[]): SetDeclaration {
  return { name, type, map: null, flags: [], timeout: null, size: null };
}

function map(name: string, type: readonly string[], data: 'verdict' | readonly string[]): SetDeclaration {
  return { ...set(name, type), map: data };
}
