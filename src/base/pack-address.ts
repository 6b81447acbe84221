import { packedKey } from './endpoint-list.js';
import { addressBytes, addressFromBytes, addressLength, parseAddressBytes, type Family, type IPAddress } from './ip.js';

/** An address's bytes in network order, one character each. */
export type PackedAddress = string;

export function packedAddress(address: IPAddress): PackedAddress {
  const bytes = addressBytes(address);
  return packedKey(bytes, 0, bytes.length);
}

/** The bytes of an IPv4 address; any four of them are one. */
const octets = new Uint8Array(4);

/** The inverse of {@link packedAddress}. */
export function unpackAddress(packed: PackedAddress): IPAddress {
  if (packed.length !== octets.length) return addressFromBytes(Buffer.from(packed, 'latin1'));
  // A listing has thousands, and a Buffer for each costs more than all else.
  for (let index = 0; index < octets.length; index++) octets[index] = packed.charCodeAt(index);
  return addressFromBytes(octets);
}

/**
 * Writes the 4 or 16 bytes of an address, in network order, to `target` at `offset`. False, and nothing written, when the text is no
 * address of that family. Accepts exactly what {@link parseAddress} accepts; plain dotted IPv4 costs no allocation.
 */
export function packAddress(text: string, family: Family, target: Uint8Array, offset: number): boolean {
  if (family === 'IPv4' && packDottedText(text, target, offset)) return true;
  const bytes = parseAddressBytes(text);
  if (bytes?.length !== addressLength(family)) return false;
  target.set(bytes, offset);
  return true;
}

const DOT = 0x2e;
const ZERO = 0x30;

const LONGEST_DOTTED = '255.255.255.255'.length;
const characters = new Uint8Array(LONGEST_DOTTED);

function packDottedText(text: string, target: Uint8Array, offset: number): boolean {
  if (text.length > LONGEST_DOTTED) return false;
  let beyond = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    characters[index] = code;
    beyond |= code >> 7;
  }
  return beyond === 0 && packDotted(characters, 0, text.length, target, offset);
}

/**
 * Writes the 4 bytes of an address that is given as four decimal octets of one to three digits, in the characters from `start` to `end`. False, and nothing
 * written, for all else, which need not be wrong.
 */
export function packDotted(
  characters: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  offset: number,
): boolean {
  let packed = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let index = start; index < end; index++) {
    const code = characters[index] ?? 0;
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return false;
      packed = packed * 256 + octet;
      octet = 0;
      digits = 0;
      continue;
    }
    octet = octet * 10 + (code - ZERO);
    if (code < ZERO || code > ZERO + 9 || ++digits > 3 || octet > 255) return false;
  }
  if (dots !== 3 || digits === 0) return false;
  packed = packed * 256 + octet;
  for (let byte = addressLength('IPv4') - 1; byte >= 0; byte--) {
    target[offset + byte] = packed;
    packed >>>= 8;
  }
  return true;
}
