import { createHash } from 'node:crypto';
import { addressBytes, familyOf, type IPAddress } from '../../base/ip.js';

/** Ids and link addresses of what the mode makes in HNS: by them a process knows what is a proxy's. */

/** The first bytes of the id of all our objects: `points`, and version 8 of RFC 9562, whose other bits are the maker's. */
const OWN_ID = /^706f696e-7473-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

/** The id of an object of ours, the same for the same text. */
export function ownId(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `706f696e-7473-8${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
}

export function isOwnId(id: string): boolean {
  return OWN_ID.test(id);
}

/** The prefixes of remote endpoints, as in kube-proxy (behaviour WK-04); it has the first for both families. */
const MAC_PREFIXES = { IPv4: '02-11', IPv6: '02-12' } as const;
const MAC_BYTES = 4;

/**
 * The link address of a remote endpoint. In IPv4 it is made of the address, as in kube-proxy. An IPv6 address is longer: its
 * digest is tried, and others after it, until one is free.
 */
export function remoteMac(address: IPAddress, isTaken: (mac: string) => boolean): string {
  const family = familyOf(address);
  if (family === 'IPv4') return printMac(family, addressBytes(address));
  for (let attempt = 0; ; attempt++) {
    const digest = createHash('sha256').update(`${address} ${attempt}`).digest();
    const mac = printMac(family, digest.subarray(0, MAC_BYTES));
    if (!isTaken(mac)) return mac;
  }
}

/** Whether a remote endpoint with this link address is a proxy's. */
export function isProxyMac(mac: string): boolean {
  return Object.values(MAC_PREFIXES).some((prefix) => mac.startsWith(`${prefix}-`));
}

function printMac(family: keyof typeof MAC_PREFIXES, bytes: Uint8Array): string {
  const rest = [...bytes].map((byte) => byte.toString(16).padStart(2, '0').toUpperCase());
  return [MAC_PREFIXES[family], ...rest].join('-');
}

/** In the one form that is compared. */
export function normalMac(mac: string): string {
  return mac.replaceAll(':', '-').toUpperCase();
}
