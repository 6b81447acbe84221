import { EndpointList, printEndpoint } from '../../src/base/endpoint-list.js';
import { addressBytes, addressFromBytes, familyOf, parseAddress, type IPAddress } from '../../src/base/ip.js';
import { protocolFromNumber, protocolNumber, type Protocol } from '../../src/base/protocol.js';
import type { IpvsService } from '../../src/native/contract.js';

function address(text: string): IPAddress {
  const parsed = parseAddress(text);
  if (parsed === null) throw new Error(`not an address: ${text}`);
  return parsed;
}

/** Addresses of one family, packed. */
export function packed(...texts: readonly string[]): Uint8Array {
  return Uint8Array.from(texts.flatMap((text) => [...addressBytes(address(text))]));
}

export function service(text: string, port: number, protocol: Protocol = 'TCP'): IpvsService {
  const parsed = address(text);
  const bytes = addressBytes(parsed);
  return { protocol: protocolNumber(protocol), family: familyOf(parsed), address: bytes, port, mark: 0 };
}

/** Endpoints of one family, by address and port. */
export function endpoints(...pairs: readonly (readonly [string, number])[]): Uint8Array {
  const list = pairs.map(([text, port]) => ({ address: address(text), port }));
  return EndpointList.of(familyOf(address(pairs[0]?.[0] ?? '0.0.0.0')), list).packed;
}

/** `TCP 10.96.0.1:80`, or `mark 7 IPv4`. */
export function printService({ protocol, family, address: bytes, port, mark }: IpvsService): string {
  if (bytes === null) return `mark ${mark} ${family}`;
  return `${protocolFromNumber(protocol) ?? protocol} ${printEndpoint(addressFromBytes(bytes), port)}`;
}
