import { addressBytes, addressFromBytes, addressLength, type Family, type IPAddress } from './ip.js';

/**
 * Transport endpoints of one family packed in one byte array: per endpoint the address (4 or 16 bytes) and the port (2 bytes), both in
 * network order. A quarter of a million endpoints cost 1.5 MB this way instead of tens of megabytes as objects.
 */
export class EndpointList {
  readonly family: Family;
  readonly packed: Uint8Array;

  /** @param packed as described above; its length must be a multiple of {@link endpointSize}. */
  constructor(family: Family, packed: Uint8Array) {
    if (packed.length % endpointSize(family) !== 0)
      throw new RangeError(`packed ${family} endpoints of ${packed.length} bytes`);
    this.family = family;
    this.packed = packed;
  }

  static of(
    family: Family,
    endpoints: readonly { readonly address: IPAddress; readonly port: number }[],
  ): EndpointList {
    const size = endpointSize(family);
    const packed = new Uint8Array(endpoints.length * size);
    for (const [index, { address, port }] of endpoints.entries()) {
      packed.set(addressBytes(address), index * size);
      packed[index * size + size - 2] = port >> 8;
      packed[index * size + size - 1] = port & 0xff;
    }
    return new EndpointList(family, packed);
  }

  get count(): number {
    return this.packed.length / endpointSize(this.family);
  }

  address(index: number): IPAddress {
    const size = endpointSize(this.family);
    return addressFromBytes(this.packed.subarray(index * size, index * size + size - 2));
  }

  port(index: number): number {
    const end = (index + 1) * endpointSize(this.family);
    return ((this.packed[end - 2] ?? 0) << 8) | (this.packed[end - 1] ?? 0);
  }

  /** The packed bytes of one endpoint as a map key. */
  key(index: number): string {
    return packedKey(this.packed, index * endpointSize(this.family), endpointSize(this.family));
  }

  equals(other: EndpointList): boolean {
    return this.family === other.family && Buffer.compare(this.packed, other.packed) === 0;
  }

  /** `address:port`, IPv6 addresses in brackets, in list order. */
  toStrings(): string[] {
    return Array.from({ length: this.count }, (_, index) => printEndpoint(this.address(index), this.port(index)));
  }
}

/** The first ones of a list. */
export function firstEndpoints({ family, packed }: EndpointList, count: number): EndpointList {
  return new EndpointList(family, packed.subarray(0, count * endpointSize(family)));
}

/** The endpoints at these places, in their order. */
export function endpointsAt({ family, packed }: EndpointList, places: readonly number[]): EndpointList {
  const size = endpointSize(family);
  const kept = new Uint8Array(places.length * size);
  for (const [index, place] of places.entries())
    kept.set(packed.subarray(place * size, (place + 1) * size), index * size);
  return new EndpointList(family, kept);
}

/** Bytes per packed endpoint. */
export function endpointSize(family: Family): 6 | 18 {
  return addressLength(family) === 4 ? 6 : 18;
}

/** `address:port`, an IPv6 address in brackets. */
export function printEndpoint(address: IPAddress, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** A run of bytes as a string with one character per byte: compact, comparable, usable as a map key. */
export function packedKey(bytes: Uint8Array, start: number, length: number): string {
  // One change of a large Service makes thousands, and a Buffer around IPv4's few bytes costs several times as much as the string.
  const octet = (index: number): number => bytes[start + index] ?? 0;
  if (length === 4) return String.fromCharCode(octet(0), octet(1), octet(2), octet(3));
  if (length === 6) return String.fromCharCode(octet(0), octet(1), octet(2), octet(3), octet(4), octet(5));
  if (length === 12) return packedKey(bytes, start, 6) + packedKey(bytes, start + 6, 6);
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString('latin1');
}
