import type { Family } from '../../base/ip.js';
import type { SetDeclaration } from './json.js';
import {
  CLIENT_PARTS,
  COUNTED,
  SET,
  SHARDS,
  clientEndpointsSet,
  clientsMaps,
  countedSet,
  nodePortClientsSet,
  sharingMap,
  sharingNodePortMap,
  endpointsMap,
  stickyLocalsSet,
  stickyNodePortSet,
  stickySet,
} from './names.js';

/** Clients remembered per affinity timeout and family at least, if they are spread; past it new clients are balanced but not remembered. */
const CLIENTS_SIZE = 262_144;
/** Addresses are not spread evenly over the parts. */
const PART_SIZE = (CLIENTS_SIZE / CLIENT_PARTS) * 2;

/** Node ports times addresses of the node that clients use within {@link NODE_PORT_SECONDS}. */
const NODE_PORTS_SIZE = 16_384;
/** From the prerouting hook of a packet to its postrouting hook. */
const NODE_PORT_SECONDS = 5;

/** Every set and map of the table that does not depend on an affinity timeout. */
export function staticSets(family: Family): readonly SetDeclaration[] {
  const ip = addressType(family);
  const frontend = [ip, 'inet_proto', 'inet_service'];
  const nodePort = ['inet_proto', 'inet_service'];
  const endpoint = [ip, 'inet_service'];
  return [
    map(SET.frontends, frontend, 'verdict'),
    map(SET.nodePortFrontends, nodePort, 'verdict'),
    ...[false, true].flatMap((local) => [
      map(endpointsMap(null, local), ['mark', ...nodePort], endpoint),
      ...Array.from({ length: SHARDS }, (_, shard) => map(endpointsMap(shard, local), ['mark', ...frontend], endpoint)),
    ]),
    set(SET.rejected, frontend),
    set(SET.rejectedNodePorts, nodePort),
    set(SET.dropped, frontend),
    set(SET.droppedNodePorts, nodePort),
    set(SET.restricted, frontend),
    { ...set(SET.admitted, [ip, ...frontend]), flags: ['interval'] },
    set(SET.clusterAddresses, [ip]),
    set(SET.hairpin, [ip, ip]),
    set(SET.staleFlows, frontend),
    set(SET.staleNodePortFlows, nodePort),
  ];
}

/** Frontends of each kind whose packets are counted at a time, so that nobody can have the kernel remember more by asking for many. */
const COUNTED_SIZE = 4096;
/** A frontend is counted on as long as another packet comes within this time. */
const COUNTED_SECONDS = 3600;

/** Sets of the frontends whose refused and dropped packets are counted. The sets that decide over packets have no counters: their declarations say nothing of it. */
export function countedSets(family: Family): readonly SetDeclaration[] {
  const counted: readonly string[] = COUNTED.map(({ of }) => of);
  return staticSets(family)
    .filter(({ name }) => counted.includes(name))
    .map(({ name, type }) => ({
      ...set(countedSet(name), type),
      flags: ['timeout', 'dynamic'],
      timeout: COUNTED_SECONDS,
      size: COUNTED_SIZE,
    }));
}

/** The sets and the maps of one affinity timeout. */
export function affinitySets(family: Family, seconds: number): readonly SetDeclaration[] {
  const ip = addressType(family);
  const written = { flags: ['timeout', 'dynamic'] } as const;
  const remembered = { ...written, timeout: seconds };
  const frontend = [ip, 'inet_proto', 'inet_service'];
  const nodePort = ['inet_proto', 'inet_service'];
  return [
    set(stickySet(seconds), frontend),
    set(stickyNodePortSet(seconds), nodePort),
    set(stickyLocalsSet(seconds), [ip, 'inet_service', ...frontend]),
    map(sharingMap(seconds), frontend, 'verdict'),
    map(sharingNodePortMap(seconds), nodePort, 'verdict'),
    ...clientsMaps(seconds).map((name): SetDeclaration => ({
      name,
      type: [ip, ip, 'inet_proto', 'inet_service'],
      map: [ip, 'inet_service'],
      ...remembered,
      size: PART_SIZE,
    })),
    { ...set(clientEndpointsSet(seconds), frontend), ...remembered, size: CLIENTS_SIZE },
    { ...set(nodePortClientsSet(seconds), frontend), ...written, timeout: NODE_PORT_SECONDS, size: NODE_PORTS_SIZE },
  ];
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
