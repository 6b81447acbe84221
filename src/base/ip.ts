/** IP addresses and prefixes as branded canonical text: usable as map keys, printable as they are, and never an unchecked string. */

export type Family = 'IPv4' | 'IPv6';

export const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];

declare const addressBrand: unique symbol;
declare const prefixBrand: unique symbol;

/** Canonical text of an address (IPv6 per RFC 5952). Made only by {@link parseAddress} and {@link addressFromBytes}. */
export type IPAddress = string & { readonly [addressBrand]: true };

/** Canonical `address/length` with the host bits zero. Made only by {@link parsePrefix} and {@link hostPrefix}. */
export type IPPrefix = string & { readonly [prefixBrand]: true };

/** Where node ports answer: the node's own first address of each family, or a prefix. */
export type NodePortAddress = IPPrefix | 'primary';

export function isPrefix(entry: NodePortAddress): entry is IPPrefix {
  return entry !== 'primary';
}

/** Length of an address in bytes. */
export function addressLength(family: Family): 4 | 16 {
  return family === 'IPv4' ? 4 : 16;
}

export function familyOf(value: IPAddress | IPPrefix): Family {
  return value.includes(':') ? 'IPv6' : 'IPv4';
}

/**
 * Parses an address the way the Kubernetes API always has: IPv4 octets may carry leading zeros and are decimal, an IPv4-mapped IPv6
 * address is the IPv4 address, zone identifiers are refused. Null when it is not an address.
 */
export function parseAddress(text: string): IPAddress | null {
  const bytes = parseAddressBytes(text);
  return bytes === null ? null : addressFromBytes(bytes);
}

/** The 4 or 16 bytes, in network order, of what {@link parseAddress} takes. */
export function parseAddressBytes(text: string): Uint8Array | null {
  const bytes = parseBytes(text);
  return bytes !== null && isMapped(bytes) ? bytes.subarray(MAPPED_BITS / 8) : bytes;
}

/** Bits before the IPv4 address in an IPv4-mapped one. */
const MAPPED_BITS = 96;

/**
 * Parses `address/length`; host bits are masked off. Null when it is not a prefix. An IPv4-mapped one counts its length in 128 bits and is the
 * IPv4 prefix, as it is to Kubernetes components. With a length that leaves some of the mapping open it belongs to neither family and is refused.
 */
