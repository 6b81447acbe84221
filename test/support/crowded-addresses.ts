import { addressBytes, addressFromBytes, parseAddress, type IPAddress } from '../../src/base/ip.js';

/**
 * Addresses chosen so that a connection to another one walks as many rules as they can make it: for each of its lowest nibbles
 * all addresses that differ there alone.
 *
 * @param nibbles how many of them.
 */
export function crowdAround(text: string, nibbles: number): readonly IPAddress[] {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(`not an address: ${text}`);
  return Array.from({ length: nibbles }, (_, index) => Array.from({ length: 15 }, (_, other) => [index, other + 1]))
    .flat()
    .map(([index = 0, other = 0]) => {
      const bytes = addressBytes(address);
      const at = bytes.length - 1 - (index >> 1);
      bytes[at] = (bytes[at] ?? 0) ^ (index % 2 === 0 ? other : other << 4);
      return addressFromBytes(bytes);
    });
}
