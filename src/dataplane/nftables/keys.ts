import { endianness } from 'node:os';
import { packedKey } from '../../base/endpoint-list.js';
import { addressLength, parseAddress, prefixRange, type Family, type IPPrefix } from '../../base/ip.js';
import { packedAddress, unpackAddress } from '../../base/pack-address.js';
import { protocolFromNumber, protocolNumber } from '../../base/protocol.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { SHARDS } from './names.js';

/**
 * Element keys as the kernel holds them, as strings with one character per byte: every component of a concatenation in network order, padded
 * with zeros to 4 bytes.
 */
export type PackedKey = string;

/** `protocol . port`, each padded to 4 bytes. */
export const SERVICE_LENGTH = 8;

/** Bytes of an IPv4 address; any four are one. */
const OCTETS = 4;

const LITTLE_ENDIAN = endianness() === 'LE';

/** `address . protocol . port`, or `protocol . port` for node ports. */
export function packFrontend(key: FrontendKey): PackedKey {
  return packParts(parseFrontendKey(key));
}

/** {@link packFrontend} of the key that these are the parts of. */
export function packParts({ address, port, protocol }: FrontendParts): PackedKey {
  return (address === null ? '' : packedAddress(address)) + packService(protocolNumber(protocol), port);
}

type FrontendParts = ReturnType<typeof parseFrontendKey>;

/**
 * The inverse of {@link packFrontend}; null when the bytes are no frontend of the family: an unknown protocol, port 0, or an IPv4-mapped
 * address, which no Service can have.
 */
export function unpackFrontend(family: Family, packed: PackedKey): FrontendKey | null {
  const service = packed.length - SERVICE_LENGTH;
  if (service !== 0 && service !== addressLength(family)) return null;
  const protocol = protocolFromNumber(packed.charCodeAt(service));
  const port = (packed.charCodeAt(service + 4) << 8) | packed.charCodeAt(service + 5);
  if (protocol === null || port === 0) return null;
  if (service === 0) return frontendKey(null, port, protocol);
  const address = unpackAddress(packed.slice(0, service));
  return service === OCTETS || parseAddress(address) === address ? frontendKey(address, port, protocol) : null;
}

/** A frontend as one by whose key clients are remembered: node ports, which have no address, have that of all zeros. */
export function packClientKey(family: Family, key: FrontendKey): PackedKey {
  const packed = packFrontend(key);
  return packed.padStart(addressLength(family) + SERVICE_LENGTH, '\0');
}

/** The inverse of {@link packClientKey}; null when the bytes are no frontend of the family. */
export function unpackClientKey(family: Family, packed: PackedKey): FrontendKey | null {
  const size = addressLength(family);
  return unpackFrontend(family, /^\0+$/.test(packed.slice(0, size)) ? packed.slice(size) : packed);
}

/** Which of the maps of endpoints a frontend's are in: by its key alone (FNV-1a), so that every process agrees. */
export function shardOf(packed: PackedKey): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < packed.length; index++) hash = Math.imul(hash ^ packed.charCodeAt(index), 0x01000193);
  return (hash >>> 16) % SHARDS;
}

/** First and last packed address of a prefix, joined. */
export function packRange(prefix: IPPrefix): PackedKey {
  const [first, last] = prefixRange(prefix);
  return packed(first) + packed(last);
}

/**
 * A range of {@link packRange} as a source in a key: its first address and the length of the prefix, which is padded as a port
 * is. Null: the range is a single address.
 *
 * The kernel looks for a source once for each length. A set of intervals would need one look, but the kernel takes elements out of it in
 * quadratic time: 15,000 of one Service take 6 s, or minutes in another order (kernel 6.18, nft_pipapo_remove).
 */
export function packSource(range: PackedKey): PackedKey | null {
  const half = range.length / 2;
  let length = 0;
  for (let index = 0; length === 8 * index && index < half; index++)
    length += Math.clz32(range.charCodeAt(index) ^ range.charCodeAt(half + index)) - 24;
  return length === 8 * half ? null : range.slice(0, half) + packPort(length);
}

/** The inverse of {@link packSource}; null when the key is of no prefix. */
export function unpackSource(key: PackedKey): PackedKey | null {
  const first = key.slice(0, -4);
  const length = (key.charCodeAt(first.length) << 8) | key.charCodeAt(first.length + 1);
  const octets = Array.from(first, (octet) => octet.charCodeAt(0));
  const host = (index: number): number => 0xff >> Math.min(8, Math.max(0, length - 8 * index));
  const last = String.fromCharCode(...octets.map((octet, index) => octet | host(index)));
  const isFirst = octets.every((octet, index) => (octet & host(index)) === 0);
  return isFirst && packSource(first + last) === key ? first + last : null;
}

/** A number in host order, as packet marks and numgen results are. */
export function packSlot(slot: number): PackedKey {
  const bytes = [slot & 0xff, (slot >>> 8) & 0xff, (slot >>> 16) & 0xff, slot >>> 24];
  return String.fromCharCode(...(LITTLE_ENDIAN ? bytes : bytes.reverse()));
}

export function unpackSlot(packed: Uint8Array, offset: number): number {
  const octet = (index: number): number => packed[offset + (LITTLE_ENDIAN ? 3 - index : index)] ?? 0;
  return ((octet(0) << 24) | (octet(1) << 16) | (octet(2) << 8) | octet(3)) >>> 0;
}

/** A packed endpoint (address and port, 6 or 18 bytes) as map data: the port padded to 4 bytes. */
export function packEndpoint(packed: PackedKey): PackedKey {
  return `${packed}\0\0`;
}

function packService(protocol: number, port: number): PackedKey {
  return String.fromCharCode(protocol, 0, 0, 0) + packPort(port);
}

function packPort(port: number): PackedKey {
  return String.fromCharCode(port >> 8, port & 0xff, 0, 0);
}

function packed(bytes: Uint8Array): PackedKey {
  return packedKey(bytes, 0, bytes.length);
}