export function parsePrefix(text: string): IPPrefix | null {
  const slash = text.lastIndexOf('/');
  if (slash < 0) return null;
  const bytes = parseBytes(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (bytes === null || !/^\d{1,3}$/.test(digits)) return null;
  const length = Number(digits);
  if (length > bytes.length * 8) return null;
  if (!isMapped(bytes)) return printPrefix(bytes, length);
  return length < MAPPED_BITS ? null : printPrefix(bytes.subarray(MAPPED_BITS / 8), length - MAPPED_BITS);
}

function printPrefix(bytes: Uint8Array, length: number): IPPrefix {
  return `${addressFromBytes(maskBytes(bytes, length))}/${length}` as IPPrefix;
}

/** The prefix that holds just this address. */
export function hostPrefix(address: IPAddress): IPPrefix {
  return `${address}/${addressLength(familyOf(address)) * 8}` as IPPrefix;
}

/** The address's 4 or 16 bytes in network order; a fresh array each time. */
export function addressBytes(address: IPAddress): Uint8Array {
  const bytes = parseBytes(address);
  if (bytes === null) throw new TypeError(`not an IP address: ${address}`);
  return bytes;
}

/** Prints 4 or 16 bytes in network order. */
export function addressFromBytes(bytes: Uint8Array): IPAddress {
  const octet = (index: number): number => bytes[index] ?? 0;
  // Several times as fast as a join, and every frontend of a listing has one.
  if (bytes.length === 4) return `${octet(0)}.${octet(1)}.${octet(2)}.${octet(3)}` as IPAddress;
  if (bytes.length !== 16) throw new TypeError(`an IP address has 4 or 16 bytes, not ${bytes.length}`);
  return printIPv6(bytes) as IPAddress;
}

export function prefixAddress(prefix: IPPrefix): IPAddress {
  return prefix.slice(0, prefix.lastIndexOf('/')) as IPAddress;
}

export function prefixLength(prefix: IPPrefix): number {
  return Number(prefix.slice(prefix.lastIndexOf('/') + 1));
}

/** Whether `address` is in `prefix`; false across families. */
export function prefixContains(prefix: IPPrefix, address: IPAddress): boolean {
  if (familyOf(prefix) !== familyOf(address)) return false;
  const masked = maskBytes(addressBytes(address), prefixLength(prefix));
  return addressFromBytes(masked) === prefixAddress(prefix);
}

/** Whether all of `part` is in `whole`; false across families. */
export function prefixWithin(part: IPPrefix, whole: IPPrefix): boolean {
  return prefixLength(whole) <= prefixLength(part) && prefixContains(whole, prefixAddress(part));
}

/** Whether any address is in both; false across families. Prefixes nest or are apart. */
export function prefixesOverlap(one: IPPrefix, other: IPPrefix): boolean {
  return prefixContains(one, prefixAddress(other)) || prefixContains(other, prefixAddress(one));
}

/** First and last address of the prefix, as bytes. */
export function prefixRange(prefix: IPPrefix): readonly [Uint8Array, Uint8Array] {
  const first = addressBytes(prefixAddress(prefix));
  const last = Uint8Array.from(first);
  const length = prefixLength(prefix);
  for (let bit = length; bit < last.length * 8; bit++) last[bit >> 3] = (last[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return [first, last];
}

export function isLoopback(address: IPAddress): boolean {
  return familyOf(address) === 'IPv4' ? address.startsWith('127.') : address === '::1';
}

/** Whether some of the prefix is loopback. */
export function touchesLoopback(prefix: IPPrefix): boolean {
  const first = parseAddress(familyOf(prefix) === 'IPv4' ? '127.0.0.0' : '::1');
  return isLoopback(prefixAddress(prefix)) || (first !== null && prefixContains(prefix, first));
}

/** The address on which a family's programs are reached on loopback. */
export const LOOPBACK: Readonly<Record<Family, IPAddress>> = {
  IPv4: '127.0.0.1' as IPAddress,
  IPv6: '::1' as IPAddress,
};

/** Whether the prefix is of loopback, and does not only have it among other addresses. */
export function namesLoopback(prefix: IPPrefix): boolean {
  return isLoopback(prefixAddress(prefix)) && prefixContains(prefix, LOOPBACK[familyOf(prefix)]);
}

export function isUnspecified(address: IPAddress): boolean {
  return address === '0.0.0.0' || address === '::';
}

function maskBytes(bytes: Uint8Array, length: number): Uint8Array {
  return bytes.map((byte, index) => {
    const keep = Math.min(8, Math.max(0, length - index * 8));
    return byte & (0xff << (8 - keep)) & 0xff;
  });
}

function parseBytes(text: string): Uint8Array | null {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

const DOT = 0x2e;
const ZERO = 0x30;

function parseIPv4(text: string): Uint8Array | null {
  const bytes = new Uint8Array(4);
  let part = 0;
  let octet = 0;
  let digits = 0;
  for (let index = 0; index <= text.length; index++) {
    // The end closes the last octet as a dot closes the others.
    const code = index < text.length ? text.charCodeAt(index) : DOT;
    if (code === DOT) {
      if (digits === 0 || part > 3) return null;
      bytes[part++] = octet;
      octet = 0;
      digits = 0;
      continue;
    }
    octet = octet * 10 + (code - ZERO);
    digits++;
    if (code < ZERO || code > ZERO + 9 || octet > 255) return null;
  }
  return part === 4 ? bytes : null;
}

function parseIPv6(text: string): Uint8Array | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = parseGroups(halves[0] ?? '', halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '', true) : [];
  if (head === null || tail === null) return null;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 2) return null;
  return Uint8Array.from([...head, ...new Array<number>(missing).fill(0), ...tail]);
}

/** Whether these are the 16 bytes of an IPv4-mapped address, RFC 4291 section 2.5.5.2. */
function isMapped(bytes: Uint8Array): boolean {
  if (bytes.length !== 16 || bytes[10] !== 0xff || bytes[11] !== 0xff) return false;
  return bytes.subarray(0, 10).every((byte) => byte === 0);
}

/** Bytes of colon-separated groups; only the last group of an address may be dotted IPv4. */
function parseGroups(text: string, last: boolean): number[] | null {
  if (text === '') return [];
  const bytes: number[] = [];
  const groups = text.split(':');
  for (const [index, group] of groups.entries()) {
    if (last && index === groups.length - 1 && group.includes('.')) {
      const dotted = parseIPv4(group);
      if (dotted === null) return null;
      bytes.push(...dotted);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return null;
      const value = parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    }
  }
  return bytes;
}

function printIPv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0));
  let best = { start: 0, length: 0 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.length < 2) return hex.join(':');
  return `${hex.slice(0, best.start).join(':')}::${hex.slice(best.start + best.length).join(':')}`;
}
