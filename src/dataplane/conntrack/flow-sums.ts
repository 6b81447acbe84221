import { setImmediate as turn } from 'node:timers/promises';
import { printEndpoint } from '../../base/endpoint-list.js';
import { addressFromBytes, familyOf, type Family, type IPAddress } from '../../base/ip.js';
import { protocolFromNumber } from '../../base/protocol.js';
import { FLOW_SUM, FLOW_WAY, type FlowSums } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendPlan } from '../../plan/types.js';

/** Connections, or flows of datagrams, and what they carried; 0 where the kernel does not count that. */
export interface FlowTraffic {
  readonly connections: number;
  readonly requestPackets: number;
  readonly requestBytes: number;
  readonly replyPackets: number;
  readonly replyBytes: number;
}

interface FlowView {
  readonly tables: readonly Pick<FamilyTable, 'family' | 'frontend'>[];
  /** Those on which node ports may be asked for. */
  readonly isLocal: (address: IPAddress) => boolean;
}

/** A few milliseconds' worth. */
const ROWS_AT_ONCE = 1000;

/**
 * Finds the frontend of each way, and passes on its traffic, with the endpoint as text on request. The search yields to
 * other work in between.
 *
 * @returns connections to no frontend of the tables: other software translates them, or their Service is gone.
 */
export async function attribute(
  { count, ways, sums }: FlowSums,
  view: FlowView,
  add: (frontend: FrontendPlan, endpoint: () => string, traffic: FlowTraffic) => void,
): Promise<number> {
  const known = new Map<string, FrontendPlan | undefined>();
  let unattributed = 0;
  for (let row = 0; row < count; row++) {
    if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await turn();
    const way = ways.subarray(row * FLOW_WAY.size, (row + 1) * FLOW_WAY.size);
    const traffic = trafficAt(sums, row * FLOW_SUM.length);
    // The beginning of the row has the whole original destination. Many endpoints share it.
    const destination = Buffer.from(way.buffer, way.byteOffset, FLOW_WAY.source).toString('latin1');
    const frontend = known.has(destination) ? known.get(destination) : frontendOf(way, view);
    known.set(destination, frontend);
    if (frontend === undefined) unattributed += traffic.connections;
    else add(frontend, () => printEndpoint(...endpointAt(way, FLOW_WAY.source, FLOW_WAY.sourcePort)), traffic);
  }
  return unattributed;
}

/** An address of its own comes before a node port, as in the rules. */
function frontendOf(way: Uint8Array, { tables, isLocal }: FlowView): FrontendPlan | undefined {
  const protocol = protocolFromNumber(way[FLOW_WAY.protocol] ?? 0);
  if (protocol === null) return undefined;
  const [address, port] = endpointAt(way, FLOW_WAY.destination, FLOW_WAY.destinationPort);
  const family: Family = familyOf(address);
  const table = tables.find((each) => each.family === family);
  const own = table?.frontend(frontendKey(address, port, protocol));
  if (own !== undefined || table === undefined || !isLocal(address)) return own;
  return table.frontend(frontendKey(null, port, protocol));
}

function endpointAt(way: Uint8Array, addressAt: number, portAt: number): [address: IPAddress, port: number] {
  const length = way[FLOW_WAY.addressLength] ?? 0;
  const port = ((way[portAt] ?? 0) << 8) | (way[portAt + 1] ?? 0);
  return [addressFromBytes(way.subarray(addressAt, addressAt + length)), port];
}

function trafficAt(sums: Float64Array, start: number): FlowTraffic {
  const number = (name: (typeof FLOW_SUM)[number]): number => sums[start + FLOW_SUM.indexOf(name)] ?? 0;
  return {
    connections: number('flows'),
    requestPackets: number('requestPackets'),
    requestBytes: number('requestBytes'),
    replyPackets: number('replyPackets'),
    replyBytes: number('replyBytes'),
  };
}
