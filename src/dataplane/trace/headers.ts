import { printEndpoint } from '../../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family } from '../../base/ip.js';
import { protocolFromNumber, type Protocol } from '../../base/protocol.js';

/** A packet's headers. */
export interface Headers {
  readonly protocol: Protocol;
  /** `address:port`. */
  readonly source: string;
  readonly destination: string;
  /** The flags of TCP; null otherwise. */
  readonly flags: { readonly syn: boolean; readonly ack: boolean; readonly rst: boolean } | null;
}

/** Where in the IP header the protocol and the source are, which the destination follows (RFC 791, RFC 8200). */
const PLACES: Readonly<Record<Family, { readonly protocol: number; readonly source: number }>> = {
  IPv4: { protocol: 9, source: 12 },
  IPv6: { protocol: 6, source: 8 },
};
const TCP_FLAGS = 13;
const [SYN, RST, ACK] = [2, 4, 16] as const;

/** Null: not of a protocol with ports, or cut off. */
export function readHeaders(network: Uint8Array | null, transport: Uint8Array | null): Headers | null {
  if (network === null || transport === null || transport.length < 4) return null;
  const family: Family = (network[0] ?? 0) >> 4 === 6 ? 'IPv6' : 'IPv4';
  const { protocol: at, source } = PLACES[family];
  const length = addressLength(family);
  const protocol = protocolFromNumber(network[at] ?? 0);
  if (protocol === null || network.length < source + 2 * length) return null;
  const endpoint = (address: number, port: number): string =>
    printEndpoint(
      addressFromBytes(network.subarray(address, address + length)),
      ((transport[port] ?? 0) << 8) | (transport[port + 1] ?? 0),
    );
  const bits = transport[TCP_FLAGS] ?? null;
  return {
    protocol,
    source: endpoint(source, 0),
    destination: endpoint(source + length, 2),
    flags:
      protocol !== 'TCP' || bits === null
        ? null
        : { syn: (bits & SYN) !== 0, ack: (bits & ACK) !== 0, rst: (bits & RST) !== 0 },
  };
}
