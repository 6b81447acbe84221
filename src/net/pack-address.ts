import { addressBytes, addressLength, familyOf, parseAddress, type Family } from './ip.js';

/**
 * Writes the 4 or 16 bytes of an address, in network order, to `target` at `offset`. False, and nothing written, when the text is no
 * address of that family. Accepts exactly what {@link parseAddress} accepts; plain dotted IPv4 costs no allocation.
 */
export function packAddress(text: string, family: Family, target: Uint8Array, offset: number): boolean {
  if (family === 'IPv4' && packDotted(text, target, offset)) return true;
  const address = parseAddress(text);
  if (address === null || familyOf(address) !== family) return false;
  target.set(addressBytes(address), offset);
  return true;
}

const DOT = 0x2e;
const ZERO = 0x30;

/** Four decimal octets of one to three digits. False for all else, which need not be wrong. */
function packDotted(text: string, target: Uint8Array, offset: number): boolean {
  let packed = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
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
    target[offset + byte] = packed % 256;
    packed = Math.floor(packed / 256);
  }
  return true;
}
