import { addressBytes, familyOf, type Family, type IPAddress } from './ip.js';

/** What makes an address one that no endpoint can have. */
export type SpecialAddress =
  | 'the unspecified address'
  | 'a loopback address'
  | 'a link-local address'
  | 'a multicast address'
  | 'the broadcast address';

/**
 * Whether the bytes at `offset` are an address that means something else than one host: null when they are not. RFC 6890 (IPv4), RFC 4291 section 2.4 (IPv6).
 * For endpoints and external IPs the API forbids these, of multicast only what is link-local; the rest of it, and broadcast, nothing can be connected to.
 */
export function specialAddressAt(bytes: Uint8Array, offset: number, family: Family): SpecialAddress | null {
  return family === 'IPv4' ? specialIPv4(bytes, offset) : specialIPv6(bytes, offset);
}

export function specialAddress(address: IPAddress): SpecialAddress | null {
  return specialAddressAt(addressBytes(address), 0, familyOf(address));
}

function specialIPv4(bytes: Uint8Array, offset: number): SpecialAddress | null {
  const first = bytes[offset] ?? 0;
  if (first === 127) return 'a loopback address';
  if (first >= 224 && first <= 239) return 'a multicast address';
  if (first === 169) return bytes[offset + 1] === 254 ? 'a link-local address' : null;
  if (first !== 0 && first !== 255) return null;
  for (let index = 1; index < 4; index++) if (bytes[offset + index] !== first) return null;
  return first === 0 ? 'the unspecified address' : 'the broadcast address';
}

function specialIPv6(bytes: Uint8Array, offset: number): SpecialAddress | null {
  const first = bytes[offset] ?? 0;
  if (first === 0xff) return 'a multicast address';
  if (first === 0xfe) return ((bytes[offset + 1] ?? 0) & 0xc0) === 0x80 ? 'a link-local address' : null;
  if (first !== 0) return null;
  for (let index = 1; index < 15; index++) if (bytes[offset + index] !== 0) return null;
  const last = bytes[offset + 15] ?? 0;
  if (last > 1) return null;
  return last === 1 ? 'a loopback address' : 'the unspecified address';
}
