import { addressFromBytes, familyOf, type IPAddress } from '../../../src/base/ip.js';
import { protocolNumber } from '../../../src/base/protocol.js';
import type { Course } from '../courses.js';
import { traveller, type Traveller } from '../fake-iptables/packet.js';
import { runHooks, type Hook, type TracedTables } from '../fake-iptables/trace.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import type { FakeSets } from './sets.js';
import { keyOf, type FakeService, type FakeVirtualServers } from './virtual-servers.js';

/** What a packet meets on its way. */
export interface TracedKernel {
  readonly tables: TracedTables;
  readonly servers: FakeVirtualServers;
  readonly sets: FakeSets;
  /** Of all links. */
  readonly addresses: readonly IPAddress[];
}

const ARRIVING: readonly Hook[] = [['nat', 'PREROUTING']];
/** ip_vs has its turn between nat and filter for what is sent here, and after both for what comes in. */
const SENT_HERE: readonly Hook[] = [['nat', 'OUTPUT']];
const DELIVERED: readonly Hook[] = [['filter', 'INPUT']];
const FORWARDED: readonly Hook[] = [
  ['filter', 'FORWARD'],
  ['nat', 'POSTROUTING'],
];
const LEAVING: readonly Hook[] = [
  ['filter', 'OUTPUT'],
  ['nat', 'POSTROUTING'],
];

type Way = Course<Traveller>;

/** Every way that a new connection's first packet can go. */
export function courses(kernel: TracedKernel, packet: KernelPacket): readonly Way[] {
  const { tables, sets, addresses } = kernel;
  const isInSet: Traveller['isInSet'] = (name, directions, each) => sets.has(name, directions, each);
  const start: Way = { verdict: 'accept', packet: traveller(packet, addresses, isInSet) };
  if (packet.inputInterface !== null)
    return runHooks(tables, [start], ARRIVING).flatMap((way) => {
      if (!way.packet.isLocal(way.packet.destination)) return runHooks(tables, [way], FORWARDED);
      return runHooks(tables, [way], DELIVERED).flatMap((each) => serve(kernel, each) ?? [each]);
    });
  return runHooks(tables, [start], SENT_HERE).flatMap((way) => {
    const served = serve(kernel, way);
    if (served !== null) return served;
    const left = runHooks(tables, [way], LEAVING);
    return left.flatMap((each) =>
      each.packet.isLocal(each.packet.destination) ? runHooks(tables, [each], DELIVERED) : [each],
    );
  });
}

/** Through ip_vs; null: no virtual service has the packet. */
function serve(kernel: TracedKernel, way: Way): readonly Way[] | null {
  const { packet } = way;
  const service = serviceOf(kernel.servers, packet);
  if (way.verdict !== 'accept' || service === null) return null;
  const endpoints = choices(service, packet.source);
  if (endpoints.length === 0) return [{ verdict: 'reject', packet }];
  return endpoints.flatMap((endpoint) => {
    const sent = {
      ...packet,
      destination: endpoint.slice(0, -2),
      port: endpoint.slice(-2),
      translated: true,
      cameByIpvs: true,
    };
    const hooks = packet.isLocal(sent.destination) ? LEAVING.slice(0, 1) : LEAVING;
    return runHooks(kernel.tables, [{ verdict: 'accept', packet: sent }], hooks);
  });
}

export function serviceOf(servers: FakeVirtualServers, packet: Traveller): FakeService | null {
  const address = Buffer.from(packet.destination, 'latin1');
  const protocol = packet.protocol.toUpperCase();
  const key = keyOf({
    family: familyOf(addressFromBytes(address)),
    protocol: protocolNumber(protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP'),
    address,
    port: (packet.port.charCodeAt(0) << 8) | packet.port.charCodeAt(1),
    mark: 0,
  });
  return servers.services.get(key) ?? null;
}

/** Packed endpoints that the service may send a client to. */
function choices({ destinations, clients }: FakeService, client: string): readonly string[] {
  const remembered = clients.get(client);
  if (remembered !== undefined && (destinations.get(remembered)?.weight ?? 0) > 0) return [remembered];
  return [...destinations].flatMap(([endpoint, { weight }]) => (weight > 0 ? [endpoint] : []));
}
