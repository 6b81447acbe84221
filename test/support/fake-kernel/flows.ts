import { packedKey, printEndpoint } from '../../../src/base/endpoint-list.js';
import {
  addressBytes,
  addressFromBytes,
  addressLength,
  familyOf,
  type Family,
  type IPAddress,
} from '../../../src/base/ip.js';
import { protocolNumber, type Protocol } from '../../../src/base/protocol.js';
import {
  FLOW_RECORD,
  type Challenges,
  type FlowDeletion,
  type FlowFilter,
  type FlowListing,
  type NftFamily,
} from '../../../src/native/contract.js';

export interface Flow {
  readonly protocol: Protocol;
  readonly source: IPAddress;
  readonly sourcePort: number;
  readonly destination: IPAddress;
  readonly port: number;
  /** Where replies come from. */
  readonly replySource: IPAddress;
  readonly replyPort: number;
  /** A client's first packet that nothing was replied to. */
  readonly unanswered: boolean;
}

/** `UDP 10.244.1.10:40000 -> 10.96.0.10:53 by 10.244.1.1:53`, with ` unanswered` behind. */
export function printFlow(flow: Flow): string {
  const { protocol, source, sourcePort, destination, port, replySource, replyPort } = flow;
  const target = printEndpoint(destination, port);
  const by = printEndpoint(replySource, replyPort) + (flow.unanswered ? ' unanswered' : '');
  return `${protocol} ${printEndpoint(source, sourcePort)} -> ${target} by ${by}`;
}

/** The part of conntrack that the addon reaches. */
export class FakeFlows {
  private readonly byId = new Map<number, Flow>();
  private lastId = 0;
  readonly challenged: string[] = [];

  add(flow: Flow): void {
    this.byId.set(++this.lastId, flow);
  }

  clear(): void {
    this.byId.clear();
  }

  *[Symbol.iterator](): IterableIterator<Flow> {
    yield* this.byId.values();
  }

  list({ family, protocol, destination, port, unanswered }: FlowFilter): FlowListing {
    const wanted = destination === null ? null : packedKey(destination, 0, destination.length);
    const found = [...this.byId].filter(([, flow]) => {
      const own = addressBytes(flow.destination);
      return (
        nftFamily(familyOf(flow.destination)) === family &&
        protocolNumber(flow.protocol) === protocol &&
        (wanted === null || wanted === packedKey(own, 0, own.length)) &&
        (port === null || port === flow.port) &&
        (flow.unanswered || !unanswered)
      );
    });
    return { count: found.length, records: Buffer.concat(found.map(([id, flow]) => encode(id, flow))) };
  }

  listTranslated(family: NftFamily, replySources: Uint8Array | null): FlowListing {
    const found = [...this.byId].filter(([, flow]) => {
      const { destination, port, replySource, replyPort } = flow;
      return (
        nftFamily(familyOf(destination)) === family &&
        flow.protocol === 'TCP' &&
        !flow.unanswered &&
        (destination !== replySource || port !== replyPort) &&
        (replySources === null || holds(replySources, addressBytes(replySource)))
      );
    });
    return { count: found.length, records: Buffer.concat(found.map(([id, flow]) => encode(id, flow))) };
  }

  /** Notes who was challenged: client and what it asked for. */
  challenge(family: NftFamily, records: Uint8Array): Challenges {
    const length = addressLength(family === 'ip' ? 'IPv4' : 'IPv6');
    const size = FLOW_RECORD.addresses * length + FLOW_RECORD.tail;
    for (let start = 0; start < records.length; start += size) {
      const view = new DataView(records.buffer, records.byteOffset + start, size);
      const address = (at: number): IPAddress => addressFromBytes(records.subarray(start + at, start + at + length));
      const client = printEndpoint(address(0), view.getUint16(4 * length));
      this.challenged.push(`${client} -> ${printEndpoint(address(length), view.getUint16(4 * length + 2))}`);
    }
    return { sent: records.length / size, failure: null };
  }

  delete(family: NftFamily, records: Uint8Array): FlowDeletion {
    const size = recordSize(family === 'ip' ? 'IPv4' : 'IPv6');
    if (records.length % size !== 0) throw new TypeError(`records: ${records.length} bytes are no whole records`);
    let deleted = 0;
    for (let start = 0; start < records.length; start += size) {
      const id = new DataView(records.buffer, records.byteOffset + start, size).getUint32(size - 8);
      const flow = this.byId.get(id);
      const record = flow === undefined ? null : encode(id, flow);
      if (record === null || Buffer.compare(record, records.subarray(start, start + size)) !== 0) continue;
      this.byId.delete(id);
      deleted++;
    }
    return { deleted, missing: records.length / size - deleted };
  }
}

function holds(addresses: Uint8Array, address: Uint8Array): boolean {
  for (let at = 0; at < addresses.length; at += address.length)
    if (Buffer.compare(addresses.subarray(at, at + address.length), address) === 0) return true;
  return false;
}

/** The kernel's numbers. */
const STATES = {
  TCP: { requested: 1, established: 3 },
  SCTP: { requested: 2, established: 4 },
  UDP: { requested: 0, established: 0 },
} as const;

function nftFamily(family: Family): NftFamily {
  return family === 'IPv4' ? 'ip' : 'ip6';
}

function recordSize(family: Family): number {
  return FLOW_RECORD.addresses * addressLength(family) + FLOW_RECORD.tail;
}

/** See {@link FLOW_RECORD}. */
function encode(id: number, flow: Flow): Uint8Array {
  const family = familyOf(flow.destination);
  const length = addressLength(family);
  const record = new Uint8Array(recordSize(family));
  const view = new DataView(record.buffer);
  const addresses = [flow.source, flow.destination, flow.replySource, flow.source];
  for (const [index, address] of addresses.entries()) record.set(addressBytes(address), index * length);
  const ports = [flow.sourcePort, flow.port, flow.replyPort, flow.sourcePort];
  for (const [index, port] of ports.entries()) view.setUint16(4 * length + 2 * index, port);
  record[4 * length + 10] = protocolNumber(flow.protocol);
  record[4 * length + 11] = STATES[flow.protocol][flow.unanswered ? 'requested' : 'established'];
  view.setUint32(4 * length + 12, id);
  view.setUint32(4 * length + 16, flow.unanswered ? 0 : 2);
  return record;
}
